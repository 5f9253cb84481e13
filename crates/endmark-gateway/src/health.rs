//! `/endmark/healthz` and `/endmark/readyz`.

use http::{Response, StatusCode, header};

use crate::body::{AnyBody, full};
use crate::gateway::Gateway;

/// The process answers.
pub(crate) fn alive() -> Response<AnyBody> {
    answer(StatusCode::OK, "{\"status\":\"ok\"}\n")
}

/// It can also do its work: it is not stopping, and its store takes writes.
pub(crate) async fn ready(gateway: &Gateway) -> Response<AnyBody> {
    if gateway.is_stopping() {
        return answer(StatusCode::SERVICE_UNAVAILABLE, "{\"status\":\"stopping\"}\n");
    }
    match gateway.store.health().await {
        Ok(_) => answer(StatusCode::OK, "{\"status\":\"ready\"}\n"),
        Err(error) => {
            tracing::error!(%error, "the store does not answer");
            answer(StatusCode::SERVICE_UNAVAILABLE, "{\"status\":\"store unavailable\"}\n")
        }
    }
}

fn answer(status: StatusCode, body: &'static str) -> Response<AnyBody> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
