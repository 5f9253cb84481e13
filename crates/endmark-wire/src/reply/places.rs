//! Where the calls of a reply stand that comes in pieces: found by their numbers, however many there are.

use std::collections::HashMap;

/// The positions of calls among those of their choices.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// By choice, and by the call's own number.
    own: HashMap<(u32, u32), usize>,
    /// By choice, and by the number that the pieces name; of several with one number the last.
    sent: HashMap<(u32, u32), usize>,
    /// By choice: the first number behind all of its calls.
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

    /// How many calls there are.
    pub(super) fn count(&self) -> usize {
        self.own.len()
    }

    /// A call begins at this position.
    pub(super) fn begins(&mut self, choice: u32, call: u32, position: usize) {
        self.own.insert((choice, call), position);
        let next = self.next.entry(choice).or_default();
        *next = call.saturating_add(1).max(*next);
    }

    /// The pieces of the call at this position are sent with this number.
    pub(super) fn is_sent(&mut self, choice: u32, number: u32, position: usize) {
        self.sent.insert((choice, number), position);
    }
}
