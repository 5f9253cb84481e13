//! The parts of a reply that can be cut independently.

use std::fmt;

use endmark_wire::reply::ToolCall;

/// A part of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The provider's index of the choice.
    pub(crate) choice: u32,
    pub(crate) part: ReplyPart,
}

/// The text of a choice, or the arguments of one of its tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplyPart {
    Text,
    /// The tool call as it was received.
    ToolCall(ToolCall),
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            ReplyPart::Text => write!(formatter, "choice {} text", self.choice),
            ReplyPart::ToolCall(call) => {
                write!(formatter, "choice {} tool call {} ({})", self.choice, call.index, call.name)
            }
        }
    }
}
