//! Replies with content that a continuation request cannot show. They are never continued, keep all their
//! content, and are reported as cut.

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Reply, Script};

use crate::support::Endmark;
use crate::support::wire_replies::Wire;

fn message(content: &Value) -> Value {
    json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
           "stop_reason": "max_tokens", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 5}})
}

fn response(output: &Value) -> Value {
    json!({"id": "r", "object": "response", "status": "incomplete", "model": "m", "output": output,
           "incomplete_details": {"reason": "max_output_tokens"}})
}

fn candidate(parts: &Value) -> Value {
    json!({"responseId": "g", "modelVersion": "m",
           "candidates": [{"index": 0, "finishReason": "MAX_TOKENS", "content": {"role": "model", "parts": parts}}]})
}

/// Returns a candidate with the sources of a search.
fn grounded_candidate() -> Value {
    let mut reply = candidate(&json!([{"text": "The harbour was quiet"}]));
    let support = json!({"segment": {"startIndex": 0, "endIndex": 21}, "groundingChunkIndices": [0]});
    reply["candidates"][0]["groundingMetadata"] = json!({"webSearchQueries": ["harbour"],
        "groundingChunks": [{"web": {"uri": "https://example.com", "title": "t"}}], "groundingSupports": [support]});
    reply
}

/// Checks that the reply is disclosed as cut by its limit, and that a stream states why it was not continued.
fn assert_disclosed_as_cut(reply: &Reply, what: &str) {
    let streams = reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let disclosed = if streams {
        let events = reply.json_events();
        let disclosed = |event: &Value| [&event["endmark"], &event["response"]["endmark"]].map(Clone::clone);
        let disclosed = events.iter().flat_map(disclosed).find(Value::is_object).unwrap_or_default();
        let reason = disclosed["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("no request can represent"), "{what}: {disclosed}");
        ["outcome", "cut"].map(|name| disclosed[name].as_str().map(str::to_owned))
    } else {
        ["outcome", "cut"].map(|name| reply.header(&format!("x-endmark-{name}")).map(str::to_owned))
    };
    assert_eq!(
        disclosed.each_ref().map(Option::as_deref),
        [Some("cut"), Some("limit")],
        "{what}: {}",
        reply.text()
    );
}

/// Returns the events of a stream without the `endmark` objects.
fn without_endmark(reply: &Reply) -> Vec<Value> {
    let mut events = reply.json_events();
    for event in &mut events {
        if let Some(event) = event.as_object_mut() {
            event.remove("endmark");
        }
    }
    events
}

/// Returns replies with unshown content, cut at the limit, and the name of each content field.
fn replies_with_unshown_content() -> Vec<(Wire, Value, &'static str)> {
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let text = json!({"type": "text", "text": "I search."});
    let message_item = json!({"type": "message", "id": "i", "role": "assistant", "status": "completed",
                      "content": [{"type": "output_text", "text": "I search.", "annotations": []}]});
    let looked = json!({"type": "web_search_call", "id": "w", "status": "completed"});
    let (messages, responses, gemini) = (
        Wire::Other(ModelFormat::Messages),
        Wire::Other(ModelFormat::Responses),
        Wire::Other(ModelFormat::Gemini),
    );
    let audio = json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{
        "index": 0, "finish_reason": "length",
        "message": {"role": "assistant", "content": null, "audio": {"id": "a", "data": "AAAA", "transcript": "I se"}}}]});
    vec![
        (messages, message(&json!([text, search, found])), "content"),
        (messages, message(&json!([search, found, text])), "content"),
        (messages, message(&json!([search, found])), "content"),
        (responses, response(&json!([message_item, looked])), "output"),
        (responses, response(&json!([looked, message_item])), "output"),
        (gemini, candidate(&json!([{"text": "Code:"}, {"executableCode": {"code": "pri"}}])), "candidates"),
        (gemini, candidate(&json!([{"inlineData": {"data": "AA"}}, {"text": "A ha"}])), "candidates"),
        (
            gemini,
            candidate(
                &json!([{"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": true}}]),
            ),
            "candidates",
        ),
        (gemini, grounded_candidate(), "candidates"),
        (Wire::Chat, audio, "choices"),
        (Wire::Chat, completion("images", &image()), "choices"),
        (Wire::Chat, completion("executed_tools", &executed_tool()), "choices"),
    ]
}

#[tokio::test]
async fn a_whole_response_keeps_its_unshown_content() {
    for (wire, reply, content) in replies_with_unshown_content() {
        let endmark = Endmark::start_resuming(Script::new().then(Answer::json(200, &reply))).await;
        let (answer, _) = wire.ask(&endmark, &wire.request(false), false).await;
        assert_eq!(endmark.calls(), 1, "{wire:?} {reply}");
        assert_eq!(answer.json()[content], reply[content], "{wire:?}");
        assert_disclosed_as_cut(&answer, &format!("{wire:?} {reply}"));
        // The cut is also disclosed if the client's own limit caused it.
        let mut limited = wire.request(false);
        limited["max_tokens"] = json!(5);
        let endmark = Endmark::start(Script::new().then(Answer::json(200, &reply))).await;
        let (answer, _) = wire.ask(&endmark, &limited, false).await;
        assert_eq!((answer.header("x-endmark-outcome"), answer.json()), (Some("cut"), reply), "{wire:?}");
    }
}

