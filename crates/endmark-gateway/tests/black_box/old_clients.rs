//! HTTP/1.0 clients. Only the end of the connection ends their reply, so a cut reply must end differently
//! from a whole one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::json;
use testkit::{Answer, Fault, Script};
use tokio::io::AsyncReadExt;

use crate::support::Endmark;
use crate::support::raw::Raw;
use crate::support::wire_replies::{End, ReplyPart, Wire};

/// Reads until the connection ends. Returns the data, and whether the connection was reset.
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

/// Starts a gateway whose upstream stalls in the middle of a stream. At shutdown the gateway does not wait
/// for it.
async fn start_with_stalling_upstream(wire: Wire) -> Endmark {
    let frames = wire.frames(&[ReplyPart::Text("The harbour was quiet"), ReplyPart::Text(" and the")], None);
    let length = frames.concat().len();
    let answer = Answer::sse(frames).chunked().fault(length, Fault::Stall);
    Endmark::start_with(Script::new().default_answer(answer), |settings| {
        settings.limits.drain = Duration::from_millis(1);
    })
    .await
}

#[tokio::test]
async fn a_stream_cut_by_a_drain_ends_in_an_error() {
    for wire in Wire::ALL {
        let endmark = start_with_stalling_upstream(wire).await;
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
        // The end of a drain cuts the reply.
        let endmark = start_with_stalling_upstream(Wire::Chat).await;
        let mut client = send_request(&endmark, path, mode).await;
        client.read_until("quiet").await;
        endmark.stop().await;
        let (rest, is_reset) = read_to_end(client).await;
        assert!(is_reset, "{path} {mode}: {rest}");
        // The upstream cuts the reply.
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
