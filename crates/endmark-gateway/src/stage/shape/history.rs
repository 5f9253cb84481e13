//! Changes of a request's history before it is sent upstream: calls that no server can read, references to items that
//! the server stored cut, and a response that continued under another id.

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

/// Lets a request continue from the whole of a response that it knows by the id of its beginning. Returns the id that
/// the response has.
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
