//! Writes and parses the markers that replace omitted parts.

use serde_json::Value;

use super::limits::ReadMethod;

const MARKER_START: &str = "[… ";
const MARKER_END: &str = " left out …]";

/// The only key of an object that replaces omitted items, lines or members.
pub(super) const OMITTED: &str = "endmark_omitted";

/// The amount of text that is omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct OmittedAmount {
    /// Number of lines, rows or items that are omitted completely.
    pub(super) lines: u64,
    /// Number of omitted Unicode characters.
    pub(super) chars: u64,
}

impl OmittedAmount {
    pub(super) fn plus(self, other: Self) -> Self {
        Self { lines: self.lines + other.lines, chars: self.chars + other.chars }
    }
}

/// Returns the marker for omitted text, without a line break.
pub(super) fn text_marker(left_out: OmittedAmount) -> String {
    if left_out.lines == 0 {
        return string_marker(left_out.chars);
    }
    let plural = if left_out.lines == 1 { "" } else { "s" };
    format!(
        "{MARKER_START}{} line{plural} ({} characters){MARKER_END}",
        group_thousands(left_out.lines),
        group_thousands(left_out.chars)
    )
}

/// Returns the text that states how to read the omitted part. It follows the first marker of a text.
pub(super) fn read_hint(handle: &str, way: ReadMethod) -> String {
    format!(" {} {handle}", way.prefix())
}

/// Returns the marker for an omitted part of a single line or string.
pub(super) fn string_marker(chars: u64) -> String {
    format!("{MARKER_START}{} characters{MARKER_END}", group_thousands(chars))
}

/// Parses a line that is a marker, with or without the hint how to read the rest. Returns `None` for any
/// other line.
pub(super) fn parse_line(line: &str) -> Option<OmittedAmount> {
    let line = line.trim_end_matches(['\n', '\r']);
    let (inside, behind) = line.strip_prefix(MARKER_START)?.split_once(MARKER_END)?;
    let names_way =
        |way: ReadMethod| behind.strip_prefix(' ').is_some_and(|behind| behind.starts_with(way.prefix()));
    if !behind.is_empty() && !ReadMethod::ALL.into_iter().any(names_way) {
        return None;
    }
    let Some((lines, chars)) = inside.split_once(" (") else {
        let chars = inside.strip_suffix(" characters").and_then(parse_grouped)?;
        return Some(OmittedAmount { lines: 0, chars });
    };
    let (lines, word) = lines.split_once(' ')?;
    let chars = chars.strip_suffix(" characters)")?;
    (word == "lines" || word == "line").then_some(())?;
    Some(OmittedAmount { lines: parse_grouped(lines)?, chars: parse_grouped(chars)? })
}

/// The JSON value that replaces omitted items, lines or members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OmissionValue {
    pub(super) items: u64,
    pub(super) of: u64,
    pub(super) handle: Option<String>,
}

impl OmissionValue {
    /// Parses a marker of an earlier capping, `{"endmark_omitted": {"items": …, "of": …}}`. Returns `None`
    /// for any other JSON.
    pub(super) fn read(json: &str) -> Option<Self> {
        if !json.contains(OMITTED) {
            return None;
        }
        let value: Value = serde_json::from_str(json).ok()?;
        let object = value.as_object().filter(|object| object.len() == 1)?;
        Self::from_value(object.get(OMITTED)?)
    }

    /// Parses the value of the marker's key.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        let handle = value.get("handle").and_then(Value::as_str).map(str::to_owned);
        Some(Self { items: value.get("items")?.as_u64()?, of: value.get("of")?.as_u64()?, handle })
    }

    /// Returns the marker as a member of an object: key and value.
    pub(super) fn member(&self) -> String {
        let handle = self
            .handle
            .as_ref()
            .map_or_else(|| "null".to_owned(), |handle| Value::from(handle.as_str()).to_string());
        format!(r#""{OMITTED}": {{"items": {}, "of": {}, "handle": {handle}}}"#, self.items, self.of)
    }

    /// Returns the marker as an item of an array or a line of JSON Lines.
    pub(super) fn item(&self) -> String {
        format!("{{{}}}", self.member())
    }
}

/// Formats a number with commas between groups of three digits.
pub(super) fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn parse_grouped(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_round_trip() {
        for (lines, chars, text) in [
            (1_234, 56_789, "[… 1,234 lines (56,789 characters) left out …]"),
            (0, 1_000_000, "[… 1,000,000 characters left out …]"),
            (1, 100, "[… 1 line (100 characters) left out …]"),
        ] {
            let left_out = OmittedAmount { lines, chars };
            assert_eq!(text_marker(left_out), text);
            for way in ReadMethod::ALL {
                assert_eq!(parse_line(&format!("{text}{}\r\n", read_hint("h1", way))), Some(left_out));
            }
            assert_eq!(parse_line(text), Some(left_out));
        }
        for other in
            ["", "[… many lines (1 characters) left out …]", "[… 1 line (1 characters) left out …], he said"]
        {
            assert_eq!(parse_line(other), None, "{other}");
        }
        let omitted = OmissionValue { items: 10_500, of: 11_000, handle: Some("h1".to_owned()) };
        assert_eq!(omitted.item(), r#"{"endmark_omitted": {"items": 10500, "of": 11000, "handle": "h1"}}"#);
        assert_eq!(OmissionValue::read(&omitted.item()), Some(omitted));
        assert_eq!(OmissionValue::read(r#"{"endmark_omitted": 1}"#), None);
    }
}
