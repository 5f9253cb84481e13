//! Errors of reading criteria.

/// The reason why a template or a criteria file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CriteriaError {
    /// It contains no criteria.
    #[error("there is no criterion: {0}")]
    None(String),
    /// The YAML, TOML or JSON cannot be parsed.
    #[error("the criteria cannot be read as {language}: {message}")]
    Unreadable {
        /// The language that was assumed.
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
    Twice(&'static str),
    /// A value of the wrong type or out of range.
    #[error("`{key}` must be {expected}")]
    Value {
        /// The key as written.
        key: String,
        /// The expected value.
        expected: &'static str,
    },
}

impl CriteriaError {
    /// Returns what to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::None(_) => "Write `successCriteria:` into the front matter, with at least one of min_lines, required_sections, forbidden_phrases.",
            Self::Unreadable { .. } => "Correct it there; docs/guard.md has an example of each form.",
            Self::UnknownKey { .. } | Self::Twice(_) | Self::Value { .. } => {
                "The criteria are min_lines, required_sections, forbidden_phrases, forbidden_phrases_only and token_usage_warning_threshold; each can be written in camelCase, too."
            }
        }
        .to_owned()
    }
}
