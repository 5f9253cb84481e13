//! What nothing tells in JSON, however likely it looks: two equal neighbours or one said twice, a token gone on with or
//! written anew, one more round of rows.

use crate::stitch::joint::Joint;
use crate::stitch::seam::AskedFrom;
use crate::stitch::survivor::Survivor;

use super::grammar::in_numbers;
use crate::stitch::decision::HAIR;

/// Whether the likeliest survivor leaves out all that the continuation says, for a row that the first part ends with
/// more than once: it may as well be the next of them.
pub(super) fn says_one_more_round(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    let added = &joint.continuation[own.start.min(own.end)..own.end];
    let before = &joint.initial[..own.keep - own.repeated];
    // What parts two rows belongs to the round.
    let gap = before.len() - before.trim_end().len();
    own.repeated > 0 && !joint.in_text && added.trim().is_empty() && joint.goes_round(own.repeated + gap)
}

/// Whether nothing tells if the token that the cut goes through goes on or is written anew: where the model was asked to go on
/// is not known, both are whole, and digits, or what is escaped in a string, may be the one or the other.
pub(super) fn may_be_anew(joint: &Joint<'_>, survivors: &[Survivor], best: &Survivor) -> bool {
    let own = &best.candidate;
    let begun = &joint.initial[joint.settled..];
    let rest = &joint.continuation[own.opening..];
    let is_escape = joint.in_text && begun == "\\" && rest.starts_with('\\');
    // So few digits meet by chance.
    let is_short = begun.len() <= 2 && begun.starts_with(in_numbers);
    let is_number = !joint.in_text && is_short && rest.starts_with(begun);
    let is_whole_from = |keep: usize| {
        survivors.iter().any(|survivor| {
            let other = &survivor.candidate;
            let stands = other.start == own.opening && other.glue.is_empty() && other.repeated == 0;
            other.keep == keep && stands && survivor.standing.is_whole()
        })
    };
    // Who was shown the text without the token begins it anew; but in a string that has backslashes it may be the second of two.
    let is_untold = match joint.from {
        AskedFrom::Unknown => is_escape || is_number,
        AskedFrom::Token => is_escape && string_at_cut(joint).contains("\\\\"),
        AskedFrom::Cut => false,
    };
    is_untold && own.repeated < HAIR && is_whole_from(joint.settled) && is_whole_from(joint.initial.len())
}

/// Whether digits stand at the cut and behind it, and the likeliest survivor is not just what was asked for: they may be of one
/// number or of two.
pub(super) fn joins_digits(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    !joint.in_text
        && (joint.from == AskedFrom::Unknown || !own.is_asked(joint))
        && joint.initial[joint.settled..].starts_with(in_numbers)
        && joint.continuation[own.opening..].starts_with(in_numbers)
}

/// Whether a survivor leaves out a token that was begun and cannot have ended, and does not write it anew: what was received
/// of it, a sign or a point of a number, says that this is not all.
pub(super) fn contradicts_what_was_begun(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    let begun = &joint.initial[joint.settled..];
    let is_unfinished =
        !joint.in_text && !begun.is_empty() && !begun.ends_with(|sign: char| sign.is_ascii_digit());
    own.keep < joint.initial.len()
        && is_unfinished
        && !joint.continuation[own.opening..].trim_start().starts_with(begun)
}

/// What the first part has of the string that the cut goes through, as it is written; at least what follows its last quote.
fn string_at_cut<'a>(joint: &Joint<'a>) -> &'a str {
    joint.initial[..joint.settled].rsplit('"').next().unwrap_or_default()
}

/// Whether what a survivor takes for repeated says line ends of strings as such, which no string has: how the rest of the
/// string was meant nothing tells.
pub(super) fn forgets_escapes(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    let again = joint.continuation.get(own.opening..own.start).unwrap_or_default();
    let repeated = &joint.initial[own.keep - own.repeated..own.keep];
    let escaped = |text: &str| text.matches("\\n").count();
    joint.in_text && again.contains('\n') && escaped(again) < escaped(repeated)
}

/// Whether the cut is between tokens and what a survivor takes for repeated there is a few words, so that they may be two equal
/// neighbours or one that was repeated.
pub(in crate::stitch) fn may_be_neighbours(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let own = &survivor.candidate;
    let repeated = &joint.initial[own.keep - own.repeated..own.keep];
    let mut words = repeated.split(|sign: char| !sign.is_alphabetic());
    !joint.in_text
        && !joint.goes_round(own.repeated)
        && repeated.len() < 64
        && words.any(|word| word.chars().count() >= 3)
}
