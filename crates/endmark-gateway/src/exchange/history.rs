//! What of a request's history is changed before it goes upstream: calls that no server can read, and a response that went
//! on under another id.

use bytes::Bytes;
use endmark_wire::format::FORMATS;
use endmark_wire::request::{Address, Request};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::admit::mode_of;
use super::identity;
use crate::gateway::Gateway;
use crate::request_body::{Incoming, RequestBody};
use crate::rescue::Refusal;
use crate::route::Target;
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
    if !mode.mends() {
        return changed;
    }
    if let Some((repaired, calls)) = request.repaired() {
        (*request, changed.repaired_calls) = (repaired, calls);
    }
    changed.goes_on_from = go_on(gateway, upstream, credential, request);
    changed
}

/// Changes a request that is for no reply where it goes on from a response: counting what that has, or making it shorter, is
/// of no use with the beginning of it alone.
pub(crate) async fn change_passing(
    gateway: &Gateway,
    target: &Target<'_>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<(Incoming, Changed), Refusal> {
    let mut changed = Changed::default();
    let path = target.path_and_query.split('?').next().unwrap_or_default();
    let format = FORMATS.into_iter().find(|format| format.goes_on_in(path));
    let Some(format) = format.filter(|_| !gateway.successors.is_empty()) else { return Ok((body, changed)) };
    if !mode_of(gateway, headers)?.mends() {
        return Ok((body, changed));
    }
    let limits = &gateway.settings.limits;
    let (mut body, holding) = body.read_as_far_as_possible(headers, limits, &gateway.held).await?;
    if let Ok(mut request) = Request::parse(format, &body.plain, &Address::default()) {
        let credential = identity::credential(headers);
        changed.goes_on_from = go_on(gateway, &target.upstream.name, credential.as_deref(), &mut request);
        if changed.is_any() {
            body = RequestBody { plain: Bytes::copy_from_slice(request.body()), encoded: None };
        }
    }
    Ok((Incoming::Read(body, holding), changed))
}

/// Lets a request go on from the whole of a response that it knows by the id of its beginning; the id that it has then.
fn go_on(
    gateway: &Gateway,
    upstream: &str,
    credential: Option<&str>,
    request: &mut Request,
) -> Option<String> {
    let last = gateway.successors.of(upstream, credential, &request.goes_on_from()?)?;
    *request = request.going_on_from(&last);
    Some(last)
}

impl Changed {
    /// Whether the request goes on in other bytes than it came in.
    pub(crate) fn is_any(&self) -> bool {
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
    pub(crate) fn write_headers(&self, headers: &mut HeaderMap) {
        if self.repaired_calls > 0 {
            headers.insert(HeaderName::from_static("x-endmark-repaired-calls"), self.repaired_calls.into());
        }
        if let Some(id) = self.goes_on_from.as_ref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(HeaderName::from_static("x-endmark-previous-response"), id);
        }
    }
}
