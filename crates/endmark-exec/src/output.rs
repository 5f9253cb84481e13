//! Converts the output of a tool to `data`. (EN-1)

mod capped;
mod cut;
mod json;
mod lossy_values;
mod text;

use endmark_envelope::{FieldRules, Warning};
use serde_json::Value;

use super::manifest::{OutputKind, OutputRules};
use endmark_process::Captured;

pub(crate) use capped::cap_data;
pub(crate) use cut::IncompleteValue;

/// The code of the warning that invalid UTF-8 was replaced.
const INVALID_UTF8: &str = "INVALID_UTF8";
/// The code of the warning that a tool printed nothing instead of JSON.
const NO_OUTPUT: &str = "NO_OUTPUT";

/// The output of a tool as `data`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Data {
    pub(crate) value: Value,
    /// Whether the value is the raw output, in `text` and related fields.
    is_text: bool,
    pub(crate) warnings: Vec<Warning>,
    /// The fault, if the output is not the declared kind of JSON.
    pub(crate) fault: Option<JsonFault>,
    /// The incomplete values in the data.
    pub(crate) cuts: Vec<IncompleteValue>,
}

/// Why an output is not valid JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonFault {
    /// The output is truncated JSON of this many bytes.
    Truncated { bytes: u64 },
    /// The output is not JSON: the byte offset and the reason.
    Malformed { index: usize, reason: String },
}

impl Data {
    /// Creates data without a fault.
    fn new(value: Value) -> Self {
        Self { value, is_text: false, warnings: Vec::new(), fault: None, cuts: Vec::new() }
    }
}

/// Parses an output of the declared kind. `unended` is the reason why the output may be incomplete, if any.
pub(crate) fn read(captured: &Captured, rules: &OutputRules, unended: Option<&str>) -> Data {
    let as_text = || text::read(captured, rules.max_response_bytes);
    let mut data = match rules.kind {
        OutputKind::Json => json::read(captured, json::Shape::Single, as_text),
        OutputKind::Jsonl => json::read(captured, json::Shape::Many, as_text),
        OutputKind::Text => as_text(),
        OutputKind::Auto => json::guess(captured).unwrap_or_else(|| {
            let text = as_text();
            let cuts = text.cuts.into_iter().chain(json::incomplete_beginning(captured)).collect();
            Data { cuts, ..text }
        }),
    };
    if rules.empty_is_list && captured.is_whole() && captured.head.trim_ascii().is_empty() {
        data = Data::new(Value::Array(Vec::new()));
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
        data.cuts.extend(possible_loss(&data.value, why));
    }
    data
}

/// Returns what may be missing after an output that did not end by itself. A single JSON value is complete.
fn possible_loss(value: &Value, why: &str) -> Option<IncompleteValue> {
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

/// Whether text remains marked as truncated even though the complete output was read.
pub(crate) fn marks_text(data: &Data, unended: Option<&str>) -> bool {
    data.is_text && (unended.is_some() || data.cuts.iter().any(|cut| cut.original.is_none()))
}

/// Reports truncated values in the data, by the manifest's rules and by facts about the capture (EN-3).
pub(crate) fn disclose(data: &mut Data, rules: &FieldRules) {
    let mut warnings = rules.disclose(&mut data.value);
    // A deliberate truncation has already been reported.
    let is_known = |found: &Warning, known: &Warning| known.code == found.code && known.field == found.field;
    warnings.retain(|found| !data.warnings.iter().any(|known| is_known(found, known)));
    for cut in &data.cuts {
        let path = cut.path(&data.value);
        let found = warnings.iter().position(|found| found.field.as_ref() == Some(&path));
        // A certain fact replaces a guess from the text's form.
        let found = found.map(|index| warnings.remove(index));
        let warning = cut.mark(&mut data.value, path, found);
        // A capped value already has a warning, which then reports both.
        match data.warnings.iter_mut().find(|known| is_known(&warning, known)) {
            Some(known) => known.message = format!("{}; {}", known.message, warning.message),
            None => warnings.push(warning),
        }
    }
    data.warnings.extend(warnings);
}

#[cfg(test)]
mod tests;
