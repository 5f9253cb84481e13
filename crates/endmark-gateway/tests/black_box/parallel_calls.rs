//! Replies with two calls: the first call is cut and the second is whole.

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Reply, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const CUT_CALL: ReplyPart<'static> = ReplyPart::Call("get_weather", r#"{"city":"Par"#);
const COMPLETED_CALL: ReplyPart<'static> = ReplyPart::Call("get_weather", r#"{"city":"Paris"}"#);
const SECOND_CALL: ReplyPart<'static> = ReplyPart::Call("get_time", r#"{"tz":"CET"}"#);
const RESPONSES: Wire = Wire::Other(ModelFormat::Responses);

/// Asks an upstream that returns both calls, and then `rest` as the rest of the first call.
async fn ask_for_calls(
    wire: Wire,
    end: End,
    rest: &[ReplyPart<'_>],
    stream: bool,
    hold: bool,
) -> (Reply, testkit::AssembledReply) {
    let script = Script::new()
        .then(wire.answer(&[CUT_CALL, SECOND_CALL], end, stream))
        .default_answer(wire.answer(rest, End::Calls, false));
    let endmark = Endmark::start_with(script, |settings| settings.tools.hold = hold).await;
    wire.ask(&endmark, &wire.request(stream), stream).await
}

/// Returns the complete response, which a stream repeats in its last event.
fn final_response(reply: &Reply, stream: bool) -> Value {
    if !stream {
        return reply.json();
    }
    let last = reply.json_events().into_iter().rfind(|event| event["response"].is_object());
    last.map(|event| event["response"].clone()).unwrap_or_default()
}

/// Returns the id, the arguments and the status of each call in a response.
fn items(response: &Value) -> Vec<(&str, &str, &str)> {
    let output = response["output"].as_array().into_iter().flatten();
    output
        .map(|item| {
            (
                item["call_id"].as_str().unwrap_or_default(),
                item["arguments"].as_str().unwrap_or_default(),
                item["status"].as_str().unwrap_or_default(),
            )
        })
        .collect()
}

#[tokio::test]
async fn only_the_call_that_stays_cut_is_disclosed_as_cut() {
    for (end, stream, hold) in [End::Calls, End::Limit]
        .into_iter()
        .flat_map(|end| [(end, false, false), (end, true, false), (end, true, true)])
    {
        let (reply, heard) = ask_for_calls(RESPONSES, end, &[ReplyPart::Text("Sorry.")], stream, hold).await;
        let what = format!("{end:?} {stream} {hold}: {}", reply.text());
        assert_eq!(heard.stop.as_deref(), Some("incomplete"), "{what}");
        let response = final_response(&reply, stream);
        assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens", "{what}");
        assert_eq!(
            items(&response),
            [("call_0", r#"{"city":"Par"#, "incomplete"), ("call_1", r#"{"tz":"CET"}"#, "completed")],
            "{what}"
        );
        let mut events = if stream { reply.json_events() } else { Vec::new() };
        events.retain(|event| event["type"] == "response.output_item.done");
        assert_eq!(events.len(), if stream { 2 } else { 0 }, "{what}");
        for event in events {
            let is_cut = event["item"]["name"] == "get_weather";
            assert_eq!(event["item"]["status"], if is_cut { "incomplete" } else { "completed" }, "{what}");
        }
    }
}

#[tokio::test]
async fn a_completed_call_is_disclosed_and_keeps_its_position() {
    for (end, stream) in [(End::Calls, false), (End::Limit, false), (End::Calls, true), (End::Limit, true)] {
        for marked in [false, true] {
            let mut whole = RESPONSES.whole_reply(&[CUT_CALL, SECOND_CALL], RESPONSES.finish_reason(end));
            if marked {
                whole["output"][0]["status"] = json!("incomplete");
            }
            let first = if stream {
                RESPONSES.answer(&[CUT_CALL, SECOND_CALL], end, true)
            } else {
                testkit::Answer::json(200, &whole)
            };
            let script = Script::new().then(first).default_answer(RESPONSES.answer(
                &[COMPLETED_CALL],
                End::Calls,
                false,
            ));
            let endmark = Endmark::start_with(script, |settings| settings.tools.hold = true).await;
            let (reply, heard) = RESPONSES.ask(&endmark, &RESPONSES.request(stream), stream).await;
            let what = format!("{end:?} {stream} {marked}: {}", reply.text());
            assert_eq!(heard.stop.as_deref(), Some("completed"), "{what}");
            assert_eq!(
                items(&final_response(&reply, stream)),
                [("call_0", r#"{"city":"Paris"}"#, "completed"), ("call_1", r#"{"tz":"CET"}"#, "completed")],
                "{what}"
            );
            let ids: Vec<Value> = final_response(&reply, stream)["output"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["id"].clone())
                .collect();
            assert_eq!(ids, ["fc_0", "fc_1"], "{what}");
            let events = if stream { reply.json_events() } else { Vec::new() };
            let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
            for (at, event) in done.enumerate() {
                let (id, status) = (&event["item"]["id"], &event["item"]["status"]);
                assert_eq!((id, status), (&ids[at], &json!("completed")), "{what}");
            }
        }
    }
}

/// Covers both finish reasons that may follow the second call.
#[tokio::test]
async fn a_reply_with_a_cut_call_is_not_reported_as_finished() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let has_text = !matches!((wire, stream), (Wire::Other(ModelFormat::Messages), false))
            && wire != Wire::Other(ModelFormat::Gemini);
        for end in [End::Calls, End::Limit] {
            let (reply, heard) = ask_for_calls(wire, end, &[ReplyPart::Text("Sorry.")], stream, false).await;
            let what = format!("{wire:?} {end:?} {stream}: {}", reply.text());
            let is_said =
                heard.error.is_some() || heard.stop.as_deref() == Some(wire.finish_reason(End::Limit));
            assert!(is_said || !has_text, "{what}");
        }
    }
}

/// The gateway holds the event that closes the first call, and all later events, until the rest is sent.
#[tokio::test]
async fn the_first_of_two_calls_is_continued_in_a_stream() {
    for (wire, end) in Wire::ALL.into_iter().flat_map(|wire| [(wire, End::Calls), (wire, End::Limit)]) {
        if wire == Wire::Other(ModelFormat::Gemini) {
            // Gemini sends arguments as an object, so no part can be added to them.
            continue;
        }
        let (reply, heard) = ask_for_calls(wire, end, &[COMPLETED_CALL], true, false).await;
        let what = format!("{wire:?} {end:?}: {}", reply.text());
        let expected = [("get_weather", r#"{"city":"Paris"}"#), ("get_time", r#"{"tz":"CET"}"#)];
        let expected = expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()));
        assert_eq!(heard.tool_calls, expected, "{what}");
        assert_eq!(
            (heard.stop.as_deref(), heard.error),
            (Some(wire.finish_reason(End::Calls)), None),
            "{what}"
        );
        if wire == RESPONSES {
            let whole =
                [("call_0", expected[0].1.as_str(), "completed"), ("call_1", &expected[1].1, "completed")];
            assert_eq!(items(&final_response(&reply, true)), whole, "{what}");
            let mut done = reply.json_events();
            done.retain(|event| event["type"] == "response.output_item.done");
            let done: Vec<&Value> = done.iter().map(|event| &event["item"]).collect();
            let done = done.iter().map(|item| (&item["id"], &item["arguments"], &item["status"]));
            let parts = [("fc_0", &expected[0].1), ("fc_1", &expected[1].1)];
            let parts = parts.map(|(id, arguments)| (json!(id), json!(arguments), json!("completed")));
            assert_eq!(done.collect::<Vec<_>>(), parts.each_ref().map(|(a, b, c)| (a, b, c)), "{what}");
        }
    }
}

/// Libraries parse the received arguments, whatever they are. Only an error shows that they are incomplete.
#[tokio::test]
async fn a_message_whose_first_call_stays_cut_ends_in_an_error() {
    let messages = Wire::Other(ModelFormat::Messages);
    for end in [End::Calls, End::Limit] {
        let (reply, heard) = ask_for_calls(messages, end, &[ReplyPart::Text("Sorry.")], true, false).await;
        let what = format!("{end:?}: {}", reply.text());
        assert!(heard.error.is_some() && heard.stop.is_none(), "{what}");
    }
}

/// Content after the cut call is delivered, whether or not the call can be completed.
#[tokio::test]
async fn a_text_after_a_cut_call_is_delivered() {
    for wire in [RESPONSES, Wire::Other(ModelFormat::Messages)] {
        for rest in [COMPLETED_CALL, ReplyPart::Text("Sorry.")] {
            let parts = [CUT_CALL, ReplyPart::Text("I look it up."), SECOND_CALL];
            let script = Script::new()
                .then(wire.answer(&parts, End::Calls, true))
                .default_answer(wire.answer(&[rest], End::Calls, false));
            let endmark = Endmark::start(script).await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
            let what = format!("{wire:?} {rest:?}: {}", reply.text());
            assert_eq!(heard.text, "I look it up.", "{what}");
            assert!(heard.tool_calls.iter().any(|(name, _)| name == "get_time"), "{what}");
        }
    }
}

/// Libraries keep blocks in a list, so their numbers must have no gaps.
#[tokio::test]
async fn blocks_after_an_omitted_call_have_consecutive_numbers() {
    let messages = Wire::Other(ModelFormat::Messages);
    let parts = [ReplyPart::Text("I look."), CUT_CALL, ReplyPart::Text("I look it up."), SECOND_CALL];
    let script = Script::new()
        .then(messages.answer(&parts, End::Calls, true))
        .default_answer(messages.answer(&[ReplyPart::Text("Sorry.")], End::Turn, false));
    let endmark = Endmark::start_with(script, |settings| settings.tools.hold = true).await;
    let (reply, heard) = messages.ask(&endmark, &messages.request(true), true).await;
    let what = reply.text();
    let mut first_events = reply.json_events();
    first_events.retain(|event| event["type"] == "content_block_start");
    let numbers: Vec<Option<u64>> = first_events.iter().map(|event| event["index"].as_u64()).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2)], "{what}");
    let names: Vec<&str> = heard.tool_calls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        (names.as_slice(), heard.text.as_str()),
        (["get_time"].as_slice(), "I look.I look it up."),
        "{what}"
    );
    assert_eq!(heard.stop.as_deref(), Some("max_tokens"), "{what}");
}

