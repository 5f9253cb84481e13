//! Finds the calls of a streamed reply by their numbers in constant time.

use std::collections::HashMap;

/// The position of each call among the calls of its choice.
#[derive(Debug, Clone, Default)]
pub(super) struct CallPositions {
    /// The position by choice and by the call's own number.
    own_positions: HashMap<(u32, u32), usize>,
    /// The position by choice and by the number in the call's pieces. If several calls have the same number,
    /// this is the last one.
    sent_positions: HashMap<(u32, u32), usize>,
    /// The first unused call number, by choice.
    next: HashMap<u32, u32>,
}

impl CallPositions {
    pub(super) fn own_position(&self, choice: u32, call: u32) -> Option<usize> {
        self.own_positions.get(&(choice, call)).copied()
    }

    pub(super) fn sent_position(&self, choice: u32, number: u32) -> Option<usize> {
        self.sent_positions.get(&(choice, number)).copied()
    }

    pub(super) fn next(&self, choice: u32) -> u32 {
        self.next.get(&choice).copied().unwrap_or(0)
    }

    /// Returns the number of calls in all choices.
    pub(super) fn count(&self) -> usize {
        self.own_positions.len()
    }

    /// Records that a call begins at this position.
    pub(super) fn note_begin(&mut self, choice: u32, call: u32, position: usize) {
        self.own_positions.insert((choice, call), position);
        let next = self.next.entry(choice).or_default();
        *next = call.saturating_add(1).max(*next);
    }

    /// Records that the pieces of the call at this position have this number.
    pub(super) fn note_sent_number(&mut self, choice: u32, number: u32, position: usize) {
        self.sent_positions.insert((choice, number), position);
    }
}
