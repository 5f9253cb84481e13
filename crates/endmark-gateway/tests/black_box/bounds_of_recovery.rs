//! The client's request limits the cost of a recovery, whatever an upstream answers.

use std::time::Duration;

use endmark_gateway::{ResumeMode, Settings};
use serde_json::{Value, json};
use testkit::{Answer, Fault, ModelFormat, Request, Script};

use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, read_stream, request, stream_request};

/// Returns a reply with `count` cut choices.
fn cut_choices(count: usize) -> Value {
    let choice = |index| json!({"index": index, "message": {"role": "assistant", "content": format!("Choice {index} was qu")}, "finish_reason": "length"});
    let choices: Vec<Value> = (0..count).map(choice).collect();
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices})
}

#[tokio::test]
async fn excess_choices_cause_no_extra_calls() {
    let cut = || Answer::json(200, &cut_choices(2_000));
    let refused = Answer::error(400, "invalid_request_error", None, "no");
    for rest in [cut(), refused] {
        let endmark = Endmark::start_resuming(Script::new().then(cut()).default_answer(rest)).await;
        let reply = endmark.ask(&request(500)).await;
        let choices = reply.json()["choices"].as_array().unwrap().clone();
        assert_eq!(choices.len(), 2_000);
        assert_eq!(choices[1_999]["message"]["content"], "Choice 1999 was qu");
        assert_eq!(choices[1_999]["finish_reason"], "length");
        assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"));
        // The requested choice gets two attempts. A refusal is not an attempt, and ends the recovery.
        assert!((2..=3).contains(&endmark.calls()), "{}", endmark.calls());
        // The log has one row for the first surplus choice, which represents all of them.
        let log = endmark.log(2).await;
        assert_eq!(log.len(), 2);
        assert!(log[0].reason.contains("more choices"), "{:?}", log[0].reason);
    }
}

#[tokio::test]
async fn each_requested_choice_has_its_own_attempts() {
    let endmark =
        Endmark::start_resuming(Script::new().default_answer(Answer::json(200, &cut_choices(3)))).await;
    let mut body = request(500);
    body["n"] = json!(3);
    endmark.ask(&body).await;
    // Every answer is the same text, so the second attempt for each choice adds nothing.
    assert!((4..=7).contains(&endmark.calls()), "{}", endmark.calls());
    assert_eq!(endmark.log(3).await.len(), 3);
}

