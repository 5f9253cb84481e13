//! Events that look like the end of a reply but are not, and pings between events.

use endmark_gateway::ResumeMode;
use endmark_recovery::Strategies;
use serde_json::json;
use testkit::{Answer, Fault, ModelFormat, Request, Script};

use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, read_stream};

/// Rows and elements have no end marker, so more of them may follow.
#[tokio::test]
async fn limited_rows_and_elements_continue_after_the_last_one() {
    let rows = ("jsonl", "{\"id\":1}\n{\"id\":2}\n", "{\"id\":3}\n");
    let elements = ("tags", "<row>1</row>\n<row>2</row>\n", "<row>3</row>\n");
    for (format, begun, rest) in [rows, elements] {
        for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
            let script = Script::new().then(wire.answer(&[ReplyPart::Text(begun)], End::Limit, stream));
            let script = script.default_answer(wire.answer(&[ReplyPart::Text(rest)], End::Turn, stream));
            // Every further request gets the same rest.
            let endmark = Endmark::start_with(script, |settings| {
                settings.resume.mode = ResumeMode::On;
                settings.resume.max_attempts = 3;
                settings.resume.strategies = Strategies::parse(["prefill", "prompt"]).unwrap();
            })
            .await;
            let request = Request::post(endmark.address, wire.path(stream)).json(&wire.request(stream));
            let reply = request.header("x-endmark-format", format).send().await.read().await;
            let heard = wire.read_reply(&reply);
            let what = format!("{format} {wire:?} {stream}: {}", reply.text());
            assert!(endmark.calls() > 1, "{what}");
            assert_eq!(heard.text, format!("{begun}{rest}"), "{what}");
        }
    }
}

/// The request states how many choices it wants.
#[tokio::test]
async fn a_stream_without_one_of_its_choices_is_not_whole() {
    let chunk = |delta: serde_json::Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let frames = [chunk(json!({"content": "One."}), None), chunk(json!({}), Some("stop"))];
    let length = frames.concat().len();
    let refused = Answer::error(400, "invalid_request_error", None, "no");
    for fault in [Fault::Close, Fault::Reset] {
        let broken = Answer::sse(frames.clone()).fault(length, fault);
        let endmark = Endmark::start(Script::new().then(broken).default_answer(refused.clone())).await;
        let body = json!({"model": "scripted", "stream": true, "n": 2, "messages": [{"role": "user", "content": "Tell."}]});
        let reply = endmark.ask(&body).await;
        let heard = read_stream(&reply);
        assert!(heard.error.is_some() && !heard.is_done, "{}", reply.text());
    }
}

/// Comments and pings of a server are kept.
#[tokio::test]
async fn a_whole_stream_with_comments_and_pings_is_unchanged() {
    let idle = [": still here\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n"];
    for wire in Wire::ALL {
        let parts = [ReplyPart::Text("The harbour."), ReplyPart::Call("get_time", "{}")];
        let frames = wire.frames(&parts, Some(End::Calls));
        let pings = if wire == Wire::Other(ModelFormat::Messages) { &idle[..] } else { &idle[..1] };
        for (idle, at) in pings.iter().flat_map(|idle| (0..frames.len()).map(move |at| (idle, at))) {
            let mut frames = frames.clone();
            frames.insert(at, (*idle).to_owned());
            let answer = Answer::sse(frames);
            let bytes = answer.body();
            let endmark = Endmark::start(Script::new().then(answer)).await;
            let reply = wire.ask_raw(&endmark, &wire.request(true), true).await;
            assert_eq!(reply.body, bytes, "{wire:?}, {idle:?} before {at}: {}", reply.text());
        }
    }
}

/// A stream that reported an error must not get a normal end.
#[tokio::test]
async fn no_end_is_added_after_an_error_event() {
    for wire in Wire::ALL {
        let mut frames = wire.frames(&[ReplyPart::Text("The harbour.")], Some(End::Turn));
        // In these two formats the last event contains only the end of the stream.
        if matches!(wire, Wire::Chat | Wire::Other(ModelFormat::Messages)) {
            frames.pop();
        }
        frames.push(wire.error_frame("overloaded_error", "no room"));
        let answer = Answer::sse(frames);
        let bytes = answer.body();
        let endmark = Endmark::start(Script::new().then(answer)).await;
        let reply = wire.ask_raw(&endmark, &wire.request(true), true).await;
        assert_eq!(reply.body, bytes, "{wire:?}: {}", reply.text());
    }
}
