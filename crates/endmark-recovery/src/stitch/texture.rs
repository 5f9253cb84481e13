//! What a text is made of, so that a seam can be judged by whether it looks like the rest of it.
//!
//! In bits of surprise: whether the words that meet at the seam are words of this text, whether capitals stand inside
//! them as they do elsewhere, and how unlikely a repetition is.

use std::collections::HashMap;

use super::overlap::Ends;

/// How many characters of each side are read.
pub(super) const WINDOW: usize = 12_000;
/// How many places where a repeated part stands in the text are looked at.
const MOST_PLACES: usize = 4_096;

/// A little of what most texts are made of, for first parts that are too short to tell.
pub(super) const PRIMER: &str = include_str!("primer.txt");

/// The words and sequences of a text.
pub(super) struct Texture {
    words: HashMap<String, u32>,
    /// Lower-case letters with a letter behind them, and those with an upper-case one.
    lower: u32,
    lower_upper: u32,
    /// Words behind a small letter and a space, and those with a capital letter.
    within: u32,
    within_upper: u32,
}

impl Texture {
    /// Reads both sides of a seam. What touches the seam is not counted.
    pub(super) fn of(before: &[char], after: &[char]) -> Self {
        let mut texture =
            Self { words: HashMap::new(), lower: 0, lower_upper: 0, within: 0, within_upper: 0 };
        let primer: Vec<char> = PRIMER.chars().collect();
        texture.read(&primer, &primer);
        let before = &before[before.len().saturating_sub(WINDOW)..];
        let last_word = before.iter().rev().take_while(|sign| in_word(**sign)).count();
        texture.read(&before[..before.len() - last_word], before);
        let after = &after[..after.len().min(WINDOW)];
        let first_word = after.iter().take_while(|sign| in_word(**sign)).count();
        texture.read(&after[first_word..], after);
        texture
    }

    fn read(&mut self, whole_words: &[char], text: &[char]) {
        for word in whole_words.split(|sign| !in_word(*sign)).filter(|word| !word.is_empty()) {
            *self.words.entry(word.iter().collect()).or_default() += 1;
        }
        for pair in text.windows(2).filter(|pair| pair[0].is_lowercase() && pair[1].is_alphabetic()) {
            self.lower += 1;
            self.lower_upper += u32::from(pair[1].is_uppercase());
        }
        let within = |three: &&[char]| three[0].is_lowercase() && three[1] == ' ' && three[2].is_alphabetic();
        for three in text.windows(3).filter(within) {
            self.within += 1;
            self.within_upper += u32::from(three[2].is_uppercase());
        }
    }

    /// How often a word stands in the text, in lower case where it may have been put first.
    fn known(&self, word: &str) -> u32 {
        let lower = word.to_lowercase();
        let as_first = if lower == word { 0 } else { self.words.get(&lower).copied().unwrap_or(0) };
        self.words.get(word).copied().unwrap_or(0) + as_first
    }

    /// What a capital letter right behind a small one says against a seam, in bits: a text without such words
    /// is begun anew there.
    pub(super) fn case_at(&self, before: &[char], after: &[char]) -> f64 {
        let rarity = |these: u32, all: u32| -((f64::from(these) + 0.3) / (f64::from(all) + 1.0)).log2();
        match (before, after.first()) {
            ([.., last], Some(first)) if last.is_lowercase() && first.is_uppercase() => {
                rarity(self.lower_upper, self.lower).clamp(0.0, 12.0)
            }
            ([.., last, ' '], Some(first)) if last.is_lowercase() && first.is_uppercase() => {
                (rarity(self.within_upper, self.within) - 2.0).clamp(0.0, 6.0)
            }
            _ => 0.0,
        }
    }

    /// What the words that meet at a seam say about it, in bits: above zero against it, below for it.
    pub(super) fn words_at(&self, before: &[char], after: &[char]) -> f64 {
        let length = before.iter().rev().take_while(|sign| in_word(**sign)).count();
        let left: String = before[before.len() - length..].iter().collect();
        let right: String = after.iter().take_while(|sign| in_word(**sign)).collect();
        if left.is_empty() || right.is_empty() {
            return if left.chars().count() > 1 && self.known(&left) == 0 { 1.0 } else { 0.0 };
        }
        let joined = self.known(&format!("{left}{right}"));
        match (joined, self.known(&left), self.known(&right)) {
            (0, 1.., 1..) if length < 3 || right.chars().count() < 3 => 3.0,
            (0, 1.., 1..) => 5.0,
            (0, 0, 1..) => 1.5,
            (0, ..) => 0.5,
            (_, 0, _) | (_, _, 0) => -2.0,
            _ => 0.0,
        }
    }
}

/// How unlikely it is, in bits, that a text goes on by saying its own last `length` bytes once more, judged
/// by how it went on in other places where it said the same. A table of zeros is likely to, a sentence is not.
pub(super) fn surprise_of_repetition(text: &str, length: usize, ends: &mut Ends) -> f64 {
    let start = text.floor_char_boundary(text.len().saturating_sub(length));
    let repeated = &text[start..];
    let period = ends.period(text.as_bytes(), repeated.len());
    if period * 2 > repeated.len() {
        return surprise_of_saying_again(text, start, ends);
    }
    // What is itself a repetition, such as rows that are all alike, goes on as easily as it went so far.
    let once = text.floor_char_boundary(text.len() - period);
    surprise_of_saying_again(text, once, ends).min(surprise_of_saying_again(text, start, ends))
}

/// The same for the end of a text from this place on, taken as one.
fn surprise_of_saying_again(text: &str, start: usize, ends: &mut Ends) -> f64 {
    let repeated = &text[start..];
    if repeated.is_empty() {
        return 0.0;
    }
    let (places, again) = ends.places(text.as_bytes(), repeated.len(), MOST_PLACES);
    let unseen = (-weight(repeated)).exp2();
    let share = (f64::from(again) + unseen) / (f64::from(places) + 1.0);
    -share.min(1.0).log2()
}

/// How much a text says, in bits, at most as much as makes a coincidence as unlikely as it ever is.
fn weight(text: &str) -> f64 {
    let mut bits = 0.0;
    for (count, character) in text.chars().take(400).enumerate() {
        bits += match character {
            white if white.is_whitespace() => 0.3,
            word if word.is_alphanumeric() && count < 12 => 1.7,
            word if word.is_alphanumeric() => 0.5,
            _ => 0.6,
        };
    }
    f64::min(bits, 13.0 + bits / 6.0)
}

/// Whether a character is part of a word.
pub(super) fn in_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
