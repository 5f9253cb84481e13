//! How a reply is delivered that may lack tool calls.

use endmark_setting::OneOf;

/// How to deliver a reply whose tool calls are whole, but that was cut at a place where more calls may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// With its calls, so that the client runs them. This is the default: after their results, a model makes
    /// a missing call in its next turn. Dropped calls would have to be generated and paid for again.
    Deliver,
    /// As a cut reply, for clients that need all calls of a turn or none.
    Cut,
}

pub(super) const ON_MISSING: OneOf<OnMissing> =
    OneOf(&[("deliver", OnMissing::Deliver), ("cut", OnMissing::Cut)]);
