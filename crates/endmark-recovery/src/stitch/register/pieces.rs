//! Sums the weights of the pieces of a line: sequences of letters, words, and pairs of words.

use super::Register;

/// Number of slots for the pieces of one register.
const SLOTS: usize = 1 << 14;
/// Maximum number of characters of a line that are read.
const MAX_LINE_CHARS: usize = 160;

/// One byte for each slot of each register, in the order of [`Register`].
const WEIGHTS: &[u8; 3 * SLOTS] = include_bytes!("weights.bin");
/// For each register, its first slot and the unit of its weights.
const SCALES: [(usize, f64); 3] = [(0, 0.036_934), (SLOTS, 0.039_721), (2 * SLOTS, 0.034_517)];

/// The sums of the weights of a line's pieces, for all registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct PieceSums {
    /// The sum of the weights, for each register.
    weights: [f64; 3],
    /// Number of pieces.
    count: f64,
}

impl PieceSums {
    pub(super) fn from_line(line: &str) -> Self {
        let slots = slots(line);
        let weights = SCALES.map(|(first, scale)| {
            let weight = |slot: &usize| i32::from(WEIGHTS[first + slot].cast_signed());
            f64::from(slots.iter().map(weight).sum::<i32>()) * scale
        });
        Self { weights, count: f64::from(u32::try_from(slots.len()).unwrap_or(u32::MAX)) }
    }

    /// Returns the sum of the weights for a register.
    pub(super) fn weight(&self, register: Register) -> f64 {
        self.weights[register as usize]
    }

    /// Returns the sum for a register, normalised for length: the more pieces a line has, the less each one
    /// counts.
    pub(super) fn share(&self, register: Register) -> f64 {
        if self.count == 0.0 { 0.0 } else { self.weight(register) / self.count.sqrt() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0.0
    }
}

/// Whether a character belongs to a script without spaces between words.
pub(super) fn is_unspaced_letter(character: char) -> bool {
    matches!(u32::from(character), 0x2e80.. | 0x0e00..0x0e80)
}

/// Normalises a line: lower case, single spaces, no surrounding symbols, and a zero for each digit.
fn normalise(line: &str) -> Vec<char> {
    let small = line.split_whitespace().flat_map(|word| [" ", word]).skip(1).flat_map(str::chars);
    let small = small.flat_map(char::to_lowercase).take(MAX_LINE_CHARS);
    let text: Vec<char> = small.map(|sign| if sign.is_numeric() { '0' } else { sign }).collect();
    let start = text.iter().position(|sign| sign.is_alphanumeric()).unwrap_or(text.len());
    let end = text.iter().rposition(|sign| sign.is_alphanumeric()).map_or(start, |last| last + 1);
    text[start..end].to_vec()
}

/// Returns the slots of the pieces of a line, without duplicates.
fn slots(line: &str) -> Vec<usize> {
    let text = normalise(line);
    if text.is_empty() {
        return Vec::new();
    }
    let padded: Vec<char> = std::iter::once(' ').chain(text.iter().copied()).chain([' ']).collect();
    let mut found: Vec<usize> = Vec::with_capacity(text.len() * 3);
    for length in [3, 4] {
        found.extend(padded.windows(length).map(|piece| slot(piece.iter().copied())));
    }
    for (at, _) in text.iter().enumerate().filter(|(_, sign)| is_unspaced_letter(**sign)) {
        found.push(slot([text[at]].into_iter()));
        found.push(slot(text[at..].iter().copied().take(2)));
    }
    let words: Vec<&[char]> = text.split(|sign| *sign == ' ').collect();
    let marked = |mark: char, word: &[char]| slot(std::iter::once(mark).chain(word.iter().copied()));
    found.extend(words.iter().map(|word| marked('\u{1}', word)));
    for pair in words.windows(2) {
        let letters = pair[0].iter().chain(&[' ']).chain(pair[1]).copied();
        found.push(slot(std::iter::once('\u{2}').chain(letters)));
    }
    found.extend(words.first().map(|word| marked('\u{3}', word)));
    found.extend(words.last().map(|word| marked('\u{4}', word)));
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the slot of a piece: its folded FNV-1a hash.
fn slot(piece: impl Iterator<Item = char>) -> usize {
    let mut value: u32 = 0x811c_9dc5;
    for sign in piece {
        for byte in sign.encode_utf8(&mut [0; 4]).bytes() {
            value = (value ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }
    usize::try_from(value ^ value >> 15).unwrap_or(0) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::{normalise, slots};

    #[test]
    fn pieces_are_those_used_to_fit_the_weights() {
        // These values come from `bench/register/features.py`.
        let expected = [
            234, 1_027, 1_591, 2_270, 2_309, 2_413, 2_808, 3_513, 6_323, 6_367, 6_644, 9_285, 10_060, 11_441,
            13_206, 13_231, 13_233, 13_484, 13_512, 14_002, 14_299, 14_852, 14_889, 15_776, 15_852, 15_881,
            16_235,
        ];
        assert_eq!(slots("**Hier ist 续:**"), expected);
        assert_eq!(
            normalise("  **Part 12 of  THE answer:** ").iter().collect::<String>(),
            "part 00 of the answer"
        );
        assert_eq!(slots("---"), [0; 0]);
    }
}
