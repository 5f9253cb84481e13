//! The parts of a reply that can be cut independently.

use std::fmt;

use endmark_wire::reply::ToolCall;

/// A part of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The provider's index of the choice.
    pub(crate) choice: u32,
    pub(crate) part: Part,
}

/// The text of a choice, or the arguments of one of its tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text,
    /// The call as it was received.
    ToolCall(ToolCall),
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            Part::Text => write!(formatter, "choice {} text", self.choice),
            Part::ToolCall(call) => {
                write!(formatter, "choice {} tool call {} ({})", self.choice, call.index, call.name)
            }
        }
    }
}
