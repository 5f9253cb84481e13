//! Computes how unlikely it is that a continuation is a separate text: an answer, another document, or the
//! same text again.

use super::candidates::is_only_closing_punctuation;
use crate::stitch::candidate::Candidate;
use crate::stitch::joint::Joint;
use crate::stitch::lines::is_sentence;
use crate::stitch::prompt_echo_and_remarks;
use crate::stitch::register::{self, SurroundingText};
use crate::stitch::restart::{self, RepeatedPassage};
use crate::stitch::seam::AskedFrom;
use crate::stitch::units::{Reading, Units};

/// Minimum length, in bytes, of a verbatim repetition of any part of the first part that adds nothing.
const MIN_VERBATIM_REPEAT_BYTES: usize = 40;
/// Minimum length, in bytes, of a repetition of the beginning of the first part that adds nothing.
const MIN_BEGINNING_REPEAT_BYTES: usize = 20;
/// Penalty, in bits, for treating lone closing punctuation, or the end of open emphasis, as an answer.
const CLOSING_ANSWER_PENALTY: f64 = 10.0;
/// Penalty, in bits, for an answer after a repeated part.
const AFTER_REPETITION_PENALTY: f64 = 12.0;

/// Returns how unlikely it is, in bits, that the continuation is a separate text.
pub(super) fn separate_text_cost(
    joint: &Joint<'_>,
    around: &SurroundingText,
    best: &Candidate,
    cost: f64,
) -> f64 {
    let continuation = joint.continuation;
    let mut bits = match joint.from {
        AskedFrom::Cut => 14.0,
        AskedFrom::Token | AskedFrom::Unknown => 9.0,
    };
    // A separate text begins with a capital letter, a digit or a block marker.
    bits += match continuation.chars().next() {
        Some(first) if first.is_lowercase() || first.is_whitespace() => 6.0,
        Some('.' | ',' | ';' | ')' | ']' | '}' | ':' | '\'' | '/' | '(' | '"') => 6.0,
        _ => 0.0,
    };
    bits += if continuation.starts_with("```") { 5.0 } else { 0.0 };
    let line = continuation.lines().next().unwrap_or_default();
    let closes = is_only_closing_punctuation(continuation) || register::closes_emphasis(joint.initial, line);
    bits += if closes { CLOSING_ANSWER_PENALTY } else { 0.0 };
    // The rest follows an announcement, even if the announcement resembles an answer.
    let answers = register::separate_answer_evidence(joint, around);
    bits += match joint.from {
        _ if best.announcement_bits > 0.0 => best.announcement_bits / 2.0,
        // At the beginning of a line, both are about equally likely, unless the continuation reads like an
        // answer.
        AskedFrom::Token | AskedFrom::Unknown if joint.initial.ends_with('\n') => -answers,
        _ => -answers.max(0.0),
    };
    // After a restart from the beginning, only a second restart indicates a loop.
    let is_restart = best.repeated_bytes == joint.initial.len();
    let of_end_too = if is_restart { AskedFrom::Cut } else { joint.from };
    let again = restart::find_repeated_passage(joint.initial, continuation, best.start, of_end_too);
    if let Some(RepeatedPassage { position: at, share }) = again {
        let again = continuation[at..]
            .bytes()
            .zip(joint.initial.trim_start().bytes())
            .take_while(|(left, right)| left == right);
        let most = if joint.from == AskedFrom::Cut && again.count() < 60 { 8.0 } else { 20.0 };
        // A loop may begin by repeating the end of the text.
        let of_end = if best.repeated_bytes > 0 { cost.min(0.0) } else { 0.0 };
        let telling = (2.5 * share).min(1.0);
        bits += telling * (of_end - most);
    }
    let shared = shared_with_beginning(joint, continuation);
    let head = &continuation[..continuation.floor_char_boundary(4_000 + shared)];
    let units = Units::read(head, Reading::Plain);
    if best.repeated_bytes == 0 && restart::diverges(&joint.settled_units, &units) {
        // The longer the text is repeated before it differs, the less likely the continuation belongs to it.
        bits -= if shared * 2 > joint.initial.trim_end().len() { 28.0 } else { 16.0 };
    }
    if joint.from != AskedFrom::Cut
        && prompt_echo_and_remarks::quotes_the_prompt(joint.initial, best.added_text(joint))
    {
        bits += cost.min(0.0) - 60.0;
    }
    if is_other_version(joint, best) {
        bits = bits.min(cost + 2.0);
    }
    let added = best.added_text(joint).trim();
    let is_old = added.len() >= MIN_VERBATIM_REPEAT_BYTES && joint.initial.contains(added)
        || added.len() >= MIN_BEGINNING_REPEAT_BYTES && joint.initial.trim_start().starts_with(added);
    if joint.from != AskedFrom::Cut && is_old {
        bits -= 30.0;
    }
    if best.repeated_bytes > 0 && best.added_text(joint).starts_with(['\n', '\r']) {
        if has_prose_after_markup(joint, best) {
            bits = bits.min(cost + 3.0);
        }
        // A model that repeats the last line and then addresses the reader has nothing to add.
        let answer = register::answer_evidence(joint, around, best.start);
        bits = bits.min(cost + AFTER_REPETITION_PENALTY - answer);
    }
    bits
}

/// Returns the length, in bytes, of the common beginning of a text and the first part.
fn shared_with_beginning(joint: &Joint<'_>, text: &str) -> usize {
    joint.initial.bytes().zip(text.bytes()).take_while(|(left, right)| left == right).count()
}

/// Whether the repeated part of a candidate begins another version of the text, which then differs.
fn is_other_version(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    let again = &joint.continuation[candidate.text_start..];
    let again = &again[..again.floor_char_boundary(4_000)];
    candidate.repeated_bytes > 0
        && shared_with_beginning(joint, again) > candidate.repeated_bytes
        && restart::diverges_from_start(&joint.settled_units, &Units::read(again, Reading::Plain))
}

/// Whether all lines of the first part are markup, an element ends at the cut, and a sentence follows.
fn has_prose_after_markup(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    let mut lines = joint.initial.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.clone().next_back().unwrap_or_default();
    let ends = last.ends_with("/>") || last.rfind('<').is_some_and(|at| last[at..].starts_with("</"));
    let line = candidate.added_text(joint).trim_start().lines().next().unwrap_or_default();
    ends && lines.all(|line| line.starts_with('<') && line.ends_with('>'))
        && is_sentence(line)
        && line.split_whitespace().count() >= 6
        && !line.contains(register::is_code_character)
}
