//! Values that a target derives from its input, in addition to the text itself.
//!
//! Seeds remain ordinary documents. If a check needs numbers, such as a split point, a limit or the field to
//! edit, it derives them from a hash of the bytes. The same input therefore always gives the same numbers.

/// Separates the parts of an input.
pub(crate) const SEPARATOR: u8 = 0x1e;

/// Pseudo-random numbers that depend only on the input.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(sum | 1)
    }

    /// Returns a number below `bound`, which must be at least 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(usize::MAX) % bound.max(1)
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Splits the bytes into at most five pieces.
    pub(crate) fn split_pieces<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let mut ends: Vec<usize> = (0..self.below(5)).map(|_| self.below(bytes.len() + 1)).collect();
        ends.push(bytes.len());
        ends.sort_unstable();
        let mut start = 0;
        ends.into_iter().map(|end| &bytes[std::mem::replace(&mut start, end)..end]).collect()
    }
}

/// Returns the parts of an input.
pub(crate) fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == SEPARATOR)
}

/// Whether `serde_json` accepts the text as one JSON value. `None` if it may have rejected the text because
/// of deep nesting.
pub(crate) fn is_value(text: &[u8]) -> Option<bool> {
    const MAX_OPENED: usize = 120;
    let opened = text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    let Ok(text) = std::str::from_utf8(text) else { return Some(false) };
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Some(true),
        Err(_) => (opened <= MAX_OPENED).then_some(false),
    }
}
