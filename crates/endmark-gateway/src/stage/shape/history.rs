//! Changes the history in a request. It repairs calls that servers cannot parse, restores items that the server
//! stored in their cut form, and replaces the id of a response that was continued under another id.

use endmark_wire::request::Request;

use crate::exchange::RequestChanges;
use crate::gateway::Gateway;
use crate::recovered_items;

/// Makes these changes where they are needed, and returns them.
pub(super) async fn change_history(
    gateway: &Gateway,
    upstream: &str,
    credential: Option<&str>,
    request: &mut Request,
) -> RequestChanges {
    let restored_items = recovered_items::insert_recovered_items(gateway, credential, request).await;
    let mut changed = RequestChanges { restored_items, ..RequestChanges::default() };
    if let Some((repaired, calls)) = request.with_repaired_calls() {
        (*request, changed.repaired_calls) = (repaired, calls);
    }
    changed.previous_response = continue_from_successor(gateway, upstream, credential, request);
    changed
}

/// Makes a request continue the complete response, although the client knows only the id of its beginning. Returns
/// the id of the complete response.
pub(super) fn continue_from_successor(
    gateway: &Gateway,
    upstream: &str,
    credential: Option<&str>,
    request: &mut Request,
) -> Option<String> {
    let last = gateway.successors.find(upstream, credential, &request.previous_response()?)?;
    *request = request.with_previous_response(&last);
    Some(last)
}