#[tokio::test]
async fn a_streamed_message_is_not_continued_after_unshown_content() {
    let block = |index: u32, block: Value| {
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    };
    let mut start = message(&json!([]));
    start["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": start})];
    events.extend(block(0, json!({"type": "text", "text": "I search."})));
    events.extend(block(1, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}}));
    events.push(json!({"type": "message_stop"}));
    let frames: Vec<String> = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect();
    let wire = Wire::Other(ModelFormat::Messages);
    let endmark = Endmark::start_resuming(Script::new().then(Answer::sse(frames))).await;
    let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
    assert_eq!((endmark.calls(), heard.stop.as_deref()), (1, Some("max_tokens")));
    assert_disclosed_as_cut(&reply, "a search");
}

#[tokio::test]
async fn a_gemini_stream_is_not_continued_after_unshown_content() {
    let wire = Wire::Other(ModelFormat::Gemini);
    for (_, reply, _) in replies_with_unshown_content().into_iter().filter(|(other, ..)| *other == wire) {
        let endmark = Endmark::start_resuming(
            Script::new()
                .then(Answer::sse([format!("data: {reply}\r\n\r\n")]))
                .default_answer(Answer::server_error()),
        );
        let endmark = endmark.await;
        let (answer, _) = wire.ask(&endmark, &wire.request(true), true).await;
        assert_eq!((endmark.calls(), without_endmark(&answer)), (1, vec![reply.clone()]), "{reply}");
        assert_disclosed_as_cut(&answer, &reply.to_string());
    }
}

/// The sources of the rest would be lost by joining.
#[tokio::test]
async fn a_continuation_with_search_sources_is_not_joined() {
    let wire = Wire::Other(ModelFormat::Gemini);
    let mut rest = grounded_candidate();
    rest["candidates"][0]["finishReason"] = json!("STOP");
    rest["candidates"][0]["content"]["parts"][0]["text"] = json!(" there was a harbour.");
    let mut whole = candidate(&json!([{"text": "Once upon a time"}]));
    // Without search results there are no sources to lose.
    whole["candidates"][0]["groundingMetadata"] = json!({});
    let script = Script::new().then(Answer::json(200, &whole)).default_answer(Answer::json(200, &rest));
    let endmark = Endmark::start_resuming(script).await;
    let (answer, heard) = wire.ask(&endmark, &wire.request(false), false).await;
    assert_eq!((heard.text.as_str(), heard.stop.as_deref()), ("Once upon a time", Some("MAX_TOKENS")));
    assert_eq!(answer.header("x-endmark-outcome"), Some("exhausted"), "{}", answer.text());
}

/// Returns a generated image in Chat format.
fn image() -> Value {
    json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
}

/// Returns the result of a server-side tool in Chat format.
fn executed_tool() -> Value {
    json!([{"index": 0, "type": "search", "arguments": "{}", "output": "a harbour"}])
}

/// Returns a cut Chat reply whose message has this additional field.
fn completion(name: &str, more: &Value) -> Value {
    let mut message = json!({"role": "assistant", "content": "The harbour was"});
    message[name] = more.clone();
    json!({"id": "c", "object": "chat.completion", "model": "m",
           "choices": [{"index": 0, "finish_reason": "length", "message": message}]})
}

/// Returns a chunk of Chat Completions.
fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!(
        "data: {}\n\n",
        json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
    )
}

