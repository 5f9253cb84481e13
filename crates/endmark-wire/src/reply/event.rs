//! The content of one event of a stream.

use std::mem::size_of;

use super::{Finish, ToolCall, Usage};
use crate::error::ProviderError;
use crate::json::JsonError;

/// The number of bytes that a call counts towards the limit on kept bytes, in addition to its text. This
/// covers its entry and its positions.
pub(super) const ENTRY_BYTES: usize = size_of::<ToolCall>() + 64;

/// Error of an event of a stream that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The data is not JSON.
    #[error("a chunk of the stream is not JSON: {0}")]
    NotJson(#[source] JsonError),
    /// The data is JSON, but not an object.
    #[error("a chunk of the stream is not an object")]
    NotAnObject,
    /// The frame contains bytes that are not UTF-8.
    #[error("a chunk of the stream is not UTF-8")]
    NotUtf8,
    /// The data contains no JSON at all, such as the `ping` of some servers.
    #[error("an event of the stream is not a chunk")]
    NotAChunk,
}

impl EventError {
    /// Returns whether a part of the reply may be lost with the event.
    pub fn is_broken_chunk(&self) -> bool {
        match self {
            Self::NotJson(_) | Self::NotAnObject | Self::NotUtf8 => true,
            Self::NotAChunk => false,
        }
    }
}

/// The content of one event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the event")]
pub struct Event {
    /// The pieces of choices that arrived, in order.
    pub pieces: Vec<ChoicePiece>,
    /// The choices that ended.
    pub finishes: Vec<Finish>,
    /// The token counts of the whole reply, if the event contains them.
    pub usage: Option<Usage>,
    /// The error that ended the reply.
    pub error: Option<ProviderError>,
    /// Whether this is the stream's own end, such as `[DONE]`.
    pub is_done: bool,
    /// Whether the event only reports that a part of the reply is complete. The next event shows whether the reply
    /// continues.
    pub completes_part: bool,
    /// The number of the call that the event reports as complete.
    pub completed_call: Option<u32>,
    /// Whether the event only begins a reply or a part of one and contains no content or end. Until another
    /// event arrives, the reply of another call can replace this one.
    pub only_begins: bool,
    /// Whether the event is empty, such as a comment or a ping. It may pass events that are held back.
    pub is_idle: bool,
    /// Whether the event concerns no choice, such as a final event with only token counts.
    pub has_no_choices: bool,
}

impl Event {
    /// Returns whether the event only contains token counts, such as the event that `include_usage` adds to a stream.
    pub fn only_counts(&self) -> bool {
        self.has_no_choices && self.usage.is_some() && self.error.is_none() && !self.is_done
    }

    /// Returns an event without content.
    pub(crate) fn idle() -> Self {
        Self { is_idle: true, ..Self::default() }
    }
}

/// A piece of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoicePiece {
    /// The number of its choice.
    pub choice: u32,
    /// The piece that arrived.
    pub piece: Piece,
}

/// The content of a piece. Its text is never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text of the reply.
    Text(String),
    /// Reasoning, which is not part of the text.
    Reasoning(String),
    /// The text of a refusal.
    Refusal(String),
    /// The first piece of a tool call, or a later one.
    ToolCall {
        /// The number of the call in its choice.
        index: u32,
        /// The call's id, if the piece contains it.
        id: Option<String>,
        /// The function's name, if the piece contains it.
        name: Option<String>,
        /// The next characters of the arguments.
        arguments: String,
    },
}

impl Piece {
    /// Returns the number of bytes needed to store the piece. `is_known` is whether a call was already
    /// stored.
    pub(super) fn stored_bytes(&self, is_known: impl Fn(u32) -> bool) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Reasoning(_) | Self::Refusal(_) => 0,
            Self::ToolCall { index, id, name, arguments } => {
                let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                let entry = if is_known(*index) { 0 } else { ENTRY_BYTES };
                arguments.len() + length(id) + length(name) + entry
            }
        }
    }
}
