//! Positions of a streamed reply's calls, found by number in constant time.

use std::collections::HashMap;

/// The positions of calls among the calls of their choice.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// By choice and the call's own number.
    own_positions: HashMap<(u32, u32), usize>,
    /// By choice and the number in the pieces. If several calls have the same number, this is the last one.
    sent_positions: HashMap<(u32, u32), usize>,
    /// By choice: the first number after all its calls.
    next: HashMap<u32, u32>,
}

impl Places {
    pub(super) fn own_position(&self, choice: u32, call: u32) -> Option<usize> {
        self.own_positions.get(&(choice, call)).copied()
    }

    pub(super) fn sent_position(&self, choice: u32, number: u32) -> Option<usize> {
        self.sent_positions.get(&(choice, number)).copied()
    }

    pub(super) fn next(&self, choice: u32) -> u32 {
        self.next.get(&choice).copied().unwrap_or(0)
    }

    /// Returns the number of calls.
    pub(super) fn count(&self) -> usize {
        self.own_positions.len()
    }

    /// Records that a call begins at this position.
    pub(super) fn note_begin(&mut self, choice: u32, call: u32, position: usize) {
        self.own_positions.insert((choice, call), position);
        let next = self.next.entry(choice).or_default();
        *next = call.saturating_add(1).max(*next);
    }

    /// Records that pieces of the call at this position are sent with this number.
    pub(super) fn note_sent(&mut self, choice: u32, number: u32, position: usize) {
        self.sent_positions.insert((choice, number), position);
    }
}
