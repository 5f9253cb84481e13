//! The exam's reply in each format: the frames of a stream, and the complete response.

use serde_json::{Value, json};

use super::format::ExamFormat;

/// The content of a reply.
pub(super) struct ProviderReply<'a> {
    pub(super) model: &'a str,
    pub(super) words: &'a [String],
    pub(super) prompt_tokens: usize,
    /// Whether a stream reports its usage, if the caller can choose that in the format.
    pub(super) usage: bool,
}

/// A stream in its three parts.
pub(super) struct Frames {
    /// Frames before the first word.
    pub(super) begin: Vec<String>,
    /// One frame for each word.
    pub(super) words: Vec<String>,
    /// Frames after the last word, including the format's last frame.
    pub(super) end: Vec<String>,
}

/// An event that is not JSON.
pub(super) const INVALID_EVENT: &str =
    "data: {\"id\": \"exam\", \"choices\": [{\"delta\": {\"content\": \n\n";

fn data_frame(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn named_frame(event: &Value) -> String {
    format!("event: {}\n{}", event["type"].as_str().unwrap_or_default(), data_frame(event))
}

impl ProviderReply<'_> {
    /// Returns the frames of the stream.
    pub(super) fn frames(&self, format: ExamFormat) -> Frames {
        match format {
            ExamFormat::Chat => self.chat(),
            ExamFormat::Responses => self.responses(),
            ExamFormat::Messages => self.messages(),
            ExamFormat::Gemini => self.gemini(),
        }
    }

    /// Returns the reply as one complete response.
    pub(super) fn whole_reply(&self, format: ExamFormat) -> Value {
        let text = self.words.concat();
        match format {
            ExamFormat::Chat => json!({
                "id": "chatcmpl-exam", "object": "chat.completion", "created": 1_700_000_000, "model": self.model,
                "choices": [{
                    "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop",
                }],
                "usage": self.chat_usage(),
            }),
            ExamFormat::Responses => self.responses_body("completed", &[self.responses_item("completed")]),
            ExamFormat::Messages => json!({
                "id": "msg_exam", "type": "message", "role": "assistant", "model": self.model,
                "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": { "input_tokens": self.prompt_tokens, "output_tokens": self.words.len() },
            }),
            ExamFormat::Gemini => self.gemini_chunk(&text, true),
        }
    }

    fn chat_usage(&self) -> Value {
        let (prompt, completion) = (self.prompt_tokens, self.words.len());
        json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
    }

    fn chat(&self) -> Frames {
        let chunk = |choices: &Value, usage: &Value| {
            data_frame(&json!({
                "id": "chatcmpl-exam", "object": "chat.completion.chunk", "created": 1_700_000_000,
                "model": self.model, "choices": choices, "usage": usage,
            }))
        };
        let delta = |delta: Value, finish: Value| {
            chunk(&json!([{ "index": 0, "delta": delta, "finish_reason": finish }]), &Value::Null)
        };
        let words = self.words.iter().map(|word| delta(json!({ "content": word }), Value::Null)).collect();
        let mut end = vec![delta(json!({}), json!("stop"))];
        if self.usage {
            end.push(chunk(&json!([]), &self.chat_usage()));
        }
        end.push("data: [DONE]\n\n".to_owned());
        Frames { begin: vec![delta(json!({ "role": "assistant", "content": "" }), Value::Null)], words, end }
    }

    /// Returns a message item of Responses.
    fn responses_item(&self, status: &str) -> Value {
        let part = json!({ "type": "output_text", "annotations": [], "text": self.words.concat() });
        json!({
            "id": "msg_exam", "type": "message", "role": "assistant", "status": status,
            "content": if status == "completed" { json!([part]) } else { json!([]) },
        })
    }

    fn responses_body(&self, status: &str, output: &[Value]) -> Value {
        let (input, output_tokens) = (self.prompt_tokens, self.words.len());
        let usage = json!({
            "input_tokens": input, "output_tokens": output_tokens, "total_tokens": input + output_tokens,
        });
        json!({
            "id": "resp_exam", "object": "response", "created_at": 1_700_000_000, "status": status,
            "model": self.model, "output": output, "error": null, "incomplete_details": null,
            "usage": if status == "completed" { usage } else { Value::Null },
        })
    }

    fn responses(&self) -> Frames {
        let mut number = 0;
        let mut event = |kind: &str, fields: Value| {
            let mut event = json!({ "type": kind, "sequence_number": number });
            number += 1;
            for (name, value) in fields.as_object().into_iter().flatten() {
                event[name] = value.clone();
            }
            named_frame(&event)
        };
        let part = |text: &str| json!({ "type": "output_text", "annotations": [], "text": text });
        let in_part = |name: &str, value: Value| {
            let mut place = json!({ "item_id": "msg_exam", "output_index": 0, "content_index": 0 });
            place[name] = value;
            place
        };
        let opening_item = self.responses_item("in_progress");
        let opening = vec![
            event("response.created", json!({ "response": self.responses_body("in_progress", &[]) })),
            event("response.output_item.added", json!({ "output_index": 0, "item": opening_item })),
            event("response.content_part.added", in_part("part", part(""))),
        ];
        let delta = |word: &String| event("response.output_text.delta", in_part("delta", json!(word)));
        let words = self.words.iter().map(delta).collect();
        let (text, item) = (self.words.concat(), self.responses_item("completed"));
        let end = vec![
            event("response.output_text.done", in_part("text", json!(text))),
            event("response.content_part.done", in_part("part", part(&text))),
            event("response.output_item.done", json!({ "output_index": 0, "item": item })),
            event("response.completed", json!({ "response": self.whole_reply(ExamFormat::Responses) })),
        ];
        Frames { begin: opening, words, end }
    }

    fn messages(&self) -> Frames {
        let mut message = self.whole_reply(ExamFormat::Messages);
        message["content"] = json!([]);
        message["stop_reason"] = Value::Null;
        message["usage"]["output_tokens"] = json!(1);
        let block = json!({ "type": "text", "text": "" });
        let delta = |word: &String| {
            let delta = json!({ "type": "text_delta", "text": word });
            named_frame(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
        };
        let stopped = json!({ "stop_reason": "end_turn", "stop_sequence": null });
        let usage = json!({ "output_tokens": self.words.len() });
        Frames {
            begin: vec![
                named_frame(&json!({ "type": "message_start", "message": message })),
                named_frame(&json!({ "type": "content_block_start", "index": 0, "content_block": block })),
            ],
            words: self.words.iter().map(delta).collect(),
            end: vec![
                named_frame(&json!({ "type": "content_block_stop", "index": 0 })),
                named_frame(&json!({ "type": "message_delta", "delta": stopped, "usage": usage })),
                named_frame(&json!({ "type": "message_stop" })),
            ],
        }
    }

    fn gemini_chunk(&self, text: &str, is_last: bool) -> Value {
        let (prompt, candidates) = (self.prompt_tokens, self.words.len());
        let mut chunk = json!({
            "candidates": [{ "index": 0, "content": { "role": "model", "parts": [{ "text": text }] } }],
            "modelVersion": self.model, "responseId": "exam",
        });
        if is_last {
            chunk["candidates"][0]["finishReason"] = json!("STOP");
            chunk["usageMetadata"] = json!({
                "promptTokenCount": prompt, "candidatesTokenCount": candidates,
                "totalTokenCount": prompt + candidates,
            });
        }
        chunk
    }

    fn gemini(&self) -> Frames {
        let words = self.words.iter().map(|word| data_frame(&self.gemini_chunk(word, false))).collect();
        Frames { begin: Vec::new(), words, end: vec![data_frame(&self.gemini_chunk("", true))] }
    }
}
