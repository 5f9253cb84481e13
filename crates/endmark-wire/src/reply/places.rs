//! Positions of a streamed reply's calls, found by number in constant time.

use std::collections::HashMap;

/// The positions of calls among the calls of their choice.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// By choice, and by the call's own number.
    own: HashMap<(u32, u32), usize>,
    /// By choice, and by the number in the pieces; of several calls with one number, the last.
    sent: HashMap<(u32, u32), usize>,
    /// By choice: the first number after those of all its calls.
    next: HashMap<u32, u32>,
}

impl Places {
    pub(super) fn own(&self, choice: u32, call: u32) -> Option<usize> {
        self.own.get(&(choice, call)).copied()
    }

    pub(super) fn sent(&self, choice: u32, number: u32) -> Option<usize> {
        self.sent.get(&(choice, number)).copied()
    }

    pub(super) fn next(&self, choice: u32) -> u32 {
        self.next.get(&choice).copied().unwrap_or(0)
    }

    /// Returns the number of calls.
    pub(super) fn count(&self) -> usize {
        self.own.len()
    }

    /// Notes that a call begins at this position.
    pub(super) fn begins(&mut self, choice: u32, call: u32, position: usize) {
        self.own.insert((choice, call), position);
        let next = self.next.entry(choice).or_default();
        *next = call.saturating_add(1).max(*next);
    }

    /// Notes that pieces of the call at this position are sent with this number.
    pub(super) fn is_sent(&mut self, choice: u32, number: u32, position: usize) {
        self.sent.insert((choice, number), position);
    }
}
