//! Converts offsets to the unit with which the caller's language indexes texts.

use serde::Deserialize;

/// The unit of offsets.
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
    /// Converts a byte offset in this text to this unit. In invalid UTF-8, each byte that begins a character
    /// counts.
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

/// Returns how many of the bytes are counted. Sums that fit into one byte can be added for 16 bytes at a
/// time. With wider sums, most of the additional time of detection was spent here.
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
