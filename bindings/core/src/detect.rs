//! Detects whether a text is whole, and closes cut JSON.

use endmark::{CompleteError, CompletionReport, DetectionReport};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};
use crate::offsets::Unit;
use crate::options::{NamedFormat, answer, find_input, format, parse};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    format: String,
    #[serde(default)]
    marker: Option<String>,
    /// Whether raw control characters in JSON strings are rejected, as the grammar requires.
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    offsets: Unit,
}

pub(crate) fn detect(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (raw, options): (_, Options) = (find_input(inputs, 0)?, parse(options)?);
    let format = format(&options.format, options.marker.as_deref())?;
    let detection =
        if options.strict { endmark::detect_strict(raw, &format) } else { endmark::detect(raw, &format) };
    answer(&DetectionReport::new(&detection).with_offsets(|byte| options.offsets.convert(raw, byte)))
}

#[derive(Serialize)]
struct Completed {
    #[serde(flatten)]
    completed: CompletionReport,
    escaped: usize,
}

pub(crate) fn complete(inputs: &[&[u8]], options: &str) -> Result<String, Failure> {
    let (raw, options): (_, NamedFormat) = (find_input(inputs, 0)?, parse(options)?);
    let completed = endmark::complete(raw, &options.read()?)
        .map_err(|error| completion_failure(raw, error, options.offsets))?;
    answer(&Completed { completed: CompletionReport::new(&completed), escaped: completed.escaped })
}

fn completion_failure(raw: &[u8], error: CompleteError, unit: Unit) -> Failure {
    let code = error.code();
    match error {
        CompleteError::Malformed { index, reason } if unit != Unit::Bytes => {
            let message = format!("malformed at {}: {reason}", unit.convert(raw, index));
            Failure::new(FailureKind::Malformed, code, message)
        }
        error => Failure::new(FailureKind::Malformed, code, error),
    }
}
