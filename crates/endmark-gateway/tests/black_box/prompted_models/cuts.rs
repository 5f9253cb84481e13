//! Chooses where a reply is cut.

use super::random::Random;

/// Whether a position between these two characters is a cut of a certain type.
type CutCondition = fn(char, char) -> bool;

/// Types of cuts: anywhere, in and next to words, and around spaces and lines.
const CUT_CONDITIONS: [CutCondition; 6] = [
    |_, _| true,
    |before, behind| before.is_alphanumeric() && behind.is_alphanumeric(),
    |before, behind| before.is_alphanumeric() && !behind.is_alphanumeric(),
    |before, _| before == ' ',
    |_, behind| behind == '\n',
    |before, _| before == '\n',
];

/// Cuts in numbers, at signs, in exponents and escapes, and around spaces.
const HARD_CUT_CONDITIONS: [CutCondition; 7] = [
    |before, behind| before.is_ascii_digit() && matches!(behind, '0'..='9' | '.' | 'e'),
    |before, _| matches!(before, '-' | '.'),
    |before, behind| matches!(before, 'e' | '+') && matches!(behind, '+' | '-' | '0'..='9'),
    |before, _| before == '\\',
    |before, behind| before == 'u' && behind.is_ascii_hexdigit(),
    |before, _| before == ' ',
    |_, behind| behind == ' ',
];

/// Returns a random position in this text, not at its beginning or end.
pub(super) fn random_cut(text: &str, dice: &mut Random) -> usize {
    cut_at_one(&CUT_CONDITIONS, text, dice)
}

/// Returns a position at which a value could be mistaken for another one.
pub(super) fn random_hard_cut(text: &str, dice: &mut Random) -> usize {
    cut_at_one(&HARD_CUT_CONDITIONS, text, dice)
}

fn cut_at_one(places: &[CutCondition], text: &str, dice: &mut Random) -> usize {
    let wanted = dice.below(places.len());
    // If the text has no position of the chosen type, use the next type.
    for turn in 0..places.len() {
        let place = places[(wanted + turn) % places.len()];
        let pairs = text.char_indices().zip(text.char_indices().skip(1));
        let fits = pairs.filter(|((_, before), (_, behind))| place(*before, *behind)).map(|(_, (at, _))| at);
        // The client must have a part of the reply, and must lack visible text.
        let inside = fits.filter(|at| *at > text.len() / 12 && !text[*at..].trim().is_empty());
        let all: Vec<usize> = inside.collect();
        if !all.is_empty() {
            return dice.pick(&all);
        }
    }
    text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at)
}
