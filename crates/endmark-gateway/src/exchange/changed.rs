//! What of a client's request is changed before it goes upstream, and how that is disclosed.

use endmark_context::compact::NotMade;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::metrics::Metrics;
use crate::shaping::Summary;

/// What was changed.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// Calls in the conversation whose arguments were no JSON.
    pub(crate) repaired_calls: usize,
    /// References to stored items that Endmark had mended: the whole items are sent instead.
    pub(crate) restored_items: usize,
    /// Results of tools that are capped.
    pub(crate) capped: usize,
    /// Whether the model is offered the tool that reads what was left out of them.
    pub(crate) offers_reading: bool,
    /// What its older part was condensed to, if it was.
    pub(crate) summary: Option<Summary>,
    /// Why no more of it is tried to be condensed, although it is too long.
    pub(crate) compaction_stopped: Option<NotMade>,
    /// The response that the request goes on from, where it is another than its client said.
    pub(crate) goes_on_from: Option<String>,
}

impl Changed {
    /// Whether the request goes on in other bytes than it came in.
    pub(crate) fn is_any(&self) -> bool {
        self.repaired_calls > 0
            || self.restored_items > 0
            || self.goes_on_from.is_some()
            || self.capped > 0
            || self.summary.is_some()
    }

    /// Counts it, and says it in the log.
    pub(crate) fn note(&self, metrics: &Metrics, upstream: &str, request: &str) {
        if self.repaired_calls > 0 {
            metrics.repaired(upstream, self.repaired_calls as u64);
            let calls = self.repaired_calls;
            tracing::info!(request, calls, "calls in the conversation had arguments that are no JSON");
        }
        if self.restored_items > 0 {
            let items = self.restored_items;
            tracing::info!(request, items, "references to mended items were replaced by the whole items");
        }
        if self.capped > 0 {
            metrics.capped(upstream, self.capped as u64);
        }
        if let Some(summary) = &self.summary {
            metrics.compacted(upstream, summary.mode);
        }
        if let Some(id) = &self.goes_on_from {
            tracing::info!(request, id, "the response before was finished under another id");
        }
    }

    /// Tells the client.
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
        if let Some(value) = self.compaction().and_then(|said| HeaderValue::from_str(&said).ok()) {
            headers.insert(HeaderName::from_static("x-endmark-compacted"), value);
        }
        if let Some(id) = self.goes_on_from.as_ref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(HeaderName::from_static("x-endmark-previous-response"), id);
        }
    }

    /// What became of its older part, as the header has it; none where there is nothing to say of it.
    fn compaction(&self) -> Option<String> {
        let summary = self.summary.as_ref().map(Summary::disclosed);
        let Some(why) = self.compaction_stopped else { return summary };
        Some(format!("{}; stopped={}", summary.as_deref().unwrap_or("none"), why.name()))
    }
}
