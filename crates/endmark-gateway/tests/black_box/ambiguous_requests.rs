//! Requests that an upstream may interpret differently from the gateway. They cannot bypass a key's list of
//! models or a budget. If neither applies to the client, they are forwarded unchanged.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking, in their helpers too")]

use endmark_context::budget::{BudgetRule, Period, Scope, Unit};
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
        vec![BudgetRule { scope: Scope::All, unit: Unit::Tokens, period: Period::Day, limit: 1_000_000 }];
}

/// The client that sends a request: its key allows only `cheap*`, its key has a budget, `[budget]` applies to
/// it, or it has no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ClientKind {
    ModelListKey,
    BudgetKey,
    GlobalBudget,
    Unlimited,
}

struct TestGateway {
    endmark: Endmark,
    secret: Option<String>,
}

impl TestGateway {
    async fn start(who: ClientKind) -> Self {
        let endmark = Endmark::start_with(
            good_script(),
            if who == ClientKind::GlobalBudget { set_budget } else { require_keys },
        )
        .await;
        let mut new = NewKey { name: "alice".to_owned(), ..NewKey::default() };
        match who {
            ClientKind::ModelListKey => new.models = vec!["cheap*".to_owned()],
            ClientKind::BudgetKey => {
                new.budget = Some(KeyBudget { unit: Unit::Tokens, limit: 1_000_000, period: Period::Month });
            }
            ClientKind::GlobalBudget | ClientKind::Unlimited => return Self { endmark, secret: None },
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

const MESSAGES_FIELD: &str = r#""messages":[{"role":"user","content":"Tell."}]"#;

/// Requests that make some upstream use another model, or generate more output, than the gateway reads from
/// them.
fn evading_requests() -> Vec<(&'static str, String, &'static [ClientKind])> {
    use ClientKind::{BudgetKey, GlobalBudget, ModelListKey};
    const ALL_LIMITED: &[ClientKind] = &[ModelListKey, BudgetKey, GlobalBudget];
    const WITH_BUDGET: &[ClientKind] = &[BudgetKey, GlobalBudget];
    let chat = |fields: &str| format!("{{{fields},{MESSAGES_FIELD}}}");
    let cheap = |fields: &str| format!(r#"{{"model":"cheap","input":"a"{fields}}}"#);
    vec![
        ("/v1/chat/completions", chat(r#""model":"cheap","Model":"dear""#), ALL_LIMITED),
        ("/v1/chat/completions", chat(r#""model":"dear","model":"cheap""#), ALL_LIMITED),
        ("/v1/chat/completions", chat(r#""m\u006fdel":"dear","model":"cheap""#), ALL_LIMITED),
        ("/v1/chat/completions", chat(r#""model":"cheap","max_tokens":1,"Max_Tokens":100000"#), ALL_LIMITED),
        ("/v1/chat/completions", chat(r#""model":"cheap","max_tokens":1,"max_to\u212aens":100000"#), ALL_LIMITED),
        ("/v1/chat/completions", chat(r#""model":"cheap","MAX_TOKENS":100000"#), ALL_LIMITED),
        ("/v1/chat/completions", chat(r#""model":"cheap","max_tokens":"100000""#), WITH_BUDGET),
        ("/v1/chat/completions", chat(r#""model":"cheap","N":50"#), ALL_LIMITED),
        ("/v1/chat/completions", chat(r#""model":"cheap","models":["dear"]"#), &[ModelListKey]),
        ("/v1/chat/completions", chat(r#""model":"cheap","tools":[{"type":"x","model":"dear"}]"#), &[ModelListKey]),
        ("/v1/chat/completions", chat(r#""model":"cheap","tools":[],"Tools":[{"model":"dear"}]"#), ALL_LIMITED),
        ("/v1/chat/completions?model=dear", chat(r#""model":"cheap""#), &[ModelListKey]),
        ("/v1/embeddings", r#"[{"model":"dear"}]"#.to_owned(), ALL_LIMITED),
        ("/v1/responses", cheap(r#","background":true"#), WITH_BUDGET),
        ("/v1/responses", cheap(r#","background":false,"Background":true"#), ALL_LIMITED),
        ("/v1beta/models/cheap:generateContent", r#"{"contents":[],"model":"models/dear"}"#.to_owned(), &[ModelListKey]),
        (
            "/v1beta/models/cheap:generateContent",
            r#"{"contents":[],"generationConfig":{"maxOutputTokens":1},"generation_config":{"maxOutputTokens":9}}"#
                .to_owned(),
            ALL_LIMITED,
        ),
        ("/v1/embeddings", cheap(r#","Model":"dear""#), ALL_LIMITED),
        ("/v1/embeddings", "input=a".to_owned(), ALL_LIMITED),
        ("/u/scripted/models/cheap/v1/embeddings", r#"{"model":"dear"}"#.to_owned(), ALL_LIMITED),
        ("/openai/deployments/cheap/embeddings", r#"{"model":"dear"}"#.to_owned(), &[ModelListKey]),
        ("/v1/batches", cheap(r#","requests":[{"model":"dear"}]"#), ALL_LIMITED),
        ("/v1/messages/batches", cheap(r#","requests":[{"params":{"model":"dear"}}]"#), ALL_LIMITED),
        ("/v1beta/models/cheap:batchEmbedContents", cheap(r#","requests":[{"model":"dear"}]"#), ALL_LIMITED),
        (
            "/v1beta/models/cheap:batchEmbedContents",
            r#"{"requests":[{"model":"models/cheap"},{"model":"models/dear"}]}"#.to_owned(),
            ALL_LIMITED,
        ),
        (
            "/v1beta/models/cheap:batchEmbedContents",
            r#"{"requests":[{"model":"models/cheap","Model":"dear"}]}"#.to_owned(),
            ALL_LIMITED,
        ),
        ("/v1beta/models/cheap:batchEmbedContents", r#"{"requests":{"model":"models/dear"}}"#.to_owned(), ALL_LIMITED),
        ("/v1beta/models/cheap:asyncBatchEmbedContent", cheap(""), ALL_LIMITED),
        ("/v1/fine_tuning/jobs", cheap(""), ALL_LIMITED),
        ("/v1/threads/runs", cheap(r#","assistant_id":"of-dear""#), ALL_LIMITED),
        ("/v1/anything", cheap(r#","items":[{"model":"dear"}]"#), ALL_LIMITED),
        ("/v1/completions%3f/count_tokens", cheap(""), ALL_LIMITED),
        ("/v1/completions;/count_tokens", cheap(""), ALL_LIMITED),
        ("/v1/completions;x", cheap(""), ALL_LIMITED),
        ("/v1//completions", cheap(""), ALL_LIMITED),
        ("/v1/completions/", cheap(""), ALL_LIMITED),
        ("/v1/c%6fmpletions", cheap(""), ALL_LIMITED),
        ("/V1/completions", cheap(""), ALL_LIMITED),
        ("/v1/completions?_method=POST", cheap(""), ALL_LIMITED),
        ("/v1/completions?%5Fmethod=PUT", cheap(""), ALL_LIMITED),
        ("/v1/completions?$httpMethod=PUT", cheap(""), ALL_LIMITED),
        ("/v1/completions?fields=choices", cheap(""), WITH_BUDGET),
        ("/v1/completions?$fields=choices", cheap(""), WITH_BUDGET),
        ("/v1/completions?alt=sse&%24alt=json", cheap(""), WITH_BUDGET),
    ]
}

#[tokio::test]
async fn ambiguous_fields_do_not_evade_a_limit() {
    for who in
        [ClientKind::ModelListKey, ClientKind::BudgetKey, ClientKind::GlobalBudget, ClientKind::Unlimited]
    {
        let gate = TestGateway::start(who).await;
        for (path, body, limited) in evading_requests() {
            let before = gate.endmark.calls();
            let reply = gate.send("POST", path, &body).await;
            if limited.contains(&who) {
                assert!(matches!(reply.status, 400 | 403), "{who:?} {path} {body}: {}", reply.text());
                assert_eq!(gate.endmark.calls(), before, "{who:?} {path} {body}");
                assert!(reply.json()["error"]["message"].is_string(), "{}", reply.text());
            } else if who == ClientKind::Unlimited {
                assert_eq!(reply.status, 200, "{path} {body}: {}", reply.text());
                assert_eq!(gate.endmark.upstream.requests()[before].body, body.as_bytes(), "{path}");
            }
        }
    }
}

#[tokio::test]
async fn a_body_with_a_json_content_type_is_read_as_json() {
    for who in
        [ClientKind::ModelListKey, ClientKind::BudgetKey, ClientKind::GlobalBudget, ClientKind::Unlimited]
    {
        let gate = TestGateway::start(who).await;
        let body = format!(r#"{{"model":"cheap","x":"&model=dear&",{MESSAGES_FIELD}}}"#);
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
                let expected = if is_json || who == ClientKind::Unlimited { 200 } else { 400 };
                assert_eq!(reply.status, expected, "{who:?} {path} {kind}: {}", reply.text());
            }
        }
    }
}

#[tokio::test]
async fn a_plain_request_passes_with_every_limit() {
    for who in [ClientKind::ModelListKey, ClientKind::BudgetKey, ClientKind::GlobalBudget] {
        let gate = TestGateway::start(who).await;
        let chat =
            format!(r#"{{"model":"cheap-1","max_tokens":9,"max_completion_tokens":7,{MESSAGES_FIELD}}}"#);
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
    for who in
        [ClientKind::ModelListKey, ClientKind::BudgetKey, ClientKind::GlobalBudget, ClientKind::Unlimited]
    {
        let gate = TestGateway::start(who).await;
        for method in ["GET", "DELETE", "OPTIONS"] {
            let reply = gate.send(method, "/v1/chat/completions", r#"{"model":"dear"}"#).await;
            assert_eq!(
                reply.status,
                if who == ClientKind::Unlimited { 200 } else { 400 },
                "{who:?}: {}",
                reply.text()
            );
            let reply = gate.send(method, "/v1/chat/completions?_method=POST", "").await;
            assert_eq!(
                reply.status,
                if who == ClientKind::Unlimited { 200 } else { 400 },
                "{who:?}: {}",
                reply.text()
            );
        }
    }
}

#[tokio::test]
async fn method_and_path_override_headers_are_not_forwarded() {
    let gate = TestGateway::start(ClientKind::Unlimited).await;
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
    let gate = TestGateway::start(ClientKind::Unlimited).await;
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
