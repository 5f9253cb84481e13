//! Upstreams that return an error with a success status.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use testkit::{Answer, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const TEXT: &str = "All of the boats are in.";

fn error_answer(code: &Value) -> Answer {
    Answer::json(200, &json!({"error": {"message": "overloaded", "code": code}}))
}

/// Returns whether each call in the log was billed, oldest call first.
async fn billed_calls(endmark: &Endmark, calls: usize) -> Vec<bool> {
    for _ in 0..200 {
        let mut rows = endmark.store.reader().unwrap().recent_calls(9).unwrap();
        if rows.len() == calls && rows.iter().all(|row| row.ended_at.is_some()) {
            rows.sort_by_key(|row| row.call);
            return rows.iter().map(|row| endmark_store::classify(row).1.prompt > 0).collect();
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    Vec::new()
}

#[tokio::test]
async fn an_error_with_status_200_costs_nothing_and_is_retried() {
    for stream in [false, true] {
        let failed = if stream {
            Answer::sse(["data: {\"error\":{\"message\":\"overloaded\",\"code\":502}}\n\n".to_owned()])
        } else {
            error_answer(&json!(502))
        };
        let script = Script::new().then(failed).default_answer(Wire::Chat.answer(
            &[ReplyPart::Text(TEXT)],
            End::Turn,
            stream,
        ));
        let endmark = Endmark::start(script).await;
        let (reply, heard) = Wire::Chat.ask(&endmark, &Wire::Chat.request(stream), stream).await;
        assert_eq!((heard.text.as_str(), endmark.calls()), (TEXT, 2), "{stream}: {}", reply.text());
        assert_eq!(reply.header("x-endmark-retries"), Some("1"), "{stream}");
        assert_eq!(billed_calls(&endmark, 2).await, [false, true], "{stream}");
    }
    let endmark = Endmark::start(Script::new().default_answer(error_answer(&json!(502)))).await;
    let (reply, _) = Wire::Chat.ask(&endmark, &Wire::Chat.request(false), false).await;
    assert_eq!(reply.status, 502, "{}", reply.text());
    assert!(reply.text().contains("overloaded"), "{}", reply.text());
}

#[tokio::test]
async fn a_permanent_error_with_status_200_passes_and_is_marked() {
    let answer = error_answer(&json!("invalid_prompt"));
    let sent = String::from_utf8(answer.body()).unwrap();
    let endmark = Endmark::start(Script::new().default_answer(answer)).await;
    let (reply, _) = Wire::Chat.ask(&endmark, &Wire::Chat.request(false), false).await;
    assert_eq!((reply.status, reply.text(), endmark.calls()), (200, sent, 1));
    assert_eq!(reply.header("x-endmark-reason"), Some("upstream_error"));
    assert_eq!(billed_calls(&endmark, 1).await, [false]);
}
