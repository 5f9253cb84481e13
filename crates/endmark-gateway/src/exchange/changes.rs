//! Records the changes to a client's request, and discloses them.

use endmark_context::compact::NotCompacted;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::metrics::Metrics;
use crate::shaping::Summary;

/// The changes to one request.
#[derive(Debug, Default)]
pub(crate) struct RequestChanges {
    /// Number of tool calls in the conversation with invalid JSON arguments, which were repaired.
    pub(crate) repaired_calls: usize,
    /// Number of references to recovered items that were replaced by the complete items.
    pub(crate) restored_items: usize,
    /// Number of capped tool results.
    pub(crate) capped_results: usize,
    /// Whether the model is offered the tool for reading omitted parts.
    pub(crate) offers_read_tool: bool,
    /// The summary of the conversation's older part, if that part was condensed.
    pub(crate) summary: Option<Summary>,
    /// Why the gateway could not condense more, although the request is too long.
    pub(crate) compaction_stopped: Option<NotCompacted>,
    /// The response that the request continues, if it differs from the one in the client's request.
    pub(crate) previous_response: Option<String>,
}

impl RequestChanges {
    /// Whether the request's bytes were changed.
    pub(crate) fn has_changes(&self) -> bool {
        self.repaired_calls > 0
            || self.restored_items > 0
            || self.previous_response.is_some()
            || self.capped_results > 0
            || self.summary.is_some()
    }

    /// Adds the changes to the metrics and logs them.
    pub(crate) fn count_and_log(&self, metrics: &Metrics, upstream: &str, request: &str) {
        if self.repaired_calls > 0 {
            metrics.note_repairs(upstream, self.repaired_calls as u64);
            let calls = self.repaired_calls;
            tracing::info!(
                request,
                calls,
                "arguments of calls in the conversation were not JSON: they were repaired"
            );
        }
        if self.restored_items > 0 {
            let items = self.restored_items;
            tracing::info!(
                request,
                items,
                "references to recovered items were replaced by the complete items"
            );
        }
        if self.capped_results > 0 {
            metrics.note_capped_results(upstream, self.capped_results as u64);
        }
        if let Some(summary) = &self.summary {
            metrics.note_compaction(upstream, summary.mode);
        }
        if let Some(id) = &self.previous_response {
            tracing::info!(request, id, "the previous response was completed under another id");
        }
    }

    /// Discloses the changes as response headers.
    pub(crate) fn write_headers(&self, headers: &mut HeaderMap) {
        if self.repaired_calls > 0 {
            headers.insert(HeaderName::from_static("x-endmark-repaired-calls"), self.repaired_calls.into());
        }
        if self.restored_items > 0 {
            headers.insert(HeaderName::from_static("x-endmark-restored-items"), self.restored_items.into());
        }
        if self.capped_results > 0 {
            headers.insert(HeaderName::from_static("x-endmark-capped"), self.capped_results.into());
        }
        if let Some(value) = self.compaction_header().and_then(|note| HeaderValue::from_str(&note).ok()) {
            headers.insert(HeaderName::from_static("x-endmark-compacted"), value);
        }
        if let Some(id) = self.previous_response.as_ref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(HeaderName::from_static("x-endmark-previous-response"), id);
        }
    }

    /// Returns the header value that describes the compaction of the conversation. Returns `None` if there is
    /// nothing to disclose.
    fn compaction_header(&self) -> Option<String> {
        let summary = self.summary.as_ref().map(Summary::header_value);
        let Some(why) = self.compaction_stopped else { return summary };
        Some(format!("{}; stopped={}", summary.as_deref().unwrap_or("none"), why.name()))
    }
}
