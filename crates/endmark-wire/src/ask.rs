//! What asking for the rest of a cut reply has in common in all formats (PC-3, PC-9).

use crate::reply::ToolCall;

/// How a continuation is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The limit of output tokens, written into the client's own field or fields; where the client set none,
    /// into `max_completion_tokens`.
    pub limit: u64,
    /// Whether the answer is to be a stream.
    pub stream: bool,
    /// Whether a stream is to end with its usage.
    pub include_usage: bool,
}

/// What was received of a reply, without what the client itself began it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partial<'a> {
    /// The beginning of a text.
    Text(&'a str),
    /// A tool call that is not finished.
    ToolCall {
        /// The call, its arguments as far as they came.
        call: &'a ToolCall,
        /// The text before the calls.
        content_before: &'a str,
        /// The calls before it, all of them finished.
        calls_before: &'a [ToolCall],
    },
}

/// How a server is told to go on from the last message rather than to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrefillVariant {
    /// A last message of the assistant is enough: llama.cpp, older Claude models.
    Plain,
    /// `continue_final_message: true` and `add_generation_prompt: false`: vLLM, SGLang.
    ContinueFinalMessage,
    /// `"prefix": true` on the message: DeepSeek, Mistral.
    PrefixFlag,
    /// `"partial": true` on the message: Qwen, Kimi.
    PartialFlag,
}

impl PrefillVariant {
    /// Every variant, the plain one first.
    pub const ALL: [Self; 4] = [Self::Plain, Self::ContinueFinalMessage, Self::PrefixFlag, Self::PartialFlag];

    /// The literal name, as it is remembered.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::ContinueFinalMessage => "continue_final_message",
            Self::PrefixFlag => "prefix",
            Self::PartialFlag => "partial",
        }
    }
}

/// How a cut tool call is shown to a server that is to go on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolPrefill {
    /// As the text the model itself wrote, `<tool_call>\n{"name": …, "arguments": …`. llama.cpp with a Qwen
    /// or Hermes template goes on in it, and answers the whole call: the arguments begin with those it was
    /// shown. Only for templates that write calls so.
    Hermes,
    /// As `tool_calls` of the last message. llama.cpp drops them and writes the whole call anew: costs as
    /// much as the call, needs no knowledge of the template, and counts only if it begins with what was sent.
    Calls,
}

impl ToolPrefill {
    /// The literal name, as it is remembered.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hermes => "hermes",
            Self::Calls => "calls",
        }
    }
}

/// A cut reply as text alone: calls are quoted, one after the other.
pub(crate) fn quoted_text(partial: &Partial<'_>) -> String {
    let (call, content_before, calls_before) = match partial {
        Partial::Text(text) => return (*text).to_owned(),
        Partial::ToolCall { call, content_before, calls_before } => (call, content_before, calls_before),
    };
    let mut text = (*content_before).to_owned();
    for call in calls_before.iter().chain([*call]) {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        // The arguments stand last, so that the text ends where they are cut.
        for part in ["Arguments of the call to `", &call.name, "`, as JSON:\n", &call.arguments] {
            text.push_str(part);
        }
    }
    text
}
