//! Checks whether the author leaves the rest to others instead of writing it.

use std::ops::Range;

use super::surroundings::Sentence;
use crate::artifact::Artifact;
use crate::finding::{Check, UnplacedFinding};
use crate::phrases::{Phrase, PhraseScope};

/// The number of last blocks that count as the end of a text.
const LAST_BLOCKS: usize = 4;

const WHY: &str = "this leaves the rest to a later time or to others";
const FIX: &str = "Write the announced part now, and remove the announcement.";

/// Checks the sentence around an anchor.
pub(crate) fn check_sentence(
    artifact: &Artifact<'_>,
    phrase: &Phrase,
    sentence: &Sentence<'_>,
    at: usize,
) -> Option<UnplacedFinding> {
    let range = match phrase.scope {
        PhraseScope::Sentence => sentence.find_covered_part(phrase, at)?,
        PhraseScope::End if artifact.outline().blocks().len() - sentence.block_index > LAST_BLOCKS => {
            return None;
        }
        _ => sentence.find(phrase, at)?,
    };
    // A question is not an offer if the block answers it, or if the sentence only mentions it.
    let rest = &sentence.text[sentence.range.end..sentence.block.range.end];
    let next = rest.split(|sign: char| !sign.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or("");
    let is_answered = sentence.text[..sentence.range.end].trim_end().ends_with('?')
        && (next.starts_with(char::is_lowercase) || ["Yes", "No"].contains(&next));
    let is_handoff = !is_answered
        && !artifact.outline().is_in_span(at)
        && !sentence.is_quoted_at(at)
        && !sentence.is_about(range.start);
    is_handoff.then(|| {
        UnplacedFinding::new(Check::Handoff, trim_markers(sentence.text, sentence.range.clone()), WHY, FIX)
    })
}

/// Removes white space and list or emphasis markers from both ends of a range.
pub(super) fn trim_markers(text: &str, range: Range<usize>) -> Range<usize> {
    let is_mark = |character: char| character.is_whitespace() || "*_#>-+".contains(character);
    let inside = text[range.clone()].trim_end();
    let content = inside.trim_start_matches(is_mark);
    let start = range.start + inside.len() - content.len();
    start..start + content.trim_end_matches(is_mark).len()
}
