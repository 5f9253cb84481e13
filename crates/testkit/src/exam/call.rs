//! One call as a careful client makes it: every event is read, and nothing is guessed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::format::Format;

/// What a caller got.
#[derive(Debug, Clone, Default)]
pub(super) struct Called {
    pub(super) text: String,
    /// Why it is no answer.
    pub(super) error: Option<String>,
    /// The model named by the last event that names one.
    pub(super) model: String,
    pub(super) has_usage: bool,
    /// The provider's word for why it ended.
    pub(super) finish: Option<String>,
    pub(super) took: Duration,
    /// It never came to an end.
    pub(super) hung: bool,
}

impl Called {
    pub(super) fn is_whole(&self) -> bool {
        self.error.is_none() && self.text == super::ANSWER
    }
}

/// Asks for the exam's answer as a stream.
pub(super) async fn call(format: Format, candidate: SocketAddr, model: &str) -> Called {
    let began = Instant::now();
    let mut called = Called::default();
    match format.question(candidate, model).try_send().await {
        Err(error) => called.error = Some(error.to_string()),
        Ok(open) => {
            let reply = open.read().await;
            if reply.status != 200 {
                called.error = Some(format!("{}: {}", reply.status, reply.text()));
            } else if !reply.complete {
                called.error = Some("the connection broke off".to_owned());
            }
            if reply.status == 200 {
                read(format, &reply.events(), &mut called);
            }
        }
    }
    called.took = began.elapsed();
    called
}

fn read(format: Format, events: &[String], called: &mut Called) {
    for event in events {
        if event == "[DONE]" {
            break;
        }
        let Ok(event) = serde_json::from_str::<Value>(event) else {
            called.error = Some(format!("an event is no JSON: {event}"));
            return;
        };
        let refused = &event["promptFeedback"]["blockReason"];
        let error = if event["type"] == "error" { &event } else { &event["error"] };
        if let Some(error) = [error, refused].into_iter().find(|error| !error.is_null()) {
            called.error = Some(error.to_string());
            return;
        }
        let said = match format {
            Format::Chat => Event {
                text: &event["choices"][0]["delta"]["content"],
                model: &event["model"],
                usage: &event["usage"],
                finish: &event["choices"][0]["finish_reason"],
            },
            Format::Responses => Event {
                // The part's text as a whole has the same name in other events.
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
            Format::Messages => Event {
                text: &event["delta"]["text"],
                model: &event["message"]["model"],
                usage: &event["usage"],
                finish: &event["delta"]["stop_reason"],
            },
            Format::Gemini => Event {
                text: &event["candidates"][0]["content"]["parts"][0]["text"],
                model: &event["modelVersion"],
                usage: &event["usageMetadata"],
                finish: &event["candidates"][0]["finishReason"],
            },
        };
        said.add_to(called);
        if format == Format::Responses && event["type"] == "response.completed" {
            let repeated = event["response"]["output"][0]["content"][0]["text"].as_str();
            if repeated != Some(called.text.as_str()) {
                called.error = Some(format!("the end repeats another text: {event}"));
            }
        }
    }
    // Whoever asks for an answer wants to be told that it is at its end.
    if called.error.is_none() && called.finish.is_none() {
        called.error = Some("no event says that it is at its end".to_owned());
    }
}

/// What an event says.
struct Event<'a> {
    text: &'a Value,
    model: &'a Value,
    usage: &'a Value,
    finish: &'a Value,
}

impl Event<'_> {
    fn add_to(&self, called: &mut Called) {
        called.text += self.text.as_str().unwrap_or_default();
        if let Some(model) = self.model.as_str() {
            model.clone_into(&mut called.model);
        }
        called.has_usage |= self.usage.is_object();
        called.finish = self.finish.as_str().map(str::to_owned).or(called.finish.take());
    }
}
