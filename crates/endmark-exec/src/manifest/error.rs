//! Errors in a manifest.

/// Error in a manifest, with its line and a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(crate) struct ManifestError {
    /// The line number, from 1.
    pub(crate) line: usize,
    pub(crate) problem: ManifestProblem,
}

/// What is wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestProblem {
    #[error("{0}")]
    Syntax(String),
    #[error("unknown key `{key}`{}", within(section))]
    UnknownKey { key: String, section: String, nearest: Option<String> },
    #[error("`{key}`{} must be {expected}", within(section))]
    Value { key: String, section: String, expected: String },
    #[error("`{key}` is missing{}", within(section))]
    Missing { key: &'static str, section: String },
    #[error("{0}")]
    Contradiction(String),
}

fn within(section: &str) -> String {
    if section.is_empty() { String::new() } else { format!(" in `{section}`") }
}

impl ManifestError {
    /// Returns the error code for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self.problem {
            ManifestProblem::Syntax(_) => "manifest_syntax",
            ManifestProblem::UnknownKey { .. } => "unknown_key",
            ManifestProblem::Value { .. } | ManifestProblem::Contradiction(_) => "invalid_value",
            ManifestProblem::Missing { .. } => "missing_setting",
        }
    }

    /// Returns a hint for correcting the manifest.
    pub(crate) fn hint(&self) -> Option<String> {
        match &self.problem {
            ManifestProblem::UnknownKey { nearest: Some(nearest), .. } => {
                Some(format!("Did you mean `{nearest}`?"))
            }
            ManifestProblem::UnknownKey { nearest: None, .. } => {
                Some("docs/exec.md lists every key there is.".to_owned())
            }
            _ => None,
        }
    }
}
