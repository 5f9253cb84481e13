//! Determines which survivors have the same value.
//!
//! All survivors share the settled part of the first part, and most share the end of the continuation. Each
//! one is read only from where it differs to where another reading reached the same position in the same
//! state.

use std::collections::HashMap;

use super::candidate::Candidate;
use super::joint::Joint;
use super::units::{ReadState, Reading};

/// Returns a number for each candidate. Two numbers are equal exactly if the joined texts have the same
/// units, apart from collisions of 122-bit numbers.
pub(super) fn identities<'c>(
    joint: &Joint<'_>,
    candidates: impl Iterator<Item = &'c Candidate> + Clone,
) -> Vec<u128> {
    let settled = joint.settled_units.end;
    let shared =
        candidates.clone().all(|candidate| candidate.keep >= settled.position) && !settled.is_in_word();
    let begin = if shared { settled } else { ReadState::new(Reading::Structure) };
    let mut starts: Vec<usize> = candidates.clone().map(|candidate| candidate.start).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut known = HashMap::new();
    let read: Vec<(UnitSum, ReadingPosition)> =
        candidates.map(|candidate| read_until_shared(joint, candidate, begin, &starts, &mut known)).collect();
    // If all candidates reach the shared rest in the same state, the rest cannot distinguish them.
    if read.windows(2).all(|two| two[0].1 == two[1].1) {
        return read.into_iter().map(|(sum, _)| sum.number()).collect();
    }
    let mut rests: HashMap<ReadingPosition, UnitSum> = HashMap::new();
    let with_rest = |(sum, place): (UnitSum, ReadingPosition)| {
        let rest = rests.entry(place).or_insert_with(|| {
            let (mut walk, end) = place;
            let mut rest = UnitSum::default();
            while walk.step(&joint.continuation[..end], |code, _, _| rest.add(code)) {}
            rest
        });
        sum.append(*rest).number()
    };
    read.into_iter().map(with_rest).collect()
}

/// Returns the number of a complete text, for comparison with other complete texts.
pub(super) fn text_identity(text: &str, reading: Reading) -> u128 {
    let (mut walk, mut sum) = (ReadState::new(reading), UnitSum::default());
    while walk.step(text, |code, _, _| sum.add(code)) {}
    sum.number()
}

/// Maximum length of an escape in bytes: a surrogate pair.
const MAX_ESCAPE_BYTES: usize = 12;

/// A position and state of a reading, and the position where the reading must end.
type ReadingPosition = (ReadState, usize);

/// Reads a candidate's text up to the position after which no other candidate starts. Returns the sum up to
/// there, and the reached place.
fn read_until_shared(
    joint: &Joint<'_>,
    candidate: &Candidate,
    begin: ReadState,
    starts: &[usize],
    known: &mut HashMap<ReadingPosition, (UnitSum, ReadingPosition)>,
) -> (UnitSum, ReadingPosition) {
    let last = starts.last().copied().unwrap_or(candidate.start).min(candidate.end);
    // A token that crosses this position ends at the next space or quote, or after the longest escape.
    let behind = &joint.continuation.as_bytes()[..candidate.end];
    let sign = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'"';
    let enough = last + MAX_ESCAPE_BYTES;
    let read = behind.get(enough..).and_then(|rest| rest.iter().position(sign));
    let part = &joint.continuation[candidate.start..read.map_or(candidate.end, |at| enough + at + 1)];
    let text = [&joint.initial[begin.position..candidate.keep], candidate.glue, part].concat();
    let before = text.len() - part.len();
    let mut meetings = starts.iter().copied().skip_while(|start| *start < candidate.start).peekable();
    let mut passed = Vec::new();
    let mut walk = begin.move_to(0);
    let mut sum = UnitSum::default();
    let place = |walk: &ReadState| (walk.move_to(walk.position - before + candidate.start), candidate.end);
    let end = loop {
        if walk.position >= before {
            let at = walk.position - before + candidate.start;
            if meetings.peek().is_some_and(|start| at >= *start) {
                meetings.next();
                if let Some((rest, end)) = known.get(&place(&walk)) {
                    sum = sum.append(*rest);
                    break *end;
                }
                passed.push((place(&walk), sum));
            }
            if at >= last {
                break place(&walk);
            }
        }
        if !walk.step(&text, |code, _, _| sum.add(code)) {
            break place(&walk);
        }
    };
    for (place, until) in passed {
        known.insert(place, (sum.without(until), end));
    }
    (sum, end)
}

/// The units of a text as the digits of a number modulo a prime, in two bases. The sum of a text can be
/// computed from the sums of its parts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct UnitSum {
    residues: [u64; 2],
    count: u64,
}

const PRIME: u64 = (1 << 61) - 1;
const BASES: [u64; 2] = [0x0f2b_63a9_45c1_87d3, 0x1a7d_9c35_e0b4_2f69];

impl UnitSum {
    fn number(self) -> u128 {
        u128::from(self.residues[0]) << 64 | u128::from(self.residues[1])
    }

    #[inline]
    fn add(&mut self, code: u32) {
        for (lane, base) in self.residues.iter_mut().zip(BASES) {
            *lane = reduce(u128::from(*lane) * u128::from(base) + u128::from(code) + 1);
        }
        self.count += 1;
    }

    fn append(self, rest: Self) -> Self {
        let mut lanes = rest.residues;
        for ((lane, first), base) in lanes.iter_mut().zip(self.residues).zip(BASES) {
            *lane = reduce(u128::from(first) * u128::from(power(base, rest.count)) + u128::from(*lane));
        }
        Self { residues: lanes, count: self.count + rest.count }
    }

    /// Returns the sum of the rest after a beginning with the sum `first`.
    fn without(self, first: Self) -> Self {
        let count = self.count - first.count;
        let mut lanes = self.residues;
        for ((lane, first), base) in lanes.iter_mut().zip(first.residues).zip(BASES) {
            let shifted = reduce(u128::from(first) * u128::from(power(base, count)));
            *lane = reduce(u128::from(*lane) + u128::from(PRIME - shifted));
        }
        Self { residues: lanes, count }
    }
}

#[inline]
fn reduce(product: u128) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "both halves are taken, and neither is longer than 64 bits"
    )]
    let sum = (product as u64 & PRIME) + (product >> 61) as u64;
    if sum >= PRIME { sum - PRIME } else { sum }
}

fn power(base: u64, mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = reduce(u128::from(result) * u128::from(square));
        }
        square = reduce(u128::from(square) * u128::from(square));
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(codes: impl IntoIterator<Item = u32>) -> UnitSum {
        let mut sum = UnitSum::default();
        codes.into_iter().for_each(|code| sum.add(code));
        sum
    }

    #[test]
    fn a_hash_is_the_sum_of_its_parts() {
        let whole = sum(0..1_000);
        for split in [0, 1, 17, 999, 1_000] {
            let (first, rest) = (sum(0..split), sum(split..1_000));
            assert_eq!(first.append(rest), whole);
            assert_eq!(whole.without(first), rest);
        }
        assert_ne!(sum([1, 2]).residues, sum([2, 1]).residues);
        assert_ne!(sum([0]).residues, sum([0, 0]).residues);
    }
}
