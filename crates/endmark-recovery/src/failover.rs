//! What to do if an upstream fails: retry, fall back to another upstream, or pass the error on.
//!
//! Four state machines without a clock, threads or randomness of their own. A driver passes the time since its start
//! and random numbers:
//! - [`Delivery`]: what follows a failed try.
//! - [`RetryBudget`]: whether a further try is within the permitted share of the traffic.
//! - [`Circuit`]: whether an upstream that failed recently is tried at all.
//! - [`Finishing`]: which upstream is asked for the rest of a cut reply.

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
