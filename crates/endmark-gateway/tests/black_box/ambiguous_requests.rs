//! Requests that an upstream may interpret differently than the gateway. They evade neither a key's list of models
//! nor a budget. Without these they are forwarded unchanged.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking, in their helpers too")]

use endmark_context::budget::{Period, Rule, Scope, Unit};
use endmark_gateway::{Secret, Settings};
use endmark_store::{KeyBudget, NewKey};
use serde_json::json;
use testkit::{Answer, Reply, Request, Script, chat_reply};

use crate::support::Endmark;
use crate::support::raw::answer as raw_answer;

fn good_script() -> Script {
    Script::new().default_answer(Answer::json(200, &chat_reply("Yes.", "stop", (20, 10))))
}

fn require_keys(settings: &mut Settings) {
    settings.upstreams[0].api_key = Some(Secret::new("sk-of-the-upstream".to_owned()));
}

fn set_budget(settings: &mut Settings) {
    require_keys(settings);
    settings.budget.assume_output_tokens = 10;
    settings.budget.rules =
        vec![Rule { scope: Scope::All, unit: Unit::Tokens, period: Period::Day, limit: 1_000_000 }];
}

/// Who sends a request: a client whose key is for `cheap*` alone, one whose key has a budget, one under `[budget]`, and
/// one without any limit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Who {
    Listed,
    Budgeted,
    UnderBudget,
    Free,
}

struct Gate {
    endmark: Endmark,
    secret: Option<String>,
}

impl Gate {
    async fn start(who: Who) -> Self {
        let endmark = Endmark::start_with(
            good_script(),
            if who == Who::UnderBudget { set_budget } else { require_keys },
        )
        .await;
        let mut new = NewKey { name: "alice".to_owned(), ..NewKey::default() };
        match who {
            Who::Listed => new.models = vec!["cheap*".to_owned()],
            Who::Budgeted => {
                new.budget = Some(KeyBudget { unit: Unit::Tokens, limit: 1_000_000, period: Period::Month });
            }
            Who::UnderBudget | Who::Free => return Self { endmark, secret: None },
        }
        let secret = endmark.store.add_key(new).await.unwrap().reveal().to_owned();
        Self { endmark, secret: Some(secret) }
    }

    async fn send(&self, method: &'static str, path: &str, body: &str) -> Reply {
        let sent = Request::new(method, self.endmark.address, path)
            .header("content-type", "application/json")
            .header("authorization", &format!("Bearer {}", self.secret.as_deref().unwrap_or("sk-any")));
        let sent = if body.is_empty() { sent } else { sent.body(body.to_owned()) };
        sent.send().await.read().await
    }
}

const MESSAGES: &str = r#""messages":[{"role":"user","content":"Tell."}]"#;

