//! JSON Lines in, JSON Lines out: one answer a line, in order, as it comes.

use std::io::{self, BufWriter, Write};

use serde_json::{Value, json};

use crate::error::CommandError;
use crate::exit::Exit;
use crate::input::{Input, Line};

/// The longest line that is read; a longer one is answered with an error and skipped.
const MAX_LINE_BYTES: u64 = 1 << 30;

/// The answer to one line.
pub(crate) struct LineAnswer {
    /// The line of the answer, without its newline.
    pub(crate) json: String,
    /// Whether the answer is yes.
    pub(crate) is_yes: bool,
}

/// Why one line cannot be answered; the others are not touched by it.
#[derive(Debug, PartialEq)]
pub(crate) struct LineError {
    /// The line's own id, where it can be read.
    pub(crate) id: Value,
    pub(crate) message: String,
}

impl LineError {
    /// Why a line with this text cannot be answered.
    pub(crate) fn of_line(line: &str, message: impl Into<String>) -> Self {
        let id =
            serde_json::from_str::<Value>(line).ok().and_then(|mut line| line.get_mut("id").map(Value::take));
        Self { id: id.unwrap_or_default(), message: message.into() }
    }

    fn nameless(message: impl Into<String>) -> Self {
        Self { id: Value::Null, message: message.into() }
    }

    fn to_json(&self) -> String {
        json!({"id": self.id, "error": {"code": "invalid_line", "message": self.message}}).to_string()
    }
}

/// Answers every line of the input on standard output; no line keeps the next from being answered.
///
/// The exit code is 2 if a line was invalid, else 1 if an answer was no. What is answered is written out as
/// soon as nothing more waits to be read, so that a conversation over two pipes does not hang.
pub(crate) fn run(
    mut input: Input,
    mut answer: impl FnMut(&str) -> Result<LineAnswer, LineError>,
) -> Result<Exit, CommandError> {
    let mut output = BufWriter::new(io::stdout().lock());
    let (mut line, mut has_invalid, mut has_no) = (Vec::new(), false, false);
    while let Some(read) = input.line(MAX_LINE_BYTES, &mut line)? {
        let answered = match (read, str::from_utf8(&line)) {
            (Line::TooLong, _) => {
                Err(LineError::nameless(format!("the line is over {MAX_LINE_BYTES} bytes")))
            }
            (Line::Complete, Ok(line)) => answer(line),
            (Line::Complete, Err(_)) => Err(LineError::nameless("the line is not UTF-8")),
        };
        has_invalid |= answered.is_err();
        has_no |= answered.as_ref().is_ok_and(|answer| !answer.is_yes);
        let json = answered.map_or_else(|error| error.to_json(), |answer| answer.json);
        writeln!(output, "{json}").map_err(CommandError::Write)?;
        if input.may_wait() {
            output.flush().map_err(CommandError::Write)?;
        }
    }
    output.flush().map_err(CommandError::Write)?;
    Ok(match (has_invalid, has_no) {
        (true, _) => Exit::Usage,
        (false, true) => Exit::No,
        (false, false) => Exit::Success,
    })
}
