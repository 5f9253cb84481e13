//! Requests that two servers would take apart differently: refused, with a reason, before anything is forwarded.

use testkit::{Answer, Script};

use crate::support::Endmark;
use crate::support::raw::{Raw, answer, parse_refusal};

async fn endmark() -> Endmark {
    Endmark::start(Script::new().default_answer(Answer::new(200, "text/plain", "reached"))).await
}

/// A request of HTTP/1.1 with these lines after its host, and this body.
fn request(lines: &str, body: &str) -> String {
    format!("POST /v1/files HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n{body}")
}

#[tokio::test]
async fn what_hides_a_second_request_is_refused_and_reaches_nobody() {
    let endmark = endmark().await;
    let hidden = "GET /hidden HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for bytes in [
        request("content-length: 4\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
        request("transfer-encoding: chunked\r\ncontent-length: 4\r\n", "0\r\n\r\n"),
        request("content-length: 4\r\ncontent-length: 5\r\n", "abcde"),
        request("content-length: 4, 5\r\n", "abcde"),
        request("content-length: +4\r\n", "abcd"),
        request("transfer-encoding: gzip, chunked\r\n", "0\r\n\r\n"),
        request("transfer-encoding: identity\r\n", ""),
        request("transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", "0\r\n\r\n"),
        request("transfer-encoding : chunked\r\n", "0\r\n\r\n"),
        request("transfer_encoding: chunked\r\n", "0\r\n\r\n"),
        request("x: 1\r\n transfer-encoding: chunked\r\n", "0\r\n\r\n"),
        request("x: 1\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
        request("x: 1\rtransfer-encoding: chunked\r\n", "0\r\n\r\n"),
        request("x: 1\0\r\n", ""),
        request("host: elsewhere\r\n", ""),
        "POST /v1/files HTTP/1.1\r\n\r\n".to_owned(),
        "GET http://elsewhere/v1 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        "POST /v1 HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "GET  /v1 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        "GET /v1 HTTP/1.1\nhost: localhost\n\n".to_owned(),
        "\r\n\r\nGET /v1 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
    ] {
        let said = answer(endmark.address, format!("{bytes}{hidden}")).await;
        assert_eq!(parse_refusal(&said), (400, "endmark_bad_request".to_owned()), "{bytes:?}: {said}");
        assert_eq!(said.matches("content-length: ").count(), 1, "{bytes:?}: {said}");
    }
    assert_eq!(endmark.calls(), 0);
}

#[tokio::test]
async fn a_broken_chunk_is_refused_in_the_providers_shape_and_nothing_follows_it() {
    let endmark = endmark().await;
    for chunk in [
        "x\r\n",
        "0x1\r\na\r\n",
        "1 \r\na\r\n",
        "1\r\nab\r\n",
        "1\na\n",
        "ffffffffffffffff1\r\n",
        &format!("1;{}\r\n", "a".repeat(5_000)),
    ] {
        let bytes = request("transfer-encoding: chunked\r\n", chunk);
        let said = answer(endmark.address, bytes).await;
        assert_eq!(parse_refusal(&said), (400, "endmark_bad_request".to_owned()), "{chunk:?}: {said}");
    }
}

#[tokio::test]
async fn another_protocol_is_told_what_is_spoken_here() {
    let endmark = endmark().await;
    let said = answer(endmark.address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
    assert!(said.contains("speaks plain HTTP and the client speaks TLS"), "{said}");
    let said = answer(endmark.address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert_eq!(parse_refusal(&said).0, 505);
}

#[tokio::test]
async fn requests_that_follow_each_other_are_answered_in_order_and_a_bad_one_ends_it() {
    let endmark = endmark().await;
    let good = "GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let chunked = request("transfer-encoding: chunked\r\n", "3;a=b\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n");
    let said = answer(endmark.address, format!("{good}{chunked}{good}GET / HTTP/1.1\r\n\r\n")).await;
    assert_eq!(said.matches("HTTP/1.1 200 ").count(), 3, "{said}");
    assert_eq!(said.matches("HTTP/1.1 400 ").count(), 1, "{said}");
    assert_eq!(endmark.calls(), 3);
    assert_eq!(endmark.upstream.requests()[1].body, b"abc");
}

#[tokio::test]
async fn a_host_or_a_page_of_elsewhere_is_refused_and_told_which_setting_lets_it_in() {
    let endmark = endmark().await;
    let with = |host: &str, more: &str| {
        format!("GET /v1/models HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}\r\n")
    };
    for path in ["/v1/models", "/endmark/readyz"] {
        let rebound = with("rebound.example", "").replace("/v1/models", path);
        let said = answer(endmark.address, rebound).await;
        assert_eq!(parse_refusal(&said), (403, "endmark_host_not_allowed".to_owned()));
        assert!(said.contains("allowed_hosts"), "{said}");
        let page = with("localhost:4141", "origin: https://page.example\r\n").replace("/v1/models", path);
        let said = answer(endmark.address, page).await;
        assert_eq!(parse_refusal(&said), (403, "endmark_origin_not_allowed".to_owned()));
        assert!(said.contains("allowed_origins"), "{said}");
    }
    assert_eq!(endmark.calls(), 0);
    let open = Endmark::start_with(
        Script::new().default_answer(Answer::new(200, "text/plain", "reached")),
        |settings| {
            settings.listener.allowed_hosts = vec!["gw.example".to_owned()];
            settings.listener.allowed_origins = vec!["https://page.example".to_owned()];
        },
    )
    .await;
    let said = answer(open.address, with("gw.example:443", "origin: https://page.example\r\n")).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_a_head() {
    let endmark = endmark().await;
    let mut raw = Raw::connect(endmark.address).await;
    for byte in "GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n".bytes() {
        raw.send([byte]).await;
        tokio::task::yield_now().await;
    }
    assert!(raw.read_until("reached").await.starts_with("HTTP/1.1 200 "));
}
