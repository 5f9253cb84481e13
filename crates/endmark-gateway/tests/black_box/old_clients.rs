//! HTTP/1.0 clients: only the end of the connection ends a reply, so a cut reply must not end like a whole one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::json;
use testkit::{Answer, Fault, Script};
use tokio::io::AsyncReadExt;

use crate::support::Endmark;
use crate::support::raw::Raw;
use crate::support::wire_replies::{End, ReplyPart, Wire};

/// Returns the data until the connection ends, and whether it was reset.
async fn read_to_end(mut client: Raw) -> (String, bool) {
    let mut bytes = Vec::new();
    let ended =
        tokio::time::timeout(Duration::from_secs(30), client.0.read_to_end(&mut bytes)).await.unwrap();
    let is_reset = ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
    (String::from_utf8_lossy(&bytes).into_owned(), is_reset)
}

async fn send_request(endmark: &Endmark, path: &str, mode: &str) -> Raw {
    let body =
        json!({"model": "scripted", "stream": true, "max_tokens": 50, "contents": [], "input": "Tell.",
        "messages": [{"role": "user", "content": "Tell."}]})
        .to_string();
    let mut client = Raw::connect(endmark.address).await;
    let request = format!(
        "POST {path} HTTP/1.0\r\nx-endmark-resume: {mode}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.send(request).await;
    client
}

/// Starts before an upstream that stops sending in the middle of a stream, and a gateway that does not wait for it at
/// shutdown.
async fn start_before_silence(wire: Wire) -> Endmark {
    let frames = wire.frames(&[ReplyPart::Text("The harbour was quiet"), ReplyPart::Text(" and the")], None);
    let length = frames.concat().len();
    let answer = Answer::sse(frames).chunked().fault(length, Fault::Stall);
    Endmark::start_with(Script::new().default_answer(answer), |settings| {
        settings.limits.drain = Duration::from_millis(1);
    })
    .await
}

#[tokio::test]
async fn a_stream_cut_by_a_drain_says_so() {
    for wire in Wire::ALL {
        let endmark = start_before_silence(wire).await;
        let mut client = send_request(&endmark, wire.path(true), "auto").await;
        let head = client.read_until("quiet").await;
        assert!(!head.to_lowercase().contains("transfer-encoding"), "{head}");
        endmark.stop().await;
        let (rest, is_reset) = read_to_end(client).await;
        assert!(rest.contains("endmark_reply_cut") && !is_reset, "{wire:?}: {is_reset} {rest}");
    }
}

#[tokio::test]
async fn an_unread_body_cut_by_a_drain_is_aborted() {
    for (path, mode) in [("/v1/files/1/content", "auto"), ("/v1/chat/completions", "off")] {
        // Cut by the end of a drain.
        let endmark = start_before_silence(Wire::Chat).await;
        let mut client = send_request(&endmark, path, mode).await;
        client.read_until("quiet").await;
        endmark.stop().await;
        let (rest, is_reset) = read_to_end(client).await;
        assert!(is_reset, "{path} {mode}: {rest}");
        // Cut by the upstream.
        for fault in [Fault::Reset, Fault::Close] {
            let frames = Wire::Chat.frames(&[ReplyPart::Text("The harbour was quiet")], None);
            let length = frames.concat().len();
            let answer = Answer::sse(frames).chunked().fault(length, fault);
            let endmark = Endmark::start(Script::new().default_answer(answer)).await;
            let (rest, is_reset) = read_to_end(send_request(&endmark, path, mode).await).await;
            assert!(is_reset, "{path} {mode} {fault:?}: {rest}");
        }
    }
}

#[tokio::test]
async fn a_whole_body_ends_cleanly_during_a_drain() {
    let frames = Wire::Chat.frames(&[ReplyPart::Text("The harbour was quiet.")], Some(End::Turn));
    for (path, mode) in
        [("/v1/files/1/content", "auto"), ("/v1/chat/completions", "off"), ("/v1/chat/completions", "auto")]
    {
        for answer in [
            Answer::sse(frames.clone()).chunked(),
            Answer::sse(frames.clone()).until_close(),
            Answer::sse(frames.clone()),
        ] {
            let endmark = Endmark::start(Script::new().default_answer(answer)).await;
            let (rest, is_reset) = read_to_end(send_request(&endmark, path, mode).await).await;
            assert!(rest.ends_with(&frames.concat()) && !is_reset, "{path} {mode}: {rest}");
        }
    }
}
