//! Gemini's `generateContent` and `streamGenerateContent` (PC-8, PC-9).
//!
//! The path names the model and states whether a stream is requested. It begins with `/v1` or `/v1beta`, and
//! its colon may be written as `%3A`. A stream is read if it is requested as server-sent events (`alt=sse`),
//! as every client library does. The other form, one JSON array in pieces, passes unchanged.
//!
//! A reply consists of candidates with parts. Its text is the text of all parts that are not thoughts, and
//! its tool calls are the `functionCall`s. Their arguments are an object that arrives at once, so a call is
//! complete or absent. Everything else in a part passes unchanged, especially signatures of thoughts. Only
//! the `finishReason` in the last chunk ends a stream.
//!
//! If a reply ends with `CONTINUATION`, or at its limit with a `continuationToken`, the provider itself can
//! continue it. This requires the same request with that token. The limit in that request then covers all
//! calls together.

mod address;
mod candidate;
mod continuation;
mod conversation;
mod error;
mod held_parts;
mod request;
mod response;
mod schema;
mod stop;
mod stream;
mod usage;
mod writer;

use crate::closing::LimitLocation;
use crate::deciding::fields;
use crate::provider::{OPENAI_RATE_HEADERS, Provider};
use crate::request::Address;
use crate::wire_format::{FormatFacts, WireFormat};

pub(crate) use usage::read as usage_of;

/// Google and its Gemini API.
pub const GEMINI: Provider = Provider {
    name: "gemini",
    origin: "https://generativelanguage.googleapis.com",
    base_path: "/v1beta",
    adds_version: true,
    base_url_variable: "GOOGLE_GEMINI_BASE_URL",
    trace_name: "gcp.gemini",
    headers: &["x-goog-api-key", "x-goog-api-client"],
    key_prefixes: &["AIza"],
    // Google sends no headers about rate limits.
    rate_headers: &OPENAI_RATE_HEADERS,
};

/// Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, also at Vertex AI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gemini;

static FACTS: FormatFacts = FormatFacts {
    name: "gemini",
    title: "Gemini",
    provider: &GEMINI,
    route: "/v1beta/models/{model}:generateContent",
    operation: "generate_content",
    limit_location: LimitLocation {
        container_names: &request::GENERATION_CONFIG,
        names: &request::MAX_OUTPUT_TOKENS,
    },
    credential: ("x-goog-api-key", ""),
    deciding_fields: fields::GEMINI,
    body_hint: "Send an object with `contents`.",
    conversation_field: "contents",
    turn_order: conversation::ORDER,
    result_keywords: &["\"functionResponse\"", "\"function_response\""],
    call_keywords: &["\"functionCall\"", "\"function_call\""],
    limit_is_required: false,
    calls_need_tools: false,
    needs_last_event: false,
    always_reports_usage: true,
};

impl WireFormat for Gemini {
    fn facts(&self) -> &'static FormatFacts {
        &FACTS
    }

    fn owns_path(&self, path: &str) -> bool {
        address::is_gemini(path)
    }

    fn address(&self, path: &str, query: Option<&str>) -> Option<Address> {
        address::read(path, query)
    }

    fn path_for(&self, address: &Address, model: &str, stream: bool) -> Option<String> {
        Some(address::write(address, model, stream))
    }

    fn path_at_other_upstream(&self, address: &Address, model: &str, stream: bool) -> String {
        address::write(&address::for_other_upstream(address), model, stream)
    }
}
