//! The envelope itself.

use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::{ErrorBody, Warning, WarningKind};

/// One answer of a command: all five members are always there (EN-1).
///
/// ```
/// use endmark_envelope::{Envelope, ErrorBody};
///
/// let answer = Envelope::success(vec![1, 2]);
/// assert_eq!(
///     answer.to_json().unwrap(),
///     r#"{"ok":true,"data":[1,2],"error":null,"warnings":[],"meta":{"truncated":false,"duration_ms":0}}"#
/// );
///
/// let answer = Envelope::<()>::failure(ErrorBody::new("not_found", 2, "no such file"));
/// assert!(!answer.is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Envelope<T> {
    ok: bool,
    data: Option<T>,
    error: Option<ErrorBody>,
    warnings: Vec<Warning>,
    meta: Meta,
}

/// What is known about the answer as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Meta {
    /// Whether anything is missing from the data; true exactly when a warning says what.
    pub truncated: bool,
    /// How long the command took, in milliseconds.
    pub duration_ms: u64,
}

impl<T> Envelope<T> {
    /// The answer of a command that did what it was asked.
    pub fn success(data: T) -> Self {
        Self { ok: true, data: Some(data), error: None, warnings: Vec::new(), meta: Meta::default() }
    }

    /// The answer of a command that did not.
    pub fn failure(error: ErrorBody) -> Self {
        Self { ok: false, data: None, error: Some(error), warnings: Vec::new(), meta: Meta::default() }
    }

    /// The answer of a command that has data to show and still says no: a verdict, a best attempt.
    pub fn refusal(data: T, error: ErrorBody) -> Self {
        Self { data: Some(data), ..Self::failure(error) }
    }

    /// The same answer with these warnings added.
    #[must_use]
    pub fn with_warnings(mut self, warnings: impl IntoIterator<Item = Warning>) -> Self {
        self.warnings.extend(warnings);
        self.meta.truncated = self.warnings.iter().any(|warning| warning.kind == WarningKind::Truncation);
        self
    }

    /// The same answer with the time it took.
    #[must_use]
    pub fn with_duration(mut self, duration: Duration) -> Self {
        self.meta.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Whether the command did what it was asked: true exactly when there is no error.
    pub fn is_ok(&self) -> bool {
        self.ok
    }
}

impl<T: Serialize> Envelope<T> {
    /// The envelope as one JSON document on one line. Fails only if `T` cannot be JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Writes the envelope as one JSON document on one line.
    ///
    /// It is serialised whole before the first byte is written, so that data which cannot be JSON
    /// leaves no partial document behind (EN-1).
    pub fn write_to(&self, writer: &mut dyn io::Write) -> io::Result<()> {
        let mut document = self.to_json()?;
        document.push('\n');
        writer.write_all(document.as_bytes())?;
        writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(envelope: &Envelope<i32>) -> serde_json::Value {
        serde_json::from_str(&envelope.to_json().unwrap()).unwrap()
    }

    #[test]
    fn all_five_members_are_there_whatever_happened() {
        let failed = ErrorBody::new("no", 1, "it is not").with_hint("Try again.");
        for envelope in [
            Envelope::success(7),
            Envelope::failure(failed.clone()),
            Envelope::refusal(7, failed)
                .with_warnings([Warning::notice("ODD", "this is odd")])
                .with_duration(Duration::from_millis(12)),
        ] {
            let document = members(&envelope);
            let names: Vec<&String> = document.as_object().unwrap().keys().collect();
            assert_eq!(names, ["ok", "data", "error", "warnings", "meta"]);
            assert_eq!(document["ok"], document["error"].is_null());
        }
    }

    #[test]
    fn a_truncation_warning_is_disclosed_in_meta_and_a_notice_is_not() {
        let notice = Envelope::success(1).with_warnings([Warning::notice("ODD", "odd")]);
        assert_eq!(members(&notice)["meta"]["truncated"], false);
        let cut = notice.with_warnings([Warning::truncation("FIELD_TRUNCATED", "shortened")]);
        assert_eq!(members(&cut)["meta"]["truncated"], true);
        assert_eq!(members(&cut)["warnings"][1]["kind"], "TRUNCATION");
    }

    #[test]
    fn what_cannot_be_json_leaves_nothing_behind() {
        let mut written = Vec::new();
        let unserialisable = std::collections::BTreeMap::from([(vec![1], 2)]);
        assert!(Envelope::success(unserialisable).write_to(&mut written).is_err());
        assert!(written.is_empty());
    }
}
