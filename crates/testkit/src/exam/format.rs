//! The wire formats of the exam: the caller's requests, and the provider's view of requests and refusals.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::client::Request;
use crate::upstream::ReceivedRequest;

/// The prompt of every caller.
const PROMPT: &str = "Say in sixty words why a gateway is judged on bad days.";

/// A wire format of the exam.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExamFormat {
    /// OpenAI Chat Completions, as in the published exam.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// Gemini's `streamGenerateContent`.
    Gemini,
}

/// Why a provider refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProviderRefusal {
    RateLimited,
    ServerError,
    Overloaded,
    TooLong,
    Filtered,
    Unauthorized,
    NoSuchModel,
    NoPrefill,
}

impl ExamFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Gemini];

    /// Returns the name of the format in Endmark's configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "openai_chat",
            Self::Responses => "openai_responses",
            Self::Messages => "anthropic_messages",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the caller's request for a stream.
    pub(super) fn prompt_request(self, candidate: std::net::SocketAddr, model: &str) -> Request {
        let path = match self {
            Self::Chat => "/v1/chat/completions".to_owned(),
            Self::Responses => "/v1/responses".to_owned(),
            Self::Messages => "/v1/messages".to_owned(),
            Self::Gemini => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        };
        let message_list = json!([{ "role": "user", "content": PROMPT }]);
        let body = match self {
            Self::Chat => json!({
                "model": model, "stream": true, "stream_options": { "include_usage": true }, "messages": message_list,
            }),
            Self::Responses => json!({ "model": model, "stream": true, "input": message_list }),
            // The gateway treats this value as the model's own limit.
            Self::Messages => {
                json!({ "model": model, "stream": true, "max_tokens": 8192, "messages": message_list })
            }
            Self::Gemini => json!({ "contents": [{ "role": "user", "parts": [{ "text": PROMPT }] }] }),
        };
        let (header, key) = self.credential("key-of-the-caller");
        Request::post(candidate, &path).header(header, &key).json(&body)
    }

    fn credential(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Chat | Self::Responses => ("authorization", format!("Bearer {key}")),
            Self::Messages => ("x-api-key", key.to_owned()),
            Self::Gemini => ("x-goog-api-key", key.to_owned()),
        }
    }

    /// Whether a request contains this key.
    pub(super) fn has_key(self, request: &ReceivedRequest, key: &str) -> bool {
        let (header, wanted) = self.credential(key);
        request.header(header) == Some(&wanted)
    }

    /// Returns the requested model.
    pub(super) fn model(self, request: &ReceivedRequest) -> String {
        if self != Self::Gemini {
            return request.json()["model"].as_str().unwrap_or_default().to_owned();
        }
        let (_, named) = request.path.split_once("/models/").unwrap_or_default();
        named.split(':').next().unwrap_or_default().to_owned()
    }

    /// Whether a stream is requested.
    pub(super) fn is_streamed(self, request: &ReceivedRequest) -> bool {
        match self {
            Self::Gemini => request.path.contains(":streamGenerateContent"),
            _ => request.json()["stream"] == true,
        }
    }

    /// Returns the messages of a request, each as (whether the assistant wrote it, text).
    pub(super) fn messages(self, body: &Value) -> Vec<(bool, String)> {
        let (list, content) = match self {
            Self::Chat | Self::Messages => ("messages", "content"),
            Self::Responses => ("input", "content"),
            Self::Gemini => ("contents", "parts"),
        };
        let message = |message: &Value| {
            let is_own = message["role"] == "assistant" || message["role"] == "model";
            let content = &message[content];
            let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
            (is_own, content.as_str().map_or_else(|| parts.collect(), str::to_owned))
        };
        body[list].as_array().into_iter().flatten().map(message).collect()
    }

    /// Returns the response with which a provider refuses a request.
    pub(super) fn refusal_response(self, refusal: ProviderRefusal) -> Answer {
        let (status, message) = refusal.status_and_message(self);
        match self {
            Self::Chat | Self::Responses => {
                let (kind, code) = refusal.openai_error();
                Answer::error(status, kind, code, message)
            }
            Self::Messages => {
                let kind = refusal.anthropic_error_type();
                let error = json!({ "type": kind, "message": message });
                Answer::json(status, &json!({ "type": "error", "error": error, "request_id": "req_exam" }))
            }
            // Gemini answers a blocked prompt with an empty reply instead of an error.
            Self::Gemini if refusal == ProviderRefusal::Filtered => {
                let blocked = json!({
                    "promptFeedback": { "blockReason": self.filter_message() },
                    "usageMetadata": { "promptTokenCount": 11, "totalTokenCount": 11 },
                });
                Answer::sse([format!("data: {blocked}\r\n\r\n")])
            }
            Self::Gemini => {
                let status_word = refusal.google_status();
                let error = json!({ "code": status, "message": message, "status": status_word });
                Answer::json(status, &json!({ "error": error }))
            }
        }
    }

    /// Returns the text that the candidate's error must contain if the provider's filter refused the request
    /// (S13).
    pub(super) fn filter_message(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses => "content_policy_violation",
            Self::Messages => "blocked by content filtering policy",
            Self::Gemini => "PROHIBITED_CONTENT",
        }
    }
}

