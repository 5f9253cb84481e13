//! Requests the rest of a cut reply, and joins it (PC-5).
//!
//! [`Resume`] is the state machine. [`resume_if_truncated`] and [`resume_if_truncated_async`] drive it with a
//! function that calls the model.

mod asynchronous;
mod continuations;
mod history;
mod joined_text;
mod machine;
mod policy;
mod prompt_echo;
mod prompt_excerpt;
mod prompted_join;
mod prompted_stream;
mod proof;
mod reasons;
mod reply;
mod restart;
mod result;
mod step;
mod strategy;
mod weight;

pub use asynchronous::resume_if_truncated_async;
pub use history::{PieceRecord, PieceRole};
pub use machine::{Resume, resume_if_truncated};
pub use policy::{MAX_RESUME_ATTEMPTS, OnAmbiguous, Restart, ResumePolicy};
pub use prompt_excerpt::PromptExcerpt;
pub use prompted_stream::PromptedStream;
pub use reply::{AskFailure, Join, Reply};
pub use result::ResumeError;
pub use step::{ExhaustedCause, RequestedReply, ResumeAsk, ResumeExhausted, ResumeOutcome, ResumeStep};
pub use strategy::{Strategies, StrategiesError, Strategy};

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::properties as tests_support;
