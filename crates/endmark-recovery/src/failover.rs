//! Decides what to do if an upstream fails: retry, use another upstream, or forward the error.
//!
//! Four state machines without clock, threads or randomness. The driver passes the time since its start and random
//! numbers:
//! - [`Delivery`]: what follows a failed attempt.
//! - [`RetryBudget`]: whether another attempt is within the permitted share of the traffic.
//! - [`Circuit`]: whether to try an upstream that failed recently.
//! - [`Finishing`]: which upstream completes a cut reply.

mod backoff;
mod budget;
mod circuit;
mod delivery;
mod finishing;
#[cfg(test)]
mod tests;

pub use backoff::{FIRST_PAUSE, LONGEST_PAUSE, pause, requested_wait};
pub use budget::{BUDGET_WINDOW_SECONDS, RetryBudget};
pub use circuit::{Admission, Circuit, FAILURES_BEFORE_OPEN};
pub use delivery::{Delivery, Failure, Next, RetryPolicy};
pub use finishing::Finishing;
