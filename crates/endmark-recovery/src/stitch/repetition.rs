//! Computes how unlikely it is, in bits, that a text repeats its own end. A table of zeros is likely to
//! repeat, but a sentence is not.

use super::overlap::EndFacts;

/// Maximum number of units before the end that are examined for a period.
const COMPARED_UNITS: usize = 8_192;
/// Maximum number of earlier occurrences of a repeated part that are examined.
const MAX_OCCURRENCES: usize = 4_096;

/// Returns how unlikely it is, in bits, that a text continues by repeating its last `length` bytes. The
/// estimate uses how the text continued after earlier occurrences of these bytes.
pub(super) fn repetition_cost(text: &str, length: usize, ends: &mut EndFacts) -> f64 {
    let start = text.floor_char_boundary(text.len().saturating_sub(length));
    let repeated = &text[start..];
    let period = ends.find_period(text.as_bytes(), repeated.len());
    if period * 2 > repeated.len() {
        return repeated_part_cost(text, start, ends);
    }
    // A periodic text, such as equal rows, may well continue with another period.
    let once = text.floor_char_boundary(text.len() - period);
    repeated_part_cost(text, once, ends).min(repeated_part_cost(text, start, ends))
}

/// Returns [`repetition_cost`] for the text from `start` to the end, as a single part.
fn repeated_part_cost(text: &str, start: usize, ends: &mut EndFacts) -> f64 {
    let repeated = &text[start..];
    if repeated.is_empty() {
        return 0.0;
    }
    let (places, again) = ends.count_occurrences(text.as_bytes(), repeated.len(), MAX_OCCURRENCES);
    let unseen = (-weight(repeated)).exp2();
    let share = (f64::from(again) + unseen) / (f64::from(places) + 1.0);
    -share.min(1.0).log2()
}

/// Returns the information in a text, in bits, up to the maximum cost of a coincidence.
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

/// Returns how unlikely it is, in bits, that a text repeats its last `lag` units and then continues with
/// `after`. Also returns how many units of `after` follow the period. The estimate uses how long the text has
/// been periodic before and after the cut.
pub(super) fn periodicity_cost(codes: &[u32], lag: usize, after: &[u32]) -> (f64, usize) {
    let Some(earlier) = codes.len().checked_sub(lag) else { return (f64::INFINITY, 0) };
    let pairs = codes.iter().rev().zip(codes[..earlier].iter().rev());
    let behind = pairs.take(COMPARED_UNITS).take_while(|(now, then)| now == then).count();
    let following = codes[earlier..].iter().chain(after);
    let ahead = following.zip(after).take_while(|(then, now)| now == then).count();
    let [alike, lag] = [behind + ahead, lag].map(|count| f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    let beginning = 14.0 * (1.0 - alike / lag.max(8.0)).max(0.0);
    (beginning + ((alike + lag + 2.0) / (alike + 1.0)).log2(), ahead)
}

#[cfg(test)]
mod tests {
    use super::periodicity_cost;
    use crate::stitch::units::{Reading, Units};

    fn codes(text: &str) -> Vec<u32> {
        Units::read(text, Reading::Structure).codes.to_vec()
    }

    #[test]
    fn similar_rows_continue_similarly() {
        let rows = codes(&"[0, 0, 1], ".repeat(9));
        let row = codes("[0, 0, 1], ").len();
        assert!(periodicity_cost(&rows, row, &[]).0 < 1.0);
        assert!(periodicity_cost(&rows, row + 1, &[]).0 > 10.0);
        let two = codes("[0, 0, 1], [0, 0");
        assert!(periodicity_cost(&two, row, &[]).0 > 7.0);
        assert!(periodicity_cost(&two, row, &codes(", 1], [0, 0, 1]")).0 < 3.0, "it goes on alike");
    }
}
