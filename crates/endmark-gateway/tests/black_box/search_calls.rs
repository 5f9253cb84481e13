//! Replies that contain a server-side part, such as search results. No request can continue them, but cuts
//! are still reported.

use serde_json::{Value, json};
use testkit::{Answer, AssembledReply, ModelFormat, Reply, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const MESSAGES: Wire = Wire::Other(ModelFormat::Messages);
const RESPONSES: Wire = Wire::Other(ModelFormat::Responses);
const GEMINI: Wire = Wire::Other(ModelFormat::Gemini);

/// Returns the results of a server-side search, which are the first part of a reply.
fn search_result(wire: Wire) -> Value {
    match wire {
        MESSAGES => json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}),
        RESPONSES => {
            json!({"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}})
        }
        _ => json!({"executableCode": {"language": "PYTHON", "code": "1"}}),
    }
}

/// Returns an answer with this part after a search.
fn answer(wire: Wire, part: ReplyPart<'_>, end: End, stream: bool) -> Answer {
    let mut whole = wire.whole_reply(&[part], wire.finish_reason(end));
    let parts = match wire {
        MESSAGES => &mut whole["content"],
        RESPONSES => &mut whole["output"],
        _ => &mut whole["candidates"][0]["content"]["parts"],
    };
    if let Value::Array(parts) = parts {
        parts.insert(0, search_result(wire));
    }
    if !stream {
        return Answer::json(200, &whole);
    }
    let mut frames = wire.frames(&[part], Some(end));
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    let shifted = |frame: &String| {
        frame.replace("\"index\":0", "\"index\":1").replace("\"output_index\":0", "\"output_index\":1")
    };
    match wire {
        MESSAGES => {
            frames = frames.iter().map(shifted).collect();
            frames.insert(
                1,
                event(
                    &json!({"type": "content_block_start", "index": 0, "content_block": search_result(wire)}),
                ),
            );
            frames.insert(2, event(&json!({"type": "content_block_stop", "index": 0})));
        }
        RESPONSES => {
            frames = frames.iter().map(shifted).collect();
            frames.insert(
                1,
                event(&json!({"type": "response.output_item.added", "output_index": 0, "item": search_result(wire)})),
            );
            frames.insert(
                2,
                event(&json!({"type": "response.output_item.done", "output_index": 0, "item": search_result(wire)})),
            );
            frames.pop();
            frames.push(event(
                &json!({"type": format!("response.{}", wire.finish_reason(end)), "response": whole}),
            ));
        }
        _ => {
            let content = json!({"role": "model", "parts": [search_result(wire)]});
            let event = json!({"candidates": [{"index": 0, "content": content}], "modelVersion": "scripted"});
            frames.insert(0, format!("data: {event}\r\n\r\n"));
        }
    }
    Answer::sse(frames)
}

async fn ask_and_read(wire: Wire, answer: Answer, request: &Value, stream: bool) -> (Reply, AssembledReply) {
    let endmark = Endmark::start(Script::new().default_answer(answer)).await;
    let heard = wire.ask(&endmark, request, stream).await;
    assert_eq!(endmark.calls(), 1, "nothing can go on with it");
    heard
}

fn wires_and_modes() -> impl Iterator<Item = (Wire, bool)> {
    [MESSAGES, RESPONSES, GEMINI].into_iter().flat_map(|wire| [(wire, false), (wire, true)])
}

#[tokio::test]
async fn a_cut_call_after_a_search_is_reported_as_cut() {
    for (wire, stream) in wires_and_modes() {
        for arguments in ["", r#"{"city":"Par"#] {
            let cut = answer(wire, ReplyPart::Call("get_weather", arguments), End::Limit, stream);
            let (reply, heard) = ask_and_read(wire, cut, &wire.request(stream), stream).await;
            let what = format!("{wire:?} {stream} {arguments:?}: {}", reply.text());
            let is_said =
                heard.error.is_some() || heard.stop.as_deref() == Some(wire.finish_reason(End::Limit));
            assert!(is_said, "{what}");
            match wire {
                // The call is delivered and reported as incomplete.
                RESPONSES => assert!(reply.text().contains("incomplete"), "{what}"),
                // The client has already received the beginning of the call.
                MESSAGES if stream => assert!(heard.error.is_some() && heard.stop.is_none(), "{what}"),
                _ => assert_eq!(heard.tool_calls, [], "{what}"),
            }
        }
    }
}

#[tokio::test]
async fn a_false_finish_reason_after_a_search_is_corrected() {
    for (wire, stream) in wires_and_modes() {
        let mut request = wire.request(stream);
        match wire {
            RESPONSES => request["text"] = json!({"format": {"type": "json_object"}}),
            GEMINI => request["generationConfig"]["responseMimeType"] = json!("application/json"),
            _ => {
                let format = json!({"type": "json_schema", "schema": {"type": "object"}});
                request["output_config"] = json!({"format": format});
            }
        }
        let lie = answer(wire, ReplyPart::Text(r#"{"a": [1, "#), End::Turn, stream);
        let (reply, heard) = ask_and_read(wire, lie, &request, stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Limit)), "{what}");

        // Complete replies are forwarded unchanged.
        for part in [ReplyPart::Text(r#"{"a": [1]}"#), ReplyPart::Call("get_weather", r#"{"city":"Paris"}"#)]
        {
            let whole = answer(wire, part, End::Calls, stream);
            let bytes = whole.body();
            let (reply, _) = self::ask_and_read(wire, whole, &request, stream).await;
            assert_eq!(reply.body, bytes, "{wire:?} {stream} {part:?}: {}", reply.text());
        }
    }
}
