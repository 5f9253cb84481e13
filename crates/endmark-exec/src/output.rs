//! Converts the output of a tool to the `data` of a response. (EN-1)

mod capped;
mod cut;
mod json;
mod lossy_values;
mod text;

use endmark_envelope::{FieldRules, Warning};
use serde_json::Value;

use super::manifest::{OutputKind, OutputRules};
use endmark_process::CapturedStream;

pub(crate) use capped::cap_data;
pub(crate) use cut::IncompleteValue;

/// Code of the warning that invalid UTF-8 was replaced.
const INVALID_UTF8: &str = "INVALID_UTF8";
/// Code of the warning that a tool printed nothing although JSON was expected.
const NO_OUTPUT: &str = "NO_OUTPUT";

/// The `data` of a response, with what is wrong or missing in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutputData {
    pub(crate) value: Value,
    /// Whether the value is the output as text, in `text` and related fields.
    is_text: bool,
    pub(crate) warnings: Vec<Warning>,
    /// Why the output is not the declared kind of JSON. `None` if it is.
    pub(crate) fault: Option<JsonFault>,
    /// The values in the data that are incomplete.
    pub(crate) cuts: Vec<IncompleteValue>,
}

/// The reason why an output is not valid JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonFault {
    /// The output is JSON that was cut after this many bytes.
    Truncated { bytes: u64 },
    /// The output is not JSON. `index` is the byte offset of the error.
    Malformed { index: usize, reason: String },
}

impl OutputData {
    /// Returns data without a fault, a warning or an incomplete value.
    fn new(value: Value) -> Self {
        Self { value, is_text: false, warnings: Vec::new(), fault: None, cuts: Vec::new() }
    }
}

/// Parses an output of the declared kind. `unended` states why the output may be incomplete, if there is a
/// reason.
pub(crate) fn read(captured: &CapturedStream, rules: &OutputRules, unended: Option<&str>) -> OutputData {
    let as_text = || text::read(captured, rules.max_response_bytes);
    let mut data = match rules.kind {
        OutputKind::Json => json::read(captured, json::ExpectedValues::Single, as_text),
        OutputKind::Jsonl => json::read(captured, json::ExpectedValues::Many, as_text),
        OutputKind::Text => as_text(),
        OutputKind::Auto => json::parse_if_json(captured).unwrap_or_else(|| {
            let text = as_text();
            let cuts = text.cuts.into_iter().chain(json::incomplete_beginning(captured)).collect();
            OutputData { cuts, ..text }
        }),
    };
    if rules.empty_is_list && captured.is_whole() && captured.head.trim_ascii().is_empty() {
        data = OutputData::new(Value::Array(Vec::new()));
    }
    match captured.invalid_sequences {
        0 => {}
        1 => data
            .warnings
            .push(Warning::notice(INVALID_UTF8, "one sequence of bytes is not UTF-8 and is shown as U+FFFD")),
        many => data.warnings.push(Warning::notice(
            INVALID_UTF8,
            format!("{many} sequences of bytes are not UTF-8 and are shown as U+FFFD"),
        )),
    }
    if let Some(why) = unended
        && data.cuts.is_empty()
    {
        data.cuts.extend(possibly_incomplete_value(&data.value, why));
    }
    data
}

/// Returns the value that may be incomplete because the tool did not end by itself. A single JSON value is
/// always complete.
fn possibly_incomplete_value(value: &Value, why: &str) -> Option<IncompleteValue> {
    let pointer = match value {
        Value::Object(members) => match members.get("text") {
            Some(Value::String(text)) if !text.is_empty() => "/text",
            _ => return None,
        },
        Value::Array(_) => "",
        _ => return None,
    };
    Some(IncompleteValue { pointer: pointer.to_owned(), original: None, message: why.to_owned() })
}

/// Whether text must still be marked as truncated although the complete output was read.
pub(crate) fn is_text_incomplete(data: &OutputData, unended: Option<&str>) -> bool {
    data.is_text && (unended.is_some() || data.cuts.iter().any(|cut| cut.original.is_none()))
}

/// Marks and reports truncated values: those that match the manifest's rules, and those that the capture has
/// cut (EN-3).
pub(crate) fn disclose_truncation(data: &mut OutputData, rules: &FieldRules) {
    let mut warnings = rules.mark_cuts(&mut data.value);
    // A value that was truncated on purpose was already reported.
    let is_known = |found: &Warning, known: &Warning| known.code == found.code && known.field == found.field;
    warnings.retain(|found| !data.warnings.iter().any(|known| is_known(found, known)));
    for cut in &data.cuts {
        let path = cut.path(&data.value);
        let found = warnings.iter().position(|found| found.field.as_ref() == Some(&path));
        // A known cut is more reliable than a rule about the form of the text.
        let found = found.map(|index| warnings.remove(index));
        let warning = cut.mark(&mut data.value, path, found);
        // A capped value already has a warning. Add this cut to its message.
        match data.warnings.iter_mut().find(|known| is_known(&warning, known)) {
            Some(known) => known.message = format!("{}; {}", known.message, warning.message),
            None => warnings.push(warning),
        }
    }
    data.warnings.extend(warnings);
}

#[cfg(test)]
mod tests;
