//! Upstreams whose answers are not HTTP, or contain no readable reply.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use endmark_gateway::{ResumeMode, Upstream as Target};
use testkit::{Reply, Request, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::raw::Raw;
use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, request, stream_request};

/// A server that reads each request completely and answers with these bytes.
struct RawServer {
    address: SocketAddr,
    request_count: Arc<AtomicUsize>,
}

impl RawServer {
    async fn start(answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let prepared_request = Arc::new(AtomicUsize::new(0));
        let (count, answer) = (Arc::clone(&prepared_request), answer.into());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (count, answer) = (Arc::clone(&count), answer.clone());
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    while !is_complete_request(&bytes) {
                        match stream.read_buf(&mut bytes).await {
                            Ok(0) | Err(_) => return,
                            Ok(_) => {}
                        }
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    let _ = stream.write_all(&answer).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, request_count: prepared_request }
    }

    fn request_count(&self) -> usize {
        self.request_count.load(Ordering::SeqCst)
    }

    /// Starts a gateway with this server as its upstream.
    async fn start_gateway(&self, mode: ResumeMode) -> Endmark {
        Endmark::start_with(Script::new(), |settings| {
            settings.resume.mode = mode;
            let base_url = format!("http://{}/v1", self.address).parse().unwrap();
            settings.retry.max_retries = 0;
            settings.upstreams = vec![Target::new("plain", base_url)];
        })
        .await
    }
}

/// Whether a request is complete according to its `Content-Length`.
fn is_complete_request(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    length.and_then(|length| length.parse().ok()).is_none_or(|length: usize| body.len() >= length)
}

fn assert_unreadable(reply: &Reply, why: &str) {
    let body_text = reply.text();
    assert_eq!(reply.status, 502, "{body_text}");
    assert!(body_text.contains("endmark_upstream_unreadable"), "{body_text}");
    assert!(body_text.contains("cannot be read") && body_text.contains(why), "{body_text}");
}

const SWITCHING_PROTOCOLS: &str =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";

#[tokio::test]
async fn a_protocol_switch_by_an_upstream_is_an_error() {
    for (wire, mode) in
        Wire::ALL.into_iter().flat_map(|wire| [(wire, ResumeMode::Warn), (wire, ResumeMode::Off)])
    {
        let plain = RawServer::start(SWITCHING_PROTOCOLS).await;
        let endmark = plain.start_gateway(mode).await;
        let request = Request::post(endmark.address, wire.path(true)).json(&wire.request(true));
        let reply = request.send().await.read().await;
        assert_unreadable(&reply, "101 Switching Protocols");
        assert_eq!(plain.request_count(), 1, "{wire:?} {mode:?}");
    }
    let plain = RawServer::start(SWITCHING_PROTOCOLS).await;
    let endmark = plain.start_gateway(ResumeMode::Warn).await;
    let reply = Request::get(endmark.address, "/v1/models").send().await.read().await;
    assert_unreadable(&reply, "101 Switching Protocols");
}

/// The client sent no condition, but must handle the status itself. A 304 response has no body.
#[tokio::test]
async fn a_304_passes_without_a_body() {
    let plain = RawServer::start("HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n").await;
    let endmark = plain.start_gateway(ResumeMode::Warn).await;
    let reply = endmark.ask(&request(50)).await;
    assert_eq!((reply.status, reply.body.len(), plain.request_count()), (304, 0, 1));
}

#[tokio::test]
async fn a_broken_json_error_is_reported_as_lost_with_its_status() {
    for status in ["401 Unauthorized", "422 Unprocessable Entity", "500 Internal Server Error"] {
        let cut = "{\"error\":{\"message\":\"the context is";
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}", cut.len());
        let plain = RawServer::start(format!("{head}\r\nconnection: close\r\n\r\n{cut}")).await;
        let reply = plain.start_gateway(ResumeMode::Auto).await.ask(&request(50)).await;
        let body_text = reply.text();
        assert_eq!(reply.status.to_string(), status[..3], "{body_text}");
        assert!(body_text.contains("its JSON ends too early, after 35 bytes"), "{body_text}");
        assert!(!body_text.contains("base_url"), "{body_text}");
    }
}

/// The upstream's HTTP version must not affect the client. A body without framing is sent as chunks.
#[tokio::test]
async fn an_http_1_0_upstream_does_not_downgrade_the_response() {
    let event = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\
        \"delta\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let plain =
        RawServer::start(format!("HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{event}")).await;
    for (mode, path) in [
        (ResumeMode::Warn, "/v1/chat/completions"),
        (ResumeMode::On, "/v1/chat/completions"),
        (ResumeMode::Off, "/v1/chat/completions"),
        (ResumeMode::Warn, "/v1/other"),
    ] {
        let endmark = plain.start_gateway(mode).await;
        let body = stream_request(50).to_string();
        let prepared_request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut client = Raw::connect(endmark.address).await;
        // The second request shows that the connection is kept.
        for _ in 0..2 {
            let answer = client.send(&prepared_request).await.read_until("\r\n0\r\n\r\n").await;
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{mode:?} {path}: {head}");
            assert!(head.to_lowercase().contains("transfer-encoding: chunked"), "{head}");
            assert!(body.contains("[DONE]"), "{body}");
        }
    }
}

