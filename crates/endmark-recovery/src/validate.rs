//! The interface to the schema validator, which the caller supplies (PC-6).

use std::fmt;

/// Reports the problems of a JSON document (PC-6).
///
/// ```
/// use endmark_recovery::{SchemaProblem, Validate};
///
/// struct NeedsName;
/// impl Validate for NeedsName {
///     fn validate(&self, json: &str) -> Vec<SchemaProblem> {
///         let problem = || SchemaProblem { path: String::new(), message: "\"name\" is required".into() };
///         if json.contains("\"name\"") { Vec::new() } else { vec![problem()] }
///     }
/// }
/// assert_eq!(NeedsName.validate("{}").len(), 1);
/// ```
pub trait Validate {
    /// Returns the problems of a well-formed JSON document, sorted by path and then message. Returns none if
    /// it is valid.
    fn validate(&self, json: &str) -> Vec<SchemaProblem>;
}

/// A problem of a JSON document. Problems are ordered by path, then by message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaProblem {
    /// The location, as a JSON Pointer. It is empty for the document itself.
    pub path: String,
    /// The description in the validator's own words.
    pub message: String,
}

impl fmt::Display for SchemaProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            formatter.write_str(&self.message)
        } else {
            write!(formatter, "{}: {}", self.path, self.message)
        }
    }
}
