//! Parses output that is JSON: one value or several. (EN-1, PC-1)

use std::borrow::Cow;

use endmark_envelope::{Size, Warning};
use endmark_text::detect::detect_strict;
use endmark_text::{CompletedText, Format, UnfinishedKind, Verdict, complete, replace_lone_surrogates};
use serde_json::Value;

use super::lossy_values::{loss_warnings, with_out_of_range_as_text};
use super::{IncompleteValue, JsonFault, NO_OUTPUT, OutputData, text};
use endmark_process::CapturedStream;

/// At most this many unclosed brackets are reported, starting with the innermost.
const MAX_REPORTED_CUTS: usize = 16;

/// The number of JSON values that are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedValues {
    /// One value. It becomes the data.
    Single,
    /// Any number of values. They become a list.
    Many,
}

impl ExpectedValues {
    fn format(self) -> Format {
        match self {
            Self::Single => Format::Json,
            Self::Many => Format::Jsonl,
        }
    }

    fn parse(self, text: &str) -> Result<Value, serde_json::Error> {
        self.parse_strictly(text).or_else(|error| {
            with_out_of_range_as_text(text).map_or(Err(error), |text| self.parse_strictly(&text))
        })
    }

    fn parse_strictly(self, text: &str) -> Result<Value, serde_json::Error> {
        let text = &*replace_lone_surrogates(text);
        match self {
            Self::Single => serde_json::from_str(text),
            Self::Many => {
                let values = serde_json::Deserializer::from_str(text).into_iter();
                values.collect::<Result<_, _>>().map(Value::Array)
            }
        }
    }

    /// Returns the value that an empty output means.
    fn empty_value(self) -> Value {
        match self {
            Self::Single => Value::Null,
            Self::Many => Value::Array(Vec::new()),
        }
    }
}

/// Parses output as JSON. If the JSON is truncated, returns its reliable beginning. Returns any other output
/// as text.
pub(super) fn read(
    captured: &CapturedStream,
    shape: ExpectedValues,
    as_text: impl FnOnce() -> OutputData,
) -> OutputData {
    let text = decode_output(captured);
    if captured.is_whole() {
        if text.trim_ascii().is_empty() {
            let warnings = match shape {
                ExpectedValues::Single => {
                    vec![Warning::notice(NO_OUTPUT, "the tool wrote nothing; `data` is null")]
                }
                ExpectedValues::Many => Vec::new(),
            };
            return OutputData { warnings, ..OutputData::new(shape.empty_value()) };
        }
        if let Ok(value) = shape.parse(&text) {
            return OutputData { warnings: loss_warnings(&text, &value), ..OutputData::new(value) };
        }
    }
    // Truncated JSON may still end with the newline that tools print at their end.
    close_truncated(captured, &text, shape)
        .or_else(|fault| close_truncated(captured, text.trim_end(), shape).map_err(|_| fault))
        .unwrap_or_else(|fault| OutputData { fault: Some(fault), ..as_text() })
}

/// Parses output as JSON only if it consists completely of JSON objects and lists.
pub(super) fn parse_if_json(captured: &CapturedStream) -> Option<OutputData> {
    let text = decode_output(captured);
    if !captured.is_whole() || !text.trim_ascii_start().starts_with(['{', '[']) {
        return None;
    }
    let read = |shape: ExpectedValues| shape.parse(&text).ok();
    let is_structured = |value: &Value| value.is_object() || value.is_array();
    let many = || {
        let values = read(ExpectedValues::Many)?;
        values.as_array()?.iter().all(is_structured).then_some(values)
    };
    let value = read(ExpectedValues::Single).or_else(many)?;
    Some(OutputData { warnings: loss_warnings(&text, &value), ..OutputData::new(value) })
}

