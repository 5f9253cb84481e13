//! The end of a choice.

use endmark_core::Stop;

/// The end of a choice, as the server put it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Which choice has ended.
    pub choice: u32,
    /// What the word means; none where it says that the server broke the reply off, which is no end of the
    /// model's: judge it as [`Ending::UpstreamError`](endmark_core::Ending::UpstreamError).
    pub stop: Option<Stop>,
    /// The server's word, as `stop` or `length`.
    pub word: String,
}
