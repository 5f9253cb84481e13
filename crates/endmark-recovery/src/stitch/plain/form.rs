//! Judges the form of the text at a seam: fences, headings, ellipses and punctuation that are implausible
//! there.

use endmark_text::Format;

use super::candidates::begins_with_closing_punctuation;
use crate::stitch::candidate::Candidate;
use crate::stitch::joint::Joint;
use crate::stitch::lines::{begins_block, last_line};
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::{ellipsis, fence, quotation, register};

/// Returns the penalty, in bits, for an implausible form of the joined text. `before` contains the last
/// characters before the seam.
pub(super) fn form_penalty(joint: &Joint<'_>, before: &[char], story: &Candidate) -> f64 {
    let part = story.added_text(joint);
    let glued = story.glue.is_empty() && !before.last().is_none_or(|last| last.is_whitespace());
    let line = joint.initial.rsplit('\n').next().unwrap_or_default();
    let in_line = !story.glue.contains('\n') && !line.trim().is_empty();
    let mut bits = 0.0;
    // A code block that was just opened is not closed at once, and does not begin with another block.
    let opened = last_line(joint.initial).trim_start().starts_with("```") && joint.fence_is_open;
    let begins_fence =
        closes_block(part) || part.starts_with(['`', '~']) && fence::opening_line_end(part).is_some();
    bits += weight_if(opened && line.is_empty() && begins_fence, 14.0);
    // No block opens inside an open block either.
    let opens_block =
        part.starts_with(['`', '~']) && !closes_block(part) && fence::opening_line_end(part).is_some();
    bits += weight_if(joint.fence_is_open && line.trim().is_empty() && opens_block, 10.0);
    let is_alone = line.trim_matches(['`', '~', ' ', '>']).is_empty();
    if in_line
        && !is_alone
        && (part.starts_with("```") || part.starts_with("~~~"))
        && fence::opening_line_end(part).is_some()
    {
        bits += 14.0;
    }
    bits += ellipsis_penalty(joint, part, glued);
    bits += weight_if(has_spaced_punctuation(joint.initial, part), 10.0);
    bits += weight_if(breaks_row(joint, story), 6.0);
    if story.is_fenced && joint.format != Format::Tags {
        // A wrapper does not close in the middle of its content.
        let lines = fence::line_count(part) + usize::from(joint.fence_is_open);
        bits += weight_if(lines % 2 == 1 && is_alone, 8.0);
    }
    if story.start == 0 && (!in_line || part.starts_with('\n')) {
        bits += block_penalty(joint, part);
    }
    if in_line && begins_block(part, glued) {
        bits += 8.0;
    }
    if story.style == SeamStyle::Preamble && story.repeated_bytes == 0 {
        // A fence directly after an announcement is a wrapper.
        let first = part.trim_start();
        bits += if first.starts_with("```") && fence::opening_line_end(part).is_some() { 8.0 } else { 0.0 };
    }
    bits += weight_if(glued && quotation::breaks_word(joint.initial, part), 12.0);
    // A question does not begin within a word.
    let in_word = glued && before.last().is_some_and(|last| last.is_alphanumeric());
    bits += weight_if(in_word && part.starts_with(['¿', '¡']), 10.0);
    bits
}

/// Whether a table row at the seam has a different number of cells than the row above it.
fn breaks_row(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    let Some((above, begun)) = joint.initial.rsplit_once('\n') else { return false };
    let Some((rest, _)) = candidate.added_text(joint).split_once('\n') else { return false };
    let above = above.lines().next_back().unwrap_or_default().trim();
    let is_row = |line: &str| line.starts_with('|') && line.ends_with('|');
    let cells = |row: &str| row.matches('|').count() - row.matches("\\|").count();
    let row = [begun, candidate.glue, rest].concat();
    joint.format == Format::Markdown
        && !joint.fence_is_open
        && begun.starts_with('|')
        && is_row(above)
        && (!is_row(row.trim()) || cells(&row) != cells(above))
}

/// Returns the penalty, in bits, for keeping an ellipsis at the beginning of the continuation.
fn ellipsis_penalty(joint: &Joint<'_>, part: &str, glued: bool) -> f64 {
    let Some(length) = ellipsis::end_position(part).filter(|_| !part.starts_with(char::is_whitespace)) else {
        return 0.0;
    };
    let (dots, rest) = part.split_at(length);
    // An ellipsis for omitted text directly precedes the text. An ellipsis of the text itself is followed by
    // a space.
    let alone = joint.initial.ends_with('\n') && rest.starts_with('\n');
    // If the cut was not requested, an ellipsis usually stands for omitted text.
    weight_if(joint.from != AskedFrom::Cut, 4.0)
        + weight_if(alone, 6.0)
        + weight_if(!dots.starts_with(['.', '\u{2026}']), 6.0)
        + weight_if(glued && rest.starts_with(char::is_alphanumeric), 8.0)
        + weight_if(!joint.initial.contains(dots), 2.0)
}

/// Returns the penalty, in bits, for keeping a code block at the beginning of the continuation.
fn block_penalty(joint: &Joint<'_>, part: &str) -> f64 {
    let Some(length) = fence::opening_line_end(part).filter(|_| !joint.fence_is_open) else { return 0.0 };
    let before = joint.initial;
    let announced = part.starts_with("\n\n") || before.ends_with("\n\n") || joint.announces_block();
    let rest = &part[length..];
    let wrapped = fence::is_closed(rest);
    let unclosed = fence::line_count(rest).is_multiple_of(2);
    weight_if(!announced, 4.0)
        + weight_if(wrapped && !announced, 4.0)
        + weight_if(unclosed, 2.0)
        + weight_if(unclosed && !wrapped && is_prose(rest) && is_prose(last_line(before)), 6.0)
        + weight_if(wrapped && fence::line_count(before) == 0, 3.0)
        + weight_if(wrapped && is_prose(rest) && is_prose(last_line(before)), 8.0)
        + weight_if(fence::opening_line_end(rest).is_some(), 6.0)
        // A block does not begin in the cut line either.
        + weight_if(wrapped && part.starts_with('\n') && !part.starts_with("\n\n"), 4.0)
}

/// Whether the text has a space before punctuation at the seam, but the first part never has one there.
fn has_spaced_punctuation(initial: &str, part: &str) -> bool {
    let signs = part.strip_prefix(' ').unwrap_or_default();
    begins_with_closing_punctuation(initial, signs)
}

fn weight_if(holds: bool, bits: f64) -> f64 {
    if holds { bits } else { 0.0 }
}

/// Whether the first line of a text is a sentence, and not code.
fn is_prose(text: &str) -> bool {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.split(' ').count() > 4 && !line.contains(register::is_code_character)
}

/// Whether a text begins with a line that closes a code block.
fn closes_block(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default().trim();
    line.len() >= 3 && (line.chars().all(|sign| sign == '`') || line.chars().all(|sign| sign == '~'))
}
