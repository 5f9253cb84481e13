//! Chat Completions as one of the formats.

use serde_json::value::RawValue;

use super::response::ResponseEdit;
use super::{ChatStream, conversation};
use crate::closing::LimitPlace;
use crate::deciding::fields;
use crate::provider::{OPENAI_RATE_HEADERS, Provider};
use crate::reply::{Event, EventError, Received, ToolCall, Usage};
use crate::request::Address;
use crate::response::ReplyEdit;
use crate::sse::Frame;
use crate::stream::Reader;
use crate::wire_format::{Facts, WireFormat};
use crate::writer::End;

/// The prefix of Azure's paths.
const AZURE: &str = "/openai/";

/// OpenAI.
pub const OPENAI: Provider = Provider {
    name: "openai",
    origin: "https://api.openai.com",
    base_path: "/v1",
    adds_version: false,
    base_url_variable: "OPENAI_BASE_URL",
    traced_as: "openai",
    headers: &["openai-organization"],
    keys_begin: &["sk-proj-", "sk-svcacct-", "sk-admin-"],
    rate_headers: &OPENAI_RATE_HEADERS,
};

/// Chat Completions: `POST /v1/chat/completions`, and Azure's paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chat;

static FACTS: Facts = Facts {
    name: "openai_chat",
    title: "OpenAI Chat Completions",
    provider: &OPENAI,
    route: "/v1/chat/completions",
    limit_place: LimitPlace { within: &[], names: &["max_completion_tokens", "max_tokens"] },
    deciding: fields::CHAT,
    hint: "Send an object with `model` and `messages`.",
    conversation_field: "messages",
    order: conversation::ORDER,
    result_keywords: &["\"tool_call_id\""],
    call_keywords: &["\"tool_calls\"", "\"function_call\""],
    reports_usage_unasked: false,
    operation: "chat",
    limit_is_required: false,
    calls_need_tools: false,
    wants_last_event: false,
    credential: ("authorization", "Bearer "),
};

impl WireFormat for Chat {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn owns(&self, path: &str) -> bool {
        path.starts_with(AZURE)
            || path
                .strip_prefix("/v1/chat/completions")
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn address(&self, path: &str, _query: Option<&str>) -> Option<Address> {
        let model = match path.strip_prefix(AZURE) {
            None if path == "/v1/chat/completions" => None,
            Some("v1/chat/completions") => None,
            // A deployment is a model with a custom name.
            Some(below) => {
                let named = below.strip_prefix("deployments/")?.strip_suffix("/chat/completions")?;
                if named.is_empty() || named.contains('/') {
                    return None;
                }
                Some(named.to_owned())
            }
            None => return None,
        };
        Some(Address { model, ..Address::default() })
    }
}

impl Reader for ChatStream {
    fn read_frame(&mut self, frame: &Frame) -> Result<Event, EventError> {
        ChatStream::read_frame(self, frame)
    }

    fn received(&self) -> &Received {
        ChatStream::received(self)
    }

    fn fork(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }
}

impl ReplyEdit for ResponseEdit<'_> {
    fn set_text(&mut self, choice: u32, text: &str) {
        ResponseEdit::set_text(self, choice, text);
    }

    fn set_arguments(&mut self, choice: u32, call: u32, arguments: &str) {
        ResponseEdit::set_arguments(self, choice, call, arguments);
    }

    fn add_calls(&mut self, choice: u32, calls: &[ToolCall]) {
        self.add_tool_calls(choice, calls);
    }

    fn set_end(&mut self, choice: u32, end: End) {
        let word = if end == End::ToolCalls && self.has_legacy_call(choice) {
            "function_call"
        } else {
            finish_word(end)
        };
        self.set_finish(choice, word);
        if end != End::Cut {
            self.remove_error(choice);
        }
    }

    fn set_usage(&mut self, usage: &Usage) {
        ResponseEdit::set_usage(self, usage);
    }

    fn set_endmark(&mut self, endmark: &RawValue) {
        ResponseEdit::set_endmark(self, endmark);
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        ResponseEdit::finish(*self)
    }
}

/// Returns the finish reason for an end.
pub(super) fn finish_word(end: End) -> &'static str {
    match end {
        End::Turn => "stop",
        End::ToolCalls => "tool_calls",
        End::Cut => "length",
    }
}
