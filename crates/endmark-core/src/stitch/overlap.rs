//! Repeated tails: all lengths at which the end of the first part is the beginning of the continuation.

use memchr::memmem;

/// At most this many lengths are looked at, half of them the longest, half the shortest: a text that has
/// more is periodic, and its lengths in between tell nothing new.
const MOST: usize = 12;

/// So many units of a continuation are looked for everywhere in the first part. Only if they stand there all, more
/// can be repeated than they are.
pub(super) const WINDOW: usize = 1_024;
/// At most this many places where they stand are followed one by one: a text that has more is periodic.
const MOST_PLACES: usize = 8;

/// Whether the end of `tail` may be the beginning of what `head` is the beginning of, and be longer than `head`.
pub(super) fn begins_before(tail: &[u32], head: &[u32]) -> bool {
    tail.len() > head.len() && places(tail, head).next().is_some()
}

/// The places where `part` stands in `text`, as far as the lowest bytes of the units say.
fn places(text: &[u32], part: &[u32]) -> impl Iterator<Item = usize> {
    let low = |units: &[u32]| -> Vec<u8> { units.iter().map(|unit| unit.to_le_bytes()[0]).collect() };
    let (text, part) = (low(text), low(part));
    let finder = memmem::Finder::new(&part).into_owned();
    let mut from = 0;
    std::iter::from_fn(move || {
        let place = from + finder.find(text.get(from..)?)?;
        from = place + 1;
        Some(place)
    })
}

/// The numbers of units, longest first, at which the end of `tail` equals the beginning of `head`.
pub(super) fn overlaps(tail: &[u32], head: &[u32]) -> Vec<usize> {
    let longest = tail.len().min(head.len());
    let tail = &tail[tail.len() - longest..];
    let mut found = Vec::new();
    let mut short = longest;
    if longest > 2 * WINDOW {
        for (count, place) in places(tail, &head[..WINDOW]).enumerate() {
            if count == MOST_PLACES {
                return bounded(every_overlap(tail, head));
            }
            if head.starts_with(&tail[place..]) {
                found.push(tail.len() - place);
            }
        }
        // What is as long as the window was found by its place.
        short = WINDOW - 1;
    }
    found.extend(every_overlap(&tail[longest - short..], &head[..short]));
    bounded(found)
}

/// The longest and the shortest of these lengths.
fn bounded(mut lengths: Vec<usize>) -> Vec<usize> {
    if lengths.len() > MOST {
        lengths.drain(MOST / 2..lengths.len() - MOST / 2);
    }
    lengths
}

/// Linear in the shorter of both (the search of Knuth, Morris and Pratt).
fn every_overlap(tail: &[u32], head: &[u32]) -> Vec<usize> {
    let longest = tail.len().min(head.len());
    let (pattern, text) = (&head[..longest], &tail[tail.len() - longest..]);
    if pattern.is_empty() {
        return Vec::new();
    }
    let shorter = self_overlaps(pattern);
    let mut matched = 0;
    for unit in text {
        while matched > 0 && (matched == longest || pattern[matched] != *unit) {
            matched = shorter[matched];
        }
        if pattern[matched] == *unit {
            matched += 1;
        }
    }
    let mut lengths = Vec::new();
    while matched > 0 {
        lengths.push(matched);
        matched = shorter[matched];
    }
    lengths
}

/// Whether `part` stands somewhere in `text`. Linear in both.
pub(super) fn occurs(part: &[u32], text: &[u32]) -> bool {
    let shorter = self_overlaps(part);
    let mut matched = 0;
    for unit in text {
        while matched > 0 && part.get(matched) != Some(unit) {
            matched = shorter[matched];
        }
        if part.get(matched) == Some(unit) {
            matched += 1;
        }
        if matched == part.len() {
            return true;
        }
    }
    part.is_empty()
}

