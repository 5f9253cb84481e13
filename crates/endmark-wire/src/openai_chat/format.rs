//! Chat Completions as one of the formats.

use serde_json::value::RawValue;

use super::response::ResponseEdit;
use super::{ChatStream, conversation};
use crate::closing::LimitLocation;
use crate::deciding::fields;
use crate::provider::{OPENAI_RATE_HEADERS, Provider};
use crate::reply::{Event, EventError, Received, ToolCall, Usage};
use crate::request::Address;
use crate::response::ReplyEdit;
use crate::sse::Frame;
use crate::stream::Reader;
use crate::wire_format::{FormatFacts, WireFormat};
use crate::writer::ReportedEnd;

/// The prefix of Azure's paths.
const AZURE_PREFIX: &str = "/openai/";

/// OpenAI and its API.
pub const OPENAI: Provider = Provider {
    name: "openai",
    origin: "https://api.openai.com",
    base_path: "/v1",
    adds_version: false,
    base_url_variable: "OPENAI_BASE_URL",
    trace_name: "openai",
    headers: &["openai-organization"],
    key_prefixes: &["sk-proj-", "sk-svcacct-", "sk-admin-"],
    rate_headers: &OPENAI_RATE_HEADERS,
};

/// Chat Completions: `POST /v1/chat/completions`, and Azure's paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chat;

static FACTS: FormatFacts = FormatFacts {
    name: "openai_chat",
    title: "OpenAI Chat Completions",
    provider: &OPENAI,
    route: "/v1/chat/completions",
    limit_location: LimitLocation { container_names: &[], names: &["max_completion_tokens", "max_tokens"] },
    deciding_fields: fields::CHAT,
    body_hint: "Send an object with `model` and `messages`.",
    conversation_field: "messages",
    turn_order: conversation::ORDER,
    result_keywords: &["\"tool_call_id\""],
    call_keywords: &["\"tool_calls\"", "\"function_call\""],
    always_reports_usage: false,
    operation: "chat",
    limit_is_required: false,
    calls_need_tools: false,
    needs_last_event: false,
    credential: ("authorization", "Bearer "),
};

impl WireFormat for Chat {
    fn facts(&self) -> &'static FormatFacts {
        &FACTS
    }

    fn owns_path(&self, path: &str) -> bool {
        path.starts_with(AZURE_PREFIX)
            || path
                .strip_prefix("/v1/chat/completions")
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn address(&self, path: &str, _query: Option<&str>) -> Option<Address> {
        let model = match path.strip_prefix(AZURE_PREFIX) {
            None if path == "/v1/chat/completions" => None,
            Some("v1/chat/completions") => None,
            // A deployment is a model under a custom name.
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

    fn set_end(&mut self, choice: u32, end: ReportedEnd) {
        let word = if end == ReportedEnd::ToolCalls && self.has_legacy_call(choice) {
            "function_call"
        } else {
            finish_reason(end)
        };
        self.set_finish(choice, word);
        if end != ReportedEnd::Cut {
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
pub(super) fn finish_reason(end: ReportedEnd) -> &'static str {
    match end {
        ReportedEnd::Turn => "stop",
        ReportedEnd::ToolCalls => "tool_calls",
        ReportedEnd::Cut => "length",
    }
}
