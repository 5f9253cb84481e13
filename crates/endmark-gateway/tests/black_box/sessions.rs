//! Which requests belong to a session, and how turns are counted.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{ModelFormat, Request, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const MESSAGES: Wire = Wire::Other(ModelFormat::Messages);
const RESPONSES: Wire = Wire::Other(ModelFormat::Responses);

fn script_answering(wire: Wire, end: End) -> Script {
    Script::new().default_answer(wire.answer(&[ReplyPart::Text("The harbour was quiet")], end, false))
}

/// Returns the recorded session of each of these requests, in order.
async fn record_sessions(wire: Wire, requests: &[(&[(&str, &str)], Value)]) -> Vec<String> {
    let endmark = Endmark::start(script_answering(wire, End::Turn)).await;
    for (headers, body) in requests {
        let request = Request::post(endmark.address, wire.path(false)).json(body);
        let mut request = request.header("authorization", "Bearer key");
        for (name, value) in *headers {
            request = request.header(name, value);
        }
        assert_eq!(request.send().await.read().await.status, 200);
    }
    for _ in 0..200 {
        let rows = endmark.store.reader().unwrap().recent_calls(100).unwrap();
        if rows.len() == requests.len() {
            return rows.into_iter().rev().map(|row| row.session).collect();
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("not every request has a row")
}

fn request_saying(wire: Wire, text: &str) -> Value {
    let mut body = wire.request(false);
    let turns = json!([{"role": "user", "content": text}]);
    body[if wire == RESPONSES { "input" } else { "messages" }] = turns;
    body
}

#[tokio::test]
async fn agents_are_identified_by_their_session_headers() {
    let user = |id: &str| {
        let mut body = request_saying(MESSAGES, "in a body");
        body["metadata"] = json!({"user_id": json!({"device_id": "d", "session_id": id}).to_string()});
        body
    };
    let mut older = request_saying(MESSAGES, "in an older body");
    older["metadata"] = json!({"user_id": "user_0a_account__session_s1"});
    let found = record_sessions(
        MESSAGES,
        &[
            (&[("x-claude-code-session-id", "s1")], request_saying(MESSAGES, "one")),
            (&[("x-claude-code-session-id", "s1")], request_saying(MESSAGES, "another")),
            (&[], user("s1")),
            (&[], older),
            (&[("x-claude-code-session-id", "s2")], request_saying(MESSAGES, "one")),
            (&[], user("s3")),
            (
                &[("x-endmark-session", "s1"), ("x-claude-code-session-id", "s2")],
                request_saying(MESSAGES, "one"),
            ),
        ],
    )
    .await;
    let [first, same @ .., of_other, of_third, named] = &found[..] else { panic!() };
    assert!(same.iter().all(|session| session == first), "{found:?}");
    assert!(of_other != first && of_third != first && of_other != of_third, "{found:?}");
    assert_eq!(named, first, "Endmark's own header wins");

    let found = record_sessions(
        RESPONSES,
        &[
            (&[("session-id", "s1"), ("thread-id", "t1")], request_saying(RESPONSES, "one")),
            (&[("session-id", "s1"), ("thread-id", "t2")], request_saying(RESPONSES, "another")),
            (&[("session_id", "s1")], request_saying(RESPONSES, "a third")),
            (&[("session-id", " ")], request_saying(RESPONSES, "a third")),
            (&[], request_saying(RESPONSES, "a third")),
        ],
    )
    .await;
    assert!(found[0] == found[1] && found[0] == found[2] && found[0] != found[3], "{found:?}");
    assert_eq!(found[3], found[4], "an empty name is none");
}

/// In Responses a reply consists of several items, and calls are not messages.
#[tokio::test]
async fn a_reply_of_several_items_is_one_turn() {
    let endmark = Endmark::start_resuming(script_answering(RESPONSES, End::Limit)).await;
    let mut body = RESPONSES.request(false);
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "get_time", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "noon"});
    let of_hook = json!({"role": "developer", "content": "a hook's words"});
    body["input"] = json!([
        {"role": "user", "content": "Tell."},
        call("a"), call("b"), of_hook, output("a"), output("b"),
        call("c"), output("c"),
    ]);
    RESPONSES.ask_raw(&endmark, &body, false).await;
    assert_eq!(endmark.log(1).await[0].turn_number, 3);
}

over_postgresql! {
    "sessions.rs":
    agents_are_identified_by_their_session_headers,
    a_reply_of_several_items_is_one_turn,
    ;
    alone:
}
