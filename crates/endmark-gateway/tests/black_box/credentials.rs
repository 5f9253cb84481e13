//! A client is identified by its secret, in any place and spelling.

use std::time::Duration;

use endmark_context::budget::{BudgetRule, Period, Scope, Unit};
use endmark_gateway::BudgetSettings;
use serde_json::json;
use testkit::{Answer, ModelFormat, Reply, Request, Script, chat_reply};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const GEMINI: Wire = Wire::Other(ModelFormat::Gemini);

/// Returns every way in which a client may send this secret: an optional header, and an addition to the path.
fn spellings(secret: &str) -> Vec<(Option<(&'static str, String)>, String)> {
    let headers = [
        ("authorization", format!("Bearer {secret}")),
        ("authorization", format!("bearer {secret}")),
        ("authorization", format!("BEARER   {secret}")),
        ("authorization", secret.to_owned()),
        ("x-api-key", secret.to_owned()),
        ("api-key", secret.to_owned()),
        ("x-goog-api-key", secret.to_owned()),
    ];
    let queries = ["key", "%6bey", "$key", "access_token", "api_key"];
    let in_headers = headers.into_iter().map(|header| (Some(header), String::new()));
    in_headers.chain(queries.map(|name| (None, format!("?{name}={secret}")))).collect()
}

async fn send(endmark: &Endmark, (header, query): &(Option<(&'static str, String)>, String)) -> Reply {
    let request = Request::post(endmark.address, &format!("/u/scripted/v1/chat/completions{query}"));
    let request = header.iter().fold(request, |request, (name, value)| request.header(name, value));
    request.json(&crate::support::request(10)).send().await.read().await
}

fn good_answer() -> Script {
    Script::new().default_answer(Answer::json(200, &chat_reply("Yes.", "stop", (20, 10))))
}

#[tokio::test]
async fn one_secret_has_one_session_and_one_budget() {
    let limit = 5_000;
    let endmark = Endmark::start_with(good_answer(), |settings| {
        let rules = vec![BudgetRule { scope: Scope::Key, unit: Unit::Tokens, period: Period::Day, limit }];
        settings.budget = BudgetSettings { rules, assume_output_tokens: 10, ..BudgetSettings::default() };
    })
    .await;
    let (one, another) = (spellings("K-1"), spellings("K-2"));
    for spelling in one.iter().chain(&another) {
        assert_eq!(send(&endmark, spelling).await.status, 200, "{spelling:?}");
    }
    let mut rows = Vec::new();
    for _ in 0..200 {
        rows = endmark.store.reader().unwrap().recent_calls(100).unwrap();
        if rows.len() == one.len() + another.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let sessions: Vec<_> = rows.into_iter().rev().map(|row| row.session).collect();
    let (first, second) = sessions.split_at(one.len());
    assert!(first.iter().all(|session| *session == first[0]), "{sessions:?}");
    assert!(second.iter().all(|session| *session == second[0] && *session != first[0]), "{sessions:?}");
    let budgets = endmark.store.reader().unwrap().budgets().unwrap();
    assert_eq!(budgets.len(), 2, "{budgets:?}");
}

#[tokio::test]
async fn outputs_stored_under_a_query_key_need_that_key() {
    let reply_text = GEMINI.answer(&[ReplyPart::Text("It is locked.")], End::Turn, false);
    let endmark = Endmark::start(Script::new().default_answer(reply_text)).await;
    let mut body = GEMINI.request(false);
    let output = "2026-01-02 INFO a request was served\n".repeat(8_000);
    body["contents"] = json!([
        {"role": "user", "parts": [{"text": "Why?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "get_time", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "get_time", "response": {"output": output}}}]},
    ]);
    let path = format!("{}?key=K-1", GEMINI.path(false));
    assert_eq!(Request::post(endmark.address, &path).json(&body).send().await.read().await.status, 200);
    let sent = String::from_utf8(endmark.upstream.requests()[0].body.clone()).unwrap();
    let (_, after) = sent.split_once("endmark read ").unwrap();
    let handle = after.split(|sign: char| !sign.is_ascii_alphanumeric()).next().unwrap();
    let path = format!("/endmark/api/outputs/{handle}");
    let get = async |key: Option<(&str, &str)>| {
        let request = Request::get(endmark.address, &path);
        let request = key.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        request.send().await.read().await
    };
    for (key, status) in [
        (None, 404),
        (Some(("x-goog-api-key", "K-2")), 404),
        (Some(("x-goog-api-key", "K-1")), 200),
        (Some(("authorization", "bearer K-1")), 200),
    ] {
        let reply = get(key).await;
        assert_eq!(reply.status, status, "{key:?}: {}", reply.text());
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{key:?}");
    }
}

#[tokio::test]
async fn two_secrets_pass_only_without_a_budget() {
    let limit = 5_000;
    let rules = vec![BudgetRule { scope: Scope::Key, unit: Unit::Tokens, period: Period::Day, limit }];
    let open = Endmark::start(good_answer()).await;
    let limited = Endmark::start_with(good_answer(), |settings| {
        settings.budget = BudgetSettings { rules, assume_output_tokens: 10, ..BudgetSettings::default() };
    })
    .await;
    let ask = async |endmark: &Endmark, path: &str, headers: &[(&str, &str)]| {
        let request = Request::post(endmark.address, path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        request.json(&crate::support::request(10)).send().await.read().await
    };
    for (path, headers) in [
        ("/v1/chat/completions", &[("authorization", "Bearer K-1"), ("x-api-key", "K-2")][..]),
        ("/v1/chat/completions", &[("authorization", "Bearer K-1"), ("authorization", "Bearer K-2")]),
        ("/u/scripted/v1/chat/completions?key=K-2", &[("authorization", "Bearer K-1")]),
        ("/v1/files", &[("api-key", "K-1"), ("x-goog-api-key", "K-2")]),
    ] {
        let reply = ask(&limited, path, headers).await;
        assert_eq!(reply.status, 400, "{path} {headers:?}: {}", reply.text());
        assert!(
            reply.text().contains("two different secrets") && !reply.text().contains("K-"),
            "{}",
            reply.text()
        );
        assert_eq!(ask(&open, path, headers).await.status, 200, "{path} {headers:?}");
    }
    assert_eq!(limited.calls(), 0);
    let same = [("authorization", "Bearer K-1"), ("x-api-key", "K-1"), ("cookie", "a=b")];
    assert_eq!(ask(&limited, "/v1/chat/completions", &same).await.status, 200);
}

over_postgresql! {
    "credentials.rs":
    one_secret_has_one_session_and_one_budget,
    outputs_stored_under_a_query_key_need_that_key,
    two_secrets_pass_only_without_a_budget,
    ;
    alone:
}
