//! A tool call, complete or cut.

use crate::json::Value;

/// A tool call, as received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall {
    /// The number of the call in its choice.
    pub index: u32,
    /// The id that a tool's result refers to. The legacy `function_call` has none.
    pub id: Option<String>,
    /// The function's name.
    pub name: String,
    /// The text of the arguments. If complete, it is JSON or free text.
    pub arguments: String,
    /// Whether the tool accepts free text instead of JSON (a `custom` tool of OpenAI). Free text itself does
    /// not show whether it is complete; only the end of the reply does.
    pub free_text: bool,
    /// Whether the server reported the call as complete.
    pub progress: CallProgress,
    /// The provider's signature, which a client must send back with the call (Gemini's `thoughtSignature`).
    pub signature: Option<String>,
    /// Whether it was sent as the legacy `function_call`, and therefore must be answered in that form.
    pub legacy: bool,
    /// How the stream's pieces identify the call.
    pub piece_key: PieceKey,
}

/// The progress of a call, as its server states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallProgress {
    /// The server reports no progress, because the format cannot.
    #[default]
    Unreported,
    /// The call began and was not reported complete.
    Open,
    /// The call is complete.
    Closed,
}

/// How the pieces of a stream identify a call. Some servers send the same number for all calls, or no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PieceKey {
    /// By its own number.
    #[default]
    Number,
    /// By this number, which other calls share. A new id or name began this call.
    Shared(u32),
    /// Without a number.
    Unreported,
}

impl ToolCall {
    /// Returns the number in the pieces of the call, or `None` if they have no number.
    pub(crate) fn sent_index(&self) -> Option<u32> {
        match self.piece_key {
            PieceKey::Number => Some(self.index),
            PieceKey::Shared(index) => Some(index),
            PieceKey::Unreported => None,
        }
    }

    /// Returns whether the arguments may be complete. This is always the case for free text.
    pub(crate) fn can_be_whole(&self) -> bool {
        self.free_text || Value::parse_str(&self.arguments).is_ok()
    }

    /// Returns the text that replaces a cut call if the reply has no other content. Providers reject a
    /// message without content in later requests.
    ///
    /// ```
    /// use endmark_wire::reply::ToolCall;
    ///
    /// let cut = ToolCall { name: "get_weather".to_owned(), ..ToolCall::default() };
    /// assert_eq!(cut.omission_text(), "[A call of get_weather was cut off here, and is left out.]");
    /// ```
    pub fn omission_text(&self) -> String {
        format!("[A call of {} was cut off here, and is left out.]", self.name)
    }
}
