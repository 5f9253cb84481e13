//! The guard: runs all checks on an artifact.

use crate::artifact::Artifact;
use crate::checks;
use crate::criteria::{Criteria, Template};
use crate::finding::Assessment;
use crate::phrases::PhraseSet;

/// Checks any number of artifacts against the same criteria (CG-2).
///
/// ```
/// use endmark_guard::{Artifact, Criteria, Guard, Verdict};
///
/// let criteria = Criteria { min_lines: Some(2), required_sections: vec!["Risks".to_owned()], ..Criteria::default() };
/// let guard = Guard::new(criteria);
/// let report = guard.judge(&Artifact::read("# Plan\n\nWe ship on Friday.\n\n## Risks\n\nTBD\n"));
/// assert_eq!(report.verdict(), Verdict::WrappedUp);
/// // The section contains only a placeholder.
/// let positions: Vec<_> = report.findings().iter().map(|finding| (finding.line, finding.text.as_str())).collect();
/// assert_eq!(positions, [(7, "TBD")]);
/// ```
#[derive(Debug)]
pub struct Guard {
    criteria: Criteria,
    forbidden_phrases: PhraseSet,
    /// The body of the template. An artifact with the same text is reported as untouched.
    skeleton: Option<String>,
}

impl Guard {
    /// Creates a guard with these criteria.
    pub fn new(criteria: Criteria) -> Self {
        let forbidden = PhraseSet::forbidden(criteria.forbidden_phrases.iter().map(String::as_str));
        Self { criteria, forbidden_phrases: forbidden, skeleton: None }
    }

    /// Creates a guard with the criteria of a template. It reports an artifact that equals the template.
    pub fn from_template(template: Template) -> Self {
        Self { skeleton: template.body, ..Self::new(template.criteria) }
    }

    /// Creates a guard with the same template and other criteria.
    #[must_use]
    pub fn with_criteria(&self, criteria: Criteria) -> Self {
        Self { skeleton: self.skeleton.clone(), ..Self::new(criteria) }
    }

    /// Returns the criteria.
    pub fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    /// Checks an artifact.
    pub fn judge(&self, artifact: &Artifact<'_>) -> Assessment {
        if let Some(found) = checks::existence::check(artifact, self.skeleton.as_deref()) {
            return Assessment::new(artifact, vec![found]);
        }
        let mut found =
            checks::phrases::check(artifact, &self.forbidden_phrases, self.criteria.handoffs_are_forbidden);
        found.extend(checks::min_lines::check(artifact, self.criteria.min_lines));
        found.extend(checks::sections::check(artifact, &self.criteria.required_sections, &found));
        found.extend(checks::open_fence::check(artifact));
        found.extend(checks::open_table::check(artifact));
        found.extend(checks::open_code::check(artifact));
        found.extend(checks::mid_sentence::check(artifact));
        Assessment::new(artifact, found)
    }
}
