//! Reports about replies that ended directly after a whole call, so that it is unknown whether more calls are missing.

use endmark_gateway::{OnMissing, Prefill};
use serde_json::json;
use testkit::{Answer, Dialect, Fault, Request, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const PARIS: ReplyPart<'static> = ReplyPart::Call("get_weather", r#"{"city":"Paris"}"#);

/// Starts a gateway before an upstream that breaks off like this and then refuses further requests.
async fn start_before(answer: Answer) -> Endmark {
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
            let endmark = start_before(answer).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
            let what = format!("{wire:?} {fault:?}: {}", reply.text());
            assert_eq!(heard.calls.len(), 1, "{what}");
            assert_eq!((heard.stop.as_deref(), heard.error), (Some(wire.word(End::Calls)), None), "{what}");
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

/// An answer to the question for one call has that call alone in it, whether or not the model wanted more.
#[tokio::test]
async fn a_single_call_continuation_does_not_reveal_other_calls() {
    const CUT: ReplyPart<'static> = ReplyPart::Call("get_weather", r#"{"city":"Par"#);
    const TIME: ReplyPart<'static> = ReplyPart::Call("get_time", r#"{"tz":"CET"}"#);
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        if !stream && wire == Wire::Other(Dialect::Messages) || wire == Wire::Other(Dialect::Gemini) {
            // An object has no beginning that could be shown: the request is sent again.
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
                (heard.calls.len(), heard.stop.as_deref()),
                (calls, Some(wire.word(End::Calls))),
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
async fn a_limit_directly_after_a_whole_call_is_disclosed() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            if !stream && wire == Wire::Other(Dialect::Messages) {
                // In a reply without a stream, Messages cannot distinguish a cut input from a whole one, so the call
                // counts as cut.
                continue;
            }
            let endmark = start_before(wire.answer(&[PARIS], End::Limit, stream)).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
            let what = format!("{wire:?} {stream}: {}", reply.text());
            assert_eq!(heard.stop.as_deref(), Some(wire.word(End::Calls)), "{what}");
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

/// The options for a reply of which some calls may be missing.
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
            assert_eq!(heard.calls, [("get_weather".to_owned(), r#"{"city":"Paris"}"#.to_owned())], "{what}");
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

/// A request that forbids parallel calls gets one, and none can be missing after it.
#[tokio::test]
async fn a_reply_without_parallel_calls_is_whole_after_one_call() {
    let answer = Wire::Chat.answer(&[PARIS], End::Limit, false);
    let endmark = start_before(answer).await;
    let mut body = Wire::Chat.request(false);
    body["parallel_tool_calls"] = json!(false);
    let (reply, heard) = Wire::Chat.ask(&endmark, &body, false).await;
    assert_eq!(heard.stop.as_deref(), Some("tool_calls"), "{}", reply.text());
    assert_eq!((reply.header("x-endmark-outcome"), reply.header("x-endmark-reason")), (Some("whole"), None));
    // Neither can one be after a call in the form that has no list of them.
    let call = json!({"name": "get_weather", "arguments": r#"{"city":"Paris"}"#});
    let message = json!({"role": "assistant", "content": null, "function_call": call});
    let answer = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "length"}]});
    let endmark = start_before(Answer::json(200, &answer)).await;
    let reply = endmark.ask(&Wire::Chat.request(false)).await;
    assert_eq!((reply.header("x-endmark-outcome"), reply.header("x-endmark-reason")), (Some("whole"), None));
}

/// The last part is cut. A whole call before it does not change that.
#[tokio::test]
async fn a_cut_text_after_a_whole_call_is_not_whole() {
    let parts = [PARIS, ReplyPart::Text("Now the harb")];
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        if !stream && wire == Wire::Chat {
            // In this format, a message does not show which part arrived first.
            continue;
        }
        let endmark = start_before(wire.answer(&parts, End::Limit, stream)).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        assert_eq!((heard.stop.as_deref(), heard.error), (Some(wire.word(End::Limit)), None), "{what}");
        assert_eq!((heard.text.as_str(), heard.calls.len()), ("Now the harb", 1), "{what}");
        let disclosed = heard.endmark.unwrap_or_default();
        let outcome = disclosed["outcome"].as_str().or_else(|| reply.header("x-endmark-outcome"));
        assert_eq!(outcome, Some("cut"), "{what}");
        assert_eq!(endmark.calls(), 1, "nothing can go on with it");

        let whole = wire.answer(&parts, End::Calls, stream);
        let bytes = whole.body();
        let endmark = start_before(whole).await;
        let (reply, _) = wire.ask(&endmark, &wire.request(stream), stream).await;
        assert_eq!(reply.body, bytes, "{wire:?} {stream}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_stream_that_breaks_in_a_text_after_a_call_ends_in_an_error() {
    for wire in Wire::ALL {
        for fault in [None, Some(Fault::Reset)] {
            let mut frames = wire.frames(&[PARIS, ReplyPart::Text("Now the harb")], None);
            if wire != Wire::Chat && wire != Wire::Other(Dialect::Gemini) {
                // The end of the text's own part has not arrived.
                frames.pop();
            }
            let length = frames.concat().len();
            let answer = Answer::sse(frames);
            let answer = match fault {
                Some(fault) => answer.fault(length, fault),
                None => answer,
            };
            let endmark = start_before(answer).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
            let what = format!("{wire:?} {fault:?}: {}", reply.text());
            assert!(heard.error.is_some(), "{what}");
            assert_eq!((heard.stop, endmark.calls()), (None, 1), "{what}");
        }
    }
}

/// A thought without its signature is refused where a client sends it back.
#[tokio::test]
async fn a_stream_that_breaks_in_a_thought_after_a_call_ends_in_an_error() {
    let wire = Wire::Other(Dialect::Messages);
    let mut frames = wire.frames(&[PARIS], None);
    for event in [
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "thinking_delta", "thinking": "Now the harb"}}),
    ] {
        frames.push(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    }
    let endmark = start_before(Answer::sse(frames)).await;
    let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
    assert!(heard.error.is_some() && heard.stop.is_none(), "{}", reply.text());
}

#[tokio::test]
async fn an_upstream_error_after_a_whole_call_reaches_the_client() {
    for wire in Wire::ALL {
        let mut frames = wire.frames(&[PARIS], None);
        frames.push(wire.error_frame("overloaded_error", "we are overloaded"));
        let endmark = start_before(Answer::sse(frames)).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
        let what = format!("{wire:?}: {}", reply.text());
        assert_eq!((heard.stop, endmark.calls()), (None, 1), "{what}");
        assert!(reply.text().contains("Paris"), "{what}");
        assert!(heard.error.is_some() && reply.text().contains("we are overloaded"), "{what}");
        assert_eq!(heard.endmark.unwrap_or_default()["outcome"], "cut", "{what}");
    }
}

/// The model wanted several calls. Calls that follow the requested rest belong to the reply.
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
            assert_eq!(heard.calls, expected, "{what}");
            assert_eq!(heard.text, "I look.", "{what}");
            assert_eq!((heard.stop.as_deref(), heard.error), (Some(wire.word(End::Calls)), None), "{what}");
        }
    }
}

/// The last of them may be cut itself, and must not look finished to a client.
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
        assert_eq!(heard.calls.first().map(|(_, arguments)| arguments.as_str()), Some(paris), "{what}");
        assert!(heard.calls.iter().skip(1).all(|(_, arguments)| arguments.is_empty()), "{what}");
        let is_said = heard.stop.as_deref() == Some(wire.word(End::Limit)) || heard.error.is_some();
        assert!(is_said, "{what}");
        // In these two formats an input is an object, and an empty input is not sent.
        if matches!(wire, Wire::Other(Dialect::Messages | Dialect::Gemini)) {
            assert_eq!(heard.calls.len(), 1, "{what}");
        }
    }
}

