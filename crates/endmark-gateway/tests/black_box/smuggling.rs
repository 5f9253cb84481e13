//! Requests that two servers would split differently. They are refused with a reason before anything is
//! forwarded.

use testkit::{Answer, Script};

use crate::support::Endmark;
use crate::support::raw::{Raw, answer, parse_refusal};

async fn start_gateway() -> Endmark {
    Endmark::start(Script::new().default_answer(Answer::new(200, "text/plain", "reached"))).await
}

/// Returns an HTTP/1.1 request with these lines after the host, and this body.
fn request(lines: &str, body: &str) -> String {
    format!("POST /v1/files HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n{body}")
}

#[tokio::test]
async fn a_smuggled_request_is_refused_and_reaches_no_upstream() {
    let endmark = start_gateway().await;
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
        let response = answer(endmark.address, format!("{bytes}{hidden}")).await;
        assert_eq!(
            parse_refusal(&response),
            (400, "endmark_bad_request".to_owned()),
            "{bytes:?}: {response}"
        );
        assert_eq!(response.matches("content-length: ").count(), 1, "{bytes:?}: {response}");
    }
    assert_eq!(endmark.calls(), 0);
}

#[tokio::test]
async fn a_request_with_a_broken_chunk_is_refused_and_the_connection_closed() {
    let endmark = start_gateway().await;
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
        let response = answer(endmark.address, bytes).await;
        assert_eq!(
            parse_refusal(&response),
            (400, "endmark_bad_request".to_owned()),
            "{chunk:?}: {response}"
        );
    }
}

#[tokio::test]
async fn a_client_of_another_protocol_gets_advice() {
    let endmark = start_gateway().await;
    let response = answer(endmark.address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
    assert!(response.contains("speaks plain HTTP and the client speaks TLS"), "{response}");
    let response = answer(endmark.address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert_eq!(parse_refusal(&response).0, 505);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_until_a_bad_one() {
    let endmark = start_gateway().await;
    let good = "GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let chunked = request("transfer-encoding: chunked\r\n", "3;a=b\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n");
    let response = answer(endmark.address, format!("{good}{chunked}{good}GET / HTTP/1.1\r\n\r\n")).await;
    assert_eq!(response.matches("HTTP/1.1 200 ").count(), 3, "{response}");
    assert_eq!(response.matches("HTTP/1.1 400 ").count(), 1, "{response}");
    assert_eq!(endmark.calls(), 3);
    assert_eq!(endmark.upstream.requests()[1].body, b"abc");
}

#[tokio::test]
async fn a_foreign_host_or_origin_is_refused_with_the_setting() {
    let endmark = start_gateway().await;
    let with = |host: &str, more: &str| {
        format!("GET /v1/models HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}\r\n")
    };
    for path in ["/v1/models", "/endmark/readyz"] {
        let rebound = with("rebound.example", "").replace("/v1/models", path);
        let response = answer(endmark.address, rebound).await;
        assert_eq!(parse_refusal(&response), (403, "endmark_host_not_allowed".to_owned()));
        assert!(response.contains("allowed_hosts"), "{response}");
        let page = with("localhost:4141", "origin: https://page.example\r\n").replace("/v1/models", path);
        let response = answer(endmark.address, page).await;
        assert_eq!(parse_refusal(&response), (403, "endmark_origin_not_allowed".to_owned()));
        assert!(response.contains("allowed_origins"), "{response}");
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
    let response = answer(open.address, with("gw.example:443", "origin: https://page.example\r\n")).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
}

#[tokio::test]
async fn a_head_that_arrives_byte_by_byte_is_read() {
    let endmark = start_gateway().await;
    let mut raw = Raw::connect(endmark.address).await;
    for byte in "GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n".bytes() {
        raw.send([byte]).await;
        tokio::task::yield_now().await;
    }
    assert!(raw.read_until("reached").await.starts_with("HTTP/1.1 200 "));
}
