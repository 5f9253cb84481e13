//! Seams of text without the grammar of JSON: prose, Markdown, code, tags (PC-4).
//!
//! Each story of how the continuation came about (as it stands, behind an announcement, in a fence, after a
//! repeated part, with whitespace lost or added …) says what the joined text is and how likely the received
//! continuation is by it. All are compared with one more story: that the continuation is a text of its own. What
//! is counted, in bits, is how much likelier or unlikelier than that a story makes what was received.

mod cost;
mod elements;
mod ending;
mod form;
mod nesting;
mod opening;
mod otherwise;
mod story;
mod weigh;

pub(super) use ending::begun_json;

use super::candidate::Candidate;
use super::evidence::Weighed;
use super::fence;
use super::joint::Joint;
use super::opening::Opening;
use super::register::Around;
use super::seam::AskedFrom;
use super::survivor::{Standing, Survivor};

/// The most bytes of remarks that are left out at the end of a continuation.
pub(super) const MOST_LEFT_OUT: usize = opening::MOST_PARAGRAPHS * super::register::LONGEST;

/// Whether a continuation says nothing: of whitespace alone only a line's end is a part of the text, where it was asked
/// for and a text can end there.
pub(super) fn is_empty(joint: &Joint<'_>) -> bool {
    let is_blank = joint.continuation.trim().is_empty();
    let ends_line = joint.from == AskedFrom::Cut && joint.continuation.contains('\n');
    is_blank
        && !(ends_line && can_end(joint.initial) && has_line_ends_like(joint.initial, joint.continuation))
}

/// Whether a text can end so: behind a sentence, or what closes something, with no bracket open.
fn can_end(text: &str) -> bool {
    const ENDS: [char; 20] = [
        '.', '!', '?', '…', '。', '！', '？', ')', ']', '}', '>', ';', '"', '”', '»', '|', '`', '~', '*', '_',
    ];
    let count = |signs: [char; 3]| text.matches(signs).count();
    text.trim_end().ends_with(ENDS) && count(['(', '[', '{']) <= count([')', ']', '}'])
}

/// Whether the lines of a text end as those of what follows do, or it has one line alone.
fn has_line_ends_like(text: &str, rest: &str) -> bool {
    let is_wide = |text: &str| text.contains("\r\n");
    !text.contains('\n') || is_wide(text) == (text.ends_with('\r') || is_wide(rest))
}

/// Whether a survivor adds nothing to the first part, though the continuation says something.
pub(super) fn says_nothing_new(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let candidate = &survivor.candidate;
    let added = joint.continuation.get(candidate.start..candidate.end).unwrap_or_default();
    added.trim().is_empty() && !joint.continuation.trim().is_empty()
}

/// The places in the continuation where its own text may begin.
pub(super) fn opening_places(joint: &Joint<'_>) -> Vec<usize> {
    opening::openings(joint, &Around::of(joint)).iter().map(|opening| opening.start).collect()
}

/// All joins of a text without grammar, weighed against each other.
pub(super) fn weighed(joint: &Joint<'_>) -> Option<(Vec<Survivor>, Weighed)> {
    let likeness = weigh::likeness(joint);
    let around = Around::of(joint);
    let stories = story::stories(joint, &around);
    let weighed = weigh::weigh(joint, &likeness, &around, &stories)?;
    Some((stories.into_iter().map(survivor).collect(), weighed))
}

/// Whether a join adds whitespace of which the text does not say what it was.
pub(super) fn is_guessed(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    weigh::is_guessed(joint, candidate)
}

/// Where the text ends in a continuation behind a document of JSON, if only leave follows it.
pub(super) fn end_before_leave(joint: &Joint<'_>) -> Option<usize> {
    ending::end_before_leave(joint, &Around::of(joint)).map(|end| end.at)
}

/// Where the text ends in a continuation that goes on at the cut, behind an opening of its own.
pub(super) fn end_at_cut(joint: &Joint<'_>, opening: &Opening) -> usize {
    let tails = ending::Tails::of(joint, &Around::of(joint));
    let last_line = joint.initial.rfind('\n').map_or(0, |at| at + 1);
    let (before, line) = joint.initial.split_at(last_line);
    let ends = ending::ends(joint, opening, 0, (fence::lines(before), line), &tails);
    let likeliest = ends.into_iter().min_by(|left, right| left.cost.total_cmp(&right.cost));
    likeliest.map_or(joint.continuation.len(), |end| end.at)
}

pub(super) fn survivor(story: Candidate) -> Survivor {
    Survivor {
        standing: Standing::NotAsked,
        left_out_remark: story.style == super::SeamStyle::Remark,
        candidate: story,
    }
}
