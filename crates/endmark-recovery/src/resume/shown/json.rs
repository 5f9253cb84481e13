//! Finds the end of the shown part in a cut JSON text.

use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};

use super::{BackUp, QUOTED_LIMIT_CHARS, weight};

/// Minimum weight of a quoted member or element. `"a":` suffices, but `7,` is quoted together with preceding elements.
const QUOTED_MEMBER_WEIGHT: u32 = 4;

/// The structure at the end of a JSON text, with the data that a question needs.
#[derive(Debug)]
struct Outline {
    /// Start of the content of the open string.
    string: Option<usize>,
    /// Start of the last member or element before `earliest`.
    before: usize,
    /// Starts of the members and elements after `earliest`: after each bracket and comma, in order.
    beginnings: Vec<usize>,
}

impl Outline {
    /// Reads a text once. It stores only the beginnings from `earliest` on, because a text may consist of brackets.
    fn read(text: &str, earliest: usize) -> Self {
        let beginnings = if earliest == 0 { vec![0] } else { Vec::new() };
        let mut outline = Self { string: None, before: 0, beginnings };
        let mut escaped = false;
        for (at, byte) in text.bytes().enumerate() {
            match (outline.string, byte) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), b'\\') => escaped = true,
                (Some(_), b'"') => outline.string = None,
                (None, b'"') => outline.string = Some(at + 1),
                (None, b'{' | b'[' | b',') if at + 1 < earliest => outline.before = at + 1,
                (None, b'{' | b'[' | b',') => outline.beginnings.push(at + 1),
                (Some(_) | None, _) => {}
            }
        }
        outline
    }
}

/// Returns where the shown part ends. This is the end of the settled text, or in a string after its last white space
/// or its opening quote. After a first answer, if the held text has too little content, it ends before earlier
/// members. In JSON Lines, only the row that begins at `row` counts.
pub(super) fn boundary(text: &str, row: usize, how: BackUp, earliest: usize) -> Option<usize> {
    let settled = row + settled_end(text.get(row..)?)?;
    let outline = Outline::read(text.get(row..settled)?, earliest.saturating_sub(row));
    let nearest = match outline.string.map(|start| row + start) {
        Some(start) => boundary_in_string(text, start, settled, how, earliest).unwrap_or(settled),
        None => settled,
    };
    let says_enough = |at: usize| weight(text.get(at..).unwrap_or_default()) >= how.weight(text);
    // Only the text before the last white space can prove how much white space follows.
    let is_behind_space = outline.string.is_some() && text.ends_with(' ');
    if how == BackUp::Little && !is_behind_space || says_enough(nearest) {
        return Some(nearest);
    }
    let blank = text.len() - text.trim_start().len();
    let before = outline.beginnings.iter().rev().map(|at| row + at);
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

/// Returns the end of the settled JSON text, including white space after a settled token. Returns `None` if the text
/// is malformed.
fn settled_end(text: &str) -> Option<usize> {
    let verdict = detect(text.as_bytes(), &Format::Json).verdict;
    let index = verdict.truncation().map_or(text.len(), |cut| cut.truncation_index);
    // The number is whole, and may continue.
    let number = text
        .trim_end_matches(|sign: char| sign.is_ascii_digit() || matches!(sign, '-' | '+' | '.' | 'e' | 'E'));
    let index = if verdict.is_whole() { number.len() } else { index };
    (!matches!(verdict, Verdict::Malformed { .. })).then(|| text.floor_char_boundary(index))
}

/// Returns the position after the last white space of an open string that is followed by enough words, or after its
/// opening quote. Returns `None` if both are too far from the end.
fn boundary_in_string(
    text: &str,
    start: usize,
    settled: usize,
    how: BackUp,
    earliest: usize,
) -> Option<usize> {
    let earliest = earliest.max(start);
    let spaces = text.get(earliest..settled)?.rmatch_indices(' ').map(|(at, _)| earliest + at + 1);
    let mut found = None;
    for at in spaces {
        let held = text.get(at..)?;
        if !held.is_empty() && !held.starts_with(' ') {
            found = Some(at);
            if weight(held) >= how.weight(text) {
                return found;
            }
        }
    }
    (earliest == start).then_some(start).or(found)
}

/// Returns where the quoted part of the shown text begins: at or within its last member or element with enough content.
pub(super) fn quotation_start(shown: &str) -> usize {
    let limit = shown.char_indices().nth_back(QUOTED_LIMIT_CHARS - 1).map_or(0, |(at, _)| at);
    let outline = Outline::read(shown, limit);
    let end = if outline.string.is_some() { shown.len() } else { shown.trim_end().len() };
    let says_something = |at: &&usize| {
        shown.get(**at..end).is_some_and(|member| {
            member.contains(|sign: char| sign.is_alphanumeric()) && weight(member) >= QUOTED_MEMBER_WEIGHT
        })
    };
    // A member that begins before the limit is quoted from the limit. If white space crosses the limit, it is quoted
    // from the end of that white space.
    let mut nearest_first = outline.beginnings.iter().rev().chain([&outline.before]);
    let member_start = nearest_first.find(says_something).copied().unwrap_or(0);
    let member_start = member_start
        + shown.get(member_start..end).map_or(0, |member| member.len() - member.trim_start().len());
    member_start.max(limit)
}
