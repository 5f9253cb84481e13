//! Sends a request as a client without knowledge of Endmark, and reads the reply.

use std::time::Duration;

use bytes::Bytes;
use endmark_wire::openai_chat::{ChatRequest, ChatResponse, ChatStream, Choice};
use endmark_wire::sse::Decoder;
use http::Request;
use http_body_util::Full;
use serde_json::Value;

use crate::client::Client;

/// Far longer than any exchange of the demonstration.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Larger than any reply of the demonstration.
const MAX_REPLY_BYTES: usize = 1 << 20;

/// What the client received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceivedReply {
    /// The text, or the arguments of the tool call.
    pub(crate) text: String,
    /// The finish reason that the provider reports.
    pub(crate) finish_reason: String,
    /// The id of the request, if the gateway answered and recovered the reply.
    pub(crate) request_id: Option<String>,
}

/// Sends a request and returns the reply.
pub(crate) async fn send(client: &Client, base_url: &str, body: &Value) -> Result<ReceivedReply, String> {
    let body = body.to_string();
    let parsed = ChatRequest::parse(body.as_bytes()).map_err(|error| error.to_string())?;
    let request = Request::post(format!("{base_url}/chat/completions"))
        .header("content-type", "application/json")
        .header("x-endmark-resume", "on")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| error.to_string())?;
    let response = client.send(request, EXCHANGE_TIMEOUT).await.map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("{}: {}", response.status(), String::from_utf8_lossy(response.body())));
    }
    let (choice, request_id) = if parsed.stream {
        parse_stream(&parsed, response.body())?
    } else {
        let header = response.headers().get("x-endmark-request").and_then(|value| value.to_str().ok());
        (parse_whole(&parsed, response.body())?, header.map(str::to_owned))
    };
    Ok(ReceivedReply {
        text: choice.tool_calls.first().map_or(choice.text, |call| call.arguments.clone()),
        finish_reason: choice.finish.map(|finish| finish.reason).unwrap_or_default(),
        request_id,
    })
}

fn parse_whole(request: &ChatRequest, body: &[u8]) -> Result<Choice, String> {
    let response = ChatResponse::parse(body, request).map_err(|error| error.to_string())?;
    response.choices.into_iter().next().ok_or_else(|| "the reply has no choice".to_owned())
}

/// Returns the choice that a stream builds, and the request's id from the `endmark` object at its end.
fn parse_stream(request: &ChatRequest, body: &[u8]) -> Result<(Choice, Option<String>), String> {
    let mut decoder = Decoder::new(MAX_REPLY_BYTES);
    let mut stream = ChatStream::new(request, MAX_REPLY_BYTES);
    let mut request_id = None;
    decoder.push(body).map_err(|error| error.to_string())?;
    while let Some(frame) = decoder.next_frame() {
        stream.read_frame(&frame).map_err(|error| error.to_string())?;
        let chunk = frame.data.as_deref().and_then(|data| serde_json::from_str::<Value>(data).ok());
        let reported_id = chunk.and_then(|chunk| chunk["endmark"]["request"].as_str().map(str::to_owned));
        request_id = reported_id.or(request_id);
    }
    let choice = stream.choice_at(0).cloned().ok_or_else(|| "the stream has no choice".to_owned())?;
    Ok((choice, request_id))
}