/// A text that is not joined leaves a gap. No call after it is delivered, and the reply stays cut.
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
                (heard.calls.len(), heard.stop.as_deref()),
                (1, Some(wire.word(End::Calls))),
                "{what}"
            );
        } else {
            assert_eq!(heard.text, cut, "{what}");
            assert_eq!((heard.calls, heard.stop.as_deref()), (vec![], Some(wire.word(End::Limit))), "{what}");
        }
    }
}

/// Returns the client's calls at the end, if the request for the rest gets this answer.
async fn becomes(wire: Wire, stream: bool, first_parts: &[ReplyPart<'_>], answered: &[ReplyPart<'_>]) {
    let first = wire.answer(first_parts, End::Limit, stream);
    let rest = wire.answer(answered, End::Calls, stream);
    let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
    let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
    let what = format!("{wire:?} {stream} {first_parts:?} {answered:?}: {}", reply.text());
    let expected = [("get_weather", r#"{"city":"Paris"}"#), ("get_time", r#"{"tz":"CET"}"#)];
    let expected = expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()));
    assert_eq!(heard.calls, expected, "{what}");
    assert_eq!((heard.text.as_str(), heard.error), ("", None), "{what}");
    assert_eq!(heard.stop.as_deref(), Some(wire.word(End::Calls)), "{what}");
}

