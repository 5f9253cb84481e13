//! How a reply is delivered that may lack tool calls.

use endmark_setting::OneOf;

/// How a reply is delivered whose tool calls are whole, and that was cut where further ones may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// With its calls, so that the client runs them. The default: a model that gets their results makes a missing
    /// call in its next turn, while dropped calls are generated and paid for again.
    Deliver,
    /// As a cut reply, for clients that need all calls of a turn or none.
    Cut,
}

pub(super) const ON_MISSING: OneOf<OnMissing> =
    OneOf(&[("deliver", OnMissing::Deliver), ("cut", OnMissing::Cut)]);
