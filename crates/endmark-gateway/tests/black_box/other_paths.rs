//! Paths other than chat completions: the gateway's own paths, and those of the upstreams.

use endmark_gateway::{Secret, Upstream as Target};
use endmark_wire::anthropic_messages;
use endmark_wire::gemini::GEMINI;
use testkit::{Answer, Request, Script, ScriptedModel, Upstream};

use crate::support::{Endmark, request};

#[tokio::test]
async fn the_gateway_reports_its_health_and_readiness() {
    let endmark = Endmark::start(Script::new()).await;
    for path in ["/endmark/healthz", "/endmark/readyz"] {
        let reply = Request::get(endmark.address, path).send().await.read().await;
        assert_eq!(reply.status, 200, "{path}");
    }
    assert_eq!(endmark.calls(), 0);
    let reply = Request::get(endmark.address, "/endmark/nothing").send().await.read().await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn every_other_path_passes_untouched() {
    let body = b"\x00\x01 any bytes \xff".to_vec();
    let answer = Answer::new(201, "application/x-any", body.clone()).header("x-own", "1");
    let endmark = Endmark::start(Script::new().default_answer(answer)).await;
    let reply = Request::new("PUT", endmark.address, "/v1/files/7?part=%2F2")
        .header("x-client", "yes")
        .body(body.clone())
        .send()
        .await
        .read()
        .await;
    assert_eq!((reply.status, &reply.body), (201, &body));
    assert_eq!(reply.header("x-own"), Some("1"));
    let received = endmark.upstream.requests().remove(0);
    assert_eq!((received.method.as_str(), received.path.as_str()), ("PUT", "/v1/files/7?part=%2F2"));
    assert_eq!(received.header("x-client"), Some("yes"));
    assert_eq!(received.body, body);
}

#[tokio::test]
async fn a_named_upstream_is_reached_only_by_its_name() {
    let endmark = Endmark::start(ScriptedModel::new("Hello")).await;
    let reply = Request::post(endmark.address, "/u/scripted/v1/chat/completions")
        .json(&request(50))
        .send()
        .await
        .read()
        .await;
    assert_eq!(crate::support::text(&reply), "Hello");
    let reply = Request::get(endmark.address, "/u/elsewhere/v1/models").send().await.read().await;
    assert_eq!(reply.status, 404);
    assert!(reply.text().contains("scripted"), "{}", reply.text());
    let reply =
        Request::get(endmark.address, "/v1/models").header("host", "example.org").send().await.read().await;
    assert_eq!(reply.status, 403);
}

const OPENAI: (&str, &str) = ("authorization", "Bearer sk-proj-1");
const ANTHROPIC: (&str, &str) = ("x-api-key", "sk-ant-1");
const GOOGLE: (&str, &str) = ("x-goog-api-key", "AIza1");

#[tokio::test]
async fn every_path_and_key_goes_to_its_provider() {
    let answer = || Script::new().default_answer(Answer::new(200, "application/json", b"{}".to_vec()));
    let (claude, google) = (Upstream::start(answer()).await, Upstream::start(answer()).await);
    let endmark = Endmark::start_with(answer(), |settings| {
        let at = |name, upstream: &Upstream, provider| Target {
            provider,
            ..Target::new(name, upstream.base_url().parse().unwrap())
        };
        settings.upstreams.push(at("claude", &claude, &anthropic_messages::ANTHROPIC));
        settings.upstreams.push(at("google", &google, &GEMINI));
    })
    .await;
    let mut expected = [0; 3];
    for (whose, method, path, (name, value)) in [
        (0, "GET", "/v1/models/ft:gpt-4o-mini:org::abc", OPENAI),
        (0, "DELETE", "/v1/models/ft:gpt-4o-mini:org::predict", OPENAI),
        (0, "GET", "/v1/models", OPENAI),
        (0, "GET", "/v1/models", ("authorization", "Bearer any")),
        (1, "GET", "/v1/models", ANTHROPIC),
        (1, "GET", "/v1/models/claude-x", ("x-api-key", "any")),
        (1, "POST", "/v1/files", ("anthropic-version", "2023-06-01")),
        (1, "GET", "/v1/skills", ANTHROPIC),
        (1, "POST", "/v1/complete", ANTHROPIC),
        (1, "POST", "/v1/messages/batches", ("authorization", "Bearer any")),
        (2, "GET", "/v1/models", GOOGLE),
        (2, "GET", "/v1/models?key=any", ("accept", "*/*")),
        (2, "POST", "/v1beta/models/x:countTokens", ("authorization", "Bearer any")),
        (2, "POST", "/upload/v1beta/files", GOOGLE),
        (2, "GET", "/download/v1beta/files/x:download", GOOGLE),
        (2, "POST", "/v1alpha/models/x:generateContent", GOOGLE),
    ] {
        let request = Request::new(method, endmark.address, path).header(name, value);
        assert_eq!(request.send().await.read().await.status, 200, "{method} {path}");
        expected[whose] += 1;
        let got = [&endmark.upstream, &claude, &google].map(|upstream| upstream.requests().len());
        assert_eq!(got, expected, "{method} {path} {name}");
    }
}

#[tokio::test]
async fn a_key_of_a_provider_without_an_upstream_is_not_sent() {
    let endmark = Endmark::start(Script::new()).await;
    for (path, (name, value), shape) in [
        ("/v1/messages", ANTHROPIC, "type"),
        ("/v1/messages", ("authorization", "Bearer sk-ant-oat-1"), "type"),
        ("/v1/models", ANTHROPIC, "type"),
        ("/v1beta/models/m:generateContent", GOOGLE, "error"),
        ("/v1beta/files?key=AIza1", ("accept", "*/*"), "error"),
    ] {
        let request = Request::post(endmark.address, path).header(name, value).json(&request(50));
        let reply = request.send().await.read().await;
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
        assert!(reply.text().contains("endmark_no_upstream"), "{}", reply.text());
        assert!(reply.text().contains("format = "), "it says what to do: {}", reply.text());
        assert!(reply.json().get(shape).is_some(), "in its provider's shape: {}", reply.text());
    }
    assert_eq!(endmark.calls(), 0);
    // A client that names an upstream reaches it. An upstream with its own key never gets the client's key.
    let named = Request::post(endmark.address, "/u/scripted/v1/messages").header(ANTHROPIC.0, ANTHROPIC.1);
    named.json(&request(50)).send().await.read().await;
    assert_ne!(endmark.calls(), 0);
}

#[tokio::test]
async fn an_upstream_key_uses_the_header_of_its_provider_on_every_path() {
    for (provider, paths, name) in [
        (
            &GEMINI,
            ["/v1/models?key=AIza1", "/v1beta/models?key=AIza1", "/u/scripted/v1beta/files"],
            "x-goog-api-key",
        ),
        (
            &anthropic_messages::ANTHROPIC,
            ["/v1/messages/batches", "/u/scripted/v1/models", "/v1/messages/batches/7"],
            "x-api-key",
        ),
    ] {
        let answer = Answer::new(200, "application/json", b"{}".to_vec());
        let endmark = Endmark::start_with(Script::new().default_answer(answer), |settings| {
            settings.upstreams[0].provider = provider;
            settings.upstreams[0].api_key = Some(Secret::new("own-key".to_owned()));
        })
        .await;
        for path in paths {
            let reply = Request::get(endmark.address, path).send().await.read().await;
            assert_eq!(reply.status, 200, "{path}");
        }
        for request in endmark.upstream.requests() {
            assert_eq!(request.header(name), Some("own-key"), "{}", request.path);
            assert_eq!(request.header("authorization"), None, "{}", request.path);
            assert!(!request.path.contains("AIza1"), "{}", request.path);
        }
    }
}

#[tokio::test]
async fn gateway_headers_are_removed_and_the_upstream_key_replaces_the_clients() {
    let endmark = Endmark::start_with(ScriptedModel::new("Hello"), |settings| {
        let own: &mut Target = &mut settings.upstreams[0];
        own.api_key = Some(Secret::new("sk-own".to_owned()));
    })
    .await;
    endmark
        .chat(&request(50))
        .header("x-endmark-resume", "on")
        .header("x-endmark-task", "T")
        .send()
        .await
        .read()
        .await;
    let received = endmark.upstream.requests().remove(0);
    assert_eq!(received.header("authorization"), Some("Bearer sk-own"));
    assert!(received.headers.iter().all(|(name, _)| !name.to_ascii_lowercase().starts_with("x-endmark")));
}

#[tokio::test]
async fn in_mode_off_nothing_is_inspected() {
    let endmark = Endmark::start(ScriptedModel::new("one two three four")).await;
    let reply = endmark.chat(&request(2)).header("x-endmark-resume", "off").send().await.read().await;
    assert_eq!(crate::support::finish(&reply), "length");
    assert_eq!(reply.header("x-endmark-outcome"), None);
    assert_eq!(endmark.calls(), 1);
}

#[tokio::test]
async fn a_stop_lets_a_reply_in_progress_finish() {
    let answer = Answer::sse(testkit::chat_stream(&["one", " two"], "stop"))
        .pause(std::time::Duration::from_millis(100));
    let endmark = Endmark::start(Script::new().default_answer(answer)).await;
    let open = endmark.chat(&crate::support::stream_request(50)).send().await;
    let reading = tokio::spawn(open.read());
    endmark.stop().await;
    assert!(crate::support::read_stream(&reading.await.unwrap()).is_done);
}
