//! Why criteria cannot be read.

/// Why a template or a file of criteria cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CriteriaError {
    /// It says nothing of what an artifact is held to.
    #[error("there is no criterion: {0}")]
    None(String),
    /// The YAML, TOML or JSON cannot be read.
    #[error("the criteria cannot be read as {language}: {message}")]
    Unreadable {
        /// What they were taken for.
        language: &'static str,
        /// What is wrong, and where.
        message: String,
    },
    /// A key that nobody knows.
    #[error("there is no criterion `{key}`{}", nearest.as_ref().map(|nearest| format!("; the nearest is `{nearest}`")).unwrap_or_default())]
    UnknownKey {
        /// The key as it is written.
        key: String,
        /// The known key that is most like it.
        nearest: Option<String>,
    },
    /// A criterion that is written twice, in two spellings.
    #[error("`{0}` is there twice, in two spellings")]
    Twice(&'static str),
    /// A value of the wrong kind or out of range.
    #[error("`{key}` must be {expected}")]
    Value {
        /// The key as it is written.
        key: String,
        /// What it has to be.
        expected: &'static str,
    },
}

impl CriteriaError {
    /// What to do about it.
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
