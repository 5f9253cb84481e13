//! How a reply is delivered that could not be made whole.

use endmark_setting::OneOf;

/// How a reply is delivered that could not be made whole, or that may lack calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incomplete {
    /// As received, with the provider's own word for a cut reply.
    FinishReason,
    /// As an error in the provider's form: frameworks show neither headers nor unknown fields, but raise errors.
    Error,
}

pub(super) const INCOMPLETE: OneOf<Incomplete> =
    OneOf(&[("finish_reason", Incomplete::FinishReason), ("error", Incomplete::Error)]);
