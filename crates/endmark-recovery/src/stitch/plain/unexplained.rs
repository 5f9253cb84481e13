//! Computes how unlikely it is that no story explains a continuation, which may be an answer, another document, or
//! the same text again.

use super::story::only_closes;
use crate::stitch::candidate::Candidate;
use crate::stitch::joint::Joint;
use crate::stitch::lines::is_sentence;
use crate::stitch::preamble;
use crate::stitch::register::{self, SurroundingText};
use crate::stitch::restart::{self, RepeatedPassage};
use crate::stitch::seam::AskedFrom;
use crate::stitch::units::{Reading, Units};

/// Length in bytes from which a verbatim repetition of the first part adds nothing.
const MIN_VERBATIM_REPEAT_BYTES: usize = 40;
/// Length in bytes from which a repetition of the beginning of the first part adds nothing.
const MIN_BEGINNING_REPEAT_BYTES: usize = 20;
/// Penalty in bits for treating a single full stop, or the end of open emphasis, as an answer.
const CLOSING_ANSWER_PENALTY: f64 = 10.0;
/// Penalty, in bits, for an answer after a repetition.
const AFTER_REPETITION_PENALTY: f64 = 12.0;

/// Returns how unlikely it is that the continuation is a separate text, in bits.
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
    // A separate text begins with a capital letter or the sign of a block.
    bits += match continuation.chars().next() {
        Some(first) if first.is_lowercase() || first.is_whitespace() => 6.0,
        Some('.' | ',' | ';' | ')' | ']' | '}' | ':' | '\'' | '/' | '(' | '"') => 6.0,
        _ => 0.0,
    };
    bits += if continuation.starts_with("```") { 5.0 } else { 0.0 };
    let line = continuation.lines().next().unwrap_or_default();
    let closes = only_closes(continuation) || register::closes_emphasis(joint.initial, line);
    bits += if closes { CLOSING_ANSWER_PENALTY } else { 0.0 };
    // An announcement of the rest is followed by the rest, even if it begins like an answer.
    let answers = register::answers(joint, around);
    bits += match joint.from {
        _ if best.announced > 0.0 => best.announced / 2.0,
        // At the beginning of a line it belongs to the text half of the time, if it does not read as an answer.
        AskedFrom::Token | AskedFrom::Unknown if joint.initial.ends_with('\n') => -answers,
        _ => -answers.max(0.0),
    };
    // A restart from the beginning is a loop only if it reaches the beginning again.
    let is_restart = best.repeated == joint.initial.len();
    let of_end_too = if is_restart { AskedFrom::Cut } else { joint.from };
    let again = restart::find_repeated_passage(joint.initial, continuation, best.start, of_end_too);
    if let Some(RepeatedPassage { position: at, share }) = again {
        let again = continuation[at..]
            .bytes()
            .zip(joint.initial.trim_start().bytes())
            .take_while(|(left, right)| left == right);
        let most = if joint.from == AskedFrom::Cut && again.count() < 60 { 8.0 } else { 20.0 };
        // A loop may begin by repeating the end.
        let of_end = if best.repeated > 0 { cost.min(0.0) } else { 0.0 };
        let telling = (2.5 * share).min(1.0);
        bits += telling * (of_end - most);
    }
    let shared = shared_with_beginning(joint, continuation);
    let head = &continuation[..continuation.floor_char_boundary(4_000 + shared)];
    let units = Units::read(head, Reading::Plain);
    if best.repeated == 0 && restart::diverges(&joint.settled_units, &units) {
        // The more of the text it repeats before it differs, the less likely it is part of the text.
        bits -= if shared * 2 > joint.initial.trim_end().len() { 28.0 } else { 16.0 };
    }
    if joint.from != AskedFrom::Cut && preamble::quotes_the_prompt(joint.initial, best.added_text(joint)) {
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
    if best.repeated > 0 && best.added_text(joint).starts_with(['\n', '\r']) {
        if has_prose_after_markup(joint, best) {
            bits = bits.min(cost + 3.0);
        }
        // A model that repeats the last line and then addresses the reader has nothing to add.
        let answer = register::answer_evidence(joint, around, best.start);
        bits = bits.min(cost + AFTER_REPETITION_PENALTY - answer);
    }
    bits
}

/// Returns the number of bytes of its beginning that a text shares with the first part.
fn shared_with_beginning(joint: &Joint<'_>, text: &str) -> usize {
    joint.initial.bytes().zip(text.bytes()).take_while(|(left, right)| left == right).count()
}

/// Whether the repeated end in a story is the beginning of the text, which then differs.
fn is_other_version(joint: &Joint<'_>, story: &Candidate) -> bool {
    let again = &joint.continuation[story.opening..];
    let again = &again[..again.floor_char_boundary(4_000)];
    story.repeated > 0
        && shared_with_beginning(joint, again) > story.repeated
        && restart::diverges_from_start(&joint.settled_units, &Units::read(again, Reading::Plain))
}

/// Whether the first part consists of lines of markup, the last line ends an element, and a sentence follows.
fn has_prose_after_markup(joint: &Joint<'_>, story: &Candidate) -> bool {
    let mut lines = joint.initial.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.clone().next_back().unwrap_or_default();
    let ends = last.ends_with("/>") || last.rfind('<').is_some_and(|at| last[at..].starts_with("</"));
    let line = story.added_text(joint).trim_start().lines().next().unwrap_or_default();
    ends && lines.all(|line| line.starts_with('<') && line.ends_with('>'))
        && is_sentence(line)
        && line.split_whitespace().count() >= 6
        && !line.contains(register::is_code_character)
}
