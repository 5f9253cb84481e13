//! The content of one event of a stream.

use std::mem::size_of;

use super::{Finish, ToolCall, Usage};
use crate::error::ProviderError;
use crate::json::JsonError;

/// The bytes that a call counts towards the limit on kept bytes, in addition to its text: its entry and its positions.
pub(super) const ENTRY_BYTES: usize = size_of::<ToolCall>() + 64;

/// An event of a stream that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The data is not JSON.
    #[error("a chunk of the stream is not JSON: {0}")]
    NotJson(#[source] JsonError),
    /// The data is JSON, but not an object.
    #[error("a chunk of the stream is no object")]
    NoObject,
    /// The frame contains bytes that are not UTF-8.
    #[error("a chunk of the stream is not UTF-8")]
    NotUtf8,
    /// The data contains no JSON at all, such as the `ping` of some servers.
    #[error("an event of the stream is no chunk")]
    NoChunk,
}

impl EventError {
    /// Returns whether the event may have been a part of the reply, which is lost with it.
    pub fn is_broken_chunk(&self) -> bool {
        match self {
            Self::NotJson(_) | Self::NoObject | Self::NotUtf8 => true,
            Self::NoChunk => false,
        }
    }
}

/// The content of one event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the event")]
pub struct Event {
    /// The pieces of choices that arrived, in order.
    pub pieces: Vec<Delta>,
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
    pub closes: bool,
    /// The number of the call that is reported complete.
    pub closed_call: Option<u32>,
    /// Whether the event opens a reply or a part of one and contains no content, not even its end. Until another
    /// event arrives, the reply of another call can replace it.
    pub opens: bool,
    /// Whether the event is empty, such as a comment or a ping. It may overtake events that are held back.
    pub idle: bool,
    /// Whether the event contains nothing of a choice, such as a final event that only counts tokens.
    pub has_no_choices: bool,
}

impl Event {
    /// Returns whether the event only contains token counts, such as the event that `include_usage` adds to a stream.
    pub fn only_counts(&self) -> bool {
        self.has_no_choices && self.usage.is_some() && self.error.is_none() && !self.is_done
    }

    /// Returns an event without content.
    pub(crate) fn idle() -> Self {
        Self { idle: true, ..Self::default() }
    }
}

/// A piece of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The number of its choice.
    pub choice: u32,
    /// The piece that arrived.
    pub piece: Piece,
}

/// The content of a piece of a choice. Texts are never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text of the reply.
    Text(String),
    /// Reasoning, which is not part of the text.
    Reasoning(String),
    /// The text of a refusal.
    Refusal(String),
    /// The first or the next piece of a tool call.
    ToolCall {
        /// Its number among the choice's calls.
        index: u32,
        /// Its id, if given.
        id: Option<String>,
        /// The function's name, if the piece contains it.
        name: Option<String>,
        /// The next characters of the arguments.
        arguments: String,
    },
}

impl Piece {
    /// Returns the number of bytes needed to store this, given the calls that are already known.
    pub(super) fn cost(&self, is_known: impl Fn(u32) -> bool) -> usize {
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
