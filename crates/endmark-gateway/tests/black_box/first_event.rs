//! Streams that fail before any part of a reply arrived are handled like a refused request.

use serde_json::json;
use testkit::{Answer, Fault, ModelFormat, Request, Script, Upstream};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const STORY: &str = "The harbour was quiet that morning.";

/// Returns the events that may precede a failure, with a description of each case.
fn failing_first_events(wire: Wire) -> Vec<(&'static str, Vec<String>)> {
    let broken = "data: {\"choices\": [{\"ind\n\n".to_owned();
    let mut good_behind = vec![broken.clone()];
    good_behind.extend(wire.frames(&[ReplyPart::Text("Something else.")], Some(End::Turn)));
    let error = wire.error_frame("overloaded_error", "we are overloaded");
    let mut beginnings = vec![
        ("a broken event", vec![broken]),
        ("a broken event before others", good_behind),
        ("an error", vec![error]),
    ];
    if wire == Wire::Other(ModelFormat::Responses) {
        let mut failed = wire.whole_reply(&[], "failed");
        failed["error"] = json!({"code": "server_error", "message": "we are overloaded"});
        let failed = json!({"type": "response.failed", "response": failed});
        beginnings.push(("a failure", vec![format!("event: response.failed\ndata: {failed}\n\n")]));
    }
    beginnings
}

/// Returns the events that open a reply and contain no part of it.
fn opening_events(wire: Wire) -> Vec<String> {
    let opening_frames =
        |events: usize| wire.frames(&[ReplyPart::Text("Nothing of this.")], None).into_iter().take(events);
    match wire {
        Wire::Chat => {
            let chunk =
                |choices| json!({"id": "first", "object": "chat.completion.chunk", "choices": choices});
            let delta = json!({"role": "assistant", "content": "", "refusal": null, "tool_calls": []});
            let filtered = chunk(json!([])).to_string();
            let role = chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])).to_string();
            [filtered, role].map(|data| format!("data: {data}\n\n")).into()
        }
        Wire::Other(ModelFormat::Responses) => opening_frames(3).collect(),
        Wire::Other(ModelFormat::Messages) => {
            opening_frames(2).chain(["event: ping\ndata: {\"type\": \"ping\"}\n\n".to_owned()]).collect()
        }
        Wire::Other(ModelFormat::Gemini) => {
            let bare =
                json!({"candidates": [{"index": 0, "content": {"role": "model"}}], "responseId": "first"});
            vec![format!("data: {bare}\r\n\r\n")]
        }
    }
}

#[tokio::test]
async fn an_opened_but_empty_reply_is_replaced() {
    for wire in Wire::ALL {
        let whole = wire.frames(&[ReplyPart::Text(STORY)], Some(End::Turn));
        let openings = opening_events(wire);
        for opened in [1, openings.len()] {
            let mut failures = vec![("the end", None, None), ("a reset", None, Some(Fault::Reset))];
            failures.extend(
                failing_first_events(wire).into_iter().map(|(what, frames)| (what, Some(frames), None)),
            );
            for (what, then, fault) in failures {
                let mut frames = openings[..opened].to_vec();
                frames.extend(then.into_iter().flatten());
                let length = frames.concat().len();
                let answer = Answer::sse(frames);
                let answer = if let Some(fault) = fault { answer.fault(length, fault) } else { answer };
                let script = Script::new().then(answer).default_answer(Answer::sse(whole.clone()));
                let endmark = Endmark::start(script).await;
                let (reply, _) = wire.ask(&endmark, &wire.request(true), true).await;
                let what = format!("{wire:?}, {opened} events, then {what}: {}", reply.text());
                assert_eq!(reply.text(), whole.concat(), "{what}");
                assert_eq!(reply.header("x-endmark-retries"), Some("1"), "{what}");
                assert_eq!(endmark.calls(), 2, "{what}");
            }
        }
    }
}

/// If a model reasons for minutes, the client gets the opening events at once.
#[tokio::test]
async fn an_opening_is_not_held_until_a_slow_model_answers() {
    for wire in Wire::ALL {
        let opening = opening_events(wire).concat();
        let slow = Answer::sse([opening.clone()]).stall_after(opening.len());
        let endmark = Endmark::start(Script::new().default_answer(slow)).await;
        let request = Request::post(endmark.address, wire.path(true)).json(&wire.request(true));
        let mut reply = request.send().await;
        let mut came = Vec::new();
        while came.len() < opening.len() {
            came.extend(reply.next_bytes().await.unwrap().unwrap());
        }
        assert_eq!(String::from_utf8(came).unwrap(), opening, "{wire:?}");
        assert_eq!(endmark.calls(), 1, "{wire:?}");
    }
}

#[tokio::test]
async fn a_reply_without_a_first_event_is_requested_again() {
    for wire in Wire::ALL {
        for (what, frames) in failing_first_events(wire) {
            for reset in [false, true] {
                let length = frames.concat().len();
                let answer = Answer::sse(frames.clone());
                let answer = if reset { answer.fault(length, Fault::Reset) } else { answer };
                let whole = wire.frames(&[ReplyPart::Text(STORY)], Some(End::Turn));
                let script = Script::new().then(answer).default_answer(Answer::sse(whole.clone()));
                let endmark = Endmark::start(script).await;
                let (reply, _) = wire.ask(&endmark, &wire.request(true), true).await;
                let what = format!("{wire:?}, {what}, {reset}: {}", reply.text());
                // The client gets the bytes of the second answer unchanged.
                assert_eq!(reply.text(), whole.concat(), "{what}");
                assert_eq!(reply.header("x-endmark-retries"), Some("1"), "{what}");
                assert_eq!(endmark.calls(), 2, "{what}");
            }
        }
    }
}

