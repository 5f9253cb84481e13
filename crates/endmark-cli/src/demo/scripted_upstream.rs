//! A server with scripted models that speaks Chat Completions and stops at the token limit.
//!
//! It has no hidden knowledge: it reads the same requests as any server, cuts at `max_tokens`, and recognises
//! a continuation only by the messages of the request.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use endmark_wire::openai_chat::error_body;
use endmark_wire::sse;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The largest request body that is read.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// A model with one fixed reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    /// Its complete reply, as text or as the arguments of its tool call.
    pub(crate) reply_text: &'static str,
    /// The tool that it calls if the request offers tools.
    pub(crate) tool: Option<&'static str>,
    pub(crate) manner: ContinuationStyle,
}

/// How a model reacts to a continuation request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContinuationStyle {
    /// Continues an unfinished assistant message, but repeats the message first, as llama.cpp does.
    Echoes,
    /// Rejects unfinished messages. If a user message asks for the rest, it replies with a remark and a code fence.
    AnswersInChat,
}

/// A running server, which stops when dropped.
pub(crate) struct ScriptedUpstream {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl ScriptedUpstream {
    /// Starts the server on a free port of the loopback address.
    pub(crate) async fn start(models: &'static [Model]) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service =
                    service_fn(
                        move |request| async move { Ok::<_, Infallible>(answer(models, request).await) },
                    );
                // A broken connection affects only its client.
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { address, serving })
    }

    /// Returns the base URL of its API.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

impl Drop for ScriptedUpstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(models: &'static [Model], request: Request<Incoming>) -> Response<Full<Bytes>> {
    let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return refuse("the request is not JSON");
    };
    let Some(model) = models.iter().find(|model| request["model"] == model.name) else {
        return refuse("the model does not exist");
    };
    match ModelReply::new(model, &request) {
        Ok(turn) if request["stream"] == true => respond("text/event-stream", turn.stream(model)),
        Ok(turn) => respond("application/json", turn.reply(model).to_string().into_bytes()),
        Err(reason) => refuse(reason),
    }
}

