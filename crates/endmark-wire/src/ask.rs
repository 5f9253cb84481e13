//! What asking for the rest of a cut reply has in common in all formats (PC-3, PC-9).

use crate::json::quoted;
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

/// How the rest of a cut reply is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask<'a> {
    /// By letting the model go on in its own unfinished message.
    Prefill {
        /// What came.
        so_far: Partial<'a>,
        /// How the server is told to go on.
        variant: PrefillVariant,
        /// How a cut tool call is shown.
        tool: ToolPrefill,
    },
    /// In a user message after the cut reply (PC-3).
    Prompt {
        /// What came.
        so_far: Partial<'a>,
        /// The user message.
        prompt: &'a str,
    },
    /// The same again on other terms, where there is nothing to go on from (PC-8 `empty`).
    Again,
    /// For a corrected document in place of this one (PC-6).
    Correction {
        /// What came.
        wrong: Partial<'a>,
        /// The user message.
        prompt: &'a str,
    },
    /// By the provider's own means: the token that its answer carried.
    Native {
        /// The token, as it came.
        token: &'a str,
    },
}

/// A request for the rest of a cut reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its body.
    pub body: Vec<u8>,
    /// How many bytes at the end of what came are not shown in it. Some servers refuse an unfinished message
    /// that ends in whitespace: what is left out is asked for again, and the answer goes on from before it.
    pub unshown: usize,
}

impl From<Vec<u8>> for Asked {
    fn from(body: Vec<u8>) -> Self {
        Self { body, unshown: 0 }
    }
}

/// A cut reply in the words a Hermes or Qwen template has for it.
///
/// Arguments that hold no text yet (`{`) are left out, and so is whitespace at their end: a model goes on
/// badly from half a token, and finds it again by itself.
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
    format!("<tool_call>\n{{\"name\": {}, \"arguments\": {arguments}", quoted(name))
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
        let (what, form) = if call.free_text { ("Input", "") } else { ("Arguments", ", as JSON") };
        for part in [what, " of the call to `", &call.name, "`", form, ":\n", &call.arguments] {
            text.push_str(part);
        }
    }
    text
}
