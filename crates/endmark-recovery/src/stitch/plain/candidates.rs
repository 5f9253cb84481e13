//! Proposes the candidates of a text without a grammar, each with its prior cost.

use super::continuation_starts::continuation_starts;
use super::ending::{RemovableEnds, text_ends};
use crate::stitch::candidate::Candidate;
use crate::stitch::continuation_start::ContinuationStart;
use crate::stitch::joint::Joint;
use crate::stitch::overlap::{may_overlap, overlaps};
use crate::stitch::register::{SurroundingText, opens_emphasis};
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::units::{Reading, Units};
use crate::stitch::{fence, restart};

/// Prior costs of kinds of candidates, in bits.
struct PriorCosts {
    clean: f64,
    repetition: f64,
    lost_character: f64,
}

fn prior(from: AskedFrom) -> PriorCosts {
    match from {
        AskedFrom::Cut => PriorCosts { clean: 0.0, repetition: 7.0, lost_character: 9.0 },
        AskedFrom::Token | AskedFrom::Unknown => {
            PriorCosts { clean: 1.0, repetition: 2.5, lost_character: 5.0 }
        }
    }
}

/// Returns all candidates of a joint.
pub(super) fn propose(joint: &Joint<'_>, around: &SurroundingText) -> Vec<Candidate> {
    let mut found = Vec::new();
    let last_line = joint.initial.rfind('\n').map_or(0, |at| at + 1);
    let (before, line) = joint.initial.split_at(last_line);
    let fences = (fence::line_count(before), line);
    let tails = RemovableEnds::new(joint, around);
    for opening in continuation_starts(joint, around) {
        let first = found.len();
        add_unchanged(joint, &opening, &mut found);
        add_repetitions(joint, &opening, &mut found);
        // Each further possible end adds a variant of each candidate.
        for index in first..found.len() {
            for (nth, end) in
                text_ends(joint, &opening, found[index].start, fences, &tails).into_iter().enumerate()
            {
                let mut story = found[index].clone();
                story.end = end.position;
                story.cost += end.cost;
                story.is_clean &= !end.is_dropped;
                if end.is_dropped && story.style == SeamStyle::Exact {
                    story.style = SeamStyle::Remark;
                }
                if nth == 0 { found[index] = story } else { found.push(story) }
            }
        }
    }
    found.retain(|story| story.start <= story.end);
    found
}

fn add_unchanged(joint: &Joint<'_>, opening: &ContinuationStart, found: &mut Vec<Candidate>) {
    let prior = prior(joint.from);
    let clean = Candidate {
        keep: joint.initial.len(),
        glue: "",
        start: opening.start,
        end: joint.continuation.len(),
        style: opening.style.unwrap_or(SeamStyle::Exact),
        cost: opening.cost + if opening.removes_nothing() { prior.clean } else { 0.0 },
        text_start: opening.start,
        repeated_bytes: 0,
        is_clean: opening.removes_nothing(),
        is_fenced: opening.fence.is_some(),
        announcement_bits: opening.announcement_bits,
    };
    let rest = &joint.continuation[opening.start..];
    if !rest.starts_with(char::is_whitespace)
        && !joint.initial.ends_with(char::is_whitespace)
        && opening.style != Some(SeamStyle::Whitespace)
        && !begins_with_closing_punctuation(joint.initial, rest)
        && !opens_emphasis(joint.initial)
    {
        let lost = if opening.is_on_own_line { 5.0 } else { prior.lost_character };
        for glue in [" ", "\n", "\n\n"] {
            found.push(Candidate {
                glue,
                style: opening.style.unwrap_or(SeamStyle::Whitespace),
                cost: opening.cost + lost,
                is_clean: false,
                ..clean.clone()
            });
        }
    }
    found.push(clean);
}

/// Punctuation that directly follows a word.
const CLOSING_PUNCTUATION: [char; 11] = ['.', ',', '!', '?', ';', '…', '。', '，', '、', '！', '？'];

/// Whether a character is punctuation that directly follows a word.
fn is_closing_punctuation(character: char) -> bool {
    CLOSING_PUNCTUATION.contains(&character)
}

/// Whether a text is only such punctuation, which is never an answer.
pub(super) fn is_only_closing_punctuation(text: &str) -> bool {
    let mut signs = text.trim().chars();
    signs.next().is_some_and(is_closing_punctuation) && signs.next().is_none()
}

