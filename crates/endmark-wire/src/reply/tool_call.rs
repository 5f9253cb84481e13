//! A tool call, whole or cut.

/// A call of a tool, as far as it was received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall {
    /// Its number among the calls of one choice.
    pub index: u32,
    /// The id that a tool's result refers to; the legacy `function_call` has none.
    pub id: Option<String>,
    /// The function's name.
    pub name: String,
    /// The arguments' source text, JSON when it is whole.
    pub arguments: String,
    /// What the provider signed it with, which a client has to send back with it (Gemini's `thoughtSignature`).
    pub signature: Option<String>,
    /// Sent as the legacy `function_call`, and so to be answered in that form.
    pub legacy: bool,
}
