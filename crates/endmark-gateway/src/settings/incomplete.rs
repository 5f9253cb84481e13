//! How a client is shown a reply that could not be made whole.

/// How a client is shown a reply that could not be made whole, or that may lack calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Incomplete {
    /// As far as it came, with the provider's own word for a cut reply.
    #[default]
    FinishReason,
    /// As an error of the provider's shape: frameworks show neither headers nor unknown fields, but raise errors.
    Error,
}
