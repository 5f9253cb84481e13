//! What is done when an upstream fails: tried again, replaced by another, or passed on as it is.
//!
//! Four machines without clock, thread or chance of their own; a driver tells them the time since its start
//! and hands them its random numbers:
//! - [`Delivery`]: what follows a try that brought no reply.
//! - [`RetryBudget`]: whether a further try is within the share of traffic that may be tries.
//! - [`Circuit`]: whether an upstream that failed lately is tried at all.
//! - [`Finishing`]: which upstream is asked for the rest of a reply that was cut.

mod backoff;
mod budget;
mod circuit;
mod delivery;
mod finishing;
#[cfg(test)]
mod tests;

pub use backoff::{FIRST_PAUSE, LONGEST_PAUSE, pause, wait_as_told};
pub use budget::{BUDGET_WINDOW_SECONDS, RetryBudget};
pub use circuit::{Admission, Circuit, FAILURES_BEFORE_OPEN};
pub use delivery::{Delivery, Failure, Next, RetryPolicy};
pub use finishing::Finishing;
