//! Offsets in the unit that indexes a text of the caller's language.

use serde::Deserialize;

/// What an offset counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// UTF-8 bytes.
    #[default]
    Bytes,
    /// Unicode code points, as in Python.
    CodePoints,
    /// UTF-16 code units, as in JavaScript.
    Utf16,
}

impl Unit {
    /// A byte offset of this text in this unit. Of bytes that are not UTF-8, each one that begins a character counts.
    pub(crate) fn convert(self, text: &[u8], byte: usize) -> usize {
        let before = text.get(..byte).unwrap_or(text);
        if self == Self::Bytes {
            return before.len();
        }
        let code_points = count(before, |byte| byte & 0xC0 != 0x80);
        match self {
            Self::Utf16 => code_points + count(before, |byte| byte >= 0xF0),
            Self::CodePoints | Self::Bytes => code_points,
        }
    }
}

/// Returns how many bytes are counted. Sums that fit into a byte are added for 16 bytes at a time. With wider sums,
/// detection spent most of its additional time on texts here.
fn count(bytes: &[u8], is_counted: impl Fn(u8) -> bool) -> usize {
    let of_chunk = |chunk: &[u8]| chunk.iter().fold(0_u8, |sum, byte| sum + u8::from(is_counted(*byte)));
    bytes.chunks(usize::from(u8::MAX)).map(|chunk| usize::from(of_chunk(chunk))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_counts_what_its_language_indexes() {
        let text = "aé😀b".as_bytes();
        let ends = [Unit::Bytes, Unit::CodePoints, Unit::Utf16]
            .map(|unit| (unit.convert(text, 7), unit.convert(text, 99)));
        assert_eq!(ends, [(7, 8), (3, 4), (4, 5)]);
        let long = "😀é".repeat(1_000);
        assert_eq!(
            [Unit::CodePoints, Unit::Utf16].map(|unit| unit.convert(long.as_bytes(), long.len())),
            [2_000, 3_000]
        );
    }
}
