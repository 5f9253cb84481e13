//! What of a request's history is changed before it goes upstream: calls that no server can read, and a response that went
//! on under another id.

use endmark_wire::request::Request;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::gateway::Gateway;
use crate::settings::Mode;

/// What was changed.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// Calls in the conversation whose arguments were no JSON.
    repaired_calls: usize,
    /// The response that the request goes on from, where it is another than its client said.
    goes_on_from: Option<String>,
}

/// Changes what has to be changed, where the mode allows that.
pub(super) fn change(
    gateway: &Gateway,
    upstream: &str,
    credential: Option<&str>,
    mode: Mode,
    request: &mut Request,
) -> Changed {
    let mut changed = Changed::default();
    match mode {
        Mode::Auto | Mode::On => {}
        Mode::Warn | Mode::Off => return changed,
    }
    if let Some((repaired, calls)) = request.repaired() {
        (*request, changed.repaired_calls) = (repaired, calls);
    }
    let last = request.goes_on_from().and_then(|id| gateway.successors.of(upstream, credential, &id));
    if let Some(last) = last {
        *request = request.going_on_from(&last);
        changed.goes_on_from = Some(last);
    }
    changed
}

impl Changed {
    /// Whether the request goes on in other bytes than it came in.
    pub(super) fn is_any(&self) -> bool {
        self.repaired_calls > 0 || self.goes_on_from.is_some()
    }

    /// Counts it, and says it in the log.
    pub(super) fn note(&self, gateway: &Gateway, upstream: &str, request: &str) {
        if self.repaired_calls > 0 {
            gateway.metrics.repaired(upstream, self.repaired_calls as u64);
            let calls = self.repaired_calls;
            tracing::info!(request, calls, "calls in the conversation had arguments that are no JSON");
        }
        if let Some(id) = &self.goes_on_from {
            tracing::info!(request, id, "the response before was finished under another id");
        }
    }

    /// Tells the client.
    pub(super) fn write_headers(&self, headers: &mut HeaderMap) {
        if self.repaired_calls > 0 {
            headers.insert(HeaderName::from_static("x-endmark-repaired-calls"), self.repaired_calls.into());
        }
        if let Some(id) = self.goes_on_from.as_ref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(HeaderName::from_static("x-endmark-previous-response"), id);
        }
    }
}
