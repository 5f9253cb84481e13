//! The reason why a call failed.

use serde::Serialize;
use serde_json::Value;

/// The reason why a call failed. Each language converts it to one of its exceptions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// The exception to which it is converted.
    pub kind: FailureKind,
    /// A stable code for programs.
    pub code: String,
    /// A message for people.
    pub message: String,
    /// Data of this kind of failure, for example the merged text of a rejected merge.
    pub details: Box<Value>,
    /// The options that the message names in back quotes. Each language spells them in its own way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The input that the message is about. The name of the input precedes the message.
    #[serde(skip)]
    pub(crate) input: Option<usize>,
}

/// The exception for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// An argument is not valid.
    Invalid,
    /// Two parts were not joined.
    Merge,
    /// A text is beyond repair, or is not of its format.
    Malformed,
    /// A budget does not admit a call.
    Budget,
    /// A bug in Endmark.
    Bug,
}

impl Failure {
    #[expect(clippy::needless_pass_by_value, reason = "most callers format a message in place")]
    pub(crate) fn new(kind: FailureKind, code: impl Into<String>, message: impl ToString) -> Self {
        Self {
            kind,
            code: code.into(),
            message: message.to_string(),
            details: Box::new(Value::Null),
            options: Vec::new(),
            input: None,
        }
    }

    pub(crate) fn invalid(code: &str, message: impl ToString) -> Self {
        Self::new(FailureKind::Invalid, code, message)
    }

    pub(crate) fn internal(detail: &str) -> Self {
        let message = format!("a bug in Endmark; please report it with the input that causes it: {detail}");
        Self::new(FailureKind::Bug, "bug", message)
    }

    /// Adds options that the message names in back quotes.
    pub(crate) fn about(self, options: &[&str]) -> Self {
        Self { options: options.iter().map(ToString::to_string).collect(), ..self }
    }

    pub(crate) fn for_input(self, index: usize) -> Self {
        Self { input: Some(index), ..self }
    }

    /// Adds the name of the input to the message.
    pub(crate) fn with_input_name(self, names: &[&str]) -> Self {
        let Some(index) = self.input else { return self };
        let name = names.get(index).or(names.last()).copied().unwrap_or("input");
        Self { message: format!("`{name}` {}", self.message), input: None, ..self }
    }

    pub(crate) fn with(self, details: Value) -> Self {
        Self { details: Box::new(details), ..self }
    }

    /// Returns the failure as a JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
