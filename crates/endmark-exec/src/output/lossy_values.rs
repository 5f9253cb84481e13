//! Reports values that parsing cannot represent: digits beyond 64 bits or beyond the precision of
//! floating-point numbers, numbers out of range, and repeated names in an object. (EN-2)

use std::ops::Range;

use endmark_envelope::{FieldPath, Warning};
use endmark_text::json::string_end;
use serde_json::Value;

/// Code of the warning that numbers lost digits.
const NUMBER_ROUNDED: &str = "NUMBER_ROUNDED";
/// Code of the warning that numbers are returned as strings.
const NUMBER_AS_TEXT: &str = "NUMBER_AS_TEXT";
/// Code of the warning that only the last value of a repeated name was kept.
const DUPLICATE_NAMES: &str = "DUPLICATE_NAMES";
/// This many significant digits identify any 64-bit floating-point number.
const FLOAT_DIGITS: usize = 17;
/// Maximum number of digits that a warning shows of a number.
const SHOWN_DIGITS: usize = 40;

/// Returns a warning for each kind of loss. `value` is the result of parsing `json`.
pub(super) fn loss_warnings(json: &str, value: &Value) -> Vec<Warning> {
    let found = JsonTokens::new(json);
    let rounded = found.first_rounded.map(|first| {
        let shown = &first[..first.len().min(SHOWN_DIGITS)];
        let who = match found.rounded {
            1 => "one number has".to_owned(),
            count => format!("{count} numbers have"),
        };
        data_warning(
            NUMBER_ROUNDED,
            format!("{who} more digits than are kept; the first begins with {shown}"),
        )
    });
    let as_text = found.out_of_range.first().map(|first| {
        let who = match found.out_of_range.len() {
            1 => "one number is".to_owned(),
            count => format!("{count} numbers are"),
        };
        let shown = &json[first.start..first.end.min(first.start + SHOWN_DIGITS)];
        let message = format!(
            "{who} too large for a floating-point number, and returned as text; the first begins with {shown}"
        );
        Warning { field: Some(FieldPath::data()), ..Warning::notice(NUMBER_AS_TEXT, message) }
    });
    let duplicates = found.names.saturating_sub(count_members(value));
    let duplicates = (duplicates > 0).then(|| {
        let who = match duplicates {
            1 => "one member has".to_owned(),
            count => format!("{count} members have"),
        };
        data_warning(
            DUPLICATE_NAMES,
            format!("{who} a name that is repeated in the same object; the last value counts"),
        )
    });
    rounded.into_iter().chain(as_text).chain(duplicates).collect()
}

/// Returns the JSON text with numbers that are out of range replaced by strings. Some databases write such
/// numbers for infinity. Returns `None` if there are no such numbers.
pub(super) fn with_out_of_range_as_text(json: &str) -> Option<String> {
    let infinite = JsonTokens::new(json).out_of_range;
    let mut text = String::with_capacity(json.len() + 2 * infinite.len());
    let mut behind = 0;
    for number in &infinite {
        text.push_str(&json[behind..number.start]);
        text.push('"');
        text.push_str(&json[number.clone()]);
        text.push('"');
        behind = number.end;
    }
    text.push_str(&json[behind..]);
    (!infinite.is_empty()).then_some(text)
}

/// Returns a warning about values anywhere in the data.
fn data_warning(code: &str, message: String) -> Warning {
    Warning { field: Some(FieldPath::data()), ..Warning::truncation(code, message) }
}

/// Returns the total number of members of all objects in a value.
fn count_members(value: &Value) -> u64 {
    let mut count = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                count += u64::try_from(members.len()).unwrap_or(u64::MAX);
                open.extend(members.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    count
}

/// Counts numbers and names in a JSON text. The counts are meaningless if the text is not valid JSON.
#[derive(Debug, Default)]
struct JsonTokens<'a> {
    /// How many numbers lose digits.
    rounded: u64,
    first_rounded: Option<&'a str>,
    /// The byte ranges of numbers that are out of range.
    out_of_range: Vec<Range<usize>>,
    /// The number of names of members.
    names: u64,
}

impl<'a> JsonTokens<'a> {
    fn new(json: &'a str) -> Self {
        let mut found = Self::default();
        let mut rest = json;
        while let Some(at) = rest.find(|character: char| character == '"' || character.is_ascii_digit()) {
            let (before, token) = rest.split_at(at);
            if token.starts_with('"') {
                rest = skip_string(token);
                found.names += u64::from(rest.trim_ascii_start().starts_with(':'));
            } else {
                // The range includes the sign, which is one byte.
                let begin = at - usize::from(before.ends_with('-'));
                rest = found.read_number(&rest[begin..], json.len() - rest.len() + begin);
            }
        }
        found
    }

    /// Counts the number at the start of `text`, and returns the text after it.
    fn read_number(&mut self, text: &'a str, place: usize) -> &'a str {
        let is_part = |character: char| character.is_ascii_digit() || "+-.eE".contains(character);
        let end = text.find(|character| !is_part(character)).unwrap_or(text.len());
        let (number, after) = text.split_at(end);
        if number.parse().is_ok_and(f64::is_infinite) {
            self.out_of_range.push(place..place + end);
        } else if is_rounded(number) {
            self.first_rounded = self.first_rounded.or(Some(number));
            self.rounded += 1;
        }
        after
    }
}

/// Whether a JSON number loses digits when it is parsed. Integers have at most 64 bits, and other numbers the
/// precision of floating point.
fn is_rounded(number: &str) -> bool {
    let digits = number.trim_start_matches('-');
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.parse::<i64>().is_err() && number.parse::<u64>().is_err();
    }
    let mantissa = digits.split(['e', 'E']).next().unwrap_or(digits);
    let mantissa = mantissa.replace('.', "");
    mantissa.trim_matches('0').len() > FLOAT_DIGITS
}

/// Returns the text after the string that starts here.
fn skip_string(text: &str) -> &str {
    string_end(text.as_bytes(), 0).and_then(|end| text.get(end..)).unwrap_or_default()
}
