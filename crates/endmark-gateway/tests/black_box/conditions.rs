//! Upstreams that accept only certain models, paths or header fields.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;

use endmark_gateway::{Conditions, Upstream as Target};
use endmark_wire::gemini::GEMINI;
use endmark_wire::openai_chat::OPENAI;
use endmark_wire::provider::Provider;
use serde_json::json;
use testkit::{Answer, Reply, Request, Script, ScriptedModel, Upstream};

use crate::support::{Endmark, text};

/// Starts a gateway with these upstreams and one named `scripted` that accepts all requests. Each answers
/// with its own name.
async fn start_with_upstreams(
    others: &[(&'static str, &'static Provider, Conditions)],
) -> (Endmark, Vec<Upstream>) {
    let mut upstreams = Vec::new();
    let mut targets = Vec::new();
    for (name, provider, conditions) in others {
        let upstream = Upstream::start(ScriptedModel::new(name)).await;
        targets.push(Target {
            provider,
            conditions: conditions.clone(),
            ..Target::new(name, upstream.base_url().parse().unwrap())
        });
        upstreams.push(upstream);
    }
    let endmark = Endmark::start_with(ScriptedModel::new("scripted"), |settings| {
        // The upstream without conditions is listed first, to show that its position does not matter.
        settings.upstreams.extend(targets);
    })
    .await;
    (endmark, upstreams)
}

fn model_conditions(patterns: &[&str]) -> Conditions {
    Conditions {
        models: patterns.iter().map(|pattern| pattern.parse().unwrap()).collect(),
        ..Conditions::default()
    }
}

fn header_conditions(patterns: &[&str]) -> Conditions {
    Conditions {
        headers: patterns.iter().map(|pattern| pattern.parse().unwrap()).collect(),
        ..Conditions::default()
    }
}

fn request_for(model: &str) -> serde_json::Value {
    json!({"model": model, "messages": [{"role": "user", "content": "Who are you?"}]})
}

#[tokio::test]
async fn the_model_chooses_the_upstream() {
    let (endmark, _others) = start_with_upstreams(&[
        ("small", &OPENAI, model_conditions(&["qwen*", "llama-3"])),
        ("second", &OPENAI, model_conditions(&["qwen*", "mistral-*"])),
    ])
    .await;
    for (model, name) in [
        ("qwen-3", "small"),
        ("llama-3", "small"),
        ("llama-3.1", "scripted"),
        ("mistral-large", "second"),
        ("gpt-4o", "scripted"),
    ] {
        assert_eq!(text(&endmark.ask(&request_for(model)).await), name, "{model}");
    }
    // A request without a model goes to the upstream that accepts all requests.
    let no_model = json!({"messages": [{"role": "user", "content": "Who are you?"}]});
    assert_eq!(text(&endmark.ask(&no_model).await), "scripted");
    // A client can name an upstream in the path.
    let named = Request::post(endmark.address, "/u/second/v1/chat/completions").json(&request_for("qwen-3"));
    assert_eq!(text(&named.send().await.read().await), "second");
}

#[tokio::test]
async fn a_compressed_request_is_routed_and_forwarded_unchanged() {
    let (endmark, others) = start_with_upstreams(&[("small", &OPENAI, model_conditions(&["qwen*"]))]).await;
    let mut body = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
    body.write_all(request_for("qwen-3").to_string().as_bytes()).unwrap();
    let body = body.into_inner();
    let request = Request::post(endmark.address, "/v1/chat/completions")
        .header("content-type", "application/json")
        .header("content-encoding", "br")
        .body(body.clone());
    request.send().await.read().await;
    let received = others[0].requests().remove(0);
    assert_eq!((received.header("content-encoding"), &received.body), (Some("br"), &body));
}

