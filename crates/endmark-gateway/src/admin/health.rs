//! `/endmark/healthz`, `/endmark/readyz` and `/endmark/metrics`.

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

use crate::body::{AnyBody, full};
use crate::gateway::Gateway;

/// How long the store may take to answer a probe. Probes are frequent and have their own timeout.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Reports that the process answers.
pub(crate) fn liveness() -> Response<AnyBody> {
    answer(StatusCode::OK, "application/json", "{\"status\":\"ok\"}\n")
}

/// Redirects to the start page.
pub(crate) fn see_page() -> Response<AnyBody> {
    let mut response = answer(StatusCode::TEMPORARY_REDIRECT, "text/plain", "See /endmark/\n");
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/endmark/"));
    response
}

/// Reports whether the gateway can work. If the store fails, the gateway reports `degraded` but stays in
/// service, because replies do not wait for records.
pub(crate) async fn ready(gateway: &Gateway) -> Response<AnyBody> {
    if gateway.is_stopping() {
        return answer(StatusCode::SERVICE_UNAVAILABLE, "application/json", "{\"status\":\"stopping\"}\n");
    }
    let store_health = tokio::time::timeout(STORE_TIMEOUT, gateway.store.health()).await;
    let condition = gateway.store.condition();
    let problem = match store_health {
        Err(_) => Some(format!("the store did not answer within {STORE_TIMEOUT:?}")),
        Ok(Err(error)) => Some(error.client_message()),
        Ok(Ok(_)) if condition.calls_not_noted => {
            Some("calls under way cannot be noted beside the store".to_owned())
        }
        Ok(Ok(_)) if condition.renewed_lately => Some(
            "its files were removed or replaced while they were open: a new store was started, without the earlier records"
                .to_owned(),
        ),
        Ok(Ok(_)) => condition.failure.map(|failure| failure.client_message()),
    };
    let body = match problem {
        None => "{\"status\":\"ready\"}\n".to_owned(),
        Some(problem) => {
            let status_body = json!({
                "status": "degraded",
                "store": problem,
                "rows_waiting": condition.rows_waiting,
                "rows_unreported": condition.rows_unreported,
                "rows_lost": condition.rows_lost,
                "renewals": condition.renewals,
            });
            format!("{status_body}\n")
        }
    };
    answer(StatusCode::OK, "application/json", body)
}

/// Returns the metrics in the format of Prometheus.
pub(crate) fn metrics(gateway: &Gateway) -> Response<AnyBody> {
    for upstream in &gateway.settings.upstreams {
        gateway.metrics.circuit(&upstream.name, gateway.upstream_health.is_down(&upstream.name));
    }
    gateway.metrics.store(&gateway.store.condition());
    match gateway.metrics.text() {
        Ok(text) => {
            answer(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", text)
        }
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            answer(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "the metrics cannot be written\n")
        }
    }
}

fn answer(status: StatusCode, kind: &'static str, body: impl Into<bytes::Bytes>) -> Response<AnyBody> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
