//! How a request's API is named in the ledger, the metrics and traces.

use endmark_wire::format::WireFormat;
use endmark_wire::paths::Service;
use endmark_wire::provider::Provider;

/// The names of an API, which is a reply format or another service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Api {
    /// The name in the ledger, such as `openai_chat` or `embeddings`.
    pub(crate) name: &'static str,
    /// The operation, as OpenTelemetry names it.
    pub(crate) operation: &'static str,
    /// The path with placeholders.
    pub(crate) route: &'static str,
    /// The provider, as OpenTelemetry names it.
    pub(crate) provider: &'static str,
    /// The service, unless the API is for replies. It determines how the cost of a call is estimated.
    pub(crate) service: Option<Service>,
}

impl Api {
    /// Returns the names for requests in this format.
    pub(crate) fn from_format(format: &dyn WireFormat) -> Self {
        Self {
            name: format.name(),
            operation: format.facts().operation,
            route: format.facts().route,
            provider: format.provider().traced_as,
            service: None,
        }
    }

    /// Returns the names for requests to another counted service.
    pub(crate) fn from_service(service: Service, provider: &Provider) -> Self {
        Self {
            name: service.name,
            operation: service.operation,
            route: service.route,
            provider: provider.traced_as,
            service: Some(service),
        }
    }
}
