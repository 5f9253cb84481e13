//! How a reply is delivered that may lack tool calls.

use endmark_setting::OneOf;

/// How to deliver a reply that was cut between whole tool calls, so that more calls may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// The reply keeps its calls, and the client runs them (default). After their results, a model makes a
    /// missing call in its next turn. If the calls were dropped, the model would have to generate them again.
    Deliver,
    /// The reply is reported as cut, for clients that need either all calls of a turn or no call.
    Cut,
}

pub(super) const ON_MISSING_VALUES: OneOf<OnMissing> =
    OneOf(&[("deliver", OnMissing::Deliver), ("cut", OnMissing::Cut)]);
