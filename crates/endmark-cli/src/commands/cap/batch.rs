//! Caps many outputs as JSON Lines, each with its own limits.

use std::borrow::Cow;

use endmark_context::cap::Limits;
use endmark_envelope::Warning;
use endmark_failure::{CommandError, ExitStatus};
use endmark_store::{CapRequest, Handle, OutputKeeper, cap_and_keep, only_limit};
use endmark_text::replace_lone_surrogates;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits;
use crate::batch::{self, Field, LineAnswer, LineError};
use crate::input::Input;

/// The fields of a batch line, in addition to its id.
const FIELDS: [Field; 8] = [
    Field::Text("format"),
    Field::Text("text"),
    Field::Text("base64"),
    Field::Text("keep"),
    Field::Count("max_chars"),
    Field::Count("max_bytes"),
    Field::Count("max_tokens"),
    Field::Count("max_items"),
];

/// One line of a batch.
#[derive(Deserialize)]
struct BatchRequest<'a> {
    #[serde(default)]
    id: Value,
    format: Option<String>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    base64: Option<String>,
    max_chars: Option<u64>,
    max_bytes: Option<u64>,
    max_tokens: Option<u64>,
    max_items: Option<u64>,
    keep: Option<String>,
}

/// The answer to one line.
#[derive(Serialize)]
struct BatchReport<'a> {
    id: &'a Value,
    text: &'a str,
    format: &'static str,
    warnings: &'a [Warning],
    handle: Option<&'a str>,
}

/// Answers every line. If outputs are stored, also stores the original of each shortened output.
pub(super) fn run(
    input: Input,
    line_request: &CapRequest,
    mut keeper: Option<&mut OutputKeeper>,
) -> Result<ExitStatus, CommandError> {
    batch::run(input, |line| answer_line(line, line_request, keeper.as_deref_mut()))
}

fn answer_line(
    line: &str,
    default: &CapRequest,
    keeper: Option<&mut OutputKeeper>,
) -> Result<LineAnswer, LineError> {
    let line = &*replace_lone_surrogates(line);
    let request: BatchRequest<'_> = batch::parse_request(line, &FIELDS)?;
    let failed = |message: String| LineError { id: request.id.clone(), message };
    let line_request = cap_request(&request, default).map_err(failed)?;
    let raw = batch::decode_raw(request.text.as_deref(), request.base64.as_deref()).map_err(failed)?;
    let (capped, handle) =
        cap_and_keep(&raw, line_request, keeper).map_err(|error| failed(error.to_string()))?;
    let report = BatchReport {
        id: &request.id,
        text: &capped.text,
        format: capped.format.name(),
        warnings: &capped.warnings,
        handle: handle.as_ref().map(Handle::as_str),
    };
    let json = serde_json::to_string(&report).map_err(|error| failed(error.to_string()))?;
    Ok(LineAnswer { json, is_yes: true })
}

/// Returns the limits of the line, with the command line as the default.
fn cap_request(request: &BatchRequest<'_>, default: &CapRequest) -> Result<CapRequest, String> {
    let BatchRequest { max_chars, max_bytes, max_tokens, .. } = *request;
    let most = only_limit(max_chars, max_bytes, max_tokens).map_err(|error| error.to_string())?;
    let (most, unit) =
        most.map_or((default.limits.most, default.limits.unit), |(most, unit)| (limits::count(most), unit));
    let limits = Limits {
        most,
        unit,
        max_items: request.max_items.map_or(default.limits.max_items, limits::count),
        keep: request.keep.as_deref().map_or(Ok(default.limits.keep), limits::parse_keep)?,
        ..Limits::default()
    };
    let format = request.format.as_deref().map_or(Ok(default.format), limits::parse_format)?;
    Ok(CapRequest { format, limits })
}
