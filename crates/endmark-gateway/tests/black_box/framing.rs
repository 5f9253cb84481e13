//! Where responses end: an upstream that declares a false or a second length never changes what a client
//! reads next.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::{Request, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::raw::Raw;
use crate::support::{Endmark, request, stream_request};

/// An upstream that answers each request with these bytes and keeps its connections open.
pub(crate) struct RawUpstream {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl RawUpstream {
    pub(crate) async fn start(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, connections) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let made = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                made.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve_connection(stream, answer.clone()));
            }
        });
        Self { address, connections }
    }
}

async fn serve_connection(mut stream: TcpStream, answer: String) {
    let mut came = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&came).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                came.clear();
                if stream.write_all(answer.as_bytes()).await.is_err() || answer.contains("connection: close")
                {
                    return;
                }
            }
        }
        match stream.read_buf(&mut came).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// Returns the status and body of each response in these bytes, as a strict client reads them.
fn parse_responses(mut bytes: &str, method: &str) -> Vec<(u16, String)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (head, mut rest) = bytes.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {bytes}"));
        let status = head.strip_prefix("HTTP/1.1 ").unwrap_or_else(|| panic!("no response: {bytes}"));
        let status = status[..3].parse().unwrap();
        let fields = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            lines
                .filter(|(field, _)| field.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
                .collect::<Vec<_>>()
        };
        let body = match (fields("transfer-encoding").as_slice(), fields("content-length").as_slice()) {
            _ if method == "HEAD" || matches!(status, 204 | 304) => String::new(),
            (["chunked"], []) => {
                let mut body = String::new();
                loop {
                    let (size, after) = rest.split_once("\r\n").unwrap();
                    let size = usize::from_str_radix(size, 16).unwrap();
                    body += &after[..size];
                    rest = after[size..].strip_prefix("\r\n").unwrap_or_else(|| panic!("no chunk: {after}"));
                    if size == 0 {
                        break body;
                    }
                }
            }
            ([], [length]) => {
                let (body, after) = rest.split_at(length.parse().unwrap());
                rest = after;
                body.to_owned()
            }
            other => panic!("the end is not clear {other:?}: {head}"),
        };
        found.push((status, body));
        bytes = rest;
    }
    found
}

/// Sends a request twice on one connection, and returns both responses.
async fn send_twice(upstream: &RawUpstream, method: &str, path: &str, body: &str) -> Vec<(u16, String)> {
    let base_url = format!("http://{}/v1", upstream.address);
    let endmark = Endmark::start_with(Script::new(), |settings| {
        settings.upstreams[0].base_url = base_url.parse().unwrap();
        settings.retry.max_retries = 0;
        settings.limits.idle = std::time::Duration::from_secs(2);
    })
    .await;
    let send = |last: &str| {
        let length =
            if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{length}{last}\r\n{body}")
    };
    let mut raw = Raw::connect(endmark.address).await;
    let response = raw.send(send("")).await.send(send("connection: close\r\n")).await.read_rest().await;
    parse_responses(&response, method)
}

