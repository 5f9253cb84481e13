//! The errors of manifests.

/// An error in a manifest with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(crate) struct ManifestError {
    /// The line number, counted from 1.
    pub(crate) line: usize,
    pub(crate) problem: ManifestProblem,
}

/// The kind of error in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestProblem {
    #[error("{0}")]
    Syntax(String),
    #[error("unknown key `{key}`{}", describe_section(section))]
    UnknownKey { key: String, section: String, nearest: Option<String> },
    #[error("`{key}`{} must be {expected}", describe_section(section))]
    Value { key: String, section: String, expected: String },
    #[error("`{key}` is missing{}", describe_section(section))]
    Missing { key: &'static str, section: String },
    #[error("{0}")]
    Contradiction(String),
}

fn describe_section(section: &str) -> String {
    if section.is_empty() { String::new() } else { format!(" in `{section}`") }
}

impl ManifestError {
    /// Returns the error code of the response.
    pub(crate) fn code(&self) -> &'static str {
        match self.problem {
            ManifestProblem::Syntax(_) => "manifest_syntax",
            ManifestProblem::UnknownKey { .. } => "unknown_key",
            ManifestProblem::Value { .. } | ManifestProblem::Contradiction(_) => "invalid_value",
            ManifestProblem::Missing { .. } => "missing_setting",
        }
    }

    /// Returns a hint how to correct the manifest.
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
