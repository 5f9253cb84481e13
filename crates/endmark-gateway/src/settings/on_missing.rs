//! How a reply ends that may lack tool calls.

/// How a reply ends whose tool calls are whole, and that was cut where further ones may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMissing {
    /// As one that ends with calls, so that the client runs them. The default: a model that gets the results makes a call that is
    /// missing in its next turn, while a client that drops whole calls has them generated, and paid for, again.
    #[default]
    Deliver,
    /// As a cut one, for clients that must have all calls of a turn or none.
    Cut,
}
