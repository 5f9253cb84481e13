//! Anthropic Messages, as implemented by Anthropic and compatible servers (PC-8, PC-9).
//!
//! A reply is one choice, which consists of content blocks. Its text is that of its text blocks. Its tool calls are
//! its `tool_use` blocks, counted from 0 and not by block number. Thinking, tools that the server runs itself, and
//! all other blocks pass unchanged, including signatures.
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

use crate::closing::LimitPlace;
use crate::deciding::fields;
use crate::provider::{Provider, RateHeaders};
use crate::request::Address;
use crate::wire_format::{Facts, WireFormat};

/// Anthropic.
pub const ANTHROPIC: Provider = Provider {
    name: "anthropic",
    origin: "https://api.anthropic.com",
    base_path: "/v1",
    adds_version: true,
    base_url_variable: "ANTHROPIC_BASE_URL",
    traced_as: "anthropic",
    headers: &["anthropic-version", "anthropic-beta"],
    keys_begin: &["sk-ant-"],
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
        reset_is_moment: true,
    },
};

/// Anthropic Messages: `POST /v1/messages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Messages;

static FACTS: Facts = Facts {
    name: "anthropic_messages",
    title: "Anthropic Messages",
    provider: &ANTHROPIC,
    route: "/v1/messages",
    limit_is_required: true,
    limit_place: LimitPlace { within: &[], names: &["max_tokens"] },
    calls_need_tools: true,
    wants_last_event: true,
    credential: ("x-api-key", ""),
    deciding: fields::MESSAGES,
    hint: "Send an object with `model`, `max_tokens` and `messages`.",
    conversation_field: "messages",
    order: conversation::ORDER,
    result_keywords: &["\"tool_result\""],
    call_keywords: &["\"tool_use\""],
    operation: "chat",
    reports_usage_unasked: true,
};

impl WireFormat for Messages {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn owns(&self, path: &str) -> bool {
        path.strip_prefix("/v1/messages").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn address(&self, path: &str, _query: Option<&str>) -> Option<Address> {
        (path == "/v1/messages").then(Address::default)
    }
}
