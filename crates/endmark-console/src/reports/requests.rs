//! Requests: the outcome of each, with its upstream calls.

use endmark_store::{Purpose, RefusedRequest, RequestRow, UsageRow};
use serde::Serialize;

use super::calls::CallReport;
use super::usage::{Sums, Total, UsageKey};
use super::{recoveries, zoned};
use endmark_context::Models;

/// Requests, the newest first.
#[derive(Debug, Serialize)]
pub struct RequestsReport<'a> {
    /// One each.
    pub rows: Vec<RequestEntry<'a>>,
}

/// One request.
#[derive(Debug, Serialize)]
pub struct RequestEntry<'a> {
    /// Its id.
    pub request_id: &'a str,
    /// Its outcome: one of the header, or `recovering`, `cancelled`, `interrupted`, `failed`, `unread` or `refused`.
    pub outcome: &'a str,
    /// Whether its client did not get the whole reply, although it did not request only a part.
    pub is_worth_a_look: bool,
    /// The usage and cost of all its calls.
    pub total: Total,
    /// The cut parts of its reply.
    pub cuts: Vec<recoveries::RecoveryEntry<'a>>,
    /// Its upstream calls.
    pub calls: Vec<CallReport<'a>>,
    /// The gateway's own error, if it refused the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal<'a>>,
}

/// Why the gateway refused a request, before any upstream call.
#[derive(Debug, Serialize)]
pub struct Refusal<'a> {
    /// When.
    #[serde(serialize_with = "zoned")]
    pub at: &'a str,
    /// The status of the answer.
    pub status: u16,
    /// The `type` of the error.
    pub kind: &'a str,
    /// Its message.
    pub message: &'a str,
    /// The model that the request names; empty if that is not known.
    pub model: &'a str,
    /// The upstream that it is for; empty if that is not known.
    pub upstream: &'a str,
    /// The client; null without a credential.
    pub credential: Option<&'a str>,
    /// The session's hash; empty if that is not known.
    pub session: &'a str,
}

impl<'a> From<&'a RefusedRequest> for Refusal<'a> {
    fn from(refused: &'a RefusedRequest) -> Self {
        Self {
            at: &refused.at,
            status: refused.status,
            kind: &refused.kind,
            message: &refused.message,
            model: &refused.model,
            upstream: &refused.upstream,
            credential: refused.credential.as_deref(),
            session: &refused.session,
        }
    }
}

impl<'a> RequestEntry<'a> {
    /// Returns the report of a request, priced by this table.
    pub fn of(row: &'a RequestRow, models: &Models) -> Self {
        Self {
            request_id: row.request_id(),
            outcome: &row.outcome,
            is_worth_a_look: row.is_worth_a_look(),
            total: total(&row.calls, models),
            cuts: row.cuts.iter().map(recoveries::RecoveryEntry::of).collect(),
            calls: row.calls.iter().map(CallReport::of).collect(),
            refusal: row.refusal.as_ref().map(Refusal::from),
        }
    }
}

/// Returns the usage and cost of calls together.
pub fn total<'a>(calls: impl IntoIterator<Item = &'a UsageRow>, models: &Models) -> Total {
    let mut sums = Sums::new(UsageKey::Purpose, models);
    for call in calls {
        sums.add_call(call);
    }
    sums.finish().1
}

/// Returns whether a call was made to recover a reply.
pub fn is_recovery(call: &UsageRow) -> bool {
    [Purpose::Resume, Purpose::Correction].iter().any(|purpose| purpose.name() == call.purpose)
}
