//! What an artifact is held to, and where that is written. (CG-1)

mod error;
mod read;
mod template;

pub use error::CriteriaError;
pub use template::Template;

/// What an artifact is held to besides what no finished text may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Criteria {
    /// How many lines that are not blank it must have at least; front matter is not counted.
    pub min_lines: Option<usize>,
    /// Titles of sections that must be there with content. Case, numbering and a trailing colon do not matter; the level does not either,
    /// unless it is written with `#`.
    pub required_sections: Vec<String>,
    /// Phrases that must not be there, besides those that nobody may use.
    pub forbidden_phrases: Vec<String>,
    /// Whether the phrases of a handoff that are known to the guard are forbidden; not where a stage's own list replaces them.
    pub handoffs_are_forbidden: bool,
    /// From which share of the model's context on a run is at risk; above 0, at most 1.
    pub token_usage_warning_threshold: f64,
}

/// The share of a model's context from which on a run is at risk, where nothing else is said.
pub(crate) const DEFAULT_THRESHOLD: f64 = 0.85;

impl Default for Criteria {
    fn default() -> Self {
        Self {
            min_lines: None,
            required_sections: Vec::new(),
            forbidden_phrases: Vec::new(),
            handoffs_are_forbidden: true,
            token_usage_warning_threshold: DEFAULT_THRESHOLD,
        }
    }
}

impl Criteria {
    /// The same criteria with these phrases in place of all that are known and forbidden otherwise.
    #[must_use]
    pub fn with_only(self, phrases: Vec<String>) -> Self {
        Self { forbidden_phrases: phrases, handoffs_are_forbidden: false, ..self }
    }
}