/// The pieces of two calls alternate, and the broken stream leaves both calls cut.
#[tokio::test]
async fn a_cut_call_after_a_joined_call_is_not_finished() {
    let piece = |index: u32, call: Value| {
        let mut call = call;
        call["index"] = json!(index);
        let delta = json!({"tool_calls": [call]});
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    let begins = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": ""}});
    let arguments_delta = |arguments: &str| json!({"function": {"arguments": arguments}});
    let frames = [
        piece(0, begins("c1", "get_weather")),
        piece(1, begins("c2", "get_time")),
        piece(0, arguments_delta(r#"{"city":"Par"#)),
        piece(1, arguments_delta(r#"{"tz":"CE"#)),
    ];
    for is_both in [false, true] {
        let parts = if is_both { vec![COMPLETED_CALL, SECOND_CALL] } else { vec![COMPLETED_CALL] };
        let refused = Answer::error(400, "invalid_request_error", None, "no more of it");
        let script = Script::new()
            .then(Answer::sse(frames.clone()))
            .then(Wire::Chat.answer(&parts, End::Calls, true))
            .default_answer(refused);
        let endmark = Endmark::start(script).await;
        let (reply, heard) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
        assert_eq!(heard.tool_calls[0].1, r#"{"city":"Paris"}"#, "{}", reply.text());
        if is_both {
            // The answer completes both calls, so there is no further request.
            assert_eq!(
                (heard.tool_calls[1].1.as_str(), endmark.calls()),
                (r#"{"tz":"CET"}"#, 2),
                "{}",
                reply.text()
            );
            assert_eq!((heard.stop.as_deref(), heard.error), (Some("tool_calls"), None), "{}", reply.text());
            continue;
        }
        assert!(heard.stop.is_none() && heard.error.is_some(), "{}", reply.text());
        // The request for the second call contains the completed first call.
        let sent = endmark.upstream.requests()[2].json().to_string();
        assert!(sent.contains("Paris"), "{sent}");
    }
}

/// The client executes a received call, so an answer that repeats the call must not add it again.
#[tokio::test]
async fn a_received_call_is_not_delivered_twice() {
    const HALF: ReplyPart<'static> = ReplyPart::Call("write_file", r#"{"path":"x.md","cont"#);
    const FILE: ReplyPart<'static> = ReplyPart::Call("write_file", r#"{"path":"x.md","content":"one"}"#);
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let script = Script::new().then(wire.answer(&[SECOND_CALL, HALF], End::Limit, stream));
        let script = script.default_answer(wire.answer(&[FILE, SECOND_CALL], End::Calls, false));
        let endmark = Endmark::start_with(script, |_| ()).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(stream), stream).await;
        let times = heard.tool_calls.iter().filter(|(name, _)| name == "get_time").count();
        assert!(times <= 1, "{wire:?} {stream}: {}", reply.text());
    }
}