#[tokio::test]
async fn headers_and_paths_choose_the_upstream() {
    let embeddings = Conditions { paths: vec!["/v1/embeddings".parse().unwrap()], ..Conditions::default() };
    let both =
        Conditions { headers: header_conditions(&["x-team: blue"]).headers, ..model_conditions(&["qwen*"]) };
    let (endmark, others) = start_with_upstreams(&[
        ("both", &OPENAI, both),
        ("team", &OPENAI, header_conditions(&["x-team"])),
        ("vectors", &OPENAI, embeddings),
    ])
    .await;
    for (model, team, name) in [
        ("qwen-3", Some("blue"), "both"),
        ("qwen-3", Some("red"), "team"),
        ("gpt-4o", Some("blue"), "team"),
        ("qwen-3", None, "scripted"),
    ] {
        let request = endmark.chat(&request_for(model));
        let request = match team {
            Some(team) => request.header("X-Team", team),
            None => request,
        };
        assert_eq!(text(&request.send().await.read().await), name, "{model} {team:?}");
    }
    let vectors = others.last().unwrap();
    let before = vectors.requests().len();
    Request::post(endmark.address, "/v1/embeddings?x=1")
        .json(&json!({"input": "a"}))
        .send()
        .await
        .read()
        .await;
    assert_eq!(vectors.requests().len(), before + 1);
    assert_eq!(vectors.requests().last().unwrap().path, "/v1/embeddings?x=1");
}

#[tokio::test]
async fn a_pass_through_request_is_routed_by_its_model() {
    let answer = || Script::new().default_answer(Answer::new(200, "application/json", b"{}".to_vec()));
    let (vectors, google) = (Upstream::start(answer()).await, Upstream::start(answer()).await);
    let endmark = Endmark::start_with(answer(), |settings| {
        settings.upstreams.push(Target {
            conditions: model_conditions(&["nomic-*"]),
            ..Target::new("vectors", vectors.base_url().parse().unwrap())
        });
        settings.upstreams.push(Target {
            provider: &GEMINI,
            conditions: model_conditions(&["gemini-*"]),
            ..Target::new("google", google.base_url().parse().unwrap())
        });
    })
    .await;
    let ask = async |path: &str, kind: &str, body: &str| -> Reply {
        let request = Request::post(endmark.address, path).header("content-type", kind).body(body);
        request.send().await.read().await
    };
    let body = "{ \"input\": [\"a\"],\n  \"model\" : \"nomic-embed\" }";
    assert_eq!(ask("/v1/embeddings", "application/json; charset=utf-8", body).await.status, 200);
    assert_eq!(vectors.requests().remove(0).body, body.as_bytes());
    // Forms are not examined for a model.
    assert_eq!(ask("/v1/audio/speech", "multipart/form-data; boundary=x", body).await.status, 200);
    assert_eq!((vectors.requests().len(), endmark.calls()), (1, 1));
    for path in ["/v1beta/models/gemini-9:generateContent", "/v1beta/models/gemini-9%3AcountTokens"] {
        let before = google.requests().len();
        ask(path, "application/json", "{\"contents\": []}").await;
        assert_eq!(google.requests().len(), before + 1, "{path}");
    }
    // No upstream accepts other Gemini models, and the key must not go to the upstream of another provider.
    let request = Request::post(endmark.address, "/v1beta/models/other:generateContent")
        .header("x-goog-api-key", "AIza1")
        .json(&json!({"contents": []}));
    let reply = request.send().await.read().await;
    assert_eq!((reply.status, endmark.calls()), (404, 1), "{}", reply.text());
}

#[tokio::test]
async fn conditions_never_send_a_key_to_another_provider() {
    let (endmark, others) =
        start_with_upstreams(&[("cheap", &OPENAI, model_conditions(&["claude-*"]))]).await;
    let claude =
        json!({"model": "claude-9", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]});
    let request =
        Request::post(endmark.address, "/v1/messages").header("x-api-key", "sk-ant-1").json(&claude);
    let reply = request.send().await.read().await;
    assert_eq!(reply.status, 404, "{}", reply.text());
    assert!(reply.text().contains("endmark_no_upstream"), "{}", reply.text());
    assert_eq!((others[0].requests().len(), endmark.calls()), (0, 0));
}