fn respond(kind: &'static str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

fn refuse(reason: &str) -> Response<Full<Bytes>> {
    let body = error_body(reason, "invalid_request_error", None, None);
    let mut response = respond("application/json", body);
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

/// The reply of a model to one request.
struct ModelReply {
    /// The tokens of the reply, up to the limit.
    tokens: Vec<String>,
    is_cut: bool,
    is_tool_call: bool,
    prompt_tokens: usize,
    /// Whether a stream ends with its usage.
    wants_usage: bool,
}

impl ModelReply {
    fn new(model: &Model, request: &Value) -> Result<Self, &'static str> {
        let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let last = messages.last().ok_or("there is no message")?;
        let earlier = messages.iter().rfind(|message| message["role"] == "assistant");
        let so_far = earlier.and_then(|message| message["content"].as_str()).unwrap_or_default();
        let (_, rest) = model.reply_text.split_at(count_known_bytes(model.reply_text, so_far));
        let is_prefill = last["role"] == "assistant";
        let (echo, reply_text) = match (model.manner, is_prefill, rest.len() < model.reply_text.len()) {
            (ContinuationStyle::AnswersInChat, true, _) => return Err("the last message must be the user's"),
            (ContinuationStyle::Echoes, true, true) => (so_far, rest.to_owned()),
            (ContinuationStyle::AnswersInChat, false, true) => {
                ("", format!("Sure, here is the rest:\n\n```\n{rest}\n```"))
            }
            _ => ("", model.reply_text.to_owned()),
        };
        let limit = ["max_completion_tokens", "max_tokens"].iter().find_map(|name| request[name].as_u64());
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let all: Vec<&str> = words(&reply_text).collect();
        let echoed = Some(echo.to_owned()).filter(|echo| !echo.is_empty());
        let reply_words = all.iter().take(limit).map(|word| (*word).to_owned());
        Ok(Self {
            tokens: echoed.into_iter().chain(reply_words).collect(),
            wants_usage: request["stream_options"]["include_usage"] == true,
            is_cut: all.len() > limit,
            is_tool_call: model.tool.is_some() && request.get("tools").is_some(),
            prompt_tokens: messages
                .iter()
                .filter_map(|message| message["content"].as_str())
                .flat_map(words)
                .count(),
        })
    }

    fn finish_reason(&self) -> &'static str {
        match (self.is_cut, self.is_tool_call) {
            (true, _) => "length",
            (false, true) => "tool_calls",
            (false, false) => "stop",
        }
    }

    fn usage(&self) -> Value {
        let (prompt, output) = (self.prompt_tokens, self.tokens.len());
        json!({"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output})
    }

    fn reply(&self, model: &Model) -> Value {
        let reply_words = self.tokens.concat();
        let message = match model.tool.filter(|_| self.is_tool_call) {
            Some(tool) => {
                json!({"role": "assistant", "content": null, "tool_calls": [tool_call(tool, &reply_words)]})
            }
            None => json!({"role": "assistant", "content": reply_words}),
        };
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish_reason()});
        json!({
            "id": "chatcmpl-demo",
            "object": "chat.completion",
            "created": 0,
            "model": model.name,
            "choices": [choice],
            "usage": self.usage(),
        })
    }

    fn stream(&self, model: &Model) -> Vec<u8> {
        let chunk = |delta: Value, finish_reason: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
            let chunk = json!({
                "id": "chatcmpl-demo",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": model.name,
                "choices": [choice],
            });
            sse::data_frame(chunk.to_string().as_bytes())
        };
        let mut stream = chunk(json!({"role": "assistant", "content": ""}), None);
        for token in &self.tokens {
            stream.extend(chunk(json!({"content": token}), None));
        }
        stream.extend(chunk(json!({}), Some(self.finish_reason())));
        if self.wants_usage {
            let usage = json!({
                "id": "chatcmpl-demo",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": model.name,
                "choices": [],
                "usage": self.usage(),
            });
            stream.extend(sse::data_frame(usage.to_string().as_bytes()));
        }
        stream.extend(sse::data_frame(b"[DONE]"));
        stream
    }
}

fn tool_call(tool: &str, arguments: &str) -> Value {
    json!({"id": "call_demo", "type": "function", "function": {"name": tool, "arguments": arguments}})
}

/// Returns the length of the longest beginning of `reply_text` that occurs in `shown`, in bytes.
fn count_known_bytes(reply_text: &str, shown: &str) -> usize {
    let common = |start: usize| {
        let pairs = reply_text.chars().zip(shown[start..].chars());
        pairs.take_while(|(own, theirs)| own == theirs).map(|(own, _)| own.len_utf8()).sum::<usize>()
    };
    shown.char_indices().map(|(start, _)| common(start)).max().unwrap_or(0)
}

/// Splits a text into its tokens: words with the space before them, and long words in parts.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let inner = rest.char_indices().skip(1);
        let end = inner.take(6).find(|(_, next)| *next == ' ' || *next == '\n').map(|(at, _)| at);
        let end = end.or_else(|| rest.char_indices().nth(6).map(|(at, _)| at));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()).max(first.len_utf8()));
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_concatenate_to_the_text_and_are_never_empty() {
        for text in ["", "a", "the moon has no air", "{\"name\": \"Ünter den Linden\"}", "  x\n\ny"] {
            assert_eq!(words(text).collect::<String>(), text);
            assert!(words(text).all(|word| !word.is_empty()));
        }
    }

    #[test]
    fn a_model_finds_its_own_words_in_a_quotation() {
        assert_eq!(count_known_bytes("{\"a\": 1}", "I called it with: {\"a\""), 4);
        assert_eq!(count_known_bytes("abc", "xyz"), 0);
    }
}
