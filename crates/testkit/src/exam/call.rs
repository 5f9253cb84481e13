//! Makes a call like a careful client, which reads every event and assumes nothing.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::format::ExamFormat;

/// Result of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct CallResult {
    pub(super) text: String,
    /// The reason why the reply is invalid; `None` if it is valid.
    pub(super) error: Option<String>,
    /// The model that the last event with a model names.
    pub(super) model: String,
    pub(super) has_usage: bool,
    /// The finish reason.
    pub(super) finish: Option<String>,
    pub(super) duration: Duration,
    /// Whether the call did not end in time.
    pub(super) has_timed_out: bool,
}

impl CallResult {
    pub(super) fn is_whole(&self) -> bool {
        self.error.is_none() && self.text == super::REPLY_TEXT
    }
}

/// Requests the exam's reply as a stream.
pub(super) async fn call(format: ExamFormat, candidate: SocketAddr, model: &str) -> CallResult {
    let began = Instant::now();
    let mut called = CallResult::default();
    match format.prompt_request(candidate, model).try_send().await {
        Err(error) => called.error = Some(error.to_string()),
        Ok(open) => {
            let reply = open.read().await;
            if reply.status != 200 {
                called.error = Some(format!("{}: {}", reply.status, reply.text()));
            } else if !reply.is_complete {
                called.error = Some("the connection broke off".to_owned());
            }
            if reply.status == 200 {
                read_events(format, &reply.events(), &mut called);
            }
        }
    }
    called.duration = began.elapsed();
    called
}

fn read_events(format: ExamFormat, events: &[String], called: &mut CallResult) {
    for event in events {
        if event == "[DONE]" {
            break;
        }
        let Ok(event) = serde_json::from_str::<Value>(event) else {
            called.error = Some(format!("an event is not JSON: {event}"));
            return;
        };
        let refused = &event["promptFeedback"]["blockReason"];
        let error = if event["type"] == "error" { &event } else { &event["error"] };
        if let Some(error) = [error, refused].into_iter().find(|error| !error.is_null()) {
            called.error = Some(error.to_string());
            return;
        }
        let prompt_text = match format {
            ExamFormat::Chat => EventFields {
                text: &event["choices"][0]["delta"]["content"],
                model: &event["model"],
                usage: &event["usage"],
                finish: &event["choices"][0]["finish_reason"],
            },
            ExamFormat::Responses => EventFields {
                // Some other events repeat the complete text under the same name.
                text: if event["type"] == "response.output_text.delta" {
                    &event["delta"]
                } else {
                    &Value::Null
                },
                model: &event["response"]["model"],
                usage: &event["response"]["usage"],
                finish: if event["type"] == "response.created" {
                    &Value::Null
                } else {
                    &event["response"]["status"]
                },
            },
            ExamFormat::Messages => EventFields {
                text: &event["delta"]["text"],
                model: &event["message"]["model"],
                usage: &event["usage"],
                finish: &event["delta"]["stop_reason"],
            },
            ExamFormat::Gemini => EventFields {
                text: &event["candidates"][0]["content"]["parts"][0]["text"],
                model: &event["modelVersion"],
                usage: &event["usageMetadata"],
                finish: &event["candidates"][0]["finishReason"],
            },
        };
        prompt_text.add_to(called);
        if format == ExamFormat::Responses && event["type"] == "response.completed" {
            let repeated = event["response"]["output"][0]["content"][0]["text"].as_str();
            if repeated != Some(called.text.as_str()) {
                called.error = Some(format!("the end repeats another text: {event}"));
            }
        }
    }
    // A client needs an explicit end of the reply.
    if called.error.is_none() && called.finish.is_none() {
        called.error = Some("no event says that it is at its end".to_owned());
    }
}

/// The relevant fields of an event.
struct EventFields<'a> {
    text: &'a Value,
    model: &'a Value,
    usage: &'a Value,
    finish: &'a Value,
}

impl EventFields<'_> {
    fn add_to(&self, called: &mut CallResult) {
        called.text += self.text.as_str().unwrap_or_default();
        if let Some(model) = self.model.as_str() {
            model.clone_into(&mut called.model);
        }
        called.has_usage |= self.usage.is_object();
        called.finish = self.finish.as_str().map(str::to_owned).or(called.finish.take());
    }
}
