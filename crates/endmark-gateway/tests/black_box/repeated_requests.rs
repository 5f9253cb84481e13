//! Replies that contain only reasoning are requested again with a higher limit.

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

/// Returns a reply without text that used `tokens` tokens for reasoning.
fn reasoning_only_reply(wire: Wire, tokens: u64) -> Value {
    let mut reply = wire.whole_reply(&[], wire.finish_reason(End::Limit));
    match wire {
        Wire::Chat => {
            reply["choices"][0]["message"]["reasoning_content"] = json!("Hm.");
            reply["usage"]["completion_tokens"] = json!(tokens);
        }
        Wire::Other(ModelFormat::Responses) => {
            reply["output"] = json!([{"type": "reasoning", "id": "rs_1", "summary": []}]);
            reply["usage"]["output_tokens"] = json!(tokens);
        }
        Wire::Other(ModelFormat::Messages) => {
            reply["content"] = json!([{"type": "thinking", "thinking": "Hm.", "signature": ""}]);
            reply["usage"]["output_tokens"] = json!(tokens);
        }
        Wire::Other(ModelFormat::Gemini) => {
            reply["candidates"][0]["content"]["parts"] = json!([{"text": "Hm.", "thought": true}]);
            reply["usageMetadata"]["thoughtsTokenCount"] = json!(tokens);
            reply["usageMetadata"]["candidatesTokenCount"] = json!(0);
        }
    }
    reply
}

/// Returns a request without an output limit.
fn request_without_limit(wire: Wire) -> Value {
    let mut body = wire.request(false);
    for name in ["max_tokens", "max_output_tokens", "generationConfig"] {
        body.as_object_mut().and_then(|body| body.remove(name));
    }
    body
}

fn requested_limit(wire: Wire, body: &Value) -> Option<u64> {
    match wire {
        Wire::Chat => body["max_completion_tokens"].as_u64().or(body["max_tokens"].as_u64()),
        Wire::Other(ModelFormat::Responses) => body["max_output_tokens"].as_u64(),
        Wire::Other(ModelFormat::Messages) => body["max_tokens"].as_u64(),
        Wire::Other(ModelFormat::Gemini) => body["generationConfig"]["maxOutputTokens"].as_u64(),
    }
}

#[tokio::test]
async fn a_new_request_without_a_client_limit_gets_more_room() {
    for wire in [Wire::ALL[0], Wire::ALL[1], Wire::ALL[3]] {
        let script = Script::new()
            .then(Answer::json(200, &reasoning_only_reply(wire, 9_000)))
            .then(wire.answer(&[ReplyPart::Text("Hello.")], End::Turn, false));
        let endmark = Endmark::start(script).await;
        let (reply, heard) = wire.ask(&endmark, &request_without_limit(wire), false).await;
        let what = format!("{wire:?}: {}", reply.text());
        assert_eq!(endmark.calls(), 2, "{what}");
        assert!(heard.text.ends_with("Hello."), "{what}");
        let second_request = endmark.upstream.requests()[1].json();
        assert!(requested_limit(wire, &second_request).is_none_or(|limit| limit > 9_000), "{second_request}");
    }
}

/// The remaining allowance is smaller than the first reply, so a second reply would be cut again.
#[tokio::test]
async fn no_request_is_made_with_less_room_than_before() {
    for wire in [Wire::ALL[0], Wire::ALL[1], Wire::ALL[3]] {
        let endmark =
            Endmark::start(Script::new().then(Answer::json(200, &reasoning_only_reply(wire, 60_000)))).await;
        let (reply, heard) = wire.ask(&endmark, &request_without_limit(wire), false).await;
        assert_eq!((endmark.calls(), reply.header("x-endmark-outcome")), (1, Some("exhausted")), "{wire:?}");
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Limit)), "{wire:?}");
    }
}

/// If the model rejects a higher limit, the request is repeated without one.
#[tokio::test]
async fn no_limit_is_set_if_the_model_rejects_it() {
    let wire = Wire::Chat;
    let script = Script::new()
        .then(Answer::json(200, &reasoning_only_reply(wire, 8_000)))
        .then(Answer::error(400, "invalid_request_error", None, "max_tokens is too large: 16384"))
        .then(wire.answer(&[ReplyPart::Text("Hello.")], End::Turn, false));
    let endmark = Endmark::start(script).await;
    let (reply, heard) = wire.ask(&endmark, &request_without_limit(wire), false).await;
    assert_eq!((heard.text.as_str(), endmark.calls()), ("Hello.", 3), "{}", reply.text());
    assert_eq!(requested_limit(wire, &endmark.upstream.requests()[2].json()), None);
}

