//! Routes output: answers go to standard output, everything else to standard error.

mod json_output;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use endmark_config::Environment;
use endmark_envelope::{AnswerRight, Envelope, ErrorBody, Warning, WriteError};
use endmark_failure::{CommandError, ExitStatus, escape_control};

use crate::arguments::ColorChoice;
use crate::view::answer::Answer;
use crate::view::paint::{COLOURS, Paint, Painter};
use crate::view::table::Layout;
use crate::{logging, standard_error};

pub(crate) use json_output::JsonOutput;

/// How answers, errors and progress are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Write one JSON envelope to standard output instead of readable text.
    pub(crate) json: bool,
    /// Show no progress and no warnings.
    pub(crate) quiet: bool,
    /// Colours for standard output.
    pub(crate) output: Painter,
    /// Colours for standard error.
    pub(crate) errors: Painter,
}

impl Terminal {
    /// Reads the flags and the environment.
    pub(crate) fn new(json: bool, quiet: bool, color: ColorChoice, environment: &Environment) -> Self {
        Self {
            json,
            quiet,
            output: Painter::new(color, io::stdout().is_terminal(), environment),
            errors: Painter::new(color, io::stderr().is_terminal(), environment),
        }
    }

    /// Returns the table layout for standard output.
    pub(crate) fn table_layout(self) -> Layout {
        Layout { painter: self.output, width: columns() }
    }

    /// Shows an answer in the requested form, and returns the exit code.
    pub(crate) fn show(self, answer: &Answer, duration: Duration) -> Result<ExitStatus, CommandError> {
        if self.json {
            let document = answer.document(duration)?;
            let exit = ExitStatus::from_code(document.exit_code());
            // If a signal handler is answering, this waits until the process ends. Claim the right to answer before locking
            // standard output, or both would deadlock.
            let _right = AnswerRight::claim_or_wait();
            return exit_after_write(document.write_to(&mut JsonOutput::new(io::stdout().lock())), exit);
        }
        let text = if io::stdout().is_terminal() {
            Cow::Owned(prepare_for_terminal(&answer.text))
        } else {
            Cow::Borrowed(answer.text.as_str())
        };
        let mut output = io::stdout().lock();
        output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(CommandError::Write)?;
        for warning in &answer.warnings {
            let field = warning.field.as_ref().map(|field| format!("`{field}`: ")).unwrap_or_default();
            // The marker in the text may have been too short for the handle.
            let way = warning.handle.as_ref().map(|handle| format!("; full output: `endmark read {handle}`"));
            self.warn(&format!("{field}{}{}", warning.message, way.unwrap_or_default()));
        }
        if let Some(refusal) = answer.refusal.as_ref().filter(|refusal| !refusal.is_in_text) {
            self.report_error(&refusal.error);
        }
        Ok(answer.exit())
    }

    /// Shows an error in the requested form, and returns the exit code.
    pub(crate) fn show_error(
        self,
        error: &CommandError,
        warnings: Vec<Warning>,
        duration: Duration,
    ) -> ExitStatus {
        let exit = error.exit();
        if exit == ExitStatus::Success {
            return exit;
        }
        // After a partly written answer, a second one would make the output worse.
        let is_output_lost = matches!(error, CommandError::Write(_) | CommandError::Partial(_));
        if !self.json || is_output_lost {
            // The user who pressed the key already knows.
            if exit != ExitStatus::Interrupted {
                self.report_error(&error.body());
            }
            return exit;
        }
        let envelope = Envelope::<()>::failure(error.body()).with_warnings(warnings).with_duration(duration);
        let _right = AnswerRight::claim_or_wait();
        match envelope.write_to(&mut JsonOutput::new(io::stdout().lock())) {
            Err(failed) if !failed.is_unread() => self.report_error(&error.body()),
            Ok(()) | Err(_) => {}
        }
        exit
    }

    /// Reports progress, unless quiet.
    pub(crate) fn progress(self, message: &str) {
        match self.quiet {
            true => {}
            false if logging::is_json_log() => tracing::info!("{message}"),
            false => print_message(message),
        }
    }

    /// Shows a warning, unless quiet or already in the envelope.
    pub(crate) fn warn(self, message: &str) {
        match self.quiet {
            true => {}
            false if logging::is_json_log() => tracing::warn!("{message}"),
            false if self.json => {}
            false => print_message(&format!("{} {message}", self.errors.paint(Paint::Doubt, "warning:"))),
        }
    }

    fn report_error(self, body: &ErrorBody) {
        if logging::is_json_log() {
            tracing::error!(hint = body.hint, "{}", body.message);
            return;
        }
        let mut text = format!("{} {}", self.errors.paint(Paint::Bad, "error:"), body.message);
        if let Some(hint) = &body.hint {
            text.extend(["\n", &self.errors.paint(Paint::Strong, "hint:"), " ", hint]);
        }
        print_message(&text);
    }
}

/// Returns the width of the terminal on standard output, if it is a terminal that reports one.
pub(crate) fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

/// Returns the height of the terminal on standard output. Some terminals report only their width.
pub(crate) fn lines() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_row > 0).then(|| size.ws_row.into())
}

/// Returns the exit code after an envelope was written, or could not be written.
///
/// A reader that closed before the first byte does not want the envelope, which is not an error. A reader must not
/// take a partial envelope for an answer (EN-1).
fn exit_after_write(result: Result<(), WriteError>, exit: ExitStatus) -> Result<ExitStatus, CommandError> {
    match result {
        Ok(()) => Ok(exit),
        Err(error) if error.is_unread() => Ok(exit),
        Err(error) => Err(CommandError::Partial(error)),
    }
}

/// Prepares a text for a terminal.
///
/// Only newlines, tabs and the colours of a [`Painter`] keep their effect. The text ends with a newline, so that the
/// prompt starts on a new line.
fn prepare_for_terminal(text: &str) -> String {
    let mut shown = escape_except_colours(text);
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    shown
}

/// Escapes everything that a terminal would act upon, except newlines, tabs and colours.
fn escape_except_colours(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let colour = COLOURS.iter().find(|colour| rest.starts_with(**colour));
        let length = colour.map_or(character.len_utf8(), |colour| colour.len());
        let (one, others) = rest.split_at(length);
        match character {
            _ if colour.is_some() => shown.push_str(one),
            '\n' | '\t' => shown.push(character),
            _ => shown.extend(escape_control(character)),
        }
        rest = others;
    }
    shown
}

/// Asks the user a question, even in quiet mode.
pub(crate) fn ask(question: &str) {
    print_message(question);
}

/// Writes one message to standard error.
fn print_message(message: &str) {
    standard_error::write(format!("{}\n", escape_except_colours(message)).into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_controls_in_model_text_are_escaped() {
        assert_eq!(
            prepare_for_terminal("\x1b[1;31ma\x1b[0m\tb\x1b[2J\x1b]0;x\x07"),
            "\x1b[1;31ma\x1b[0m\tb\\u{1b}[2J\\u{1b}]0;x\\u{7}\n"
        );
        assert_eq!(
            (prepare_for_terminal(""), prepare_for_terminal("a\n")),
            (String::new(), "a\n".to_owned())
        );
    }

    #[test]
    fn every_colour_is_recognised_in_shown_texts() {
        let painter = Painter::enabled_if(true);
        for paint in [Paint::Good, Paint::Bad, Paint::Doubt, Paint::Strong, Paint::Dim] {
            let text = painter.paint(paint, "a");
            assert_eq!(escape_except_colours(&text), text);
        }
    }
}
