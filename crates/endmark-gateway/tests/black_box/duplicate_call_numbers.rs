//! Chat Completions servers that give all calls the same number, or no number.

use endmark_gateway::ResumeMode;
use serde_json::{Value, json};
use testkit::{Answer, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

/// Returns a delta of a call. `begins` is its id and name.
fn call_delta(index: Option<u32>, begins: Option<(&str, &str)>, arguments: &str) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    if let Some((id, name)) = begins {
        call["type"] = json!("function");
        call["function"]["name"] = json!(name);
        if !id.is_empty() {
            call["id"] = json!(id);
        }
    }
    call
}

/// Returns a stream with one chunk for each of these lists of call deltas.
fn stream_of_calls(deltas: &[Vec<Value>], word: &str) -> Answer {
    let chunk =
        |choice: Value| format!("data: {}\n\n", json!({"id": "c", "model": "m", "choices": [choice]}));
    let mut body: String =
        deltas.iter().map(|calls| chunk(json!({"index": 0, "delta": {"tool_calls": calls}}))).collect();
    body.push_str(&chunk(json!({"index": 0, "delta": {}, "finish_reason": word})));
    body.push_str("data: [DONE]\n\n");
    Answer::new(200, "text/event-stream", body)
}

/// The rest is appended to the cut call, and the call before it stays whole.
#[tokio::test]
async fn a_new_id_or_name_begins_a_call() {
    let cut = r#"{"tz":"C"#;
    let asked_for = r#"{"tz":"CET"}"#;
    for (index, ids) in [(Some(0), ["t1", "t2"]), (Some(0), ["", ""]), (None, ["t1", "t2"])] {
        for in_one in [false, true] {
            let begin = |id: usize, name, arguments| call_delta(index, Some((ids[id], name)), arguments);
            let first = begin(0, "get_weather", r#"{"city":"Paris"}"#);
            let deltas = if in_one {
                vec![vec![first, begin(1, "get_time", cut)]]
            } else {
                vec![vec![first], vec![begin(1, "get_time", "")], vec![call_delta(index, None, cut)]]
            };
            let rest = Wire::Chat.answer(&[ReplyPart::Call("get_time", asked_for)], End::Calls, false);
            let script = Script::new().then(stream_of_calls(&deltas, "length")).default_answer(rest);
            let endmark = Endmark::start_with(script, |settings| settings.resume.mode = ResumeMode::On).await;
            let (reply, heard) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
            let what = format!("{index:?} {ids:?} {in_one}: {}", reply.text());
            assert_eq!(heard.stop.as_deref(), Some("tool_calls"), "{what}");
            let mut arguments = [String::new(), String::new()];
            let mut of = 0;
            for event in reply.json_events() {
                for call in event["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
                    assert_eq!(call["index"].as_u64(), index.map(u64::from), "{what}");
                    of = match call["function"]["name"].as_str() {
                        Some("get_weather") => 0,
                        Some(_) => 1,
                        None => of,
                    };
                    arguments[of] += call["function"]["arguments"].as_str().unwrap_or_default();
                }
            }
            assert_eq!(arguments, [r#"{"city":"Paris"}"#, asked_for], "{what}");
        }
    }
}

/// Older versions of vLLM repeat the name in every piece, each time with a new id.
#[tokio::test]
async fn a_repeated_name_does_not_begin_a_call() {
    let pieces = ["{\"ci", "ty\":\"Pa", "ris\"}", ""];
    let call = |(number, arguments): (usize, &&str)| {
        vec![call_delta(Some(0), Some((&format!("t{number}"), "get_weather")), arguments)]
    };
    let deltas: Vec<_> = pieces.iter().enumerate().map(call).collect();
    let last = deltas.len() - 1;
    let mut answer = stream_of_calls(&deltas[..last], "stop").body();
    let end = br#""delta":{}"#;
    let at = answer.windows(end.len()).rposition(|window| window == end).unwrap();
    let delta = format!("\"delta\":{}", json!({"tool_calls": deltas[last]}));
    answer.splice(at..at + end.len(), delta.bytes());
    let script = Script::new().then(Answer::new(200, "text/event-stream", answer.clone()));
    let endmark = Endmark::start_with(script, |settings| settings.resume.mode = ResumeMode::On).await;
    let (reply, _) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
    assert_eq!(reply.body, answer, "{}", reply.text());
}

/// Returns the arguments of each call, as read by a client that appends pieces without an id to the last
/// call.
fn arguments_by_call(events: &[Value]) -> Vec<String> {
    let mut calls: Vec<(Value, String)> = Vec::new();
    for event in events {
        for call in event["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
            if call["id"].is_string() && calls.last().is_none_or(|last| last.0 != call["id"]) {
                calls.push((call["id"].clone(), String::new()));
            }
            let Some((_, arguments)) = calls.last_mut() else { continue };
            *arguments += call["function"]["arguments"].as_str().unwrap_or_default();
        }
    }
    calls.into_iter().map(|call| call.1).collect()
}

const CUT_ARGUMENTS: &str = r#"{"city":"Par"#;
const WHOLE_ARGUMENTS: &str = r#"{"city":"Oslo"}"#;

/// Returns two calls of one tool, each in one piece or in three.
fn two_calls(index: Option<u32>, arguments: [&str; 2], in_one: bool) -> Answer {
    let mut deltas = Vec::new();
    for (id, arguments) in ["t1", "t2"].into_iter().zip(arguments) {
        if in_one {
            deltas.push(vec![call_delta(index, Some((id, "get_weather")), arguments)]);
        } else {
            let (one, other) = arguments.split_at(4);
            deltas.push(vec![call_delta(index, Some((id, "get_weather")), "")]);
            deltas.push(vec![call_delta(index, None, one)]);
            deltas.push(vec![call_delta(index, None, other)]);
        }
    }
    stream_of_calls(&deltas, "length")
}

/// A client would append the rest to the wrong call.
#[tokio::test]
async fn a_cut_call_before_the_last_stays_cut() {
    for (index, hold) in [(Some(0), false), (None, false), (Some(0), true), (None, true)] {
        for (arguments, in_one) in [
            ([CUT_ARGUMENTS, WHOLE_ARGUMENTS], false),
            ([CUT_ARGUMENTS, WHOLE_ARGUMENTS], true),
            ([CUT_ARGUMENTS, CUT_ARGUMENTS], false),
            ([CUT_ARGUMENTS, CUT_ARGUMENTS], true),
        ] {
            let whole = r#"{"city":"Paris"}"#;
            let rest = Wire::Chat.answer(&[ReplyPart::Call("get_weather", whole)], End::Calls, false);
            let script = Script::new().then(two_calls(index, arguments, in_one)).default_answer(rest);
            let endmark = Endmark::start_with(script, |settings| {
                settings.resume.mode = ResumeMode::On;
                settings.tools.hold = hold;
            })
            .await;
            let (reply, heard) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
            let what = format!("{index:?} {hold} {arguments:?} {in_one}: {}", reply.text());
            let last = if arguments[1] == CUT_ARGUMENTS { whole } else { WHOLE_ARGUMENTS };
            let events = reply.json_events();
            let reported_outcome = events.iter().rev().find_map(|event| event["endmark"]["outcome"].as_str());
            let [first, stop, outcome] = match (hold, arguments[1]) {
                (true, CUT_ARGUMENTS) => [whole, "tool_calls", "resumed"],
                // The last call is whole, so further calls may be missing.
                (true, _) => [whole, "tool_calls", "cut"],
                (false, _) => [CUT_ARGUMENTS, "length", "cut"],
            };
            assert_eq!(arguments_by_call(&events), [first, last], "{what}");
            assert_eq!((heard.stop.as_deref(), reported_outcome), (Some(stop), Some(outcome)), "{what}");
            if hold {
                let calls =
                    events.iter().filter_map(|event| event["choices"][0]["delta"]["tool_calls"].as_array());
                let indexes: Vec<_> = calls.flatten().map(|call| call["index"].as_u64()).collect();
                assert_eq!(indexes, [Some(0), Some(1)], "{what}");
            }
        }
    }
}

/// The received bytes may be a second call or an object inside the first call, and only the server knows
/// which.
#[tokio::test]
async fn no_continuation_is_requested_for_what_may_be_two_calls() {
    let deltas = [("t1", r#"{"city":"#), ("t2", CUT_ARGUMENTS)];
    let deltas =
        deltas.map(|(id, arguments)| vec![call_delta(Some(0), Some((id, "get_weather")), arguments)]);
    for hold in [false, true] {
        let script = Script::new().default_answer(stream_of_calls(&deltas, "length"));
        let endmark = Endmark::start_with(script, |settings| {
            settings.resume.mode = ResumeMode::On;
            settings.tools.hold = hold;
        })
        .await;
        let (reply, heard) = Wire::Chat.ask(&endmark, &Wire::Chat.request(true), true).await;
        assert_eq!(endmark.calls(), 1, "{}", reply.text());
        assert_eq!(heard.stop.as_deref(), Some("length"), "{}", reply.text());
        assert_eq!(
            arguments_by_call(&reply.json_events()),
            [r#"{"city":"#, CUT_ARGUMENTS],
            "{}",
            reply.text()
        );
    }
}
