//! Finds where the JSON in a continuation may start. Announcements, fences, ellipses and whitespace before it
//! are removed one after another.

use endmark_text::Verdict;

use super::announcement::{Announcement, announcements};
use super::continuation_start::ContinuationStart;
use super::joint::Joint;
use super::register::SurroundingText;
use super::seam::SeamStyle;
use super::{AskedFrom, ellipsis};

/// Maximum number of starts that are examined.
const MAX_STARTS: usize = 24;

/// Returns all possible starts in the continuation, the likeliest first. One of them removes nothing.
pub(super) fn continuation_starts(joint: &Joint<'_>) -> Vec<ContinuationStart> {
    let text = joint.continuation;
    let mut found = vec![ContinuationStart::UNCHANGED];
    let broken = grammar_break(joint);
    // Words within valid JSON belong to it. Only in a string, an announcement may also be valid JSON.
    let is_in_front = |foreword: &Announcement| {
        let is_no_json = broken.is_some_and(|at| at <= foreword.end);
        is_no_json || !joint.has_grammar() || joint.in_text && !foreword.ends_line
    };
    for foreword in announcements(joint, &SurroundingText::new(joint)).into_iter().filter(is_in_front) {
        let continues_string = text.starts_with(char::is_whitespace) && joint.in_text;
        let first_opening = ContinuationStart {
            cost: if continues_string { 8.0 } else { 0.0 },
            ..ContinuationStart::UNCHANGED
        };
        found.push(after_announcement(joint, first_opening, foreword));
    }
    for index in 0..found.len() {
        found.extend(found[index].after_fence(text, 1.0));
    }
    for index in 0..found.len() {
        for length in ellipsis::possible_ends(&text[found[index].start..]) {
            let cost = if may_belong_to_text(joint, found[index].start + length) { 10.0 } else { 5.0 };
            found.push(found[index].advance(found[index].start + length, SeamStyle::Ellipsis, cost));
        }
    }
    for index in 0..found.len() {
        add_spaced(joint, found[index], &mut found);
    }
    // Of several ways to the same start, keep the likeliest.
    found.sort_by(|left, right| left.start.cmp(&right.start).then(left.cost.total_cmp(&right.cost)));
    found.dedup_by_key(|opening| opening.start);
    found.sort_by(|left, right| left.cost.total_cmp(&right.cost));
    found.truncate(MAX_STARTS);
    found
}

/// Whether an ellipsis that ends here may belong to the text: in a string, after a word and before a space.
fn may_belong_to_text(joint: &Joint<'_>, end: usize) -> bool {
    let behind_word = joint.initial.ends_with(char::is_alphanumeric);
    joint.in_text && behind_word && joint.continuation[end..].starts_with(char::is_whitespace)
}

/// Adds the starts after whitespace.
fn add_spaced(joint: &Joint<'_>, opening: ContinuationStart, found: &mut Vec<ContinuationStart>) {
    let text = joint.continuation;
    let rest = &text[opening.start..];
    let spaces = rest.len() - rest.trim_start().len();
    let breaks = rest.len() - rest.trim_start_matches(['\n', '\r']).len();
    if spaces == 0 {
        return;
    }
    // After a removed line, the text starts on the next line. Within a line, a space may precede it.
    let in_line = !opening.removes_nothing() && !text[..opening.start].ends_with('\n');
    let cost = match (opening.removes_nothing(), joint.from) {
        // Strings contain no raw line breaks.
        (true, AskedFrom::Cut) if joint.in_text && breaks > 0 => 5.0,
        (_, _) if joint.in_text && breaks > 0 => 3.0,
        (false, _) if in_line && opening.style == Some(SeamStyle::Preamble) => 0.5,
        (false, _) if in_line => 3.0,
        // A continuation of a string often begins with a space.
        (true, AskedFrom::Token | AskedFrom::Unknown) if joint.in_text => 6.0,
        (true, AskedFrom::Token | AskedFrom::Unknown) => 3.0,
        // A model that writes the rest of a string on a separate line does not indent it.
        (false, _) if joint.in_text => 12.0,
        (false, _) | (true, AskedFrom::Cut) => 8.0,
    };
    if in_line && rest.starts_with(' ') {
        let behind_dots = ["...", "\u{2026}"].iter().any(|dots| text[..opening.start].ends_with(dots));
        let one = if opening.style == Some(SeamStyle::Preamble) && !behind_dots { -3.0 } else { 1.0 };
        found.push(opening.advance(opening.start + 1, SeamStyle::Whitespace, one));
    }
    if spaces > 1 || !in_line || breaks > 0 {
        // A model does not add a deep indentation to a string.
        let indented = u32::try_from(spaces - breaks).unwrap_or(u32::MAX).saturating_sub(1).min(6);
        let indented = if joint.in_text { 2.0 * f64::from(indented) } else { 0.0 };
        found.push(opening.advance(opening.start + spaces, SeamStyle::Whitespace, cost + indented));
    }
    if breaks > 0 && breaks != spaces {
        found.push(opening.advance(opening.start + breaks, SeamStyle::Whitespace, cost));
    }
}

/// Returns the position in the continuation at which the grammar rejects the unchanged join, if any.
fn grammar_break(joint: &Joint<'_>) -> Option<usize> {
    let mut detector = joint.state_at(joint.initial.len());
    detector.push(joint.continuation.as_bytes());
    match detector.verdict() {
        Verdict::Malformed { index, .. } => Some(index.saturating_sub(joint.initial.len())),
        Verdict::Whole | Verdict::Truncated(_) => None,
    }
}

/// Returns the start after an announcement.
fn after_announcement(
    joint: &Joint<'_>,
    bare: ContinuationStart,
    foreword: Announcement,
) -> ContinuationStart {
    let mut cost = if joint.in_text {
        (7.5 - 0.55 * foreword.bits).clamp(1.5, 9.0)
    } else {
        (5.5 - 0.4 * foreword.bits).clamp(1.5, 6.0)
    };
    if foreword.fence_follows {
        cost = f64::min(cost, 3.0);
    }
    if !foreword.ends_line {
        return bare.advance(foreword.end, SeamStyle::Preamble, cost + if joint.in_text { 4.0 } else { 2.0 });
    }
    let rest = &joint.continuation[foreword.end..];
    let blank = rest.len() - rest.trim_start_matches(['\n', '\r']).len();
    bare.advance(foreword.end + blank, SeamStyle::Preamble, cost)
}
