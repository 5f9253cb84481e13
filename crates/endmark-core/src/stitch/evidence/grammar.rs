//! What speaks for and against a seam of a text whose grammar decides about it: JSON.

use crate::Format;
use crate::stitch::joint::Joint;
use crate::stitch::preamble::{self, Certainty, NewTurn};
use crate::stitch::restart;
use crate::stitch::seam::AskedFrom;
use crate::stitch::survivor::Survivor;
use crate::stitch::units::{Reading, Units};

/// What a text costs that is valid but not at its end.
pub(in crate::stitch) const NOT_AT_ITS_END: f64 = 5.0;
/// A repetition is no coincidence from so many bytes on, even where a clean continuation was asked for.
const LONG_REPETITION: usize = 24;

/// How unlikely it is that the continuation is none of the stories, in bits.
pub(super) fn something_else(joint: &Joint<'_>, best: &Survivor) -> f64 {
    match joint.in_text {
        false => 14.0,
        // Hardly anything that is none of the stories ends the document just so.
        true if best.verdict.is_whole() => 16.0,
        true => 11.0,
    }
}

/// What the form of a survivor speaks against it, apart from how its seam looks.
pub(super) fn form(survivor: &Survivor) -> f64 {
    if survivor.verdict.is_whole() { 0.0 } else { NOT_AT_ITS_END }
}

/// Whether the likeliest survivor shortens what was asked for at the cut and is whole as it stands for a short
/// repetition: two equal neighbours are ordinary.
pub(super) fn shortens_what_is_whole(joint: &Joint<'_>, survivors: &[Survivor], best: &Survivor) -> bool {
    let asked_is_whole = joint.from == AskedFrom::Cut
        && survivors.iter().any(|survivor| survivor.candidate.is_asked && survivor.verdict.is_whole());
    asked_is_whole && !best.candidate.is_asked && best.candidate.repeated < LONG_REPETITION
}

/// What speaks against a continuation that is taken as it stands: that it answers rather than continues.
pub(super) fn signs_of_a_new_turn(joint: &Joint<'_>, survivor: &Survivor, before: &[char]) -> f64 {
    let continuation = joint.continuation;
    let mut cost = 0.0;
    if joint.in_text {
        let last = before.iter().rev().find(|sign| !sign.is_whitespace());
        let in_sentence =
            last.is_some_and(|sign| sign.is_alphanumeric() || matches!(sign, ',' | '(' | '\'' | '-'));
        // A model that goes on writes the space before its first word; one that begins anew has none to write.
        let set_off = continuation.starts_with(char::is_whitespace);
        let behind_space = before.last().is_none_or(|last| last.is_whitespace());
        cost += match preamble::begins_with_announcement(continuation) {
            Some(Certainty::Certain) if !set_off => 18.0,
            Some(Certainty::Certain) => 7.0,
            Some(_) if !set_off && (in_sentence || !behind_space) => 9.0,
            Some(_) if in_sentence || !set_off => 4.0,
            _ => 0.0,
        };
        cost += match preamble::new_turn(continuation) {
            NewTurn::Certain if !set_off => 16.0,
            NewTurn::Certain if in_sentence => 8.0,
            NewTurn::Certain => 4.0,
            NewTurn::Possible if !set_off && !behind_space => 10.0,
            NewTurn::Possible if !set_off && in_sentence => 3.0,
            _ => 0.0,
        };
        let in_line = before.iter().rev().take_while(|sign| **sign != '\n').any(|sign| !sign.is_whitespace());
        if in_line && begins_block(continuation, !behind_space) {
            cost += 12.0;
        }
        if !survivor.verdict.is_whole() && is_short_and_done(continuation) {
            cost += 4.0;
        }
        if in_sentence && begins_sentence(continuation) {
            cost += if joint.from == AskedFrom::Cut { 8.0 } else { 4.0 };
        }
        let head = Units::read(preamble::head(continuation, 4_000), Reading::Content);
        if restart::diverges(&joint.settled_units, &head) {
            cost += 12.0;
        }
    } else if !survivor.verdict.is_whole() && is_document_of_its_own(joint) {
        cost += 14.0;
    }
    cost
}

/// Whether a continuation is a few finished sentences: one that is cut ends anywhere.
fn is_short_and_done(continuation: &str) -> bool {
    let text = continuation.trim_end();
    text.len() < 400 && text.ends_with(['.', '!', '?']) && text.contains(' ')
}

/// Whether the continuation is a whole document of the first part's kind by itself.
fn is_document_of_its_own(joint: &Joint<'_>) -> bool {
    let root = |text: &str| text.trim_start().bytes().next();
    root(joint.initial) == root(joint.continuation)
        && joint.format == Format::Json
        && crate::detect::detect(joint.continuation.as_bytes(), &joint.format).verdict.is_whole()
}

/// Whether a continuation begins as a sentence does that is never found in the middle of one.
fn begins_sentence(continuation: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "The ", "This ", "That ", "These ", "Those ", "It ", "In ", "Here ", "There ", "To ", "If ", "We ",
        "You ", "As ", "A ", "An ", "Every ", "Our ", "My ", "Your ", "They ", "He ", "She ", "When ",
        "What ", "While ", "For ", "On ", "At ", "With ", "After ", "Once ", "First, ",
    ];
    let text = continuation.trim_start();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// Whether a continuation begins with a heading, a list or a table, which no line has in its middle.
fn begins_block(continuation: &str, glued: bool) -> bool {
    let line = continuation.lines().next().unwrap_or_default();
    let signs = line.len() - line.trim_start_matches('#').len();
    let is_heading = (1..=6).contains(&signs) && line[signs..].starts_with(' ');
    let stands_alone = continuation[line.len()..].starts_with("\n\n");
    let is_row = line.starts_with("| ") && line.ends_with('|');
    is_heading && (stands_alone || glued) || glued && (line.starts_with("- **") || is_row)
}
