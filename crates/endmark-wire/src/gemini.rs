//! Gemini's `generateContent` and `streamGenerateContent` (PC-8, PC-9).
//!
//! The path states the model and whether a stream is requested: `/v1` and `/v1beta`, the colon also as `%3A`. A
//! stream is read if it is requested as server-sent events (`alt=sse`), as every client library does. The other form,
//! one JSON array in pieces, passes unchanged.
//!
//! A reply consists of candidates with parts. Texts that are not thoughts are its text, and `functionCall`s are its
//! tool calls. Their arguments are an object that arrives at once, so a call is complete or absent. Everything else
//! in a part passes unchanged, especially signatures of thoughts. The only end of a stream is the `finishReason` of
//! its last chunk.
//!
//! If a reply ends in `CONTINUATION`, or at its limit with a `continuationToken`, the provider itself can continue
//! it. It needs the same request with that token, whose limit then covers all calls together.

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

use crate::closing::LimitPlace;
use crate::deciding::fields;
use crate::provider::{OPENAI_RATE_HEADERS, Provider};
use crate::request::Address;
use crate::wire_format::{Facts, WireFormat};

pub(crate) use usage::read as usage_of;

/// Google, with its Gemini API.
pub const GEMINI: Provider = Provider {
    name: "gemini",
    origin: "https://generativelanguage.googleapis.com",
    base_path: "/v1beta",
    adds_version: true,
    base_url_variable: "GOOGLE_GEMINI_BASE_URL",
    traced_as: "gcp.gemini",
    headers: &["x-goog-api-key", "x-goog-api-client"],
    keys_begin: &["AIza"],
    // Google has no such headers.
    rate_headers: &OPENAI_RATE_HEADERS,
};

/// Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, and the same two at Vertex AI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gemini;

static FACTS: Facts = Facts {
    name: "gemini",
    title: "Gemini",
    provider: &GEMINI,
    route: "/v1beta/models/{model}:generateContent",
    operation: "generate_content",
    limit_place: LimitPlace { within: &request::CONFIG, names: &request::MAX_OUTPUT },
    credential: ("x-goog-api-key", ""),
    deciding: fields::GEMINI,
    hint: "Send an object with `contents`.",
    conversation_field: "contents",
    order: conversation::ORDER,
    result_keywords: &["\"functionResponse\"", "\"function_response\""],
    call_keywords: &["\"functionCall\"", "\"function_call\""],
    limit_is_required: false,
    calls_need_tools: false,
    wants_last_event: false,
    reports_usage_unasked: true,
};

impl WireFormat for Gemini {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn owns(&self, path: &str) -> bool {
        address::is_gemini(path)
    }

    fn address(&self, path: &str, query: Option<&str>) -> Option<Address> {
        address::read(path, query)
    }

    fn path_for(&self, address: &Address, model: &str, stream: bool) -> Option<String> {
        Some(address::write(address, model, stream))
    }

    fn path_elsewhere(&self, address: &Address, model: &str, stream: bool) -> String {
        address::write(&address::for_other_upstream(address), model, stream)
    }
}
