//! OpenAI Chat Completions, as the many servers really speak it (PC-8, PC-9).
//!
//! A [`ChatRequest`] is viewed and, to ask for the rest of a cut reply, edited in place. The answer is a
//! [`ChatResponse`], or a [`ChatStream`] of chunks; both say the same things in the same words: text,
//! [`ToolCall`]s, a [`Finish`] and [`Usage`]. What a server adds that is not read here passes untouched.

mod choice;
mod content;
mod continuation;
mod conversation;
mod error;
mod finish;
mod format;
mod request;
mod response;
mod stream;
mod template;
mod tool_call;
mod usage;
mod whose_piece;
mod writer;

pub use crate::ask::{Partial, PrefillVariant, Terms, ToolPrefill, hermes_prefill};
pub use crate::error::{ProviderError, RequestError, ResponseError};
pub use crate::reply::{
    Choice, Delta, Event as Chunk, EventError as ChunkError, Finish, Piece, ToolCall, Usage,
};

pub(crate) use error::read_error_field;
pub use error::{error_body, read_error};
pub use format::{Chat, OPENAI};
pub(crate) use request::ask_for_usage;
pub use request::{ChatRequest, LimitField};
pub use response::{ChatResponse, ResponseEdit};
pub use stream::ChatStream;
pub use template::{ChunkEdit, Template};
pub(crate) use usage::read_usage as usage_of;

#[cfg(test)]
mod tests;
