//! Does it say what its criteria forbid?

use super::around::Sentence;
use crate::artifact::{Artifact, BlockKind};
use crate::finding::{Check, Found};
use crate::phrases::Phrase;

/// Looks at the sentence around an anchor: a phrase that is forbidden may stand nowhere but in code and quotations.
pub(crate) fn look(
    artifact: &Artifact<'_>,
    phrase: &Phrase,
    sentence: &Sentence<'_>,
    at: usize,
) -> Option<Found> {
    let is_read = sentence.block.kind != BlockKind::Comment || artifact.kind() == crate::artifact::Kind::Code;
    if !is_read || artifact.outline().is_in_span(at) || sentence.is_quoted_at(at) {
        return None;
    }
    let range = sentence.find(phrase, at)?;
    Some(Found::new(
        Check::ForbiddenPhrase,
        range,
        "the criteria forbid this phrase",
        "Write what it stands for, or say it in other words.",
    ))
}
