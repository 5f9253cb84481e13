//! Names of a request's API in the ledger, the metrics and traces.

use endmark_wire::format::WireFormat;
use endmark_wire::paths::TokenService;
use endmark_wire::provider::Provider;

/// The names of an API: of a reply format, or of another service such as embeddings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiNames {
    /// The name in the ledger, such as `openai_chat` or `embeddings`.
    pub(crate) name: &'static str,
    /// The operation, as OpenTelemetry names it.
    pub(crate) operation: &'static str,
    /// The path with placeholders.
    pub(crate) route: &'static str,
    /// The provider, as OpenTelemetry names it.
    pub(crate) provider: &'static str,
    /// The service, or `None` if the API returns model replies. It determines how the cost of a call is
    /// estimated.
    pub(crate) service: Option<TokenService>,
}

impl ApiNames {
    /// Returns the names for requests in this format.
    pub(crate) fn from_format(format: &dyn WireFormat) -> Self {
        Self {
            name: format.name(),
            operation: format.facts().operation,
            route: format.facts().route,
            provider: format.provider().trace_name,
            service: None,
        }
    }

    /// Returns the names for requests to another counted service.
    pub(crate) fn from_service(service: TokenService, provider: &Provider) -> Self {
        Self {
            name: service.name,
            operation: service.operation,
            route: service.route,
            provider: provider.trace_name,
            service: Some(service),
        }
    }
}