/// For each length of a beginning of `pattern`, the longest shorter beginning that is also its end.
fn self_overlaps<T: PartialEq>(pattern: &[T]) -> Vec<usize> {
    let mut shorter = vec![0; pattern.len() + 1];
    let mut matched = 0;
    for index in 1..pattern.len() {
        while matched > 0 && pattern[matched] != pattern[index] {
            matched = shorter[matched];
        }
        if pattern[matched] == pattern[index] {
            matched += 1;
        }
        shorter[index + 1] = matched;
    }
    shorter
}

/// The periods of the ends of one text: the length of the shortest part that an end says over and over.
#[derive(Debug, Default)]
pub(super) struct Periods {
    /// For each length of an end, how long the longest shorter end is that it begins with.
    shorter: Vec<usize>,
}

impl Periods {
    /// The period of the last `length` bytes of `text`, always the same one; `length` if they say nothing twice.
    pub(super) fn of_end(&mut self, text: &[u8], length: usize) -> usize {
        let length = length.min(text.len());
        if self.shorter.len() <= length {
            // Read backwards an end has the same period, and a longer end goes on from a shorter one.
            let longest = (2 * length).min(text.len());
            let backwards: Vec<u8> = text[text.len() - longest..].iter().rev().copied().collect();
            self.shorter = self_overlaps(&backwards);
        }
        length - self.shorter[length]
    }
}

#[cfg(test)]
mod tests {
    use super::{Periods, WINDOW, begins_before, bounded, every_overlap, overlaps};

    #[test]
    fn finds_periods() {
        let period = |text: &[u8]| Periods::default().of_end(text, text.len());
        assert_eq!(period(b"0, 0, 0, "), 3);
        assert_eq!(period(b"abcab"), 3);
        assert_eq!(period(b"abc"), 3);
        assert_eq!(period(b""), 0);
        let mut periods = Periods::default();
        let text = b"xabababaaaxabababaabab";
        for length in [2, 7, 4, 9, 3, 30, 1, 21, 22, 0] {
            let end = &text[text.len() - text.len().min(length)..];
            let expected = (1..end.len()).find(|period| end[*period..] == end[..end.len() - period]);
            assert_eq!(periods.of_end(text, length), expected.unwrap_or(end.len()), "{length}");
        }
    }

    fn units(text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    #[test]
    fn finds_every_length() {
        assert_eq!(overlaps(&units("xabab"), &units("ababc")), [4, 2]);
        assert_eq!(overlaps(&units("abc"), &units("abc")), [3]);
        assert_eq!(overlaps(&units("abc"), &units("xyz")), [0; 0]);
        assert_eq!(overlaps(&units(""), &units("x")), [0; 0]);
    }

    #[test]
    fn long_repetitions_are_found_as_short_ones_are() {
        for seed in 0..300_usize {
            // Texts that repeat themselves more or less.
            let period = [2, 7, 300, 900, 5_000][seed % 5];
            let unit = |at: usize| {
                u32::try_from((at % period).wrapping_mul(at % period + seed) / 7 % 1_000).unwrap()
            };
            let text: Vec<u32> = (0..6_000).map(unit).collect();
            let cut = 3_000 + seed * 7 % 2_900;
            let from = seed * 131 % cut;
            let (tail, head) = (&text[..cut], &text[from..]);
            assert_eq!(overlaps(tail, head), bounded(every_overlap(tail, head)), "{seed}");
            let window = &head[..WINDOW.min(head.len())];
            let has_long = every_overlap(tail, head).first().is_some_and(|longest| *longest > window.len());
            assert!(!has_long || begins_before(tail, window), "{seed}");
        }
    }

    #[test]
    fn is_bounded_on_periodic_text() {
        let lengths = overlaps(&units(&"a".repeat(1000)), &units(&"a".repeat(500)));
        assert_eq!(lengths.first(), Some(&500));
        assert_eq!(lengths.last(), Some(&1));
        assert_eq!(lengths.len(), 12);
    }
}
