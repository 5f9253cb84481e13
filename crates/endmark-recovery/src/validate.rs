//! Schema validation as the pipeline uses it. The validator itself is supplied by the caller (PC-6).

use std::fmt;

/// Reports what is wrong with a JSON document (PC-6).
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
    /// Returns the problems of a well-formed JSON document, sorted by path and then message; empty if it is valid.
    fn validate(&self, json: &str) -> Vec<SchemaProblem>;
}

/// One problem of a JSON document. Problems sort by path, then message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaProblem {
    /// Where, as a JSON Pointer; empty for the document itself.
    pub path: String,
    /// What, in the validator's own words.
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
