//! Asking for the tokens of a stream that its client did not ask for: without them the cost of hidden reasoning is unknown.

use bytes::Bytes;
use http::StatusCode;

use crate::exchange::Exchange;
use crate::recovery::Counting;
use crate::settings::Mode;
use crate::work;

/// Whether the upstream that the exchange goes to is asked.
pub(super) async fn counting(exchange: &Exchange) -> Counting {
    let (request, view) = (&exchange.request, exchange.request.view());
    // With `off` a reply passes untouched, unless a budget has to know what it costs.
    let is_passage = exchange.mode() == Mode::Off && !exchange.calls.have_budgets();
    if is_passage || !view.stream || view.include_usage || request.format().facts().reports_usage_unasked {
        return Counting::Unasked;
    }
    Counting::of(exchange.case().usage_source(exchange.upstream_name(), &view.model)).await
}

/// The body that asks; `None` where the request goes as it is.
pub(super) async fn asking_body(counting: Counting, exchange: &Exchange) -> Option<Bytes> {
    if !counting.is_asked() {
        return None;
    }
    let _large = work::large(exchange.request.body().len()).await;
    exchange.request.asking_for_usage().map(Bytes::from)
}

/// Remembers what an answer with this status shows of the upstream.
pub(super) async fn learn(counting: Counting, exchange: &Exchange, status: StatusCode) {
    let model = &exchange.request.view().model;
    counting.learn(exchange.case().usage_source(exchange.upstream_name(), model), status).await;
}
