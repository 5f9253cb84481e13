//! Discloses the recovery of a reply to the client (PC-9).

use endmark_context::dollars;
use endmark_recovery::CutKind;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use serde_json::value::RawValue;

use crate::exchange::Exchange;
use crate::recovery::{CALLS_MAY_BE_MISSING, MALFORMED, MendedPart, TokenAccount};
use crate::refusals::REQUEST_ID_HEADER;
use crate::reply::Outcome;
use crate::settings::IncompleteDelivery;

/// The type of the error that replaces an incomplete reply.
pub(crate) const REPLY_INCOMPLETE: &str = "endmark_reply_incomplete";

/// The type of the error that ends a stream whose reply is cut.
pub(crate) const REPLY_CUT: &str = "endmark_reply_cut";

/// The response header with the reason for the outcome.
pub(crate) const REASON_HEADER: &str = "x-endmark-reason";

/// The value that marks incomplete token counts.
const AT_LEAST: &str = "at_least";

/// Maximum length of a finish reason that a header repeats.
const MAX_FINISH_REASON_BYTES: usize = 64;

/// Which token counts the client gets for its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountCompleteness {
    /// No token counts, because the client did not request them.
    Unreported,
    /// The counts of all calls.
    Whole,
    /// The counts of those calls that reported them.
    AtLeast,
}

/// What the client learns about the recovery of its reply, for all parts of the reply together.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about one reply")]
pub(crate) struct Disclosure {
    request: String,
    outcome: Outcome,
    attempts: u32,
    kind: Option<CutKind>,
    reason: Option<String>,
    /// Whether a cost limit ended the recovery. In that case `reason` names the limit.
    is_bounded: bool,
    is_invalid: bool,
    /// Whether the finish reason is unknown. In that case `reason` contains it.
    is_unknown: bool,
    /// Whether the reply may be incomplete: recovery failed, tool calls may be missing, or the end is
    /// unknown.
    is_incomplete: bool,
    /// How an incomplete reply is delivered.
    incomplete: IncompleteDelivery,
    omitted_bytes: usize,
    limit_sent: Option<u64>,
    /// The upstream that continued the reply, if another upstream began it.
    upstream: Option<String>,
    /// How complete the client's token counts are.
    counts: CountCompleteness,
    /// Whether there is anything to disclose.
    has_content: bool,
}

impl Disclosure {
    /// Creates a disclosure without content.
    pub(crate) fn new(exchange: &Exchange) -> Self {
        let view = exchange.attempt.request.view();
        Self {
            request: exchange.client.id.clone(),
            outcome: Outcome::Whole,
            attempts: 0,
            kind: None,
            reason: None,
            is_bounded: false,
            is_invalid: false,
            is_unknown: false,
            is_incomplete: false,
            incomplete: exchange.gateway.settings.disclose.incomplete,
            omitted_bytes: 0,
            limit_sent: None,
            upstream: None,
            counts: if !view.stream || view.include_usage {
                CountCompleteness::Whole
            } else {
                CountCompleteness::Unreported
            },
            has_content: exchange.gateway.settings.disclose.always,
        }
    }

    /// Adds the recovery of one part. The outcome of the reply is the worst outcome of its parts.
    pub(crate) fn add(&mut self, mended: &MendedPart, account: &TokenAccount) {
        let Some(outcome) = mended.outcome() else { return };
        self.has_content = true;
        self.outcome = self.outcome.max(outcome);
        self.attempts += mended.attempts();
        self.kind = self.kind.or(mended.kind());
        if self.reason.is_none() || (mended.is_bounded() && !self.is_bounded) {
            self.reason = mended.reason().map(str::to_owned);
        }
        self.is_bounded |= mended.is_bounded();
        self.is_invalid |= mended.is_invalid();
        self.is_incomplete |= mended.is_incomplete();
        self.omitted_bytes += mended.dropped_bytes();
        self.limit_sent = account.limit_sent;
        if self.counts == CountCompleteness::Whole && account.is_lower_bound() {
            self.counts = CountCompleteness::AtLeast;
        }
        if let Some(upstream) = mended.upstream() {
            self.upstream = Some(upstream.to_owned());
        }
    }

    /// Records an unknown finish reason. It may mean a failure, so the reply does not count as whole.
    pub(crate) fn note_unknown_end(&mut self, finish_reason: &str) {
        self.has_content = true;
        self.outcome = self.outcome.max(Outcome::Cut);
        (self.is_unknown, self.is_incomplete) = (true, true);
        let word: String = finish_reason.escape_default().take(MAX_FINISH_REASON_BYTES).collect();
        self.reason.get_or_insert_with(|| format!("unknown_finish_reason {word}"));
    }

