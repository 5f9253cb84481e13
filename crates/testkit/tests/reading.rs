//! Checks the model that reads its requests, in every wire format.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use testkit::{
    AssembledReply, ContinuationStart, ContinuationStyle, ModelBehaviour, ModelFormat, ModelFormatAdapter,
    ReadingModel, ReceivedRequest, RepeatedReply, Request, RequestKind, Respond as _, Upstream,
};

const TEXT: &str = "The first line is here.\nThe second line follows it.\nThe third line is the last.\n";
const CUT: usize = 35;

fn model(begins: ContinuationStart) -> ReadingModel {
    ReadingModel::new(
        TEXT,
        CUT,
        ModelBehaviour::Continues(ContinuationStyle { start: begins, ..ContinuationStyle::default() }),
    )
}

async fn ask(upstream: &Upstream, path: &str, body: &Value) -> testkit::Reply {
    Request::post(upstream.address(), path).json(body).send().await.read().await
}

fn chat_text(reply: &testkit::Reply) -> (String, String) {
    let choice = &reply.json()["choices"][0];
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    (word(&choice["message"]["content"]), word(&choice["finish_reason"]))
}

#[tokio::test]
async fn the_first_reply_is_cut_and_the_continuation_follows() {
    for dialect in ModelFormat::ALL {
        let word = match dialect {
            ModelFormat::Responses => "incomplete",
            ModelFormat::Messages => "max_tokens",
            ModelFormat::Gemini => "MAX_TOKENS",
        };
        for stream in [false, true] {
            let upstream =
                Upstream::start(ModelFormatAdapter::new(dialect, model(ContinuationStart::Shown))).await;
            let mut body = dialect.request(9, stream);
            let heard: AssembledReply = dialect.assemble(&ask(&upstream, dialect.path(stream), &body).await);
            assert_eq!(
                (heard.text.as_str(), heard.stop.as_deref()),
                (&TEXT[..CUT], Some(word)),
                "{dialect:?}"
            );
            let (assistant, question) = (&TEXT[..28], "Go on, please.");
            let parts = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
            let message = |role: &str, text: &str| json!({"role": role, "content": text});
            match dialect {
                ModelFormat::Responses => {
                    body["input"] = json!([
                        message("user", "Tell."),
                        message("assistant", assistant),
                        message("user", question)
                    ]);
                }
                ModelFormat::Messages => {
                    let messages = body["messages"].as_array_mut().unwrap();
                    messages.extend([message("assistant", assistant), message("user", question)]);
                }
                ModelFormat::Gemini => {
                    let contents = body["contents"].as_array_mut().unwrap();
                    contents.extend([parts("model", assistant), parts("user", question)]);
                }
            }
            let heard = dialect.assemble(&ask(&upstream, dialect.path(stream), &body).await);
            assert_eq!(heard.text, &TEXT[28..], "{dialect:?}");
            assert_ne!(heard.stop.as_deref(), Some(word), "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn equal_requests_get_equal_replies() {
    let path = "/v1/chat/completions";
    let body = |limit: u64| json!({"max_tokens": limit, "messages": [{"role": "user", "content": "Write."}]});
    for (again, expected) in [
        (RepeatedReply::Whole, (TEXT.to_owned(), "stop")),
        (RepeatedReply::Cut(60), (TEXT[..60].to_owned(), "length")),
    ] {
        let model = std::sync::Arc::new(model(ContinuationStart::Shown).with_repeated_reply(again));
        let answering = std::sync::Arc::clone(&model);
        let upstream = Upstream::start(move |request: &ReceivedRequest| answering.respond(request)).await;
        for limit in [9, 9] {
            let (text, finish) = chat_text(&ask(&upstream, path, &body(limit)).await);
            assert_eq!((text.as_str(), finish.as_str()), (&TEXT[..CUT], "length"));
        }
        let (text, finish) = chat_text(&ask(&upstream, path, &body(100)).await);
        assert_eq!((text, finish.as_str()), expected);
        let request_kinds: Vec<RequestKind> = model.calls().iter().map(|call| call.request_kind).collect();
        assert_eq!(request_kinds, [RequestKind::First, RequestKind::First, RequestKind::Repetition]);
    }
}

#[tokio::test]
async fn a_prefill_is_rejected_and_a_required_grammar_causes_a_restart() {
    let upstream = Upstream::start(model(ContinuationStart::Anchor)).await;
    let path = "/v1/chat/completions";
    let mut messages = vec![
        json!({"role": "user", "content": "Write."}),
        json!({"role": "assistant", "content": &TEXT[..28]}),
    ];
    let refused = ask(&upstream, path, &json!({"messages": messages})).await;
    assert_eq!(refused.status, 400);
    messages.push(json!({"role": "user", "content": "Go on behind `is here.`"}));
    let (text, _) = chat_text(&ask(&upstream, path, &json!({"messages": messages})).await);
    assert_eq!(text, &TEXT[24..], "from the last line on, as nothing long enough is quoted");
    let forced = json!({"messages": messages, "response_format": {"type": "json_object"}});
    assert_eq!(chat_text(&ask(&upstream, path, &forced).await).0, TEXT);
}

#[tokio::test]
async fn a_cut_continuation_is_continued() {
    let style = ContinuationStyle {
        start: ContinuationStart::Cut,
        stops_after: Some(20),
        ..ContinuationStyle::default()
    };
    let upstream = Upstream::start(ReadingModel::new(TEXT, CUT, ModelBehaviour::Continues(style))).await;
    let path = "/v1/chat/completions";
    let request_kinds = |shown: usize| {
        json!({"messages": [
            {"role": "user", "content": "Write."}, {"role": "assistant", "content": &TEXT[..shown]},
            {"role": "user", "content": "Go on."},
        ]})
    };
    ask(&upstream, path, &json!({"messages": [{"role": "user", "content": "Write."}]})).await;
    let (text, finish) = chat_text(&ask(&upstream, path, &request_kinds(28)).await);
    assert_eq!((text.as_str(), finish.as_str()), (&TEXT[CUT..CUT + 20], "length"));
    let (text, finish) = chat_text(&ask(&upstream, path, &request_kinds(50)).await);
    assert_eq!((text.as_str(), finish.as_str()), (&TEXT[CUT + 20..], "stop"));
}
