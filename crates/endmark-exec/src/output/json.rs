//! Output that is JSON: one value or several. (EN-1, PC-1)

use std::borrow::Cow;

use endmark_envelope::{Size, Warning};
use endmark_text::detect::detect_strict;
use endmark_text::{CompletedText, Format, UnfinishedKind, Verdict, complete, replace_lone_surrogates};
use serde_json::Value;

use super::lossy_values::{loss_warnings, with_infinite_as_text};
use super::{Data, IncompleteValue, JsonFault, NO_OUTPUT, text};
use endmark_process::Captured;

/// Maximum number of open brackets that are reported, innermost first.
const MAX_CUTS: usize = 16;

/// How many values are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One value, which is the data.
    Single,
    /// Any number of values, which form a list.
    Many,
}

impl Shape {
    fn format(self) -> Format {
        match self {
            Self::Single => Format::Json,
            Self::Many => Format::Jsonl,
        }
    }

    fn parse(self, text: &str) -> Result<Value, serde_json::Error> {
        self.parse_as_it_is(text).or_else(|error| {
            with_infinite_as_text(text).map_or(Err(error), |text| self.parse_as_it_is(&text))
        })
    }

    fn parse_as_it_is(self, text: &str) -> Result<Value, serde_json::Error> {
        let text = &*replace_lone_surrogates(text);
        match self {
            Self::Single => serde_json::from_str(text),
            Self::Many => {
                let values = serde_json::Deserializer::from_str(text).into_iter();
                values.collect::<Result<_, _>>().map(Value::Array)
            }
        }
    }

    /// Returns the value that represents empty output.
    fn empty_value(self) -> Value {
        match self {
            Self::Single => Value::Null,
            Self::Many => Value::Array(Vec::new()),
        }
    }
}

/// Parses the output as JSON. Truncated JSON returns its reliable beginning. Other output is returned as text.
pub(super) fn read(captured: &Captured, shape: Shape, as_text: impl FnOnce() -> Data) -> Data {
    let text = decode(captured);
    if captured.is_whole() {
        if text.trim_ascii().is_empty() {
            let warnings = match shape {
                Shape::Single => vec![Warning::notice(NO_OUTPUT, "the tool wrote nothing; `data` is null")],
                Shape::Many => Vec::new(),
            };
            return Data { warnings, ..Data::new(shape.empty_value()) };
        }
        if let Ok(value) = shape.parse(&text) {
            return Data { warnings: loss_warnings(&text, &value), ..Data::new(value) };
        }
    }
    // Truncated JSON may still end with the newline that tools print at the end.
    close(captured, &text, shape)
        .or_else(|fault| close(captured, text.trim_end(), shape).map_err(|_| fault))
        .unwrap_or_else(|fault| Data { fault: Some(fault), ..as_text() })
}

/// Parses the output as JSON only if all of it is JSON: one object or list, or several of them.
pub(super) fn guess(captured: &Captured) -> Option<Data> {
    let text = decode(captured);
    if !captured.is_whole() || !text.trim_ascii_start().starts_with(['{', '[']) {
        return None;
    }
    let read = |shape: Shape| shape.parse(&text).ok();
    let is_structured = |value: &Value| value.is_object() || value.is_array();
    let many = || {
        let values = read(Shape::Many)?;
        values.as_array()?.iter().all(is_structured).then_some(values)
    };
    let value = read(Shape::Single).or_else(many)?;
    Some(Data { warnings: loss_warnings(&text, &value), ..Data::new(value) })
}

/// Returns what is missing after an output that is treated as text although it is the beginning of JSON.
pub(super) fn incomplete_beginning(captured: &Captured) -> Option<IncompleteValue> {
    let text = decode(captured);
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

/// Decodes the output, or the captured beginning of it, without a byte order mark.
fn decode(captured: &Captured) -> Cow<'_, str> {
    let bytes = captured.head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&captured.head);
    if let Ok(text) = str::from_utf8(bytes) { text.into() } else { text::valid_beginning(bytes).into() }
}

/// Returns the reliable beginning of truncated JSON with its brackets closed, and the incomplete values.
fn close(captured: &Captured, text: &str, shape: Shape) -> Result<Data, JsonFault> {
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
        return Ok(Data::new(value));
    }
    let warnings = loss_warnings(&completed.text, &value);
    Ok(Data { warnings, cuts: cuts(captured, &completed, shape), fault, ..Data::new(value) })
}

/// Returns why well-formed JSON cannot be parsed: too deep nesting, or half a surrogate pair.
fn unreadable_fault(text: &str, error: &serde_json::Error) -> JsonFault {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before = lines.map(str::len).sum::<usize>();
    JsonFault::Malformed { index: before + error.column().saturating_sub(1), reason: error.to_string() }
}

/// Returns the incomplete values in the data: the root first, then the innermost ones.
fn cuts(captured: &Captured, completed: &CompletedText, shape: Shape) -> Vec<IncompleteValue> {
    let why = if captured.is_whole() {
        "the tool's output ends in the middle"
    } else {
        "the output is too large to be kept"
    };
    let prefix = match shape {
        Shape::Single => String::new(),
        Shape::Many => format!("/{}", completed.value),
    };
    let whole = IncompleteValue {
        pointer: String::new(),
        // If the tool was stopped, the full size is unknown.
        original: (!captured.is_whole())
            .then_some(Size { bytes: captured.bytes, chars: captured.characters }),
        message: format!("{why}: this is its beginning"),
    };
    let places = completed.unfinished();
    let skipped = places.len().saturating_sub(MAX_CUTS);
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
