//! Replies that end directly after a whole call: the gateway discloses that further calls may be missing.

use endmark_gateway::{OnMissing, Prefill};
use serde_json::json;
use testkit::{Answer, Fault, ModelFormat, Request, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const PARIS: ReplyPart<'static> = ReplyPart::Call("get_weather", r#"{"city":"Paris"}"#);

/// Starts a gateway whose upstream first returns this answer, and then refuses all requests.
async fn start_with_answer(answer: Answer) -> Endmark {
    let refused = Answer::error(400, "invalid_request_error", None, "no");
    Endmark::start(Script::new().then(answer).default_answer(refused)).await
}

#[tokio::test]
async fn a_stream_that_breaks_after_a_whole_call_may_lack_calls() {
    for wire in Wire::ALL {
        for fault in [None, Some(Fault::Reset)] {
            let frames = wire.frames(&[PARIS], None);
            let length = frames.concat().len();
            let answer = Answer::sse(frames);
            let answer = match fault {
                Some(fault) => answer.fault(length, fault),
                None => answer,
            };
            let endmark = start_with_answer(answer).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
            let what = format!("{wire:?} {fault:?}: {}", reply.text());
            assert_eq!(heard.tool_calls.len(), 1, "{what}");
            assert_eq!(
                (heard.stop.as_deref(), heard.error),
                (Some(wire.finish_reason(End::Calls)), None),
                "{what}"
            );
            let disclosed = heard.endmark.unwrap_or_default();
            assert_eq!(
                (&disclosed["outcome"], &disclosed["cut"]),
                (&"cut".into(), &"dropped".into()),
                "{what}"
            );
            assert_eq!(disclosed["reason"], "calls_may_be_missing", "{what}");
            let row = endmark.log(1).await.remove(0);
            assert_eq!(
                (row.final_status, row.reason.as_str()),
                (endmark_store::FinalStatus::Exhausted, "calls_may_be_missing")
            );
        }
    }
}

/// If the prompt asks for one call, the answer contains only that call, even if the model wanted more.
#[tokio::test]
async fn a_single_call_continuation_does_not_reveal_other_calls() {
    const CUT: ReplyPart<'static> = ReplyPart::Call("get_weather", r#"{"city":"Par"#);
    const TIME: ReplyPart<'static> = ReplyPart::Call("get_time", r#"{"tz":"CET"}"#);
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        if !stream && wire == Wire::Other(ModelFormat::Messages) || wire == Wire::Other(ModelFormat::Gemini) {
            // These formats send arguments as an object, so the beginning cannot be quoted and the request is
            // repeated.
            continue;
        }
        for (answer, calls, reason) in
            [([PARIS].as_slice(), 1, Some("calls_may_be_missing")), (&[PARIS, TIME], 2, None)]
        {
            let script = Script::new().then(wire.answer(&[CUT], End::Limit, stream));
            let script = script.default_answer(wire.answer(answer, End::Calls, stream));
            let endmark = Endmark::start_with(script, |settings| {
                settings.upstreams[0].prefill = Prefill::Never;
            })
            .await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
            let what = format!("{wire:?} {stream}: {}", reply.text());
            assert_eq!(
                (heard.tool_calls.len(), heard.stop.as_deref()),
                (calls, Some(wire.finish_reason(End::Calls))),
                "{what}"
            );
            let disclosed = heard.endmark.unwrap_or_default();
            let parts = |name: &str| {
                let header = reply.header(&format!("x-endmark-{name}")).map(str::to_owned);
                disclosed[name].as_str().map(str::to_owned).or(header)
            };
            assert_eq!(
                (parts("outcome").as_deref(), parts("reason").as_deref()),
                (Some("resumed"), reason),
                "{what}"
            );
            let log = endmark.log(1).await;
            assert_eq!(log[0].reason.contains("may be missing"), reason.is_some(), "{}", log[0].reason);
        }
    }
}

