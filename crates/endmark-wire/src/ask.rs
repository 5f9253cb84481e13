//! Builds requests for the rest of a cut reply: the parts that all formats share (PC-3, PC-9).

use crate::json::quote;
use crate::reply::ToolCall;

/// The terms of a request for a continuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The limit of output tokens, written into the client's own field or fields. If the client set none, Chat
    /// Completions gets `max_completion_tokens`; every other format has only one field.
    pub limit: u64,
    /// Whether the response should be a stream.
    pub stream: bool,
    /// Whether a stream should end with its token counts.
    pub include_usage: bool,
}

/// The part of a reply that was received, without the prefill that the client itself sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partial<'a> {
    /// The beginning of a text.
    Text(&'a str),
    /// An unfinished tool call.
    ToolCall {
        /// The call, with its arguments as received.
        call: &'a ToolCall,
        /// The text before the calls.
        content_before: &'a str,
        /// The finished calls before this call.
        calls_before: &'a [ToolCall],
    },
}

/// How a request asks a server to continue the last message instead of answering it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrefillVariant {
    /// The request only ends with a message of the assistant: llama.cpp, older Claude models.
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

    /// Returns the identifier under which the gateway stores what a server supports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::ContinueFinalMessage => "continue_final_message",
            Self::PrefixFlag => "prefix",
            Self::PartialFlag => "partial",
        }
    }
}

/// How a request presents a cut tool call to the server that continues it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolPrefill {
    /// As text that the model wrote itself: `<tool_call>\n{"name": …, "arguments": …`. llama.cpp with a Qwen or
    /// Hermes template continues it and returns the complete call, whose arguments begin with those in the request.
    /// Only for templates that write calls in this form.
    Hermes,
    /// As `tool_calls` of the last message. llama.cpp drops them and generates the complete call again. This
    /// costs the tokens of the complete call, but does not depend on the template. The result counts only if
    /// it begins with the arguments in the request.
    Calls,
}

impl ToolPrefill {
    /// Returns the identifier under which the gateway stores what a server supports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hermes => "hermes",
            Self::Calls => "calls",
        }
    }
}

/// A way to ask for the rest of a cut reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask<'a> {
    /// The model continues its own unfinished message.
    Prefill {
        /// The part that was received.
        so_far: Partial<'a>,
        /// How to ask the server to continue.
        variant: PrefillVariant,
        /// How to present a cut tool call.
        tool: ToolPrefill,
    },
    /// A user message after the cut reply requests the rest (PC-3).
    Prompt {
        /// The part that was received.
        so_far: Partial<'a>,
        /// The user message.
        prompt: &'a str,
    },
    /// Repeats the request with other limits, because the reply has no content to continue (PC-8 `empty`).
    Again,
    /// Requests a corrected document instead of the received one (PC-6).
    Correction {
        /// The part that was received.
        wrong: Partial<'a>,
        /// The user message.
        prompt: &'a str,
    },
    /// Sends the provider's own continuation token back.
    Native {
        /// The token, as received.
        token: &'a str,
    },
}

/// A request for the rest of a cut reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinuationRequest {
    /// The request body.
    pub body: Vec<u8>,
    /// The number of bytes at the end of the received part that the request does not show.
    ///
    /// Some servers reject an unfinished message that ends in white space. The omitted bytes are requested again, so
    /// the response begins before them.
    pub unshown_bytes: usize,
}

impl From<Vec<u8>> for ContinuationRequest {
    fn from(body: Vec<u8>) -> Self {
        Self { body, unshown_bytes: 0 }
    }
}

/// Returns a cut reply in the form that a Hermes or Qwen template gives it.
///
/// Arguments without a quote character, such as `{`, are omitted, and so is white space at their end: models
/// continue badly from half a token, but generate the omitted token themselves.
///
/// ```
/// use endmark_wire::ask::{Partial, hermes_prefill};
/// use endmark_wire::reply::ToolCall;
/// let call = ToolCall { name: "write".to_owned(), arguments: "{\"path\": \"a".to_owned(), ..ToolCall::default() };
/// let partial = Partial::ToolCall { call: &call, content_before: "Sure.\n", calls_before: &[] };
/// assert_eq!(hermes_prefill(&partial), "Sure.\n<tool_call>\n{\"name\": \"write\", \"arguments\": {\"path\": \"a");
/// ```
pub fn hermes_prefill(partial: &Partial<'_>) -> String {
    let (call, content_before, calls_before) = match partial {
        Partial::Text(text) => return (*text).to_owned(),
        Partial::ToolCall { call, content_before, calls_before } => (call, content_before, calls_before),
    };
    let mut text = (*content_before).to_owned();
    for finished in *calls_before {
        text.push_str(&hermes_call(&finished.name, &finished.arguments));
        text.push_str("}\n</tool_call>\n");
    }
    let arguments = if call.arguments.contains('"') { call.arguments.trim_end() } else { "" };
    text.push_str(hermes_call(&call.name, arguments).trim_end());
    text
}

fn hermes_call(name: &str, arguments: &str) -> String {
    format!("<tool_call>\n{{\"name\": {}, \"arguments\": {arguments}", quote(name))
}

/// Returns a cut reply as plain text. The calls follow one another as quoted text.
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
        // The arguments come last, so that the text ends at the cut.
        let (what, form) = if call.free_text { ("Input", "") } else { ("Arguments", ", as JSON") };
        for part in [what, " of the call to `", &call.name, "`", form, ":\n", &call.arguments] {
            text.push_str(part);
        }
    }
    text
}
