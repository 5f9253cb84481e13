//! async-openai, Chat Completions: a request a line in, what the library made of it a line out.

use std::io::{BufRead, Write};
use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::chat::{
    ChatCompletionMessageToolCalls, CreateChatCompletionRequest, CreateChatCompletionResponse,
};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// What became of a request: an answer, or what the library says.
enum Failure {
    Library(OpenAIError),
    /// The library has no time limit of its own.
    Late,
}

impl From<OpenAIError> for Failure {
    fn from(error: OpenAIError) -> Self {
        Self::Library(error)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    for line in std::io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line.expect("a line")).expect("a case");
        let seconds = Duration::from_secs_f64(case["timeout"].as_f64().expect("a timeout"));
        let asked = tokio::time::timeout(seconds, ask(&case)).await.unwrap_or(Err(Failure::Late));
        let answer = asked.unwrap_or_else(|failure| told_of(&failure));
        println!("{answer}");
        std::io::stdout().flush().expect("standard output");
    }
}

fn told_of(failure: &Failure) -> Value {
    let error = match failure {
        Failure::Late => {
            return json!({"error": "Elapsed", "is_own": false, "status": null, "message": "late"});
        }
        Failure::Library(error) => error,
    };
    let name = format!("{error:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
    let status = match error {
        OpenAIError::ApiError(error) => Some(error.status_code.as_u16()),
        _ => None,
    };
    json!({"error": format!("OpenAIError::{name}"), "is_own": true, "status": status, "message": error.to_string()})
}

async fn ask(case: &Value) -> Result<Value, Failure> {
    let mut config = OpenAIConfig::new()
        .with_api_base(case["base_url"].as_str().expect("a base URL"))
        .with_api_key("not-needed");
    for (name, value) in case["headers"].as_object().expect("headers") {
        let name: http::HeaderName = name.parse().expect("a name");
        config = config.with_header(name, value.as_str().expect("a header"))?;
    }
    let client = Client::with_config(config);
    let mut body = case["body"].clone();
    if case["stream"] == true {
        body["stream_options"] = json!({"include_usage": true});
        let request: CreateChatCompletionRequest = serde_json::from_value(body).expect("a request");
        return streamed(&client, request, case["cancel_after"].as_u64()).await;
    }
    let request: CreateChatCompletionRequest = serde_json::from_value(body).expect("a request");
    let reply = client.chat().create(request).await?;
    Ok(whole(&reply))
}

fn whole(reply: &CreateChatCompletionResponse) -> Value {
    let choice = &reply.choices[0];
    let calls: Vec<Value> = choice.message.tool_calls.iter().flatten().map(call).collect();
    let shown = json!({
        "text": choice.message.content, "refusal": choice.message.refusal, "model": reply.model, "usage": reply.usage,
        "finish": choice.finish_reason, "calls": calls,
    });
    json!({
        "text": choice.message.content.clone().unwrap_or_default(), "calls": calls, "finish": choice.finish_reason,
        "output": reply.usage.as_ref().map(|usage| usage.completion_tokens), "whole": shown,
    })
}

fn call(call: &ChatCompletionMessageToolCalls) -> Value {
    match call {
        ChatCompletionMessageToolCalls::Function(call) => {
            json!([call.function.name, call.function.arguments])
        }
        ChatCompletionMessageToolCalls::Custom(call) => {
            json!([call.custom_tool.name, call.custom_tool.input])
        }
    }
}

async fn streamed(
    client: &Client<OpenAIConfig>,
    request: CreateChatCompletionRequest,
    cancel_after: Option<u64>,
) -> Result<Value, Failure> {
    let mut chunks = client.chat().create_stream(request).await?;
    let (mut text, mut finish, mut output) = (String::new(), None, None);
    let mut calls: Vec<(String, String)> = Vec::new();
    let mut shown = Vec::new();
    let mut events = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        events += 1;
        // Dropping the stream closes the connection, as soon as the task behind it is let run.
        if Some(events) == cancel_after {
            drop(chunks);
            tokio::time::sleep(Duration::from_millis(500)).await;
            break;
        }
        output = chunk.usage.as_ref().map(|usage| usage.completion_tokens).or(output);
        for choice in &chunk.choices {
            text.push_str(choice.delta.content.as_deref().unwrap_or_default());
            for part in choice.delta.tool_calls.iter().flatten() {
                let function = part.function.as_ref();
                if part.index as usize == calls.len() {
                    let name = function.and_then(|function| function.name.clone());
                    calls.push((name.unwrap_or_default(), String::new()));
                }
                let arguments = function.and_then(|function| function.arguments.as_deref());
                calls[part.index as usize].1.push_str(arguments.unwrap_or_default());
            }
            finish = choice.finish_reason.or(finish);
            shown.push(json!([choice.delta.content, choice.finish_reason]));
        }
    }
    Ok(json!({"text": text, "calls": calls, "finish": finish, "output": output, "whole": shown}))
}
