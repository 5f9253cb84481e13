//! A model is asked to describe the condensed part of a conversation (CX-4).
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Script};

use super::compacted_conversations::{ask, conversation, turns, turns_field};
use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const SUMMARY: &str =
    "- The orders were looked at in detail, and every amount agrees.\n- The next step of the list follows.";
const SUMMARY_MODEL: &str = "small-one";

async fn start_with_summary_model(wire: Wire, script: Script) -> Endmark {
    let answer = wire.answer(&[ReplyPart::Text("I see.")], End::Turn, false);
    Endmark::start_with(script.default_answer(answer), |settings| {
        settings.compact.window.trigger_tokens = 6_000;
        settings.compact.window.budget_tokens = 8_000;
        settings
            .upstreams
            .iter_mut()
            .for_each(|upstream| upstream.summary_model = Some(SUMMARY_MODEL.to_owned()));
    })
    .await
}

/// Returns the prompt of a request for a summary, which is a single user turn. Empty for other requests.
fn summary_prompt(wire: Wire, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    match &body[turns_field(wire)] {
        Value::String(text) => text.clone(),
        turns => {
            assert_eq!(turns.as_array().unwrap().len(), 1, "{wire:?}: {turns}");
            let turn = &turns[0];
            let text = if wire == Wire::Other(ModelFormat::Gemini) {
                &turn["parts"][0]["text"]
            } else {
                &turn["content"]
            };
            text.as_str().unwrap().to_owned()
        }
    }
}

#[tokio::test]
async fn the_summary_model_is_asked_once() {
    for wire in Wire::ALL {
        let endmark = start_with_summary_model(
            wire,
            Script::new().then(wire.answer(&[ReplyPart::Text(SUMMARY)], End::Turn, false)),
        )
        .await;
        let reply = ask(endmark.address, wire, Some("on"), &conversation(wire, 60)).await;
        assert_eq!(reply.status, 200, "{wire:?}");
        let disclosed = reply.header("x-endmark-compacted").unwrap();
        assert!(disclosed.ends_with("; by=small-one"), "{wire:?}: {disclosed}");
        assert_eq!(reply.header("x-endmark-attempts").unwrap_or("1"), "1", "{wire:?}");

        let again = ask(endmark.address, wire, Some("on"), &conversation(wire, 61)).await;
        assert_eq!(again.status, 200, "{wire:?}");
        let requests = endmark.upstream.requests();
        assert_eq!(requests.len(), 3, "{wire:?}: it is asked once");
        let summary_question = summary_prompt(wire, &requests[0].body);
        assert!(
            summary_question.contains("Order A-7 was looked at")
                && summary_question.contains("user: Go on with step 3"),
            "{summary_question}"
        );
        match wire {
            Wire::Other(ModelFormat::Gemini) => {
                assert!(requests[0].path.contains("/models/small-one"), "{}", requests[0].path);
            }
            _ => assert_eq!(
                serde_json::from_slice::<Value>(&requests[0].body).unwrap()["model"],
                SUMMARY_MODEL
            ),
        }
        for request in &requests[1..] {
            let text = String::from_utf8_lossy(&request.body);
            assert!(
                text.contains("* The orders were looked at in detail, and every amount agrees."),
                "{wire:?}"
            );
            assert!(text.contains("A-7"), "{wire:?}: the values are there all the same");
        }
        assert_eq!(turns(wire, &requests[1].body)[..2], turns(wire, &requests[2].body)[..2], "{wire:?}");
        let mut calls = Vec::new();
        for _ in 0..200 {
            calls = endmark.store.reader().unwrap().recent_calls(10).unwrap();
            if calls.len() == 3 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        let summaries: Vec<_> = calls.iter().filter(|call| call.purpose == "summary").collect();
        assert_eq!(summaries.len(), 1, "{wire:?}: {calls:?}");
    }
}

#[tokio::test]
async fn an_invalid_answer_of_the_summary_model_is_not_used() {
    let answers = |wire: Wire| {
        [
            Answer::json(
                404,
                &json!({"error": {"message": "no such model", "type": "invalid_request_error"}}),
            ),
            wire.answer(&[ReplyPart::Text("I'm sorry, I cannot help with that request.")], End::Turn, false),
            wire.answer(
                &[ReplyPart::Text("The orders were looked at in detail, and every am")],
                End::Limit,
                false,
            ),
            wire.answer(&[ReplyPart::Text("")], End::Turn, false),
        ]
    };
    for wire in Wire::ALL {
        let plain = super::compacted_conversations::start_condensing(wire, Script::new()).await;
        ask(plain.address, wire, Some("on"), &conversation(wire, 60)).await;
        let expected = plain.upstream.requests().remove(0).body;
        for answer in answers(wire) {
            let endmark = start_with_summary_model(wire, Script::new().then(answer)).await;
            let reply = ask(endmark.address, wire, Some("on"), &conversation(wire, 60)).await;
            assert_eq!(reply.status, 200, "{wire:?}");
            assert!(!reply.header("x-endmark-compacted").unwrap().contains("by="), "{wire:?}");
            let requests = endmark.upstream.requests();
            assert_eq!(requests.len(), 2, "{wire:?}");
            assert_eq!(requests[1].body, expected, "{wire:?}");
        }
    }
}
