//! Counts the tokens of a text, a request or an image for a model, before the provider reports them (CX-6).
//!
//! Each count states whether it is exact. It is exact for text and models with a published vocabulary, unless the text
//! has a word of more than 64 KiB. All other counts are estimates by the family of the model. [`Family`] lists the
//! figures and their sources.

mod claude;
mod family;
mod image;
mod openai;
mod rates;
mod request;
mod shelf;
mod tally;

pub use family::{Family, drop_unused_vocabularies};
pub use image::{Dimensions, dimensions};
pub use request::{RequestTokens, Unreadable, estimate_request, request, request_unless};
pub use tally::{TextTally, unread_tokens};

/// Tokens that were counted here, not reported by a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Number of tokens.
    pub tokens: u64,
    /// Whether the provider gets the same count. Otherwise it is an estimate.
    pub exact: bool,
}

/// Returns the tokens of a text for this model.
///
/// ```
/// use endmark_context::count::text;
/// let counted = text("Keep the work whole.", "gpt-5");
/// assert_eq!((counted.tokens, counted.exact), (5, true));
/// // Current Claude models have more tokens for the same text; how many is estimated.
/// assert!(text("Keep the work whole.", "claude-sonnet-5").tokens > 5);
/// ```
pub fn text(text: &str, model: &str) -> Count {
    Family::of(model).count(text, || false)
}

#[cfg(test)]
mod tests;
