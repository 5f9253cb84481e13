//! How an incomplete reply is delivered.

use endmark_setting::OneOf;

/// How to deliver a reply that could not be made whole, or that may lack tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncompleteDelivery {
    /// The reply is delivered as received, with the provider's finish reason for a cut.
    FinishReason,
    /// The client gets an error in the provider's format instead. Frameworks ignore headers and unknown
    /// fields, but they do report errors.
    Error,
}

pub(super) const INCOMPLETE_VALUES: OneOf<IncompleteDelivery> =
    OneOf(&[("finish_reason", IncompleteDelivery::FinishReason), ("error", IncompleteDelivery::Error)]);
