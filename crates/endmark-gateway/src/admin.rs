//! Serves the gateway's own pages below `/endmark/`. They skip the stages of a request and call no upstream.

mod health;
mod outputs;
mod pages;

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, header};

use crate::body::AnyBody;
use crate::gateway::Gateway;
use crate::refusals::Refusal;
use crate::settings::{MetricsAccess, Settings};

/// Answers a request for one of the gateway's own pages, or forwards it to the console.
///
/// # Errors
/// [`Refusal::NotFound`] if the page does not exist.
pub(crate) async fn respond(
    gateway: &Arc<Gateway>,
    head: Parts,
    body: AnyBody,
) -> Result<Response<AnyBody>, Refusal> {
    let path = head.uri.path();
    match path {
        "/endmark/healthz" => return Ok(health::liveness()),
        // This gateway serves one agent with its own key. The pages would disclose other clients' activity to
        // it.
        _ if gateway.keys.has_sole_key() => {
            return Err(Refusal::NotFound(
                "the gateway of a run serves no pages but /endmark/healthz".to_owned(),
            ));
        }
        "/" => return Ok(health::redirect_to_start_page()),
        "/health" => {
            return Err(Refusal::NotFound(
                "the gateway's own health is at /endmark/readyz, and that of an upstream at /u/NAME/health"
                    .to_owned(),
            ));
        }
        "/metrics" => {
            return Err(Refusal::NotFound(
                "the gateway's own metrics are at /endmark/metrics, and those of an upstream at /u/NAME/metrics".to_owned(),
            ));
        }
        "/endmark/readyz" => return Ok(health::readiness(gateway).await),
        "/endmark/metrics" => return metrics(gateway, &head),
        _ => {}
    }
    if let Some(handle) = path.strip_prefix("/endmark/api/outputs/") {
        return outputs::respond(gateway, &head, handle).await;
    }
    if let Some(console) = &gateway.settings.console {
        return pages::respond(gateway, console, head, body).await;
    }
    Err(Refusal::NotFound(format!(
        "{path} is not a page of Endmark: there are /endmark/healthz, /endmark/readyz, /endmark/metrics and \
         /endmark/api/outputs/HANDLE"
    )))
}

/// Returns the metrics if the client may read them.
fn metrics(gateway: &Gateway, head: &Parts) -> Result<Response<AnyBody>, Refusal> {
    let Settings { metrics, listener, console, .. } = &gateway.settings;
    let has_admin_key = console.as_ref().and_then(|console| console.has_admin_key(&head.headers));
    let is_open = match metrics.access {
        Some(MetricsAccess::Open) => true,
        Some(MetricsAccess::Admin) => false,
        // If clients need a key, a client without one must not see their activity in the metrics.
        None => !(listener.require_key && has_admin_key.is_none()),
    };
    match has_admin_key {
        _ if is_open => Ok(health::metrics_response(gateway)),
        Some(true) => Ok(health::metrics_response(gateway)),
        Some(false) => Err(Refusal::AdminKeyRequired),
        None => Err(Refusal::NoAdminKey),
    }
}

/// Forbids caches from storing the gateway's own response, unless the response sets its own cache policy.
pub(crate) fn forbid_storing(headers: &mut HeaderMap) {
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
}
