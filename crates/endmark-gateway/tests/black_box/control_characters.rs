//! JSON with raw line feeds in strings, as models write it. The gateway escapes them if possible, and never
//! reports a reply with escaped line feeds as plainly whole. Text that no continuation can turn into JSON is
//! never reported as whole.

use endmark_gateway::{ResumeMode, Settings};
use serde_json::{Value, json};
use testkit::{
    Answer, PrefillBehaviour, Request, Script, ScriptedModel, chat_reply, chat_stream, chat_tool_reply,
};

use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, finish, read_stream, request, stream_request, text};

const RAW_DOCUMENT: &str = "{\"path\": \"a.ts\", \"content\": \"line1\nline2\tend\"}";
const ESCAPED_DOCUMENT: &str = "{\"path\": \"a.ts\", \"content\": \"line1\\nline2\\tend\"}";

fn with_json_mode(mut body: Value) -> Value {
    body["response_format"] = json!({"type": "json_object"});
    body
}

#[tokio::test]
async fn an_unstreamed_document_is_escaped_without_a_call() {
    let endmark = Endmark::start(
        Script::new().default_answer(Answer::json(200, &chat_reply(RAW_DOCUMENT, "stop", (3, 5)))),
    )
    .await;
    let reply = endmark.ask(&with_json_mode(request(500))).await;
    assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), (ESCAPED_DOCUMENT, "stop"));
    assert_eq!((reply.header("x-endmark-outcome"), endmark.calls()), (Some("corrected"), 1));
    // This request does not require JSON.
    let reply = endmark.ask(&request(500)).await;
    assert_eq!((text(&reply).as_str(), reply.header("x-endmark-outcome")), (RAW_DOCUMENT, None));
}

#[tokio::test]
async fn a_streamed_document_passes_with_the_reason() {
    let endmark =
        Endmark::start(Script::new().default_answer(Answer::sse(chat_stream(&[RAW_DOCUMENT], "stop")))).await;
    let read = read_stream(&endmark.ask(&with_json_mode(stream_request(500))).await);
    assert_eq!((read.text.as_str(), endmark.calls()), (RAW_DOCUMENT, 1));
    let disclosed = read.endmark.unwrap();
    assert_eq!(
        (&disclosed["reason"], &disclosed["schema"]),
        (&json!("control_characters"), &json!("invalid"))
    );
}

#[tokio::test]
async fn call_arguments_are_escaped_and_malformed_ones_are_disclosed() {
    for (arguments, header, value) in [
        (RAW_DOCUMENT, "x-endmark-outcome", "corrected"),
        ("{\"path\": a.ts}", "x-endmark-reason", "malformed"),
    ] {
        let answer = chat_tool_reply(&[("call_1", "save", arguments)], "tool_calls", (9, 9));
        let endmark = Endmark::start(Script::new().default_answer(Answer::json(200, &answer))).await;
        let reply = endmark.ask(&request(500)).await;
        let call = &reply.json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"];
        let expected = if arguments == RAW_DOCUMENT { ESCAPED_DOCUMENT } else { arguments };
        assert_eq!((call, reply.header(header)), (&json!(expected), Some(value)), "{arguments}");
        assert_eq!(endmark.calls(), 1);
    }
}

#[tokio::test]
async fn a_cut_document_is_resumed_before_it_is_escaped() {
    let endmark =
        Endmark::start_resuming(ScriptedModel::new(RAW_DOCUMENT).prefill(PrefillBehaviour::Echoes)).await;
    let reply = endmark.ask(&with_json_mode(request(12))).await;
    assert_eq!(text(&reply), ESCAPED_DOCUMENT);
    assert_eq!(reply.header("x-endmark-outcome"), Some("corrected"));
    assert_eq!(reply.header("x-endmark-attempts"), Some("1"));
}

/// The line feed arrived raw, and the model escapes it in its repetition. Both spell the same value.
#[tokio::test]
async fn an_escaped_repetition_of_a_raw_character_joins_at_the_cut() {
    let received = &RAW_DOCUMENT[..RAW_DOCUMENT.find("ne2").unwrap()];
    for (answer, rest) in [
        ("line1\\nline2\\tend\"}", "ne2\\tend\"}"),
        ("\"content\": \"line1\\nline2\\tend\"}", "ne2\\tend\"}"),
    ] {
        let never = |settings: &mut Settings| {
            settings.resume.mode = ResumeMode::On;
            settings.upstreams[0].prefill = endmark_gateway::Prefill::Never;
        };
        let script = Script::new()
            .then(Answer::json(200, &chat_reply(received, "length", (3, 5))))
            .default_answer(Answer::json(200, &chat_reply(answer, "stop", (3, 5))));
        let endmark = Endmark::start_with(script, never).await;
        let reply = endmark.ask(&with_json_mode(request(500))).await;
        assert_eq!(text(&reply), ESCAPED_DOCUMENT, "{answer}");
        assert_eq!(reply.header("x-endmark-outcome"), Some("corrected"), "{answer}");

        let script = Script::new()
            .then(Answer::sse(chat_stream(&[received], "length")))
            .default_answer(Answer::sse(chat_stream(&[answer], "stop")));
        let endmark = Endmark::start_with(script, never).await;
        let read = read_stream(&endmark.ask(&with_json_mode(stream_request(500))).await);
        assert_eq!(read.text, [received, rest].concat(), "{answer}");
        assert_eq!(read.endmark.unwrap()["outcome"], "resumed", "{answer}");
    }
}

/// Headers, the stream's `endmark` object, the log and the metrics report the same result.
#[tokio::test]
async fn a_malformed_document_is_never_reported_as_whole() {
    const BROKEN: &str = r#"{"a": 1,, "b": }"#;
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let answer = wire.answer(&[ReplyPart::Text(BROKEN)], End::Turn, stream);
        let endmark = Endmark::start(Script::new().default_answer(answer)).await;
        let request = Request::post(endmark.address, wire.path(stream)).header("x-endmark-format", "json");
        let reply = request.json(&wire.request(stream)).send().await.read().await;
        let heard = wire.read_reply(&reply);
        let what = format!("{wire:?} {stream}: {}", reply.text());
        assert_eq!(
            (heard.text.as_str(), heard.stop.as_deref()),
            (BROKEN, Some(wire.finish_reason(End::Turn))),
            "{what}"
        );
        let disclosed = heard.endmark.unwrap_or_default();
        let field = |name: &str| {
            let header = reply.header(&format!("x-endmark-{name}")).map(str::to_owned);
            disclosed[name].as_str().map(str::to_owned).or(header).unwrap_or_default()
        };
        let field = ["outcome", "cut", "reason", "schema"].map(field);
        assert_eq!(field, ["cut", "format", "malformed", "invalid"], "{what}");
        let row = endmark.log(1).await.remove(0);
        assert_eq!(
            [row.outcome, row.cut_kind, row.reason, row.final_status.name().to_owned()],
            ["cut", "format", "malformed", "EXHAUSTED"],
            "{what}"
        );
        let metrics = Request::get(endmark.address, "/endmark/metrics").send().await.read().await.text();
        assert!(metrics.contains(r#"outcome="cut"} 1"#), "{metrics}");
        assert_eq!(endmark.calls(), 1, "{what}");
    }
}
