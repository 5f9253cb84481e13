//! Functions for the envelope that commands answer with.

use std::collections::BTreeMap;
use std::time::Duration;

use endmark::envelope::{
    Envelope, ErrorBody, FieldPath, FieldPattern, FieldRule, FieldRules, FieldTooLarge,
    MIN_RESPONSE_LIMIT_BYTES, Phase, TooLarge, Warning,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::options::{answer, input_text, parse};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    error: Option<Error>,
    #[serde(default)]
    warnings: Vec<Warning>,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default)]
    max_response_bytes: Option<usize>,
    /// The fields that a backend limits, each with its limit.
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Error {
    code: String,
    exit_code: u8,
    message: String,
    #[serde(default)]
    hint: Option<String>,
    #[serde(default)]
    phase: Option<Phase>,
    #[serde(default)]
    field: Option<FieldPath>,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(default)]
    actual: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// A path such as `data.items[*].body`, in which `*` matches every item or member.
    field: String,
    #[serde(default)]
    max_bytes: Option<u64>,
    #[serde(default)]
    max_chars: Option<u64>,
    #[serde(default)]
    max_items: Option<u64>,
    #[serde(default)]
    exact: bool,
}

#[derive(Serialize)]
struct Answer {
    /// The JSON document, on one line.
    document: String,
    exit_code: u8,
}

pub(crate) fn envelope(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (data, options): (_, Options) = (input_text(inputs, 0)?, parse(options)?);
    let data: Value = serde_json::from_str(data).map_err(|error| Failure::invalid("invalid_data", error))?;
    let error = options.error.map(Error::body);
    let envelope = match error {
        None => Envelope::success(data),
        Some(error) if data.is_null() => Envelope::failure(error),
        Some(error) => Envelope::refusal(data, error),
    };
    let mut rules = FieldRules::default();
    for rule in options.rules {
        let pattern: FieldPattern =
            rule.field.parse().map_err(|error| Failure::invalid("invalid_field", error))?;
        let (max_bytes, max_chars, max_items) = (rule.max_bytes, rule.max_chars, rule.max_items);
        rules.add(
            pattern,
            FieldRule { max_bytes, max_chars, max_items, is_exact: rule.exact, ..FieldRule::default() },
        );
    }
    let envelope = envelope
        .with_rules(rules)
        .with_warnings(options.warnings)
        .with_duration(Duration::from_millis(options.duration_ms));
    let envelope = match options.max_response_bytes {
        Some(most) if most < MIN_RESPONSE_LIMIT_BYTES => {
            let message = format!(
                "`max_response_bytes` is {most}: the lowest limit is {MIN_RESPONSE_LIMIT_BYTES}, so that an error fits"
            );
            return Err(Failure::invalid("invalid_limit", message).about(&["max_response_bytes"]));
        }
        Some(most) => envelope.with_max_response_bytes(most),
        None => envelope,
    };
    let document = envelope.document().map_err(|error| Failure::internal(&error.to_string()))?;
    let exit_code = document.exit_code();
    answer(&Answer { document: document.to_json(), exit_code })
}

impl Error {
    fn body(self) -> ErrorBody {
        let body = ErrorBody::new(self.code, self.exit_code, self.message);
        let phase = self.phase.unwrap_or(body.phase);
        let (field, limit, actual, hint) = (self.field, self.limit, self.actual, self.hint);
        ErrorBody { phase, field, limit, actual, hint, ..body }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitOptions {
    /// The size of each field in UTF-8 bytes.
    sizes: Map<String, Value>,
    max_bytes: BTreeMap<String, u64>,
}

/// Checks the output of a command. Returns the error for its envelope, or null if all fields are within their limits.
pub(crate) fn check_limits(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let LimitOptions { sizes, max_bytes } = parse(options)?;
    let too_large = sizes.iter().filter_map(|(field, size)| {
        let (actual, limit) = (size.as_u64()?, *max_bytes.get(field)?);
        let field = FieldPath::root().key(field);
        (actual > limit).then_some(FieldTooLarge { field, limit, actual, unit: "bytes" })
    });
    answer(&TooLarge::new(too_large.collect()).map(ErrorBody::from))
}
