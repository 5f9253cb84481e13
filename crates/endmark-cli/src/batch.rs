//! JSON Lines in, JSON Lines out: one answer per line, in order, written as soon as it is ready.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use endmark_failure::{CommandError, ExitStatus};
use endmark_text::detect::detect_strict;
use endmark_text::{Format, Verdict};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::input::{Input, Line};
use crate::view::terminal::JsonOutput;

/// The longest line that is read. A longer line is answered with an error and skipped.
const MAX_LINE_BYTES: u64 = 1 << 30;

/// The answer to one line.
pub(crate) struct LineAnswer {
    /// The line of the answer, without its newline.
    pub(crate) json: String,
    /// Whether the answer is positive. A negative one makes the exit code 1.
    pub(crate) is_yes: bool,
}

/// Why one line cannot be answered. Other lines are unaffected.
#[derive(Debug, PartialEq)]
pub(crate) struct LineError {
    /// The `id` of the line, or null if it cannot be read.
    pub(crate) id: Value,
    pub(crate) message: String,
}

impl LineError {
    fn without_id(message: impl Into<String>) -> Self {
        Self { id: Value::Null, message: message.into() }
    }

    fn to_json(&self) -> String {
        json!({"id": self.id, "error": {"code": "invalid_line", "message": self.message}}).to_string()
    }
}

/// A field that a request may have. Unknown fields are ignored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Field {
    /// An optional string.
    Text(&'static str),
    /// A required list of strings.
    Texts(&'static str),
    /// An optional list of strings.
    OptionalTexts(&'static str),
    /// An optional boolean.
    Flag(&'static str),
    /// An optional number.
    Count(&'static str),
}

impl Field {
    /// Returns the problem with this field if its value is invalid.
    fn problem(self, object: &Map<String, Value>) -> Option<String> {
        match self {
            Self::Text(name) => match object.get(name) {
                None | Some(Value::Null | Value::String(_)) => None,
                Some(_) => Some(format!("`{name}` must be a string")),
            },
            Self::Texts(name) => match object.get(name) {
                Some(Value::Array(items)) if items.iter().all(Value::is_string) => None,
                Some(_) => Some(format!("`{name}` must be a list of strings")),
                None => Some(format!("`{name}` is missing")),
            },
            Self::OptionalTexts(name) => match object.get(name) {
                None | Some(Value::Null) => None,
                Some(_) => Self::Texts(name).problem(object),
            },
            Self::Flag(name) => match object.get(name) {
                None | Some(Value::Null | Value::Bool(_)) => None,
                Some(_) => Some(format!("`{name}` must be true or false")),
            },
            Self::Count(name) => match object.get(name) {
                None | Some(Value::Null) => None,
                Some(number) if number.is_u64() => None,
                Some(_) => Some(format!("`{name}` must be a whole number, 0 or more")),
            },
        }
    }
}

/// Reads a line as a request: a JSON object with these fields.
pub(crate) fn parse_request<'a, R: Deserialize<'a>>(line: &'a str, fields: &[Field]) -> Result<R, LineError> {
    // serde would read an array as the fields in declaration order, and that order is not documented.
    if !line.trim_start().starts_with('{') {
        return Err(LineError::without_id("the line is not a JSON object"));
    }
    serde_json::from_str(line)
        .map_err(|error| LineError { id: read_id(line), message: explain_unreadable(line, fields, &error) })
}

/// Returns the input of a line: its `text` unchanged, or its decoded `base64`. The error describes an invalid
/// line.
pub(crate) fn decode_raw<'a>(text: Option<&'a str>, base64: Option<&str>) -> Result<Cow<'a, [u8]>, String> {
    match (text, base64) {
        (Some(text), None) => Ok(Cow::Borrowed(text.as_bytes())),
        (None, Some(base64)) => {
            let decoded = STANDARD.decode(base64);
            decoded.map(Cow::Owned).map_err(|error| format!("`base64` cannot be decoded: {error}"))
        }
        (Some(_), Some(_)) => Err("`text` and `base64` exclude each other".to_owned()),
        (None, None) => Err("`text` is missing, and so is `base64`".to_owned()),
    }
}

/// Returns the id of a line that is an object, even if its other fields cannot be read.
fn read_id(line: &str) -> Value {
    #[derive(Deserialize)]
    struct WithId {
        id: Value,
    }
    serde_json::from_str::<WithId>(line).map(|line| line.id).unwrap_or_default()
}

/// Explains why an object could not be read as a request.
fn explain_unreadable(line: &str, fields: &[Field], error: &serde_json::Error) -> String {
    match detect_strict(line.as_bytes(), &Format::Json).verdict {
        Verdict::Malformed { index, reason } => format!("the line is not JSON: byte {index}: {reason}"),
        Verdict::Truncated(_) => "the line is not JSON: it is cut off".to_owned(),
        Verdict::Whole => match serde_json::from_str::<Map<String, Value>>(line) {
            Ok(object) => fields
                .iter()
                .find_map(|field| field.problem(&object))
                .unwrap_or_else(|| "a field occurs twice".to_owned()),
            Err(_) => format!("the line cannot be read beyond byte {}", error.column()),
        },
    }
}

/// Answers every line of the input on standard output. A failing line does not stop the next one.
///
/// The exit code is 2 if any line was invalid, otherwise 1 if any answer was negative. Output is flushed as soon as
/// no more input is buffered, so that a dialogue over two pipes does not hang.
pub(crate) fn run(
    mut input: Input,
    mut answer: impl FnMut(&str) -> Result<LineAnswer, LineError>,
) -> Result<ExitStatus, CommandError> {
    let mut output = JsonOutput::new(BufWriter::new(io::stdout().lock()));
    let (mut line, mut has_invalid, mut has_no) = (Vec::new(), false, false);
    while let Some(read) = input.read_line(MAX_LINE_BYTES, &mut line)? {
        let answered = match (read, str::from_utf8(&line)) {
            (Line::TooLong, _) => {
                Err(LineError::without_id(format!("the line is over {MAX_LINE_BYTES} bytes")))
            }
            (Line::Complete, Ok(line)) => answer(line),
            (Line::Complete, Err(_)) => Err(LineError::without_id("the line is not UTF-8")),
        };
        has_invalid |= answered.is_err();
        has_no |= answered.as_ref().is_ok_and(|answer| !answer.is_yes);
        let json = answered.map_or_else(|error| error.to_json(), |answer| answer.json);
        writeln!(output, "{json}").map_err(CommandError::Write)?;
        if input.may_block() {
            output.flush().map_err(CommandError::Write)?;
        }
    }
    output.flush().map_err(CommandError::Write)?;
    Ok(match (has_invalid, has_no) {
        (true, _) => ExitStatus::Usage,
        (false, true) => ExitStatus::Negative,
        (false, false) => ExitStatus::Success,
    })
}
