//! How a reply ends that may lack tool calls.

/// How a reply ends whose tool calls are whole, and that was cut where further ones may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMissing {
    /// With its calls, so that the client runs them. The default: a model that gets their results makes a missing call in its next
    /// turn, while whole calls that are dropped are generated and paid for again.
    #[default]
    Deliver,
    /// As a cut one, for clients that must have all calls of a turn or none.
    Cut,
}
