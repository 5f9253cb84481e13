//! Finds repeated ends: all lengths at which the end of the first part equals the beginning of the
//! continuation.

use memchr::memmem;

use super::units::Codes;

/// Maximum number of examined lengths: half are the longest, half the shortest. With more lengths the text is
/// periodic, and the lengths in between add no evidence.
const MAX_OVERLAPS: usize = 12;

/// Number of units at the beginning of a continuation that are searched for in the whole first part. A longer
/// repetition is possible only if all of them occur there.
pub(super) const SEARCHED_UNITS: usize = 1_024;
/// Whether the end of `tail` may equal the beginning of a text that begins with `head` and is longer.
pub(super) fn may_overlap_beyond(tail: &Codes, head: &Codes) -> bool {
    tail.len() > head.len() && memmem::find(tail.lowest_bytes(), head.lowest_bytes()).is_some()
}

/// Whether the end of `tail` may equal the beginning of `head`. Long texts are not compared completely.
pub(super) fn may_overlap(tail: &str, head: &str) -> bool {
    let (tail, head) = (tail.as_bytes(), head.as_bytes());
    let longest = tail.len().min(head.len());
    let (tail, head) = (&tail[tail.len() - longest..], &head[..longest]);
    let short = longest.min(SEARCHED_UNITS);
    !every_overlap(&tail[longest - short..], &head[..short]).is_empty()
        || longest > SEARCHED_UNITS && memmem::find(tail, &head[..SEARCHED_UNITS]).is_some()
}

/// Returns the numbers of units, longest first, at which the end of `tail` equals the beginning of `head`.
pub(super) fn overlaps(tail: &Codes, head: &Codes) -> Vec<usize> {
    let longest = tail.len().min(head.len());
    longest_and_shortest(every_overlap(&tail[tail.len() - longest..], &head[..longest]))
}

/// Returns the longest and the shortest of these lengths, at most [`MAX_OVERLAPS`].
fn longest_and_shortest(mut lengths: Vec<usize>) -> Vec<usize> {
    if lengths.len() > MAX_OVERLAPS {
        lengths.drain(MAX_OVERLAPS / 2..lengths.len() - MAX_OVERLAPS / 2);
    }
    lengths
}