    /// Records that the reply broke off and could not be recovered.
    pub(crate) fn note_break(&mut self) {
        self.has_content = true;
        self.outcome = self.outcome.max(Outcome::Cut);
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether the client gets an error instead of an incomplete reply, as the settings require.
    pub(crate) fn is_error(&self) -> bool {
        self.is_incomplete && self.incomplete == IncompleteDelivery::Error
    }

    /// Returns the message of the error that replaces an incomplete reply.
    pub(crate) fn error_message(&self) -> String {
        format!(
            "the reply is incomplete, and [disclose] incomplete = \"error\" asks for an error instead ({}): raise its output limit, \
             or send the request again",
            self.reason()
        )
    }

    /// Whether there is anything to disclose.
    pub(crate) fn has_content(&self) -> bool {
        self.has_content
    }

    /// Writes the disclosure as response headers.
    pub(crate) fn write_headers(&self, headers: &mut HeaderMap) {
        if !self.has_content {
            return;
        }
        let mut set = |name: &'static str, value: String| {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        set(REQUEST_ID_HEADER, self.request.clone());
        set("x-endmark-outcome", self.outcome.name().to_owned());
        set("x-endmark-attempts", self.attempts.to_string());
        if let Some(kind) = self.kind {
            set("x-endmark-cut", kind.name().to_owned());
        }
        if let Some(limit) = self.limit_sent {
            set("x-endmark-continuation-limit", limit.to_string());
        }
        if self.is_invalid {
            set("x-endmark-schema", "invalid".to_owned());
        }
        if self.omitted_bytes > 0 {
            set("x-endmark-left-out", self.omitted_bytes.to_string());
        }
        if let Some(upstream) = &self.upstream {
            set("x-endmark-upstream", upstream.clone());
        }
        if self.counts == CountCompleteness::AtLeast {
            set("x-endmark-usage", AT_LEAST.to_owned());
        }
        let belongs_in_header = |reason: &&String| {
            self.outcome == Outcome::Whole
                || self.is_bounded
                || self.is_unknown
                || [CALLS_MAY_BE_MISSING, MALFORMED].contains(&reason.as_str())
        };
        if let Some(reason) = self.reason.as_ref().filter(belongs_in_header) {
            set(REASON_HEADER, reason.clone());
        }
    }

    /// Returns the disclosure as the `endmark` object of a stream's last chunk.
    pub(crate) fn json(&self) -> Option<Box<RawValue>> {
        if !self.has_content {
            return None;
        }
        let mut disclosed = json!({
            "request": self.request,
            "outcome": self.outcome.name(),
            "attempts": self.attempts,
        });
        if let Some(kind) = self.kind {
            disclosed["cut"] = kind.name().into();
        }
        if let Some(limit) = self.limit_sent {
            disclosed["continuation_limit"] = limit.into();
        }
        if self.omitted_bytes > 0 {
            disclosed["left_out"] = self.omitted_bytes.into();
        }
        if let Some(upstream) = &self.upstream {
            disclosed["upstream"] = upstream.as_str().into();
        }
        if self.counts == CountCompleteness::AtLeast {
            disclosed["usage"] = AT_LEAST.into();
        }
        if let Some(reason) = &self.reason {
            disclosed["reason"] = reason.as_str().into();
        }
        if self.is_invalid {
            disclosed["schema"] = "invalid".into();
        }
        serde_json::value::to_raw_value(&disclosed).ok()
    }

    /// Writes the cost of a reply's calls as a response header, if anything is disclosed or a budget applies.
    pub(crate) fn write_cost(&self, exchange: &Exchange, headers: &mut HeaderMap) {
        let cost = exchange.calls.cost().filter(|_| self.has_content || exchange.calls.have_budgets());
        if let Some(value) = cost.and_then(|cost| HeaderValue::from_str(&dollars(cost)).ok()) {
            headers.insert(HeaderName::from_static("x-endmark-cost-usd"), value);
        }
    }

    /// Returns the reason why the reply is not whole, for an error message.
    pub(crate) fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or("the upstream broke off")
    }
}

/// Adds the cost of all calls to an `endmark` object, if the cost is known. All calls have ended at this
/// point. Estimated costs are marked, even if the client gets no token counts.
pub(crate) fn with_cost(disclosed: &RawValue, exchange: &Exchange, account: &TokenAccount) -> Box<RawValue> {
    let nano_usd = exchange.calls.cost();
    let with = || {
        let mut object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(disclosed.get()).ok()?;
        object.insert("cost_usd".to_owned(), dollars(nano_usd?).into());
        if account.is_estimated() {
            object.insert("usage".to_owned(), AT_LEAST.into());
        }
        serde_json::value::to_raw_value(&object).ok()
    };
    with().unwrap_or_else(|| disclosed.to_owned())
}