#[tokio::test]
async fn a_body_read_for_routing_has_the_same_limits() {
    let upstream = Upstream::start(ScriptedModel::new("small")).await;
    let endmark = Endmark::start_with(ScriptedModel::new("scripted"), |settings| {
        settings.limits.body_bytes = 1_000;
        settings.limits.held_bytes = 1_200;
        settings.upstreams.push(Target {
            conditions: model_conditions(&["qwen*"]),
            ..Target::new("small", upstream.base_url().parse().unwrap())
        });
    })
    .await;
    // The body is examined twice, but counts once toward `held_bytes`.
    let fits =
        json!({"model": "qwen-3", "user": "x".repeat(700), "messages": [{"role": "user", "content": "?"}]});
    assert_eq!(text(&endmark.ask(&fits).await), "small");
    let long = json!({"model": "qwen-3", "input": "x".repeat(1_000)});
    let reply = Request::post(endmark.address, "/v1/embeddings").json(&long).send().await.read().await;
    assert_eq!(reply.status, 413, "{}", reply.text());
    // A body whose model cannot decide the upstream is not read for routing.
    let form = Request::post(endmark.address, "/v1/files").body("x".repeat(5_000)).send().await.read().await;
    assert_ne!(form.status, 413);
}

/// The model in the path is recognised in every spelling.
#[tokio::test]
async fn a_model_in_a_path_chooses_like_one_in_a_body() {
    let answer = || Script::new().default_answer(Answer::new(200, "application/json", b"{}".to_vec()));
    let own = Upstream::start(answer()).await;
    let patterns = ["ft:gpt-4o:org::id", "meta-llama/Llama-3", "llama3.2:1b"];
    let endmark = Endmark::start_with(answer(), |settings| {
        settings.upstreams.push(Target {
            conditions: model_conditions(&patterns),
            ..Target::new("own", own.base_url().parse().unwrap())
        });
    })
    .await;
    for name in patterns {
        for spelled in [name.to_owned(), name.replace(':', "%3A").replace('/', "%2F")] {
            let path = format!("/v1/models/{spelled}");
            let before = own.requests().len();
            Request::get(endmark.address, &path).send().await.read().await;
            assert_eq!(own.requests().len(), before + 1, "{path}");
            assert_eq!(own.requests().last().unwrap().path, path, "it arrives as it came");
        }
    }
    for other in ["/v1/models/ft:gpt-4o", "/v1/models/meta-llama", "/v1/models/llama3.2", "/v1/models"] {
        let before = endmark.calls();
        Request::get(endmark.address, other).send().await.read().await;
        assert_eq!(endmark.calls(), before + 1, "{other}");
    }
}

/// If only the upstream needs the body, an unreadable model does not cause a refusal.
#[tokio::test]
async fn an_unreadable_pass_through_body_is_not_refused() {
    let (endmark, others) = start_with_upstreams(&[("small", &OPENAI, model_conditions(&["qwen*"]))]).await;
    let body = br#"{"model": "qwen-3", "input": "a"}"#;
    for (coding, path, expected) in [
        ("aws-chunked", "/v1/embeddings", None),
        ("gzip", "/v1/embeddings", None),
        ("aws-chunked", "/v1/chat/completions", Some(415)),
        ("gzip", "/v1/chat/completions", Some(400)),
    ] {
        let calls = endmark.calls();
        let request = Request::post(endmark.address, path)
            .header("content-type", "application/json")
            .header("content-encoding", coding)
            .body(body.to_vec());
        let reply = request.send().await.read().await;
        if let Some(status) = expected {
            assert_eq!((reply.status, endmark.calls()), (status, calls), "{coding} {path}");
            continue;
        }
        assert_eq!(endmark.calls(), calls + 1, "{coding} {path}: {}", reply.text());
        let received = endmark.upstream.requests().pop().unwrap();
        assert_eq!((received.header("content-encoding"), &received.body[..]), (Some(coding), &body[..]));
    }
    assert_eq!(others[0].requests().len(), 0);
}

#[tokio::test]
async fn a_request_that_meets_no_condition_gets_a_list_of_them() {
    let both = Conditions {
        headers: header_conditions(&["x-team: blue"]).headers,
        ..model_conditions(&["qwen*", "llama-3"])
    };
    let endmark = Endmark::start_with(ScriptedModel::new("scripted"), |settings| {
        settings.upstreams[0].conditions = both;
    })
    .await;
    let reply = endmark.ask(&request_for("gpt-4o")).await;
    assert_eq!((reply.status, endmark.calls()), (404, 0));
    let error = &reply.json()["error"];
    assert_eq!(error["type"], "endmark_no_upstream");
    let message = error["message"].as_str().unwrap();
    let named =
        "`scripted` is for for_models = [\"qwen*\", \"llama-3\"] and for_headers = [\"x-team: blue\"]";
    assert!(message.contains(named) && message.contains("/u/NAME/"), "{message}");
}
