#![doc = include_str!("../README.md")]

pub mod anthropic_messages;
pub mod ask;
pub mod closing;
pub mod conversation;
pub mod deciding;
pub mod edit;
pub mod error;
pub mod finish_reasons;
pub mod format;
pub mod gemini;
pub mod history;
pub mod http1;
mod model_in_path;
pub mod openai_chat;
pub mod openai_responses;
pub mod own_tool;
pub mod paths;
mod percent;
pub mod provider;
pub mod reply;
pub mod request;
pub mod response;
pub mod saved;
pub mod sse;
pub mod stream;
mod wire_format;
pub mod writer;

pub use endmark_text::json;
pub use model_in_path::model_in_path;
pub use percent::percent_decode;
