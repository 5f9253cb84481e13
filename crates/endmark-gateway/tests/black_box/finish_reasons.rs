//! How the gateway reacts to finish reasons of real servers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use endmark_gateway::IncompleteDelivery;
use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const BEGINNING: &str = "The harbour was quiet and the";
const REST: &str = " boats were in.";
const CHAT: Wire = Wire::Chat;

/// Returns the beginning of a Chat reply with this finish reason.
fn answer_with_finish_reason(word: &str, stream: bool) -> Answer {
    if !stream {
        return Answer::json(200, &CHAT.whole_reply(&[ReplyPart::Text(BEGINNING)], word));
    }
    let frames = CHAT.frames(&[ReplyPart::Text(BEGINNING)], Some(End::Turn));
    Answer::sse(frames.into_iter().map(|frame| frame.replace("\"stop\"", &format!("\"{word}\""))))
}

/// Returns a request without a limit, so that a reached limit is always a cut to be resumed.
fn request(stream: bool) -> Value {
    let mut body = CHAT.request(stream);
    body.as_object_mut().unwrap().remove("max_tokens");
    body
}

#[tokio::test]
async fn a_reply_whose_finish_reason_is_a_failure_is_resumed() {
    for word in [
        "network_error",
        "NETWORK-ERROR",
        "abort",
        "timeout",
        "server_error",
        "failed",
        "insufficient_system_resource",
        "internal_error",
        "overloaded",
        "connection_error",
        "max_length",
        "token_limit",
        "max_completion_tokens",
        "MAX_TOKENS",
    ] {
        for stream in [true, false] {
            let rest = CHAT.answer(&[ReplyPart::Text(REST)], End::Turn, stream);
            let endmark = Endmark::start(
                Script::new().then(answer_with_finish_reason(word, stream)).default_answer(rest),
            )
            .await;
            let (reply, heard) = CHAT.ask(&endmark, &request(stream), stream).await;
            let what = format!("{word} {stream}: {}", reply.text());
            assert_eq!(heard.text, format!("{BEGINNING}{REST}"), "{what}");
            assert_eq!(heard.stop.as_deref(), Some("stop"), "{what}");
        }
    }
}

