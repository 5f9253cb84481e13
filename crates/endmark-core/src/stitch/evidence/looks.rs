//! How a seam looks: whether what meets there meets in the rest of the text as well.

use crate::stitch::joint::Joint;
use crate::stitch::preamble;
use crate::stitch::seam::AskedFrom;
use crate::stitch::survivor::{Survivor, after_seam};
use crate::stitch::texture::{self, Texture};
use crate::stitch::units::{Reading, Units};

/// Around the seam so many characters are looked at.
pub(super) const NEAR: usize = 64;
/// Openings this close to each other are rivals for the same seam, in bytes.
const SAME_PLACE: usize = 12;

/// How unlikely it is that the text goes on as a survivor says, up to a place that all survivors near it share.
pub(super) fn looks(
    joint: &Joint<'_>,
    texture: &Texture,
    before: &[char],
    survivor: &Survivor,
    survivors: &[Survivor],
) -> f64 {
    let own = &survivor.candidate;
    let rivals = survivors
        .iter()
        .map(|other| &other.candidate)
        .filter(|other| other.opening.abs_diff(own.opening) <= SAME_PLACE);
    let shared_end = rivals.map(|other| other.start).max().unwrap_or(own.start);
    let skipped = joint.continuation.get(own.start..shared_end).unwrap_or_default();
    let after = after_seam(joint, own, NEAR);
    let rest = after_from(joint, shared_end);
    let unexplained: Vec<char> = {
        let kept = after.len().min(
            characters(joint, preamble::head(skipped, NEAR * 12)).len() + usize::from(!own.glue.is_empty()),
        );
        after[..kept].to_vec()
    };
    let longest = longest_repetition(survivor, survivors);
    // What is long enough to be no coincidence need not count for ever more.
    let length = f64::from(u32::try_from(unexplained.len()).unwrap_or(u32::MAX));
    let mut bits = texture.surprise(before, &unexplained).min(14.0 + length / 8.0);
    if longest > 0 {
        bits = bits.min(joint.surprise_of_repetition(own.keep, longest));
    }
    let mut context = before.to_vec();
    context.extend(&unexplained);
    if unexplained.len() == NEAR {
        // The skipped part is longer than what was looked at: what precedes its end is its own last part.
        let tail = &skipped[skipped.floor_char_boundary(skipped.len().saturating_sub(NEAR))..];
        context = characters(joint, tail);
    }
    // What follows would be as unusual in a text of its own: only the difference speaks about the seam.
    let joined = texture.surprise(&context, &rest) - texture.surprise(&[], &rest);
    bits + joined.max(-5.0) + texture.words_at(before, &after) + texture.case_at(before, &after)
}

/// The first few characters from this place of the continuation on.
fn after_from(joint: &Joint<'_>, start: usize) -> Vec<char> {
    let part = preamble::head(&joint.continuation[start..], 40);
    let reading = if joint.has_grammar() { Reading::Content } else { Reading::Plain };
    let units = Units::read(part, reading);
    units.chars(0..units.len()).take(3).collect()
}

fn characters(joint: &Joint<'_>, part: &str) -> Vec<char> {
    let reading = if joint.has_grammar() { Reading::Content } else { Reading::Plain };
    let units = Units::read(part, reading);
    units.chars(0..units.len()).collect()
}

/// How much more of the first part another survivor takes for repeated than this one does, in bytes.
fn longest_repetition(survivor: &Survivor, survivors: &[Survivor]) -> usize {
    let own = &survivor.candidate;
    let longest = survivors
        .iter()
        .filter(|other| other.candidate.opening == own.opening && other.candidate.keep == own.keep)
        .map(|other| other.candidate.repeated)
        .max()
        .unwrap_or(0);
    longest.saturating_sub(own.repeated)
}

pub(super) fn texture(joint: &Joint<'_>) -> Texture {
    let units = &joint.settled_units;
    let before: Vec<char> = units.chars(units.len().saturating_sub(texture::WINDOW)..units.len()).collect();
    let reading = if joint.has_grammar() { Reading::Content } else { Reading::Plain };
    let head = Units::read(preamble::head(joint.continuation, texture::WINDOW), reading);
    let after: Vec<char> = head.chars(0..head.len()).collect();
    Texture::of(&before, &after)
}

/// What a survivor takes for a coincidence that another one explains: a longer repeated part.
pub(super) fn coincidence(joint: &Joint<'_>, survivor: &Survivor, survivors: &[Survivor]) -> f64 {
    let unexplained = longest_repetition(survivor, survivors);
    let surprise = joint.surprise_of_repetition(survivor.candidate.keep, unexplained);
    // A short repetition is ordinary, and a continuation that was asked for at the cut is not shortened for it.
    if joint.from == AskedFrom::Cut && unexplained < 8 { surprise.min(3.0) } else { surprise }
}
