//! OpenAI Chat Completions, as the many servers really speak it (PC-8, PC-9).
//!
//! A [`ChatRequest`] is viewed and, to ask for the rest of a cut reply, edited in place. The answer is a
//! [`ChatResponse`], or a [`ChatStream`] of chunks; both say the same things in the same words: text,
//! [`ToolCall`]s, a [`Finish`] and [`Usage`]. What a server adds that is not read here passes untouched.

mod choice;
mod content;
mod continuation;
mod error;
mod finish;
mod request;
mod response;
mod stream;
mod template;
mod tool_call;
mod usage;

pub use choice::Choice;
pub use continuation::{Partial, PrefillVariant, Terms, ToolPrefill, hermes_prefill};
pub use error::{ProviderError, error_body, read_error};
pub use finish::{Finish, StoppedBy, finish_of};
pub use request::{ChatRequest, LimitField, RequestError};
pub use response::{ChatResponse, ResponseEdit, ResponseError};
pub use stream::{ChatStream, Chunk, ChunkError, Delta, Piece};
pub use template::{ChunkEdit, Template};
pub use tool_call::ToolCall;
pub use usage::Usage;

#[cfg(test)]
mod tests;
