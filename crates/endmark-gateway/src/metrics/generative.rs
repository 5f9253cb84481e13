//! Metrics of model calls with the names of OpenTelemetry's semantic conventions in Prometheus notation: underscores
//! for dots, seconds as a suffix, and no unit in braces.

use std::time::Duration;

use endmark_recovery::Ending;
use endmark_wire::reply::Usage;
use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels;
use crate::api::ApiNames;

/// Bucket boundaries from the conventions, in seconds.
const DURATION_BUCKETS_SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// Bucket boundaries from the conventions, in tokens.
const TOKEN_BUCKETS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The label of models that are not in the table. Without it, clients could add any number of permanent series.
const OTHER_MODEL: &str = "_other";

/// The data of a finished upstream call for these metrics.
pub(crate) struct GenerativeCall<'a> {
    pub(crate) api: &'a ApiNames,
    /// The id of the requested model in the table of models, or `None`.
    pub(crate) model: Option<&'a str>,
    pub(crate) status: Option<StatusCode>,
    pub(crate) ending: Ending,
    pub(crate) duration: Duration,
    /// The usage that the upstream reported. Estimates are not included.
    pub(crate) usage: Option<&'a Usage>,
}

/// The metrics of model calls.
pub(super) struct GenerativeMetrics {
    duration: Family<OperationLabels, Histogram>,
    tokens: Family<TokenLabels, Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    gen_ai_operation_name: &'static str,
    gen_ai_provider_name: &'static str,
    gen_ai_request_model: String,
    /// Empty if the call succeeded, which omits the label.
    error_type: &'static str,
}

#[expect(clippy::struct_field_names, reason = "they are the labels' names")]
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    gen_ai_operation_name: &'static str,
    gen_ai_provider_name: &'static str,
    gen_ai_request_model: String,
    gen_ai_token_type: &'static str,
}

impl GenerativeMetrics {
    pub(super) fn new() -> Self {
        Self {
            duration: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS_SECONDS)),
            tokens: Family::new_with_constructor(|| Histogram::new(TOKEN_BUCKETS)),
        }
    }

    /// Registers the metrics. The registry must not add a prefix.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "gen_ai_client_operation_duration",
            "From an upstream call's beginning to the end of its answer",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register(
            "gen_ai_client_token_usage",
            "Tokens of an upstream call, as reported",
            self.tokens.clone(),
        );
    }

    /// Records that a call has ended.
    pub(super) fn note_call(&self, call: &GenerativeCall<'_>) {
        let (operation, provider) = (call.api.operation, call.api.provider);
        let is_answered = call.status.is_some_and(|status| status.is_success());
        let model = call.model.unwrap_or(OTHER_MODEL).to_owned();
        let error_type = match call.status {
            Some(_) if !is_answered => labels::status(call.status),
            _ if call.ending == Ending::Clean => "",
            _ => call.ending.name(),
        };
        for (kind, tokens) in
            call.usage.into_iter().flat_map(|usage| [("input", usage.prompt), ("output", usage.completion)])
        {
            let labels = TokenLabels {
                gen_ai_operation_name: operation,
                gen_ai_provider_name: provider,
                gen_ai_request_model: model.clone(),
                gen_ai_token_type: kind,
            };
            // All realistic token counts are exact in floating point.
            #[expect(clippy::cast_precision_loss, reason = "see above")]
            self.tokens.get_or_create(&labels).observe(tokens as f64);
        }
        let labels = OperationLabels {
            gen_ai_operation_name: operation,
            gen_ai_provider_name: provider,
            gen_ai_request_model: model,
            error_type,
        };
        self.duration.get_or_create(&labels).observe(call.duration.as_secs_f64());
    }
}
