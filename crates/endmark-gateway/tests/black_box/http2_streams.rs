//! Several replies over one HTTP/2 connection. Each is judged by its own ending.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use endmark_gateway::{Authorities, ResumeMode, Upstream as Target};
use h2::Reason;
use h2::server::SendResponse;
use http::Response;
use testkit::{Request, Script};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::support::{Endmark, read_stream, stream_request};
use crate::upstream_connections::{TestCertificate, acceptor, new_certificate};

/// Endings of a stream. The header `x-ends` selects one.
const STREAM_ENDINGS: [&str; 6] = ["whole", "internal", "cancel", "no_error", "silent", "refused"];

struct Server {
    address: SocketAddr,
    /// Number of accepted connections.
    connections: Arc<AtomicUsize>,
    /// Number of received requests.
    received_requests: Arc<AtomicUsize>,
    /// Ends all connections: `true` sends GOAWAY, `false` aborts them.
    shutdown_graceful: watch::Sender<Option<bool>>,
}

fn frames() -> Vec<String> {
    testkit::chat_stream(&["one", " two", " three"], "stop")
}

/// Starts a real HTTP/2 server.
async fn start_server(certified: &TestCertificate) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = acceptor(certified, &["h2"]);
    let (connections, taken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (made, count) = (Arc::clone(&connections), Arc::clone(&taken));
    let (last_word, heard) = watch::channel(None);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            made.fetch_add(1, Ordering::SeqCst);
            let (acceptor, count, mut heard) = (acceptor.clone(), Arc::clone(&count), heard.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let mut connection = h2::server::handshake(stream).await.unwrap();
                loop {
                    tokio::select! {
                        next = connection.accept() => {
                            let Some(Ok((asked, respond))) = next else { return };
                            count.fetch_add(1, Ordering::SeqCst);
                            let ends = asked.headers().get("x-ends").map(|ends| ends.to_str().unwrap().to_owned());
                            tokio::spawn(answer(respond, ends.unwrap_or_default(), heard.clone()));
                        }
                        Ok(()) = heard.changed() => {
                            match *heard.borrow_and_update() {
                                Some(true) => connection.graceful_shutdown(),
                                Some(false) => connection.abrupt_shutdown(Reason::INTERNAL_ERROR),
                                None => {}
                            }
                        }
                    }
                }
            });
        }
    });
    Server { address, connections, received_requests: taken, shutdown_graceful: last_word }
}

async fn answer(mut respond: SendResponse<Bytes>, ends: String, mut heard: watch::Receiver<Option<bool>>) {
    if ends == "refused" {
        respond.send_reset(Reason::REFUSED_STREAM);
        return;
    }
    if ends == "claims" || ends == "no_content" || ends == "long" {
        let status = if ends == "no_content" { 204 } else { 200 };
        let builder = Response::builder().status(status).header("x-endmark-outcome", "whole");
        let builder = if ends == "long" { builder.header("content-length", "5") } else { builder };
        let mut send = respond.send_response(builder.body(()).unwrap(), false).unwrap();
        let _ = send.send_data("HTTP/1.1 200 OK\r\n\r\n".into(), false);
        let trailers = [("x-endmark-outcome", "whole")];
        let trailers = trailers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let _ = send.send_trailers(http::HeaderMap::from_iter(trailers));
        return;
    }
    let begins = Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
    let mut send = respond.send_response(begins, false).unwrap();
    let frames = frames();
    let (first, rest) = frames.split_at(2);
    let _ = send.send_data(first.concat().into(), false);
    // Wait until the other streams have begun.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    match ends.as_str() {
        "internal" => send.send_reset(Reason::INTERNAL_ERROR),
        "cancel" => send.send_reset(Reason::CANCEL),
        "no_error" => send.send_reset(Reason::NO_ERROR),
        "silent" => {
            let _ = heard.wait_for(|word| *word == Some(false)).await;
        }
        "waits" => {
            let _ = heard.wait_for(Option::is_some).await;
            let _ = send.send_data(rest.concat().into(), true);
        }
        "large" => {
            for _ in 0..200 {
                let event = format!(": {}\n\n", "x".repeat(10_000));
                let _ = send.send_data(event.into(), false);
            }
            let _ = send.send_data(rest.concat().into(), true);
        }
        _ => {
            let _ = send.send_data(rest.concat().into(), true);
        }
    }
}

async fn start_with_upstream(server: &Server, certified: &TestCertificate, mode: ResumeMode) -> Endmark {
    let authorities = Authorities::from_pem(certified.authority.as_bytes()).unwrap();
    Endmark::start_with(Script::new(), |settings| {
        let base_url = format!("https://{}/v1", server.address).parse().unwrap();
        settings.upstreams = vec![Target { authorities, ..Target::new("secure", base_url) }];
        settings.resume.mode = mode;
        settings.limits.idle = std::time::Duration::from_secs(2);
    })
    .await
}

fn request(endmark: &Endmark, path: &str, ends: &str) -> Request {
    let body = stream_request(50);
    Request::post(endmark.address, path)
        .header("authorization", "Bearer key")
        .header("x-ends", ends)
        .json(&body)
}

