//! Exports spans to a collector over OTLP.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use endmark_config::{Environment, Settings, client_upstream_at};
use endmark_failure::CommandError;
use endmark_gateway::BaseUrl;
use http::{Request, Response};
use http_body_util::Full;
use opentelemetry::global;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use tokio::runtime::{Builder, Runtime};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

use super::requested_endpoint;
use crate::client::Client;

/// Additional certificate authorities for the collector, in addition to the system's.
const CERTIFICATE_VARIABLE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// Longer than a collector needs. The exporter's own timeout (`OTEL_EXPORTER_OTLP_TIMEOUT`) ends earlier.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// Time limit for sending the last spans at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Collects spans and exports them until it is dropped.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    runtime: Option<Runtime>,
}

impl Traces {
    /// Starts collecting if environment variables request it.
    pub(crate) fn start(environment: &Environment) -> Result<Option<Self>, CommandError> {
        let Some(endpoint) = requested_endpoint(environment)? else { return Ok(None) };
        let unusable = |error: String| {
            let message = format!("traces cannot be sent to `{endpoint}`: {error}");
            let hint =
                "Set OTEL_EXPORTER_OTLP_ENDPOINT to the address of a collector, as in http://HOST:4318.";
            CommandError::input("unusable_telemetry", message, hint)
        };
        let address: BaseUrl = endpoint.parse().map_err(|error| unusable(format!("{error}")))?;
        let mut trusted = Settings::default();
        trusted.files.ca_file = environment.get(CERTIFICATE_VARIABLE).map(PathBuf::from);
        let collector = client_upstream_at(&trusted, address, environment)?;
        let client = Client::new(&collector).map_err(|error| unusable(error.to_string()))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("endmark-traces")
            .enable_all()
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        let sender = BlockingHttpClient { client: Arc::new(client), runtime: runtime.handle().clone() };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(sender)
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        // The service name of the environment takes precedence.
        let is_named = environment.get("OTEL_SERVICE_NAME").is_some()
            || environment.get("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
        let resource = Resource::builder();
        let resource = if is_named { resource } else { resource.with_service_name("endmark") }.build();
        let provider =
            SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        global::set_text_map_propagator(TraceContextPropagator::new());
        Ok(Some(Self { provider, runtime: Some(runtime) }))
    }

    /// Returns the layer that turns the gateway's events into spans.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer: Tracer = self.provider.tracer("endmark");
        let layer: OpenTelemetryLayer<S, Tracer> = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false);
        layer.with_filter(Targets::new().with_target(endmark_gateway::SPANS, LevelFilter::INFO))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // Spans that cannot be sent in this time are lost.
        let _ = self.provider.shutdown_with_timeout(FLUSH_TIMEOUT);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// An HTTP client for the exporter, whose thread has no runtime.
struct BlockingHttpClient {
    client: Arc<Client>,
    runtime: tokio::runtime::Handle,
}

impl fmt::Debug for BlockingHttpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sender")
    }
}

type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for BlockingHttpClient {
    fn send_bytes<'life, 'async_trait>(&'life self, request: Request<Bytes>) -> ResponseFuture<'async_trait>
    where
        'life: 'async_trait,
        Self: 'async_trait,
    {
        let client = Arc::clone(&self.client);
        let sent = self.runtime.spawn(async move { client.send(request.map(Full::new), CALL_TIMEOUT).await });
        Box::pin(async move { Ok(sent.await??) })
    }
}
