//! The names of a request's interface in the ledger, the metrics and traces.

use endmark_wire::format::WireFormat;
use endmark_wire::paths::Service;
use endmark_wire::provider::Provider;

/// The names of an interface: of a format, or of a service other than replies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Api {
    /// The word in the ledger, such as `openai_chat` or `embeddings`.
    pub(crate) name: &'static str,
    /// The operation in OpenTelemetry's words.
    pub(crate) operation: &'static str,
    /// The path, as a pattern.
    pub(crate) route: &'static str,
    /// The provider in OpenTelemetry's words.
    pub(crate) provider: &'static str,
    /// The service, if it is one: the cost of a call is estimated from its fields.
    pub(crate) service: Option<Service>,
}

impl Api {
    /// Returns the names for a request for a reply.
    pub(crate) fn of_format(format: &dyn WireFormat) -> Self {
        Self {
            name: format.name(),
            operation: format.facts().operation,
            route: format.facts().route,
            provider: format.provider().traced_as,
            service: None,
        }
    }

    /// Returns the names for another counted request.
    pub(crate) fn of_service(service: Service, provider: &Provider) -> Self {
        Self {
            name: service.name,
            operation: service.operation,
            route: service.route,
            provider: provider.traced_as,
            service: Some(service),
        }
    }
}
