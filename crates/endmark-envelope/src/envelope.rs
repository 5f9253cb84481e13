//! The envelope itself.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer, ser};
use serde_json::Value;

use crate::cap::{DEFAULT_MAX_RESPONSE_BYTES, cap_with_rules};
use crate::detect::FieldRule;
use crate::document::{Document, WriteError};
use crate::error::ErrorBody;
use crate::limits::{Limits, declared};
use crate::path::{FieldPath, FieldPattern};
use crate::rules::FieldRules;
use crate::warning::Warning;

/// One answer of a command. All five members are always present (EN-1).
///
/// Serialising it detects data that a backend cut (EN-3), and shortens data that exceeds a limit (EN-5), with
/// a warning for each.
///
/// ```
/// use endmark_envelope::{Envelope, ErrorBody};
///
/// let answer = Envelope::success(vec!["whole", "cu [...]"]);
/// let answer: serde_json::Value = serde_json::from_str(&answer.to_json()?)?;
/// assert_eq!((&answer["ok"], &answer["meta"]["truncated"]), (&true.into(), &true.into()));
/// assert_eq!(answer["warnings"][0]["field"], "data[1]");
///
/// let answer = Envelope::<()>::failure(ErrorBody::new("not_found", 2, "no such file"));
/// assert!(!answer.is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope<T> {
    data: Option<T>,
    error: Option<ErrorBody>,
    warnings: Vec<Warning>,
    duration: Duration,
    rules: FieldRules,
    max_response_bytes: usize,
}

/// Facts about the whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Meta {
    /// Whether anything is missing from the data: true exactly if a warning reports it.
    pub truncated: bool,
    /// The duration of the command, in milliseconds.
    pub duration_ms: u64,
}

impl<T> Envelope<T> {
    fn new(data: Option<T>, error: Option<ErrorBody>) -> Self {
        Self {
            data,
            error,
            warnings: Vec::new(),
            duration: Duration::ZERO,
            rules: FieldRules::default(),
            max_response_bytes: DEFAULT_MAX_RESPONSE_BYTES,
        }
    }

    /// Creates the answer of a command that succeeded.
    pub fn success(data: T) -> Self {
        Self::new(Some(data), None)
    }

    /// Creates the answer of a command that failed.
    pub fn failure(error: ErrorBody) -> Self {
        Self::new(None, Some(error))
    }

    /// Creates the answer of a command that failed but still has data, such as a verdict or a best attempt.
    pub fn refusal(data: T, error: ErrorBody) -> Self {
        Self::new(Some(data), Some(error))
    }

    /// Adds warnings.
    #[must_use]
    pub fn with_warnings(mut self, warnings: impl IntoIterator<Item = Warning>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Sets the duration.
    #[must_use]
    pub fn with_duration(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    /// Adds a rule for these fields. Patterns begin with `data` (EN-3).
    #[must_use]
    pub fn with_rule(mut self, fields: FieldPattern, rule: FieldRule) -> Self {
        self.rules.add(fields, rule);
        self
    }

    /// Replaces the rules for all fields (EN-3).
    #[must_use]
    pub fn with_rules(self, rules: FieldRules) -> Self {
        Self { rules, ..self }
    }

    /// Sets the maximum size in bytes of the document on one line, including its newline (EN-5). The minimum
    /// is [`crate::MIN_RESPONSE_LIMIT_BYTES`], and the default is [`DEFAULT_MAX_RESPONSE_BYTES`].
    #[must_use]
    pub fn with_max_response_bytes(self, max_response_bytes: usize) -> Self {
        Self { max_response_bytes, ..self }
    }

    /// Returns whether the command succeeded, that is, whether there is no error.
    pub fn is_ok(&self) -> bool {
        self.error.is_none()
    }
}

impl<T: Limits> Envelope<T> {
    /// Creates the answer of a command that forwards a backend's data. Its rules are the declared limits of
    /// the fields. A field whose size is exactly its limit was probably cut (EN-3).
    pub fn from_backend(data: T) -> Self {
        Self::success(data).with_rules(declared::<T>())
    }
}

impl<T: Serialize> Envelope<T> {
    /// Returns the envelope in its final form. Cut values are detected and oversized texts are shortened,
    /// with a warning for each. Fails only if `T` cannot be serialised to JSON.
    pub fn document(&self) -> Result<Document, serde_json::Error> {
        let mut data = serde_json::to_value(&self.data)?;
        let mut warnings = self.warnings.clone();
        let known: HashSet<&FieldPath> = warnings.iter().filter_map(Warning::truncated_field).collect();
        let mut found = self.rules.mark_cuts(&mut data);
        found.retain(|found| found.truncated_field().is_none_or(|field| !known.contains(field)));
        warnings.extend(found);
        let duration_ms = u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX);
        let document = Document { data, error: self.error.clone(), warnings, duration_ms };
        Ok(cap_with_rules(document, self.max_response_bytes, &self.rules))
    }

    /// Converts the data to JSON, so that all commands of a program can return one type. The rules for its
    /// fields stay. Fails only if `T` cannot be serialised to JSON.
    pub fn into_json(self) -> Result<Envelope<Value>, serde_json::Error> {
        let Self { data, error, warnings, duration, rules, max_response_bytes } = self;
        let data = data.map(serde_json::to_value).transpose()?;
        Ok(Envelope { data, error, warnings, duration, rules, max_response_bytes })
    }

    /// Returns the envelope as one JSON document on one line. Fails only if `T` cannot be serialised to JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        self.document().map(|document| document.to_json())
    }

