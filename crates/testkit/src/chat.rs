//! Replies and streams in OpenAI's Chat Completions format.

use serde_json::{Map, Value, json};

/// The last frame of a complete stream.
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// Returns a complete reply with text. `usage` contains the prompt tokens and the output tokens.
pub fn chat_reply(text: &str, finish: &str, usage: (u64, u64)) -> Value {
    reply(&json!({ "role": "assistant", "content": text, "refusal": null }), finish, usage)
}

/// Returns a complete reply with tool calls, each given as (id, name, arguments).
pub fn chat_tool_reply(calls: &[(&str, &str, &str)], finish: &str, usage: (u64, u64)) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, arguments)| {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    reply(&json!({ "role": "assistant", "content": null, "tool_calls": calls }), finish, usage)
}

fn reply(message: &Value, finish: &str, usage: (u64, u64)) -> Value {
    json!({
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "scripted",
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish }],
        "usage": usage_json(usage),
    })
}

pub(crate) fn usage_json((prompt, output): (u64, u64)) -> Value {
    json!({ "prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output })
}

/// Returns the frames of a complete stream with these texts, including `[DONE]`.
pub fn chat_stream(deltas: &[&str], finish: &str) -> Vec<String> {
    deltas.iter().fold(ChatFrames::new(), |frames, delta| frames.text(delta)).finish(finish).done()
}

/// Returns the frame with which a provider reports an error in the middle of a stream.
pub fn error_event(message: &str) -> String {
    let error = json!({ "message": message, "type": "server_error", "param": null, "code": null });
    frame(&json!({ "error": error }))
}

/// Builds the frames of a stream. The first frame names the role.
#[derive(Debug, Clone)]
pub struct ChatFrames {
    frames: Vec<String>,
    choice: u32,
}

impl Default for ChatFrames {
    fn default() -> Self {
        Self::new()
    }
}

impl ChatFrames {
    /// Creates a stream with its first frame.
    pub fn new() -> Self {
        let stream = Self { frames: Vec::new(), choice: 0 };
        stream.delta(&json!({ "role": "assistant", "content": "", "refusal": null }))
    }

    /// Selects the choice to which the following frames belong.
    #[must_use]
    pub fn choice(mut self, index: u32) -> Self {
        self.choice = index;
        self
    }

    /// Adds text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.delta(&json!({ "content": text }))
    }

    /// Adds reasoning, in the field that open-source servers use.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.delta(&json!({ "reasoning_content": text }))
    }

    /// Adds a part of a refusal.
    #[must_use]
    pub fn refusal(self, text: &str) -> Self {
        self.delta(&json!({ "refusal": text }))
    }

    /// Begins a tool call.
    #[must_use]
    pub fn tool_call(self, index: u32, id: &str, name: &str) -> Self {
        let function = json!({ "name": name, "arguments": "" });
        let call = json!({ "index": index, "id": id, "type": "function", "function": function });
        self.delta(&json!({ "tool_calls": [call] }))
    }

    /// Adds a part of a tool call's arguments.
    #[must_use]
    pub fn arguments(self, index: u32, arguments: &str) -> Self {
        let call = json!({ "index": index, "function": { "arguments": arguments } });
        self.delta(&json!({ "tool_calls": [call] }))
    }

    /// Adds a chunk with this delta.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Self {
        let choice = json!({ "index": self.choice, "delta": delta, "logprobs": null, "finish_reason": null });
        self.chunk(&json!([choice]), None)
    }

    /// Adds the chunk with the finish reason.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        let choice = json!({ "index": self.choice, "delta": {}, "logprobs": null, "finish_reason": reason });
        self.chunk(&json!([choice]), None)
    }

    /// Adds a chunk without choices that reports the usage, as (prompt tokens, output tokens).
    #[must_use]
    pub fn usage(self, usage: (u64, u64)) -> Self {
        self.chunk(&json!([]), Some(usage_json(usage)))
    }

    /// Adds a frame unchanged, for example a comment, an error event or an incomplete line.
    #[must_use]
    pub fn raw(mut self, frame: &str) -> Self {
        self.frames.push(frame.to_owned());
        self
    }

    /// Returns the frames without `[DONE]`.
    pub fn cut(self) -> Vec<String> {
        self.frames
    }

    /// Returns the frames followed by `[DONE]`.
    pub fn done(self) -> Vec<String> {
        self.raw(DONE).frames
    }

    fn chunk(self, choices: &Value, usage: Option<Value>) -> Self {
        let mut chunk = Map::new();
        chunk.insert("id".to_owned(), json!("chatcmpl-scripted"));
        chunk.insert("object".to_owned(), json!("chat.completion.chunk"));
        chunk.insert("created".to_owned(), json!(1_700_000_000));
        chunk.insert("model".to_owned(), json!("scripted"));
        chunk.insert("system_fingerprint".to_owned(), json!("fp_scripted"));
        chunk.insert("choices".to_owned(), choices.clone());
        if let Some(usage) = usage {
            chunk.insert("usage".to_owned(), usage);
        }
        self.raw(&frame(&Value::Object(chunk)))
    }
}

fn frame(data: &Value) -> String {
    format!("data: {data}\n\n")
}
