//! How predictable a text of units is: what is likely to come next, by what followed in the rest of the text.
//!
//! A repetition speaks for itself only as far as the text is not made of repetitions: rows that are all alike go
//! on alike, and three words that alternate meet again by chance.

use std::sync::LazyLock;

use super::texture::PRIMER;
use super::units::{Reading, Units};

/// A little of what all JSON is made of.
const JSON_PRIMER: &str =
    r#"{"a": true, "b": false, "c": null}, {"d": [true, false, null, "e"], "f": {}}, [], "#;

/// The longest context that is counted, in units.
const ORDER: usize = 5;
/// Places for counts, a power of two, and how many of them are tried.
const PLACES: usize = 1 << 17;
const TRIED: usize = 8;
/// How many units of the first part, and bytes of the continuation, are read.
const WINDOW: usize = 4_000;
pub(super) const WINDOW_BEHIND: usize = 1_000;
/// How open every context is to a unit that never followed it.
const LEAST_OPEN: f64 = 0.3;
/// How far back a text is compared with itself.
const REACH: usize = 8_192;

/// What follows what in a text.
#[derive(Clone)]
pub(super) struct Predictor {
    counts: Vec<u64>,
}

/// How often a context, or a context and what follows it, was seen: a tag it is known by, and two counts.
#[derive(Debug, Clone, Copy)]
struct Count(u64);

impl Count {
    const SEEN: u64 = 1 << 16;
    const MOST: u64 = 0xffff;

    fn tag(self) -> u64 {
        self.0 >> 32
    }

    fn seen(self) -> u64 {
        self.0 >> 16 & Self::MOST
    }

    /// How many different units follow it.
    fn followers(self) -> u64 {
        self.0 & Self::MOST
    }
}

impl Predictor {
    fn new() -> Self {
        Self { counts: vec![0; PLACES] }
    }

    /// One that knows a little of what all JSON is made of, and, if asked for, of what most texts are.
    pub(super) fn primed(with_words: bool) -> Self {
        static JSON: LazyLock<Predictor> = LazyLock::new(|| {
            let mut predictor = Predictor::new();
            predictor.read(&Units::read(JSON_PRIMER, Reading::Structure).codes);
            predictor
        });
        static WORDS: LazyLock<Predictor> = LazyLock::new(|| {
            let mut predictor = JSON.clone();
            predictor.read(&Units::read(PRIMER, Reading::Content).codes);
            predictor
        });
        if with_words { WORDS.clone() } else { JSON.clone() }
    }

    /// Learns from a text.
    pub(super) fn read(&mut self, codes: &[u32]) {
        for (end, code) in codes.iter().enumerate() {
            let mut contexts = [Sum::NOTHING; ORDER + 1];
            let longest = ORDER.min(end);
            for length in 0..longest {
                contexts[length + 1] = contexts[length].behind(codes[end - 1 - length]);
            }
            // What a longer context knows already tells the shorter ones nothing: they are asked about what is new.
            for context in contexts[..=longest].iter().rev() {
                let is_new = self.count(context.followed_by(*code), false);
                self.count(*context, is_new);
                if !is_new {
                    break;
                }
            }
        }
    }

    /// How unlikely it is, in bits, that `after` follows `before`.
    pub(super) fn surprise(&self, before: &[u32], after: &[u32]) -> f64 {
        let mut text: Vec<u32> = before[before.len().saturating_sub(ORDER)..].to_vec();
        let mut bits = 0.0;
        for code in after {
            bits -= self.share(&text, *code).log2();
            text.push(*code);
        }
        bits
    }

    fn share(&self, text: &[u32], next: u32) -> f64 {
        let number = |count: u64| f64::from(u16::try_from(count).unwrap_or(u16::MAX));
        let mut share = 1.0 / 256.0;
        let mut context = Sum::NOTHING;
        for length in 0..=ORDER.min(text.len()) {
            let all = self.seen(context);
            let these = number(self.seen(context.followed_by(next)).seen());
            let open = number(all.followers()) + LEAST_OPEN;
            share = (these + open * share) / (number(all.seen()) + open);
            if length < text.len() {
                context = context.behind(text[text.len() - 1 - length]);
            }
        }
        share
    }