/// Returns what is missing if the output is shown as text but is the beginning of JSON.
pub(super) fn incomplete_beginning(captured: &CapturedStream) -> Option<IncompleteValue> {
    let text = decode_output(captured);
    if !captured.is_whole() || !text.trim_ascii_start().starts_with(['{', '[']) {
        return None;
    }
    let completed = complete(text.trim_end().as_bytes(), &Format::Jsonl).ok()?;
    let is_structure = |kind: UnfinishedKind| matches!(kind, UnfinishedKind::Object | UnfinishedKind::Array);
    completed.unfinished().any(|place| is_structure(place.kind)).then(|| IncompleteValue {
        pointer: "/text".to_owned(),
        original: None,
        message: "it is JSON that ends in the middle".to_owned(),
    })
}

/// Decodes the captured output without a byte order mark.
fn decode_output(captured: &CapturedStream) -> Cow<'_, str> {
    let bytes = captured.head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&captured.head);
    if let Ok(text) = str::from_utf8(bytes) { text.into() } else { text::valid_beginning(bytes).into() }
}

/// Closes the brackets of truncated JSON. Returns its reliable beginning with the incomplete values.
fn close_truncated(
    captured: &CapturedStream,
    text: &str,
    shape: ExpectedValues,
) -> Result<OutputData, JsonFault> {
    let format = shape.format();
    let verdict = detect_strict(text.as_bytes(), &format).verdict;
    if let Verdict::Malformed { index, reason } = verdict {
        return Err(JsonFault::Malformed { index, reason });
    }
    let completed = complete(text.as_bytes(), &format).unwrap_or_default();
    let value = if completed.text.is_empty() {
        shape.empty_value()
    } else {
        shape.parse(&completed.text).map_err(|error| unreadable_fault(&completed.text, &error))?
    };
    let fault = captured.is_whole().then_some(JsonFault::Truncated { bytes: captured.bytes });
    let is_cut = !captured.is_whole() || verdict != Verdict::Whole;
    if !is_cut {
        return Ok(OutputData::new(value));
    }
    let warnings = loss_warnings(&completed.text, &value);
    Ok(OutputData {
        warnings,
        cuts: incomplete_values(captured, &completed, shape),
        fault,
        ..OutputData::new(value)
    })
}

/// Returns the reason why well-formed JSON cannot be parsed: it is nested too deeply, or has half a surrogate
/// pair.
fn unreadable_fault(text: &str, error: &serde_json::Error) -> JsonFault {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before = lines.map(str::len).sum::<usize>();
    JsonFault::Malformed { index: before + error.column().saturating_sub(1), reason: error.to_string() }
}

/// Returns the incomplete values in the data: the root first, then the innermost values.
fn incomplete_values(
    captured: &CapturedStream,
    completed: &CompletedText,
    shape: ExpectedValues,
) -> Vec<IncompleteValue> {
    let why = if captured.is_whole() {
        "the tool's output ends in the middle"
    } else {
        "the output is too large to be kept"
    };
    let prefix = match shape {
        ExpectedValues::Single => String::new(),
        ExpectedValues::Many => format!("/{}", completed.value),
    };
    let whole = IncompleteValue {
        pointer: String::new(),
        // If the tool was stopped, the size of the complete output is unknown.
        original: (!captured.is_whole())
            .then_some(Size { bytes: captured.bytes, chars: captured.characters }),
        message: format!("{why}: this is its beginning"),
    };
    let places = completed.unfinished();
    let skipped = places.len().saturating_sub(MAX_REPORTED_CUTS);
    let inner = places.skip(skipped).map(|place| IncompleteValue {
        pointer: format!("{prefix}{}", place.pointer),
        original: None,
        message: match (place.kind, place.is_omitted) {
            (_, true) => format!("{why}: the {} is left out", place.kind.name()),
            (UnfinishedKind::Number, false) => format!("{why}: the number may go on"),
            (_, false) => format!("{why}: this is the beginning of the {}", place.kind.name()),
        },
    });
    std::iter::once(whole).chain(inner.filter(|cut| !cut.pointer.is_empty())).collect()
}