/// The upstream has begun to answer, so the request may be billed, and a retry would get the same head.
#[tokio::test]
async fn an_answer_with_an_unreadable_head_is_not_requested_again() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let fields = (0..300).map(|number| format!("x-{number}: a")).collect::<Vec<_>>().join("\r\n") + "\r\n";
    for (answer, why) in [
        (format!("{ok}{fields}content-length: 2\r\n\r\n{{}}"), "256 fields"),
        (format!("{ok}x-long: {}\r\ncontent-length: 2\r\n\r\n{{}}", "a".repeat(300_000)), "32768 bytes"),
        (format!("{ok}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"), "not HTTP"),
        (format!("{ok}no colon\r\ncontent-length: 2\r\n\r\n{{}}"), "not HTTP"),
        ("SSH-2.0-OpenSSH_9.6\r\n".to_owned(), "not HTTP"),
    ] {
        let plain = RawServer::start(answer).await;
        let reply = plain.start_gateway(ResumeMode::Warn).await.ask(&request(50)).await;
        assert_unreadable(&reply, why);
        assert_eq!(plain.request_count(), 1, "{why}");
    }
}

#[tokio::test]
async fn an_answer_with_many_header_fields_is_read() {
    let fields = (0..200).map(|number| format!("x-{number}: a")).collect::<Vec<_>>().join("\r\n") + "\r\n";
    let body = testkit::chat_reply("Yes.", "stop", (1, 1)).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{fields}");
    let plain = RawServer::start(format!("{head}content-length: {}\r\n\r\n{body}", body.len())).await;
    let reply = plain.start_gateway(ResumeMode::Warn).await.ask(&request(50)).await;
    assert_eq!((reply.status, reply.body), (200, body.into_bytes()));
    assert_eq!(reply.headers.iter().filter(|(name, _)| name.starts_with("x-1")).count(), 111);
}

/// Truncated JSON is reported as a lost reply and not as a web page, even if the HTTP framing is complete.
#[tokio::test]
async fn a_reply_with_truncated_json_is_reported_as_lost() {
    for wire in Wire::ALL {
        let body = wire.answer(&[ReplyPart::Text("The harbour was quiet.")], End::Turn, false).body();
        let half = String::from_utf8(body[..body.len() / 2].to_vec()).unwrap();
        let json = "200 OK\r\ncontent-type: application/json";
        for answer in [
            format!("HTTP/1.0 {json}\r\n\r\n{half}"),
            format!(
                "HTTP/1.1 {json}\r\ncontent-length: {}\r\n\r\n{}",
                half.len(),
                String::from_utf8_lossy(&body)
            ),
        ] {
            let plain = RawServer::start(answer).await;
            let endmark = plain.start_gateway(ResumeMode::Warn).await;
            let request = Request::post(endmark.address, wire.path(false)).json(&wire.request(false));
            let reply = request.send().await.read().await;
            let body_text = reply.text();
            assert_eq!((reply.status, plain.request_count()), (502, 1), "{wire:?} {body_text}");
            assert!(
                body_text.contains("JSON ends too early") && body_text.contains("send the request again"),
                "{body_text}"
            );
        }
    }
    let plain = RawServer::start("HTTP/1.0 200 OK\r\ncontent-type: text/html\r\n\r\n<html>{").await;
    let reply = plain.start_gateway(ResumeMode::Warn).await.ask(&request(50)).await;
    assert!(reply.text().contains("endmark_upstream_not_an_api"), "{}", reply.text());
}

/// Libraries skip a byte order mark, so Endmark's additions must come after it.
#[tokio::test]
async fn a_reply_with_a_byte_order_mark_is_read() {
    for wire in Wire::ALL {
        for end in [End::Turn, End::Limit] {
            let mut body = "\u{feff}".as_bytes().to_vec();
            body.extend(wire.answer(&[ReplyPart::Text("The harbour was quiet.")], end, false).body());
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
            let mut answer = format!("{head}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
            answer.extend_from_slice(&body);
            let plain = RawServer::start(answer).await;
            let endmark = plain.start_gateway(ResumeMode::Warn).await;
            let prepared_request =
                Request::post(endmark.address, wire.path(false)).json(&wire.request(false));
            let reply = prepared_request.send().await.read().await;
            let outcome = matches!(end, End::Limit).then_some("cut");
            assert_eq!(
                (reply.status, plain.request_count(), reply.header("x-endmark-outcome")),
                (200, 1, outcome),
                "{wire:?} {}",
                reply.text()
            );
            if outcome.is_none() {
                assert_eq!(reply.body, body, "{wire:?}");
            }
        }
    }
    let refusal = "\u{feff}{\"error\":{\"message\":\"no such model\"}}";
    let head = "HTTP/1.1 404 Not Found\r\ncontent-type: application/json";
    let plain =
        RawServer::start(format!("{head}\r\ncontent-length: {}\r\n\r\n{refusal}", refusal.len())).await;
    let reply = plain.start_gateway(ResumeMode::Warn).await.ask(&request(50)).await;
    assert_eq!((reply.status, reply.body.as_slice()), (404, refusal.as_bytes()), "{}", reply.text());
}

#[tokio::test]
async fn a_stream_without_the_stream_content_type_is_read() {
    for wire in Wire::ALL {
        let body = wire.answer(&[ReplyPart::Text("The harbour was quiet.")], End::Turn, true).body();
        let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        answer.extend_from_slice(&body);
        let plain = RawServer::start(answer).await;
        let endmark = plain.start_gateway(ResumeMode::Warn).await;
        let prepared_request = Request::post(endmark.address, wire.path(true)).json(&wire.request(true));
        let reply = prepared_request.send().await.read().await;
        assert_eq!((reply.status, plain.request_count()), (200, 1), "{wire:?} {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("text/event-stream"), "{wire:?}");
        assert_eq!(reply.body, body, "{wire:?}");
    }
    // A web page is not a stream, even if a stream was requested.
    let page = RawServer::start("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>").await;
    let reply = page.start_gateway(ResumeMode::Warn).await.ask(&stream_request(50)).await;
    assert!(reply.text().contains("endmark_upstream_not_an_api"), "{}", reply.text());
}
