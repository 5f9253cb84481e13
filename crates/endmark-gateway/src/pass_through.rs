//! Forwards a path unchanged, except for changes that a budget or a list of models requires.

mod counted;

use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response, header};

use crate::admission::Claim;
use crate::body::{AnyBody, with_idle_timeout};
use crate::bounds::{Bounds, Passage};
use crate::gateway::Gateway;
use crate::keys::OwnKey;
use crate::request_body::Incoming;
use crate::rescue::Refusal;
use crate::route::Target;
use crate::stage::shape::change_passing;
use crate::upstream::{for_upstream, remove_body_headers};
use crate::work;
use counted::CountedRequest;

/// Forwards a request and its response unchanged. Only the id of a continued response may be replaced.
pub(crate) async fn pass_through(
    gateway: &Gateway,
    target: &Target<'_>,
    passage: Passage,
    request: Request<Incoming>,
) -> Result<Response<AnyBody>, Refusal> {
    let (head, body) = request.into_parts();
    let (body, changed) = change_passing(gateway, target, &head, body).await?;
    let (body, counted) = check_body(gateway, passage, &head, body).await?;
    if let Some(claim) = head.extensions.get::<Arc<Claim>>() {
        claim.take().await?;
    }
    let uri = target.without_credential().locate()?;
    let mut headers = for_upstream(&head.headers, target.upstream, None);
    if changed.is_any() {
        headers.remove(header::CONTENT_ENCODING);
        remove_body_headers(&mut headers);
    }
    let mut onward = Request::new(());
    *onward.method_mut() = head.method.clone();
    (*onward.uri_mut(), *onward.headers_mut()) = (uri, headers);
    let (body, holding) = body.into_original();
    let mut answer = match counted {
        Some(counted) => counted.send(gateway, target, &head, &onward).await?,
        None => send(gateway, target, onward.map(|()| body)).await?,
    };
    drop(holding);
    changed.write_headers(answer.headers_mut());
    Ok(answer.map(|body| with_idle_timeout(body, gateway.settings.limits.idle)))
}

/// Reads and checks the body if it determines whether the request may pass.
async fn check_body(
    gateway: &Gateway,
    passage: Passage,
    head: &Parts,
    body: Incoming,
) -> Result<(Incoming, Option<CountedRequest>), Refusal> {
    let (known, service) = match passage {
        Passage::Open => return Ok((body, None)),
        Passage::Checked(known) => (known, None),
        Passage::Counted(known, service) => (known, Some(service)),
    };
    let (body, holding) = body.read(&head.headers, &gateway.settings.limits, &gateway.held_bytes).await?;
    let _large = work::large(body.plain.len()).await;
    let key = head.extensions.get::<Arc<OwnKey>>().map(AsRef::as_ref);
    let model = Bounds::new(gateway, key).check_passing(&known, &body.plain, &head.headers)?;
    let counted = service.map(|service| CountedRequest::new(service, model, &body));
    Ok((Incoming::Read(body, holding), counted))
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
