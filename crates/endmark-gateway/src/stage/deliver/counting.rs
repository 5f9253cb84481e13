//! Requests the usage of a stream although its client did not: without it the cost of hidden reasoning is unknown.

use bytes::Bytes;
use http::StatusCode;

use crate::exchange::Exchange;
use crate::recovery::Counting;
use crate::settings::Mode;
use crate::work;

/// Whether the exchange's upstream is asked.
pub(super) async fn counting(exchange: &Exchange) -> Counting {
    let (request, view) = (&exchange.attempt.request, exchange.attempt.request.view());
    // In mode `off` a reply is passed on unchanged, unless a budget needs its cost.
    let is_passage = exchange.mode() == Mode::Off && !exchange.calls.have_budgets();
    if is_passage || !view.stream || view.include_usage || request.format().facts().reports_usage_unasked {
        return Counting::Unasked;
    }
    Counting::of(exchange.case().usage_source(exchange.upstream_name(), &view.model)).await
}

/// Returns the body that requests usage, or `None` if the request stays unchanged.
pub(super) async fn asking_body(counting: Counting, exchange: &Exchange) -> Option<Bytes> {
    if !counting.is_asked() {
        return None;
    }
    let _large = work::large(exchange.attempt.request.body().len()).await;
    exchange.attempt.request.asking_for_usage().map(Bytes::from)
}

/// Remembers what a response with this status shows about the upstream.
pub(super) async fn learn(counting: Counting, exchange: &Exchange, status: StatusCode) {
    let model = &exchange.attempt.request.view().model;
    counting.learn(exchange.case().usage_source(exchange.upstream_name(), model), status).await;
}
