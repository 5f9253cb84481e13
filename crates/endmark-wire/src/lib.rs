//! What language-model providers' bytes mean, without I/O: server-sent events and wire formats.
//!
//! A message is *viewed*, never turned into a tree and back: [`json`] finds values by their span in the
//! bytes, [`edit`] changes single spans in place, so that unknown fields, field order, number spelling and
//! whitespace survive. [`sse`] splits a stream into frames that keep every byte they were read from.
//! [`reply`], [`ask`] and [`error`] are what replies, requests for the rest of one and errors have in common,
//! whatever their format. [`openai_chat`] says what a Chat Completions request, response, stream and error mean
//! in these words, and builds the requests that ask for the rest of a cut reply (PC-3, PC-9).
//! [`http1`] says where a client's request ends and who may send it.
//!
//! Nothing here recurses over nesting that comes from outside, and every buffer has a limit in bytes.

pub mod anthropic_messages;
pub mod ask;
pub mod conversation;
pub mod edit;
pub mod error;
pub mod format;
pub mod gemini;
pub mod history;
pub mod http1;
pub mod json;
mod model_in_path;
pub mod openai_chat;
pub mod openai_responses;
mod percent;
pub mod provider;
pub mod reply;
pub mod request;
pub mod response;
pub mod sse;
pub mod stream;
pub mod writer;

pub use model_in_path::model_in_path;
pub use percent::percent_decoded;