/// Whether `rest` begins with punctuation that directly follows a word, so that no space was lost before it.
/// Returns `false` if the text has spaces there, as in French.
pub(super) fn begins_with_closing_punctuation(initial: &str, rest: &str) -> bool {
    let mut signs = rest.chars();
    let Some(sign) = signs.next().filter(|sign| is_closing_punctuation(*sign)) else { return false };
    let is_alone = signs.next().is_none_or(char::is_whitespace);
    let stands_apart =
        || initial.match_indices(sign).any(|(at, _)| initial[..at].ends_with(char::is_whitespace));
    is_alone && initial.ends_with(char::is_alphanumeric) && !stands_apart()
}

fn add_repetitions(joint: &Joint<'_>, opening: &ContinuationStart, found: &mut Vec<Candidate>) {
    let body = &joint.continuation[opening.start..];
    let prior = if opening.removes_nothing() { prior(joint.from).repetition } else { 3.0 };
    let candidate = |length: usize, again_length: usize, style: SeamStyle, cost: f64| Candidate {
        keep: joint.initial.len(),
        glue: "",
        start: opening.start + again_length,
        end: joint.continuation.len(),
        style: opening.style.unwrap_or(style),
        cost: opening.cost + prior + cost,
        text_start: opening.start,
        repeated_bytes: length,
        is_clean: false,
        is_fenced: opening.fence.is_some(),
        announcement_bits: opening.announcement_bits,
    };
    for count in repeated_lengths(joint, body) {
        let length = suffix_bytes(joint.initial, count);
        let at = joint.initial.len() - length;
        let style = if at == 0 { SeamStyle::Restart } else { SeamStyle::Overlap };
        // A few letters, or whitespace, match by chance.
        let is_blank = joint.initial[at..].trim().is_empty() && !is_indentation(joint.initial, at);
        let few = count < 4 || is_blank;
        let short = if !opening.removes_nothing() && few { 6.0 } else { 0.0 };
        found.push(candidate(length, length, style, start_cost(joint.initial, at) + short));
    }
    if let Some(length) = restart::position_after_reflowed(joint.initial, body) {
        found.push(candidate(joint.initial.len(), length, SeamStyle::Restart, 2.0));
    }
}

/// Returns the numbers of characters, longest first, at which the end of the first part equals the beginning
/// of `body`.
fn repeated_lengths(joint: &Joint<'_>, body: &str) -> Vec<usize> {
    if !may_overlap(joint.initial, body) {
        return Vec::new();
    }
    let most = joint.initial.len().min(body.len());
    let again = Units::read(&body[..body.floor_char_boundary(most)], Reading::Plain);
    overlaps(&joint.units_at(joint.initial.len()).codes, &again.codes)
}

/// Returns the length in bytes of the last `count` characters of a text.
fn suffix_bytes(text: &str, count: usize) -> usize {
    let first = count.checked_sub(1).and_then(|before| text.char_indices().nth_back(before));
    first.map_or(0, |(at, _)| text.len() - at)
}

/// Whether the text from `at` on is only the indentation of its last line. A model that repeats that line
/// begins with its indentation.
fn is_indentation(text: &str, at: usize) -> bool {
    let (before, indent) = text.split_at(at);
    before.ends_with('\n') && indent.len() >= 4 && indent.chars().all(|sign| matches!(sign, ' ' | '\t'))
}

/// Returns how unlikely it is, in bits, that a model that repeats a part begins at this position.
fn start_cost(text: &str, at: usize) -> f64 {
    let before = &text[..at];
    let repeated = &text[at..];
    if is_indentation(text, at) {
        return 1.0;
    }
    if repeated.trim().is_empty() {
        return if repeated.contains('\n') { 6.0 } else { 3.0 };
    }
    let short = match repeated.chars().take(3).count() {
        1 => 3.0,
        2 => 1.5,
        _ => 0.0,
    };
    let lettered = repeated.chars().take(8).any(char::is_alphabetic);
    let short = if lettered { short } else { short + 2.0 };
    short
        + match (before.chars().next_back(), repeated.chars().next()) {
            (None | Some('\n'), _) => 0.5,
            (Some(before), Some(first))
                if restart::is_word_character(before) && restart::is_word_character(first) =>
            {
                4.0
            }
            (Some(before), Some(_)) if before.is_whitespace() => 1.0,
            _ => 2.0,
        }
}