#[tokio::test]
async fn a_speech_stream_is_not_continued() {
    let frames = [
        chunk(&json!({"role": "assistant", "audio": {"id": "a", "transcript": "I se"}}), None),
        chunk(&json!({"audio": {"data": "AAAA"}}), None),
        chunk(&json!({}), Some("length")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let events: Vec<Value> =
        frames.iter().filter_map(|frame| serde_json::from_str(frame.get(6..)?).ok()).collect();
    let endmark = Endmark::start_resuming(Script::new().then(Answer::sse(frames))).await;
    let (reply, _) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
    assert_eq!((endmark.calls(), without_endmark(&reply)), (1, events));
    assert_disclosed_as_cut(&reply, "speech");
}

/// The rest would belong to the thought. A model that sees only the text would continue differently.
#[tokio::test]
async fn a_text_that_is_followed_by_a_thought_is_not_continued() {
    let frames = [
        chunk(&json!({"role": "assistant", "content": "The answer is "}), None),
        chunk(&json!({"reasoning_content": "Let me see"}), None),
        chunk(&json!({}), Some("length")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let events: Vec<Value> =
        frames.iter().filter_map(|frame| serde_json::from_str(frame.get(6..)?).ok()).collect();
    let endmark = Endmark::start_resuming(Script::new().then(Answer::sse(frames))).await;
    let (reply, _) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
    assert_eq!((endmark.calls(), without_endmark(&reply)), (1, events));
    assert_disclosed_as_cut(&reply, "a thought");

    let thought = json!({"type": "thinking", "thinking": "Let me", "signature": ""});
    let text = json!({"type": "text", "text": "The answer is "});
    let item = json!({"type": "reasoning", "id": "i", "summary": []});
    let message_item = json!({"type": "message", "id": "i", "role": "assistant", "status": "completed",
                      "content": [{"type": "output_text", "text": "The answer is ", "annotations": []}]});
    let parts = json!([{"text": "The answer is "}, {"text": "Let me", "thought": true}]);
    for (dialect, reply) in [
        (ModelFormat::Messages, message(&json!([text, thought]))),
        (ModelFormat::Responses, response(&json!([message_item, item]))),
        (ModelFormat::Gemini, candidate(&parts)),
    ] {
        let endmark = Endmark::start_resuming(Script::new().then(Answer::json(200, &reply))).await;
        let wire = Wire::Other(dialect);
        let (answer, _) = wire.ask(&endmark, &wire.request(false), false).await;
        assert_eq!((endmark.calls(), answer.json()), (1, reply), "{wire:?}");
        assert_disclosed_as_cut(&answer, "a thought");
    }
}

/// Only the server can report the end of these items, which are neither function calls nor custom calls.
#[tokio::test]
async fn an_item_left_open_by_its_server_is_not_closed() {
    let wire = Wire::Other(ModelFormat::Responses);
    for (kind, delta) in [
        ("apply_patch_call", "response.apply_patch_call_operation_diff.delta"),
        ("mcp_call", "response.mcp_call_arguments.delta"),
        ("image_generation_call", "response.image_generation_call.generating"),
    ] {
        let mut frames = wire.frames(&[], None);
        let item = json!({"id": "i", "type": kind, "status": "in_progress", "call_id": "c", "name": "f", "input": ""});
        let ended = json!({"id": "resp_1", "object": "response", "status": "incomplete", "error": null,
            "incomplete_details": {"reason": "max_output_tokens"}, "output": [], "model": "m", "usage": null});
        for event in [
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": delta, "output_index": 0, "item_id": "i", "delta": "rm -r"}),
            json!({"type": "response.incomplete", "response": ended}),
        ] {
            frames.push(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
        }
        let endmark = Endmark::start_resuming(Script::new().then(Answer::sse(frames))).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
        let what = format!("{kind}: {}", reply.text());
        assert_eq!((endmark.calls(), heard.stop.as_deref()), (1, Some("incomplete")), "{what}");
        assert!(!what.contains("output_item.done") && !what.contains("\"completed\""), "{what}");
        assert_disclosed_as_cut(&reply, &what);
    }
}

/// Covers all finish reasons.
#[tokio::test]
async fn a_call_without_its_last_piece_is_reported_as_cut() {
    let wire = Wire::Other(ModelFormat::Gemini);
    let begins = json!({"functionCall": {"name": "f", "willContinue": true}});
    let piece = json!({"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": true}});
    let last = json!({"functionCall": {}});
    for (parts, is_cut) in [(vec![&begins, &piece], true), (vec![&begins, &piece, &last], false)] {
        for word in ["STOP", "MAX_TOKENS"] {
            let chunks = parts
                .iter()
                .map(|part| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}));
            let end = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": word}]});
            let frames: Vec<String> =
                chunks.chain([end]).map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
            let sent = frames.concat();
            let endmark = Endmark::start(Script::new().then(Answer::sse(frames))).await;
            let reply = wire.ask_raw(&endmark, &wire.request(true), true).await;
            let what = format!("{word} {is_cut}: {}", reply.text());
            let is_limit = is_cut || word == "MAX_TOKENS";
            let last = reply.json_events().pop().unwrap_or_default();
            let expected = if is_limit { "MAX_TOKENS" } else { "STOP" };
            assert_eq!(last["candidates"][0]["finishReason"], expected, "{what}");
            assert_eq!(endmark.calls(), 1, "{what}");
            if is_limit {
                assert!(what.contains("\"outcome\":\"cut\""), "{what}");
            } else {
                assert_eq!(reply.text(), sent, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_chat_stream_with_an_image_or_a_server_tool_is_not_continued() {
    for (name, more) in [("images", image()), ("executed_tools", executed_tool())] {
        for before in [false, true] {
            let text = chunk(&json!({"role": "assistant", "content": "The harbour was"}), None);
            let mut beside = json!({"content": ""});
            beside[name] = more.clone();
            let mut frames = vec![text, chunk(&beside, None)];
            if before {
                frames.reverse();
            }
            frames.extend([chunk(&json!({}), Some("length")), "data: [DONE]\n\n".to_owned()]);
            let events: Vec<Value> =
                frames.iter().filter_map(|frame| serde_json::from_str(frame.get(6..)?).ok()).collect();
            let rest = Wire::Chat.answer(&[], crate::support::wire_replies::End::Turn, false);
            let endmark =
                Endmark::start_resuming(Script::new().then(Answer::sse(frames)).default_answer(rest)).await;
            let (reply, _) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
            assert_eq!((endmark.calls(), without_endmark(&reply)), (1, events), "{name} {before}");
            assert_disclosed_as_cut(&reply, name);
        }
    }
}
