//! Lets the scripted model use wire formats other than Chat Completions.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::client::Reply;
use crate::model::ScriptedModel;
use crate::script::Respond;
use crate::tokens::tokens;
use crate::upstream::ReceivedRequest;

/// A wire format of the scripted model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFormat {
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// Gemini's `generateContent`.
    Gemini,
}

/// Wraps a model for Chat Completions, so that it accepts requests and answers in another wire format.
pub struct ModelFormatAdapter<M = ScriptedModel> {
    dialect: ModelFormat,
    model: M,
}

/// The content of a response, as a client would assemble it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AssembledReply {
    /// The text.
    pub text: String,
    /// The tool calls: name and arguments.
    pub tool_calls: Vec<(String, String)>,
    /// The finish reason.
    pub stop: Option<String>,
    /// The error, which is the response itself or the end of the stream.
    pub error: Option<Value>,
    /// Endmark's own data in the response.
    pub endmark: Option<Value>,
    /// Output tokens, as reported at the end.
    pub output_tokens: Option<u64>,
}

/// The model's reply, independent of the wire format.
struct ReplyContent {
    text: String,
    call: Option<(String, String)>,
    is_cut: bool,
    output: u64,
}

impl<M: Respond> ModelFormatAdapter<M> {
    /// Wraps a model for this wire format.
    pub fn new(dialect: ModelFormat, model: M) -> Self {
        Self { dialect, model }
    }
}

impl<M: Respond> Respond for ModelFormatAdapter<M> {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        let body = request.json();
        let chat = self.dialect.chat_request(&body);
        let asked = ReceivedRequest {
            path: "/v1/chat/completions".to_owned(),
            body: chat.to_string().into_bytes(),
            ..request.clone()
        };
        let answered = self.model.respond(&asked);
        let reply: Value = serde_json::from_slice(&answered.parts.concat()).unwrap_or_default();
        if answered.status != 200 {
            let message = reply["error"]["message"].as_str().unwrap_or_default();
            return self.dialect.error(answered.status, message);
        }
        let choice = &reply["choices"][0];
        let call = &choice["message"]["tool_calls"][0]["function"];
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let reply_content = ReplyContent {
            text: word(&choice["message"]["content"]),
            call: call.is_object().then(|| (word(&call["name"]), word(&call["arguments"]))),
            is_cut: choice["finish_reason"] == "length",
            output: reply["usage"]["completion_tokens"].as_u64().unwrap_or(0),
        };
        let streams = body["stream"] == true || request.path.contains("alt=sse");
        let mut answer = if streams {
            Answer::sse(self.dialect.stream(&reply_content))
        } else {
            Answer::json(200, &self.dialect.whole_reply(&reply_content))
        };
        answer.fault = answered.fault;
        answer
    }
}

impl ModelFormat {
    /// All wire formats.
    pub const ALL: [Self; 3] = [Self::Responses, Self::Messages, Self::Gemini];

