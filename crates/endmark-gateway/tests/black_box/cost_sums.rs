//! The disclosed usage includes all calls, even those whose answers were not used.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use endmark_gateway::ResumeMode;
use endmark_recovery::Strategies;
use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const MESSAGES: Wire = Wire::Other(ModelFormat::Messages);

/// Returns an answer that runs a tool of the provider. It costs 1,000 input and 500 output tokens.
fn search_answer(stream: bool) -> Answer {
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let parts = [ReplyPart::Text(" quiet")];
    if !stream {
        let mut whole = MESSAGES.whole_reply(&parts, "pause_turn");
        whole["content"].as_array_mut().unwrap().push(search);
        whole["usage"] = json!({"input_tokens": 1000, "output_tokens": 500});
        return Answer::json(200, &whole);
    }
    let mut frames = MESSAGES.frames(&parts, None);
    let usage = json!({"input_tokens": 1000, "output_tokens": 500});
    let paused = json!({"stop_reason": "pause_turn", "stop_sequence": null});
    for event in [
        json!({"type": "content_block_start", "index": 1, "content_block": search}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": paused, "usage": usage}),
        json!({"type": "message_stop"}),
    ] {
        frames.push(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    }
    Answer::sse(frames)
}

/// Returns a disclosed value of a reply, from its stream or its headers.
fn disclosed_value(reply: &testkit::Reply, endmark: Option<&Value>, name: &str) -> String {
    let in_stream = endmark.map(|endmark| endmark[name].clone());
    let header = || reply.header(&format!("x-endmark-{name}")).unwrap_or_default().to_owned();
    in_stream.map_or_else(header, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

#[tokio::test]
async fn an_unjoinable_continuation_is_counted_and_not_requested_twice() {
    for stream in [true, false] {
        let first = MESSAGES.answer(&[ReplyPart::Text("The harbour was")], End::Limit, stream);
        let script = Script::new().then(first).default_answer(search_answer(stream));
        let endmark = Endmark::start_resuming(script).await;
        let (reply, heard) = MESSAGES.ask(&endmark, &MESSAGES.request(stream), stream).await;
        assert_eq!(endmark.calls(), 2, "{}", reply.text());
        assert_eq!(heard.output_tokens, Some(507), "{}", reply.text());
        let log = endmark.log(1).await;
        let shown = endmark.store.show(&log[0].request_id).unwrap().unwrap();
        let why = &shown.pieces[1].piece.why;
        assert!(why.contains("a tool that the provider runs itself"), "{why}");
        assert!(!why.contains("gone"), "{why}");
    }
}

#[tokio::test]
async fn answers_that_are_not_joined_at_once_count_as_attempts() {
    for stream in [true, false] {
        let first = MESSAGES.answer(
            &[ReplyPart::Text("All of the boats had come in, and the harbour was quiet ")],
            End::Limit,
            stream,
        );
        let rest = MESSAGES.answer(&[ReplyPart::Text("and calm.")], End::Turn, stream);
        // The answer continues at the cut and not after the quoted part. It is accepted only when it arrives
        // a second time.
        let endmark = Endmark::start_with(Script::new().then(first).default_answer(rest), |settings| {
            settings.resume.mode = ResumeMode::On;
            settings.resume.max_attempts = 3;
            settings.resume.strategies = Strategies::parse(["prefill", "prompt"]).unwrap();
        })
        .await;
        let (reply, heard) = MESSAGES.ask(&endmark, &MESSAGES.request(stream), stream).await;
        assert_eq!(
            heard.text,
            "All of the boats had come in, and the harbour was quiet and calm.",
            "{}",
            reply.text()
        );
        assert_eq!((endmark.calls(), heard.output_tokens), (4, Some(28)), "{}", reply.text());
        assert_eq!(disclosed_value(&reply, heard.endmark.as_ref(), "attempts"), "3", "{}", reply.text());
    }
}

/// Returns a reply with this content, with or without its usage.
fn whole_answer(wire: Wire, parts: &[ReplyPart<'_>], end: End, is_counted: bool) -> Answer {
    let mut whole = wire.whole_reply(parts, wire.finish_reason(end));
    if !is_counted {
        whole.as_object_mut().unwrap().retain(|name, _| !name.starts_with("usage"));
    }
    Answer::json(200, &whole)
}

#[tokio::test]
async fn a_sum_without_one_call_is_disclosed_as_a_minimum() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        for is_counted in [true, false] {
            let first = wire.answer(&[ReplyPart::Text("The harbour was")], End::Limit, stream);
            let rest = whole_answer(wire, &[ReplyPart::Text(" quiet.")], End::Turn, is_counted);
            let endmark = Endmark::start_resuming(Script::new().then(first).default_answer(rest)).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
            let what = format!("{wire:?} {stream} {is_counted}: {}", reply.text());
            // In a stream of Chat, counts are sent only if the client requested them.
            let gets_counts = !stream || wire != Wire::Chat;
            let is_told = !is_counted && gets_counts;
            let parts = disclosed_value(&reply, heard.endmark.as_ref(), "usage");
            assert_eq!(parts == "at_least", is_told, "{what}");
            assert_eq!(heard.text, "The harbour was quiet.", "{what}");
        }
    }
}

/// A stream reports its usage at the end, which a broken stream lacks.
#[tokio::test]
async fn a_broken_stream_makes_the_sum_a_minimum() {
    for wire in Wire::ALL {
        let first = Answer::sse(wire.frames(&[ReplyPart::Text("The harbour was")], None));
        let rest = whole_answer(wire, &[ReplyPart::Text(" quiet.")], End::Turn, true);
        let endmark = Endmark::start_resuming(Script::new().then(first).default_answer(rest)).await;
        let mut body = wire.request(true);
        if wire == Wire::Chat {
            body["stream_options"] = json!({"include_usage": true});
        }
        let (reply, heard) = wire.ask(&endmark, &body, true).await;
        let what = format!("{wire:?}: {}", reply.text());
        assert_eq!(disclosed_value(&reply, heard.endmark.as_ref(), "usage"), "at_least", "{what}");
        assert_eq!(heard.text, "The harbour was quiet.", "{what}");
    }
}

#[tokio::test]
async fn a_refused_continuation_is_not_disclosed_as_an_attempt() {
    let first = Wire::Chat.answer(&[ReplyPart::Text("I'll wri")], End::Limit, true);
    let cut = [ReplyPart::Text("te it."), ReplyPart::Call("get_weather", r#"{"city": "Ber"#)];
    let script = Script::new()
        .then(first)
        .then(Wire::Chat.answer(&cut, End::Limit, true))
        .default_answer(Answer::error(400, "invalid_request_error", None, "no more of it"));
    let endmark = Endmark::start_resuming(script).await;
    let (reply, heard) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
    let reason = disclosed_value(&reply, heard.endmark.as_ref(), "reason");
    assert!(reason.starts_with("not resumed: ") && reason.contains("no more of it"), "{reason}");
    assert_eq!(disclosed_value(&reply, heard.endmark.as_ref(), "attempts"), "1", "{}", reply.text());
}
