//! `/endmark/healthz`, `/endmark/readyz` and `/endmark/metrics`.

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

use crate::body::{AnyBody, full};
use crate::gateway::Gateway;

/// How long the store may take to answer a probe. Probes are frequent and have their own timeout.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the response of the liveness probe: the process is running.
pub(crate) fn liveness() -> Response<AnyBody> {
    build_response(StatusCode::OK, "application/json", "{\"status\":\"ok\"}\n")
}

/// Redirects to the start page.
pub(crate) fn redirect_to_start_page() -> Response<AnyBody> {
    let mut response = build_response(StatusCode::TEMPORARY_REDIRECT, "text/plain", "See /endmark/\n");
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/endmark/"));
    response
}

/// Reports whether the gateway can work. If the store fails, the gateway reports `degraded` but stays in
/// service, because replies do not wait for records.
pub(crate) async fn readiness(gateway: &Gateway) -> Response<AnyBody> {
    if gateway.is_stopping() {
        return build_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "application/json",
            "{\"status\":\"stopping\"}\n",
        );
    }
    let store_health = tokio::time::timeout(STORE_TIMEOUT, gateway.store.health()).await;
    let condition = gateway.store.condition();
    let problem = match store_health {
        Err(_) => Some(format!("the store did not answer within {STORE_TIMEOUT:?}")),
        Ok(Err(error)) => Some(error.client_message()),
        Ok(Ok(_)) if condition.slate_rejects_calls => {
            Some("calls under way cannot be noted beside the store".to_owned())
        }
        Ok(Ok(_)) if condition.was_renewed_lately => Some(
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
    build_response(StatusCode::OK, "application/json", body)
}

/// Returns the metrics in the format of Prometheus.
pub(crate) fn metrics_response(gateway: &Gateway) -> Response<AnyBody> {
    for upstream in &gateway.settings.upstreams {
        gateway.metrics.set_circuit(&upstream.name, gateway.upstream_health.is_down(&upstream.name));
    }
    gateway.metrics.set_store_condition(&gateway.store.condition());
    match gateway.metrics.text() {
        Ok(text) => {
            build_response(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", text)
        }
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            build_response(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "the metrics cannot be written\n")
        }
    }
}

fn build_response(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<bytes::Bytes>,
) -> Response<AnyBody> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
