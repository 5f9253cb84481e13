//! Compares saved states and checks restored ones.

use super::{JsonMachine, State, ValueCount};

impl JsonMachine {
    /// Returns whether one value or several are allowed.
    pub(in crate::detect) fn values(&self) -> ValueCount {
        self.values
    }

    /// Whether this machine and another one process any following text in the same way, even at different
    /// positions. Returns `false` if this is not certain.
    pub(in crate::detect) fn behaves_like(&self, other: &Self) -> bool {
        let between = |machine: &Self| match machine.state {
            State::String { .. } => machine.string.is_between_characters(),
            State::Start | State::ByteOrderMark(_) | State::Marked | State::Malformed => false,
            _ => true,
        };
        self.state == other.state
            && self.values == other.values
            && self.is_strict == other.is_strict
            && self.literal == other.literal
            && self.nesting == other.nesting
            && between(self)
            && between(other)
    }

    /// Whether this state satisfies the assumptions of other code. Used to check restored states.
    pub(in crate::detect) fn is_consistent(&self) -> bool {
        let depth = self.nesting.depth();
        let in_object = depth > 0 && self.nesting.is_in_object();
        let in_array = depth > 0 && !self.nesting.is_in_object();
        let state = match self.state {
            State::Start | State::ByteOrderMark(_) | State::Marked | State::Done { .. } => depth == 0,
            State::FirstKey | State::Key | State::Colon | State::String { key: true } => in_object,
            State::FirstElement => in_array,
            State::AfterValue => depth > 0,
            State::Value
            | State::String { key: false }
            | State::Number(_)
            | State::Literal
            | State::Malformed => true,
        };
        let in_string = matches!(self.state, State::String { .. });
        let inside = self.settled.speaking.saturating_add(1);
        state
            && self.nesting.is_consistent()
            && self.position <= crate::detect::MAX_POSITION
            && self.tail.is_consistent(self.position, self.settled.end)
            && self.settled.speaking <= self.settled.end
            && self.settled.speaking_before <= self.settled.speaking
            && self.pending.max(self.balanced) <= self.position
            && (!in_string || inside <= self.settled.end && self.string.is_consistent(inside, self.position))
            && (self.state == State::Malformed) == self.malformed.is_some()
            && self.malformed.as_ref().is_none_or(|(index, _)| *index < self.position)
            && self.control.is_none_or(|index| index < self.position)
            && (self.state != State::Literal || !self.literal.is_empty())
    }
}