    /// Writes the envelope as one JSON document on one line. Writes nothing if the data cannot be serialised
    /// to JSON (EN-1).
    pub fn write_to(&self, writer: &mut dyn io::Write) -> Result<(), WriteError> {
        let document =
            self.document().map_err(|error| WriteError { written: 0, source: io::Error::other(error) })?;
        document.write_to(writer)
    }
}

impl<T: Serialize> Serialize for Envelope<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document().map_err(ser::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(envelope: &Envelope<i32>) -> Value {
        serde_json::from_str(&envelope.to_json().unwrap()).unwrap()
    }

    #[test]
    fn all_five_members_are_always_present() {
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
    fn a_truncation_warning_sets_meta_but_a_notice_does_not() {
        let notice = Envelope::success(1).with_warnings([Warning::notice("ODD", "odd")]);
        assert_eq!(members(&notice)["meta"]["truncated"], false);
        let cut = notice.with_warnings([Warning::truncation("FIELD_TRUNCATED", "shortened")]);
        assert_eq!(members(&cut)["meta"]["truncated"], true);
        assert_eq!(members(&cut)["warnings"][1]["kind"], "TRUNCATION");
    }

    #[test]
    fn unserialisable_data_writes_nothing() {
        let mut written = Vec::new();
        let unserialisable = std::collections::BTreeMap::from([(vec![1], 2)]);
        assert!(Envelope::success(unserialisable).write_to(&mut written).is_err());
        assert!(written.is_empty());
    }

    #[test]
    fn every_way_to_serialise_detects_and_caps() {
        let envelope = Envelope::success(json!({"long": "x".repeat(9000), "cut": "abc [...]"}))
            .with_max_response_bytes(4000);
        for document in [
            serde_json::to_value(&envelope).unwrap(),
            serde_json::from_str(&envelope.to_json().unwrap()).unwrap(),
        ] {
            let fields: Vec<&Value> =
                document["warnings"].as_array().unwrap().iter().map(|warning| &warning["field"]).collect();
            assert_eq!(fields, ["data.cut", "data.long"]);
            assert_eq!(document["meta"]["truncated"], true);
        }
    }

    #[test]
    fn a_field_with_a_warning_gets_no_second_warning() {
        let known =
            Warning::field_truncated("data".parse().unwrap(), crate::Size::of("abc..."), "as we know");
        let document = Envelope::success("abc...").with_warnings([known.clone()]).document().unwrap();
        assert_eq!(document.warnings, [known]);
    }
    #[test]
    fn a_notice_about_a_field_does_not_hide_its_cut() {
        let notice = Warning { field: "data".parse().ok(), ..Warning::notice("ODD", "this is odd") };
        let document = Envelope::success("abc [...]").with_warnings([notice]).document().unwrap();
        assert_eq!(document.warnings.len(), 2);
        assert!(document.meta().truncated);
    }
}
