//! Requests the usage of a stream even if the client did not, because otherwise the cost of hidden reasoning is
//! unknown.

use bytes::Bytes;
use http::StatusCode;

use crate::exchange::Exchange;
use crate::recovery::UsageRequest;
use crate::settings::ResumeMode;
use crate::work;

/// Decides whether to request usage from the upstream of the exchange.
pub(super) async fn decide_usage_request(exchange: &Exchange) -> UsageRequest {
    let (request, view) = (&exchange.attempt.request, exchange.attempt.request.view());
    // In the mode `off`, the request stays unchanged unless a budget needs the cost.
    let passes_unchanged = exchange.mode() == ResumeMode::Off && !exchange.calls.have_budgets();
    if passes_unchanged || !view.stream || view.include_usage || request.format().facts().always_reports_usage
    {
        return UsageRequest::NotRequested;
    }
    UsageRequest::new(exchange.case().usage_source(exchange.upstream_name(), &view.model)).await
}

/// Returns the body with the request for usage. Returns `None` if the body stays unchanged.
pub(super) async fn body_with_usage_request(counting: UsageRequest, exchange: &Exchange) -> Option<Bytes> {
    if !counting.is_requested() {
        return None;
    }
    let _large = work::enter_pool_if_large(exchange.attempt.request.body().len()).await;
    exchange.attempt.request.with_usage_request().map(Bytes::from)
}

/// Remembers what a response with this status shows about the upstream.
pub(super) async fn remember_usage_support(counting: UsageRequest, exchange: &Exchange, status: StatusCode) {
    let model = &exchange.attempt.request.view().model;
    counting.learn(exchange.case().usage_source(exchange.upstream_name(), model), status).await;
}
