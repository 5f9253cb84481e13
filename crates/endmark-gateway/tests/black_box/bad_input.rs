//! Bad requests and bad upstreams always get an answer in the provider's shape that states what to do.

use endmark_gateway::Upstream as Target;
use serde_json::json;
use testkit::{Answer, Reply, Request, Script, ScriptedModel, chat_reply};

use crate::support::{Endmark, request};

fn error_message(reply: &Reply) -> String {
    let error = reply.json()["error"].clone();
    assert!(error["type"].is_string(), "{error}");
    error["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn invalid_json_is_refused_with_the_position() {
    let endmark = Endmark::start(ScriptedModel::new("x")).await;
    let reply =
        Request::post(endmark.address, "/v1/chat/completions").body("{\"model\": ").send().await.read().await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["type"], "endmark_bad_request");
    assert!(error_message(&reply).contains("JSON"), "{}", error_message(&reply));
    assert_eq!(endmark.calls(), 0);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_the_limit() {
    let endmark =
        Endmark::start_with(ScriptedModel::new("x"), |settings| settings.limits.body_bytes = 1_000).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(2_000)}]});
    let reply = endmark.ask(&body).await;
    assert_eq!(reply.status, 413);
    assert!(error_message(&reply).contains("1000 bytes"), "{}", error_message(&reply));
}

#[tokio::test]
async fn a_head_over_the_limit_is_refused() {
    let endmark =
        Endmark::start_with(ScriptedModel::new("x"), |settings| settings.limits.header_bytes = 2_000).await;
    let reply = endmark.chat(&request(5)).header("x-long", &"x".repeat(4_000)).send().await.read().await;
    assert_eq!(reply.status, 431);
}

#[tokio::test]
async fn unreadable_endmark_headers_are_refused() {
    let endmark = Endmark::start(ScriptedModel::new("x")).await;
    for (name, value) in [
        ("x-endmark-resume", "sometimes"),
        ("x-endmark-format", "yaml"),
        ("x-endmark-format", "marker"),
        ("x-endmark-turn", "first"),
        ("x-endmark-schema", "unknown"),
    ] {
        let reply = endmark.chat(&request(5)).header(name, value).send().await.read().await;
        assert_eq!(reply.status, 400, "{name}: {value}");
        assert!(error_message(&reply).contains(name), "{}", error_message(&reply));
    }
    assert_eq!(endmark.calls(), 0);
}

#[tokio::test]
async fn an_html_answer_is_distinguished_from_an_api_error() {
    let page = Answer::new(200, "text/html", "<html>Welcome</html>");
    let endmark = Endmark::start(Script::new().default_answer(page)).await;
    let reply = endmark.ask(&request(5)).await;
    assert_eq!(reply.status, 502);
    assert!(error_message(&reply).contains("base_url"), "{}", error_message(&reply));

    let endmark = Endmark::start(Script::new().default_answer(Answer::html(502))).await;
    let reply = endmark.ask(&request(5)).await;
    assert_eq!(reply.status, 502);
    assert!(error_message(&reply).contains("base_url"), "{}", error_message(&reply));
}

#[tokio::test]
async fn upstream_errors_pass_byte_for_byte() {
    for answer in [Answer::unauthorized(), Answer::rate_limited(7), Answer::server_error()] {
        let bytes = answer.body();
        let endmark = Endmark::start_with(Script::new().default_answer(answer), |settings| {
            settings.retry.max_retries = 0;
        })
        .await;
        let reply = endmark.ask(&request(5)).await;
        assert_eq!(reply.body, bytes);
        assert!([401, 429, 500].contains(&reply.status));
        if reply.status == 429 {
            assert_eq!(reply.header("retry-after"), Some("7"));
        }
        assert_eq!(endmark.calls(), 1);
    }
}

#[tokio::test]
async fn an_unreachable_upstream_is_named() {
    let closed_port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let endmark = Endmark::start_with(Script::new(), |settings| {
        settings.upstreams = vec![Target::new("absent", format!("http://{closed_port}/v1").parse().unwrap())];
    })
    .await;
    let reply = endmark.ask(&request(5)).await;
    assert_eq!(reply.status, 502);
    let message = error_message(&reply);
    assert!(message.contains("absent") && message.contains(&closed_port.to_string()), "{message}");
}

