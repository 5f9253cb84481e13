//! Cut calls in a client's conversation, and what the gateway sends upstream instead.

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};
use serde_json::{Value, json};
use testkit::{ModelFormat, Reply, Request, Script};

/// Returns a conversation that contains a call with these arguments and its result.
fn conversation(wire: Wire, arguments: &Value) -> String {
    let result = "the arguments are no JSON";
    let (name, messages) = match wire {
        Wire::Chat => (
            "messages",
            json!([{"role": "user", "content": "Tell."},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "get_time", "arguments": "{\"tz\": \"\\u0043ET\"}"}},
                    {"id": "c2", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "12:00"},
                {"role": "tool", "tool_call_id": "c2", "content": result}]),
        ),
        Wire::Other(ModelFormat::Responses) => (
            "input",
            json!([{"role": "user", "content": "Tell."},
                {"type": "function_call", "call_id": "c2", "name": "get_weather", "arguments": arguments},
                {"type": "function_call_output", "call_id": "c2", "output": result}]),
        ),
        Wire::Other(ModelFormat::Messages) => (
            "messages",
            json!([{"role": "user", "content": "Tell."},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c2", "name": "get_weather", "input": arguments}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": result}]}]),
        ),
        Wire::Other(ModelFormat::Gemini) => (
            "contents",
            json!([{"role": "user", "parts": [{"text": "Tell."}]},
                {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": arguments}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"error": result}}}]}]),
        ),
    };
    let mut body = wire.request(false);
    body[name] = messages;
    // Parsing and serialising again would change these bytes.
    format!(" {}", body.to_string().replacen('{', "{ \"odd\" : 1.50e1 ,", 1))
}

async fn ask(endmark: &Endmark, wire: Wire, body: &str, mode: &str) -> Reply {
    let request = Request::post(endmark.address, wire.path(false)).header("x-endmark-resume", mode);
    request.header("content-type", "application/json").body(body).send().await.read().await
}

/// Returns these arguments as a string or an object, as the format requires.
fn arguments_value(wire: Wire, arguments: &str) -> Value {
    match wire {
        Wire::Chat | Wire::Other(ModelFormat::Responses) => json!(arguments),
        Wire::Other(ModelFormat::Messages | ModelFormat::Gemini) => {
            serde_json::from_str(arguments).unwrap_or_default()
        }
    }
}

#[tokio::test]
async fn a_cut_call_in_the_history_is_closed_and_marked() {
    for wire in Wire::ALL {
        let reply_text = wire.answer(&[ReplyPart::Text("I see.")], End::Turn, false);
        let endmark = Endmark::start(Script::new().default_answer(reply_text)).await;
        let cases = [
            (
                r#"{"city": "Par"#,
                r#"{"city": "Par","endmark_cut":"these arguments were cut off: /city (string) is not finished"}"#,
            ),
            (
                r#"{"city": "Paris", "days": 1"#,
                r#"{"city": "Paris","endmark_cut":"these arguments were cut off: /days (number) is left out"}"#,
            ),
            ("{", r#"{"endmark_cut":"these arguments were cut off: more would have followed"}"#),
            ("{'city': 1}", r#"{"endmark_unreadable":"{'city': 1}"}"#),
            ("", "{}"),
        ];
        for (cut, closed) in cases {
            let cut = conversation(wire, &json!(cut));
            let reply = ask(&endmark, wire, &cut, "auto").await;
            assert_eq!(
                (reply.status, reply.header("x-endmark-repaired-calls")),
                (200, Some("1")),
                "{wire:?}"
            );
            let sent = endmark.upstream.requests().last().unwrap().body.clone();
            // All other bytes are unchanged.
            let expected = conversation(wire, &arguments_value(wire, closed));
            let sent = String::from_utf8(sent).unwrap();
            let spelled = |text: &str| text.replace("\": ", "\":");
            assert_eq!(spelled(&sent), spelled(&expected), "{wire:?}");
        }
        let metrics = Request::get(endmark.address, "/endmark/metrics").send().await.read().await;
        let counted = "endmark_repaired_calls_total{upstream=\"scripted\"} 5";
        assert!(metrics.text().contains(counted), "{}", metrics.text());
    }
}

#[tokio::test]
async fn whole_and_signed_history_is_unchanged() {
    for wire in Wire::ALL {
        let reply_text = wire.answer(&[ReplyPart::Text("I see.")], End::Turn, false);
        let endmark = Endmark::start(Script::new().default_answer(reply_text)).await;
        let whole = json!({"city": "Paris"});
        let written = json!(r#"{"city" :"Paris", "city": "\u00e9"} "#);
        for (given, mode) in [
            (&whole, "auto"),
            (&written, "auto"),
            (&json!("null"), "on"),
            (&json!("{\"ci"), "off"),
            (&json!("{\"ci"), "warn"),
        ] {
            let body = conversation(wire, given);
            let reply = ask(&endmark, wire, &body, mode).await;
            assert_eq!(
                (reply.status, reply.header("x-endmark-repaired-calls")),
                (200, None),
                "{wire:?} {mode}"
            );
            let sent = endmark.upstream.requests().last().unwrap().body.clone();
            assert_eq!(String::from_utf8(sent).unwrap(), body, "{wire:?} {mode}");
        }
    }
}

/// A model never calls a function without its required arguments on purpose, so the arguments were cut off.
#[tokio::test]
async fn an_empty_call_of_a_function_with_required_arguments_is_cut() {
    let wire = Wire::Chat;
    let reply_text = wire.answer(&[ReplyPart::Text("I see.")], End::Turn, false);
    let endmark = Endmark::start(Script::new().default_answer(reply_text)).await;
    let body = conversation(wire, &json!("")).replace(
        r#""parameters":{"type":"object"}"#,
        r#""parameters":{"type":"object","required":["city"]}"#,
    );
    ask(&endmark, wire, &body, "auto").await;
    let sent = endmark.upstream.requests()[0].json();
    let made = sent["messages"][1]["tool_calls"][1]["function"]["arguments"].as_str().unwrap();
    assert_eq!(made, r#"{"endmark_cut":"these arguments were cut off before they began"}"#);
}

/// A repaired request is forwarded uncompressed.
#[tokio::test]
async fn a_compressed_request_is_repaired_too() {
    use std::io::Write as _;
    let wire = Wire::Chat;
    let reply_text = wire.answer(&[ReplyPart::Text("I see.")], End::Turn, false);
    let endmark = Endmark::start(Script::new().default_answer(reply_text)).await;
    let body = conversation(wire, &json!("{\"city\": \"Par"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(body.as_bytes()).unwrap();
    let request = Request::post(endmark.address, wire.path(false)).header("content-encoding", "gzip");
    let reply = request.body(packed.finish().unwrap()).send().await.read().await;
    assert_eq!(reply.header("x-endmark-repaired-calls"), Some("1"));
    let sent = endmark.upstream.requests()[0].json();
    let made = sent["messages"][1]["tool_calls"][1]["function"]["arguments"].as_str().unwrap();
    assert!(made.ends_with("(string) is not finished\"}"), "{made}");
}

/// Headers such as digests describe the old bytes and are removed. The idempotency key stays, because the
/// request has the same meaning.
#[tokio::test]
async fn a_repaired_request_loses_headers_about_the_old_bytes() {
    let reply_text =
        ["content-digest", "digest", "content-md5", "repr-digest", "etag", "signature", "signature-input"];
    for (cut, is_repaired) in [(r#"{"city": "Par"#, true), (r#"{"city": "Paris"}"#, false)] {
        let endmark =
            Endmark::start(Script::new().default_answer(Wire::Chat.answer(&[], End::Turn, false))).await;
        let mut request = Request::post(endmark.address, Wire::Chat.path(false))
            .header("content-type", "application/json")
            .header("idempotency-key", "k");
        for name in reply_text {
            request = request.header(name, "x");
        }
        request.body(conversation(Wire::Chat, &json!(cut))).send().await.read().await;
        let received = &endmark.upstream.requests()[0];
        let left: Vec<&str> = reply_text.into_iter().filter(|name| received.header(name).is_some()).collect();
        assert_eq!(left, if is_repaired { &[][..] } else { &reply_text[..] }, "{cut}");
        assert_eq!(received.header("idempotency-key"), Some("k"));
    }
}

/// Headers of a changed reply are removed in the same way.
#[tokio::test]
async fn a_changed_reply_loses_headers_about_the_old_bytes() {
    let reply_text =
        ["content-digest", "digest", "content-md5", "repr-digest", "etag", "signature", "signature-input"];
    for end in [End::Limit, End::Turn] {
        let mut answer = Wire::Chat.answer(&[ReplyPart::Text("The harbour was ")], end, false);
        for name in reply_text {
            answer = answer.header(name, "x");
        }
        let rest = Wire::Chat.answer(&[ReplyPart::Text("quiet.")], End::Turn, false);
        let endmark = Endmark::start_resuming(Script::new().then(answer).default_answer(rest)).await;
        let (reply, _) = Wire::Chat.ask(&endmark, &Wire::Chat.request(false), false).await;
        let left: Vec<&str> = reply_text.into_iter().filter(|name| reply.header(name).is_some()).collect();
        assert_eq!(left, if end == End::Limit { &[][..] } else { &reply_text[..] });
    }
}
