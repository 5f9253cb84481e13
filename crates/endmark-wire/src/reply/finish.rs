//! The end of a choice.

use endmark_recovery::Stop;

/// The end of a choice, as the server put it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Which choice has ended.
    pub choice: u32,
    /// What the word means; none where it says that the server broke the reply off, which is no end of the
    /// model's: judge it as [`Ending::UpstreamError`](endmark_recovery::Ending::UpstreamError).
    pub stop: Option<Stop>,
    /// The server's word, as `stop` or `length`.
    pub word: String,
    /// Which of the client's stop sequences it met, where the server says that.
    pub sequence: Option<String>,
}

impl Finish {
    /// Whether the word is the provider's last one on the reply: it failed there, or was called off, and its word says
    /// more than any other that could stand in its place.
    ///
    /// ```
    /// use endmark_wire::reply::Finish;
    ///
    /// let finish = |word: &str| Finish { choice: 0, stop: None, word: word.to_owned(), sequence: None };
    /// assert!(finish("cancelled").is_last_word());
    /// assert!(!finish("length").is_last_word());
    /// ```
    pub fn is_last_word(&self) -> bool {
        matches!(
            self.word.as_str(),
            // Responses.
            "failed" | "cancelled"
            // Gemini.
            | "OTHER" | "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS"
            | "MISSING_THOUGHT_SIGNATURE"
        )
    }

    /// Whether the reply ended since the model's window is full: there is no room for more, however it is asked for
    /// (PC-8 `window`).
    pub fn fills_window(&self) -> bool {
        self.word == "model_context_window_exceeded"
    }
}
