//! What the recovery of one reply may cost: bounded by what the client asked for, whatever an upstream answers.

use std::time::Duration;

use endmark_gateway::{Mode, Settings};
use serde_json::{Value, json};
use testkit::{Answer, Dialect, Fault, Script};

use crate::support::spoken::{End, Said, Wire};
use crate::support::{Endmark, request, stream_request, streamed};

/// A reply of so many choices, each of which is cut.
fn cut_choices(count: usize) -> Value {
    let choice = |index| json!({"index": index, "message": {"role": "assistant", "content": format!("Choice {index} was qu")}, "finish_reason": "length"});
    let choices: Vec<Value> = (0..count).map(choice).collect();
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices})
}

#[tokio::test]
async fn more_choices_than_were_asked_for_cause_no_more_calls() {
    let cut = || Answer::json(200, &cut_choices(2_000));
    let refused = Answer::error(400, "invalid_request_error", None, "no");
    for rest in [cut(), refused] {
        let endmark = Endmark::resuming(Script::new().then(cut()).otherwise(rest)).await;
        let reply = endmark.ask(&request(500)).await;
        let choices = reply.json()["choices"].as_array().unwrap().clone();
        assert_eq!(choices.len(), 2_000);
        assert_eq!(choices[1_999]["message"]["content"], "Choice 1999 was qu");
        assert_eq!(choices[1_999]["finish_reason"], "length");
        assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"));
        // Two attempts for the one choice: a refusal is none, and ends it.
        assert!((2..=3).contains(&endmark.calls()), "{}", endmark.calls());
        // The first of those that were not asked for stands for all of them.
        let log = endmark.log(2).await;
        assert_eq!(log.len(), 2);
        assert!(log[0].reason.contains("more choices"), "{:?}", log[0].reason);
    }
}

#[tokio::test]
async fn each_choice_that_was_asked_for_has_its_attempts() {
    let endmark = Endmark::resuming(Script::new().otherwise(Answer::json(200, &cut_choices(3)))).await;
    let mut body = request(500);
    body["n"] = json!(3);
    endmark.ask(&body).await;
    // The same text comes each time: the second attempt of each choice brings nothing new.
    assert!((4..=7).contains(&endmark.calls()), "{}", endmark.calls());
    assert_eq!(endmark.log(3).await.len(), 3);
}

