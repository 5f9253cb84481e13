//! Reports what parsed JSON values cannot represent. These are digits beyond 64 bits or beyond the precision
//! of floating-point numbers, numbers out of range, and repeated names in one object. (EN-2)

use std::ops::Range;

use endmark_envelope::{FieldPath, Warning};
use endmark_text::json::string_end;
use serde_json::Value;

/// The code of the warning that numbers lost digits.
const NUMBER_ROUNDED: &str = "NUMBER_ROUNDED";
/// The code of the warning that numbers are returned as strings.
const NUMBER_AS_TEXT: &str = "NUMBER_AS_TEXT";
/// The code of the warning that only the last value of a repeated name was kept.
const DUPLICATE_NAMES: &str = "DUPLICATE_NAMES";
/// This many digits distinguish any two 64-bit floating-point numbers.
const FLOAT_DIGITS: usize = 17;
/// Maximum digits of a number in a warning.
const SHOWN_DIGITS: usize = 40;

/// Returns a warning for each kind of loss when this JSON text was parsed into this value.
pub(super) fn loss_warnings(json: &str, value: &Value) -> Vec<Warning> {
    let found = Tokens::new(json);
    let rounded = found.first_large.map(|first| {
        let shown = &first[..first.len().min(SHOWN_DIGITS)];
        let who = match found.large {
            1 => "one number has".to_owned(),
            count => format!("{count} numbers have"),
        };
        data_warning(
            NUMBER_ROUNDED,
            format!("{who} more digits than are kept; the first begins with {shown}"),
        )
    });
    let as_text = found.infinite.first().map(|first| {
        let who = match found.infinite.len() {
            1 => "one number is".to_owned(),
            count => format!("{count} numbers are"),
        };
        let shown = &json[first.start..first.end.min(first.start + SHOWN_DIGITS)];
        let message = format!("{who} larger than a floating-point number can be, and given as text; the first begins with {shown}");
        Warning { field: Some(FieldPath::data()), ..Warning::notice(NUMBER_AS_TEXT, message) }
    });
    let duplicates = found.names.saturating_sub(members(value));
    let duplicates = (duplicates > 0).then(|| {
        let who = match duplicates {
            1 => "one member has".to_owned(),
            count => format!("{count} members have"),
        };
        data_warning(
            DUPLICATE_NAMES,
            format!("{who} a name that comes again in the same object; the last one counts"),
        )
    });
    rounded.into_iter().chain(as_text).chain(duplicates).collect()
}

/// Returns the JSON text with strings instead of numbers that are out of range, which some databases write
/// for infinity. Returns `None` for texts without such numbers.
pub(super) fn with_infinite_as_text(json: &str) -> Option<String> {
    let infinite = Tokens::new(json).infinite;
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

/// Creates a warning about a value anywhere in the data.
fn data_warning(code: &str, message: String) -> Warning {
    Warning { field: Some(FieldPath::data()), ..Warning::truncation(code, message) }
}

/// Returns the total number of members of all objects.
fn members(value: &Value) -> u64 {
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

/// Counts tokens in a JSON text. The counts are meaningless if the text is malformed.
#[derive(Debug, Default)]
struct Tokens<'a> {
    /// Numbers that lose digits.
    large: u64,
    first_large: Option<&'a str>,
    /// The ranges of numbers that are out of range for a floating-point number.
    infinite: Vec<Range<usize>>,
    /// The number of member names.
    names: u64,
}

impl<'a> Tokens<'a> {
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

    /// Counts the number at the beginning of the text, and returns the text after it.
    fn read_number(&mut self, text: &'a str, place: usize) -> &'a str {
        let is_part = |character: char| character.is_ascii_digit() || "+-.eE".contains(character);
        let end = text.find(|character| !is_part(character)).unwrap_or(text.len());
        let (number, after) = text.split_at(end);
        if number.parse().is_ok_and(f64::is_infinite) {
            self.infinite.push(place..place + end);
        } else if is_rounded(number) {
            self.first_large = self.first_large.or(Some(number));
            self.large += 1;
        }
        after
    }
}

/// Whether parsing this JSON number loses digits. Integers are limited to 64 bits, other numbers to the
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

/// Returns the text after the string that begins here.
fn skip_string(text: &str) -> &str {
    string_end(text.as_bytes(), 0).and_then(|end| text.get(end..)).unwrap_or_default()
}
