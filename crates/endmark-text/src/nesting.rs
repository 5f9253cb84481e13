//! Stores the open brackets with one bit per level on the heap. The call stack is not used.

use serde::{Deserialize, Serialize};

use crate::Open;

/// Maximum number of open brackets. Real JSON never nests this deep: serde's limit is 128.
pub(crate) const MAX_OPEN_BRACKETS: usize = 1 << 20;

/// The reason for rejecting a bracket beyond [`MAX_OPEN_BRACKETS`].
pub(crate) const TOO_MANY_BRACKETS: &str = "more than 1,048,576 brackets are open";

const LEVELS_PER_WORD: usize = u64::BITS as usize;

/// The open brackets of a JSON text. A million levels need 125 kB.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Nesting {
    depth: usize,
    /// The innermost levels. The lowest bit is the innermost level, and 1 means an object.
    innermost: u64,
    /// Full words of the levels around `innermost`, outermost first.
    outer: Vec<u64>,
}

impl Nesting {
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether another bracket can be opened.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.depth < MAX_OPEN_BRACKETS
    }

    #[inline]
    pub(crate) fn is_in_object(&self) -> bool {
        self.innermost & 1 == 1
    }

    #[inline]
    pub(crate) fn enter(&mut self, is_object: bool) {
        if self.depth.is_multiple_of(LEVELS_PER_WORD) && self.depth > 0 {
            self.outer.push(self.innermost);
        }
        self.innermost = self.innermost << 1 | u64::from(is_object);
        self.depth += 1;
    }

    /// Leaves the innermost level. At least one level must be open.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
        self.innermost >>= 1;
        if self.depth.is_multiple_of(LEVELS_PER_WORD)
            && let Some(word) = self.outer.pop()
        {
            self.innermost = word;
        }
    }

    /// Whether this state is reachable.
    pub(crate) fn is_consistent(&self) -> bool {
        self.depth <= MAX_OPEN_BRACKETS && self.outer.len() == self.depth.saturating_sub(1) / LEVELS_PER_WORD
    }

    /// Returns the open brackets, outermost first.
    pub(crate) fn open(&self) -> impl DoubleEndedIterator<Item = Open> + '_ {
        let innermost_levels = self.depth - self.outer.len() * LEVELS_PER_WORD;
        let outer = self.outer.iter().flat_map(|&word| unpack_levels(word, LEVELS_PER_WORD));
        outer.chain(unpack_levels(self.innermost, innermost_levels))
    }
}

/// Returns the lowest `levels` levels of a word, outermost first.
fn unpack_levels(word: u64, levels: usize) -> impl DoubleEndedIterator<Item = Open> {
    (0..levels).rev().map(move |level| if word >> level & 1 == 1 { Open::Object } else { Open::Array })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_returned_in_the_order_they_were_entered() {
        let objects: Vec<bool> = (0..1_000_u32).map(|level| level * level % 7 < 3).collect();
        let mut nesting = Nesting::default();
        for (depth, &object) in objects.iter().enumerate() {
            assert_eq!(nesting.depth(), depth);
            nesting.enter(object);
            assert_eq!(nesting.is_in_object(), object);
            let expected = objects[..=depth].iter().map(|&o| if o { Open::Object } else { Open::Array });
            assert!(nesting.open().eq(expected), "at depth {depth}");
        }
        for (depth, &object) in objects.iter().enumerate().rev() {
            assert_eq!((nesting.depth(), nesting.is_in_object()), (depth + 1, object));
            nesting.leave();
        }
        assert_eq!(nesting.open().next(), None);
    }
}