/// A model that sees the calls before the cut one does not repeat them.
#[tokio::test]
async fn a_continuation_of_several_calls_has_only_the_cut_call() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let first_parts = [PARIS, ReplyPart::Call("get_time", r#"{"tz":"C"#)];
        becomes(wire, stream, &first_parts, &[ReplyPart::Call("get_time", r#"{"tz":"CET"}"#)]).await;
    }
}

/// The rest of the arguments as text, followed by what the model wanted next. If no arguments had arrived, text is
/// not their rest.
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
            becomes(wire, stream, &first_parts, &[ReplyPart::Text(text), next]).await;
        }
    }
}

/// Some servers number their calls from the beginning in each answer. A result must not go to the wrong call.
#[tokio::test]
async fn an_added_call_has_a_unique_id() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let has_ids = wire != Wire::Other(Dialect::Gemini);
        // In a reply without a stream, Messages contains nothing of the second call.
        if !has_ids || !stream && wire == Wire::Other(Dialect::Messages) {
            continue;
        }
        let first = wire.answer(&[PARIS, ReplyPart::Call("get_time", r#"{"tz":"C"#)], End::Limit, stream);
        let (time, rome) = (r#"{"tz":"CET"}"#, r#"{"city":"Rome"}"#);
        let calls = [ReplyPart::Call("get_time", time), ReplyPart::Call("get_weather", rome)];
        let rest = wire.answer(&calls, End::Calls, stream);
        let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        let what = format!("{wire:?} {stream}: {}", reply.text());
        let arguments: Vec<&str> = heard.calls.iter().map(|(_, arguments)| arguments.as_str()).collect();
        assert_eq!(arguments, [r#"{"city":"Paris"}"#, time, rome], "{what}");
        let is_there = |id: &str| reply.text().contains(&format!("\"{id}\""));
        assert!(is_there("call_0") && is_there("call_1") && is_there("call_1_2"), "{what}");
    }
}

/// A router reports in this way that its provider failed in the middle of a stream.
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
            let endmark = start_before(Answer::sse(frames)).await;
            let request = Request::post(endmark.address, wire.path(true)).header("x-endmark-resume", mode);
            let reply = request.json(&wire.request(true)).send().await.read().await;
            let what = format!("{parts:?} {word} {mode}: {}", reply.text());
            assert!(wire.hear(&reply).error.is_some(), "{what}");
            assert!(reply.text().contains("Provider disconnected unexpectedly"), "{what}");
            assert!(!reply.text().contains("[DONE]"), "{what}");
        }
    }
}
