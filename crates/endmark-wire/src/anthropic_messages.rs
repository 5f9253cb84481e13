//! Anthropic Messages, as implemented by Anthropic and compatible servers (PC-8, PC-9).
//!
//! A reply is one choice, which consists of content blocks. Its text is the text of its text blocks. Its tool
//! calls are its `tool_use` blocks, numbered from 0 independently of the block numbers. Thinking, tools that
//! the server runs itself, and all other blocks pass unchanged, including signatures.
//!
//! Every request has a limit. In a response without a stream, a tool call's input is an object. For a cut call the
//! server sends `{}` or an object from the part that it could parse, so such an input is discarded.

mod content;
mod continuation;
mod conversation;
mod error;
mod request;
mod response;
mod stop;
mod stream;
mod usage;
mod writer;

use crate::closing::LimitLocation;
use crate::deciding::fields;
use crate::provider::{Provider, RateHeaders};
use crate::request::Address;
use crate::wire_format::{FormatFacts, WireFormat};

/// Anthropic and its API.
pub const ANTHROPIC: Provider = Provider {
    name: "anthropic",
    origin: "https://api.anthropic.com",
    base_path: "/v1",
    adds_version: true,
    base_url_variable: "ANTHROPIC_BASE_URL",
    trace_name: "anthropic",
    headers: &["anthropic-version", "anthropic-beta"],
    key_prefixes: &["sk-ant-"],
    rate_headers: &RateHeaders {
        requests: [
            "anthropic-ratelimit-requests-limit",
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
        ],
        tokens: [
            "anthropic-ratelimit-tokens-limit",
            "anthropic-ratelimit-tokens-remaining",
            "anthropic-ratelimit-tokens-reset",
        ],
        reset_is_timestamp: true,
    },
};

/// Anthropic Messages: `POST /v1/messages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Messages;

static FACTS: FormatFacts = FormatFacts {
    name: "anthropic_messages",
    title: "Anthropic Messages",
    provider: &ANTHROPIC,
    route: "/v1/messages",
    limit_is_required: true,
    limit_location: LimitLocation { container_names: &[], names: &["max_tokens"] },
    calls_need_tools: true,
    needs_last_event: true,
    credential: ("x-api-key", ""),
    deciding_fields: fields::MESSAGES,
    body_hint: "Send an object with `model`, `max_tokens` and `messages`.",
    conversation_field: "messages",
    turn_order: conversation::ORDER,
    result_keywords: &["\"tool_result\""],
    call_keywords: &["\"tool_use\""],
    operation: "chat",
    always_reports_usage: true,
};

impl WireFormat for Messages {
    fn facts(&self) -> &'static FormatFacts {
        &FACTS
    }

    fn owns_path(&self, path: &str) -> bool {
        path.strip_prefix("/v1/messages").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn address(&self, path: &str, _query: Option<&str>) -> Option<Address> {
        (path == "/v1/messages").then(Address::default)
    }
}
