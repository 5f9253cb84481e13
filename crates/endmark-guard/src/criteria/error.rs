//! Errors of reading criteria.

/// Error of a template or a criteria file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CriteriaError {
    /// The file contains no criteria.
    #[error("there is no criterion: {0}")]
    NoCriteria(String),
    /// The YAML, TOML or JSON cannot be parsed.
    #[error("the criteria cannot be read as {language}: {message}")]
    Unreadable {
        /// The assumed language.
        language: &'static str,
        /// The error and its position.
        message: String,
    },
    /// An unknown key.
    #[error("there is no criterion `{key}`{}", nearest.as_ref().map(|nearest| format!("; the nearest is `{nearest}`")).unwrap_or_default())]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The most similar known key.
        nearest: Option<String>,
    },
    /// A criterion that occurs twice in different spellings.
    #[error("`{0}` is there twice, in two spellings")]
    DuplicateKey(&'static str),
    /// A value of the wrong type or out of range.
    #[error("`{key}` must be {expected}")]
    InvalidValue {
        /// The key as written.
        key: String,
        /// The expected value.
        expected: &'static str,
    },
}

impl CriteriaError {
    /// Returns a sentence that states how to correct the file.
    pub fn hint(&self) -> String {
        match self {
            Self::NoCriteria(_) => "Write `successCriteria:` into the front matter, with at least one of min_lines, required_sections, forbidden_phrases.",
            Self::Unreadable { .. } => "Correct it there; docs/guard.md has an example of each form.",
            Self::UnknownKey { .. } | Self::DuplicateKey(_) | Self::InvalidValue { .. } => {
                "The criteria are min_lines, required_sections, forbidden_phrases, forbidden_phrases_only and token_usage_warning_threshold; each can be written in camelCase, too."
            }
        }
        .to_owned()
    }
}
