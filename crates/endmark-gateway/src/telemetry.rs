//! Spans of requests and upstream calls, for trace collectors.
//!
//! The spans have a separate target, so that they do not appear in logs. Without a collector, each span costs
//! one check. Names follow OpenTelemetry's semantic conventions for HTTP and for generative models. Spans
//! contain no conversation text, headers, queries or upstream messages.

use endmark_recovery::{Ending, Judgement, Stop};
use endmark_store::CallStarted;
use endmark_wire::reply::Usage;
use http::{HeaderMap, StatusCode};
use tracing::Span;
use tracing::field::Empty;

use crate::api::ApiNames;

/// The target of the spans that are only for traces.
pub const SPANS: &str = "telemetry";

/// Starts the span of a request for a reply, from its admission to the end of the reply. It continues the client's
/// trace, if any.
pub(crate) fn start_request_span(
    id: &str,
    upstream: &str,
    api: &ApiNames,
    streamed: bool,
    client: &HeaderMap,
) -> Span {
    let span = tracing::info_span!(
        target: SPANS,
        parent: None,
        "request",
        otel.name = format_args!("POST {}", api.route),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = "POST",
        http.route = api.route,
        endmark.request.id = id,
        endmark.upstream = upstream,
        endmark.streamed = streamed,
        endmark.outcome = Empty,
        endmark.calls = Empty,
    );
    set_parent(&span, client);
    span
}

/// Ends the span of a request.
pub(crate) fn end_request_span(span: &Span, outcome: &str, is_failure: bool, calls: u32) {
    span.record("endmark.outcome", outcome);
    span.record("endmark.calls", i64::from(calls));
    if is_failure {
        span.record("otel.status_code", "ERROR");
    }
}

/// Starts the span of an upstream call for a request.
pub(crate) fn start_call_span(parent: &Span, api: &ApiNames, started: &CallStarted) -> Span {
    tracing::info_span!(
        target: SPANS,
        parent: parent,
        "call",
        otel.name = format_args!("{} {}", api.operation, started.model),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = api.operation,
        gen_ai.provider.name = api.provider,
        gen_ai.request.model = started.model,
        gen_ai.request.stream = started.streamed,
        gen_ai.response.model = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        http.response.status_code = Empty,
        "error.type" = Empty,
        endmark.request.id = started.request_id,
        endmark.upstream = started.upstream,
        endmark.call = i64::from(started.call),
        endmark.purpose = started.purpose.name(),
        endmark.ending = Empty,
        endmark.stop = Empty,
        endmark.verdict = Empty,
        endmark.cut = Empty,
        endmark.first_byte_us = Empty,
    )
}

/// The data of a finished upstream call for traces.
pub(crate) struct FinishedCall<'a> {
    pub(crate) ending: Ending,
    pub(crate) stop: Option<Stop>,
    /// The upstream's stop reason of each choice.
    pub(crate) finish_reasons: &'a [String],
    pub(crate) judgement: Option<Judgement>,
    pub(crate) usage: Option<&'a Usage>,
    /// The model named in the response.
    pub(crate) model: Option<&'a str>,
    pub(crate) status: Option<StatusCode>,
    /// Microseconds until the first byte of the response.
    pub(crate) first_byte_us: Option<u64>,
}

/// Ends the span of a call.
pub(crate) fn end_call_span(span: &Span, end: &FinishedCall<'_>) {
    if span.is_disabled() {
        return;
    }
    let ending = end.ending.name();
    span.record("endmark.ending", ending);
    if let Some(status) = end.status {
        span.record("http.response.status_code", i64::from(status.as_u16()));
    }
    if let Some(model) = end.model {
        span.record("gen_ai.response.model", model);
    }
    if let Some(stop) = end.stop {
        span.record("endmark.stop", stop.name());
    }
    record_finish_reasons(span, end.finish_reasons);
    match end.judgement {
        Some(Judgement::Cut(kind)) => {
            span.record("endmark.verdict", "cut");
            span.record("endmark.cut", kind.name());
        }
        Some(Judgement::Whole { .. }) => {
            span.record("endmark.verdict", "whole");
        }
        Some(Judgement::Passed) => {
            span.record("endmark.verdict", "passed");
        }
        None => {}
    }
    if let Some(usage) = end.usage {
        span.record("gen_ai.usage.input_tokens", to_signed(usage.prompt));
        span.record("gen_ai.usage.output_tokens", to_signed(usage.completion));
        span.record("gen_ai.usage.cache_read.input_tokens", usage.cached.map(to_signed));
        span.record("gen_ai.usage.cache_creation.input_tokens", usage.cache_writes().map(to_signed));
        span.record("gen_ai.usage.reasoning.output_tokens", usage.reasoning.map(to_signed));
    }
    span.record("endmark.first_byte_us", end.first_byte_us.map(to_signed));
    let refused = end.status.filter(|status| !status.is_success());
    if end.ending != Ending::Clean || refused.is_some() {
        span.record("otel.status_code", "ERROR");
        match refused {
            Some(status) => span.record("error.type", status.as_str()),
            None => span.record("error.type", ending),
        };
    }
}

/// Records the stop reasons. They are a list, which the field of a span cannot contain.
#[cfg(feature = "otel")]
fn record_finish_reasons(span: &Span, words: &[String]) {
    use opentelemetry::{Array, Value};
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    if !words.is_empty() {
        let words = words.iter().map(|word| word.clone().into()).collect();
        span.set_attribute("gen_ai.response.finish_reasons", Value::Array(Array::String(words)));
    }
}

#[cfg(not(feature = "otel"))]
fn record_finish_reasons(_: &Span, _: &[String]) {}

/// Converts a number for traces, which support only signed integers.
fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Makes a span the child of the client's span (`traceparent`).
#[cfg(feature = "otel")]
fn set_parent(span: &Span, client: &HeaderMap) {
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    if span.is_disabled() {
        return;
    }
    let context =
        opentelemetry::global::get_text_map_propagator(|propagator| propagator.extract(&Carrier(client)));
    // Setting the parent fails only without a collector.
    let _ = span.set_parent(context);
}

#[cfg(not(feature = "otel"))]
fn set_parent(_: &Span, _: &HeaderMap) {}

/// Extracts the trace context from a client's headers.
#[cfg(feature = "otel")]
struct Carrier<'a>(&'a HeaderMap);

#[cfg(feature = "otel")]
impl opentelemetry::propagation::Extractor for Carrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