/// Returns every length at which the end of `tail` equals the beginning of `head`. Linear in the shorter one
/// (Knuth, Morris, Pratt).
fn every_overlap<T: PartialEq>(tail: &[T], head: &[T]) -> Vec<usize> {
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

/// Whether `part` occurs in `text`. The cost is linear in both lengths.
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

/// Returns, for each prefix of `pattern`, the length of its longest proper prefix that is also its suffix.
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

/// Returns the last element that satisfies the predicate.
pub(super) fn find_last<T: Copy>(all: &[T], is_one: impl Fn(T) -> bool) -> Option<usize> {
    // Test many elements at once, because the predicate is rarely true.
    const MANY: usize = 64;
    let mut end = all.len();
    for part in all.rchunks(MANY) {
        let start = end - part.len();
        if part.iter().fold(false, |found, one| found | is_one(*one)) {
            return part.iter().rposition(|one| is_one(*one)).map(|at| start + at);
        }
        end = start;
    }
    None
}

/// Cached facts about the ends of one text. Every call must pass the same text.
#[derive(Debug, Default)]
pub(super) struct EndFacts {
    /// For each suffix, the length of its longest proper prefix that is also its suffix.
    shorter_prefixes: Vec<usize>,
    /// How many times the occurrences of a suffix were requested.
    request_count: usize,
    /// For each distance from the end of the text: the length of the longest common suffix of the text
    /// without that end and the whole text.
    suffix_matches: Vec<u32>,
}

impl EndFacts {
    /// Returns the shortest period of the last `length` bytes, or `length` if they are not periodic.
    pub(super) fn find_period(&mut self, text: &[u8], length: usize) -> usize {
        let length = length.min(text.len());
        if self.shorter_prefixes.len() <= length {
            // Reversed, a suffix has the same period, and a longer suffix extends a shorter one.
            let longest = (2 * length).min(text.len());
            let backwards: Vec<u8> = text[text.len() - longest..].iter().rev().copied().collect();
            self.shorter_prefixes = self_overlaps(&backwards);
        }
        length - self.shorter_prefixes[length]
    }

    /// Returns how often the last `length` bytes occur earlier without overlap, at most `most`, and how many
    /// of these occurrences are directly followed by another one.
    pub(super) fn count_occurrences(&mut self, text: &[u8], length: usize, most: usize) -> (u32, u32) {
        let start = text.len() - length;
        if length == 0 || length > start {
            // A suffix cannot occur in a preceding text that is shorter.
            return (0, 0);
        }
        self.request_count += 1;
        if self.request_count > TABLE_REQUESTS && u32::try_from(text.len()).is_ok() {
            return self.count_occurrences_by_table(text, length, most);
        }
        let repeated = &text[start..];
        let (mut places, mut again) = (0, 0);
        for place in memmem::find_iter(&text[..start], repeated).take(most) {
            places += 1;
            again += u32::from(text[place + length..].starts_with(repeated));
        }
        (places, again)
    }

    fn count_occurrences_by_table(&mut self, text: &[u8], length: usize, most: usize) -> (u32, u32) {
        if self.suffix_matches.is_empty() {
            self.suffix_matches = suffix_matches(text);
        }
        let least = u32::try_from(length).unwrap_or(u32::MAX);
        let (mut places, mut again) = (0, 0);
        // Start at the beginning of the text, which is the end of the table. Stay at least `length` away from
        // the end of the text.
        let mut end = text.len() - length + 1;
        while end > length
            && places < u32::try_from(most).unwrap_or(u32::MAX)
            && let Some(place) = find_last(&self.suffix_matches[length..end], |alike| alike >= least)
        {
            let place = length + place;
            places += 1;
            again += u32::from(self.suffix_matches[place - length] >= least);
            end = (place + 1).saturating_sub(length);
        }
        (places, again)
    }
}

/// Number of requests from which on a table is used instead of a search.
const TABLE_REQUESTS: usize = 2;

/// Returns, for each number of bytes removed from the end of a text, the length of the longest common suffix
/// of the rest and the text (the Z array of the reversed text).
fn suffix_matches(text: &[u8]) -> Vec<u32> {
    let last = text.len().saturating_sub(1);
    let mut alike = vec![0; text.len()];
    let (mut from, mut to) = (0_usize, 0_usize);
    for taken in 0..text.len() {
        let mut length = 0;
        if taken > 0 && taken < to {
            length = usize::try_from(alike[taken - from]).unwrap_or(0).min(to - taken);
        }
        while taken + length < text.len() && text[last - length] == text[last - taken - length] {
            length += 1;
        }
        if taken > 0 && taken + length > to {
            (from, to) = (taken, taken + length);
        }
        alike[taken] = u32::try_from(length).unwrap_or(u32::MAX);
    }
    alike
}

#[cfg(test)]
mod tests {
    use super::super::units::{Reading, Units};
    use super::{
        Codes, EndFacts, MAX_OVERLAPS, SEARCHED_UNITS, TABLE_REQUESTS, every_overlap, longest_and_shortest,
        may_overlap, may_overlap_beyond, overlaps,
    };

    #[test]
    fn periods_are_found() {
        let period = |text: &[u8]| EndFacts::default().find_period(text, text.len());
        assert_eq!(period(b"0, 0, 0, "), 3);
        assert_eq!(period(b"abcab"), 3);
        assert_eq!(period(b"abc"), 3);
        assert_eq!(period(b""), 0);
        let mut ends = EndFacts::default();
        let text = b"xabababaaaxabababaabab";
        for length in [2, 7, 4, 9, 3, 30, 1, 21, 22, 0] {
            let end = &text[text.len() - text.len().min(length)..];
            let expected = (1..end.len()).find(|period| end[*period..] == end[..end.len() - period]);
            assert_eq!(ends.find_period(text, length), expected.unwrap_or(end.len()), "{length}");
        }
    }

    fn units(text: &str) -> Codes {
        Units::read(text, Reading::Plain).codes
    }

    #[test]
    fn the_table_finds_the_same_ends_as_a_search() {
        let texts = [
            "xabababaaaxabababaabab".repeat(3),
            "a".repeat(90),
            "abcdefgh".to_owned(),
            "ab".repeat(70) + "b",
        ];
        for text in texts {
            let text = text.as_bytes();
            for length in 0..text.len() {
                for most in [1, 3, 4_096] {
                    let searched = EndFacts::default().count_occurrences(text, length, most);
                    let mut ends = EndFacts { request_count: TABLE_REQUESTS, ..EndFacts::default() };
                    assert_eq!(ends.count_occurrences(text, length, most), searched, "{length} {most}");
                    assert!(searched.0 == 0 || !ends.suffix_matches.is_empty());
                }
            }
        }
    }

    #[test]
    fn repetitions_with_different_ends_are_found() {
        let [mut tail, head] = [("ab".repeat(9_000)), "ab".repeat(8_000)];
        tail.push('c');
        let every = |tail: &str, head: &str| longest_and_shortest(every_overlap(&units(tail), &units(head)));
        assert_eq!(overlaps(&units(&tail), &units(&head)), every(&tail, &head));
        let head = head + "c" + &"ab".repeat(3_000);
        assert_eq!(overlaps(&units(&tail), &units(&head)), every(&tail, &head));
        // Long periods have fewer short lengths than requested.
        for period in [200, 300, 1_500] {
            let unit: String = ('a'..).step_by(1).take(period).collect();
            let (tail, head) = (unit.repeat(30), unit.repeat(29) + "!");
            let found = overlaps(&units(&tail), &units(&head));
            assert_eq!(found, every(&tail, &head), "{period}");
            assert_eq!(found.len(), MAX_OVERLAPS);
        }
    }

    #[test]
    fn overlaps_of_every_length_are_found() {
        assert_eq!(overlaps(&units("xabab"), &units("ababc")), [4, 2]);
        assert_eq!(overlaps(&units("abc"), &units("abc")), [3]);
        assert_eq!(overlaps(&units("abc"), &units("xyz")), [0; 0]);
        assert_eq!(overlaps(&units(""), &units("x")), [0; 0]);
    }

    #[test]
    fn long_repetitions_are_found_like_short_ones() {
        for seed in 0..300_usize {
            // These texts are periodic to different degrees.
            let period = [2, 7, 300, 900, 5_000][seed % 5];
            let unit = |at: usize| {
                let number = (at % period).wrapping_mul(at % period + seed) / 7 % 1_000;
                char::from_u32(u32::try_from(number).unwrap() + 0x400).unwrap()
            };
            let text: Vec<char> = (0..6_000).map(unit).collect();
            let cut = 3_000 + seed * 7 % 2_900;
            let from = seed * 131 % cut;
            let [tail, head]: [String; 2] = [&text[..cut], &text[from..]].map(|part| part.iter().collect());
            let window: String = head.chars().take(SEARCHED_UNITS).collect();
            let (tail_units, head_units) = (units(&tail), units(&head));
            let every = every_overlap(&tail_units, &head_units);
            assert_eq!(overlaps(&tail_units, &head_units), longest_and_shortest(every.clone()), "{seed}");
            let has_long = every.first().is_some_and(|longest| *longest > SEARCHED_UNITS);
            assert!(!has_long || may_overlap_beyond(&tail_units, &units(&window)), "{seed}");
            assert!(every.is_empty() || may_overlap(&tail, &head), "{seed}");
        }
        assert!(!may_overlap(&"ab".repeat(9_000), &"ac".repeat(9_000)));
        assert!(!may_overlap("abc", ""));
        assert!(may_overlap("é", "é!"));
    }

    #[test]
    fn work_on_periodic_text_is_bounded() {
        let lengths = overlaps(&units(&"a".repeat(1000)), &units(&"a".repeat(500)));
        assert_eq!(lengths.first(), Some(&500));
        assert_eq!(lengths.last(), Some(&1));
        assert_eq!(lengths.len(), 12);
    }
}