#[tokio::test]
async fn each_stream_is_judged_by_its_own_ending() {
    let certified = new_certificate();
    let server = start_server(&certified).await;
    let endmark = start_with_upstream(&server, &certified, ResumeMode::Warn).await;
    // Make sure that a connection exists before many requests arrive at once.
    request(&endmark, "/v1/chat/completions", "whole").send().await.read().await;
    let mut replies = Vec::new();
    for ends in STREAM_ENDINGS.into_iter().cycle().take(60) {
        for path in ["/v1/chat/completions", "/v1/other"] {
            let request = request(&endmark, path, ends);
            let reply = async move { Some(request.try_send().await.ok()?.read().await) };
            replies.push((ends, path, tokio::spawn(reply)));
        }
    }
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (ends, path, reply) in replies {
        *seen.entry((ends, path)).or_default() += 1;
        let Some(reply) = reply.await.unwrap() else {
            // On this path the head is not sent before the stream ends.
            assert!(path == "/v1/other" && !["whole", "refused"].contains(&ends), "{ends} {path}");
            continue;
        };
        let what = format!("{ends} {path}: {} {} {}", reply.status, reply.is_complete, reply.text());
        let whole = frames().concat();
        match (ends, path) {
            ("whole", _) => assert_eq!((reply.text(), reply.is_complete), (whole, true), "{what}"),
            // The upstream processes nothing of the request, and refuses every retry.
            ("refused", _) => assert_eq!(reply.status, 502, "{what}"),
            (_, "/v1/chat/completions") => {
                let heard = read_stream(&reply);
                assert_eq!((heard.finish, heard.is_done), (None, false), "{what}");
                assert!(reply.text().contains("endmark_reply_cut"), "{what}");
                assert!("one two three".starts_with(&heard.text), "{what}");
            }
            _ => assert!(!reply.is_complete, "{what}"),
        }
    }
    assert!(seen.values().all(|count| *count == 10), "{seen:?}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_stream_that_continues_after_goaway_is_whole() {
    let certified = new_certificate();
    let server = start_server(&certified).await;
    let endmark = start_with_upstream(&server, &certified, ResumeMode::Auto).await;
    request(&endmark, "/v1/chat/completions", "whole").send().await.read().await;
    let under_way: Vec<_> = (0..20)
        .map(|_| {
            let request = request(&endmark, "/v1/chat/completions", "waits");
            tokio::spawn(async move { request.send().await.read().await })
        })
        .collect();
    while server.received_requests.load(Ordering::SeqCst) < 21 {
        tokio::task::yield_now().await;
    }
    server.shutdown_graceful.send(Some(true)).unwrap();
    for reply in under_way {
        let reply = reply.await.unwrap();
        assert_eq!((reply.text(), reply.is_complete), (frames().concat(), true));
    }
    let next = request(&endmark, "/v1/chat/completions", "whole").send().await.read().await;
    assert_eq!((next.text(), next.is_complete), (frames().concat(), true));
    assert_eq!(server.received_requests.load(Ordering::SeqCst), 22, "nothing was sent twice");
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn all_streams_of_a_lost_connection_report_the_cut() {
    let certified = new_certificate();
    let server = start_server(&certified).await;
    let endmark = start_with_upstream(&server, &certified, ResumeMode::Warn).await;
    request(&endmark, "/v1/chat/completions", "whole").send().await.read().await;
    let mut under_way = Vec::new();
    for path in ["/v1/chat/completions", "/v1/other"] {
        for _ in 0..20 {
            let mut open = request(&endmark, path, "silent").send().await;
            open.next_bytes().await.unwrap();
            under_way.push((path, open));
        }
    }
    server.shutdown_graceful.send(Some(false)).unwrap();
    for (path, open) in under_way {
        let reply = open.read().await;
        let what = format!("{path}: {}", reply.text());
        if path == "/v1/other" {
            assert!(!reply.is_complete, "{what}");
        } else {
            assert!(reply.text().contains("endmark_reply_cut") && !read_stream(&reply).is_done, "{what}");
        }
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

/// The flow-control window of one stream is full, but those of the others are not.
#[tokio::test]
async fn a_client_that_does_not_read_blocks_no_other_stream() {
    let certified = new_certificate();
    let server = start_server(&certified).await;
    let endmark = start_with_upstream(&server, &certified, ResumeMode::Auto).await;
    let mut idle = Vec::new();
    for path in ["/v1/chat/completions", "/v1/other", "/v1/chat/completions", "/v1/other"] {
        idle.push(request(&endmark, path, "large").send().await);
    }
    for path in ["/v1/chat/completions", "/v1/other"] {
        for _ in 0..5 {
            let reply = request(&endmark, path, "large").send().await.read().await;
            assert!(
                reply.is_complete && read_stream(&reply).is_done && reply.body.len() > 2_000_000,
                "{path}"
            );
        }
    }
    // The idle clients now read their replies in full.
    for open in idle {
        let reply = open.read().await;
        assert!(reply.is_complete && read_stream(&reply).is_done && reply.body.len() > 2_000_000);
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn endmark_headers_and_framing_of_a_server_are_not_relayed() {
    let certified = new_certificate();
    let server = start_server(&certified).await;
    let endmark = start_with_upstream(&server, &certified, ResumeMode::Auto).await;
    let get = async |ends: &str| {
        let request = format!(
            "GET /v1/other HTTP/1.1\r\nhost: localhost\r\nte: trailers\r\nconnection: te, close\r\nx-ends: {ends}\r\n\r\n"
        );
        crate::support::raw::answer(endmark.address, request).await
    };
    let response = get("claims").await;
    assert!(
        response.contains("transfer-encoding: chunked\r\n") && response.ends_with("\r\n0\r\n\r\n"),
        "{response}"
    );
    assert!(!response.contains("endmark"), "{response}");
    let response = get("no_content").await;
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 204 ") && body.is_empty(), "{response}");
    // The body is longer than its declared length, so the response breaks off.
    let response = get("long").await;
    assert!(response.starts_with("HTTP/1.1 502 ") || !response.contains("\r\n\r\nHTTP"), "{response}");
}
