//! Where a question about a cut JSON text can end what it shows.

use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};

use super::{BackUp, QUOTED_LIMIT_CHARS, weight};

/// What a quoted member or element has to weigh at least: `"a":` does, and `7,` is quoted together with those before it.
const QUOTED_MEMBER_WEIGHT: u32 = 4;

/// How the end of a JSON text is built, as far as a question needs it.
#[derive(Debug)]
struct Outline {
    /// Where the content of the open string begins.
    string: Option<usize>,
    /// Where the last member or element begins that begins before the end in question.
    before: usize,
    /// Where members and elements begin in that end: after each bracket and comma, first to last.
    beginnings: Vec<usize>,
}

impl Outline {
    /// Reads a text once, and keeps the beginnings from `earliest` on: a text may consist of brackets.
    fn of(text: &str, earliest: usize) -> Self {
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

/// Where what is shown ends: at the settled text; in a string behind its last white space, or its opening quote. Where what
/// is held would say too little after a first answer, in front of the members before it. Of JSON Lines only the row that
/// begins at `row` is looked at.
pub(super) fn boundary(text: &str, row: usize, how: BackUp, earliest: usize) -> Option<usize> {
    let settled = row + settled(text.get(row..)?)?;
    let outline = Outline::of(text.get(row..settled)?, earliest.saturating_sub(row));
    let nearest = match outline.string.map(|start| row + start) {
        Some(start) => in_string(text, start, settled, how, earliest).unwrap_or(settled),
        None => settled,
    };
    let says_enough = |at: usize| weight(text.get(at..).unwrap_or_default()) >= how.weight(text);
    // What white space came last, and whether more of it came, only what stands before it can prove.
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

/// Up to where this JSON text is settled; none where it is broken. White space behind a settled token is inside.
fn settled(text: &str) -> Option<usize> {
    let verdict = detect(text.as_bytes(), &Format::Json).verdict;
    let index = verdict.truncation().map_or(text.len(), |cut| cut.truncation_index);
    // A number is whole as it stands, and may go on.
    let number = text
        .trim_end_matches(|sign: char| sign.is_ascii_digit() || matches!(sign, '-' | '+' | '.' | 'e' | 'E'));
    let index = if verdict.is_whole() { number.len() } else { index };
    (!matches!(verdict, Verdict::Malformed { .. })).then(|| text.floor_char_boundary(index))
}

/// Behind the last white space of an open string in front of words that say enough, or else behind its opening quote; none
/// where both are too far.
fn in_string(text: &str, start: usize, settled: usize, how: BackUp, earliest: usize) -> Option<usize> {
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

/// Where the part begins that is quoted of what is shown: its last member or element that says something, or the end of that.
pub(super) fn quoted_from(shown: &str) -> usize {
    let limit = shown.char_indices().nth_back(QUOTED_LIMIT_CHARS - 1).map_or(0, |(at, _)| at);
    let outline = Outline::of(shown, limit);
    let end = if outline.string.is_some() { shown.len() } else { shown.trim_end().len() };
    let says_something = |at: &&usize| {
        shown.get(**at..end).is_some_and(|member| {
            member.contains(|sign: char| sign.is_alphanumeric()) && weight(member) >= QUOTED_MEMBER_WEIGHT
        })
    };
    // A member that begins before the limit is quoted from the limit, or from the end of white space across it.
    let mut nearest_first = outline.beginnings.iter().rev().chain([&outline.before]);
    let begun = nearest_first.find(says_something).copied().unwrap_or(0);
    let begun = begun + shown.get(begun..end).map_or(0, |member| member.len() - member.trim_start().len());
    begun.max(limit)
}
