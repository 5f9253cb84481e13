//! Checkpoints: `[CHECKPOINT] turn:{N} findings:{count} files_read:{count} remaining_dims:{list}`. (AR-3)

use crate::narrow::narrow;
use crate::{Checkpoint, NOT_NAMED, Position};

use crate::stand_in::is_placeholder;

use super::number::number_alone;

/// What a line with `[CHECKPOINT]` in front comes to.
pub(super) enum Found {
    Checkpoint(Checkpoint),
    /// One of which a number cannot be read.
    Part(Checkpoint),
    /// The form itself, as a prompt shows it.
    Template,
    Broken,
}

/// The names of its parts, as they may be spelled.
const NAMES: [(&str, Part); 8] = [
    ("turn", Part::Turn),
    ("turns", Part::Turn),
    ("findings", Part::Findings),
    ("files_read", Part::FilesRead),
    ("files", Part::FilesRead),
    ("remaining_dims", Part::RemainingDims),
    ("remaining_dimensions", Part::RemainingDims),
    ("remaining", Part::RemainingDims),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Turn,
    Findings,
    FilesRead,
    RemainingDims,
}

/// The checkpoint that a line is; none if it is no such line.
pub(super) fn checkpoint(text: &str, is_settled: bool, position: Position) -> Option<Found> {
    let narrow = narrow(text);
    let rest = behind_word(&narrow)?.trim_end().trim_end_matches(['*', '`', '_']);
    let mut found = Checkpoint { turn: 0, findings: None, files_read: None, remaining_dims: None, position };
    let mut turn = None;
    let mut is_partly_read = false;
    let mut parts = parts(rest);
    // A number that the text stops with may have had more digits, and a list more dimensions.
    let is_closed = |(part, value): &(Part, &str)| {
        *part == Part::RemainingDims && value.trim_end().ends_with([']', '】', '］'])
    };
    if !is_settled && parts.last().is_some_and(|last| !is_closed(last)) {
        parts.pop();
    }
    for (part, value) in parts {
        if is_placeholder(value) {
            return Some(Found::Template);
        }
        let known = match part {
            Part::Turn => &mut turn,
            Part::Findings => &mut found.findings,
            Part::FilesRead => &mut found.files_read,
            Part::RemainingDims => {
                found.remaining_dims.get_or_insert_with(|| list(value));
                continue;
            }
        };
        let number = number(value);
        is_partly_read |= number.is_none();
        *known = known.or(number);
    }
    Some(match turn {
        Some(turn) if is_partly_read => Found::Part(Checkpoint { turn, ..found }),
        Some(turn) => Found::Checkpoint(Checkpoint { turn, ..found }),
        None => Found::Broken,
    })
}

/// What stands behind `[CHECKPOINT]`, `[CHECKPOINT 3]`, in `[CHECKPOINT turn:10 …]`, or behind the word without brackets
/// where the turn follows at once.
fn behind_word(text: &str) -> Option<&str> {
    const WORD: &str = "checkpoint";
    let text = text
        .trim_start_matches(|character: char| character.is_whitespace() || "*_`#>-+•".contains(character));
    let inner = text.strip_prefix(['[', '【']);
    let word = inner.unwrap_or(text).trim_start();
    let behind = word.get(WORD.len()..).filter(|_| word[..WORD.len()].eq_ignore_ascii_case(WORD))?;
    let is_turn = |text: &str| parts(text).first().is_some_and(|(part, _)| *part == Part::Turn);
    if inner.is_none() {
        let rest = behind.trim_start_matches([' ', '\t', ':', '-', '*', '`']);
        let is_apart = rest.len() < behind.len();
        let is_named = rest.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("turn"));
        return Some(rest).filter(|rest| is_apart && is_named && is_turn(rest));
    }
    let (before, rest) = behind.split_once([']', '】']).unwrap_or((behind, ""));
    if before.trim_matches([' ', '#']).chars().all(|sign| sign.is_ascii_digit()) {
        return behind.contains([']', '】']).then_some(rest);
    }
    // The brackets are around all of it, and around the list in it perhaps.
    let is_closed = behind.matches(']').count() > behind.matches('[').count();
    let inner = behind.trim_end().strip_suffix(']').filter(|_| is_closed).unwrap_or(behind);
    is_turn(before).then_some(inner)
}

/// The parts of a line, with what stands between each and the next.
fn parts(text: &str) -> Vec<(Part, &str)> {
    let mut begins: Vec<(usize, usize, Part)> = Vec::new();
    for (at, sign) in text.char_indices().filter(|(_, character)| matches!(character, ':' | '=' | '：')) {
        let before = text[..at].trim_end_matches([' ', '*', '_', '`']);
        if let Some((start, part)) = named(before) {
            begins.push((start, at + sign.len_utf8(), part));
        }
    }
    let ends = begins.iter().skip(1).map(|(start, ..)| *start).chain([text.len()]);
    begins
        .iter()
        .zip(ends)
        .filter_map(|((_, value, part), end)| Some((*part, text.get(*value..end)?)))
        .collect()
}

/// The name that a text ends with, and where it begins; spaces and dashes do for `_`.
fn named(before: &str) -> Option<(usize, Part)> {
    let folded: String = before
        .chars()
        .map(|character| if matches!(character, ' ' | '-') { '_' } else { character.to_ascii_lowercase() })
        .collect();
    let of_name = |name: &str| {
        let start = folded.len().checked_sub(name.len()).filter(|_| folded.ends_with(name))?;
        let is_word =
            !before[..start].ends_with(|character: char| character.is_alphanumeric() || character == '_');
        is_word.then_some(start)
    };
    // The longest name counts: `files read` is more than `read`.
    NAMES.iter().filter_map(|(name, part)| Some((of_name(name)?, *part))).min_by_key(|(start, _)| *start)
}

fn number(value: &str) -> Option<u32> {
    let value =
        value.trim_matches(|character: char| character.is_whitespace() || "*_`,;|".contains(character));
    // `10/40` is the tenth of forty.
    number_alone(value)
}

/// `a,b` or `[a,b]`, with commas of other scripts too; `none` is an empty list.
pub(super) fn list(value: &str) -> Vec<String> {
    let value = value.trim_matches(|character: char| character.is_whitespace() || "*`|;".contains(character));
    let value = value.strip_prefix(['[', '［', '【']).unwrap_or(value);
    let value = value.strip_suffix([']', '］', '】']).unwrap_or(value);
    let items = value.split([',', '，', '、', ';', '；']).map(|item| {
        item.trim_matches(|character: char| character.is_whitespace() || "\"'`*".contains(character))
    });
    let items = items.filter(|item| !item.is_empty() && *item != NOT_NAMED);
    let items: Vec<String> = items.map(str::to_owned).collect();
    match items.as_slice() {
        [word] if ["none", "-", "n/a", "∅"].iter().any(|none| word.eq_ignore_ascii_case(none)) => {
            Vec::new()
        }
        _ => items,
    }
}
