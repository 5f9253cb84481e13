//! The answer of a command, for both people and programs.

use std::ffi::OsString;
use std::time::Duration;

use endmark_envelope::{
    DEFAULT_MAX_RESPONSE_BYTES, Document, Envelope, ErrorBody, FieldPath, FieldRules, Warning,
};
use endmark_exec::{PageRequest, paginate_and_cap};
use endmark_failure::{CommandError, ExitStatus};
use serde::Serialize;
use serde_json::Value;

/// Converts the data of an answer to JSON.
pub(crate) fn to_data(data: &impl Serialize) -> Result<Value, CommandError> {
    serde_json::to_value(data).map_err(|error| CommandError::Bug(error.to_string()))
}

/// The result of a command.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// An answer that must still be shown, in the requested form.
    Answer(Box<Answer>),
    /// The answers are already on standard output.
    Streamed(ExitStatus),
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self::Answer(Box::new(answer))
    }
}

/// An answer that must still be shown.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The `data` of the envelope (EN-1).
    pub(crate) data: Value,
    /// The text for standard output if `--json` is not set. A newline at its end is preserved.
    pub(crate) text: String,
    /// The reason if the answer is negative.
    pub(crate) refusal: Option<Refusal>,
    pub(crate) warnings: Vec<Warning>,
    /// Rules for the fields of the data (EN-3).
    pub(crate) rules: FieldRules,
    /// Maximum size of the envelope in bytes (EN-5).
    pub(crate) max_response_bytes: usize,
    /// The list that is split into pages if the envelope would be larger (EN-5).
    pub(crate) pages: Option<PagedList>,
}

/// A list of an answer that is split into pages, and the requested page.
#[derive(Debug)]
pub(crate) struct PagedList {
    pub(crate) list: FieldPath,
    /// The identity of the request. A cursor of another request is rejected.
    pub(crate) identity: Vec<OsString>,
    /// The cursor from the previous page, or `None` for the first page.
    pub(crate) cursor: Option<String>,
}

/// Why the answer is negative or incomplete.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: ErrorBody,
    /// Whether the text already states the error, so that it is not repeated on standard error.
    pub(crate) is_in_text: bool,
}

impl Answer {
    /// Returns a positive answer. Its data comes from Endmark itself, so no upstream can have cut it.
    pub(crate) fn yes(data: Value, text: impl Into<String>) -> Self {
        Self {
            data,
            text: text.into(),
            refusal: None,
            warnings: Vec::new(),
            rules: FieldRules::exact(),
            max_response_bytes: DEFAULT_MAX_RESPONSE_BYTES,
            pages: None,
        }
    }

    /// Returns a negative answer whose text already states the reason.
    pub(crate) fn no_in_text(
        data: Value,
        text: impl Into<String>,
        code: &str,
        message: impl Into<String>,
    ) -> Self {
        let error = ErrorBody::new(code, ExitStatus::Negative.code(), message);
        Self { refusal: Some(Refusal { error, is_in_text: true }), ..Self::yes(data, text) }
    }

    /// Returns a negative answer whose reason goes to standard error. Standard output stays empty.
    pub(crate) fn no(data: Value, code: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        let error = ErrorBody { hint, ..ErrorBody::new(code, ExitStatus::Negative.code(), message) };
        Self::yes(data, String::new()).with_error(error)
    }

    /// Adds a hint on what to do next, if the answer is negative.
    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        if let Some(refusal) = &mut self.refusal {
            refusal.error.hint = Some(hint.to_owned());
        }
        self
    }

    /// Adds this error as the reason, which is also written to standard error.
    pub(crate) fn with_error(self, error: ErrorBody) -> Self {
        Self { refusal: Some(Refusal { error, is_in_text: false }), ..self }
    }

    /// Adds these warnings.
    pub(crate) fn with_warnings(mut self, warnings: impl IntoIterator<Item = Warning>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Splits this list into pages.
    pub(crate) fn with_pages(self, pages: PagedList) -> Self {
        Self { pages: Some(pages), ..self }
    }

    /// Returns the exit code for this answer.
    pub(crate) fn exit(&self) -> ExitStatus {
        self.refusal
            .as_ref()
            .map_or(ExitStatus::Success, |refusal| ExitStatus::from_code(refusal.error.exit_code))
    }

    /// Builds the envelope, checked for cuts and capped in size (EN-3, EN-5).
    pub(crate) fn document(&self, duration: Duration) -> Result<Document, CommandError> {
        let envelope = match &self.refusal {
            Some(refusal) => Envelope::refusal(&self.data, refusal.error.clone()),
            None => Envelope::success(&self.data),
        };
        let envelope = envelope
            .with_warnings(self.warnings.iter().cloned())
            .with_duration(duration)
            .with_rules(self.rules.clone());
        let bug = |error: &dyn std::error::Error| CommandError::Bug(error.to_string());
        let Some(pages) = &self.pages else {
            let envelope = envelope.with_max_response_bytes(self.max_response_bytes);
            return envelope.document().map_err(|error| bug(&error));
        };
        let document =
            envelope.with_max_response_bytes(usize::MAX).document().map_err(|error| bug(&error))?;
        let paging = PageRequest {
            list: &pages.list,
            command: &pages.identity,
            cursor: pages.cursor.as_deref(),
            max_response_bytes: self.max_response_bytes,
        };
        paginate_and_cap(document, &paging).or_else(|error| {
            let refusal = Envelope::refusal(&Value::Null, error.into()).with_duration(duration);
            refusal.document().map_err(|error| bug(&error))
        })
    }
}
