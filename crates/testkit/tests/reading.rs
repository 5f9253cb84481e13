//! The model that reads the question, asked in every format.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use testkit::{
    Asks, Begins, Dialect, DialectAdapter, Heard, Manner, ReadingModel, Received, RepeatedReply, Request,
    Respond as _, Style, Upstream,
};

const TEXT: &str = "The first line is here.\nThe second line follows it.\nThe third line is the last.\n";
const CUT: usize = 35;

fn model(begins: Begins) -> ReadingModel {
    ReadingModel::new(TEXT, CUT, Manner::Continues(Style { start: begins, ..Style::default() }))
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
    for dialect in Dialect::ALL {
        let word = match dialect {
            Dialect::Responses => "incomplete",
            Dialect::Messages => "max_tokens",
            Dialect::Gemini => "MAX_TOKENS",
        };
        for stream in [false, true] {
            let upstream = Upstream::start(DialectAdapter::new(dialect, model(Begins::Shown))).await;
            let mut body = dialect.request(9, stream);
            let heard: Heard = dialect.hear(&ask(&upstream, dialect.path(stream), &body).await);
            assert_eq!(
                (heard.text.as_str(), heard.stop.as_deref()),
                (&TEXT[..CUT], Some(word)),
                "{dialect:?}"
            );
            let (assistant, question) = (&TEXT[..28], "Go on, please.");
            let parts = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
            let message = |role: &str, text: &str| json!({"role": role, "content": text});
            match dialect {
                Dialect::Responses => {
                    body["input"] = json!([
                        message("user", "Tell."),
                        message("assistant", assistant),
                        message("user", question)
                    ]);
                }
                Dialect::Messages => {
                    let messages = body["messages"].as_array_mut().unwrap();
                    messages.extend([message("assistant", assistant), message("user", question)]);
                }
                Dialect::Gemini => {
                    let contents = body["contents"].as_array_mut().unwrap();
                    contents.extend([parts("model", assistant), parts("user", question)]);
                }
            }
            let heard = dialect.hear(&ask(&upstream, dialect.path(stream), &body).await);
            assert_eq!(heard.text, &TEXT[28..], "{dialect:?}");
            assert_ne!(heard.stop.as_deref(), Some(word), "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn equal_requests_get_equal_answers() {
    let path = "/v1/chat/completions";
    let body = |limit: u64| json!({"max_tokens": limit, "messages": [{"role": "user", "content": "Write."}]});
    for (again, expected) in [
        (RepeatedReply::Whole, (TEXT.to_owned(), "stop")),
        (RepeatedReply::Cut(60), (TEXT[..60].to_owned(), "length")),
    ] {
        let model = std::sync::Arc::new(model(Begins::Shown).repeat_with(again));
        let answering = std::sync::Arc::clone(&model);
        let upstream = Upstream::start(move |request: &Received| answering.respond(request)).await;
        for limit in [9, 9] {
            let (text, finish) = chat_text(&ask(&upstream, path, &body(limit)).await);
            assert_eq!((text.as_str(), finish.as_str()), (&TEXT[..CUT], "length"));
        }
        let (text, finish) = chat_text(&ask(&upstream, path, &body(100)).await);
        assert_eq!((text, finish.as_str()), expected);
        let request_kinds: Vec<Asks> = model.calls().iter().map(|call| call.request_kind).collect();
        assert_eq!(request_kinds, [Asks::First, Asks::First, Asks::Again]);
    }
}

#[tokio::test]
async fn a_prefill_is_refused_and_a_required_grammar_restarts() {
    let upstream = Upstream::start(model(Begins::Anchor)).await;
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
async fn a_cut_answer_is_continued() {
    let style = Style { start: Begins::Cut, stops_after: Some(20), ..Style::default() };
    let upstream = Upstream::start(ReadingModel::new(TEXT, CUT, Manner::Continues(style))).await;
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
