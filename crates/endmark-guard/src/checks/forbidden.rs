//! Checks for phrases that the criteria forbid.

use super::surroundings::Sentence;
use crate::artifact::{Artifact, BlockKind};
use crate::finding::{Check, UnplacedFinding};
use crate::phrases::Phrase;

/// Checks the sentence around an anchor. A forbidden phrase is allowed in code, in quotations and in Markdown
/// comments.
pub(crate) fn check_sentence(
    artifact: &Artifact<'_>,
    phrase: &Phrase,
    sentence: &Sentence<'_>,
    at: usize,
) -> Option<UnplacedFinding> {
    let is_read =
        sentence.block.kind != BlockKind::Comment || artifact.kind() == crate::artifact::ArtifactKind::Code;
    if !is_read || artifact.outline().is_in_span(at) || sentence.is_quoted_at(at) {
        return None;
    }
    let range = sentence.find(phrase, at)?;
    Some(UnplacedFinding::new(
        Check::ForbiddenPhrase,
        range,
        "the criteria forbid this phrase",
        "Write its content, or use other words.",
    ))
}
