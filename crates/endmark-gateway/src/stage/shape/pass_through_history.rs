//! Changes the history of a request that is not for a reply.

use bytes::Bytes;
use endmark_wire::format::FORMATS;
use endmark_wire::request::{Address, Request};
use http::request::Parts;

use super::history::continue_from_successor;
use crate::admission::BodyWorkPermit;
use crate::exchange::RequestChanges;
use crate::gateway::Gateway;
use crate::recovered_items;
use crate::refusals::Refusal;
use crate::request_body::{IncomingBody, RequestBody};
use crate::route::Target;
use crate::stage::admit::requested_mode;
use crate::upstream::Credential;

/// Changes a request that is not for a reply, if the request continues a response or refers to items. Without
/// the change, the provider would count or condense only their cut versions.
pub(crate) async fn change_pass_through_history(
    gateway: &Gateway,
    target: &Target<'_>,
    head: &Parts,
    body: IncomingBody,
) -> Result<(IncomingBody, RequestChanges), Refusal> {
    let headers = &head.headers;
    let mut changed = RequestChanges::default();
    let path = target.path_and_query.split('?').next().unwrap_or_default();
    let format = FORMATS.into_iter().find(|format| format.may_continue_at(path));
    let Some(format) = format else { return Ok((body, changed)) };
    if !requested_mode(gateway, headers)?.corrects_faults() {
        return Ok((body, changed));
    }
    let limits = &gateway.settings.limits;
    let (mut body, holding) = body.read_if_possible(headers, limits, &gateway.held_bytes).await?;
    let work = BodyWorkPermit::begin(&body.plain, &gateway.held_bytes, limits.held_bytes).await;
    let _work = work.ok_or(Refusal::NoRoom(limits.held_bytes))?;
    if let Ok(mut request) = Request::parse(format, &body.plain, &Address::default()) {
        let credential = head.extensions.get::<Credential>().map(Credential::id);
        changed.restored_items =
            recovered_items::insert_recovered_items(gateway, credential, &mut request).await;
        changed.previous_response =
            continue_from_successor(gateway, &target.upstream.name, credential, &mut request);
        if changed.has_changes() {
            body = RequestBody { plain: Bytes::copy_from_slice(request.body()), encoded: None };
        }
    }
    Ok((IncomingBody::Read(body, holding), changed))
}
