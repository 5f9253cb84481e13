//! The gateway requests token counts for a stream whose client did not, and does not forward them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::time::Duration;

use endmark_context::budget::{BudgetRule, Period, Scope, Unit};
use endmark_gateway::{ResumeMode, Settings};
use serde_json::{Value, json};
use testkit::{Answer, ChatFrames, ReceivedRequest, Request, Script};

use crate::support::{Endmark, read_stream, stream_request};

fn requests_usage(received: &ReceivedRequest) -> bool {
    received.json()["stream_options"]["include_usage"] == true
}

fn with_budget(settings: &mut Settings) {
    settings.budget.rules =
        vec![BudgetRule { scope: Scope::All, unit: Unit::Tokens, period: Period::Day, limit: 1_000_000 }];
}

/// Returns a stream in OpenAI's form: each chunk has `"usage":null`, and a separate chunk has the tokens,
/// including those of hidden reasoning.
fn counted_stream(text: &str, finish: &str, tokens: (u64, u64)) -> Vec<String> {
    let frames = ChatFrames::new().text(text).finish(finish).cut().into_iter();
    let mut frames: Vec<String> =
        frames.map(|frame| frame.replace("\"choices\"", "\"usage\":null,\"choices\"")).collect();
    frames.insert(1, ": a comment\r\n\r\n".to_owned());
    frames.extend(ChatFrames::new().usage(tokens).done());
    frames
}

/// Returns the frames without the one that contains only token counts.
fn without_usage_frame(frames: &[String]) -> String {
    frames.iter().filter(|frame| !frame.contains("\"choices\":[]")).map(String::as_str).collect()
}

