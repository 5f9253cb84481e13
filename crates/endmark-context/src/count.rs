//! Counts the tokens of a text, a request or an image for a model, before the provider reports them (CX-6).
//!
//! Each count states whether it is exact. A count of text is exact for models with a published vocabulary,
//! unless the text has a word of more than 64 KiB. All other counts are estimates for the model's family.
//! [`Family`] lists the figures and their sources.

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
pub use request::{RequestTokens, UncountableBody, estimate_request, request, request_unless};
pub use tally::{TextTally, unread_tokens};

/// A number of tokens that Endmark counted itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCount {
    /// Number of tokens.
    pub tokens: u64,
    /// Whether the provider gets exactly this number. Otherwise, the number is an estimate.
    pub exact: bool,
}

/// Returns the number of tokens in a text for this model.
///
/// ```
/// use endmark_context::count::text;
/// let counted = text("Keep the work whole.", "gpt-5");
/// assert_eq!((counted.tokens, counted.exact), (5, true));
/// // Current Claude models have more tokens for the same text; how many is estimated.
/// assert!(text("Keep the work whole.", "claude-sonnet-5").tokens > 5);
/// ```
pub fn text(text: &str, model: &str) -> TokenCount {
    Family::of(model).count(text, || false)
}

#[cfg(test)]
mod tests;
