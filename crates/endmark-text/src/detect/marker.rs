//! Detects text that must end in a marker.

use serde::{Deserialize, Serialize};

use std::sync::Arc;

use super::text::TextMachine;
use crate::Verdict;

/// The state of the marker detection. A text is whole if it ends in the marker, ignoring whitespace after it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MarkerMachine {
    text: TextMachine,
    #[serde(with = "marker_text")]
    marker: Arc<Marker>,
    /// Number of matching marker bytes at the end of the text.
    matched: usize,
    /// Whether the text ends in the marker and optional whitespace.
    ended: bool,
}

#[derive(Debug)]
struct Marker {
    bytes: Vec<u8>,
    /// For each number of matched bytes, the next smaller number that also matches (Knuth, Morris, Pratt).
    shorter: Vec<usize>,
}

/// Serialises a marker as its text.
mod marker_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Marker;

    pub(super) fn serialize<S: Serializer>(marker: &Marker, serializer: S) -> Result<S::Ok, S::Error> {
        String::from_utf8_lossy(&marker.bytes).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Marker>, D::Error> {
        String::deserialize(deserializer).map(|marker| Arc::new(Marker::new(&marker)))
    }
}

impl Marker {
    fn new(marker: &str) -> Self {
        let bytes = marker.trim_ascii_end().as_bytes().to_vec();
        let mut shorter = vec![0; bytes.len() + 1];
        for index in 1..bytes.len() {
            let mut matched = shorter[index];
            while matched > 0 && bytes[matched] != bytes[index] {
                matched = shorter[matched];
            }
            shorter[index + 1] = matched + usize::from(bytes[matched] == bytes[index]);
        }
        Self { bytes, shorter }
    }

    /// Returns the number of marker bytes that match after `byte`, if `matched` bytes matched before it.
    fn step(&self, mut matched: usize, byte: u8) -> usize {
        loop {
            if self.bytes.get(matched) == Some(&byte) {
                return matched + 1;
            }
            if matched == 0 {
                return 0;
            }
            matched = self.shorter[matched];
        }
    }
}

impl MarkerMachine {
    /// Creates a machine for a new text. With an empty marker, the text is never whole.
    pub(super) fn new(marker: &str) -> Self {
        Self { text: TextMachine::default(), marker: Arc::new(Marker::new(marker)), matched: 0, ended: false }
    }

    /// Reads the next bytes of the text.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.text.push(chunk);
        let text = chunk.trim_ascii_end();
        if !text.is_empty() {
            self.continue_match(text);
            self.ended = self.matched > 0 && self.matched == self.marker.bytes.len();
        }
        self.continue_match(&chunk[text.len()..]);
    }

    /// Continues the match with `bytes`. Only their end matters, up to the length of the marker.
    fn continue_match(&mut self, bytes: &[u8]) {
        let skipped = bytes.len().saturating_sub(self.marker.bytes.len());
        if skipped > 0 {
            self.matched = 0;
        }
        for &byte in &bytes[skipped..] {
            self.matched = self.marker.step(self.matched, byte);
        }
    }

    /// Returns the marker.
    pub(super) fn marker(&self) -> String {
        String::from_utf8_lossy(&self.marker.bytes).into_owned()
    }

    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        self.matched <= self.marker.bytes.len() && self.text.is_consistent()
    }

    /// Returns the number of bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.text.position()
    }

    /// Whether the text is not valid UTF-8.
    pub(super) fn is_malformed(&self) -> bool {
        self.text.is_malformed()
    }

    /// Whether the text would be whole if it ended here.
    pub(super) fn is_whole(&self) -> bool {
        self.ended && self.text.is_whole()
    }

    /// Returns the verdict as if the text ended here.
    pub(super) fn verdict(&self) -> Verdict {
        match self.text.verdict() {
            Verdict::Whole if !self.ended => Verdict::Truncated(self.text.truncation()),
            verdict => verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(marker: &str, text: &str) -> MarkerMachine {
        let mut machine = MarkerMachine::new(marker);
        machine.push(text.as_bytes());
        machine
    }

    /// Tests all short markers in all short texts, as a whole and byte by byte.
    #[test]
    fn a_self_overlapping_marker_is_found_at_every_position() {
        let words = |lengths: std::ops::RangeInclusive<usize>| {
            lengths.flat_map(|length| {
                (0..1_usize << length).map(move |bits| {
                    let letter = |place: usize| if bits >> place & 1 == 0 { 'a' } else { 'b' };
                    (0..length).map(letter).collect::<String>()
                })
            })
        };
        for marker in words(1..=5) {
            for text in words(1..=8) {
                let whole = machine(&marker, &text).is_whole();
                assert_eq!(whole, text.ends_with(&marker), "{marker} in {text}");
                let mut fed = MarkerMachine::new(&marker);
                for byte in text.bytes() {
                    fed.push(&[byte]);
                }
                assert_eq!(fed.is_whole(), whole, "{marker} in {text}, byte by byte");
            }
        }
    }

    #[test]
    fn text_is_whole_when_it_ends_in_the_marker() {
        for (text, whole) in [
            ("report\n<END>", true),
            ("report\n<END> \r\n\t", true),
            ("<END>", true),
            ("<END> and more", false),
            ("<END> and more <END>", true),
            ("report <EN", false),
            ("report <<END>", true),
            ("report <EN<END>", true),
            ("report", false),
            ("", false),
        ] {
            assert_eq!(machine("<END>", text).is_whole(), whole, "{text:?}");
            assert_eq!(machine("<END>\n", text).is_whole(), whole, "{text:?}, marker with a newline");
        }
        assert!(machine("abab", "ababab").is_whole(), "occurrences may overlap");
        assert!(machine("THE END", "x THE END ").is_whole(), "a marker may have whitespace in it");
        assert!(!machine("THE END", "x THE  END").is_whole());
    }

    #[test]
    fn a_missing_marker_is_a_cut_at_the_end_of_the_text() {
        let verdict = machine("<END>", "one two").verdict();
        let truncation = verdict.truncation().unwrap();
        assert_eq!((truncation.truncation_index, truncation.last_valid_token.as_str()), (7, "one two"));
        assert_eq!(truncation.in_token, None);
    }

    #[test]
    fn the_marker_does_not_hide_broken_text() {
        let mut machine = MarkerMachine::new("<END>");
        machine.push(b"a\xFF<END>");
        assert!(matches!(machine.verdict(), Verdict::Malformed { index: 1, .. }));
        assert!(!machine.is_whole());
    }
}
