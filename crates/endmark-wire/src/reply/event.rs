//! What one event of a stream says.

use std::mem::size_of;

use super::{Finish, ToolCall, Usage};
use crate::error::ProviderError;
use crate::json::JsonError;

/// What a call costs of the limit on what is kept, besides its text: itself, and its places.
pub(super) const ENTRY_BYTES: usize = size_of::<ToolCall>() + 64;

/// An event of a stream that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The data is no JSON.
    #[error("a chunk of the stream is no JSON: {0}")]
    NotJson(#[source] JsonError),
    /// The data is JSON, but no object.
    #[error("a chunk of the stream is no object")]
    NoObject,
    /// The frame holds bytes that are no UTF-8.
    #[error("a chunk of the stream is not UTF-8")]
    NotUtf8,
    /// The data has nothing of JSON in it, as the `ping` of some servers.
    #[error("an event of the stream is no chunk")]
    NoChunk,
}

impl EventError {
    /// Whether it may have been a part of the reply, which is lost with it.
    pub fn is_broken_chunk(&self) -> bool {
        match self {
            Self::NotJson(_) | Self::NoObject | Self::NotUtf8 => true,
            Self::NoChunk => false,
        }
    }
}

/// What one event of a stream says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the event")]
pub struct Event {
    /// What came of the choices, in order.
    pub pieces: Vec<Delta>,
    /// The choices that ended.
    pub finishes: Vec<Finish>,
    /// Tokens of the whole reply, if the event counts them.
    pub usage: Option<Usage>,
    /// The error that ended the reply.
    pub error: Option<ProviderError>,
    /// The stream's own end, as `[DONE]`.
    pub done: bool,
    /// The event says that a part of the reply is complete, and nothing more: what comes next tells whether
    /// the reply goes on behind it.
    pub closes: bool,
    /// The number of the call that it says so of.
    pub closed_call: Option<u32>,
    /// The event opens a reply or a part of one, and has nothing of it yet, not even that it ends: as long as no other
    /// came, the reply of another call can stand in its place.
    pub opens: bool,
    /// The event says nothing at all, as a comment or a ping: it may pass before what is held back.
    pub idle: bool,
    /// The event has nothing of a choice, as the one at the end that only counts tokens.
    pub no_choices: bool,
}

impl Event {
    /// Whether the event only counts the tokens of the reply, as the one that `include_usage` adds to a stream.
    pub fn only_counts(&self) -> bool {
        self.no_choices && self.usage.is_some() && self.error.is_none() && !self.done
    }

    /// An event that says nothing.
    pub(crate) fn idle() -> Self {
        Self { idle: true, ..Self::default() }
    }
}

/// A piece of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// Which choice it is of.
    pub choice: u32,
    /// What came.
    pub piece: Piece,
}

/// What came of a choice. Texts are never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// Reasoning, which is no part of the text.
    Reasoning(String),
    /// The words of a refusal.
    Refusal(String),
    /// The beginning or the next piece of a tool call.
    ToolCall {
        /// Its number among the choice's calls.
        index: u32,
        /// Its id, where it is given.
        id: Option<String>,
        /// The function's name, where it is given.
        name: Option<String>,
        /// The next characters of the arguments.
        arguments: String,
    },
}

impl Piece {
    /// How many bytes it takes to keep this, next to the calls that are known.
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