#[tokio::test]
async fn all_calls_of_a_reply_share_attempts_and_corrections() {
    let cut = [ReplyPart::Call("get_time", r#"{"tz":"C"#); 50];
    let refused = [ReplyPart::Call("get_weather", r#"{"city":7}"#); 50];
    // A reply that no attempt completed is corrected once.
    for (parts, at_most) in [(cut, 3), (refused, 1)] {
        for wire in [Wire::Chat, Wire::Other(ModelFormat::Responses)] {
            let first = wire.answer(&parts, End::Calls, false);
            let script =
                Script::new().then(first).default_answer(wire.answer(&parts[..1], End::Calls, false));
            let endmark = Endmark::start(script).await;
            let mut body = wire.request(false);
            let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
            match wire {
                Wire::Chat => body["tools"][0]["function"]["parameters"] = schema,
                Wire::Other(_) => body["tools"][0]["parameters"] = schema,
            }
            let (reply, _) = wire.ask(&endmark, &body, false).await;
            assert_eq!(reply.status, 200);
            assert!((2..=1 + at_most).contains(&endmark.calls()), "{wire:?} {at_most}: {}", endmark.calls());
        }
    }
}

#[tokio::test]
async fn the_log_counts_failed_calls_but_not_corrections() {
    let cut = || Wire::Chat.answer(&[ReplyPart::Text(r#"{"a": "#)], End::Limit, false);
    let wrong = Wire::Chat.answer(&[ReplyPart::Text(r#""x"}"#)], End::Turn, false);
    let right = Wire::Chat.answer(&[ReplyPart::Text(r#"{"a": 1}"#)], End::Turn, false);
    let refused = Answer::error(400, "invalid_request_error", None, "no");
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let mut body = request(500);
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}});
    for (script, corrections) in [
        // The third call is a correction.
        (Script::new().then(cut()).then(wrong).default_answer(right.clone()), 1),
        // All continuations are refused permanently. They are logged, although a refusal does not count as an
        // attempt.
        (Script::new().then(cut()).default_answer(refused), 0),
    ] {
        let endmark = Endmark::start_with(script, |settings| settings.retry.max_retries = 0).await;
        endmark.ask(&body).await;
        let log = endmark.log(1).await;
        let resumes = i64::try_from(endmark.calls() - 1 - corrections).unwrap();
        assert!(resumes >= 1 && log[0].resume_attempts == resumes, "{resumes} {:?}", log[0]);
    }
}

fn with_short_timeouts(settings: &mut Settings) {
    settings.resume.mode = ResumeMode::On;
    settings.resume.max_time = Duration::from_secs(1);
    settings.limits.heartbeat = Duration::from_millis(200);
}

/// Returns an answer that takes 15 seconds to send the rest of `{"a": "`.
fn slow_answer(stream: bool) -> Answer {
    let words = ["word "; 300];
    if stream {
        let parts = words.map(ReplyPart::Text);
        return Answer::sse(Wire::Chat.frames(&parts, Some(End::Limit))).pause(Duration::from_millis(50));
    }
    Wire::Chat
        .answer(&[ReplyPart::Text(&words.concat())], End::Limit, false)
        .split(16)
        .pause(Duration::from_millis(150))
}

#[tokio::test]
async fn an_endless_continuation_is_stopped_in_time() {
    let beginning = r#"{"a": "the first words of it and "#;
    for stream in [false, true] {
        let first = Wire::Chat.answer(&[ReplyPart::Text(beginning)], End::Limit, stream);
        let script = Script::new().then(first).default_answer(slow_answer(stream));
        let endmark = Endmark::start_with(script, with_short_timeouts).await;
        let mut body = if stream { stream_request(20) } else { request(20) };
        body["response_format"] = json!({"type": "json_object"});
        let reply = endmark.ask(&body).await;
        // The complete answer would exceed the time limit, so no second attempt is made.
        assert_eq!(endmark.calls(), 2, "{stream}");
        assert!(
            !matches!(endmark.upstream.outcomes()[1], Some(testkit::ResponseOutcome::Delivered)),
            "{:?}",
            endmark.upstream.outcomes()
        );
        let log = endmark.log(1).await;
        let reason = log[0].reason.clone();
        assert!(reason.contains("[resume] max_seconds") && log[0].resume_attempts == 1, "{stream}: {reason}");
        if stream {
            let heard = read_stream(&reply);
            assert!(heard.text.starts_with(beginning), "{}", heard.text);
            assert_eq!(heard.finish.as_deref(), Some("length"));
        } else {
            assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"));
        }
    }
}

/// Each call alone is within the time limit, but all calls together exceed it.
#[tokio::test]
async fn all_recovery_calls_share_one_time_limit() {
    let beginning = r#"{"a": "the first words of it and "#;
    let words = ["then ", "the ", "sea ", "was ", "grey ", "again "];
    for stream in [false, true] {
        let cut = |text| Wire::Chat.answer(&[ReplyPart::Text(text)], End::Limit, stream);
        let slow = |script: Script, word| script.then(cut(word).wait(Duration::from_millis(600)));
        let script =
            words.into_iter().fold(Script::new().then(cut(beginning)), slow).default_answer(cut("x"));
        let endmark = Endmark::start_with(script, |settings| {
            with_short_timeouts(settings);
            settings.resume.max_attempts = 6;
        })
        .await;
        let mut body = if stream { stream_request(20) } else { request(20) };
        body["response_format"] = json!({"type": "json_object"});
        endmark.ask(&body).await;
        assert!((2..=3).contains(&endmark.calls()), "{stream}: {}", endmark.calls());
        let log = endmark.log(1).await;
        assert!(log[0].reason.contains("[resume] max_seconds"), "{stream}: {}", log[0].reason);
    }
}

/// Returns the output limit of a request in tokens, or 0 if it has none.
fn requested_limit(body: &Value) -> u64 {
    let names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    let limit = names.iter().find_map(|name| body[name].as_u64());
    limit.or_else(|| body["generationConfig"]["maxOutputTokens"].as_u64()).unwrap_or(0)
}

/// Returns a model that never finishes its document. It writes one word for each allowed token, always the
/// same word if it loops.
fn endless_model(
    wire: Wire,
    loops: bool,
    stream: bool,
) -> impl Fn(&testkit::ReceivedRequest) -> Answer + Send + Sync {
    move |request: &testkit::ReceivedRequest| {
        let limit = requested_limit(&request.json());
        let word = |at: u64| if loops { "again ".to_owned() } else { format!("word{} ", at * at % 9_973) };
        let mut words: Vec<String> = (0..limit).map(word).collect();
        if request.json().to_string().matches("the first words").count() == 0 {
            words = vec![r#"{"a": "the first words "#.to_owned()];
        }
        if stream {
            // The stream has no token counts: Chat sends them only on request, and some servers omit them.
            let parts: Vec<String> = words.chunks(64).map(<[String]>::concat).collect();
            let parts: Vec<ReplyPart<'_>> = parts.iter().map(|text| ReplyPart::Text(text)).collect();
            return wire.answer(&parts, End::Limit, true);
        }
        let mut reply = wire.whole_reply(&[ReplyPart::Text(&words.concat())], wire.finish_reason(End::Limit));
        let count = json!(words.len());
        for path in
            ["/usage/completion_tokens", "/usage/output_tokens", "/usageMetadata/candidatesTokenCount"]
        {
            if let Some(counted) = reply.pointer_mut(path) {
                *counted = count.clone();
            }
        }
        Answer::json(200, &reply)
    }
}

fn with_limit(wire: Wire, limit: u64, stream: bool) -> Value {
    let mut body = wire.request(stream);
    match wire {
        Wire::Chat | Wire::Other(ModelFormat::Messages) => body["max_tokens"] = json!(limit),
        Wire::Other(ModelFormat::Responses) => body["max_output_tokens"] = json!(limit),
        Wire::Other(ModelFormat::Gemini) => body["generationConfig"]["maxOutputTokens"] = json!(limit),
    }
    body
}

#[tokio::test]
async fn continuations_use_at_most_a_multiple_of_the_client_limit() {
    let modes =
        [("auto", 4, 2_048, 15), ("on", 4, 2_048, 15), ("on", 4, 4_000, 1_000), ("auto", 3, 3_000, 1_000)];
    for (wire, stream) in Wire::ALL.map(|wire| (wire, false)).into_iter().chain([(Wire::Chat, true)]) {
        for (mode, factor, bound, limit) in modes {
            for loops in [false, true] {
                let endmark = Endmark::start_with(endless_model(wire, loops, stream), |settings| {
                    settings.resume.client_limit_factor = factor;
                    settings.resume.max_attempts = 6;
                })
                .await;
                let request =
                    Request::post(endmark.address, wire.path(stream)).header("x-endmark-format", "json");
                let request = request.header("x-endmark-resume", mode);
                let reply = request.json(&with_limit(wire, limit, stream)).send().await.read().await;
                let limits: Vec<u64> = endmark
                    .upstream
                    .requests()
                    .iter()
                    .skip(1)
                    .map(|request| requested_limit(&request.json()))
                    .collect();
                let what = format!("{wire:?} {stream} {mode} {limit} {loops} {limits:?}");
                assert_eq!(limits.first(), Some(&bound.min(4_096)), "{what}");
                assert!(limits.iter().sum::<u64>() <= bound, "{what}");
                if stream && !loops {
                    // The client already has a beginning that could not be joined, which ended the recovery.
                    continue;
                }
                let named = if loops { "repeated itself" } else { "[resume] client_limit_factor" };
                let reason = endmark.log(1).await[0].reason.clone();
                assert!(reason.contains(named), "{what}: {reason}");
                let disclosed = match wire.read_reply(&reply).endmark {
                    Some(disclosed) => disclosed["reason"].as_str().unwrap_or_default().to_owned(),
                    None => reply.header("x-endmark-reason").unwrap_or_default().to_owned(),
                };
                assert!(disclosed.contains(named), "{what}: {disclosed}");
            }
        }
    }
}

/// The model's reasoning used up the client's limit. Repeating the request is not a continuation.
#[tokio::test]
async fn repeating_a_request_after_an_empty_reply_is_not_a_continuation() {
    let mut empty = Wire::Chat.whole_reply(&[ReplyPart::Text("")], "length");
    empty["choices"][0]["message"]["reasoning_content"] = json!("I think about it. ");
    empty["usage"]["completion_tokens"] = json!(3_000);
    let script = Script::new().default_answer(Answer::json(200, &empty));
    let endmark = Endmark::start_with(script, |settings| settings.resume.max_attempts = 4).await;
    let mut body = request(20);
    body["response_format"] = json!({"type": "json_object"});
    endmark.ask(&body).await;
    let limits: Vec<u64> =
        endmark.upstream.requests().iter().skip(1).map(|request| requested_limit(&request.json())).collect();
    assert_eq!(limits, [4_096; 4], "of 16,384 tokens, and not of 2,048");
}

#[tokio::test]
async fn a_looping_stream_is_also_stopped_upstream() {
    let first = Wire::Chat.answer(&[ReplyPart::Text(r#"{"a": "the first words "#)], End::Limit, true);
    let again = Wire::Chat.frames(&vec![ReplyPart::Text("and again and again, "); 4_000], Some(End::Limit));
    let endless = Answer::sse(again).pause(Duration::from_millis(1));
    let endmark = Endmark::start(Script::new().then(first).default_answer(endless)).await;
    let mut body = stream_request(20);
    body["response_format"] = json!({"type": "json_object"});
    let heard = read_stream(&endmark.ask(&body).await);
    assert_eq!((heard.finish.as_deref(), endmark.calls()), (Some("length"), 2));
    assert!(heard.text.len() < 8_000, "{}", heard.text.len());
    let reason = heard.endmark.unwrap_or_default()["reason"].to_string();
    assert!(reason.contains("it repeated itself and was stopped"), "{reason}");
    let outcome = &endmark.upstream.outcomes()[1];
    assert!(!matches!(outcome, Some(testkit::ResponseOutcome::Delivered)), "{outcome:?}");
}

/// The gateway does not wait for an overloaded upstream beyond the time limit of the recovery.
#[tokio::test]
async fn waits_count_toward_the_recovery_time() {
    let first = Wire::Chat.answer(&[ReplyPart::Text(r#"{"a": "the first words "#)], End::Limit, false);
    let busy = Answer::error(503, "overloaded_error", None, "busy").header("retry-after", "25");
    let endmark = Endmark::start_with(Script::new().then(first).default_answer(busy), |settings| {
        with_short_timeouts(settings);
        settings.retry.max_retries = 0;
    })
    .await;
    let mut body = request(20);
    body["response_format"] = json!({"type": "json_object"});
    let started = std::time::Instant::now();
    let reply = endmark.ask(&body).await;
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(reply.header("x-endmark-reason").is_some_and(|reason| reason.contains("[resume] max_seconds")));
}

/// Text that the gateway holds back does not reach the client, so the client needs heartbeats.
#[tokio::test]
async fn a_client_gets_heartbeats_during_recovery() {
    let beginning = r#"{"a": "the first words of it and "#;
    let held = Wire::Chat.frames(&[ReplyPart::Call("get_weather", r#"{"city":"Par"#)], Some(End::Limit));
    let held_rest =
        Wire::Chat.answer(&[ReplyPart::Call("get_weather", r#"{"city":"Paris"}"#)], End::Calls, false);
    // The model repeats the document, one character at a time. The gateway holds all of it back until the
    // seam is certain.
    let characters: Vec<String> = beginning.chars().chain("more\"}".chars()).map(String::from).collect();
    let parts: Vec<ReplyPart<'_>> = characters.iter().map(|character| ReplyPart::Text(character)).collect();
    let slow = Answer::sse(Wire::Chat.frames(&parts, Some(End::Turn))).pause(Duration::from_millis(50));
    for (first, rest) in [
        (Wire::Chat.answer(&[ReplyPart::Text(beginning)], End::Limit, true), slow),
        (Answer::sse(held), held_rest.wait(Duration::from_millis(900))),
    ] {
        let endmark = Endmark::start_with(Script::new().then(first).default_answer(rest), |settings| {
            with_short_timeouts(settings);
            settings.resume.max_time = Duration::from_mins(1);
            settings.tools.hold = true;
        })
        .await;
        let mut body = Wire::Chat.request(true);
        body["response_format"] = json!({"type": "json_object"});
        let reply = endmark.ask(&body).await;
        assert_eq!(read_stream(&reply).endmark.unwrap()["outcome"], "resumed");
        assert!(reply.text().contains("\n: ") || reply.text().starts_with(": "), "{}", reply.text());
    }
}

#[tokio::test]
async fn every_gemini_chunk_has_a_part() {
    let wire = Wire::Other(ModelFormat::Gemini);
    let frames = wire.frames(&[ReplyPart::Text("The harbour was quiet")], None);
    let dropped = Answer::sse(frames.clone()).fault(frames.concat().len(), Fault::Reset);
    let rest = wire.answer(&[ReplyPart::Text(" and grey.")], End::Turn, true);
    let cut_call = Answer::sse(wire.frames(&[ReplyPart::Call("get_weather", "{}")], Some(End::Limit)));
    let nothing = wire.answer(&[ReplyPart::Text("")], End::Turn, false);
    for script in [
        Script::new().then(dropped).default_answer(rest),
        Script::new().then(cut_call).default_answer(nothing),
    ] {
        let endmark = Endmark::start(script).await;
        let (reply, _) = wire.ask(&endmark, &wire.request(true), true).await;
        let chunks = reply.json_events();
        assert!(chunks.iter().any(|chunk| chunk["endmark"].is_object()), "{}", reply.text());
        for chunk in chunks.iter().filter(|chunk| chunk["candidates"].is_array()) {
            assert!(chunk["candidates"][0]["content"]["parts"][0].is_object(), "{chunk}");
        }
    }
}

#[tokio::test]
async fn a_base_url_works_with_and_without_a_version() {
    for dialect in [ModelFormat::Messages, ModelFormat::Gemini] {
        let wire = Wire::Other(dialect);
        for stream in [false, true] {
            let cut = wire.answer(&[ReplyPart::Text("The harbour was qu")], End::Limit, stream);
            let rest = wire.answer(&[ReplyPart::Text("iet.")], End::Turn, stream);
            let script = Script::new().then(cut).default_answer(rest);
            let endmark = Endmark::start_with(script, |settings| {
                settings.resume.mode = ResumeMode::On;
                let upstream = &mut settings.upstreams[0];
                upstream.provider =
                    endmark_wire::format::find(wire.path(stream).split('?').next().unwrap(), Some("alt=sse"))
                        .unwrap()
                        .format
                        .provider();
                let address = upstream.base_url.to_string();
                upstream.base_url = address.trim_end_matches("/v1").parse().unwrap();
            })
            .await;
            let (reply, _) = wire.ask(&endmark, &wire.request(stream), stream).await;
            assert_eq!(reply.status, 200);
            let requests = endmark.upstream.requests();
            assert!(requests.len() > 1);
            for request in requests {
                let path = wire.path(stream).split(':').next().unwrap();
                assert!(request.path.starts_with(path.split('?').next().unwrap()), "{}", request.path);
            }
        }
    }
}
