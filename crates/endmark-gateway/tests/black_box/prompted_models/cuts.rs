//! Chooses where a reply is cut.

use super::dice::Dice;

/// Whether a cut between these two characters is of a kind.
type Place = fn(char, char) -> bool;

/// The kinds of places: anywhere, in and at words, at and around spaces and lines.
const PLACES: [Place; 6] = [
    |_, _| true,
    |before, behind| before.is_alphanumeric() && behind.is_alphanumeric(),
    |before, behind| before.is_alphanumeric() && !behind.is_alphanumeric(),
    |before, _| before == ' ',
    |_, behind| behind == '\n',
    |before, _| before == '\n',
];

/// Places in numbers, at signs, in exponents and escapes, at and around spaces.
const HARD_PLACES: [Place; 7] = [
    |before, behind| before.is_ascii_digit() && matches!(behind, '0'..='9' | '.' | 'e'),
    |before, _| matches!(before, '-' | '.'),
    |before, behind| matches!(before, 'e' | '+') && matches!(behind, '+' | '-' | '0'..='9'),
    |before, _| before == '\\',
    |before, behind| before == 'u' && behind.is_ascii_hexdigit(),
    |before, _| before == ' ',
    |_, behind| behind == ' ',
];

/// A cut of some kind in this text, neither at its beginning nor at its end.
pub(super) fn cut(text: &str, dice: &mut Dice) -> usize {
    cut_at_one(&PLACES, text, dice)
}

/// A cut where a value could be mistaken for another one.
pub(super) fn hard_cut(text: &str, dice: &mut Dice) -> usize {
    cut_at_one(&HARD_PLACES, text, dice)
}

fn cut_at_one(places: &[Place], text: &str, dice: &mut Dice) -> usize {
    let wanted = dice.below(places.len());
    // If a text has no position of one kind, use the next kind. There are always positions of the first kind.
    for turn in 0..places.len() {
        let place = places[(wanted + turn) % places.len()];
        let pairs = text.char_indices().zip(text.char_indices().skip(1));
        let fits = pairs.filter(|((_, before), (_, behind))| place(*before, *behind)).map(|(_, (at, _))| at);
        // The client has something of the reply, and something is missing from it.
        let inside = fits.filter(|at| *at > text.len() / 12 && !text[*at..].trim().is_empty());
        let all: Vec<usize> = inside.collect();
        if !all.is_empty() {
            return dice.pick(&all);
        }
    }
    text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at)
}
