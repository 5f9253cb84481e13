//! Streams and replies that their provider ended as failed. Permanent failures are forwarded unchanged and
//! not requested again.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const RESPONSES: Wire = Wire::Other(ModelFormat::Responses);
const MESSAGES: Wire = Wire::Other(ModelFormat::Messages);
const GEMINI: Wire = Wire::Other(ModelFormat::Gemini);
const TEXT: [ReplyPart<'static>; 1] = [ReplyPart::Text("The harbour was quiet and the")];

/// Checks that the client gets the upstream's bytes, and that the upstream is called once.
async fn assert_passes_unchanged(wire: Wire, answer: Answer, request: &Value, stream: bool) {
    let sent = String::from_utf8(answer.body()).unwrap_or_default();
    let endmark = Endmark::start(Script::new().then(answer)).await;
    let (reply, _) = wire.ask(&endmark, request, stream).await;
    assert_eq!((reply.text(), endmark.calls()), (sent, 1), "{wire:?}");
}

#[tokio::test]
async fn failed_and_cancelled_responses_pass_unchanged() {
    for (status, output) in [("failed", &[][..]), ("failed", &TEXT[..]), ("cancelled", &TEXT[..])] {
        let mut response = RESPONSES.whole_reply(output, status);
        if status == "failed" {
            response["error"] = json!({"code": "server_error", "message": "boom"});
        }
        assert_passes_unchanged(RESPONSES, Answer::json(200, &response), &RESPONSES.request(false), false)
            .await;
        if output.is_empty() {
            // A failed stream without output is requested again: see `first_event`.
            continue;
        }
        let mut frames = RESPONSES.frames(output, None);
        let event = json!({"type": format!("response.{status}"), "response": response});
        frames.push(format!("event: response.{status}\ndata: {event}\n\n"));
        assert_passes_unchanged(RESPONSES, Answer::sse(frames), &RESPONSES.request(true), true).await;
    }
}

#[tokio::test]
async fn a_request_refused_in_a_stream_is_not_repeated() {
    for (wire, kind) in [
        (RESPONSES, "invalid_prompt"),
        (MESSAGES, "invalid_request_error"),
        (GEMINI, "PERMISSION_DENIED"),
        (Wire::Chat, "insufficient_quota"),
    ] {
        let mut frames = wire.frames(&TEXT, None);
        frames.push(wire.error_frame(kind, "this is against our policy"));
        let endmark = Endmark::start(Script::new().then(Answer::sse(frames))).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
        assert_eq!((endmark.calls(), heard.stop), (1, None), "{wire:?}: {}", reply.text());
        assert!(reply.text().contains("this is against our policy"), "{wire:?}: {}", reply.text());
    }
}

#[tokio::test]
async fn gemini_failure_reasons_pass_unchanged() {
    for word in ["OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let answer = Answer::json(200, &GEMINI.whole_reply(&TEXT, word));
        let mut request = GEMINI.request(false);
        request["generationConfig"] = json!({"responseMimeType": "application/json"});
        assert_passes_unchanged(GEMINI, answer, &request, false).await;
        let frame = format!("data: {}\r\n\r\n", GEMINI.whole_reply(&TEXT, word));
        assert_passes_unchanged(GEMINI, Answer::sse([frame]), &request, true).await;
    }
}

#[tokio::test]
async fn a_full_context_window_is_disclosed_without_a_continuation() {
    let full = "model_context_window_exceeded";
    let whole = Answer::json(200, &MESSAGES.whole_reply(&TEXT, full));
    let mut frames = MESSAGES.frames(&TEXT, None);
    let delta =
        json!({"type": "message_delta", "delta": {"stop_reason": full}, "usage": {"output_tokens": 7}});
    frames.push(format!("event: message_delta\ndata: {delta}\n\n"));
    frames.push("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".to_owned());
    for (answer, stream) in [(whole, false), (Answer::sse(frames), true)] {
        let endmark = Endmark::start(Script::new().then(answer)).await;
        let (reply, heard) = MESSAGES.ask(&endmark, &MESSAGES.request(stream), stream).await;
        assert_eq!((heard.stop.as_deref(), endmark.calls()), (Some(full), 1), "{}", reply.text());
        let disclosed = heard.endmark.unwrap_or_default();
        let field = |name: &str| {
            let header = reply.header(&format!("x-endmark-{name}")).map(str::to_owned);
            disclosed[name].as_str().map(str::to_owned).or(header)
        };
        assert_eq!((field("outcome").as_deref(), field("cut").as_deref()), (Some("cut"), Some("window")));
    }
}

/// Each format has its own test, so that a failure names the format.
async fn assert_error_in_mid_stream_is_recovered(wire: Wire, kind: &str) {
    let mut frames = wire.frames(&TEXT, None);
    frames.push(wire.error_frame(kind, "too much to do"));
    let broken = || Answer::sse(frames.clone());
    // If the rest arrives, the client does not notice the failure.
    let rest = wire.answer(&[ReplyPart::Text(" boats were in.")], End::Turn, true);
    let endmark = Endmark::start(Script::new().then(broken()).default_answer(rest)).await;
    let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
    assert_eq!(heard.text, "The harbour was quiet and the boats were in.", "{}", reply.text());
    assert_eq!(
        (heard.error, heard.stop.as_deref()),
        (None, Some(wire.finish_reason(End::Turn))),
        "{}",
        reply.text()
    );
    assert!(!reply.text().contains("too much to do"), "{}", reply.text());
    let disclosed = heard.endmark.unwrap();
    let shown = endmark.store.show(disclosed["request"].as_str().unwrap()).unwrap().unwrap();
    assert_eq!(shown.pieces[0].piece.ending, "upstream_error");
    // If the rest is refused, the reply ends with the upstream's own error.
    let refused = Answer::error(400, "invalid_request_error", None, "no");
    let endmark = Endmark::start(Script::new().then(broken()).default_answer(refused)).await;
    let (reply, heard) = wire.ask(&endmark, &wire.request(true), true).await;
    assert!(endmark.calls() > 1 && heard.stop.is_none(), "{}", reply.text());
    assert!(heard.error.unwrap().to_string().contains("too much to do"), "{}", reply.text());
    assert!(!reply.text().contains("endmark_reply_cut"), "{}", reply.text());
}

#[tokio::test]
async fn an_error_in_a_chat_completions_stream_is_recovered() {
    assert_error_in_mid_stream_is_recovered(Wire::Chat, "overloaded").await;
}

#[tokio::test]
async fn an_error_in_a_responses_stream_is_recovered() {
    assert_error_in_mid_stream_is_recovered(RESPONSES, "server_error").await;
}

#[tokio::test]
async fn an_error_in_a_messages_stream_is_recovered() {
    assert_error_in_mid_stream_is_recovered(MESSAGES, "overloaded_error").await;
}

#[tokio::test]
async fn an_error_in_a_gemini_stream_is_recovered() {
    assert_error_in_mid_stream_is_recovered(GEMINI, "UNAVAILABLE").await;
}
