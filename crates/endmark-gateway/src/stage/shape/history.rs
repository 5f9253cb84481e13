//! Changes the history in a request: repairs calls that no server can parse, restores items that the server
//! stored cut, and replaces the id of a response that was continued under another id.

use endmark_wire::request::Request;

use crate::exchange::Changed;
use crate::gateway::Gateway;
use crate::mended_items;

/// Makes the necessary changes.
pub(super) async fn change(
    gateway: &Gateway,
    upstream: &str,
    credential: Option<&str>,
    request: &mut Request,
) -> Changed {
    let restored_items = mended_items::put_in(gateway, credential, request).await;
    let mut changed = Changed { restored_items, ..Changed::default() };
    if let Some((repaired, calls)) = request.repaired() {
        (*request, changed.repaired_calls) = (repaired, calls);
    }
    changed.goes_on_from = go_on(gateway, upstream, credential, request);
    changed
}

/// Lets a request continue from the complete response, although the client knows only the id of its
/// beginning. Returns the id of the complete response.
pub(super) fn go_on(
    gateway: &Gateway,
    upstream: &str,
    credential: Option<&str>,
    request: &mut Request,
) -> Option<String> {
    let last = gateway.successors.of(upstream, credential, &request.goes_on_from()?)?;
    *request = request.going_on_from(&last);
    Some(last)
}
