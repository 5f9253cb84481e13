//! Admits a request: determines its kind, the upstreams that may answer it, and the permitted changes.

mod destinations;
mod required_output;

use std::sync::Arc;

use endmark_text::Format;
use endmark_wire::format::AddressedFormat;
use endmark_wire::request as wire;
use http::request::Parts;
use http::{HeaderMap, Request};

use crate::admission::{BodyWorkPermit, BytesReservation, PermitClaim};
use crate::bounds::Bounds;
use crate::gateway::Gateway;
use crate::keys::OwnKey;
use crate::recovery::Schema;
use crate::refusals::Refusal;
use crate::request_body::{CompressedBody, IncomingBody};
use crate::route::Target;
use crate::settings::ResumeMode;
use crate::upstream::Destination;

/// A request whose body was read completely, and whose reply will be examined.
pub(crate) struct AdmittedRequest {
    pub(super) gateway: Arc<Gateway>,
    /// The head of the client's request.
    pub(super) client: Parts,
    pub(super) request: wire::Request,
    /// The compressed request, if it was compressed.
    pub(super) encoded: Option<CompressedBody>,
    /// The recovery mode that the client requests from this gateway. It is off if another Endmark recovers the reply.
    pub(super) requested_mode: ResumeMode,
    /// The recovery mode that is possible for this request.
    pub(super) mode: ResumeMode,
    /// The grammar that the message text must have, if any.
    pub(super) required_format: Option<Format>,
    pub(super) schema: Option<Schema>,
    /// The upstream that the request is for.
    pub(super) destination: Destination,
    pub(super) fallback: Option<Destination>,
    pub(super) claim: Option<Arc<PermitClaim>>,
    /// The memory reserved for the body.
    pub(super) body_memory: BytesReservation,
    pub(super) work: BodyWorkPermit,
}

/// Reads a request to the end of its body, and decides how the reply is handled.
pub(crate) async fn admit(
    gateway: &Arc<Gateway>,
    target: &Target<'_>,
    found: AddressedFormat,
    request: Request<IncomingBody>,
) -> Result<AdmittedRequest, Refusal> {
    let (mut client, body) = request.into_parts();
    let limits = &gateway.settings.limits;
    let (body, holding) = body.read(&client.headers, limits, &gateway.held_bytes).await?;
    let claim = client.extensions.remove::<Arc<PermitClaim>>();
    if let Some(claim) = &claim {
        claim.acquire().await?;
    }
    let work = BodyWorkPermit::begin(&body.plain, &gateway.held_bytes, limits.held_bytes).await;
    let work = work.ok_or(Refusal::NoRoom(limits.held_bytes))?;
    let parsed = wire::Request::parse(found.format, &body.plain, &found.address);
    let request = parsed.map_err(|error| {
        let kind = found.format.name();
        Refusal::BadRequest(format!("the request is not one of the format {kind}: {error}; {}", error.hint))
    })?;
    Bounds::new(gateway, client.extensions.get::<Arc<OwnKey>>().map(AsRef::as_ref))
        .check(&request, &client.headers)?;
    let requested = requested_mode(gateway, &client.headers)?;
    let wanted = if target.upstream.endmark { ResumeMode::Off } else { requested };
    // Either the reply does not arrive in this response, or the kind of request is unknown. In both cases there is
    // nothing to examine.
    let mode = if request.view().is_pass_through { ResumeMode::Off } else { wanted };
    let (demanded, schema) = required_output::required_output(gateway, &request, &client.headers)?;
    let destination = destinations::own_destination(target, &request, &client, mode)?;
    let fallback = destinations::fallback(gateway, target, &request, &client, mode);
    Ok(AdmittedRequest {
        gateway: Arc::clone(gateway),
        client,
        request,
        encoded: body.encoded,
        requested_mode: wanted,
        mode,
        required_format: demanded,
        schema,
        destination,
        fallback,
        claim,
        body_memory: holding,
        work,
    })
}

/// Returns the mode that the client requests, or the configured mode.
pub(super) fn requested_mode(gateway: &Gateway, headers: &HeaderMap) -> Result<ResumeMode, Refusal> {
    match own_header(headers, "x-endmark-resume")? {
        Some(mode) => mode.parse().map_err(|error| Refusal::BadRequest(format!("x-endmark-resume: {error}"))),
        None => Ok(gateway.settings.resume.mode),
    }
}

/// Returns the value of one of Endmark's own headers.
pub(super) fn own_header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Refusal> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(text) if !text.trim().is_empty() => Ok(Some(text.trim())),
        _ => Err(Refusal::BadRequest(format!("the header {name} has no readable value"))),
    }
}