/// A stream without a content type is recognised by its first line.
#[tokio::test]
async fn a_stream_without_a_content_type_is_requested_again() {
    for wire in Wire::ALL {
        let all = failing_first_events(wire).into_iter().chain([("nothing at all", Vec::new())]);
        for ((what, frames), reset) in all.flat_map(|one| [(one.clone(), false), (one, true)]) {
            let length = frames.concat().len();
            let answer = Answer::sse(frames).without_type();
            let answer = if reset { answer.fault(length, Fault::Reset) } else { answer };
            let whole = wire.frames(&[ReplyPart::Text(STORY)], Some(End::Turn));
            let script = Script::new().then(answer).default_answer(Answer::sse(whole.clone()).without_type());
            let endmark = Endmark::start(script).await;
            let (reply, _) = wire.ask(&endmark, &wire.request(true), true).await;
            assert_eq!(reply.text(), whole.concat(), "{wire:?}, {what}");
            assert_eq!(reply.header("x-endmark-retries"), Some("1"), "{wire:?}, {what}");
            assert_eq!((reply.header("content-type"), endmark.calls()), (Some("text/event-stream"), 2));
        }
    }
}

/// Libraries that requested a stream read the body as one, whatever its content type is.
#[tokio::test]
async fn a_stream_with_another_content_type_is_a_stream() {
    for (wire, kind) in Wire::ALL.into_iter().flat_map(|wire| {
        ["application/json", "application/json; charset=utf-8", "text/plain"].map(|kind| (wire, kind))
    }) {
        let called = |frames: &[String]| Answer::new(200, kind, frames.concat());
        let whole = wire.frames(&[ReplyPart::Text(STORY)], Some(End::Turn));
        let endmark = Endmark::start(Script::new().then(called(&whole))).await;
        let (reply, _) = wire.ask(&endmark, &wire.request(true), true).await;
        assert_eq!((reply.text(), reply.status), (whole.concat(), 200), "{wire:?} {kind}");
        assert_eq!(reply.header("content-type"), Some("text/event-stream"), "{wire:?} {kind}");

        let (first, rest) = STORY.split_at(15);
        let cut = wire.frames(&[ReplyPart::Text(first)], Some(End::Limit));
        let rest = wire.frames(&[ReplyPart::Text(rest)], Some(End::Turn));
        let script = Script::new().then(called(&cut)).default_answer(called(&rest));
        let endmark = Endmark::start_resuming(script).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
        assert_eq!((heard.text.as_str(), endmark.calls()), (STORY, 2), "{wire:?} {kind}: {}", reply.text());
    }
}

/// Some servers ignore `stream` and return a whole reply.
#[tokio::test]
async fn a_whole_reply_to_a_stream_request_passes() {
    for wire in Wire::ALL {
        let whole = wire.whole_reply(&[ReplyPart::Text(STORY)], wire.finish_reason(End::Turn));
        let endmark = Endmark::start(Script::new().then(Answer::json(200, &whole))).await;
        let reply = wire.ask_raw(&endmark, &wire.request(true), true).await;
        assert_eq!(
            (reply.json(), reply.header("content-type")),
            (whole, Some("application/json")),
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn the_fallback_answers_if_the_first_event_is_missing() {
    for (what, frames) in failing_first_events(Wire::Chat) {
        let whole = Wire::Chat.answer(&[ReplyPart::Text(STORY)], End::Turn, true);
        let second = Upstream::start(Script::new().default_answer(whole)).await;
        let first = Script::new().default_answer(Answer::sse(frames));
        let endmark = Endmark::with_fallback(first, &second, ("key", "other"), |_| {}).await;
        let (reply, heard) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
        assert_eq!((heard.text.as_str(), heard.error), (STORY, None), "{what}: {}", reply.text());
    }
}

#[tokio::test]
async fn if_no_upstream_answers_the_stream_ends_in_an_error() {
    for wire in Wire::ALL {
        for (what, frames) in failing_first_events(wire) {
            let endmark = Endmark::start(Script::new().default_answer(Answer::sse(frames))).await;
            let body = wire.request(true);
            let reply = Request::post(endmark.address, wire.path(true)).json(&body).send().await.read().await;
            let what = format!("{wire:?}, {what}: {}", reply.text());
            assert_eq!(reply.status, 502, "{what}");
            assert!(reply.text().contains("endmark_upstream_answer_lost"), "{what}");
            assert_eq!(endmark.calls(), 3, "{what}");
            for end in ["[DONE]", "message_stop", "response.completed", "Something else"] {
                assert!(!reply.text().contains(end), "{what}");
            }
        }
    }
}

/// An error that a retry cannot fix is final.
#[tokio::test]
async fn a_refusal_in_the_stream_passes_without_a_retry() {
    for wire in Wire::ALL {
        let refusal = wire.error_frame("authentication_error", "the key is not known");
        let endmark = Endmark::start(Script::new().default_answer(Answer::sse([refusal]))).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
        let what = format!("{wire:?}: {}", reply.text());
        assert!(reply.text().contains("the key is not known"), "{what}");
        assert!(heard.error.is_some() && heard.stop.is_none(), "{what}");
        for end in ["[DONE]", "message_stop", "response.completed"] {
            assert!(!reply.text().contains(end), "{what}");
        }
    }
}
