//! Which brackets are open: one bit a level, on the heap, never on the call stack.

use serde::{Deserialize, Serialize};

use crate::Open;

const LEVELS_PER_WORD: usize = u64::BITS as usize;

/// The open brackets of a JSON text. A million levels take 125 kB.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Nesting {
    depth: usize,
    /// The innermost levels, the lowest bit the very innermost; 1 is an object.
    innermost: u64,
    /// Full words of the levels around them, outermost first.
    outer: Vec<u64>,
}

impl Nesting {
    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    #[inline]
    pub(super) fn in_object(&self) -> bool {
        self.innermost & 1 == 1
    }

    #[inline]
    pub(super) fn enter(&mut self, object: bool) {
        if self.depth.is_multiple_of(LEVELS_PER_WORD) && self.depth > 0 {
            self.outer.push(self.innermost);
        }
        self.innermost = self.innermost << 1 | u64::from(object);
        self.depth += 1;
    }

    /// Leaves the innermost level; there must be one.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
        self.innermost >>= 1;
        if self.depth.is_multiple_of(LEVELS_PER_WORD)
            && let Some(word) = self.outer.pop()
        {
            self.innermost = word;
        }
    }

    /// Whether it is a state that can be reached.
    pub(super) fn is_consistent(&self) -> bool {
        self.outer.len() == self.depth.saturating_sub(1) / LEVELS_PER_WORD
    }

    /// What is open, outermost first.
    pub(super) fn open(&self) -> Vec<Open> {
        let mut open = Vec::with_capacity(self.depth + 1);
        for &word in &self.outer {
            open_in_word(word, LEVELS_PER_WORD, &mut open);
        }
        open_in_word(self.innermost, self.depth - self.outer.len() * LEVELS_PER_WORD, &mut open);
        open
    }
}

fn open_in_word(word: u64, levels: usize, open: &mut Vec<Open>) {
    for level in (0..levels).rev() {
        open.push(if word >> level & 1 == 1 { Open::Object } else { Open::Array });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_back_in_the_order_they_were_entered() {
        let objects: Vec<bool> = (0..1_000_u32).map(|level| level * level % 7 < 3).collect();
        let mut nesting = Nesting::default();
        for (depth, &object) in objects.iter().enumerate() {
            assert_eq!(nesting.depth(), depth);
            nesting.enter(object);
            assert_eq!(nesting.in_object(), object);
            let expected = objects[..=depth].iter().map(|&o| if o { Open::Object } else { Open::Array });
            assert!(nesting.open().into_iter().eq(expected), "at depth {depth}");
        }
        for (depth, &object) in objects.iter().enumerate().rev() {
            assert_eq!((nesting.depth(), nesting.in_object()), (depth + 1, object));
            nesting.leave();
        }
        assert_eq!(nesting.open(), []);
    }
}
