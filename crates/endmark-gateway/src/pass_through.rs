//! A path that Endmark has nothing to do with.

use std::sync::Arc;

use http::{Request, Response, header};

use crate::admission::Claim;
use crate::body::{AnyBody, unbroken};
use crate::gateway::Gateway;
use crate::request_body::Incoming;
use crate::rescue::Refusal;
use crate::route::Target;
use crate::stage::shape::change_passing;
use crate::upstream::{for_upstream, from_upstream, of_changed_body};

/// Passes a request on: there and back, byte for byte, but for the id of a response that goes on
/// under another.
pub(crate) async fn pass_through(
    gateway: &Gateway,
    target: &Target<'_>,
    request: Request<Incoming>,
) -> Result<Response<AnyBody>, Refusal> {
    let (head, body) = request.into_parts();
    let (body, changed) = change_passing(gateway, target, &head, body).await?;
    let (body, _holding) = body.unchanged();
    if let Some(claim) = head.extensions.get::<Arc<Claim>>() {
        claim.take().await?;
    }
    let mut onward = Request::new(body);
    *onward.method_mut() = head.method;
    *onward.uri_mut() = target.without_credential().locate()?;
    *onward.headers_mut() = for_upstream(&head.headers, target.upstream, None);
    if changed.is_any() {
        onward.headers_mut().remove(header::CONTENT_ENCODING);
        of_changed_body(onward.headers_mut());
    }
    let mut answer = send(gateway, target, onward).await?;
    changed.write_headers(answer.headers_mut());
    Ok(answer.map(|body| unbroken(body, gateway.settings.limits.idle)))
}

/// Sends a request to its upstream; the answer has the headers a client gets.
async fn send(
    gateway: &Gateway,
    target: &Target<'_>,
    request: Request<AnyBody>,
) -> Result<Response<AnyBody>, Refusal> {
    let first_byte = gateway.settings.limits.first_byte;
    let mut answer = gateway
        .client
        .send(target.upstream, request, first_byte)
        .await
        .map_err(|error| Refusal::without_answer(target.upstream, error))?;
    let headers = std::mem::take(answer.headers_mut());
    *answer.headers_mut() = from_upstream(headers);
    Ok(answer)
}