#[tokio::test]
async fn a_limit_reached_directly_after_a_whole_call_is_disclosed() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            if !stream && wire == Wire::Other(ModelFormat::Messages) {
                // An unstreamed Messages reply does not show whether an input is cut, so the call counts as
                // cut.
                continue;
            }
            let endmark = start_with_answer(wire.answer(&[PARIS], End::Limit, stream)).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
            let what = format!("{wire:?} {stream}: {}", reply.text());
            assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Calls)), "{what}");
            let disclosed = heard.endmark.unwrap_or_default();
            let parts = |name: &str| {
                let header = reply.header(&format!("x-endmark-{name}")).map(str::to_owned);
                disclosed[name].as_str().map(str::to_owned).or(header).unwrap_or_default()
            };
            assert_eq!((parts("outcome").as_str(), parts("cut").as_str()), ("cut", "limit"), "{what}");
            assert_eq!(parts("reason"), "calls_may_be_missing", "{what}");
        }
    }
}

/// Tests the configuration for replies that may lack calls.
#[tokio::test]
async fn a_reply_that_may_lack_calls_ends_as_cut_if_configured() {
    let text = Wire::Chat.answer(&[ReplyPart::Text(r#"{"city":"Paris"}"#)], End::Turn, false);
    let cut = ReplyPart::Call("get_weather", r#"{"city":"Par"#);
    for stream in [false, true] {
        for (parts, answered, outcome) in [(PARIS, None, "cut"), (cut, Some(text.clone()), "resumed")] {
            let refused = Answer::error(400, "invalid_request_error", None, "no");
            let script = Script::new()
                .then(Wire::Chat.answer(&[parts], End::Limit, stream))
                .default_answer(answered.unwrap_or(refused));
            let endmark =
                Endmark::start_with(script, |settings| settings.tools.on_missing = OnMissing::Cut).await;
            let (reply, heard) = Wire::Chat.ask(&endmark, &Wire::Chat.request(stream), stream).await;
            let what = format!("{stream} {parts:?}: {}", reply.text());
            assert_eq!(
                heard.tool_calls,
                [("get_weather".to_owned(), r#"{"city":"Paris"}"#.to_owned())],
                "{what}"
            );
            assert_eq!((heard.stop.as_deref(), heard.error), (Some("length"), None), "{what}");
            let disclosed = heard.endmark.unwrap_or_default();
            let disclosed = |name: &str| {
                let header = reply.header(&format!("x-endmark-{name}")).map(str::to_owned);
                disclosed[name].as_str().map(str::to_owned).or(header).unwrap_or_default()
            };
            assert_eq!(
                [disclosed("outcome").as_str(), &disclosed("reason")],
                [outcome, "calls_may_be_missing"],
                "{what}"
            );
        }
    }
    for wire in Wire::ALL {
        let refused = Answer::error(400, "invalid_request_error", None, "no");
        let script = Script::new().then(Answer::sse(wire.frames(&[PARIS], None))).default_answer(refused);
        let endmark =
            Endmark::start_with(script, |settings| settings.tools.on_missing = OnMissing::Cut).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
        assert!(heard.stop.is_none() && heard.error.is_some(), "{wire:?}: {}", reply.text());
    }
}

/// A request that forbids parallel calls gets at most one call, so no further call can be missing.
#[tokio::test]
async fn a_reply_without_parallel_calls_is_whole_after_one_call() {
    let answer = Wire::Chat.answer(&[PARIS], End::Limit, false);
    let endmark = start_with_answer(answer).await;
    let mut body = Wire::Chat.request(false);
    body["parallel_tool_calls"] = json!(false);
    let (reply, heard) = Wire::Chat.ask(&endmark, &body, false).await;
    assert_eq!(heard.stop.as_deref(), Some("tool_calls"), "{}", reply.text());
    assert_eq!((reply.header("x-endmark-outcome"), reply.header("x-endmark-reason")), (Some("whole"), None));
    // The older `function_call` field holds a single call, so no further call can be missing here either.
    let call = json!({"name": "get_weather", "arguments": r#"{"city":"Paris"}"#});
    let message = json!({"role": "assistant", "content": null, "function_call": call});
    let answer = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "length"}]});
    let endmark = start_with_answer(Answer::json(200, &answer)).await;
    let reply = endmark.ask(&Wire::Chat.request(false)).await;
    assert_eq!((reply.header("x-endmark-outcome"), reply.header("x-endmark-reason")), (Some("whole"), None));
}

/// Only the last part is cut. The whole call before it does not change the verdict.
#[tokio::test]
async fn a_cut_text_after_a_whole_call_is_not_whole() {
    let parts = [PARIS, ReplyPart::Text("Now the harb")];
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        if !stream && wire == Wire::Chat {
            // A Chat message does not show whether its text or its calls arrived first.
            continue;
        }
        let endmark = start_with_answer(wire.answer(&parts, End::Limit, stream)).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        assert_eq!(
            (heard.stop.as_deref(), heard.error),
            (Some(wire.finish_reason(End::Limit)), None),
            "{what}"
        );
        assert_eq!((heard.text.as_str(), heard.tool_calls.len()), ("Now the harb", 1), "{what}");
        let disclosed = heard.endmark.unwrap_or_default();
        let outcome = disclosed["outcome"].as_str().or_else(|| reply.header("x-endmark-outcome"));
        assert_eq!(outcome, Some("cut"), "{what}");
        assert_eq!(endmark.calls(), 1, "nothing can go on with it");

        let whole = wire.answer(&parts, End::Calls, stream);
        let bytes = whole.body();
        let endmark = start_with_answer(whole).await;
        let (reply, _) = wire.ask(&endmark, &wire.request(stream), stream).await;
        assert_eq!(reply.body, bytes, "{wire:?} {stream}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_stream_that_breaks_in_a_text_after_a_call_ends_in_an_error() {
    for wire in Wire::ALL {
        for fault in [None, Some(Fault::Reset)] {
            let mut frames = wire.frames(&[PARIS, ReplyPart::Text("Now the harb")], None);
            if wire != Wire::Chat && wire != Wire::Other(ModelFormat::Gemini) {
                // Remove the event that ends the text block.
                frames.pop();
            }
            let length = frames.concat().len();
            let answer = Answer::sse(frames);
            let answer = match fault {
                Some(fault) => answer.fault(length, fault),
                None => answer,
            };
            let endmark = start_with_answer(answer).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
            let what = format!("{wire:?} {fault:?}: {}", reply.text());
            assert!(heard.error.is_some(), "{what}");
            assert_eq!((heard.stop, endmark.calls()), (None, 1), "{what}");
        }
    }
}

/// A provider rejects a history that contains a thought without its signature.
#[tokio::test]
async fn a_stream_that_breaks_in_a_thought_after_a_call_ends_in_an_error() {
    let wire = Wire::Other(ModelFormat::Messages);
    let mut frames = wire.frames(&[PARIS], None);
    for event in [
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "thinking_delta", "thinking": "Now the harb"}}),
    ] {
        frames.push(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    }
    let endmark = start_with_answer(Answer::sse(frames)).await;
    let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
    assert!(heard.error.is_some() && heard.stop.is_none(), "{}", reply.text());
}

#[tokio::test]
async fn an_upstream_error_after_a_whole_call_reaches_the_client() {
    for wire in Wire::ALL {
        let mut frames = wire.frames(&[PARIS], None);
        frames.push(wire.error_frame("overloaded_error", "we are overloaded"));
        let endmark = start_with_answer(Answer::sse(frames)).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
        let what = format!("{wire:?}: {}", reply.text());
        assert_eq!((heard.stop, endmark.calls()), (None, 1), "{what}");
        assert!(reply.text().contains("Paris"), "{what}");
        assert!(heard.error.is_some() && reply.text().contains("we are overloaded"), "{what}");
        assert_eq!(heard.endmark.unwrap_or_default()["outcome"], "cut", "{what}");
    }
}

/// The model wanted several calls. Calls that follow the rest of the cut call belong to the reply.
#[tokio::test]
async fn calls_after_the_cut_call_are_delivered() {
    let (paris, time) = (r#"{"city":"Paris"}"#, r#"{"tz":"CET"}"#);
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        for cut in ["", r#"{"city":"Par"#] {
            let first = wire.answer(
                &[ReplyPart::Text("I look."), ReplyPart::Call("get_weather", cut)],
                End::Limit,
                stream,
            );
            let calls = [ReplyPart::Call("get_weather", paris), ReplyPart::Call("get_time", time)];
            let rest = wire.answer(&calls, End::Calls, stream);
            let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
            let what = format!("{wire:?} {stream} {cut:?}: {}", reply.text());
            let expected = [("get_weather", paris), ("get_time", time)];
            let expected = expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()));
            assert_eq!(heard.tool_calls, expected, "{what}");
            assert_eq!(heard.text, "I look.", "{what}");
            assert_eq!(
                (heard.stop.as_deref(), heard.error),
                (Some(wire.finish_reason(End::Calls)), None),
                "{what}"
            );
        }
    }
}

/// The last added call may be cut, and must not look finished to the client.
#[tokio::test]
async fn a_call_after_the_cut_call_may_be_cut_too() {
    let paris = r#"{"city":"Paris"}"#;
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let first = wire.answer(&[ReplyPart::Call("get_weather", "")], End::Limit, stream);
        let calls = [ReplyPart::Call("get_weather", paris), ReplyPart::Call("get_time", "")];
        let rest = wire.answer(&calls, End::Limit, stream);
        let refused = Answer::error(400, "invalid_request_error", None, "no");
        let endmark = Endmark::start(Script::new().then(first).then(rest).default_answer(refused)).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        assert_eq!(heard.tool_calls.first().map(|(_, arguments)| arguments.as_str()), Some(paris), "{what}");
        assert!(heard.tool_calls.iter().skip(1).all(|(_, arguments)| arguments.is_empty()), "{what}");
        let is_said = heard.stop.as_deref() == Some(wire.finish_reason(End::Limit)) || heard.error.is_some();
        assert!(is_said, "{what}");
        // These two formats send the input as an object, and omit an empty input.
        if matches!(wire, Wire::Other(ModelFormat::Messages | ModelFormat::Gemini)) {
            assert_eq!(heard.tool_calls.len(), 1, "{what}");
        }
    }
}

