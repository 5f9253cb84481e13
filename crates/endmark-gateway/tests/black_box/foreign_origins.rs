//! Malicious pages, clients and paths that try to use the gateway's keys.

use endmark_gateway::Secret;
use testkit::{Answer, Request, Script};

use crate::support::{Endmark, raw};

fn answers() -> Script {
    Script::new().default_answer(Answer::new(200, "application/json", b"{}".to_vec()))
}

#[tokio::test]
async fn a_page_of_another_site_is_refused_even_without_an_origin() {
    let endmark = Endmark::start(answers()).await;
    let get = async |path: &str, headers: &[(&str, &str)]| {
        let request = headers
            .iter()
            .fold(Request::get(endmark.address, path), |request, (name, value)| request.header(name, value));
        request.send().await.read().await
    };
    let own = format!("http://{}", endmark.address);
    for headers in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")],
        &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
        &[("origin", own.as_str()), ("origin", "https://evil.example")],
    ] {
        let reply = get("/v1/models", headers).await;
        assert_eq!(reply.status, 403, "{headers:?}: {}", reply.text());
        assert!(reply.text().contains("endmark_origin_not_allowed"), "{}", reply.text());
    }
    assert_eq!(endmark.calls(), 0);
    for headers in
        [&[("sec-fetch-site", "none")][..], &[("sec-fetch-site", "same-origin")], &[("origin", &own)]]
    {
        assert_eq!(get("/v1/models", headers).await.status, 200, "{headers:?}");
    }
    // Any site may link to the gateway's own pages, but cannot request anything else.
    let linked = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(get("/endmark/healthz", &linked).await.status, 200);
    assert_eq!(get("/endmark/healthz", &linked[..1]).await.status, 403);
}

#[tokio::test]
async fn no_credential_spelling_reaches_an_upstream_with_its_own_key() {
    let endmark = Endmark::start_with(answers(), |settings| {
        settings.upstreams[0].api_key = Some(Secret::new("own-key".to_owned()));
    })
    .await;
    for query in
        ["key=SECRET", "k%65y=SECRET&a=1", "a=1&%6B%65%79=SECRET", "%24key=SECRET", "access_token=SECRET"]
    {
        let path = format!("/u/scripted/v1/files?{query}");
        assert_eq!(Request::get(endmark.address, &path).send().await.read().await.status, 200, "{query}");
    }
    let seen = endmark.upstream.requests();
    assert_eq!(seen.len(), 5);
    for request in seen {
        assert!(!request.path.contains("SECRET"), "{}", request.path);
    }
}

#[tokio::test]
async fn no_path_leaves_the_base_url_of_its_upstream() {
    let endmark = Endmark::start_with(answers(), |settings| {
        let base_url = settings.upstreams[0].base_url.to_string().replace("/v1", "/team/v1");
        settings.upstreams[0].base_url = base_url.parse().unwrap();
        settings.upstreams[0].api_key = Some(Secret::new("own-key".to_owned()));
    })
    .await;
    for path in [
        "/u/scripted/x",
        "/u/scripted/other/v1/chat/completions",
        "/u/scripted/v1/../../x",
        "/u/scripted/v1/%2e%2e/%2E%2e/x",
        "/u/scripted/v1/..%2f..%2fx",
        "/u/scripted/v1/%252e%252e/%252e%252e/x",
        "/other",
    ] {
        let reply = Request::get(endmark.address, path).send().await.read().await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
    }
    assert_eq!(endmark.calls(), 0);
    for (path, at) in
        [("/u/scripted/v1/models", "/team/v1/models"), ("/u/scripted/team/health", "/team/health")]
    {
        assert_eq!(Request::get(endmark.address, path).send().await.read().await.status, 200, "{path}");
        assert_eq!(endmark.upstream.requests().pop().unwrap().path, at);
    }
}

#[tokio::test]
async fn one_empty_line_before_a_request_is_accepted() {
    let endmark = Endmark::start(answers()).await;
    let get = "GET /v1/models HTTP/1.1\r\nhost: localhost\r\n";
    for empty in ["\r\n", "\n"] {
        let bytes = format!("{empty}{get}\r\n{empty}{get}connection: close\r\n\r\n");
        let response = raw::answer(endmark.address, bytes.as_bytes()).await;
        assert_eq!(response.matches("HTTP/1.1 200").count(), 2, "{empty:?}: {response}");
    }
    let response = raw::answer(endmark.address, format!("\r\n\r\n{get}\r\n").as_bytes()).await;
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
}
