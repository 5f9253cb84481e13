//! Finds seams in text without the grammar of JSON: prose, Markdown, code and tags (PC-4).
//!
//! Each candidate explains how the continuation came about: unchanged, after an announcement, in a fence,
//! after a repeated part, or with whitespace lost or added. Candidates are compared with the possibility that
//! the continuation is a separate text. The cost of a candidate is how much less likely it makes the
//! continuation than this possibility, in bits.

mod candidates;
mod continuation_starts;
mod cost;
mod elements;
mod ending;
mod form;
mod nesting;
mod unexplained;
mod weigh;

pub(super) use ending::json_state_after;

use super::candidate::Candidate;
use super::continuation_start::ContinuationStart;
use super::evidence::SupportedValue;
use super::fence;
use super::joint::Joint;
use super::register::SurroundingText;
use super::seam::AskedFrom;
use super::survivor::{GrammarState, Survivor};

/// Maximum number of bytes of closing remarks that are removed from a continuation.
pub(super) const MAX_REMOVED_REMARK_BYTES: usize =
    continuation_starts::MAX_PARAGRAPHS * super::register::MAX_REMARK_BYTES;

/// Whether a continuation has no content. Whitespace counts as content only if it is a line end at the
/// requested cut, and the text can end there.
pub(super) fn has_no_content(joint: &Joint<'_>) -> bool {
    let is_blank = joint.continuation.trim().is_empty();
    let ends_line = joint.from == AskedFrom::Cut && joint.continuation.contains('\n');
    is_blank
        && !(ends_line && can_end(joint.initial) && has_line_ends_like(joint.initial, joint.continuation))
}

/// Whether a text can end here: after a sentence or closing punctuation, without an open bracket.
fn can_end(text: &str) -> bool {
    const ENDS: [char; 20] = [
        '.', '!', '?', '…', '。', '！', '？', ')', ']', '}', '>', ';', '"', '”', '»', '|', '`', '~', '*', '_',
    ];
    let count = |signs: [char; 3]| text.matches(signs).count();
    text.trim_end().ends_with(ENDS) && count(['(', '[', '{']) <= count([')', ']', '}'])
}

/// Whether `rest` has the kind of line ends that `text` has. True if `text` has only one line.
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

/// Returns the positions in the continuation at which the text may start.
pub(super) fn start_positions(joint: &Joint<'_>) -> Vec<usize> {
    continuation_starts::continuation_starts(joint, &SurroundingText::new(joint))
        .iter()
        .map(|opening| opening.start)
        .collect()
}

/// Weighs all candidates of a text without a grammar.
pub(super) fn weigh_joins(joint: &Joint<'_>) -> Option<(Vec<Survivor>, SupportedValue)> {
    let likeness = weigh::likeness(joint);
    let around = SurroundingText::new(joint);
    let stories = candidates::propose(joint, &around);
    let weighed = weigh::weigh(joint, &likeness, &around, &stories)?;
    Some((stories.into_iter().map(into_survivor).collect(), weighed))
}

/// Whether a join is a guess, for example because whitespace may be missing.
pub(super) fn is_guessed(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    weigh::is_guessed(joint, candidate)
}

/// Returns where the text ends in a continuation after a JSON document, if only a closing remark follows the
/// document.
pub(super) fn end_before_closing_remark(joint: &Joint<'_>) -> Option<usize> {
    ending::end_before_closing_remark(joint, &SurroundingText::new(joint)).map(|end| end.position)
}

/// Returns where the text ends in a continuation that starts at this position and continues at the cut.
pub(super) fn end_at_cut(joint: &Joint<'_>, opening: &ContinuationStart) -> usize {
    let tails = ending::RemovableEnds::new(joint, &SurroundingText::new(joint));
    let last_line = joint.initial.rfind('\n').map_or(0, |at| at + 1);
    let (before, line) = joint.initial.split_at(last_line);
    let ends = ending::text_ends(joint, opening, 0, (fence::line_count(before), line), &tails);
    let likeliest = ends.into_iter().min_by(|left, right| left.cost.total_cmp(&right.cost));
    likeliest.map_or(joint.continuation.len(), |end| end.position)
}

pub(super) fn into_survivor(story: Candidate) -> Survivor {
    Survivor {
        grammar_state: GrammarState::NotChecked,
        has_dropped_remark: story.style == super::SeamStyle::Remark,
        candidate: story,
    }
}
