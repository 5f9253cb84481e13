//! A tool call, complete or cut.

use crate::json::Value;

/// A tool call, as received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall {
    /// Number of the call in its choice.
    pub index: u32,
    /// The id that a tool's result refers to; the legacy `function_call` has none.
    pub id: Option<String>,
    /// The function's name.
    pub name: String,
    /// The arguments' source text. If complete, it is JSON or free text.
    pub arguments: String,
    /// Whether the tool takes free text instead of JSON (a `custom` tool of OpenAI). Only the end of the reply shows
    /// whether free text is complete.
    pub free_text: bool,
    /// Whether the server reported the call as complete.
    pub progress: CallProgress,
    /// The provider's signature, which a client has to send back with the call (Gemini's `thoughtSignature`).
    pub signature: Option<String>,
    /// Whether it was sent as the legacy `function_call`, and so must be answered in that form.
    pub legacy: bool,
    /// How the stream's next piece of this call is identified.
    pub place: PieceKey,
}

/// The progress of a call, as its server states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallProgress {
    /// The server states nothing: the format cannot.
    #[default]
    Unreported,
    /// The call began and was not reported complete.
    Open,
    /// The call is complete.
    Closed,
}

/// How the pieces of a stream identify a call. A server may give all calls the same number, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PieceKey {
    /// By its own number.
    #[default]
    Number,
    /// By this number, which other calls also have. A new id or name began this call.
    Shared(u32),
    /// Without a number.
    Unreported,
}

impl ToolCall {
    /// Returns the number with which pieces of it are sent.
    pub(crate) fn sent_index(&self) -> Option<u32> {
        match self.place {
            PieceKey::Number => Some(self.index),
            PieceKey::Shared(index) => Some(index),
            PieceKey::Unreported => None,
        }
    }

    /// Returns whether its arguments can be complete. Free text always can.
    pub(crate) fn can_be_whole(&self) -> bool {
        self.free_text || Value::parse_str(&self.arguments).is_ok()
    }

    /// Returns the text that replaces a cut call if the reply contains nothing else. Providers reject a message
    /// without content in a later conversation.
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
