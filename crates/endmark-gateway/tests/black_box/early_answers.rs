//! Upstreams that answer before they have received the whole request, and stop reading it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use endmark_gateway::Upstream as Target;
use serde_json::json;
use testkit::{Request, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::Endmark;

/// More than the sockets can buffer.
const LARGE_BODY_BYTES: usize = 8 * 1024 * 1024;

/// Starts a server that reads the beginning of each request, answers and closes. Because of the unread data,
/// the system resets the connection.
async fn start_early_answering_server(answer: &'static [u8]) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let request_count = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&request_count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let mut beginning = vec![0; 64 * 1024];
            stream.read_exact(&mut beginning).await.unwrap();
            stream.write_all(answer).await.unwrap();
        }
    });
    (address, request_count)
}

async fn start_with_upstream(address: SocketAddr) -> Endmark {
    Endmark::start_with(Script::new(), |settings| {
        settings.upstreams = vec![Target::new("hasty", format!("http://{address}/v1").parse().unwrap())];
    })
    .await
}

#[tokio::test]
async fn an_early_refusal_passes_and_the_request_is_sent_once() {
    let refusal =
        b"HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: 43\r\n\r\n\
        {\"error\":{\"message\":\"no\",\"type\":\"refused\"}}";
    let (address, request_count) = start_early_answering_server(refusal).await;
    let endmark = start_with_upstream(address).await;
    let content = "z".repeat(LARGE_BODY_BYTES);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
    for round in 1..=2 {
        for path in ["/v1/chat/completions", "/v1/files"] {
            let reply = Request::post(endmark.address, path).json(&body).send().await.read().await;
            assert_eq!((reply.status, reply.is_complete), (401, true), "{round} {path}: {}", reply.text());
            assert_eq!(reply.json()["error"]["message"], "no");
        }
        assert_eq!(request_count.load(Ordering::SeqCst), 2 * round);
    }
}

#[tokio::test]
async fn a_break_without_an_answer_is_reported() {
    let (address, _) = start_early_answering_server(b"").await;
    let endmark = start_with_upstream(address).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "z".repeat(LARGE_BODY_BYTES)}]});
    let reply = Request::post(endmark.address, "/v1/chat/completions").json(&body).send().await.read().await;
    assert_eq!(reply.status, 502, "{}", reply.text());
    assert_eq!(reply.json()["error"]["type"], "endmark_upstream_unreachable");
}
