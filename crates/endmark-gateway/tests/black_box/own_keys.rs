//! The gateway's own keys: which clients and requests they admit. No upstream ever gets them. (CX-7)

use std::time::Duration;

use endmark_context::budget::{Period, Unit};
use endmark_gateway::{Secret, Settings};
use endmark_store::{KeyBudget, KeySecret, NewKey};
use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, ModelFormatAdapter, Reply, Request, Script, ScriptedModel, chat_reply};

use crate::support::wire_replies::Wire;
use crate::support::{Endmark, request};

const UPSTREAM_KEY: &str = "sk-of-the-upstream";

fn good_script() -> Script {
    Script::new().default_answer(Answer::json(200, &chat_reply("Yes.", "stop", (20, 10))))
}

fn require_keys(settings: &mut Settings) {
    settings.listener.require_key = true;
    settings.upstreams[0].api_key = Some(Secret::new(UPSTREAM_KEY.to_owned()));
}

async fn add_key(endmark: &Endmark, name: &str, change: impl FnOnce(&mut NewKey)) -> KeySecret {
    let mut new = NewKey { name: name.to_owned(), ..NewKey::default() };
    change(&mut new);
    endmark.change_keys(async |book| book.add(new).await).await
}

/// Sends a chat request with this key.
async fn ask(endmark: &Endmark, secret: &str, body: &Value) -> Reply {
    let sent = Request::post(endmark.address, "/v1/chat/completions");
    sent.header("authorization", &format!("Bearer {secret}")).json(body).send().await.read().await
}

/// Returns the places in which clients of this format send their key: a path, or a path and a header.
fn key_places(wire: Wire) -> Vec<(String, Option<(&'static str, &'static str)>)> {
    let path = wire.path(false).to_owned();
    match wire {
        Wire::Chat | Wire::Other(ModelFormat::Responses) => vec![(path, Some(("authorization", "Bearer ")))],
        Wire::Other(ModelFormat::Messages) => {
            vec![(path.clone(), Some(("x-api-key", ""))), (path, Some(("authorization", "Bearer ")))]
        }
        Wire::Other(ModelFormat::Gemini) => {
            vec![
                (path.clone(), Some(("x-goog-api-key", ""))),
                (format!("{path}?key="), None),
                (format!("{path}?%6bey="), None),
            ]
        }
    }
}