/// Requests that make another model work, or make it work more, at some upstream.
fn evasions() -> Vec<(&'static str, String, &'static [Who])> {
    use Who::{Budgeted, Listed, UnderBudget};
    const ALL: &[Who] = &[Listed, Budgeted, UnderBudget];
    const MONEY: &[Who] = &[Budgeted, UnderBudget];
    let chat = |fields: &str| format!("{{{fields},{MESSAGES}}}");
    let cheap = |fields: &str| format!(r#"{{"model":"cheap","input":"a"{fields}}}"#);
    vec![
        ("/v1/chat/completions", chat(r#""model":"cheap","Model":"dear""#), ALL),
        ("/v1/chat/completions", chat(r#""model":"dear","model":"cheap""#), ALL),
        ("/v1/chat/completions", chat(r#""m\u006fdel":"dear","model":"cheap""#), ALL),
        ("/v1/chat/completions", chat(r#""model":"cheap","max_tokens":1,"Max_Tokens":100000"#), ALL),
        ("/v1/chat/completions", chat(r#""model":"cheap","max_tokens":1,"max_to\u212aens":100000"#), ALL),
        ("/v1/chat/completions", chat(r#""model":"cheap","MAX_TOKENS":100000"#), ALL),
        ("/v1/chat/completions", chat(r#""model":"cheap","max_tokens":"100000""#), MONEY),
        ("/v1/chat/completions", chat(r#""model":"cheap","N":50"#), ALL),
        ("/v1/chat/completions", chat(r#""model":"cheap","models":["dear"]"#), &[Listed]),
        ("/v1/chat/completions", chat(r#""model":"cheap","tools":[{"type":"x","model":"dear"}]"#), &[Listed]),
        ("/v1/chat/completions", chat(r#""model":"cheap","tools":[],"Tools":[{"model":"dear"}]"#), ALL),
        ("/v1/chat/completions?model=dear", chat(r#""model":"cheap""#), &[Listed]),
        ("/v1/embeddings", r#"[{"model":"dear"}]"#.to_owned(), ALL),
        ("/v1/responses", cheap(r#","background":true"#), MONEY),
        ("/v1/responses", cheap(r#","background":false,"Background":true"#), ALL),
        ("/v1beta/models/cheap:generateContent", r#"{"contents":[],"model":"models/dear"}"#.to_owned(), &[Listed]),
        (
            "/v1beta/models/cheap:generateContent",
            r#"{"contents":[],"generationConfig":{"maxOutputTokens":1},"generation_config":{"maxOutputTokens":9}}"#
                .to_owned(),
            ALL,
        ),
        ("/v1/embeddings", cheap(r#","Model":"dear""#), ALL),
        ("/v1/embeddings", "input=a".to_owned(), ALL),
        ("/u/scripted/models/cheap/v1/embeddings", r#"{"model":"dear"}"#.to_owned(), ALL),
        ("/openai/deployments/cheap/embeddings", r#"{"model":"dear"}"#.to_owned(), &[Listed]),
        ("/v1/batches", cheap(r#","requests":[{"model":"dear"}]"#), ALL),
        ("/v1/messages/batches", cheap(r#","requests":[{"params":{"model":"dear"}}]"#), ALL),
        ("/v1beta/models/cheap:batchEmbedContents", cheap(r#","requests":[{"model":"dear"}]"#), ALL),
        (
            "/v1beta/models/cheap:batchEmbedContents",
            r#"{"requests":[{"model":"models/cheap"},{"model":"models/dear"}]}"#.to_owned(),
            ALL,
        ),
        (
            "/v1beta/models/cheap:batchEmbedContents",
            r#"{"requests":[{"model":"models/cheap","Model":"dear"}]}"#.to_owned(),
            ALL,
        ),
        ("/v1beta/models/cheap:batchEmbedContents", r#"{"requests":{"model":"models/dear"}}"#.to_owned(), ALL),
        ("/v1beta/models/cheap:asyncBatchEmbedContent", cheap(""), ALL),
        ("/v1/fine_tuning/jobs", cheap(""), ALL),
        ("/v1/threads/runs", cheap(r#","assistant_id":"of-dear""#), ALL),
        ("/v1/anything", cheap(r#","items":[{"model":"dear"}]"#), ALL),
        ("/v1/completions%3f/count_tokens", cheap(""), ALL),
        ("/v1/completions;/count_tokens", cheap(""), ALL),
        ("/v1/completions;x", cheap(""), ALL),
        ("/v1//completions", cheap(""), ALL),
        ("/v1/completions/", cheap(""), ALL),
        ("/v1/c%6fmpletions", cheap(""), ALL),
        ("/V1/completions", cheap(""), ALL),
        ("/v1/completions?_method=POST", cheap(""), ALL),
        ("/v1/completions?%5Fmethod=PUT", cheap(""), ALL),
        ("/v1/completions?$httpMethod=PUT", cheap(""), ALL),
        ("/v1/completions?fields=choices", cheap(""), MONEY),
        ("/v1/completions?$fields=choices", cheap(""), MONEY),
        ("/v1/completions?alt=sse&%24alt=json", cheap(""), MONEY),
    ]
}

#[tokio::test]
async fn ambiguous_fields_do_not_evade_a_limit() {
    for who in [Who::Listed, Who::Budgeted, Who::UnderBudget, Who::Free] {
        let gate = Gate::start(who).await;
        for (path, body, limited) in evasions() {
            let before = gate.endmark.calls();
            let reply = gate.send("POST", path, &body).await;
            if limited.contains(&who) {
                assert!(matches!(reply.status, 400 | 403), "{who:?} {path} {body}: {}", reply.text());
                assert_eq!(gate.endmark.calls(), before, "{who:?} {path} {body}");
                assert!(reply.json()["error"]["message"].is_string(), "{}", reply.text());
            } else if who == Who::Free {
                assert_eq!(reply.status, 200, "{path} {body}: {}", reply.text());
                assert_eq!(gate.endmark.upstream.requests()[before].body, body.as_bytes(), "{path}");
            }
        }
    }
}

#[tokio::test]
async fn a_body_with_a_json_content_type_is_read_as_json() {
    for who in [Who::Listed, Who::Budgeted, Who::UnderBudget, Who::Free] {
        let gate = Gate::start(who).await;
        let body = format!(r#"{{"model":"cheap","x":"&model=dear&",{MESSAGES}}}"#);
        for (kind, is_json) in [
            ("application/json", true),
            ("Application/JSON; charset=UTF-8", true),
            ("application/x-www-form-urlencoded", false),
            ("multipart/form-data; boundary=x", false),
            ("application/json; charset=utf-7", false),
            ("application/json; charset=\"utf-16\"", false),
            ("application/json, text/plain", false),
        ] {
            for path in ["/v1/chat/completions", "/v1/embeddings"] {
                let key = format!("Bearer {}", gate.secret.as_deref().unwrap_or("sk-any"));
                let sent = Request::post(gate.endmark.address, path).header("content-type", kind);
                let reply = sent.header("authorization", &key).body(body.clone()).send().await.read().await;
                let expected = if is_json || who == Who::Free { 200 } else { 400 };
                assert_eq!(reply.status, expected, "{who:?} {path} {kind}: {}", reply.text());
            }
        }
    }
}

#[tokio::test]
async fn a_plain_request_passes_with_every_limit() {
    for who in [Who::Listed, Who::Budgeted, Who::UnderBudget] {
        let gate = Gate::start(who).await;
        let chat = format!(r#"{{"model":"cheap-1","max_tokens":9,"max_completion_tokens":7,{MESSAGES}}}"#);
        for (path, body) in [
            ("/v1/chat/completions", chat.as_str()),
            ("/v1/embeddings", r#"{"model":"cheap","input":["a"]}"#),
            ("/openai/deployments/cheap/embeddings", r#"{"input":["a"]}"#),
            ("/v1beta/models/cheap%3AcountTokens", r#"{"contents":[]}"#),
            ("/v1/messages/count_tokens", r#"{"model":"cheap","messages":[]}"#),
            ("/v1beta/models/cheap:batchEmbedContents", r#"{"requests":[{"model":"models/cheap"},{}]}"#),
            ("/v1/responses/resp_1/cancel", ""),
            ("/v1/files", "any bytes"),
        ] {
            let reply = gate.send("POST", path, body).await;
            assert_eq!(reply.status, 200, "{who:?} {path}: {}", reply.text());
        }
        assert_eq!(gate.send("GET", "/v1/models/dear", "").await.status, 200, "what there is may be read");
        let parts = "/v1/responses/resp_1?include[]=a&include[]=b";
        assert_eq!(gate.send("GET", parts, "").await.status, 200, "it costs nothing");
        assert_eq!(gate.send("DELETE", "/v1/files/f", "").await.status, 200);
    }
}

#[tokio::test]
async fn a_get_or_delete_body_passes_only_without_limits() {
    for who in [Who::Listed, Who::Budgeted, Who::UnderBudget, Who::Free] {
        let gate = Gate::start(who).await;
        for method in ["GET", "DELETE", "OPTIONS"] {
            let reply = gate.send(method, "/v1/chat/completions", r#"{"model":"dear"}"#).await;
            assert_eq!(reply.status, if who == Who::Free { 200 } else { 400 }, "{who:?}: {}", reply.text());
            let reply = gate.send(method, "/v1/chat/completions?_method=POST", "").await;
            assert_eq!(reply.status, if who == Who::Free { 200 } else { 400 }, "{who:?}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn method_and_path_override_headers_are_not_forwarded() {
    let gate = Gate::start(Who::Free).await;
    for (name, path) in [
        ("x-http-method-override", "/v1/models"),
        ("x-http-method", "/v1/chat/completions"),
        ("x-method-override", "/v1/models"),
        ("x_http_method_override", "/v1/models"),
        ("x-original-url", "/v1/models"),
        ("x-rewrite-url", "/v1/models"),
    ] {
        let method = if path == "/v1/models" { "GET" } else { "POST" };
        let sent =
            Request::new(method, gate.endmark.address, path).header(name, "POST").header("x-kept", "1");
        let sent = if method == "POST" { sent.json(&json!({"model": "m", "messages": []})) } else { sent };
        let before = gate.endmark.calls();
        assert_eq!(sent.send().await.read().await.status, 200, "{name}");
        let received = gate.endmark.upstream.requests()[before].clone();
        assert_eq!((received.header(name), received.header("x-kept")), (None, Some("1")), "{name}");
    }
}

#[tokio::test]
async fn methods_that_could_echo_a_key_are_refused() {
    let gate = Gate::start(Who::Free).await;
    for method in ["TRACE", "TRACK", "Trace", "CONNECT", "DEBUG", "PROPFIND"] {
        for path in ["/v1/models", "/endmark/readyz"] {
            let target = if method == "CONNECT" { "localhost:80" } else { path };
            let host = if method == "CONNECT" { "localhost:80" } else { "localhost" };
            let bytes = format!("{method} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            let response = raw_answer(gate.endmark.address, bytes).await;
            assert!(response.starts_with("HTTP/1.1 405 "), "{method} {path}: {response}");
            assert!(
                response.contains("allow: GET, HEAD, POST")
                    && response.contains("endmark_method_not_allowed"),
                "{response}"
            );
        }
    }
    assert_eq!(gate.endmark.calls(), 0);
}
