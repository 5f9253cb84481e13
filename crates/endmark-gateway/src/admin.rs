//! The gateway's own pages, below `/endmark/`: they stand beside the way of a request, and ask no upstream.

mod health;
mod outputs;
mod pages;

use std::sync::Arc;

use http::Response;
use http::request::Parts;

use crate::body::AnyBody;
use crate::gateway::Gateway;
use crate::rescue::Refusal;

/// Answers a request for one of them, or has one of the other pages shown.
///
/// # Errors
/// [`Refusal::NotFound`] where there is no such page.
pub(crate) async fn respond(
    gateway: &Arc<Gateway>,
    head: Parts,
    body: AnyBody,
) -> Result<Response<AnyBody>, Refusal> {
    let path = head.uri.path();
    match path {
        "/endmark/healthz" => return Ok(health::alive()),
        "/endmark/readyz" => return Ok(health::ready(gateway).await),
        "/endmark/metrics" => return Ok(health::metrics(gateway)),
        _ => {}
    }
    if let Some(handle) = path.strip_prefix("/endmark/api/outputs/") {
        return outputs::page(gateway, &head, handle).await;
    }
    if let Some(shown) = &gateway.settings.pages {
        return pages::shown(gateway, shown.as_ref(), head, body).await;
    }
    Err(Refusal::NotFound(format!(
        "{path} is not a page of Endmark: there are /endmark/healthz, /endmark/readyz, /endmark/metrics and \
         /endmark/api/outputs/HANDLE"
    )))
}
