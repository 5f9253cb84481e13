//! The criteria for an artifact, and their sources. (CG-1)

mod error;
mod read;
mod template;

pub use error::CriteriaError;
pub use template::Template;

/// The criteria for an artifact, in addition to the checks that apply to all.
#[derive(Debug, Clone, PartialEq)]
pub struct Criteria {
    /// The minimum number of lines that are not blank. Front matter does not count.
    pub min_lines: Option<usize>,
    /// Titles of sections that must exist and have content. Case, numbering and a trailing colon are ignored.
    /// The level is ignored too, unless the title is written with `#`.
    pub required_sections: Vec<String>,
    /// Forbidden phrases, in addition to the built-in ones.
    pub forbidden_phrases: Vec<String>,
    /// Whether the built-in handoff phrases are forbidden. False if a stage's own list replaces them.
    pub handoffs_are_forbidden: bool,
    /// The share of the model's context from which a run is at risk. It is above 0 and at most 1.
    pub token_usage_warning_threshold: f64,
}

/// The default of [`Criteria::token_usage_warning_threshold`].
pub(crate) const DEFAULT_WARNING_THRESHOLD: f64 = 0.85;

impl Default for Criteria {
    fn default() -> Self {
        Self {
            min_lines: None,
            required_sections: Vec::new(),
            forbidden_phrases: Vec::new(),
            handoffs_are_forbidden: true,
            token_usage_warning_threshold: DEFAULT_WARNING_THRESHOLD,
        }
    }
}

impl Criteria {
    /// Returns the same criteria, but with these phrases instead of all forbidden and built-in handoff
    /// phrases.
    #[must_use]
    pub fn with_only_forbidden_phrases(self, phrases: Vec<String>) -> Self {
        Self { forbidden_phrases: phrases, handoffs_are_forbidden: false, ..self }
    }
}
