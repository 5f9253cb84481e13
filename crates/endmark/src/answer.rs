//! What a command answers, for people and for programs at once.

use endmark_envelope::{ErrorBody, Warning};
use serde_json::Value;

use crate::exit::Exit;

/// What a command came to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// An answer that is still to be shown, in the form that was asked for.
    Answer(Answer),
    /// The answers are on standard output already.
    Streamed(Exit),
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

/// An answer that is still to be shown.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The `data` of the envelope (EN-1).
    pub(crate) data: Value,
    /// What stands on standard output for people; a newline at its end is kept as it is.
    pub(crate) text: String,
    /// Why the answer is no, if it is.
    pub(crate) refusal: Option<Refusal>,
    pub(crate) warnings: Vec<Warning>,
}

/// Why the answer is no (exit code 1).
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Whether the text says it already, so that it need not be said again on standard error.
    pub(crate) is_in_text: bool,
}

impl Answer {
    /// The answer yes.
    pub(crate) fn yes(data: Value, text: impl Into<String>) -> Self {
        Self { data, text: text.into(), refusal: None, warnings: Vec::new() }
    }

    /// The answer no, said by the text itself.
    pub(crate) fn no_in_text(
        data: Value,
        text: impl Into<String>,
        code: &str,
        message: impl Into<String>,
    ) -> Self {
        let refusal =
            Refusal { code: code.to_owned(), message: message.into(), hint: None, is_in_text: true };
        Self { refusal: Some(refusal), ..Self::yes(data, text) }
    }

    /// The answer no, said on standard error; standard output stays empty.
    pub(crate) fn no(data: Value, code: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        let refusal = Refusal { code: code.to_owned(), message: message.into(), hint, is_in_text: false };
        Self { refusal: Some(refusal), ..Self::yes(data, String::new()) }
    }

    /// The same answer with these warnings.
    pub(crate) fn with_warnings(mut self, warnings: impl IntoIterator<Item = Warning>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// How the process ends with this answer.
    pub(crate) fn exit(&self) -> Exit {
        if self.refusal.is_some() { Exit::No } else { Exit::Success }
    }
}

impl Refusal {
    /// The same for an envelope and for standard error.
    pub(crate) fn body(&self) -> ErrorBody {
        let body = ErrorBody::new(self.code.as_str(), Exit::No.code(), self.message.as_str());
        match &self.hint {
            Some(hint) => body.with_hint(hint.as_str()),
            None => body,
        }
    }
}
