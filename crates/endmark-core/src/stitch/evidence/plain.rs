//! What speaks for and against a seam of a text without grammar.

use crate::Format;
use crate::stitch::joint::Joint;
use crate::stitch::preamble::{self, Certainty, NewTurn};
use crate::stitch::restart;
use crate::stitch::seam::AskedFrom;
use crate::stitch::survivor::Survivor;
use crate::stitch::units::{Reading, Units};

/// How much likelier a continuation is something else if it says again what was said, in bits.
const SAID_AGAIN: f64 = 20.0;

/// How unlikely it is that the continuation is none of the stories, in bits.
pub(super) fn something_else(joint: &Joint<'_>, best: &Survivor) -> f64 {
    let unlikely = match joint.from {
        AskedFrom::Cut => 9.0,
        AskedFrom::Token | AskedFrom::Unknown => 5.0,
    };
    if says_again(joint, best) { unlikely - SAID_AGAIN } else { unlikely }
}

/// Whether a text goes on, behind the seam, with what its first part said before.
fn says_again(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    restart::said_again(joint.initial, joint.continuation, joint.from)
        .is_some_and(|at| at >= survivor.candidate.start)
}

/// What the form of a survivor speaks against it, apart from how its seam looks.
pub(super) fn form(joint: &Joint<'_>, survivor: &Survivor) -> f64 {
    if fence_in_line(joint, survivor) { 14.0 } else { 0.0 }
}

/// Whether a survivor leaves a fence in the middle of a line, where none is.
fn fence_in_line(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let own = &survivor.candidate;
    let part = &joint.continuation[own.start..own.end];
    own.glue != "\n"
        && (part.starts_with("```") || part.starts_with("~~~"))
        && !joint.initial[..own.keep].trim_end_matches([' ', '\t', '`', '~']).ends_with('\n')
        && crate::stitch::fence::opening(part).is_some()
}

/// What speaks against a continuation that is taken as it stands: that it answers rather than continues.
pub(super) fn signs_of_a_new_turn(joint: &Joint<'_>, before: &[char]) -> f64 {
    let continuation = joint.continuation;
    let mut cost = 0.0;
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
    if in_sentence && begins_sentence(continuation) {
        cost += if joint.from == AskedFrom::Cut { 8.0 } else { 4.0 };
    }
    let head = Units::read(preamble::head(continuation, 4_000), Reading::Plain);
    if restart::diverges(&joint.settled_units, &head) {
        cost += 12.0;
    }
    if joint.format == Format::Text && preamble::ends_with_remark(continuation).is_some() {
        cost += 9.0;
    }
    cost
}

/// Whether a continuation begins as a sentence does that is never found in the middle of one.
pub(super) fn begins_sentence(continuation: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "The ", "This ", "That ", "These ", "Those ", "It ", "In ", "Here ", "There ", "To ", "If ", "We ",
        "You ", "As ", "A ", "An ", "Every ", "Our ", "My ", "Your ", "They ", "He ", "She ", "When ",
        "What ", "While ", "For ", "On ", "At ", "With ", "After ", "Once ", "First, ",
    ];
    let text = continuation.trim_start();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// Whether a continuation begins with a heading, a list or a table, which no line has in its middle.
pub(super) fn begins_block(continuation: &str, glued: bool) -> bool {
    let line = continuation.lines().next().unwrap_or_default();
    let signs = line.len() - line.trim_start_matches('#').len();
    let is_heading = (1..=6).contains(&signs) && line[signs..].starts_with(' ');
    let stands_alone = continuation[line.len()..].starts_with("\n\n");
    let is_row = line.starts_with("| ") && line.ends_with('|');
    is_heading && (stands_alone || glued) || glued && (line.starts_with("- **") || is_row)
}