    fn seen(&self, sum: Sum) -> Count {
        let (start, tag) = sum.place();
        let places = (start..start + TRIED).map(|place| Count(self.counts[place % PLACES]));
        places.take_while(|count| count.seen() > 0).find(|count| count.tag() == tag).unwrap_or(Count(0))
    }

    /// Counts once more, and a new follower with it; answers whether this is the first time.
    fn count(&mut self, sum: Sum, with_follower: bool) -> bool {
        let (start, tag) = sum.place();
        for place in start..start + TRIED {
            let slot = &mut self.counts[place % PLACES];
            let count = Count(*slot);
            if count.seen() > 0 && count.tag() != tag {
                continue;
            }
            if count.seen() < Count::MOST {
                *slot = (tag << 32 | *slot & 0xffff_ffff) + Count::SEEN + u64::from(with_follower);
            }
            return count.seen() == 0;
        }
        false
    }
}

/// A number for a sequence of units, read backwards.
#[derive(Debug, Clone, Copy)]
struct Sum(u64);

impl Sum {
    const NOTHING: Self = Self(0x2545_f491_4f6c_dd1d);

    /// The sequence with one more unit before it.
    fn behind(self, code: u32) -> Self {
        Self((self.0 ^ u64::from(code)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
    }

    /// The number of the sequence as a context, together with what follows it.
    fn followed_by(self, code: u32) -> Self {
        self.behind(code | 1 << 30)
    }

    /// Where its count may be, and by what it is known there.
    fn place(self) -> (usize, u64) {
        let mixed = (self.0 ^ self.0 >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (usize::try_from(mixed >> 40).unwrap_or(0) % PLACES, mixed & 0xffff_ffff)
    }
}

/// How unlikely it is, in bits, that a text says its own last `lag` units once more and then goes on with `after`,
/// judged by how long it has been saying, and goes on to say, what it said so many units before: rows that are
/// all alike go on alike. Also how many units of `after` it goes on so.
pub(super) fn surprise_of_going_round(codes: &[u32], lag: usize, after: &[u32]) -> (f64, usize) {
    let Some(earlier) = codes.len().checked_sub(lag) else { return (f64::INFINITY, 0) };
    let pairs = codes.iter().rev().zip(codes[..earlier].iter().rev());
    let behind = pairs.take(REACH).take_while(|(now, then)| now == then).count();
    let said = codes[earlier..].iter().chain(after);
    let ahead = said.zip(after).take_while(|(then, now)| now == then).count();
    let [alike, lag] = [behind + ahead, lag].map(|count| f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    let beginning = 14.0 * (1.0 - alike / lag.max(8.0)).max(0.0);
    (beginning + ((alike + lag + 2.0) / (alike + 1.0)).log2(), ahead)
}

/// The last units of a text, at most as many as a predictor reads.
pub(super) fn tail<'u>(units: &'u Units<'_>) -> &'u [u32] {
    &units.codes[units.codes.len().saturating_sub(WINDOW)..]
}

#[cfg(test)]
mod tests {
    use super::{Predictor, Reading, Units, surprise_of_going_round};

    fn codes(text: &str) -> Vec<u32> {
        Units::read(text, Reading::Structure).codes.to_vec()
    }

    #[test]
    fn what_was_said_often_is_likely() {
        let text = codes(&r#""alpha", "beta", "alpha", "#.repeat(20));
        let mut predictor = Predictor::new();
        predictor.read(&text);
        assert!(predictor.surprise(&text, &codes("\"beta\"")) < 4.0);
        assert!(predictor.surprise(&text, &codes("\"zebu\"")) > 12.0);
    }

    #[test]
    fn rows_that_are_alike_go_on_alike() {
        let rows = codes(&"[0, 0, 1], ".repeat(9));
        let row = codes("[0, 0, 1], ").len();
        assert!(surprise_of_going_round(&rows, row, &[]).0 < 1.0);
        assert!(surprise_of_going_round(&rows, row + 1, &[]).0 > 10.0);
        let two = codes("[0, 0, 1], [0, 0");
        assert!(surprise_of_going_round(&two, row, &[]).0 > 7.0);
        assert!(surprise_of_going_round(&two, row, &codes(", 1], [0, 0, 1]")).0 < 3.0, "it goes on alike");
    }
}
