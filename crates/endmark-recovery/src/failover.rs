//! Decides what to do if an upstream fails: retry, use another upstream, or forward the error.
//!
//! Four state machines without a clock, threads or randomness. The driver passes the time since its start,
//! and random numbers:
//! - [`Delivery`]: the next step after a failed attempt.
//! - [`RetryBudget`]: whether another attempt is within the permitted share of the traffic.
//! - [`Circuit`]: whether to use an upstream that failed recently.
//! - [`UpstreamSwitch`]: which upstream completes a cut reply.

mod backoff;
mod budget;
mod circuit;
mod delivery;
#[cfg(test)]
mod tests;
mod upstream_switch;

pub use backoff::{FIRST_PAUSE, LONGEST_PAUSE, pause, requested_wait};
pub use budget::{BUDGET_WINDOW_SECONDS, RetryBudget};
pub use circuit::{Admission, Circuit, FAILURES_BEFORE_OPEN};
pub use delivery::{AttemptFailure, Delivery, NextStep, RetryPolicy};
pub use upstream_switch::UpstreamSwitch;