#[tokio::test]
async fn a_gateway_key_is_accepted_in_every_format_and_never_forwarded() {
    for wire in Wire::ALL {
        let model = || ScriptedModel::new("All of it.");
        let endmark = match wire {
            Wire::Chat => Endmark::start_with(model(), require_keys).await,
            Wire::Other(dialect) => {
                Endmark::start_with(ModelFormatAdapter::new(dialect, model()), require_keys).await
            }
        };
        let secret = add_key(&endmark, "alice", |_| {}).await;
        for (path, header) in key_places(wire) {
            let prepared_request = |secret: &str| {
                let stray = |request: Request| request.header("x-other", &format!("of {secret}"));
                match header {
                    Some((name, before)) => stray(Request::post(endmark.address, &path))
                        .header(name, &format!("{before}{secret}")),
                    None => Request::post(endmark.address, &format!("{path}{secret}")),
                }
                .json(&wire.request(false))
            };
            let before = endmark.calls();
            let reply = prepared_request(secret.reveal()).send().await.read().await;
            assert_eq!(reply.status, 200, "{wire:?} {path}: {}", reply.text());
            let sent = format!("{:?}", endmark.upstream.requests()[before]);
            assert!(
                !sent.contains("em_sk_") && !sent.contains(&secret.reveal()[6..]),
                "{wire:?} {path}: {sent}"
            );
            assert!(sent.contains(UPSTREAM_KEY), "{wire:?} {path}: {sent}");

            let other = format!("{}0", secret.reveal());
            let refused = prepared_request(&other).send().await.read().await;
            assert_eq!(refused.status, 401, "{wire:?} {path}: {}", refused.text());
            assert!(refused.text().contains("endmark_key_invalid"), "{wire:?} {path}: {}", refused.text());
            assert!(!refused.text().contains(&other), "{}", refused.text());
        }
        for sent in [None, Some("sk-of-a-provider")] {
            let mut prepared_request = Request::post(endmark.address, wire.path(false));
            if let Some(key) = sent {
                prepared_request = prepared_request.header("authorization", &format!("Bearer {key}"));
            }
            let before = endmark.calls();
            let refused = prepared_request.json(&wire.request(false)).send().await.read().await;
            assert_eq!(refused.status, 401, "{wire:?} {sent:?}: {}", refused.text());
            assert!(refused.text().contains("endmark_key_required"), "{wire:?}: {}", refused.text());
            assert_eq!(endmark.calls(), before);
        }
        // The row names the key that made a call, and never contains its secret.
        let mut calls = Vec::new();
        for _ in 0..200 {
            calls = endmark.store.reader().unwrap().recent_calls(9).unwrap();
            if calls.len() == key_places(wire).len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        let are_alices = calls.iter().all(|call| call.credential.as_deref() == Some("key:alice"));
        assert!(calls.len() == key_places(wire).len() && are_alices, "{wire:?}: {calls:?}");
    }
}

#[tokio::test]
async fn a_key_is_limited_to_its_models_on_every_path() {
    let endmark = Endmark::start_with(good_script(), require_keys).await;
    let secret =
        add_key(&endmark, "alice", |new| new.models = vec!["scripted".to_owned(), "small-*".to_owned()])
            .await;
    let named = |model: Value| {
        let mut body = request(10);
        body["model"] = model;
        body
    };
    for model in ["scripted", "small-1"] {
        assert_eq!(ask(&endmark, secret.reveal(), &named(json!(model))).await.status, 200, "{model}");
    }
    let calls = endmark.calls();
    for model in [json!("large-1"), json!("small"), Value::Null, json!(7)] {
        let refused = ask(&endmark, secret.reveal(), &named(model.clone())).await;
        assert_eq!(refused.status, 403, "{model}: {}", refused.text());
        assert_eq!(refused.json()["error"]["type"], "endmark_key_not_for_this", "{model}");
    }
    let post = |path: &str| {
        Request::post(endmark.address, path).header("authorization", &format!("Bearer {}", secret.reveal()))
    };
    for (path, body) in [
        ("/v1/embeddings", json!({"model": "large-1"})),
        ("/v1/batches", json!({"input_file_id": "f"})),
        ("/u/scripted/v1/chat/completions", named(json!("large-1"))),
        ("/v1beta/models/large-1:generateContent", json!({"contents": []})),
    ] {
        let refused = post(path).json(&body).send().await.read().await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
    }
    assert_eq!(endmark.calls(), calls, "nothing of it goes upstream");
    let reply =
        post("/v1/embeddings").json(&json!({"model": "small-2", "input": "a"})).send().await.read().await;
    assert_eq!(reply.status, 200);
    let listed = Request::get(endmark.address, "/v1/models").header("x-api-key", secret.reveal());
    assert_eq!(listed.send().await.read().await.status, 200, "what there is may be read");
}

#[tokio::test]
async fn a_key_has_one_budget_for_all_its_secrets() {
    let endmark = Endmark::start_with(good_script(), require_keys).await;
    let budget = KeyBudget { unit: Unit::Tokens, limit: 100, period: Period::Month };
    let first = add_key(&endmark, "alice", |new| new.budget = Some(budget)).await;
    let bob = add_key(&endmark, "bob", |_| {}).await;
    let body = request(10);
    assert_eq!(ask(&endmark, first.reveal(), &body).await.status, 200);
    let second = endmark.change_keys(async |book| book.rotate("alice", 3_600).await).await;
    assert_eq!(ask(&endmark, second.reveal(), &body).await.status, 200);
    let refused = ask(&endmark, first.reveal(), &request(80)).await;
    assert_eq!(refused.status, 402, "{}", refused.text());
    let details = &refused.json()["endmark"];
    assert_eq!((&details["budget"], &details["subject"]), (&json!("key"), &json!("key:alice")), "{details}");
    assert_eq!((&details["spent"], &details["limit"]), (&json!(60), &json!(100)));
    assert_eq!(details["window"].as_str().unwrap().len(), "2026-11".len(), "{details}");
    assert!(refused.text().contains("of the key alice in 20"), "{}", refused.text());
    assert!(refused.text().contains("endmark keys add") && !refused.text().contains("[budget]"));
    assert_eq!(ask(&endmark, bob.reveal(), &request(80)).await.status, 200);
    // The cost of this request is unknown, so no amount can be held in the budget.
    let embed = |secret: &KeySecret, path: &str| {
        let sent = Request::post(endmark.address, path).header("x-api-key", secret.reveal());
        sent.json(&json!({"model": "m", "input": "a"})).send()
    };
    assert_eq!(embed(&first, "/v1/images/generations").await.read().await.status, 403);
    assert_eq!(embed(&bob, "/v1/images/generations").await.read().await.status, 200);
    assert_eq!(embed(&first, "/v1/messages/count_tokens").await.read().await.status, 200);
}

#[tokio::test]
async fn a_refusal_names_the_key_budget_even_if_another_is_equal() {
    let budget = KeyBudget { unit: Unit::Tokens, limit: 100, period: Period::Month };
    let endmark = Endmark::start_with(good_script(), |settings| {
        require_keys(settings);
        settings.budget.rules = vec![budget.rule()];
    })
    .await;
    let alice = add_key(&endmark, "alice", |new| new.budget = Some(budget)).await;
    let bob = add_key(&endmark, "bob", |_| {}).await;
    for (secret, advice) in [(alice, "`endmark keys add NAME` makes one"), (bob, "under [budget]")] {
        for _ in 0..2 {
            assert_eq!(ask(&endmark, secret.reveal(), &request(10)).await.status, 200);
        }
        let refused = ask(&endmark, secret.reveal(), &request(80)).await;
        assert_eq!(refused.status, 402, "{}", refused.text());
        assert!(refused.text().contains(advice), "{}", refused.text());
    }
}

#[tokio::test]
async fn expired_revoked_and_replaced_keys_get_401() {
    let endmark = Endmark::start_with(good_script(), require_keys).await;
    let body = request(10);
    let over = add_key(&endmark, "over", |new| new.ends_at = Some(1_700_000_000)).await;
    let refused = ask(&endmark, over.reveal(), &body).await;
    assert_eq!(refused.status, 401, "{}", refused.text());
    assert!(refused.text().contains("`over` has ended"), "{}", refused.text());

    let old = add_key(&endmark, "rotated", |_| {}).await;
    assert_eq!(ask(&endmark, old.reveal(), &body).await.status, 200);
    let fresh = endmark.change_keys(async |book| book.rotate("rotated", 0).await).await;
    let revoked = add_key(&endmark, "revoked", |_| {}).await;
    assert_eq!(ask(&endmark, revoked.reveal(), &body).await.status, 200);
    endmark.change_keys(async |book| book.revoke("revoked").await).await;
    for (secret, word) in [(&old, "has ended"), (&revoked, "was revoked")] {
        // The gateway caches a looked-up key for one second.
        let mut reply = ask(&endmark, secret.reveal(), &body).await;
        for _ in 0..200 {
            if reply.status != 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
            reply = ask(&endmark, secret.reveal(), &body).await;
        }
        assert_eq!(reply.status, 401);
        assert!(reply.text().contains(word), "{}", reply.text());
    }
    assert_eq!(ask(&endmark, fresh.reveal(), &body).await.status, 200);
}

#[tokio::test]
async fn an_upstream_without_a_key_never_gets_a_gateway_key() {
    let endmark = Endmark::start(good_script()).await;
    let secret = add_key(&endmark, "alice", |_| {}).await;
    for path in ["/v1/chat/completions", "/v1/embeddings"] {
        let sent = Request::post(endmark.address, path)
            .header("authorization", &format!("Bearer {}", secret.reveal()));
        let refused = sent.json(&request(10)).send().await.read().await;
        assert_eq!(refused.status, 403, "{}", refused.text());
        assert_eq!(refused.json()["error"]["type"], "endmark_upstream_without_key");
        assert!(refused.text().contains("api_key under [upstreams.scripted]"), "{}", refused.text());
    }
    assert_eq!(endmark.calls(), 0);
    // Without `require_key`, all other clients are admitted as before.
    assert_eq!(endmark.ask(&request(10)).await.status, 200);
}

over_postgresql! {
    "own_keys.rs":
    a_gateway_key_is_accepted_in_every_format_and_never_forwarded,
    a_key_is_limited_to_its_models_on_every_path,
    a_key_has_one_budget_for_all_its_secrets,
    a_refusal_names_the_key_budget_even_if_another_is_equal,
    expired_revoked_and_replaced_keys_get_401,
    an_upstream_without_a_key_never_gets_a_gateway_key,
    ;
    alone:
}
