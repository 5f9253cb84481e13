//! One call as a careful client makes it: every event is read, and nothing is guessed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Request;

/// What a caller got.
#[derive(Debug, Clone, Default)]
pub(super) struct Called {
    pub(super) text: String,
    /// Why it is no answer.
    pub(super) error: Option<String>,
    /// The model named by the last event that names one.
    pub(super) model: String,
    pub(super) has_usage: bool,
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
pub(super) async fn call(candidate: SocketAddr, model: &str) -> Called {
    let began = Instant::now();
    let body = json!({
        "model": model,
        "stream": true,
        "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": "Say in sixty words why a gateway is judged on bad days." }],
    });
    let request = Request::post(candidate, "/v1/chat/completions")
        .header("authorization", "Bearer key-of-the-caller")
        .json(&body);
    let mut called = Called::default();
    match request.try_send().await {
        Err(error) => called.error = Some(error.to_string()),
        Ok(open) => {
            let reply = open.read().await;
            if reply.status != 200 {
                called.error = Some(format!("{}: {}", reply.status, reply.text()));
            } else if !reply.complete {
                called.error = Some("the connection broke off".to_owned());
            }
            if reply.status == 200 {
                read(&reply.events(), &mut called);
            }
        }
    }
    called.took = began.elapsed();
    called
}

fn read(events: &[String], called: &mut Called) {
    for event in events {
        if event == "[DONE]" {
            return;
        }
        let Ok(chunk) = serde_json::from_str::<Value>(event) else {
            called.error = Some(format!("an event is no JSON: {event}"));
            return;
        };
        if let Some(error) = chunk.get("error") {
            called.error = Some(error.to_string());
            return;
        }
        if let Some(model) = chunk["model"].as_str() {
            model.clone_into(&mut called.model);
        }
        called.has_usage |= chunk["usage"].is_object();
        called.text += chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
    }
}