#[tokio::test]
async fn all_calls_of_a_reply_share_its_attempts_and_its_corrections() {
    let cut = [Said::Call("get_time", r#"{"tz":"C"#); 50];
    let refused = [Said::Call("get_weather", r#"{"city":7}"#); 50];
    // What no attempt made whole is corrected once.
    for (said, at_most) in [(cut, 3), (refused, 1)] {
        for wire in [Wire::Chat, Wire::Other(Dialect::Responses)] {
            let first = wire.answer(&said, End::Calls, false);
            let script = Script::new().then(first).otherwise(wire.answer(&said[..1], End::Calls, false));
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
async fn the_log_counts_the_calls_that_failed_and_no_corrections() {
    let cut = || Wire::Chat.answer(&[Said::Text(r#"{"a": "#)], End::Limit, false);
    let wrong = Wire::Chat.answer(&[Said::Text(r#""x"}"#)], End::Turn, false);
    let right = Wire::Chat.answer(&[Said::Text(r#"{"a": 1}"#)], End::Turn, false);
    let refused = Answer::error(400, "invalid_request_error", None, "no");
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let mut body = request(500);
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}});
    for (script, corrections) in [
        // Corrected by the third call.
        (Script::new().then(cut()).then(wrong).otherwise(right.clone()), 1),
        // Every call is refused for good: none is an attempt, and each was made.
        (Script::new().then(cut()).otherwise(refused), 0),
    ] {
        let endmark = Endmark::start_with(script, |settings| settings.retry.max_retries = 0).await;
        endmark.ask(&body).await;
        let log = endmark.log(1).await;
        let resumes = i64::try_from(endmark.calls() - 1 - corrections).unwrap();
        assert!(resumes >= 1 && log[0].resume_attempts == resumes, "{resumes} {:?}", log[0]);
    }
}

fn hurried(settings: &mut Settings) {
    settings.resume.mode = Mode::On;
    settings.resume.call_time = Duration::from_secs(1);
    settings.limits.heartbeat = Duration::from_millis(200);
}

/// An answer with the rest of `{"a": "` that goes on for a quarter of a minute.
fn endless(stream: bool) -> Answer {
    let words = ["word "; 300];
    if stream {
        let said = words.map(Said::Text);
        return Answer::sse(Wire::Chat.frames(&said, Some(End::Limit))).pause(Duration::from_millis(50));
    }
    Wire::Chat
        .answer(&[Said::Text(&words.concat())], End::Limit, false)
        .split(16)
        .pause(Duration::from_millis(150))
}

#[tokio::test]
async fn a_continuation_that_does_not_end_is_left_in_time() {
    let beginning = r#"{"a": "the first words of it and "#;
    for stream in [false, true] {
        let first = Wire::Chat.answer(&[Said::Text(beginning)], End::Limit, stream);
        let script = Script::new().then(first).otherwise(endless(stream));
        let endmark = Endmark::start_with(script, hurried).await;
        let mut body = if stream { stream_request(20) } else { request(20) };
        body["response_format"] = json!({"type": "json_object"});
        let reply = endmark.ask(&body).await;
        // All of it would have taken longer than a client waits, and the second attempt as long again.
        assert_eq!(endmark.calls(), 2, "{stream}");
        assert!(
            !matches!(endmark.upstream.outcomes()[1], Some(testkit::Outcome::Delivered)),
            "{:?}",
            endmark.upstream.outcomes()
        );
        let log = endmark.log(1).await;
        let reason = log[0].reason.clone();
        assert!(reason.contains("time") && log[0].resume_attempts == 1, "{stream}: {reason}");
        if stream {
            let heard = streamed(&reply);
            assert!(heard.text.starts_with(beginning), "{}", heard.text);
            assert_eq!(heard.finish.as_deref(), Some("length"));
        } else {
            assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"));
        }
    }
}

/// Each call is over in time, and all of them together are not.
#[tokio::test]
async fn all_calls_for_the_rest_share_their_time() {
    let beginning = r#"{"a": "the first words of it and "#;
    let words = ["then ", "the ", "sea ", "was ", "grey ", "again "];
    for stream in [false, true] {
        let cut = |text| Wire::Chat.answer(&[Said::Text(text)], End::Limit, stream);
        let slow = |script: Script, word| script.then(cut(word).wait(Duration::from_millis(600)));
        let script = words.into_iter().fold(Script::new().then(cut(beginning)), slow).otherwise(cut("x"));
        let endmark = Endmark::start_with(script, |settings| {
            hurried(settings);
            settings.resume.max_attempts = 6;
        })
        .await;
        let mut body = if stream { stream_request(20) } else { request(20) };
        body["response_format"] = json!({"type": "json_object"});
        endmark.ask(&body).await;
        assert!((2..=3).contains(&endmark.calls()), "{stream}: {}", endmark.calls());
        let log = endmark.log(1).await;
        assert!(log[0].reason.contains("time"), "{stream}: {}", log[0].reason);
    }
}

/// What is held back of a continuation is nothing to the client, however fast it comes.
#[tokio::test]
async fn a_client_hears_that_its_reply_is_worked_on() {
    let beginning = r#"{"a": "the first words of it and "#;
    let held = Wire::Chat.frames(&[Said::Call("get_weather", r#"{"city":"Par"#)], Some(End::Limit));
    let held_rest = Wire::Chat.answer(&[Said::Call("get_weather", r#"{"city":"Paris"}"#)], End::Calls, false);
    // The whole document again, a character at a time: all of it is held back until its seam is certain.
    let characters: Vec<String> = beginning.chars().chain("more\"}".chars()).map(String::from).collect();
    let said: Vec<Said<'_>> = characters.iter().map(|character| Said::Text(character)).collect();
    let slow = Answer::sse(Wire::Chat.frames(&said, Some(End::Turn))).pause(Duration::from_millis(50));
    for (first, rest) in [
        (Wire::Chat.answer(&[Said::Text(beginning)], End::Limit, true), slow),
        (Answer::sse(held), held_rest.wait(Duration::from_millis(900))),
    ] {
        let endmark = Endmark::start_with(Script::new().then(first).otherwise(rest), |settings| {
            hurried(settings);
            settings.resume.call_time = Duration::from_mins(1);
            settings.hold_tool_calls = true;
        })
        .await;
        let mut body = Wire::Chat.request(true);
        body["response_format"] = json!({"type": "json_object"});
        let reply = endmark.ask(&body).await;
        assert_eq!(streamed(&reply).endmark.unwrap()["outcome"], "resumed");
        assert!(reply.text().contains("\n: ") || reply.text().starts_with(": "), "{}", reply.text());
    }
}

#[tokio::test]
async fn every_chunk_of_gemini_has_a_part() {
    let wire = Wire::Other(Dialect::Gemini);
    let frames = wire.frames(&[Said::Text("The harbour was quiet")], None);
    let dropped = Answer::sse(frames.clone()).fault(frames.concat().len(), Fault::Reset);
    let rest = wire.answer(&[Said::Text(" and grey.")], End::Turn, true);
    let cut_call = Answer::sse(wire.frames(&[Said::Call("get_weather", "{}")], Some(End::Limit)));
    let nothing = wire.answer(&[Said::Text("")], End::Turn, false);
    for script in
        [Script::new().then(dropped).otherwise(rest), Script::new().then(cut_call).otherwise(nothing)]
    {
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
async fn a_base_url_has_its_version_or_not() {
    for dialect in [Dialect::Messages, Dialect::Gemini] {
        let wire = Wire::Other(dialect);
        for stream in [false, true] {
            let cut = wire.answer(&[Said::Text("The harbour was qu")], End::Limit, stream);
            let rest = wire.answer(&[Said::Text("iet.")], End::Turn, stream);
            let script = Script::new().then(cut).otherwise(rest);
            let endmark = Endmark::start_with(script, |settings| {
                settings.resume.mode = Mode::On;
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
