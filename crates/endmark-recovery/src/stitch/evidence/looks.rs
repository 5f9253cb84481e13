//! The neighbourhood of a seam: its rivals, and the words around it.

use crate::stitch::indent::Indents;
use crate::stitch::joint::Joint;
use crate::stitch::preamble;
use crate::stitch::survivor::Survivor;
use crate::stitch::texture::{self, Texture};
use crate::stitch::units::{Reading, Units};

/// Around the seam so many characters are looked at.
pub(super) const NEAR: usize = 64;
/// Openings this close to each other are rivals for the same seam, in bytes.
const SAME_PLACE: usize = 12;

/// The place from which on all survivors near this one have the same text.
pub(super) fn shared_end(survivor: &Survivor, survivors: &[Survivor]) -> usize {
    let own = &survivor.candidate;
    let rivals = survivors
        .iter()
        .map(|other| &other.candidate)
        .filter(|other| other.opening.abs_diff(own.opening) <= SAME_PLACE);
    rivals.map(|other| other.start).max().unwrap_or(own.start)
}

/// How much more of the first part another survivor takes for repeated than this one does, in bytes.
pub(super) fn longest_repetition(survivor: &Survivor, survivors: &[Survivor]) -> usize {
    let own = &survivor.candidate;
    let longest = survivors
        .iter()
        .filter(|other| other.candidate.opening == own.opening && other.candidate.keep == own.keep)
        .map(|other| other.candidate.repeated)
        .max()
        .unwrap_or(0);
    longest.saturating_sub(own.repeated)
}

/// How the lines of a string that has several are indented, and what stands before the cut in it.
pub(super) fn lines(joint: &Joint<'_>) -> Option<(Indents, String)> {
    let units = &joint.settled_units;
    let before: String = units.chars(units.len().saturating_sub(texture::WINDOW)..units.len()).collect();
    before.rfind('\n').filter(|at| before[*at..].trim().is_empty())?;
    let head = Units::read(preamble::head(joint.continuation, texture::WINDOW), Reading::Content);
    let after: String = head.chars(0..head.len()).collect();
    Some((Indents::of(&before, &after), before))
}

/// The words on both sides of a seam inside a string.
pub(super) fn words(joint: &Joint<'_>) -> Texture {
    let units = &joint.settled_units;
    let before: Vec<char> = units.chars(units.len().saturating_sub(texture::WINDOW)..units.len()).collect();
    let head = Units::read(preamble::head(joint.continuation, texture::WINDOW), Reading::Content);
    let after: Vec<char> = head.chars(0..head.len()).collect();
    Texture::of(&before, &after)
}
