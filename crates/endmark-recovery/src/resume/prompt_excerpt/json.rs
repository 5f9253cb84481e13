//! Finds where the shown part of cut JSON ends.

use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};

use super::{HoldBack, QUOTED_LIMIT_CHARS, weight};

/// Minimum weight of a quoted member or element. `"a":` is enough, but `7,` is quoted together with the
/// elements before it.
const MIN_QUOTED_MEMBER_WEIGHT: u32 = 4;

/// The structure at the end of JSON that is needed to choose the shown and quoted parts.
#[derive(Debug)]
struct EndOutline {
    /// Start of the content of the open string, if any.
    open_string: Option<usize>,
    /// Start of the last member or element before `earliest`.
    before: usize,
    /// Starts of the members and elements from `earliest` on: after each opening bracket and comma, in order.
    part_starts: Vec<usize>,
}

impl EndOutline {
    /// Scans a text once. Only starts from `earliest` on are stored, because a text may consist entirely of
    /// brackets.
    fn read(text: &str, earliest: usize) -> Self {
        let beginnings = if earliest == 0 { vec![0] } else { Vec::new() };
        let mut outline = Self { open_string: None, before: 0, part_starts: beginnings };
        let mut escaped = false;
        for (at, byte) in text.bytes().enumerate() {
            match (outline.open_string, byte) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), b'\\') => escaped = true,
                (Some(_), b'"') => outline.open_string = None,
                (None, b'"') => outline.open_string = Some(at + 1),
                (None, b'{' | b'[' | b',') if at + 1 < earliest => outline.before = at + 1,
                (None, b'{' | b'[' | b',') => outline.part_starts.push(at + 1),
                (Some(_) | None, _) => {}
            }
        }
        outline
    }
}

/// Returns the end of the shown part. This is the end of the settled text or, in a string, a position after
/// whitespace or after the opening quote. If the held part has too little content, earlier members are held,
/// too. In JSON Lines, only the row that begins at `row` is examined.
pub(super) fn boundary(text: &str, row: usize, how: HoldBack, earliest: usize) -> Option<usize> {
    let settled = row + settled_end(text.get(row..)?)?;
    let outline = EndOutline::read(text.get(row..settled)?, earliest.saturating_sub(row));
    let nearest = match outline.open_string.map(|start| row + start) {
        Some(start) => boundary_in_string(text, start, settled, how, earliest).unwrap_or(settled),
        None => settled,
    };
    let says_enough = |at: usize| weight(text.get(at..).unwrap_or_default()) >= how.min_held_weight(text);
    // After whitespace at the end of a string, the word before it must be held, too: only repeating it can
    // prove the whitespace.
    let is_behind_space = outline.open_string.is_some() && text.ends_with(' ');
    if how == HoldBack::Little && !is_behind_space || says_enough(nearest) {
        return Some(nearest);
    }
    let blank = text.len() - text.trim_start().len();
    let before = outline.part_starts.iter().rev().map(|at| row + at);
    let before = before.filter(|at| *at < nearest && *at >= earliest && *at > blank);
    let mut furthest = None;
    for at in before {
        furthest = Some(at);
        if says_enough(at) {
            break;
        }
    }
    Some(furthest.unwrap_or(nearest))
}

/// Returns the end of the settled JSON, including whitespace after a settled token. Returns `None` if the
/// text is malformed.
fn settled_end(text: &str) -> Option<usize> {
    let verdict = detect(text.as_bytes(), &Format::Json).verdict;
    let index = verdict.truncation().map_or(text.len(), |cut| cut.truncation_index);
    // A number at the end of a whole text may continue.
    let number = text.trim_end_matches(|character: char| {
        character.is_ascii_digit() || matches!(character, '-' | '+' | '.' | 'e' | 'E')
    });
    let index = if verdict.is_whole() { number.len() } else { index };
    (!matches!(verdict, Verdict::Malformed { .. })).then(|| text.floor_char_boundary(index))
}

/// Returns the last position in an open string that is after whitespace or after the opening quote, and has
/// enough text after it. Returns `None` if all such positions are before `earliest`.
fn boundary_in_string(
    text: &str,
    start: usize,
    settled: usize,
    how: HoldBack,
    earliest: usize,
) -> Option<usize> {
    let earliest = earliest.max(start);
    let spaces = text.get(earliest..settled)?.rmatch_indices(' ').map(|(at, _)| earliest + at + 1);
    let mut found = None;
    for at in spaces {
        let held = text.get(at..)?;
        if !held.is_empty() && !held.starts_with(' ') {
            found = Some(at);
            if weight(held) >= how.min_held_weight(text) {
                return found;
            }
        }
    }
    (earliest == start).then_some(start).or(found)
}

/// Returns the start of the quoted part: the last member or element with enough content, or a position within
/// it.
pub(super) fn quotation_start(shown: &str) -> usize {
    let limit = shown.char_indices().nth_back(QUOTED_LIMIT_CHARS - 1).map_or(0, |(at, _)| at);
    let outline = EndOutline::read(shown, limit);
    let end = if outline.open_string.is_some() { shown.len() } else { shown.trim_end().len() };
    let says_something = |at: &&usize| {
        shown.get(**at..end).is_some_and(|member| {
            member.contains(|sign: char| sign.is_alphanumeric()) && weight(member) >= MIN_QUOTED_MEMBER_WEIGHT
        })
    };
    // If the member begins before the limit, the quotation starts at the limit. If whitespace is at the
    // limit, the quotation starts after it.
    let mut nearest_first = outline.part_starts.iter().rev().chain([&outline.before]);
    let member_start = nearest_first.find(says_something).copied().unwrap_or(0);
    let member_start = member_start
        + shown.get(member_start..end).map_or(0, |member| member.len() - member.trim_start().len());
    member_start.max(limit)
}