impl ProviderRefusal {
    /// Returns the HTTP status and the message of this refusal.
    fn status_and_message(self, format: ExamFormat) -> (u16, &'static str) {
        match self {
            Self::RateLimited => (429, "Rate limit reached"),
            Self::ServerError => (500, "The server had an error while processing your request"),
            Self::Overloaded if format == ExamFormat::Messages => (529, "Overloaded"),
            Self::Overloaded => (503, "Overloaded"),
            Self::TooLong => (
                400,
                match format {
                    ExamFormat::Chat | ExamFormat::Responses => {
                        "This model's maximum context length is 8192 tokens, and the messages have 9631"
                    }
                    ExamFormat::Messages => "prompt is too long: 9631 tokens > 8192 maximum",
                    ExamFormat::Gemini => {
                        "The input token count (9631) exceeds the maximum number of tokens allowed (8192)."
                    }
                },
            ),
            Self::Filtered if format == ExamFormat::Messages => {
                (400, "Output blocked by content filtering policy")
            }
            Self::Filtered => (400, "The request was rejected by the safety system"),
            Self::Unauthorized => (401, "Incorrect API key provided"),
            Self::NoSuchModel => (404, "The model does not exist"),
            Self::NoPrefill => (400, "This model does not support assistant message prefill"),
        }
    }

    fn openai_error(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::RateLimited => ("rate_limit_error", Some("rate_limit_exceeded")),
            Self::ServerError => ("server_error", None),
            Self::Overloaded => ("server_error", Some("overloaded")),
            Self::TooLong => ("invalid_request_error", Some("context_length_exceeded")),
            Self::Filtered => ("invalid_request_error", Some("content_policy_violation")),
            Self::Unauthorized => ("invalid_request_error", Some("invalid_api_key")),
            Self::NoSuchModel => ("invalid_request_error", Some("model_not_found")),
            Self::NoPrefill => ("invalid_request_error", Some("invalid_prefill")),
        }
    }

    fn anthropic_error_type(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limit_error",
            Self::ServerError => "api_error",
            Self::Overloaded => "overloaded_error",
            Self::Unauthorized => "authentication_error",
            Self::NoSuchModel => "not_found_error",
            Self::TooLong | Self::Filtered | Self::NoPrefill => "invalid_request_error",
        }
    }

    fn google_status(self) -> &'static str {
        match self {
            Self::RateLimited => "RESOURCE_EXHAUSTED",
            Self::ServerError => "INTERNAL",
            Self::Overloaded => "UNAVAILABLE",
            Self::Unauthorized => "UNAUTHENTICATED",
            Self::NoSuchModel => "NOT_FOUND",
            Self::TooLong | Self::Filtered | Self::NoPrefill => "INVALID_ARGUMENT",
        }
    }
}
