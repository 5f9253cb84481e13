//! OpenAI Chat Completions, as its many servers implement it in practice (PC-8, PC-9).
//!
//! A [`ChatRequest`] is viewed and, to request the rest of a cut reply, edited in place. The response is a
//! [`ChatResponse`], or a [`ChatStream`] of chunks. Both contain text, [`ToolCall`]s, a [`Finish`] and
//! [`Usage`]. Additional fields of a server pass unchanged.

mod choice;
mod content;
mod continuation;
mod conversation;
mod error;
mod finish;
mod format;
mod piece_assignment;
mod request;
mod response;
mod stream;
mod template;
mod tool_call;
mod usage;
mod writer;

pub use crate::ask::{Partial, PrefillVariant, Terms, ToolPrefill, hermes_prefill};
pub use crate::error::{ProviderError, RequestError, ResponseError};
pub use crate::reply::{
    Choice, ChoicePiece, Event as Chunk, EventError as ChunkError, Finish, Piece, ToolCall, Usage,
};

pub(crate) use error::read_error_field;
pub use error::{error_body, read_error};
pub use format::{Chat, OPENAI};
pub(crate) use request::request_usage;
pub use request::{ChatRequest, LimitField};
pub use response::{ChatResponse, ResponseEdit};
pub use stream::ChatStream;
pub use template::{ChunkEdit, Template};
pub(crate) use usage::read_usage as usage_of;

#[cfg(test)]
mod tests;
