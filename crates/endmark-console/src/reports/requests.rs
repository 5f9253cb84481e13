//! Reports the outcome of each request, with its upstream calls.

use endmark_store::{Purpose, RefusedRequest, RequestRow, UsageRow};
use serde::Serialize;

use super::calls::CallReport;
use super::usage::{Sums, Total, UsageKey};
use super::{recoveries, serialize_with_zone};
use endmark_context::Models;

/// Requests, the newest first.
#[derive(Debug, Serialize)]
pub struct RequestsReport<'a> {
    /// The requests.
    pub rows: Vec<RequestEntry<'a>>,
    /// Whether the requests of other gateways that share the database are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub this_gateway_alone: bool,
}

/// The outcome, usage and calls of one request.
#[derive(Debug, Serialize)]
pub struct RequestEntry<'a> {
    /// The id of the request.
    pub request_id: &'a str,
    /// The outcome: one of those in the response header, or `recovering`, `cancelled`, `interrupted`,
    /// `failed`, `unread` or `refused`.
    pub outcome: &'a str,
    /// Whether the client did not get the complete reply, although it requested all of it.
    pub is_worth_a_look: bool,
    /// The usage and cost of all calls.
    pub total: Total,
    /// The cut parts of the reply.
    pub cuts: Vec<recoveries::RecoveryEntry<'a>>,
    /// The upstream calls.
    pub calls: Vec<CallReport<'a>>,
    /// The gateway's own error, if it refused the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal<'a>>,
}

/// Why the gateway refused a request, before any upstream call.
#[derive(Debug, Serialize)]
pub struct Refusal<'a> {
    /// The time of the refusal.
    #[serde(serialize_with = "serialize_with_zone")]
    pub at: &'a str,
    /// The HTTP status of the response.
    pub status: u16,
    /// The `type` of the error.
    pub kind: &'a str,
    /// The message of the error.
    pub message: &'a str,
    /// The model that the request names; empty if unknown.
    pub model: &'a str,
    /// The upstream that the request is for; empty if unknown.
    pub upstream: &'a str,
    /// The client's credential; null without one.
    pub credential: Option<&'a str>,
    /// The session's hash; empty if unknown.
    pub session: &'a str,
}

impl<'a> From<&'a RefusedRequest> for Refusal<'a> {
    fn from(refused: &'a RefusedRequest) -> Self {
        Self {
            at: &refused.refused_at,
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
    /// Builds the report of a request, and prices its calls with these models.
    pub fn new(row: &'a RequestRow, models: &Models) -> Self {
        Self {
            request_id: row.request_id(),
            outcome: &row.outcome,
            is_worth_a_look: row.needs_attention(),
            total: total_usage(&row.calls, models),
            cuts: row.cuts.iter().map(recoveries::RecoveryEntry::new).collect(),
            calls: row.calls.iter().map(CallReport::new).collect(),
            refusal: row.refusal.as_ref().map(Refusal::from),
        }
    }
}

/// Returns the total usage and cost of several calls.
pub fn total_usage<'a>(calls: impl IntoIterator<Item = &'a UsageRow>, models: &Models) -> Total {
    let mut sums = Sums::new(UsageKey::Purpose, models);
    for call in calls {
        sums.add_call(call);
    }
    sums.into_rows().1
}

/// Whether the gateway made this call to recover a reply.
pub fn is_recovery(call: &UsageRow) -> bool {
    [Purpose::Resume, Purpose::Correction].iter().any(|purpose| purpose.name() == call.purpose)
}
