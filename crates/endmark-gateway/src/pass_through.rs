//! Forwards requests that are not for a reply. They stay unchanged, except for changes that a budget or a
//! list of models requires.

mod counted_request;

use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response, header};

use crate::admission::PermitClaim;
use crate::body::{AnyBody, with_idle_timeout};
use crate::bounds::{Bounds, PassThroughRule};
use crate::gateway::Gateway;
use crate::keys::OwnKey;
use crate::refusals::Refusal;
use crate::request_body::IncomingBody;
use crate::route::Target;
use crate::stage::shape::change_pass_through_history;
use crate::upstream::{for_upstream, remove_body_headers};
use crate::work;
use counted_request::CountedRequest;

/// Forwards a request and its response unchanged. Only the id of a continued response may be replaced.
pub(crate) async fn pass_through(
    gateway: &Gateway,
    target: &Target<'_>,
    passage: PassThroughRule,
    request: Request<IncomingBody>,
) -> Result<Response<AnyBody>, Refusal> {
    let (head, body) = request.into_parts();
    let (body, changed) = change_pass_through_history(gateway, target, &head, body).await?;
    let (body, counted) = check_body(gateway, passage, &head, body).await?;
    if let Some(claim) = head.extensions.get::<Arc<PermitClaim>>() {
        claim.acquire().await?;
    }
    let uri = target.without_credential().to_uri()?;
    let mut headers = for_upstream(&head.headers, target.upstream, None);
    if changed.has_changes() {
        headers.remove(header::CONTENT_ENCODING);
        remove_body_headers(&mut headers);
    }
    let mut upstream_request = Request::new(());
    *upstream_request.method_mut() = head.method.clone();
    (*upstream_request.uri_mut(), *upstream_request.headers_mut()) = (uri, headers);
    let (body, holding) = body.into_original();
    let mut answer = match counted {
        Some(counted) => counted.send(gateway, target, &head, &upstream_request).await?,
        None => send(gateway, target, upstream_request.map(|()| body)).await?,
    };
    drop(holding);
    changed.write_headers(answer.headers_mut());
    Ok(answer.map(|body| with_idle_timeout(body, gateway.settings.limits.idle)))
}

/// Reads and checks the body if it determines whether the request may pass.
async fn check_body(
    gateway: &Gateway,
    passage: PassThroughRule,
    head: &Parts,
    body: IncomingBody,
) -> Result<(IncomingBody, Option<CountedRequest>), Refusal> {
    let (known, service) = match passage {
        PassThroughRule::Unchecked => return Ok((body, None)),
        PassThroughRule::CheckModels(known) => (known, None),
        PassThroughRule::CheckAndCount(known, service) => (known, Some(service)),
    };
    let (body, holding) = body.read(&head.headers, &gateway.settings.limits, &gateway.held_bytes).await?;
    let _large = work::enter_pool_if_large(body.plain.len()).await;
    let key = head.extensions.get::<Arc<OwnKey>>().map(AsRef::as_ref);
    let model = Bounds::new(gateway, key).check_pass_through_body(&known, &body.plain, &head.headers)?;
    let counted = service.map(|service| CountedRequest::new(service, model, &body));
    Ok((IncomingBody::Read(body, holding), counted))
}

/// Sends a request to the upstream.
async fn send(
    gateway: &Gateway,
    target: &Target<'_>,
    request: Request<AnyBody>,
) -> Result<Response<AnyBody>, Refusal> {
    let first_byte = gateway.settings.limits.first_byte;
    let answer = gateway.client.send(target.upstream, request, first_byte).await;
    answer.map_err(|error| Refusal::upstream_unavailable(target.upstream, error))
}
