//! Builds the replies of a provider in each of the four formats, and reads them as a client does.

use serde_json::{Value, json};
use testkit::{Answer, AssembledReply, ModelFormat, Reply, Request};

use super::Endmark;

/// One of the four formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Chat,
    Other(ModelFormat),
}

/// A part of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyPart<'a> {
    Text(&'a str),
    /// A function call: its name, and its arguments as received.
    Call(&'a str, &'a str),
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Turn,
    Calls,
    Limit,
}

impl Wire {
    pub(crate) const ALL: [Self; 4] = [
        Self::Chat,
        Self::Other(ModelFormat::Responses),
        Self::Other(ModelFormat::Messages),
        Self::Other(ModelFormat::Gemini),
    ];

    pub(crate) fn path(self, stream: bool) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Other(dialect) => dialect.path(stream),
        }
    }

    /// Returns a request that offers two functions.
    pub(crate) fn request(self, stream: bool) -> Value {
        let names = ["get_weather", "get_time"];
        let Self::Other(dialect) = self else {
            let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
            return json!({
                "model": "scripted", "stream": stream, "max_tokens": 8192, "tools": names.map(tool),
                "messages": [{"role": "user", "content": "Tell."}],
            });
        };
        let mut body = dialect.request(8_192, stream);
        let tools = names.map(|name| dialect.tools(name));
        body["tools"] = tools.iter().flat_map(|tools| tools.as_array().unwrap().clone()).collect();
        body
    }

    /// Returns the finish reason for an end.
    pub(crate) fn finish_reason(self, end: End) -> &'static str {
        match (self, end) {
            (Self::Chat, End::Turn) => "stop",
            (Self::Chat, End::Calls) => "tool_calls",
            (Self::Chat, End::Limit) => "length",
            (Self::Other(ModelFormat::Responses), End::Turn | End::Calls) => "completed",
            (Self::Other(ModelFormat::Responses), End::Limit) => "incomplete",
            (Self::Other(ModelFormat::Messages), End::Turn) => "end_turn",
            (Self::Other(ModelFormat::Messages), End::Calls) => "tool_use",
            (Self::Other(ModelFormat::Messages), End::Limit) => "max_tokens",
            (Self::Other(ModelFormat::Gemini), End::Turn | End::Calls) => "STOP",
            (Self::Other(ModelFormat::Gemini), End::Limit) => "MAX_TOKENS",
        }
    }

    /// Returns the answer with this content.
    pub(crate) fn answer(self, reply_parts: &[ReplyPart<'_>], end: End, stream: bool) -> Answer {
        if stream {
            Answer::sse(self.frames(reply_parts, Some(end)))
        } else {
            Answer::json(200, &self.whole_reply(reply_parts, self.finish_reason(end)))
        }
    }

    /// Returns an unstreamed reply with this content and finish reason.
    pub(crate) fn whole_reply(self, reply_parts: &[ReplyPart<'_>], word: &str) -> Value {
        let texts: String = reply_parts
            .iter()
            .filter_map(
                |reply_parts| if let ReplyPart::Text(text) = reply_parts { Some(*text) } else { None },
            )
            .collect();
        let parts: Vec<Value> =
            reply_parts.iter().enumerate().map(|(at, reply_parts)| self.part(at, *reply_parts)).collect();
        match self {
            Self::Chat => {
                let calls: Vec<Value> = parts.into_iter().filter(Value::is_object).collect();
                let mut message = json!({"role": "assistant", "content": texts});
                if !calls.is_empty() {
                    message["tool_calls"] = json!(calls);
                }
                json!({
                    "id": "chatcmpl", "object": "chat.completion", "created": 1, "model": "scripted",
                    "choices": [{"index": 0, "message": message, "finish_reason": word}],
                    "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
                })
            }
            Self::Other(ModelFormat::Responses) => json!({
                "id": "resp_1", "object": "response", "created_at": 1, "status": word, "model": "scripted",
                "error": null, "output": parts,
                "incomplete_details": if word == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null },
                "usage": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
            }),
            Self::Other(ModelFormat::Messages) => json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": parts,
                "stop_reason": word, "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 7},
            }),
            Self::Other(ModelFormat::Gemini) => json!({
                "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": word}],
                "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12},
                "modelVersion": "scripted", "responseId": "r1",
            }),
        }
    }

    /// Returns a part of an unstreamed reply. A cut object contains only its complete values.
    fn part(self, at: usize, reply_parts: ReplyPart<'_>) -> Value {
        let object = |arguments: &str| serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        let id = format!("call_{at}");
        match (self, reply_parts) {
            (Self::Chat, ReplyPart::Text(_)) => Value::Null,
            (Self::Chat, ReplyPart::Call(name, arguments)) => {
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
            }
            (Self::Other(ModelFormat::Responses), ReplyPart::Text(text)) => json!({
                "id": format!("msg_{at}"), "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "annotations": [], "text": text}],
            }),
            (Self::Other(ModelFormat::Responses), ReplyPart::Call(name, arguments)) => json!({
                "id": format!("fc_{at}"), "type": "function_call", "status": "completed", "call_id": id,
                "name": name, "arguments": arguments,
            }),
            (Self::Other(ModelFormat::Messages), ReplyPart::Text(text)) => {
                json!({"type": "text", "text": text})
            }
            (Self::Other(ModelFormat::Messages), ReplyPart::Call(name, arguments)) => {
                json!({"type": "tool_use", "id": id, "name": name, "input": object(arguments)})
            }
            (Self::Other(ModelFormat::Gemini), ReplyPart::Text(text)) => json!({"text": text}),
            (Self::Other(ModelFormat::Gemini), ReplyPart::Call(name, arguments)) => {
                json!({"functionCall": {"name": name, "args": object(arguments)}})
            }
        }
    }

    /// Returns the events of a stream with this content. Without `end` it stops after the last part.
    pub(crate) fn frames(self, reply_parts: &[ReplyPart<'_>], end: Option<End>) -> Vec<String> {
        let word = end.map(|end| self.finish_reason(end));
        let mut events = Vec::new();
        match self {
            Self::Chat => {
                let mut calls = 0..;
                for (at, reply_parts) in reply_parts.iter().enumerate() {
                    let delta = match reply_parts {
                        ReplyPart::Text(text) => json!({"content": text}),
                        ReplyPart::Call(..) => {
                            let mut call = self.part(at, *reply_parts);
                            call["index"] = json!(calls.next().unwrap());
                            json!({"tool_calls": [call]})
                        }
                    };
                    events.push(chunk(&delta, None));
                }
                events.extend(word.map(|word| chunk(&json!({}), Some(word))));
                let data = events.iter().map(|event| format!("data: {event}\n\n"));
                return data.chain(word.map(|_| "data: [DONE]\n\n".to_owned())).collect();
            }
            Self::Other(ModelFormat::Responses) => self.responses(reply_parts, word, &mut events),
            Self::Other(ModelFormat::Messages) => self.messages(reply_parts, word, &mut events),
            Self::Other(ModelFormat::Gemini) => {
                // One event contains both the last part and the end.
                let (alone, last) =
                    reply_parts.split_at(reply_parts.len().saturating_sub(word.map_or(0, |_| 1)));
                for (at, reply_parts) in alone.iter().enumerate() {
                    let content = json!({"role": "model", "parts": [self.part(at, *reply_parts)]});
                    events.push(
                        json!({"candidates": [{"index": 0, "content": content}], "modelVersion": "scripted"}),
                    );
                }
                events.extend(word.map(|word| self.whole_reply(last, word)));
                return events.iter().map(|event| format!("data: {event}\r\n\r\n")).collect();
            }
        }
        events.iter().map(named_event).collect()
    }

    fn responses(self, reply_parts: &[ReplyPart<'_>], word: Option<&str>, events: &mut Vec<Value>) {
        let mut opening = self.whole_reply(&[], "in_progress");
        opening["usage"] = Value::Null;
        events.push(json!({"type": "response.created", "response": opening}));
        for (at, reply_parts) in reply_parts.iter().enumerate() {
            let item = self.part(at, *reply_parts);
            let mut bare = item.clone();
            bare["status"] = json!("in_progress");
            let place = |kind: &str| json!({"type": kind, "output_index": at, "item_id": item["id"]});
            let with = |mut event: Value, name: &str, value: Value| {
                event[name] = value;
                event
            };
            match reply_parts {
                ReplyPart::Text(text) => {
                    bare["content"] = json!([]);
                    events.push(
                        json!({"type": "response.output_item.added", "output_index": at, "item": bare}),
                    );
                    let part = json!({"type": "output_text", "annotations": [], "text": ""});
                    let begins = with(place("response.content_part.added"), "part", part);
                    events.push(with(begins, "content_index", json!(0)));
                    let delta = with(place("response.output_text.delta"), "delta", json!(text));
                    events.push(with(delta, "content_index", json!(0)));
                }
                ReplyPart::Call(_, arguments) => {
                    bare["arguments"] = json!("");
                    events.push(
                        json!({"type": "response.output_item.added", "output_index": at, "item": bare}),
                    );
                    if !arguments.is_empty() {
                        let name = "response.function_call_arguments.delta";
                        events.push(with(place(name), "delta", json!(arguments)));
                    }
                }
            }
            events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
        }
        if let Some(word) = word {
            events.push(
                json!({"type": format!("response.{word}"), "response": self.whole_reply(reply_parts, word)}),
            );
        }
    }

    fn messages(self, reply_parts: &[ReplyPart<'_>], word: Option<&str>, events: &mut Vec<Value>) {
        let mut opening = self.whole_reply(&[], "");
        opening["stop_reason"] = Value::Null;
        events.push(json!({"type": "message_start", "message": opening}));
        for (at, reply_parts) in reply_parts.iter().enumerate() {
            let mut block = self.part(at, *reply_parts);
            let delta = match reply_parts {
                ReplyPart::Text(text) => {
                    block["text"] = json!("");
                    json!({"type": "text_delta", "text": text})
                }
                ReplyPart::Call(_, arguments) => {
                    block["input"] = json!({});
                    json!({"type": "input_json_delta", "partial_json": arguments})
                }
            };
            events.push(json!({"type": "content_block_start", "index": at, "content_block": block}));
            events.push(json!({"type": "content_block_delta", "index": at, "delta": delta}));
            events.push(json!({"type": "content_block_stop", "index": at}));
        }
        if let Some(word) = word {
            let delta = json!({"stop_reason": word, "stop_sequence": null});
            events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}));
            events.push(json!({"type": "message_stop"}));
        }
    }

    /// Returns an error event for the middle of a stream.
    pub(crate) fn error_frame(self, kind: &str, message: &str) -> String {
        match self {
            Self::Chat => format!("data: {}\n\n", json!({"error": {"type": kind, "message": message}})),
            Self::Other(ModelFormat::Responses) => {
                named_event(&json!({"type": "error", "code": kind, "message": message, "param": null}))
            }
            Self::Other(ModelFormat::Messages) => {
                named_event(&json!({"type": "error", "error": {"type": kind, "message": message}}))
            }
            Self::Other(ModelFormat::Gemini) => {
                format!(
                    "data: {}\r\n\r\n",
                    json!({"error": {"code": 503, "status": kind, "message": message}})
                )
            }
        }
    }

    /// Returns the content that a client assembles from an answer.
    pub(crate) fn read_reply(self, reply: &Reply) -> AssembledReply {
        let Self::Other(dialect) = self else { return read_chat(reply) };
        dialect.assemble(reply)
    }

    /// Sends a request in this format, and reads the answer.
    pub(crate) async fn ask(self, endmark: &Endmark, body: &Value, stream: bool) -> (Reply, AssembledReply) {
        let reply = self.ask_raw(endmark, body, stream).await;
        let heard = self.read_reply(&reply);
        (reply, heard)
    }

    /// Sends a request, and returns the raw answer. `serde_json` would reject answers with half a surrogate
    /// pair.
    pub(crate) async fn ask_raw(self, endmark: &Endmark, body: &Value, stream: bool) -> Reply {
        Request::post(endmark.address, self.path(stream)).json(body).send().await.read().await
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

fn named_event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

fn read_chat(reply: &Reply) -> AssembledReply {
    let streams = reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let events = if streams { reply.json_events() } else { vec![reply.json()] };
    let mut heard = AssembledReply::default();
    for event in events {
        if event.get("error").is_some() {
            heard.error = Some(event.clone());
        }
        if event["endmark"].is_object() {
            heard.endmark = Some(event["endmark"].clone());
        }
        let choice = &event["choices"][0];
        let message = if streams { &choice["delta"] } else { &choice["message"] };
        heard.text += message["content"].as_str().unwrap_or_default();
        for (at, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let at = call["index"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(at);
            if heard.tool_calls.len() <= at {
                heard.tool_calls.resize(at + 1, <(String, String)>::default());
            }
            heard.tool_calls[at].0 += call["function"]["name"].as_str().unwrap_or_default();
            heard.tool_calls[at].1 += call["function"]["arguments"].as_str().unwrap_or_default();
        }
        heard.stop = choice["finish_reason"].as_str().map(str::to_owned).or(heard.stop);
        heard.output_tokens = event["usage"]["completion_tokens"].as_u64().or(heard.output_tokens);
    }
    heard
}
