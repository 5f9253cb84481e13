//! Changes the history of a request that is not for a reply.

use bytes::Bytes;
use endmark_wire::format::FORMATS;
use endmark_wire::request::{Address, Request};
use http::request::Parts;

use super::history::continue_from_successor;
use crate::admission::Work;
use crate::exchange::Changed;
use crate::gateway::Gateway;
use crate::mended_items;
use crate::request_body::{Incoming, RequestBody};
use crate::rescue::Refusal;
use crate::route::Target;
use crate::stage::admit::requested_mode;
use crate::upstream::Credential;

/// Changes such a request if it continues a response or refers to items. Otherwise, the provider would count or
/// condense only their beginnings.
pub(crate) async fn change_passing(
    gateway: &Gateway,
    target: &Target<'_>,
    head: &Parts,
    body: Incoming,
) -> Result<(Incoming, Changed), Refusal> {
    let headers = &head.headers;
    let mut changed = Changed::default();
    let path = target.path_and_query.split('?').next().unwrap_or_default();
    let format = FORMATS.into_iter().find(|format| format.may_continue_at(path));
    let Some(format) = format else { return Ok((body, changed)) };
    if !requested_mode(gateway, headers)?.mends() {
        return Ok((body, changed));
    }
    let limits = &gateway.settings.limits;
    let (mut body, holding) = body.read_if_possible(headers, limits, &gateway.held_bytes).await?;
    let work = Work::begin(&body.plain, &gateway.held_bytes, limits.held_bytes).await;
    let _work = work.ok_or(Refusal::NoRoom(limits.held_bytes))?;
    if let Ok(mut request) = Request::parse(format, &body.plain, &Address::default()) {
        let credential = head.extensions.get::<Credential>().map(Credential::id);
        changed.restored_items =
            mended_items::insert_recovered_items(gateway, credential, &mut request).await;
        changed.previous_response =
            continue_from_successor(gateway, &target.upstream.name, credential, &mut request);
        if changed.is_any() {
            body = RequestBody { plain: Bytes::copy_from_slice(request.body()), encoded: None };
        }
    }
    Ok((Incoming::Read(body, holding), changed))
}