/// A provider rejects a history with an empty list of calls, so a reply without calls must not contain one.
#[tokio::test]
async fn a_text_that_replaces_an_empty_reply_has_no_call_list() {
    let wire = Wire::Chat;
    let empty = Answer::json(200, &wire.whole_reply(&[], wire.finish_reason(End::Limit)));
    for first in [Answer::json(200, &reasoning_only_reply(wire, 9_000)), empty] {
        let script =
            Script::new().then(first).then(wire.answer(&[ReplyPart::Text("Hello.")], End::Turn, false));
        let endmark = Endmark::start(script).await;
        let (reply, heard) = wire.ask(&endmark, &request_without_limit(wire), false).await;
        assert_eq!((heard.text.as_str(), endmark.calls()), ("Hello.", 2), "{}", reply.text());
        assert_eq!(reply.json()["choices"][0]["message"].get("tool_calls"), None, "{}", reply.text());
    }
}

/// Signatures of a cut thought would be rejected in the next turn, so the new reply's thoughts replace it.
#[tokio::test]
async fn cut_thoughts_are_replaced_by_those_of_the_new_reply() {
    for (said, end) in
        [(ReplyPart::Text("Hello."), End::Turn), (ReplyPart::Call("get_time", r#"{"tz":"CET"}"#), End::Calls)]
    {
        let wire = Wire::Other(ModelFormat::Messages);
        let mut again = wire.whole_reply(&[said], wire.finish_reason(end));
        let content = again["content"].as_array().cloned().unwrap_or_default();
        let signed = json!({"type": "thinking", "thinking": "Hm, yes.", "signature": "SIGNED"});
        again["content"] = std::iter::once(signed).chain(content).collect();
        let script = Script::new()
            .then(Answer::json(200, &reasoning_only_reply(wire, 9_000)))
            .then(Answer::json(200, &again));
        let endmark = Endmark::start(script).await;
        let (reply, _) = wire.ask(&endmark, &wire.request(false), false).await;
        let body = reply.json();
        assert_eq!(body["content"], again["content"], "{body}");
        assert_eq!(body["stop_reason"], wire.finish_reason(end), "{body}");
        assert_eq!((&body["usage"]["output_tokens"], endmark.calls()), (&json!(9_007), 2), "{body}");
        assert_eq!(reply.header("x-endmark-outcome"), Some("resumed"));
    }
}

/// A streaming client keeps the cut thought that it received. Nothing may follow it, so the reply stays cut.
#[tokio::test]
async fn nothing_follows_a_cut_streamed_thought() {
    let wire = Wire::Other(ModelFormat::Messages);
    let named =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    let started = |signature: &str| {
        let block = json!({"type": "thinking", "thinking": "", "signature": ""});
        let delta = json!({"type": "thinking_delta", "thinking": "Hm."});
        let mut events = vec![
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        ];
        if !signature.is_empty() {
            let delta = json!({"type": "signature_delta", "signature": signature});
            events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": 0}));
        events.iter().map(named).collect::<Vec<_>>()
    };
    for (signature, calls) in [("", 1), ("SIGNED", 2)] {
        let mut frames = wire.frames(&[], Some(End::Limit));
        frames.splice(1..1, started(signature));
        let script = Script::new().then(Answer::sse(frames)).then(wire.answer(
            &[ReplyPart::Text("Hello.")],
            End::Turn,
            true,
        ));
        let endmark = Endmark::start(script).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
        let what = format!("{signature}: {}", reply.text());
        assert_eq!(endmark.calls(), calls, "{what}");
        let (text, end, outcome) =
            if calls == 1 { ("", End::Limit, "cut") } else { ("Hello.", End::Turn, "resumed") };
        assert_eq!(
            (heard.text.as_str(), heard.stop.as_deref()),
            (text, Some(wire.finish_reason(end))),
            "{what}"
        );
        assert_eq!(heard.endmark.unwrap_or_default()["outcome"], outcome, "{what}");
    }
}