    /// Returns the path of a request. `stream` is whether the request asks for a stream.
    pub fn path(self, stream: bool) -> &'static str {
        match (self, stream) {
            (Self::Responses, _) => "/v1/responses",
            (Self::Messages, _) => "/v1/messages",
            (Self::Gemini, false) => "/v1beta/models/scripted:generateContent",
            (Self::Gemini, true) => "/v1beta/models/scripted:streamGenerateContent?alt=sse",
        }
    }

    /// Returns a request with one user message.
    pub fn request(self, limit: u64, stream: bool) -> Value {
        let mut body = match self {
            Self::Responses => json!({"model": "scripted", "max_output_tokens": limit, "input": "Tell."}),
            Self::Messages => {
                json!({"model": "scripted", "max_tokens": limit, "messages": [{"role": "user", "content": "Tell."}]})
            }
            Self::Gemini => {
                json!({"contents": [{"role": "user", "parts": [{"text": "Tell."}]}], "generationConfig": {"maxOutputTokens": limit}})
            }
        };
        if stream && self != Self::Gemini {
            body["stream"] = json!(true);
        }
        body
    }

    /// Returns the `tools` of a request that offers this tool.
    pub fn tools(self, name: &str) -> Value {
        let schema = json!({"type": "object"});
        match self {
            Self::Responses => json!([{"type": "function", "name": name, "parameters": schema}]),
            Self::Messages => json!([{"name": name, "input_schema": schema}]),
            Self::Gemini => {
                json!([{"functionDeclarations": [{"name": name, "parametersJsonSchema": schema}]}])
            }
        }
    }

    /// Returns an error in the provider's format.
    pub fn error(self, status: u16, message: &str) -> Answer {
        let body = match self {
            Self::Responses => {
                json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}})
            }
            Self::Messages => {
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
            }
            Self::Gemini => {
                json!({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}})
            }
        };
        Answer::json(status, &body)
    }

    /// Converts the body of a request to Chat Completions.
    fn chat_request(self, body: &Value) -> Value {
        let text = |content: &Value| -> String {
            let parts = content.as_array().cloned().unwrap_or_default();
            let parts: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            content.as_str().map_or(parts, str::to_owned)
        };
        let field = |name: &str| body[name].as_array().cloned().unwrap_or_default();
        let messages: Vec<Value> = match self {
            Self::Responses if body["input"].is_string() => {
                vec![json!({"role": "user", "content": body["input"]})]
            }
            Self::Responses => field("input")
                .iter()
                .map(|item| json!({"role": item["role"], "content": text(&item["content"])}))
                .collect(),
            Self::Messages => field("messages")
                .iter()
                .map(|message| json!({"role": message["role"], "content": text(&message["content"])}))
                .collect(),
            Self::Gemini => field("contents")
                .iter()
                .map(|content| {
                    let role = if content["role"] == "model" { "assistant" } else { "user" };
                    json!({"role": role, "content": text(&content["parts"])})
                })
                .collect(),
        };
        let limit = match self {
            Self::Responses => &body["max_output_tokens"],
            Self::Messages => &body["max_tokens"],
            Self::Gemini => &body["generationConfig"]["maxOutputTokens"],
        };
        let mut chat = json!({"model": "scripted", "messages": messages});
        if limit.is_u64() {
            chat["max_tokens"] = limit.clone();
        }
        let demands = [
            &body["text"]["format"]["type"] != "text" && body["text"]["format"].is_object(),
            body["output_config"]["format"].is_object(),
            body["generationConfig"]["responseMimeType"] == "application/json",
        ];
        if demands.contains(&true) {
            chat["response_format"] = json!({"type": "json_object"});
        }
        let forbidden = body["toolConfig"]["functionCallingConfig"]["mode"] == "NONE";
        if body["tools"].is_array() && !forbidden {
            chat["tools"] = json!([{"type": "function", "function": {"name": "any"}}]);
        }
        chat
    }

    fn whole_reply(self, reply_content: &ReplyContent) -> Value {
        // Cut arguments cannot be represented as an object.
        let object = |arguments: &str| serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| json!({}));
        match self {
            Self::Responses => self.response(reply_content, "resp_scripted"),
            Self::Messages => {
                let mut content = Vec::new();
                if !reply_content.text.is_empty() {
                    content.push(json!({"type": "text", "text": reply_content.text}));
                }
                if let Some((name, arguments)) = &reply_content.call {
                    content.push(json!({"type": "tool_use", "id": "toolu_scripted", "name": name, "input": object(arguments)}));
                }
                json!({"id": "msg_scripted", "type": "message", "role": "assistant", "model": "scripted",
                    "content": content, "stop_reason": self.stop(reply_content), "stop_sequence": null,
                    "usage": {"input_tokens": 5, "output_tokens": reply_content.output}})
            }
            Self::Gemini => {
                let mut parts = Vec::new();
                if !reply_content.text.is_empty() {
                    parts.push(json!({"text": reply_content.text}));
                }
                if let Some((name, arguments)) = &reply_content.call {
                    parts.push(json!({"functionCall": {"name": name, "args": object(arguments)}}));
                }
                json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": self.stop(reply_content), "index": 0}],
                    "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": reply_content.output, "totalTokenCount": 5 + reply_content.output},
                    "modelVersion": "scripted", "responseId": "scripted"})
            }
        }
    }

    fn stop(self, reply_content: &ReplyContent) -> &'static str {
        match (self, reply_content.is_cut, reply_content.call.is_some()) {
            (Self::Responses, true, _) => "incomplete",
            (Self::Responses, false, _) => "completed",
            (Self::Messages, true, _) => "max_tokens",
            (Self::Messages, false, true) => "tool_use",
            (Self::Messages, false, false) => "end_turn",
            (Self::Gemini, true, _) => "MAX_TOKENS",
            (Self::Gemini, false, _) => "STOP",
        }
    }

    fn item(self, reply_content: &ReplyContent) -> Value {
        let status = self.stop(reply_content);
        match &reply_content.call {
            Some((name, arguments)) => json!({"id": "fc_scripted", "type": "function_call", "status": status,
                "call_id": "call_scripted", "name": name, "arguments": arguments}),
            None => json!({"id": "msg_scripted", "type": "message", "status": status, "role": "assistant",
                "content": [{"type": "output_text", "annotations": [], "text": reply_content.text}]}),
        }
    }

    fn response(self, reply_content: &ReplyContent, id: &str) -> Value {
        let details = if reply_content.is_cut { json!({"reason": "max_output_tokens"}) } else { Value::Null };
        json!({"id": id, "object": "response", "created_at": 0, "status": self.stop(reply_content), "model": "scripted",
            "incomplete_details": details, "error": null, "output": [self.item(reply_content)],
            "usage": {"input_tokens": 5, "output_tokens": reply_content.output, "total_tokens": 5 + reply_content.output}})
    }

    /// Returns the frames of a stream, one token per frame.
    fn stream(self, reply_content: &ReplyContent) -> Vec<String> {
        match self {
            Self::Responses => self.response_stream(reply_content),
            Self::Messages => self.message_stream(reply_content),
            Self::Gemini => self.content_stream(reply_content),
        }
    }

    fn response_stream(self, reply_content: &ReplyContent) -> Vec<String> {
        let mut number = 0;
        let mut frames = Vec::new();
        let mut push = |kind: &str, mut data: Value| {
            data["type"] = json!(kind);
            data["sequence_number"] = json!(number);
            number += 1;
            frames.push(format!("event: {kind}\ndata: {data}\n\n"));
        };
        let opening = json!({"id": "resp_scripted", "object": "response", "created_at": 0, "status": "in_progress",
            "model": "scripted", "output": []});
        push("response.created", json!({"response": opening}));
        let (at, part) =
            (json!({"output_index": 0}), json!({"type": "output_text", "annotations": [], "text": ""}));
        let with = |base: &Value, more: Value| {
            let mut object = base.as_object().cloned().unwrap_or_default();
            object.extend(more.as_object().cloned().unwrap_or_default());
            Value::Object(object)
        };
        let whole = self.item(reply_content);
        if let Some((name, arguments)) = &reply_content.call {
            push(
                "response.output_item.added",
                with(
                    &at,
                    json!({"item": {"id": "fc_scripted", "type": "function_call",
                    "status": "in_progress", "call_id": "call_scripted", "name": name, "arguments": ""}}),
                ),
            );
            let at = with(&at, json!({"item_id": "fc_scripted"}));
            for token in tokens(arguments) {
                push("response.function_call_arguments.delta", with(&at, json!({"delta": token})));
            }
            push("response.function_call_arguments.done", with(&at, json!({"arguments": arguments})));
        } else {
            push(
                "response.output_item.added",
                with(
                    &at,
                    json!({"item": {"id": "msg_scripted", "type": "message",
                    "status": "in_progress", "role": "assistant", "content": []}}),
                ),
            );
            let at = with(&at, json!({"item_id": "msg_scripted", "content_index": 0}));
            push("response.content_part.added", with(&at, json!({"part": part})));
            for token in tokens(&reply_content.text) {
                push("response.output_text.delta", with(&at, json!({"delta": token, "logprobs": []})));
            }
            push("response.output_text.done", with(&at, json!({"text": reply_content.text, "logprobs": []})));
            push("response.content_part.done", with(&at, json!({"part": whole["content"][0]})));
        }
        push("response.output_item.done", with(&at, json!({"item": whole})));
        push(
            &format!("response.{}", self.stop(reply_content)),
            json!({"response": self.response(reply_content, "resp_scripted")}),
        );
        frames
    }

    fn message_stream(self, reply_content: &ReplyContent) -> Vec<String> {
        let frame =
            |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
        let mut frames = vec![
            frame(
                json!({"type": "message_start", "message": {"id": "msg_scripted", "type": "message", "role": "assistant",
                "model": "scripted", "content": [], "stop_reason": null, "stop_sequence": null,
                "usage": {"input_tokens": 5, "output_tokens": 1}}}),
            ),
            frame(json!({"type": "ping"})),
        ];
        let (block, kind, field, text) = match &reply_content.call {
            Some((name, arguments)) => (
                json!({"type": "tool_use", "id": "toolu_scripted", "name": name, "input": {}}),
                "input_json_delta",
                "partial_json",
                arguments,
            ),
            None => (json!({"type": "text", "text": ""}), "text_delta", "text", &reply_content.text),
        };
        frames.push(frame(json!({"type": "content_block_start", "index": 0, "content_block": block})));
        for token in tokens(text) {
            let mut delta = json!({"type": kind});
            delta[field] = json!(token);
            frames.push(frame(json!({"type": "content_block_delta", "index": 0, "delta": delta})));
        }
        frames.push(frame(json!({"type": "content_block_stop", "index": 0})));
        frames.push(frame(
            json!({"type": "message_delta", "delta": {"stop_reason": self.stop(reply_content), "stop_sequence": null},
            "usage": {"output_tokens": reply_content.output}}),
        ));
        frames.push(frame(json!({"type": "message_stop"})));
        frames
    }

    fn content_stream(self, reply_content: &ReplyContent) -> Vec<String> {
        let whole = self.whole_reply(reply_content);
        let pieces = if reply_content.call.is_some() { vec![""] } else { tokens(&reply_content.text) };
        let last = pieces.len().saturating_sub(1);
        let frame = |(position, piece): (usize, &str)| {
            let mut chunk = whole.clone();
            if reply_content.call.is_none() {
                chunk["candidates"][0]["content"]["parts"] = json!([{"text": piece}]);
            }
            if position < last {
                chunk["candidates"][0].as_object_mut().unwrap().remove("finishReason");
                chunk.as_object_mut().unwrap().remove("usageMetadata");
            }
            format!("data: {chunk}\n\n")
        };
        pieces.into_iter().enumerate().map(frame).collect()
    }

    /// Assembles the content of a response as a client would.
    pub fn assemble(self, reply: &Reply) -> AssembledReply {
        let streams = reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut heard = AssembledReply::default();
        if !streams {
            let body = reply.json();
            heard.error = body.get("error").filter(|error| !error.is_null()).cloned();
            match self {
                Self::Responses => Self::hear_response(&body, &mut heard),
                Self::Messages => Self::hear_message(&body, &mut heard),
                Self::Gemini => Self::hear_content(&body, &mut heard),
            }
            return heard;
        }
        for event in reply.json_events() {
            let errs = event.get("error").is_some_and(|error| !error.is_null()) || event["type"] == "error";
            if errs {
                heard.error = Some(event.clone());
            }
            let disclosed = [&event["endmark"], &event["response"]["endmark"]];
            heard.endmark = disclosed
                .into_iter()
                .find(|disclosed| disclosed.is_object())
                .cloned()
                .or(heard.endmark.take());
            match self {
                Self::Gemini => Self::hear_content(&event, &mut heard),
                Self::Messages => Self::hear_message_event(&event, &mut heard),
                Self::Responses => match event["type"].as_str().unwrap_or_default() {
                    "response.output_text.delta" => heard.text += event["delta"].as_str().unwrap_or_default(),
                    "response.completed" | "response.incomplete" => {
                        // The last event repeats the complete text, which must equal the streamed text.
                        let flowed = std::mem::take(&mut heard.text);
                        Self::hear_response(&event["response"], &mut heard);
                        assert_eq!(flowed, heard.text, "the end repeats another text");
                    }
                    _ => {}
                },
            }
        }
        heard
    }

    fn hear_response(response: &Value, heard: &mut AssembledReply) {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        heard.stop = response["status"].as_str().map(str::to_owned);
        heard.output_tokens = response["usage"]["output_tokens"].as_u64();
        for item in response["output"].as_array().into_iter().flatten() {
            match item["type"].as_str() {
                Some("function_call") => {
                    heard.tool_calls.push((word(&item["name"]), word(&item["arguments"])));
                }
                _ => heard.text += &word(&item["content"][0]["text"]),
            }
        }
    }

    fn hear_message(message: &Value, heard: &mut AssembledReply) {
        heard.stop = message["stop_reason"].as_str().map(str::to_owned);
        heard.output_tokens = message["usage"]["output_tokens"].as_u64();
        for block in message["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_use" {
                heard
                    .tool_calls
                    .push((block["name"].as_str().unwrap().to_owned(), block["input"].to_string()));
            } else {
                heard.text += block["text"].as_str().unwrap_or_default();
            }
        }
    }

    fn hear_message_event(event: &Value, heard: &mut AssembledReply) {
        let block = &event["content_block"];
        if block["type"] == "tool_use" {
            heard.tool_calls.push((block["name"].as_str().unwrap().to_owned(), String::new()));
        }
        let delta = &event["delta"];
        heard.text += delta["text"].as_str().unwrap_or_default();
        if let (Some((_, arguments)), Some(piece)) =
            (heard.tool_calls.last_mut(), delta["partial_json"].as_str())
        {
            arguments.push_str(piece);
        }
        if let Some(stop) = delta["stop_reason"].as_str() {
            heard.stop = Some(stop.to_owned());
            heard.output_tokens = event["usage"]["output_tokens"].as_u64();
        }
    }

    fn hear_content(chunk: &Value, heard: &mut AssembledReply) {
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            heard.text += part["text"].as_str().unwrap_or_default();
            if let Some(call) = part.get("functionCall") {
                heard.tool_calls.push((call["name"].as_str().unwrap().to_owned(), call["args"].to_string()));
            }
        }
        if let Some(stop) = candidate["finishReason"].as_str() {
            heard.stop = Some(stop.to_owned());
        }
        if let Some(tokens) = chunk["usageMetadata"]["candidatesTokenCount"].as_u64() {
            heard.output_tokens = Some(tokens);
        }
    }
}
