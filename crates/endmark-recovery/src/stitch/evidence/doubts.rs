//! Cases in JSON that likelihood cannot decide: equal neighbours or a repetition, a token that is continued
//! or written again, and a further repeated row.

use crate::stitch::joint::Joint;
use crate::stitch::seam::AskedFrom;
use crate::stitch::survivor::Survivor;

use super::grammar::is_number_character;
use crate::stitch::decision::MAX_TRIVIAL_OVERLAP_BYTES;

/// Whether the best survivor drops the whole continuation as a repetition of the last row, although the last
/// rows are equal. The continuation may be the next equal row.
pub(super) fn drops_repeated_row(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    let added = &joint.continuation[own.start.min(own.end)..own.end];
    let before = &joint.initial[..own.keep - own.repeated_bytes];
    // The whitespace between two rows belongs to the period.
    let gap = before.len() - before.trim_end().len();
    own.repeated_bytes > 0
        && !joint.in_text
        && added.trim().is_empty()
        && joint.is_periodic(own.repeated_bytes + gap)
}

/// Whether it is unclear if the continuation extends the token at the cut or writes it again. Both readings
/// must be possible at the requested position, match the received part of the token, and give a whole text.
pub(super) fn may_rewrite_token(joint: &Joint<'_>, survivors: &[Survivor], best: &Survivor) -> bool {
    let own = &best.candidate;
    let open_token = &joint.initial[joint.settled_bytes..];
    let rest = &joint.continuation[own.text_start..];
    let is_escape = joint.in_text && open_token == "\\" && rest.starts_with('\\');
    // One or two digits match by chance.
    let is_short = open_token.len() <= 2 && open_token.starts_with(is_number_character);
    let is_number = !joint.in_text && is_short && rest.starts_with(open_token);
    let is_whole_from = |keep: usize| {
        survivors.iter().any(|survivor| {
            let other = &survivor.candidate;
            let is_same_place =
                other.start == own.text_start && other.glue.is_empty() && other.repeated_bytes == 0;
            other.keep == keep && is_same_place && survivor.grammar_state.is_whole()
        })
    };
    // A model that was asked to continue after the last settled token writes the token again. But in a string
    // with `\\`, its backslash may be the second one of a pair.
    let is_untold = match joint.from {
        AskedFrom::Unknown => is_escape || is_number,
        AskedFrom::Token => is_escape && string_at_cut(joint).contains("\\\\"),
        AskedFrom::Cut => false,
    };
    is_untold
        && own.repeated_bytes < MAX_TRIVIAL_OVERLAP_BYTES
        && is_whole_from(joint.settled_bytes)
        && is_whole_from(joint.initial.len())
}

/// Whether digits are on both sides of the cut, and the best survivor is not the requested join. The digits
/// may belong to one number or to two.
pub(super) fn joins_digits(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    !joint.in_text
        && (joint.from == AskedFrom::Unknown || !own.is_as_requested(joint))
        && joint.initial[joint.settled_bytes..].starts_with(is_number_character)
        && joint.continuation[own.text_start..].starts_with(is_number_character)
}

/// Whether a survivor drops an unfinished token and does not write it again. A received minus sign or decimal
/// point, for example, proves that more must follow.
pub(super) fn drops_unfinished_token(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    let open_token = &joint.initial[joint.settled_bytes..];
    let is_unfinished = !joint.in_text
        && !open_token.is_empty()
        && !open_token.ends_with(|character: char| character.is_ascii_digit());
    own.keep < joint.initial.len()
        && is_unfinished
        && !joint.continuation[own.text_start..].trim_start().starts_with(open_token)
}

/// Returns the received text after the last `"`: the string at the cut, or only its tail if it contains an
/// escaped quote.
fn string_at_cut<'a>(joint: &Joint<'a>) -> &'a str {
    joint.initial[..joint.settled_bytes].rsplit('"').next().unwrap_or_default()
}

/// Whether the continuation repeats escaped line feeds as raw ones, which JSON forbids in strings. Then the
/// intended rest of the string is unknown.
pub(super) fn repeats_with_raw_line_ends(joint: &Joint<'_>, best: &Survivor) -> bool {
    let own = &best.candidate;
    let again = joint.continuation.get(own.text_start..own.start).unwrap_or_default();
    let repeated = &joint.initial[own.keep - own.repeated_bytes..own.keep];
    let escaped = |text: &str| text.matches("\\n").count();
    joint.in_text && again.contains('\n') && escaped(again) < escaped(repeated)
}

/// Whether the cut is between tokens, and the repeated part is a few words. The words may be two equal
/// neighbours or a repetition.
pub(in crate::stitch) fn may_be_neighbours(joint: &Joint<'_>, survivor: &Survivor) -> bool {
    let own = &survivor.candidate;
    let repeated = &joint.initial[own.keep - own.repeated_bytes..own.keep];
    let mut words = repeated.split(|character: char| !character.is_alphabetic());
    !joint.in_text
        && !joint.is_periodic(own.repeated_bytes)
        && repeated.len() < 64
        && words.any(|word| word.chars().count() >= 3)
}
