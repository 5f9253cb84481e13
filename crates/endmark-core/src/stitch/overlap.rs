//! Repeated tails: all lengths at which the end of the first part is the beginning of the continuation.

/// At most this many lengths are looked at, half of them the longest, half the shortest: a text that has
/// more is periodic, and its lengths in between tell nothing new.
const MOST: usize = 12;

/// The numbers of units, longest first, at which the end of `tail` equals the beginning of `head`.
///
/// Linear in the shorter of both (the search of Knuth, Morris and Pratt).
pub(super) fn overlaps(tail: &[u32], head: &[u32]) -> Vec<usize> {
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
        if lengths.len() == MOST {
            lengths.remove(MOST / 2);
        }
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

/// The length of the shortest part that a text says over and over; its own length if it says nothing twice.
pub(super) fn period(text: &[u8]) -> usize {
    text.len() - self_overlaps(text).last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{overlaps, period};

    #[test]
    fn finds_periods() {
        assert_eq!(period(b"0, 0, 0, "), 3);
        assert_eq!(period(b"abcab"), 3);
        assert_eq!(period(b"abc"), 3);
        assert_eq!(period(b""), 0);
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
    fn is_bounded_on_periodic_text() {
        let lengths = overlaps(&units(&"a".repeat(1000)), &units(&"a".repeat(500)));
        assert_eq!(lengths.first(), Some(&500));
        assert_eq!(lengths.last(), Some(&1));
        assert_eq!(lengths.len(), 12);
    }
}