/// A response without a readable reply is forwarded unchanged, because the client may be able to read it.
#[tokio::test]
async fn a_reply_without_a_readable_choice_passes_unread() {
    let body = json!({"usageMetadata": {"promptTokenCount": 4}, "modelVersion": "m"});
    let endmark = Endmark::start(Script::new().default_answer(Answer::json(200, &body))).await;
    for path in ["/v1beta/models/gemini-x:generateContent", "/v1beta/models/publishers%2Fx:generateContent"] {
        let prompt_body = json!({"contents": [{"parts": [{"text": "Tell."}]}]});
        let reply = Request::post(endmark.address, path).json(&prompt_body).send().await.read().await;
        assert_eq!((reply.status, reply.text()), (200, body.to_string()), "{path}");
    }
    assert_eq!(endmark.upstream.requests()[1].path, "/v1beta/models/publishers%2Fx:generateContent");
}

#[tokio::test]
async fn a_broken_answer_is_an_error_not_half_a_reply() {
    let answer = Answer::json(200, &chat_reply("Hello", "stop", (1, 1))).close_after(40);
    let endmark = Endmark::start(Script::new().default_answer(answer)).await;
    let reply = endmark.ask(&request(5)).await;
    assert_eq!(reply.status, 502);
    assert_eq!(reply.json()["error"]["type"], "endmark_upstream_answer_lost");
}

#[tokio::test]
async fn malformed_bodies_never_cause_a_panic() {
    let endmark = Endmark::start(ScriptedModel::new("x")).await;
    for body in [
        "",
        "null",
        "[]",
        "{}",
        "\"x\"",
        "{\"messages\":null}",
        "{\"messages\":[null]}",
        "{\"messages\":[{}],\"max_tokens\":-1}",
        "{\"messages\":[],\"n\":99999999999}",
    ] {
        let reply =
            Request::post(endmark.address, "/v1/chat/completions").body(body).send().await.read().await;
        assert!(reply.status < 600, "{body}");
    }
}

#[tokio::test]
async fn a_connection_upgrade_is_refused() {
    let endmark = Endmark::start(ScriptedModel::new("x")).await;
    let reply = Request::get(endmark.address, "/v1/realtime")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .send()
        .await
        .read()
        .await;
    assert_eq!(reply.status, 501);
    assert!(error_message(&reply).contains("websocket"), "{}", error_message(&reply));
    assert_eq!(endmark.calls(), 0);
}

/// A request that Endmark cannot parse is forwarded to the provider unchanged, and so is the answer.
#[tokio::test]
async fn an_unreadable_request_is_judged_by_the_provider() {
    let refusal = r#"{"error": {"type":"invalid_request_error", "message":"messages: Field required"}}"#;
    let reply = r#" {"contents were": "taken"} "#;
    let requests = [
        ("/v1/chat/completions", r#"{ "model":"m", "messages": "Hi" }"#),
        ("/v1/chat/completions", r#"{ "model":"m", "stream":true }"#),
        ("/v1/responses", r#"{ "model":"m", "input": 7 }"#),
        ("/v1/messages", r#"{ "model":"m", "max_tokens": 5 }"#),
        ("/v1beta/models/m:generateContent", r#"{ "contents": {"parts":[{"text":"Hi"}]} }"#),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", "{ }"),
    ];
    // The request was not parsed, so the gateway cannot request the rest of this cut reply.
    let cut = r#"{"content":[{"type":"text","text":"The harbour was"}], "stop_reason":"max_tokens"}"#;
    for (path, body) in requests {
        for (status, answer) in [(400, refusal), (200, reply), (200, cut)] {
            let answers = Answer::new(status, "application/json", answer);
            let endmark = Endmark::start_resuming(Script::new().default_answer(answers)).await;
            let reply = Request::post(endmark.address, path).body(body).send().await.read().await;
            assert_eq!((reply.status, reply.text().as_str()), (status, answer), "{path}");
            assert_eq!(endmark.upstream.requests()[0].body, body.as_bytes(), "{path}");
        }
    }
}
