//! Finds seams of text without the grammar of JSON: prose, Markdown, code, tags (PC-4).
//!
//! A story is how the continuation came about: unchanged, after an announcement, in a fence, after a repeated part,
//! or with white space lost or added. It determines the joined text and the likelihood of the received continuation.
//! All stories are compared with the alternative that the continuation is a separate text. The cost of a story is how
//! much less likely it makes the continuation than this alternative, in bits.

mod cost;
mod elements;
mod ending;
mod form;
mod nesting;
mod opening;
mod story;
mod unexplained;
mod weigh;

pub(super) use ending::json_state_after;

use super::candidate::Candidate;
use super::evidence::SupportedValue;
use super::fence;
use super::joint::Joint;
use super::opening::Opening;
use super::register::SurroundingText;
use super::seam::AskedFrom;
use super::survivor::{GrammarState, Survivor};

/// Maximum number of bytes of remarks that are removed at the end of a continuation.
pub(super) const MAX_LEFT_OUT: usize = opening::MAX_PARAGRAPHS * super::register::LONGEST;

/// Whether a continuation has no content. White space counts as content only if it is a line end at the requested
/// position and a text can end there.
pub(super) fn is_empty(joint: &Joint<'_>) -> bool {
    let is_blank = joint.continuation.trim().is_empty();
    let ends_line = joint.from == AskedFrom::Cut && joint.continuation.contains('\n');
    is_blank
        && !(ends_line && can_end(joint.initial) && has_line_ends_like(joint.initial, joint.continuation))
}

/// Whether a text can end like this: after a sentence or a closing sign, without an open bracket.
fn can_end(text: &str) -> bool {
    const ENDS: [char; 20] = [
        '.', '!', '?', '…', '。', '！', '？', ')', ']', '}', '>', ';', '"', '”', '»', '|', '`', '~', '*', '_',
    ];
    let count = |signs: [char; 3]| text.matches(signs).count();
    text.trim_end().ends_with(ENDS) && count(['(', '[', '{']) <= count([')', ']', '}'])
}

/// Whether the lines of a text have the same kind of line ends as the text after it, or it has only one line.
fn has_line_ends_like(text: &str, rest: &str) -> bool {
    let is_wide = |text: &str| text.contains("\r\n");
    !text.contains('\n') || is_wide(text) == (text.ends_with('\r') || is_wide(rest))
}

/// Whether a survivor adds nothing to the first part, although the continuation has content.
pub(super) fn adds_nothing(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let candidate = &survivor.candidate;
    let added = joint.continuation.get(candidate.start..candidate.end).unwrap_or_default();
    added.trim().is_empty() && !joint.continuation.trim().is_empty()
}

/// Returns the positions in the continuation at which its own text may begin.
pub(super) fn opening_places(joint: &Joint<'_>) -> Vec<usize> {
    opening::openings(joint, &SurroundingText::new(joint)).iter().map(|opening| opening.start).collect()
}

/// Weighs all joins of a text without grammar.
pub(super) fn weigh_joins(joint: &Joint<'_>) -> Option<(Vec<Survivor>, SupportedValue)> {
    let likeness = weigh::likeness(joint);
    let around = SurroundingText::new(joint);
    let stories = story::stories(joint, &around);
    let weighed = weigh::weigh(joint, &likeness, &around, &stories)?;
    Some((stories.into_iter().map(survivor).collect(), weighed))
}

/// Whether a join adds white space that neither part contains.
pub(super) fn is_guessed(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    weigh::is_guessed(joint, candidate)
}

/// Returns where the text ends in a continuation after a JSON document, if only a closing remark follows it.
pub(super) fn end_before_leave(joint: &Joint<'_>) -> Option<usize> {
    ending::end_before_leave(joint, &SurroundingText::new(joint)).map(|end| end.position)
}

/// Returns where the text ends in a continuation that continues at the cut after an opening.
pub(super) fn end_at_cut(joint: &Joint<'_>, opening: &Opening) -> usize {
    let tails = ending::Tails::new(joint, &SurroundingText::new(joint));
    let last_line = joint.initial.rfind('\n').map_or(0, |at| at + 1);
    let (before, line) = joint.initial.split_at(last_line);
    let ends = ending::ends(joint, opening, 0, (fence::lines(before), line), &tails);
    let likeliest = ends.into_iter().min_by(|left, right| left.cost.total_cmp(&right.cost));
    likeliest.map_or(joint.continuation.len(), |end| end.position)
}

pub(super) fn survivor(story: Candidate) -> Survivor {
    Survivor {
        grammar_state: GrammarState::NotAsked,
        has_dropped_remark: story.style == super::SeamStyle::Remark,
        candidate: story,
    }
}
