//! Asks for the rest of a cut reply, and joins it (PC-5).

mod body;
mod history;
mod machine;
mod policy;
mod reply;
mod step;
mod turns;
mod why;

pub use history::{PieceRecord, PieceRole};
pub use machine::{Resume, resume_if_truncated};
pub use policy::{MAX_RESUME_ATTEMPTS, OnAmbiguous, ResumePolicy};
pub use reply::{AskFailure, Join, Reply};
pub use step::{ExhaustedCause, ResumeAsk, ResumeExhausted, ResumeOutcome, ResumeStep};

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::properties as tests_support;