/// Returns the tokens of all calls, from their rows and from the budget, when `calls` calls are recorded.
async fn wait_for_spent_tokens(endmark: &Endmark, calls: usize) -> (u64, u64) {
    for _ in 0..200 {
        let reader = endmark.store.reader().unwrap();
        let rows = reader.recent_calls(100).unwrap();
        if rows.len() == calls {
            let tokens = |row: &endmark_store::UsageRow| {
                row.tokens.prompt.unwrap_or_default() + row.tokens.output.unwrap_or_default()
            };
            let budgets = reader.budgets().unwrap();
            return (rows.iter().map(tokens).sum(), budgets.iter().map(|budget| budget.spent).sum());
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("there never were {calls} calls");
}

#[tokio::test]
async fn hidden_reasoning_is_charged_and_the_client_stream_is_unchanged() {
    for mode in [ResumeMode::Auto, ResumeMode::Warn, ResumeMode::Off] {
        let frames = counted_stream("Yes.", "stop", (50, 100_000));
        let script = Script::new().default_answer(Answer::sse(frames.clone()));
        let endmark = Endmark::start_with(script, |settings| {
            with_budget(settings);
            settings.resume.mode = mode;
        })
        .await;
        for options in [json!(null), json!({"include_usage": false, "include_obfuscation": false})] {
            let mut body = stream_request(10);
            body["stream_options"] = options.clone();
            let reply = endmark.chat(&body).header("accept-encoding", "gzip").send().await.read().await;
            assert_eq!(reply.text(), without_usage_frame(&frames), "{mode:?}");
            let sent = endmark.upstream.requests().pop().unwrap();
            let mut expected = options;
            expected["include_usage"] = json!(true);
            assert_eq!(sent.json()["stream_options"], expected);
            assert_eq!(sent.header("accept-encoding"), Some("identity"));
        }
        assert_eq!(wait_for_spent_tokens(&endmark, 2).await, (200_100, 200_100), "{mode:?}");
        let mut body = stream_request(10);
        body["stream_options"] = json!({"include_usage": true});
        let sent = body.to_string();
        assert_eq!(endmark.ask(&body).await.text(), frames.concat(), "a client that asks gets all of it");
        assert_eq!(endmark.upstream.requests().pop().unwrap().body, sent.as_bytes());
    }
}

#[tokio::test]
async fn without_a_budget_an_untouched_request_is_not_edited() {
    let frames = ChatFrames::new().text("Yes.").finish("stop").usage((1, 2)).done();
    let endmark = Endmark::start(Script::new().default_answer(Answer::sse(frames.clone()))).await;
    let body = stream_request(10);
    let reply = endmark.chat(&body).header("x-endmark-resume", "off").send().await.read().await;
    assert_eq!(reply.text(), frames.concat());
    assert_eq!(endmark.upstream.requests()[0].body, body.to_string().as_bytes());
}

#[tokio::test]
async fn a_client_that_leaves_after_its_reply_is_still_counted() {
    let frames = counted_stream("Yes.", "stop", (50, 100_000));
    let answer = Answer::sse(frames).pause(Duration::from_millis(20));
    let endmark = Endmark::start_with(Script::new().default_answer(answer), with_budget).await;
    let mut body = stream_request(10);
    body.as_object_mut().unwrap().remove("max_tokens");
    let mut reply = endmark.chat(&body).send().await;
    let mut came = String::new();
    while !came.contains("\"stop\"") {
        came += &reply.next_frame().await.unwrap().unwrap();
    }
    reply.reset();
    assert_eq!(wait_for_spent_tokens(&endmark, 1).await, (100_050, 100_050));
}

#[tokio::test]
async fn all_calls_of_a_resumed_stream_count() {
    let cut = counted_stream("The harbour was", "length", (20, 3_000));
    let rest = counted_stream(" quiet.", "stop", (30, 5_000));
    let script = Script::new().then(Answer::sse(cut)).default_answer(Answer::sse(rest));
    let endmark = Endmark::start_with(script, |settings| {
        with_budget(settings);
        settings.resume.mode = ResumeMode::On;
    })
    .await;
    let reply = endmark.ask(&stream_request(10)).await;
    let read = read_stream(&reply);
    assert_eq!((read.text.as_str(), read.usage, read.is_done), ("The harbour was quiet.", None, true));
    assert!(!reply.text().contains("\"choices\":[]"), "{}", reply.text());
    assert!(endmark.upstream.requests().iter().all(requests_usage));
    assert_eq!(wait_for_spent_tokens(&endmark, 2).await, (8_050, 8_050));
}

/// Returns an upstream that rejects the added field with this error.
fn refusing_upstream(status: u16, message: &'static str) -> Script {
    let frames = ChatFrames::new().text("Yes.").finish("stop").done();
    let refusal = Answer::error(status, "invalid_request_error", None, message);
    Script::new().when(requests_usage, refusal).default_answer(Answer::sse(frames))
}

#[tokio::test]
async fn an_upstream_that_rejects_the_usage_field_is_remembered() {
    for (status, message, is_kept) in [
        (400, "Unrecognized request argument supplied: stream_options", true),
        (422, "Extra inputs are not permitted", false),
    ] {
        let endmark = Endmark::start(refusing_upstream(status, message)).await;
        let body = stream_request(10);
        for _ in 0..2 {
            let reply = endmark.ask(&body).await;
            assert_eq!((reply.status, read_stream(&reply).text.as_str()), (200, "Yes."), "{}", reply.text());
            assert_eq!(reply.header("x-endmark-retries"), None);
        }
        let sent = endmark.upstream.requests();
        assert_eq!(sent.iter().map(requests_usage).collect::<Vec<_>>(), [true, false, false], "{message}");
        assert_eq!(sent[1].body, body.to_string().as_bytes());
        let next = endmark.restart(|_| {});
        let reply = Request::post(next.address, "/v1/chat/completions").json(&body).send().await.read().await;
        assert_eq!(read_stream(&reply).text, "Yes.");
        let asked_again = endmark.upstream.requests()[3..].iter().any(requests_usage);
        assert_eq!(asked_again, !is_kept, "only an error that names the field is remembered permanently");
    }
}

#[tokio::test]
async fn an_unrelated_upstream_error_passes_unchanged() {
    let refusal = Answer::error(400, "invalid_request_error", None, "messages: too few");
    let bad = |received: &ReceivedRequest| received.json()["messages"] == json!([]);
    let frames = || ChatFrames::new().text("Yes.").finish("stop").done();
    let endmark =
        Endmark::start(Script::new().when(bad, refusal).default_answer(Answer::sse(frames()))).await;
    let mut body: Value = stream_request(10);
    body["messages"] = json!([]);
    for calls in [2, 4] {
        // For an unknown upstream the added field may be the cause of any error, although here it is not.
        let reply = endmark.ask(&body).await;
        assert_eq!((reply.status, reply.text().contains("messages: too few")), (400, true));
        assert_eq!(endmark.calls(), calls);
    }
    assert_eq!(endmark.ask(&stream_request(10)).await.status, 200);
    assert!(requests_usage(&endmark.upstream.requests()[4]));
    assert_eq!(endmark.ask(&body).await.status, 400);
    assert_eq!(endmark.calls(), 6, "an upstream that took the field is not asked twice");
}

#[tokio::test]
async fn a_false_stop_is_detected_without_a_usage_request_by_the_client() {
    let lie = counted_stream("one two", "stop", (5, 2));
    let rest = counted_stream(" three", "stop", (5, 1));
    let script = Script::new().then(Answer::sse(lie)).default_answer(Answer::sse(rest));
    let endmark = Endmark::start_resuming(script).await;
    assert_eq!(read_stream(&endmark.ask(&stream_request(2)).await).text, "one two three");
}

/// Returns a stream of the legacy completions API, whose usage is in a separate event.
fn legacy_completion_stream() -> Vec<String> {
    let chunk = |more: Value| format!("data: {more}\n\n");
    vec![
        chunk(json!({"object": "text_completion", "choices": [{"text": "Yes.", "index": 0}], "usage": null})),
        chunk(json!({"choices": [{"text": "", "index": 0, "finish_reason": "stop"}], "usage": null})),
        chunk(
            json!({"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 100_000, "total_tokens": 100_050}}),
        ),
        "data: [DONE]\n\n".to_owned(),
    ]
}

#[tokio::test]
async fn a_streamed_legacy_completion_requests_usage_too() {
    let frames = legacy_completion_stream();
    let script = Script::new().default_answer(Answer::sse(frames.clone()));
    let endmark = Endmark::start_with(script, with_budget).await;
    let body = json!({"model": "m", "prompt": "a", "max_tokens": 9, "stream": true});
    let ask = async |body: &Value| {
        let request = Request::post(endmark.address, "/v1/completions").json(body);
        request.header("accept-encoding", "gzip").send().await.read().await
    };
    assert_eq!(ask(&body).await.text(), without_usage_frame(&frames));
    let sent = endmark.upstream.requests().pop().unwrap();
    assert!(requests_usage(&sent));
    assert_eq!(sent.header("accept-encoding"), Some("identity"));
    assert_eq!(wait_for_spent_tokens(&endmark, 1).await, (100_050, 100_050));
    // A client that requests usage gets it in full.
    let mut asking = body.clone();
    asking["stream_options"] = json!({"include_usage": true});
    assert_eq!(ask(&asking).await.text(), frames.concat());
    let whole = json!({"model": "m", "prompt": "a", "max_tokens": 9});
    ask(&whole).await;
    assert_eq!(endmark.upstream.requests().pop().unwrap().body, whole.to_string().as_bytes());
}

#[tokio::test]
async fn a_legacy_completion_passes_unedited_if_usage_is_rejected() {
    let refusal = Answer::error(400, "invalid_request_error", None, "stream_options is not permitted");
    let frames: Vec<String> =
        legacy_completion_stream().into_iter().filter(|frame| !frame.contains("100050")).collect();
    let script = Script::new().when(requests_usage, refusal).default_answer(Answer::sse(frames.clone()));
    let endmark = Endmark::start_with(script, with_budget).await;
    let body = json!({"model": "m", "prompt": "a", "max_tokens": 9, "stream": true});
    for _ in 0..2 {
        let reply = Request::post(endmark.address, "/v1/completions").json(&body).send().await.read().await;
        assert_eq!((reply.status, reply.text()), (200, frames.concat()));
    }
    let sent = endmark.upstream.requests();
    assert_eq!(sent.iter().map(requests_usage).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(sent[1].body, body.to_string().as_bytes());
    // An error with another cause is forwarded.
    let refusal = Answer::error(400, "invalid_request_error", None, "prompt: too long");
    let endmark = Endmark::start_with(Script::new().default_answer(refusal), with_budget).await;
    let reply = Request::post(endmark.address, "/v1/completions").json(&body).send().await.read().await;
    assert_eq!((reply.status, reply.text().contains("prompt: too long")), (400, true));
}

over_postgresql! {
    "hidden_counts.rs":
    hidden_reasoning_is_charged_and_the_client_stream_is_unchanged,
    without_a_budget_an_untouched_request_is_not_edited,
    a_client_that_leaves_after_its_reply_is_still_counted,
    all_calls_of_a_resumed_stream_count,
    an_upstream_that_rejects_the_usage_field_is_remembered,
    an_unrelated_upstream_error_passes_unchanged,
    a_false_stop_is_detected_without_a_usage_request_by_the_client,
    a_streamed_legacy_completion_requests_usage_too,
    a_legacy_completion_passes_unedited_if_usage_is_rejected,
    ;
    alone:
}
