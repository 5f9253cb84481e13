//! Compares what a provider reports about the end of a reply with its text and token count.

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};
use endmark_gateway::ResumeMode;
use serde_json::{Value, json};
use testkit::{ModelFormat, Script};

/// Returns a request with the limit that the scripted replies reach: 7 tokens.
fn limited_request(wire: Wire, stream: bool) -> Value {
    let mut body = wire.request(stream);
    match wire {
        Wire::Chat | Wire::Other(ModelFormat::Messages) => body["max_tokens"] = json!(7),
        Wire::Other(ModelFormat::Responses) => body["max_output_tokens"] = json!(7),
        Wire::Other(ModelFormat::Gemini) => body["generationConfig"]["maxOutputTokens"] = json!(7),
    }
    if wire == Wire::Chat {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

/// llama.cpp reports `completed` for a response that the client's limit cut.
#[tokio::test]
async fn a_reply_cut_by_its_limit_is_not_reported_as_finished() {
    let parts = [ReplyPart::Text("The harbour was quiet that")];
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let mut answer = wire.answer(&parts, End::Turn, stream);
        if wire == Wire::Chat && stream {
            let mut frames = wire.frames(&parts, Some(End::Turn));
            let counted = json!({"id": "chatcmpl", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
                "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}});
            frames.insert(frames.len() - 1, format!("data: {counted}\n\n"));
            answer = testkit::Answer::sse(frames);
        }
        let endmark = Endmark::start(Script::new().default_answer(answer.clone())).await;
        let (reply, heard) = wire.ask(&endmark, &limited_request(wire, stream), stream).await;
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Limit)), "{wire:?} {}", reply.text());
        assert_eq!((heard.text.as_str(), endmark.calls()), ("The harbour was quiet that", 1));
        let outcome = reply.header("x-endmark-outcome").map(str::to_owned);
        let outcome =
            outcome.or_else(|| heard.endmark.map(|endmark| endmark["outcome"].as_str().unwrap().to_owned()));
        assert_eq!(outcome.as_deref(), Some("cut"), "{wire:?}");
        if wire == Wire::Other(ModelFormat::Responses) {
            let last =
                if stream { reply.json_events().pop().unwrap() } else { json!({"response": reply.json()}) };
            let response = &last["response"];
            assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens", "{response}");
            assert_eq!(response["output"][0]["status"], "incomplete", "{response}");
            for event in stream.then(|| reply.json_events()).into_iter().flatten() {
                if event["type"] == "response.output_item.done" {
                    assert_eq!(event["item"]["status"], "incomplete", "{event}");
                }
            }
        }

        // Mode `warn` leaves the finish reason unchanged.
        let watching = Endmark::start_with(Script::new().default_answer(answer), |settings| {
            settings.resume.mode = ResumeMode::Warn;
        });
        let (_, heard) = wire.ask(&watching.await, &limited_request(wire, stream), stream).await;
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Turn)), "{wire:?}");
    }
}

/// Requesting the rest fails, so the reply stays unfinished.
#[tokio::test]
async fn a_reply_that_stays_cut_is_not_reported_as_finished() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        if wire == Wire::Chat && stream {
            continue;
        }
        let answer = wire.answer(&[ReplyPart::Text("The harbour was quiet that")], End::Turn, stream);
        let refused =
            testkit::Answer::json(400, &json!({"error": {"type": "invalid_request_error", "message": "no"}}));
        let script = Script::new().then(answer).default_answer(refused);
        let endmark = Endmark::start_resuming(script).await;
        let (reply, heard) = wire.ask(&endmark, &limited_request(wire, stream), stream).await;
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Limit)), "{wire:?} {}", reply.text());
        assert!(endmark.calls() > 1);
    }
}

/// A document that ends exactly at the limit is complete.
#[tokio::test]
async fn a_document_that_ends_at_its_limit_is_whole() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let answer = wire.answer(&[ReplyPart::Text("{\"a\": 1}")], End::Turn, stream);
        let body = answer.body();
        let endmark = Endmark::start(Script::new().default_answer(answer)).await;
        let mut request = limited_request(wire, stream);
        match wire {
            Wire::Chat => request["response_format"] = json!({"type": "json_object"}),
            Wire::Other(ModelFormat::Responses) => {
                request["text"] = json!({"format": {"type": "json_object"}});
            }
            Wire::Other(ModelFormat::Messages) => {
                request["output_config"] =
                    json!({"format": {"type": "json_schema", "schema": {"type": "object"}}});
            }
            Wire::Other(ModelFormat::Gemini) => {
                request["generationConfig"]["responseMimeType"] = json!("application/json");
            }
        }
        let (reply, heard) = wire.ask(&endmark, &request, stream).await;
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Turn)), "{wire:?}");
        assert_eq!((reply.body, endmark.calls()), (body, 1), "{wire:?}");
    }
}

/// If the token count is far beyond the limit, the server did not apply the limit to these tokens.
#[tokio::test]
async fn a_count_beyond_the_limit_proves_nothing() {
    let parts = [ReplyPart::Text("The harbour was quiet that")];
    for wire in Wire::ALL {
        let mut body = limited_request(wire, false);
        match wire {
            Wire::Chat | Wire::Other(ModelFormat::Messages) => body["max_tokens"] = json!(2),
            Wire::Other(ModelFormat::Responses) => body["max_output_tokens"] = json!(2),
            Wire::Other(ModelFormat::Gemini) => body["generationConfig"]["maxOutputTokens"] = json!(2),
        }
        let endmark =
            Endmark::start_resuming(Script::new().default_answer(wire.answer(&parts, End::Turn, false)))
                .await;
        let (reply, heard) = wire.ask(&endmark, &body, false).await;
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Turn)), "{wire:?} {}", reply.text());
        assert_eq!((reply.header("x-endmark-outcome"), endmark.calls()), (None, 1), "{wire:?}");
    }
}

/// A call without arguments is whole, whatever the token count is.
#[tokio::test]
async fn a_finished_call_without_arguments_at_the_limit_is_whole() {
    let call = json!({"id": "c", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
            "tool_calls": [{"id": "t", "type": "function", "function": {"name": "now", "arguments": ""}}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 7, "total_tokens": 8}});
    let endmark =
        Endmark::start_resuming(Script::new().default_answer(testkit::Answer::json(200, &call))).await;
    let (reply, _) = Wire::Chat.ask(&endmark, &limited_request(Wire::Chat, false), false).await;
    assert_eq!((reply.json(), endmark.calls()), (call, 1));
}
