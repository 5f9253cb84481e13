//! Checks that the artifact is not empty and differs from the template.

use crate::artifact::Artifact;
use crate::finding::{Check, UnplacedFinding};

/// Detects an artifact that is empty or equals its template.
pub(crate) fn check(artifact: &Artifact<'_>, skeleton: Option<&str>) -> Option<UnplacedFinding> {
    if artifact.body().trim().is_empty() {
        return Some(UnplacedFinding::new(
            Check::Empty,
            artifact.end(),
            "the artifact has no content",
            "Write the artifact; the file holds nothing that counts.",
        ));
    }
    let is_untouched = skeleton.is_some_and(|skeleton| has_same_text(artifact.body(), skeleton));
    is_untouched.then(|| {
        let start = artifact.body_start();
        let range = start..artifact.end().end.max(start);
        UnplacedFinding::new(
            Check::Untouched,
            range,
            "the artifact is its template, unchanged",
            "Fill the template in: replace what it asks for by content.",
        )
    })
}

/// Returns whether two texts have the same words and punctuation. Line endings and blank lines are ignored.
fn has_same_text(left: &str, right: &str) -> bool {
    !right.trim().is_empty() && left.split_whitespace().eq(right.split_whitespace())
}
