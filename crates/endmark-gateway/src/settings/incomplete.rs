//! How an incomplete reply is delivered.

use endmark_setting::OneOf;

/// How to deliver a reply that could not be made whole, or that may lack tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incomplete {
    /// As received, with the provider's own finish reason for a cut.
    FinishReason,
    /// As an error in the provider's format. Frameworks ignore headers and unknown fields, but they do report errors.
    Error,
}

pub(super) const INCOMPLETE: OneOf<Incomplete> =
    OneOf(&[("finish_reason", Incomplete::FinishReason), ("error", Incomplete::Error)]);