fn reply() -> String {
    testkit::chat_reply("All of it.", "stop", (2, 3)).to_string()
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

/// Returns a request for each of the three code paths of the gateway, with the body and content type of a
/// good answer.
fn gateway_paths() -> [(&'static str, &'static str, String, String, &'static str); 3] {
    let stream = testkit::chat_stream(&["All of it."], "stop").concat();
    [
        ("GET", "/v1/files", String::new(), reply(), "application/json"),
        ("POST", "/v1/chat/completions", request(50).to_string(), reply(), "application/json"),
        ("POST", "/v1/chat/completions", stream_request(50).to_string(), stream, "text/event-stream"),
    ]
}

#[tokio::test]
async fn a_content_length_beside_chunked_coding_is_dropped() {
    for (method, path, body, good, kind) in gateway_paths() {
        for (fields, version, is_read) in [
            ("transfer-encoding: chunked\r\n", "1.1", true),
            ("content-length: 5\r\ntransfer-encoding: chunked\r\n", "1.1", true),
            ("transfer-encoding: Chunked\r\ncontent-length: 99999\r\n", "1.1", true),
            ("content-length: 5\r\ncontent-length: 6\r\ntransfer-encoding: chunked\r\n", "1.1", true),
            ("content-length: x\r\ntransfer-encoding: chunked\r\n", "1.1", true),
            ("transfer-encoding: gzip, chunked\r\n", "1.1", false),
            ("transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n", "1.1", false),
            ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", "1.1", false),
            ("transfer-encoding: chunked, identity\r\n", "1.1", false),
            ("transfer-encoding: x\r\ncontent-length: 5\r\n", "1.1", false),
            ("transfer-encoding : chunked\r\n", "1.1", false),
            ("transfer-encoding: chunked\r\nconnection: keep-alive\r\n", "1.0", false),
        ] {
            let answer =
                format!("HTTP/{version} 200 OK\r\ncontent-type: {kind}\r\n{fields}\r\n{}", chunked(&good));
            let upstream = RawUpstream::start(answer).await;
            let what = format!("{path} {kind} {fields:?}");
            let found = send_twice(&upstream, method, path, &body).await;
            assert_eq!(found.len(), 2, "{what}: {found:?}");
            for (status, body) in &found {
                if is_read {
                    assert_eq!((*status, body), (200, &good), "{what}");
                } else {
                    assert_eq!(*status, 502, "{what}: {body}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_connection_with_conflicting_lengths_is_not_reused() {
    const REQUESTS: usize = 6;
    for (fields, is_clear) in [("", true), ("content-length: 5\r\n", false)] {
        let answer =
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n{fields}\r\n{}", chunked("file"));
        let upstream = RawUpstream::start(answer).await;
        let base_url = format!("http://{}/v1", upstream.address).parse().unwrap();
        let endmark =
            Endmark::start_with(Script::new(), |settings| settings.upstreams[0].base_url = base_url).await;
        for _ in 0..REQUESTS {
            let reply = Request::get(endmark.address, "/v1/files").send().await.read().await;
            assert_eq!((reply.text().as_str(), reply.header("content-length")), ("file", None), "{fields}");
        }
        let connections = upstream.connections.load(Ordering::SeqCst);
        assert!(
            if is_clear { connections < REQUESTS } else { connections == REQUESTS },
            "{fields} {connections}"
        );
    }
}

#[tokio::test]
async fn equal_content_lengths_are_merged_and_different_ones_refused() {
    for (method, path, body, good, kind) in gateway_paths() {
        let length = good.len();
        for (fields, is_read) in [
            (format!("content-length: {length}\r\n"), true),
            (format!("content-length: {length}, {length}\r\n"), true),
            (format!("content-length: {length}\r\ncontent-length: {length}\r\n"), true),
            (format!("content-length: {length}\r\ncontent-length: 5\r\n"), false),
            (format!("content-length: 5, {length}\r\n"), false),
            (format!("content-length: +{length}\r\n"), false),
        ] {
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{fields}\r\n{good}");
            let upstream = RawUpstream::start(answer).await;
            let what = format!("{path} {kind} {fields:?}");
            let found = send_twice(&upstream, method, path, &body).await;
            assert_eq!(found.len(), 2, "{what}: {found:?}");
            assert!(found.iter().all(|(status, _)| *status == if is_read { 200 } else { 502 }), "{what}");
            assert!(!is_read || found.iter().all(|(_, body)| *body == good), "{what}: {found:?}");
            let connections = if is_read { 1 } else { 2 };
            assert_eq!(upstream.connections.load(Ordering::SeqCst), connections, "{what}");
        }
    }
}

#[tokio::test]
async fn a_body_ends_at_its_length_and_excess_bytes_are_discarded() {
    let rest = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhidden";
    let upstream =
        RawUpstream::start(format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfirst{rest}")).await;
    let found = send_twice(&upstream, "GET", "/v1/files", "").await;
    assert_eq!(found, vec![(200, "first".to_owned()); 2]);
    for (method, status) in [("HEAD", 200), ("GET", 204), ("GET", 304)] {
        for fields in ["content-length: 49\r\n", "transfer-encoding: chunked\r\n"] {
            let upstream = RawUpstream::start(format!("HTTP/1.1 {status} X\r\n{fields}\r\n{rest}")).await;
            let found = send_twice(&upstream, method, "/v1/files", "").await;
            assert_eq!(found, vec![(status, String::new()); 2], "{method} {status} {fields:?}");
            assert_eq!(upstream.connections.load(Ordering::SeqCst), 2, "{method} {status} {fields:?}");
        }
    }
}

#[tokio::test]
async fn an_oversized_content_length_breaks_the_connection() {
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 99\r\n\r\nfirst";
    let upstream = RawUpstream::start(answer.to_owned()).await;
    let base_url = format!("http://{}/v1", upstream.address).parse().unwrap();
    let endmark =
        Endmark::start_with(Script::new(), |settings| settings.upstreams[0].base_url = base_url).await;
    let send = |method: &str| format!("{method} /v1/files HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let response =
        Raw::connect(endmark.address).await.send(send("GET")).await.send(send("GET")).await.read_rest().await;
    assert!(response.contains("content-length: 99\r\n") && response.ends_with("\r\n\r\nfirst"), "{response}");
    assert_eq!(response.matches("HTTP/1.1").count(), 1, "{response}");
    let response = Raw::connect(endmark.address).await.send(send("HEAD")).await.read_until("\r\n\r\n").await;
    assert!(response.contains("content-length: 99\r\n"), "{response}");
}
