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
    pub(crate) fn of(self, text: &[u8], byte: usize) -> usize {
        let before = text.get(..byte).unwrap_or(text);
        if self == Self::Bytes {
            return before.len();
        }
        let code_points = before.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        match self {
            Self::Utf16 => code_points + before.iter().filter(|byte| **byte >= 0xF0).count(),
            Self::CodePoints | Self::Bytes => code_points,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_counts_what_its_language_indexes() {
        let text = "aé😀b".as_bytes();
        let ends =
            [Unit::Bytes, Unit::CodePoints, Unit::Utf16].map(|unit| (unit.of(text, 7), unit.of(text, 99)));
        assert_eq!(ends, [(7, 8), (3, 4), (4, 5)]);
    }
}
