//! A tool call, whole or cut.

use crate::json::Value;

/// A call of a tool, as far as it was received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall {
    /// Its number among the calls of one choice.
    pub index: u32,
    /// The id that a tool's result refers to; the legacy `function_call` has none.
    pub id: Option<String>,
    /// The function's name.
    pub name: String,
    /// The arguments' source text: JSON when it is whole, unless it is free text.
    pub arguments: String,
    /// Whether the tool takes free text instead of JSON (a `custom` tool of OpenAI's): only how the reply ended tells
    /// whether it is whole.
    pub free_text: bool,
    /// Whether the server said that the call is complete.
    pub progress: CallProgress,
    /// What the provider signed it with, which a client has to send back with it (Gemini's `thoughtSignature`).
    pub signature: Option<String>,
    /// Sent as the legacy `function_call`, and so to be answered in that form.
    pub legacy: bool,
    /// Where a stream's next piece of it goes.
    pub place: Place,
}

/// How far a call has come, as its server states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallProgress {
    /// Nothing: the format has no way to.
    #[default]
    Untold,
    /// The call began, and was not said to be complete.
    Open,
    /// It is complete.
    Closed,
}

/// By what the pieces of a stream name a call. A server may number its calls all alike, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// By its own number.
    #[default]
    Number,
    /// By this one, which another call has, too: a new id or name began this call.
    Shared(u32),
    /// By none.
    Untold,
}

impl ToolCall {
    /// The number that pieces of it are sent with.
    pub(crate) fn sent_index(&self) -> Option<u32> {
        match self.place {
            Place::Number => Some(self.index),
            Place::Shared(index) => Some(index),
            Place::Untold => None,
        }
    }

    /// Whether its arguments can be whole: of free text nothing tells.
    pub(crate) fn can_be_whole(&self) -> bool {
        self.free_text || Value::parse_str(&self.arguments).is_ok()
    }

    /// What a client is told in the place of this call, where a reply has nothing else and the call is cut: providers refuse
    /// a message without content when it comes back in a conversation.
    ///
    /// ```
    /// use endmark_wire::reply::ToolCall;
    ///
    /// let cut = ToolCall { name: "get_weather".to_owned(), ..ToolCall::default() };
    /// assert_eq!(cut.left_out(), "[A call of get_weather was cut off here, and is left out.]");
    /// ```
    pub fn left_out(&self) -> String {
        format!("[A call of {} was cut off here, and is left out.]", self.name)
    }
}
