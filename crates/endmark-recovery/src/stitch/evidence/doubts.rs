//! Doubts in JSON that no likelihood can resolve: two equal neighbours or a repetition, a token that is continued or
//! written again, and one more period of rows.

use crate::stitch::joint::Joint;
use crate::stitch::seam::AskedFrom;
use crate::stitch::survivor::Survivor;

use super::grammar::is_number_character;
use crate::stitch::decision::MAX_TRIVIAL_OVERLAP_BYTES;

/// Whether the likeliest survivor drops the whole continuation as a repetition of a row that occurs more than once at
/// the end of the first part. It may be the next such row.
pub(super) fn drops_repeated_row(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    let added = &joint.continuation[own.start.min(own.end)..own.end];
    let before = &joint.initial[..own.keep - own.repeated];
    // The text between two rows belongs to the period.
    let gap = before.len() - before.trim_end().len();
    own.repeated > 0 && !joint.in_text && added.trim().is_empty() && joint.is_periodic(own.repeated + gap)
}

/// Whether it is unknown if the token at the cut is continued or written again. This is so if the requested position
/// is unknown, both readings are whole, and digits or escaped text fit both.
pub(super) fn may_rewrite_token(joint: &Joint<'_>, survivors: &[Survivor], best: &Survivor) -> bool {
    let own = &best.candidate;
    let open_token = &joint.initial[joint.settled_bytes..];
    let rest = &joint.continuation[own.opening..];
    let is_escape = joint.in_text && open_token == "\\" && rest.starts_with('\\');
    // This few digits match by chance.
    let is_short = open_token.len() <= 2 && open_token.starts_with(is_number_character);
    let is_number = !joint.in_text && is_short && rest.starts_with(open_token);
    let is_whole_from = |keep: usize| {
        survivors.iter().any(|survivor| {
            let other = &survivor.candidate;
            let is_same_place = other.start == own.opening && other.glue.is_empty() && other.repeated == 0;
            other.keep == keep && is_same_place && survivor.grammar_state.is_whole()
        })
    };
    // A model that saw the text without the token writes it again. In a string with backslashes, however, it may be
    // the second of two.
    let is_untold = match joint.from {
        AskedFrom::Unknown => is_escape || is_number,
        AskedFrom::Token => is_escape && string_at_cut(joint).contains("\\\\"),
        AskedFrom::Cut => false,
    };
    is_untold
        && own.repeated < MAX_TRIVIAL_OVERLAP_BYTES
        && is_whole_from(joint.settled_bytes)
        && is_whole_from(joint.initial.len())
}

/// Whether digits precede and follow the cut, and the likeliest survivor is not the requested one. The digits may
/// belong to one number or to two.
pub(super) fn joins_digits(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    !joint.in_text
        && (joint.from == AskedFrom::Unknown || !own.is_asked(joint))
        && joint.initial[joint.settled_bytes..].starts_with(is_number_character)
        && joint.continuation[own.opening..].starts_with(is_number_character)
}

/// Whether a survivor drops an unfinished token and does not write it again. The received part of the token, such as
/// a sign or a decimal point, proves that more must follow.
pub(super) fn drops_unfinished_token(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    let open_token = &joint.initial[joint.settled_bytes..];
    let is_unfinished =
        !joint.in_text && !open_token.is_empty() && !open_token.ends_with(|sign: char| sign.is_ascii_digit());
    own.keep < joint.initial.len()
        && is_unfinished
        && !joint.continuation[own.opening..].trim_start().starts_with(open_token)
}

/// Returns the received part of the string at the cut as written, at least the part after its last quote.
fn string_at_cut<'a>(joint: &Joint<'a>) -> &'a str {
    joint.initial[..joint.settled_bytes].rsplit('"').next().unwrap_or_default()
}

/// Whether a survivor's repeated part has raw line ends within strings, which JSON forbids. The intended rest of the
/// string is then unknown.
pub(super) fn forgets_escapes(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    let again = joint.continuation.get(own.opening..own.start).unwrap_or_default();
    let repeated = &joint.initial[own.keep - own.repeated..own.keep];
    let escaped = |text: &str| text.matches("\\n").count();
    joint.in_text && again.contains('\n') && escaped(again) < escaped(repeated)
}

/// Whether the cut is between tokens and a survivor's repeated part is a few words. They may be two equal neighbours
/// or a repetition.
pub(in crate::stitch) fn may_be_neighbours(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let own = &survivor.candidate;
    let repeated = &joint.initial[own.keep - own.repeated..own.keep];
    let mut words = repeated.split(|sign: char| !sign.is_alphabetic());
    !joint.in_text
        && !joint.is_periodic(own.repeated)
        && repeated.len() < 64
        && words.any(|word| word.chars().count() >= 3)
}