/// A text that cannot be joined leaves a gap, so no call after it is delivered and the reply stays cut.
#[tokio::test]
async fn no_call_is_delivered_after_an_unjoined_text() {
    let cut = "I will write “two” files: 港は静か 🌊 now";
    let whole = format!("{cut}.");
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let first = wire.answer(&[ReplyPart::Text(cut)], End::Limit, stream);
        let rest = wire.answer(&[ReplyPart::Text("."), PARIS], End::Calls, stream);
        let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        assert_eq!(heard.error, None, "{what}");
        if heard.text == whole {
            assert_eq!(
                (heard.tool_calls.len(), heard.stop.as_deref()),
                (1, Some(wire.finish_reason(End::Calls))),
                "{what}"
            );
        } else {
            assert_eq!(heard.text, cut, "{what}");
            assert_eq!(
                (heard.tool_calls, heard.stop.as_deref()),
                (vec![], Some(wire.finish_reason(End::Limit))),
                "{what}"
            );
        }
    }
}

/// Checks that the client gets both calls. The upstream cuts a reply after `first_parts`, and then returns
/// `answered`.
async fn assert_calls_after_continuation(
    wire: Wire,
    stream: bool,
    first_parts: &[ReplyPart<'_>],
    answered: &[ReplyPart<'_>],
) {
    let first = wire.answer(first_parts, End::Limit, stream);
    let rest = wire.answer(answered, End::Calls, stream);
    let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
    let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
    let what = format!("{wire:?} {stream} {first_parts:?} {answered:?}: {}", reply.text());
    let expected = [("get_weather", r#"{"city":"Paris"}"#), ("get_time", r#"{"tz":"CET"}"#)];
    let expected = expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()));
    assert_eq!(heard.tool_calls, expected, "{what}");
    assert_eq!((heard.text.as_str(), heard.error), ("", None), "{what}");
    assert_eq!(heard.stop.as_deref(), Some(wire.finish_reason(End::Calls)), "{what}");
}

/// A model that sees the earlier calls does not repeat them.
#[tokio::test]
async fn a_continuation_of_several_calls_has_only_the_cut_call() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let first_parts = [PARIS, ReplyPart::Call("get_time", r#"{"tz":"C"#)];
        assert_calls_after_continuation(
            wire,
            stream,
            &first_parts,
            &[ReplyPart::Call("get_time", r#"{"tz":"CET"}"#)],
        )
        .await;
    }
}

/// The model returns the rest of the arguments as text, followed by its next call.
#[tokio::test]
async fn a_call_after_the_rest_of_the_cut_call_is_delivered() {
    let (chat, responses, messages) = (Wire::ALL[0], Wire::ALL[1], Wire::ALL[2]);
    for (wire, stream) in
        [(chat, false), (chat, true), (responses, false), (responses, true), (messages, true)]
    {
        let next = ReplyPart::Call("get_time", r#"{"tz":"CET"}"#);
        for text in
            ["is\"}", r#"{"city":"Paris"}"#, "```json\nis\"}\n```", "```\n{\"city\":\"Paris\"}\n```\n"]
        {
            let first_parts = [ReplyPart::Call("get_weather", r#"{"city":"Par"#)];
            assert_calls_after_continuation(wire, stream, &first_parts, &[ReplyPart::Text(text), next]).await;
        }
    }
}

/// Some servers number their calls from 0 in every answer. A tool result must not go to the wrong call.
#[tokio::test]
async fn an_added_call_has_a_unique_id() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let has_ids = wire != Wire::Other(ModelFormat::Gemini);
        // An unstreamed Messages reply contains nothing of the cut second call.
        if !has_ids || !stream && wire == Wire::Other(ModelFormat::Messages) {
            continue;
        }
        let first = wire.answer(&[PARIS, ReplyPart::Call("get_time", r#"{"tz":"C"#)], End::Limit, stream);
        let (time, rome) = (r#"{"tz":"CET"}"#, r#"{"city":"Rome"}"#);
        let calls = [ReplyPart::Call("get_time", time), ReplyPart::Call("get_weather", rome)];
        let rest = wire.answer(&calls, End::Calls, stream);
        let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        let arguments: Vec<&str> = heard.tool_calls.iter().map(|(_, arguments)| arguments.as_str()).collect();
        assert_eq!(arguments, [r#"{"city":"Paris"}"#, time, rome], "{what}");
        let is_there = |id: &str| reply.text().contains(&format!("\"{id}\""));
        assert!(is_there("call_0") && is_there("call_1") && is_there("call_1_2"), "{what}");
    }
}

/// If a provider fails in mid-stream, routers send an error next to the finish reason.
#[tokio::test]
async fn an_error_beside_the_finish_reason_reaches_the_client() {
    let failed = |word: &str| {
        let chunk = json!({
            "id": "chatcmpl", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
            "error": {"code": "server_error", "message": "Provider disconnected unexpectedly"},
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": word}],
        });
        format!("data: {chunk}\n\n")
    };
    let wire = Wire::Chat;
    for (parts, word) in
        [(ReplyPart::Text("The harb"), "error"), (PARIS, "error"), (ReplyPart::Text("The harb"), "stop")]
    {
        for mode in ["on", "warn"] {
            let mut frames = wire.frames(&[parts], None);
            frames.extend([failed(word), "data: [DONE]\n\n".to_owned()]);
            let endmark = start_with_answer(Answer::sse(frames)).await;
            let request = Request::post(endmark.address, wire.path(true)).header("x-endmark-resume", mode);
            let reply = request.json(&wire.request(true)).send().await.read().await;
            let what = format!("{parts:?} {word} {mode}: {}", reply.text());
            assert!(wire.read_reply(&reply).error.is_some(), "{what}");
            assert!(reply.text().contains("Provider disconnected unexpectedly"), "{what}");
            assert!(!reply.text().contains("[DONE]"), "{what}");
        }
    }
}
