//! OpenAI Responses, as implemented by OpenAI and compatible servers (PC-8, PC-9).
//!
//! A reply is one choice, which consists of output items. Its text is the text of its messages. Its tool
//! calls are its `function_call` and `custom_tool_call` items, counted from 0. Reasoning, tools that the
//! server runs itself, and all other items pass unchanged. A reply with another kind of call that the client
//! must answer, such as a shell call, can only be forwarded.
//!
//! Every piece arrives several times: when it is generated, when its part is complete, when its item is
//! complete, and in the response at the end. Events that repeat a continued text are held back and changed,
//! so that they contain all of it. Only the last event, which states the status, ends a stream.

mod continuation;
mod conversation;
mod error;
mod item;
mod request;
mod response;
mod stop;
mod stream;
mod usage;
mod writer;

use crate::closing::LimitLocation;
use crate::deciding::fields;
use crate::openai_chat::OPENAI;
use crate::request::Address;
use crate::wire_format::{FormatFacts, WireFormat};

pub(crate) use usage::read as usage_of;

/// The paths at OpenAI and at Azure.
const PATHS: [&str; 3] = ["/v1/responses", "/openai/v1/responses", "/openai/responses"];

/// OpenAI Responses: `POST /v1/responses`, and Azure's paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Responses;

static FACTS: FormatFacts = FormatFacts {
    name: "openai_responses",
    title: "OpenAI Responses",
    provider: &OPENAI,
    route: "/v1/responses",
    limit_location: LimitLocation { container_names: &[], names: &["max_output_tokens"] },
    deciding_fields: fields::RESPONSES,
    body_hint: "Send an object with `model` and `input`.",
    conversation_field: "input",
    turn_order: conversation::ORDER,
    result_keywords: &["_output\""],
    call_keywords: &["\"function_call\""],
    operation: "chat",
    limit_is_required: false,
    calls_need_tools: false,
    needs_last_event: false,
    credential: ("authorization", "Bearer "),
    always_reports_usage: true,
};

impl WireFormat for Responses {
    fn facts(&self) -> &'static FormatFacts {
        &FACTS
    }

    fn owns_path(&self, path: &str) -> bool {
        path.strip_prefix("/v1/responses").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn address(&self, path: &str, _query: Option<&str>) -> Option<Address> {
        PATHS.contains(&path).then(Address::default)
    }

    fn may_continue_at(&self, path: &str) -> bool {
        let below = PATHS.into_iter().find_map(|of_replies| path.strip_prefix(of_replies));
        matches!(below, Some("/input_tokens" | "/compact"))
    }
}
