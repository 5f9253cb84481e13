//! Records the changes to a client's request, and discloses them.

use endmark_context::compact::NotCompacted;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::metrics::Metrics;
use crate::shaping::Summary;

/// The changes to one request.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// Number of tool calls in the conversation with invalid JSON arguments, which were repaired.
    pub(crate) repaired_calls: usize,
    /// Number of references to recovered items that were replaced by the complete items.
    pub(crate) restored_items: usize,
    /// Number of capped tool results.
    pub(crate) capped: usize,
    /// Whether the model is offered the tool for reading omitted parts.
    pub(crate) offers_reading: bool,
    /// The summary of the older part, if it was condensed.
    pub(crate) summary: Option<Summary>,
    /// Why the gateway could not condense more, although the request is too long.
    pub(crate) compaction_stopped: Option<NotCompacted>,
    /// The response that the request continues, if it differs from the one in the client's request.
    pub(crate) previous_response: Option<String>,
}

impl Changed {
    /// Whether the request's bytes were changed.
    pub(crate) fn is_any(&self) -> bool {
        self.repaired_calls > 0
            || self.restored_items > 0
            || self.previous_response.is_some()
            || self.capped > 0
            || self.summary.is_some()
    }

    /// Counts the changes and logs them.
    pub(crate) fn note(&self, metrics: &Metrics, upstream: &str, request: &str) {
        if self.repaired_calls > 0 {
            metrics.note_repairs(upstream, self.repaired_calls as u64);
            let calls = self.repaired_calls;
            tracing::info!(request, calls, "calls in the conversation had arguments that are no JSON");
        }
        if self.restored_items > 0 {
            let items = self.restored_items;
            tracing::info!(request, items, "references to mended items were replaced by the whole items");
        }
        if self.capped > 0 {
            metrics.note_capped_results(upstream, self.capped as u64);
        }
        if let Some(summary) = &self.summary {
            metrics.note_compaction(upstream, summary.mode);
        }
        if let Some(id) = &self.previous_response {
            tracing::info!(request, id, "the response before was finished under another id");
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
        if self.capped > 0 {
            headers.insert(HeaderName::from_static("x-endmark-capped"), self.capped.into());
        }
        if let Some(value) = self.compaction().and_then(|note| HeaderValue::from_str(&note).ok()) {
            headers.insert(HeaderName::from_static("x-endmark-compacted"), value);
        }
        if let Some(id) = self.previous_response.as_ref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(HeaderName::from_static("x-endmark-previous-response"), id);
        }
    }

    /// Returns the header value that describes the condensing. Returns `None` if there is nothing to disclose.
    fn compaction(&self) -> Option<String> {
        let summary = self.summary.as_ref().map(Summary::header_value);
        let Some(why) = self.compaction_stopped else { return summary };
        Some(format!("{}; stopped={}", summary.as_deref().unwrap_or("none"), why.name()))
    }
}
