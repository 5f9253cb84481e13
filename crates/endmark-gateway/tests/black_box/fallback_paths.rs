//! A fallback gets its own path, whatever path the request to the first upstream has.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use endmark_gateway::Settings;
use endmark_wire::anthropic_messages::ANTHROPIC;
use endmark_wire::gemini::GEMINI as GEMINI_PROVIDER;
use testkit::{Answer, ModelFormat, Request, Script, Upstream};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const MESSAGES: Wire = Wire::Other(ModelFormat::Messages);
const GEMINI: Wire = Wire::Other(ModelFormat::Gemini);
const RESPONSES: Wire = Wire::Other(ModelFormat::Responses);

/// Returns the requests to a second upstream. The first upstream is overloaded, and the second cuts its
/// first stream.
async fn fallback_requests(
    wire: Wire,
    path: &str,
    change: impl FnOnce(&mut Settings),
) -> Vec<testkit::ReceivedRequest> {
    let cut = wire.answer(&[ReplyPart::Text("The harbour was quiet, ")], End::Limit, true);
    let rest = wire.answer(&[ReplyPart::Text("and the gulls were away.")], End::Turn, true);
    let second = Upstream::start(Script::new().then(cut).default_answer(rest)).await;
    let overloaded = Answer::error(503, "server_error", Some("overloaded"), "overloaded");
    let first = Script::new().default_answer(overloaded);
    let endmark = Endmark::with_fallback(first, &second, ("key-of-the-second", "its-model"), |settings| {
        settings.resume.mode = endmark_gateway::ResumeMode::On;
        settings.resume.treat_limit_as_cap = 1;
        let provider = match wire {
            GEMINI => &GEMINI_PROVIDER,
            MESSAGES => &ANTHROPIC,
            _ => settings.upstreams[0].provider,
        };
        for upstream in &mut settings.upstreams {
            upstream.provider = provider;
        }
        change(settings);
    })
    .await;
    let mut request = Request::post(endmark.address, path).header("authorization", "Bearer key");
    if wire == MESSAGES {
        request = request.header("anthropic-beta", "of-the-client");
    }
    let mut body = wire.request(true);
    if path.contains("/deployments/") {
        body.as_object_mut().unwrap().remove("model");
    }
    let reply = request.json(&body).send().await.read().await;
    assert_eq!((reply.status, endmark.calls()), (200, 3), "{path}");
    assert!(endmark.upstream.requests().iter().all(|request| request.path.starts_with(path)));
    let requests = second.requests();
    assert!(requests.len() >= 2, "the reply, and its rest: {path}: {}", reply.text());
    requests
}

#[tokio::test]
async fn a_fallback_path_contains_nothing_of_the_first_upstream() {
    let vertex = "/v1/projects/secret-p/locations/europe-west4/publishers/google/models/gemini-2.5-pro:\
                  streamGenerateContent?alt=sse&x=1";
    for (wire, path, expected) in [
        (Wire::Chat, "/openai/deployments/secret-d/chat/completions?api-version=1", "/v1/chat/completions"),
        (Wire::Chat, "/openai/v1/chat/completions", "/v1/chat/completions"),
        (RESPONSES, "/openai/responses?api-version=1", "/v1/responses"),
        (RESPONSES, "/openai/v1/responses", "/v1/responses"),
        (GEMINI, vertex, "/v1/models/its-model:streamGenerateContent?alt=sse"),
    ] {
        for request in fallback_requests(wire, path, |_| {}).await {
            assert_eq!(request.path, expected);
            assert_eq!(request.json()["model"].as_str(), (wire != GEMINI).then_some("its-model"), "{path}");
        }
    }
}

/// Vertex AI as a named upstream: the base URL contains the version, and the client's path begins with the
/// project.
#[tokio::test]
async fn a_named_upstream_accepts_a_vertex_project_path() {
    let cut = GEMINI.answer(&[ReplyPart::Text("The harbour was quiet, ")], End::Limit, false);
    let rest = GEMINI.answer(&[ReplyPart::Text("and the gulls were away.")], End::Turn, false);
    let endmark = Endmark::start_with(Script::new().then(cut).default_answer(rest), |settings| {
        settings.resume.mode = endmark_gateway::ResumeMode::On;
        settings.upstreams[0].provider = &GEMINI_PROVIDER;
    })
    .await;
    let below = "/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent";
    let request = Request::post(endmark.address, &format!("/u/scripted{below}"));
    let reply = request.json(&GEMINI.request(false)).send().await.read().await;
    assert!(reply.text().contains("quiet, and the gulls"), "{}", reply.text());
    let requests = endmark.upstream.requests();
    assert!(requests.iter().all(|request| request.path == format!("/v1{below}")), "{requests:?}");
    assert_eq!(requests.len(), 2);
}

#[tokio::test]
async fn a_fallback_gets_the_version_headers_of_messages() {
    for request in fallback_requests(MESSAGES, "/v1/messages", |_| {}).await {
        assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!(request.header("anthropic-beta"), Some("of-the-client"));
        assert_eq!(request.header("x-api-key"), Some("key-of-the-second"));
        assert_eq!(request.header("authorization"), None);
    }
}

#[tokio::test]
async fn a_fallback_without_a_model_gets_the_requested_model() {
    let deployment = "/openai/deployments/gpt-x/chat/completions?api-version=1";
    for request in
        fallback_requests(Wire::Chat, deployment, |settings| settings.upstreams[1].model = None).await
    {
        assert_eq!(request.json()["model"], "gpt-x");
    }
    let vertex = "/v1beta1/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    for request in fallback_requests(GEMINI, vertex, |settings| settings.upstreams[1].model = None).await {
        assert_eq!(request.path, "/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    }
}

/// The fallback's base URL contains another project.
#[tokio::test]
async fn a_vertex_fallback_uses_its_own_project() {
    let path = "/v1/projects/theirs/locations/eu/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    let own = "/v1/projects/ours/locations/us/publishers/google";
    let requests = fallback_requests(GEMINI, path, |settings| {
        let base_url = settings.upstreams[1].base_url.to_string().replace("/v1", own);
        settings.upstreams[1].base_url = base_url.parse().unwrap();
    })
    .await;
    for request in requests {
        assert_eq!(request.path, format!("{own}/models/its-model:streamGenerateContent?alt=sse"));
    }
}
