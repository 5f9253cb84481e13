//! How a reply is delivered that may lack tool calls.

use endmark_setting::OneOf;

/// How to deliver a reply that was cut between whole tool calls, so that more calls may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// With its calls, so that the client runs them (default). After their results, a model makes a missing call in
    /// its next turn. If the calls were dropped, the model would have to generate them again.
    Deliver,
    /// As a cut reply, for clients that need either all calls of a turn or none.
    Cut,
}

pub(super) const ON_MISSING: OneOf<OnMissing> =
    OneOf(&[("deliver", OnMissing::Deliver), ("cut", OnMissing::Cut)]);
