//! Asks for the rest of a cut reply, and joins it (PC-5).

mod history;
mod policy;
mod reply;
mod step;

pub use history::{PieceRecord, PieceRole};
pub use policy::{MAX_RESUME_ATTEMPTS, OnAmbiguous, ResumePolicy};
pub use reply::{AskFailure, Join, Reply};
pub use step::{ExhaustedCause, ResumeAsk, ResumeExhausted, ResumeOutcome, ResumeStep};