#[tokio::test]
async fn a_failed_continuation_is_not_whole() {
    for stream in [true, false] {
        let script = Script::new()
            .then(answer_with_finish_reason("length", stream))
            .default_answer(answer_with_finish_reason("network_error", stream));
        let endmark = Endmark::start(script).await;
        let (reply, heard) = CHAT.ask(&endmark, &request(stream), stream).await;
        assert_ne!(heard.stop.as_deref(), Some("stop"), "{stream}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_reply_that_failed_permanently_is_not_resumed() {
    // Each case: the finish reason, and the disclosed kind of cut.
    for (word, cut) in [
        ("repetition", Some("limit")),
        ("repetition_truncation", Some("limit")),
        ("context_length_exceeded", Some("window")),
        ("model_context_window_exceeded", Some("window")),
        ("cancelled", None),
        ("pause_turn", None),
    ] {
        for stream in [true, false] {
            let answer = answer_with_finish_reason(word, stream);
            let sent = String::from_utf8(answer.body()).unwrap();
            let endmark = Endmark::start(Script::new().then(answer)).await;
            let (reply, heard) = CHAT.ask(&endmark, &request(stream), stream).await;
            let what = format!("{word} {stream}: {}", reply.text());
            assert_eq!((endmark.calls(), heard.stop.as_deref()), (1, Some(word)), "{what}");
            let disclosed = heard.endmark.unwrap_or_default();
            let header_field = |name: &str| {
                let header = reply.header(&format!("x-endmark-{name}")).map(str::to_owned);
                disclosed[name].as_str().map(str::to_owned).or(header)
            };
            assert_eq!(header_field("cut").as_deref(), cut, "{what}");
            assert_eq!(header_field("outcome").as_deref(), cut.map(|_| "cut"), "{what}");
            assert_eq!(reply.text() == sent, cut.is_none() || !stream, "{what}");
        }
    }
}

#[tokio::test]
async fn an_unknown_finish_reason_is_disclosed_and_the_body_unchanged() {
    let replies =
        Wire::ALL.map(|wire| (wire, wire.whole_reply(&[ReplyPart::Text("{\"quiet\": tr")], "moon_phase\n")));
    for (wire, reply) in replies {
        let mut request = wire.request(false);
        if wire == CHAT {
            // Not even a required format causes a resume.
            request["response_format"] = json!({"type": "json_object"});
        }
        let answer = Answer::json(200, &reply);
        let sent = String::from_utf8(answer.body()).unwrap();
        let endmark = Endmark::start(Script::new().then(answer)).await;
        let (reply, _) = wire.ask(&endmark, &request, false).await;
        assert_eq!((reply.text(), endmark.calls()), (sent, 1), "{wire:?}");
        let headers = ["x-endmark-outcome", "x-endmark-reason"].map(|name| reply.header(name));
        assert_eq!(headers, [Some("cut"), Some("unknown_finish_reason moon_phase\\n")], "{wire:?}");
    }
    let endmark = Endmark::start(Script::new().then(answer_with_finish_reason("moon_phase", true))).await;
    let _ = CHAT.ask(&endmark, &request(true), true).await;
    let row = endmark.only_row().await;
    assert_eq!((row.stop.as_deref(), row.verdict.as_deref()), (Some("unknown"), Some("passed")));
}

/// Returns a stream of this format that ends with an unknown finish reason.
fn stream_with_unknown_finish_reason(wire: Wire) -> Answer {
    let frames = wire.frames(&[ReplyPart::Text(BEGINNING)], Some(End::Turn));
    let word = wire.finish_reason(End::Turn);
    Answer::sse(frames.into_iter().map(|frame| {
        ["finish_reason", "stop_reason", "finishReason"].into_iter().fold(frame, |frame, field| {
            frame.replace(&format!("\"{field}\":\"{word}\""), &format!("\"{field}\":\"moon_phase\""))
        })
    }))
}

#[tokio::test]
async fn a_stream_discloses_an_unknown_finish_reason_that_may_be_an_error() {
    for wire in [CHAT, Wire::Other(ModelFormat::Messages), Wire::Other(ModelFormat::Gemini)] {
        for incomplete in [IncompleteDelivery::FinishReason, IncompleteDelivery::Error] {
            let answer = stream_with_unknown_finish_reason(wire);
            let endmark = Endmark::start_with(Script::new().then(answer), |settings| {
                settings.disclose.incomplete = incomplete;
            })
            .await;
            let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
            let what = format!("{wire:?}: {}", reply.text());
            assert_eq!(
                reply.text().contains("endmark_reply_incomplete"),
                incomplete == IncompleteDelivery::Error,
                "{what}"
            );
            if incomplete == IncompleteDelivery::Error {
                continue;
            }
            let disclosed = heard.endmark.unwrap_or_default();
            assert_eq!(
                (heard.text.as_str(), heard.stop.as_deref()),
                (BEGINNING, Some("moon_phase")),
                "{what}"
            );
            assert_eq!(
                (&disclosed["outcome"], &disclosed["reason"]),
                (&json!("cut"), &json!("unknown_finish_reason moon_phase")),
                "{what}"
            );
        }
    }
}

#[tokio::test]
async fn a_cut_after_a_whole_call_keeps_its_cut_kind_and_finish_reason() {
    let call = [ReplyPart::Call("get_weather", r#"{"city":"Paris"}"#)];
    for (word, cut) in [("repetition", "limit"), ("model_context_window_exceeded", "window")] {
        for stream in [false, true] {
            let frames = CHAT.frames(&call, Some(End::Calls)).into_iter();
            let answer = if stream {
                Answer::sse(frames.map(|frame| {
                    frame
                        .replace("\"finish_reason\":\"tool_calls\"", &format!("\"finish_reason\":\"{word}\""))
                }))
            } else {
                Answer::json(200, &CHAT.whole_reply(&call, word))
            };
            let endmark = Endmark::start(Script::new().then(answer)).await;
            let (reply, heard) = CHAT.ask(&endmark, &request(stream), stream).await;
            let what = format!("{word} {stream}: {}", reply.text());
            assert_eq!((heard.stop.as_deref(), heard.tool_calls.len()), (Some(word), 1), "{what}");
            let disclosed = heard.endmark.unwrap_or_default();
            let own = disclosed["cut"].as_str().or_else(|| reply.header("x-endmark-cut"));
            assert_eq!(own, Some(cut), "{what}");
            let reason = disclosed["reason"].as_str().or_else(|| reply.header("x-endmark-reason"));
            assert!(!reason.unwrap_or_default().contains("broke off"), "{what}");
        }
    }
}

/// `OpenRouter` reports the error of a choice inside the choice.
#[tokio::test]
async fn a_resumed_choice_has_no_error() {
    let mut failed = CHAT.whole_reply(&[ReplyPart::Text(BEGINNING)], "error");
    failed["choices"][0]["error"] = json!({"code": 502, "message": "no"});
    let rest = CHAT.answer(&[ReplyPart::Text(REST)], End::Turn, false);
    let endmark = Endmark::start(Script::new().then(Answer::json(200, &failed)).default_answer(rest)).await;
    let (reply, heard) = CHAT.ask(&endmark, &request(false), false).await;
    assert_eq!((heard.text, heard.stop.as_deref()), (format!("{BEGINNING}{REST}"), Some("stop")));
    assert!(reply.json()["choices"][0].get("error").is_none(), "{}", reply.text());
}

#[tokio::test]
async fn a_finish_reason_of_another_format_is_understood() {
    let messages = Wire::Other(ModelFormat::Messages);
    let failed = Answer::json(200, &messages.whole_reply(&[ReplyPart::Text(BEGINNING)], "network_error"));
    let rest = messages.answer(&[ReplyPart::Text(REST)], End::Turn, false);
    let endmark = Endmark::start(Script::new().then(failed).default_answer(rest)).await;
    let (reply, heard) = messages.ask(&endmark, &messages.request(false), false).await;
    assert_eq!(heard.text, format!("{BEGINNING}{REST}"), "{}", reply.text());
}
