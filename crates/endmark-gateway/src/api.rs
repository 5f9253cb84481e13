//! What the ledger, the metrics and traces call the interface that a request is in.

use endmark_wire::format::WireFormat;
use endmark_wire::paths::Service;
use endmark_wire::provider::Provider;

/// The names of an interface: of a format, or of a service beside replies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Api {
    /// The word of the ledger, as `openai_chat` or `embeddings`.
    pub(crate) name: &'static str,
    /// The operation in OpenTelemetry's words.
    pub(crate) operation: &'static str,
    /// The path, as a pattern.
    pub(crate) route: &'static str,
    /// The provider in OpenTelemetry's words.
    pub(crate) provider: &'static str,
    /// The service, if it is one: what a call of it can cost is estimated by its fields.
    pub(crate) service: Option<Service>,
}

impl Api {
    /// Of a request for a reply.
    pub(crate) fn of_format(format: &dyn WireFormat) -> Self {
        Self {
            name: format.name(),
            operation: format.facts().operation,
            route: format.facts().route,
            provider: format.provider().traced_as,
            service: None,
        }
    }

    /// Of a request for something else that is counted.
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
