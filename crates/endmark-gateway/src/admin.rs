//! The gateway's own pages, below `/endmark/`: they stand beside the way of a request, and ask no upstream.

mod health;
mod outputs;

use http::Response;
use http::request::Parts;

use crate::body::AnyBody;
use crate::gateway::Gateway;
use crate::rescue::Refusal;

/// Answers a request for one of them.
///
/// # Errors
/// [`Refusal::NotFound`] where there is no such page.
pub(crate) async fn respond(gateway: &Gateway, request: &Parts) -> Result<Response<AnyBody>, Refusal> {
    match request.uri.path() {
        "/endmark/healthz" => Ok(health::alive()),
        "/endmark/readyz" => Ok(health::ready(gateway).await),
        "/endmark/metrics" => Ok(health::metrics(gateway)),
        path => match path.strip_prefix("/endmark/api/outputs/") {
            Some(handle) => outputs::page(gateway, request, handle).await,
            None => Err(Refusal::NotFound(format!(
                "{path} is not a page of Endmark: there are /endmark/healthz, /endmark/readyz, /endmark/metrics and \
                 /endmark/api/outputs/HANDLE"
            ))),
        },
    }
}
