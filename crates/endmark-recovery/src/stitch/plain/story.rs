//! Proposes the stories of how a continuation came about, with the prior cost of each.

use super::ending::{Tails, ends};
use super::opening::openings;
use crate::stitch::candidate::Candidate;
use crate::stitch::joint::Joint;
use crate::stitch::opening::Opening;
use crate::stitch::overlap::{may_overlap, overlaps};
use crate::stitch::register::{SurroundingText, opens_emphasis};
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::units::{Reading, Units};
use crate::stitch::{fence, restart};

/// Prior costs of stories, in bits.
struct Prior {
    clean: f64,
    repetition: f64,
    lost_character: f64,
}

fn prior(from: AskedFrom) -> Prior {
    match from {
        AskedFrom::Cut => Prior { clean: 0.0, repetition: 7.0, lost_character: 9.0 },
        AskedFrom::Token | AskedFrom::Unknown => Prior { clean: 1.0, repetition: 2.5, lost_character: 5.0 },
    }
}

/// Returns all stories of a joint.
pub(super) fn stories(joint: &Joint<'_>, around: &SurroundingText) -> Vec<Candidate> {
    let mut found = Vec::new();
    let last_line = joint.initial.rfind('\n').map_or(0, |at| at + 1);
    let (before, line) = joint.initial.split_at(last_line);
    let fences = (fence::lines(before), line);
    let tails = Tails::new(joint, around);
    for opening in openings(joint, around) {
        let first = found.len();
        add_plain(joint, &opening, &mut found);
        repetitions(joint, &opening, &mut found);
        // Each end adds a story for each of them.
        for index in first..found.len() {
            for (nth, end) in
                ends(joint, &opening, found[index].start, fences, &tails).into_iter().enumerate()
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

fn add_plain(joint: &Joint<'_>, opening: &Opening, found: &mut Vec<Candidate>) {
    let prior = prior(joint.from);
    let clean = Candidate {
        keep: joint.initial.len(),
        glue: "",
        start: opening.start,
        end: joint.continuation.len(),
        style: opening.style.unwrap_or(SeamStyle::Exact),
        cost: opening.cost + if opening.is_bare() { prior.clean } else { 0.0 },
        opening: opening.start,
        repeated: 0,
        is_clean: opening.is_bare(),
        fenced: opening.fence.is_some(),
        announced: opening.announced,
    };
    let rest = &joint.continuation[opening.start..];
    if !rest.starts_with(char::is_whitespace)
        && !joint.initial.ends_with(char::is_whitespace)
        && opening.style != Some(SeamStyle::Whitespace)
        && !closes_directly(joint.initial, rest)
        && !opens_emphasis(joint.initial)
    {
        let lost = if opening.own_line { 5.0 } else { prior.lost_character };
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
const CLOSING: [char; 11] = ['.', ',', '!', '?', ';', '…', '。', '，', '、', '！', '？'];

/// Whether a sign is such a punctuation mark.
fn is_closing(sign: char) -> bool {
    CLOSING.contains(&sign)
}

/// Whether a text consists of such a mark, which is never an answer.
pub(super) fn only_closes(text: &str) -> bool {
    let mut signs = text.trim().chars();
    signs.next().is_some_and(is_closing) && signs.next().is_none()
}

/// Whether a part begins with a mark that directly follows a word, so that no white space was lost before it. This
/// does not apply to texts that have white space there, as in French.
pub(super) fn closes_directly(initial: &str, rest: &str) -> bool {
    let mut signs = rest.chars();
    let Some(sign) = signs.next().filter(|sign| is_closing(*sign)) else { return false };
    let is_alone = signs.next().is_none_or(char::is_whitespace);
    let stands_apart =
        || initial.match_indices(sign).any(|(at, _)| initial[..at].ends_with(char::is_whitespace));
    is_alone && initial.ends_with(char::is_alphanumeric) && !stands_apart()
}

fn repetitions(joint: &Joint<'_>, opening: &Opening, found: &mut Vec<Candidate>) {
    let body = &joint.continuation[opening.start..];
    let prior = if opening.is_bare() { prior(joint.from).repetition } else { 3.0 };
    let story = |length: usize, again_length: usize, style: SeamStyle, cost: f64| Candidate {
        keep: joint.initial.len(),
        glue: "",
        start: opening.start + again_length,
        end: joint.continuation.len(),
        style: opening.style.unwrap_or(style),
        cost: opening.cost + prior + cost,
        opening: opening.start,
        repeated: length,
        is_clean: false,
        fenced: opening.fence.is_some(),
        announced: opening.announced,
    };
    for count in repeated_lengths(joint, body) {
        let length = suffix_bytes(joint.initial, count);
        let at = joint.initial.len() - length;
        let style = if at == 0 { SeamStyle::Restart } else { SeamStyle::Overlap };
        // A few letters, or white space, match by chance.
        let is_blank = joint.initial[at..].trim().is_empty() && !is_indentation(joint.initial, at);
        let few = count < 4 || is_blank;
        let short = if !opening.is_bare() && few { 6.0 } else { 0.0 };
        found.push(story(length, length, style, start_cost(joint.initial, at) + short));
    }
    if let Some(length) = restart::position_after_reflowed(joint.initial, body) {
        found.push(story(joint.initial.len(), length, SeamStyle::Restart, 2.0));
    }
}

/// Returns the numbers of characters, longest first, at which the end of the first part equals the beginning of this
/// text.
fn repeated_lengths(joint: &Joint<'_>, body: &str) -> Vec<usize> {
    if !may_overlap(joint.initial, body) {
        return Vec::new();
    }
    let most = joint.initial.len().min(body.len());
    let again = Units::read(&body[..body.floor_char_boundary(most)], Reading::Plain);
    overlaps(&joint.units_at(joint.initial.len()).codes, &again.codes)
}

/// Returns the length in bytes of the last characters of a text.
fn suffix_bytes(text: &str, count: usize) -> usize {
    let first = count.checked_sub(1).and_then(|before| text.char_indices().nth_back(before));
    first.map_or(0, |(at, _)| text.len() - at)
}

/// Whether a text ends with the indentation of a line that begins here. A model that repeats that line begins with
/// its indentation.
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
