//! Asking for the tokens of a stream that its client did not ask for: without them the cost of hidden reasoning is unknown.

use bytes::Bytes;
use endmark_wire::error::ProviderError;
use http::StatusCode;

use crate::exchange::Exchange;
use crate::recovery::{StreamUsage, may_be_about_usage, names_usage_field};
use crate::settings::Mode;
use crate::work;

/// Whether the upstream is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Counting {
    /// It gets the request as it is.
    Unasked,
    /// It is asked, and this is known of it.
    Asked(StreamUsage),
    /// It may have refused that, and gets the request as it is.
    Withdrawn {
        /// Its error named the field.
        is_named: bool,
    },
}

impl Counting {
    /// For the upstream that the exchange goes to.
    pub(super) async fn of(exchange: &Exchange) -> Self {
        let (request, view) = (&exchange.request, exchange.request.view());
        // With `off` a reply passes untouched, unless a budget has to know what it costs.
        let is_passage = exchange.mode() == Mode::Off && !exchange.calls.have_budgets();
        if is_passage || !view.stream || view.include_usage || request.format().reports_usage_unasked() {
            return Self::Unasked;
        }
        let usages = &exchange.gateway.stream_usages;
        match usages.of(&exchange.case(), exchange.upstream_name(), &view.model).await {
            StreamUsage::Refused => Self::Unasked,
            known => Self::Asked(known),
        }
    }

    /// The body that asks; none where the request goes as it is.
    pub(super) async fn body(self, exchange: &Exchange) -> Option<Bytes> {
        match self {
            Self::Asked(_) => {
                let _large = work::large(exchange.request.body().len()).await;
                exchange.request.asking_for_usage().map(Bytes::from)
            }
            Self::Unasked | Self::Withdrawn { .. } => None,
        }
    }

    /// Takes a refusal: the request is sent again without the field where that may be its reason.
    pub(super) fn refused(&mut self, status: StatusCode, error: Option<&ProviderError>) {
        if let Self::Asked(known) = *self
            && may_be_about_usage(known, status, error)
        {
            *self = Self::Withdrawn { is_named: names_usage_field(error) };
        }
    }

    pub(super) fn is_withdrawn(self) -> bool {
        matches!(self, Self::Withdrawn { .. })
    }

    /// Remembers what an answer with this status shows of the upstream.
    pub(super) async fn learn(self, exchange: &Exchange, status: StatusCode) {
        if !status.is_success() {
            return;
        }
        let (upstream, model) = (exchange.upstream_name(), &exchange.request.view().model);
        let usages = &exchange.gateway.stream_usages;
        match self {
            Self::Asked(StreamUsage::Unknown) => usages.accepted(upstream, model),
            Self::Withdrawn { is_named } => {
                usages.refused(&exchange.case(), upstream, model, is_named).await;
            }
            Self::Asked(_) | Self::Unasked => {}
        }
    }
}
