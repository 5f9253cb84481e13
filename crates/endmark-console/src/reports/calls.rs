//! The upstream calls of a request, from the ledger.

use endmark_store::{UsageRow, with_zone};
use serde::Serialize;

use super::serialize_with_zone;

/// One upstream call. The fields have the names of the columns.
// Fields: each corresponds to a column of the published report.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallReport<'a> {
    pub request_id: &'a str,
    pub call: u32,
    pub purpose: &'a str,
    pub upstream: &'a str,
    pub format: &'a str,
    pub model: &'a str,
    pub answered_model: Option<&'a str>,
    pub streamed: bool,
    #[serde(serialize_with = "serialize_with_zone")]
    pub started_at: &'a str,
    pub ended_at: Option<String>,
    pub http_status: Option<u16>,
    pub ending: &'a str,
    pub stop: Option<&'a str>,
    pub verdict: Option<&'a str>,
    pub cut_kind: Option<&'a str>,
    pub prompt_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    pub sent_bytes: u64,
    pub received_bytes: Option<u64>,
    pub first_byte_ms: Option<f64>,
    pub total_ms: Option<f64>,
}

impl<'a> CallReport<'a> {
    /// Builds the report of a row.
    pub fn new(call: &'a UsageRow) -> Self {
        Self {
            request_id: &call.request_id,
            call: call.call,
            purpose: &call.purpose,
            upstream: &call.upstream,
            format: &call.format,
            model: &call.model,
            answered_model: call.answered_model.as_deref(),
            streamed: call.streamed,
            started_at: &call.started_at,
            ended_at: call.ended_at.as_deref().map(with_zone),
            http_status: call.http_status,
            ending: &call.ending,
            stop: call.stop.as_deref(),
            verdict: call.verdict.as_deref(),
            cut_kind: call.cut_kind.as_deref(),
            prompt_tokens: call.tokens.prompt,
            output_tokens: call.tokens.output,
            cached_tokens: call.tokens.cached,
            reasoning_tokens: call.tokens.reasoning,
            total_tokens: call.tokens.total,
            sent_bytes: call.sent_bytes,
            received_bytes: call.received_bytes,
            first_byte_ms: call.first_byte_ms,
            total_ms: call.total_ms,
        }
    }
}
