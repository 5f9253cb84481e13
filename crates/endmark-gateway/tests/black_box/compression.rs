//! Compressed bodies, in either direction.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;

use endmark_gateway::ResumeMode;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use testkit::{Answer, ChatFrames, Reply, Request, Script, ScriptedModel, Upstream, chat_reply};

use crate::support::{Endmark, read_stream, request, stream_request, text};

fn compress(coding: &str, plain: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        "br" => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
            encoder.write_all(plain).unwrap();
            encoder.into_inner()
        }
        _ => {
            let mut buffer = vec![0; zstd_safe::compress_bound(plain.len())];
            let length = zstd_safe::compress(buffer.as_mut_slice(), plain, 3).unwrap();
            buffer.truncate(length);
            buffer
        }
    }
}

async fn post(endmark: &Endmark, coding: &str, body: Vec<u8>) -> Reply {
    Request::post(endmark.address, "/v1/chat/completions")
        .header("content-type", "application/json")
        .header("content-encoding", coding)
        .body(body)
        .send()
        .await
        .read()
        .await
}

/// Returns the frames of a stream, each compressed and flushed separately.
fn gzip_frames(frames: &[String]) -> Vec<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut pieces = Vec::new();
    for frame in frames {
        encoder.write_all(frame.as_bytes()).unwrap();
        encoder.flush().unwrap();
        pieces.push(std::mem::take(encoder.get_mut()));
    }
    pieces.push(encoder.finish().unwrap());
    pieces
}

fn gzip_stream(frames: &[String]) -> Answer {
    let answer = Answer::sse(Vec::<String>::new()).header("content-encoding", "gzip");
    gzip_frames(frames).into_iter().fold(answer, Answer::add_part)
}

#[tokio::test]
async fn a_compressed_request_is_read_and_forwarded_unchanged() {
    let plain = request(50).to_string().into_bytes();
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let endmark = Endmark::start(
            Script::new().default_answer(Answer::json(200, &chat_reply("Yes.", "stop", (1, 1)))),
        )
        .await;
        let bytes = compress(coding, &plain);
        let reply = post(&endmark, coding, bytes.clone()).await;
        assert_eq!((reply.status, text(&reply).as_str()), (200, "Yes."), "{coding}: {}", reply.text());
        let received = endmark.upstream.requests().remove(0);
        assert_eq!(received.body, bytes, "{coding}");
        assert_eq!(received.header("content-encoding"), Some(coding));
        assert_eq!(received.header("content-length"), Some(bytes.len().to_string().as_str()));
    }
    let endmark =
        Endmark::start(Script::new().default_answer(Answer::json(200, &chat_reply("Yes.", "stop", (1, 1)))))
            .await;
    let reply = post(&endmark, "gzip, br", compress("br", &compress("gzip", &plain))).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn requests_by_endmark_are_uncompressed() {
    // Continuations and requests to a fallback differ from the client's bytes.
    let cut = Answer::sse(ChatFrames::new().text("The harbour ").text("was").cut());
    let rest = Answer::sse(testkit::chat_stream(&[" quiet."], "stop"));
    let endmark = Endmark::start(Script::new().then(cut).default_answer(rest)).await;
    let body = compress("gzip", stream_request(50).to_string().as_bytes());
    let read = read_stream(&post(&endmark, "gzip", body.clone()).await);
    assert_eq!(read.text, "The harbour was quiet.");
    let sent = endmark.upstream.requests();
    assert_eq!(
        (sent[1].header("content-encoding"), sent[1].json()["model"].as_str()),
        (None, Some("scripted"))
    );

    let second = Upstream::start(ScriptedModel::new("Yes.")).await;
    let down = Script::new().default_answer(Answer::error(503, "server_error", None, "overloaded"));
    let endmark = Endmark::with_fallback(down, &second, ("key", "its-model"), |_| {}).await;
    assert!(read_stream(&post(&endmark, "gzip", body.clone()).await).is_done);
    let first = &endmark.upstream.requests()[0];
    let asks = &first.json()["stream_options"]["include_usage"];
    assert_eq!((first.header("content-encoding"), asks), (None, &json!(true)), "it is asked for its tokens");
    let sent_request = &second.requests()[0];
    assert_eq!(
        (sent_request.header("content-encoding"), sent_request.json()["model"].as_str()),
        (None, Some("its-model"))
    );
}

#[tokio::test]
async fn an_undecodable_request_is_refused_with_the_reason() {
    let endmark =
        Endmark::start_with(ScriptedModel::new("x"), |settings| settings.limits.body_bytes = 100_000).await;
    let plain = request(5).to_string().into_bytes();
    let large = json!({"messages": [{"role": "user", "content": " ".repeat(4_000_000)}]}).to_string();
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let whole = compress(coding, &plain);
        let half = post(&endmark, coding, whole[..whole.len() / 2].to_vec()).await;
        assert_eq!(half.status, 400, "{coding}: {}", half.text());
        assert_eq!(half.json()["error"]["type"], "endmark_bad_request");
        assert!(half.text().contains("cannot be decoded"), "{}", half.text());
        assert_eq!(post(&endmark, coding, plain.clone()).await.status, 400, "{coding}");

        let bomb = compress(coding, large.as_bytes());
        assert!(bomb.len() < 100_000);
        let reply = post(&endmark, coding, bomb).await;
        assert_eq!((reply.status, &reply.json()["error"]["type"]), (413, &json!("endmark_body_too_large")));
    }
    for coding in ["compress", "gzip, snappy", "gzip, gzip, gzip, gzip"] {
        let reply = post(&endmark, coding, plain.clone()).await;
        assert_eq!(reply.status, 415, "{coding}");
        assert_eq!(reply.header("accept-encoding"), Some("gzip, deflate, br, zstd"));
        assert_eq!(reply.json()["error"]["type"], "endmark_unsupported_encoding");
    }
    assert_eq!(endmark.calls(), 0);
}

#[tokio::test]
async fn an_unexpectedly_compressed_answer_is_decoded() {
    let plain = chat_reply("Yes.", "stop", (1, 1)).to_string();
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let answer = Answer::new(200, "application/json", compress(coding, plain.as_bytes()))
            .header("content-encoding", coding)
            .header("etag", "\"of-the-compressed\"")
            .header("content-digest", "sha-256=:AA==:");
        let endmark = Endmark::start(Script::new().default_answer(answer)).await;
        let reply =
            endmark.chat(&request(50)).header("accept-encoding", "gzip, br").send().await.read().await;
        assert_eq!(reply.body, plain.as_bytes(), "{coding}");
        for name in ["content-encoding", "etag", "content-digest"] {
            assert_eq!(reply.header(name), None, "{coding}");
        }
        assert_eq!(endmark.upstream.requests()[0].header("accept-encoding"), Some("identity"));
    }
}

#[tokio::test]
async fn a_cut_compressed_reply_is_resumed() {
    let cut = chat_reply("The harbour", "length", (1, 2)).to_string();
    let cut =
        Answer::new(200, "application/json", compress("br", cut.as_bytes())).header("content-encoding", "br");
    let rest = chat_reply(" was quiet.", "stop", (1, 2)).to_string();
    let rest = Answer::new(200, "application/json", compress("zstd", rest.as_bytes()))
        .header("content-encoding", "zstd");
    let endmark = Endmark::start_resuming(Script::new().then(cut).default_answer(rest)).await;
    let reply = endmark.ask(&request(2)).await;
    assert_eq!(
        (text(&reply).as_str(), reply.header("x-endmark-outcome")),
        ("The harbour was quiet.", Some("resumed"))
    );
}

#[tokio::test]
async fn a_compressed_stream_flows_event_by_event() {
    let frames = testkit::chat_stream(&["one", " two", " three"], "stop");
    // The upstream stalls after the first event. A reader that waits for more than the flushed data never
    // gets it.
    let pieces = gzip_frames(&frames);
    let after = pieces[0].len() + pieces[1].len();
    let endmark = Endmark::start(Script::new().default_answer(gzip_stream(&frames).stall_after(after))).await;
    let mut open = endmark.chat(&stream_request(50)).send().await;
    let expected = frames[..2].concat();
    let mut seen = Vec::new();
    while seen.len() < expected.len() {
        seen.extend(open.next_bytes().await.unwrap().expect("the stream goes on"));
    }
    assert_eq!(String::from_utf8(seen).unwrap(), expected);

    for split in [1, 7, 4096] {
        let endmark = Endmark::start(Script::new().default_answer(gzip_stream(&frames).split(split))).await;
        let reply = endmark.ask(&stream_request(50)).await;
        assert_eq!(String::from_utf8(reply.body.clone()).unwrap(), frames.concat(), "in pieces of {split}");
        assert_eq!(reply.header("content-encoding"), None);
    }
}

#[tokio::test]
async fn a_broken_compressed_stream_is_cut_not_whole() {
    let frames = testkit::chat_stream(&["The harbour", " was", " quiet."], "stop");
    let pieces = gzip_frames(&frames);
    let rest = Answer::sse(testkit::chat_stream(&[" quiet."], "stop"));
    // The cut is in the third frame: a normal end for HTTP, but not for gzip.
    let end = pieces[..3].concat().len() + 3;
    let half = Answer::new(200, "text/event-stream", pieces.concat()[..end].to_vec())
        .header("content-encoding", "gzip");
    let endmark = Endmark::start(Script::new().then(half).default_answer(rest)).await;
    let read = read_stream(&endmark.ask(&stream_request(50)).await);
    assert_eq!((read.text.as_str(), read.is_done), ("The harbour was quiet.", true));
    assert_eq!(endmark.calls(), 2);
}

#[tokio::test]
async fn unread_bodies_pass_compressed() {
    let bytes = compress("gzip", chat_reply("Yes.", "length", (1, 1)).to_string().as_bytes());
    // Another path, another coding, and mode `off`.
    let answer = Answer::new(200, "application/json", bytes.clone())
        .header("content-encoding", "gzip")
        .header("etag", "\"1\"");
    let endmark = Endmark::start(Script::new().default_answer(answer.clone())).await;
    let reply = Request::new("PUT", endmark.address, "/v1/files")
        .header("content-encoding", "snappy")
        .header("accept-encoding", "gzip")
        .body("any bytes")
        .send()
        .await
        .read()
        .await;
    assert_eq!(
        (&reply.body, reply.header("content-encoding"), reply.header("etag")),
        (&bytes, Some("gzip"), Some("\"1\""))
    );
    let received = endmark.upstream.requests().remove(0);
    assert_eq!(
        (received.header("content-encoding"), received.header("accept-encoding")),
        (Some("snappy"), Some("gzip"))
    );

    let endmark = Endmark::start_with(Script::new().default_answer(answer), |settings| {
        settings.resume.mode = ResumeMode::Off;
    })
    .await;
    let reply = endmark.chat(&request(5)).header("accept-encoding", "gzip").send().await.read().await;
    assert_eq!((&reply.body, reply.header("content-encoding")), (&bytes, Some("gzip")));

    for status in [200, 400] {
        let unknown =
            Answer::new(status, "application/json", "\x01\x02").header("content-encoding", "snappy");
        let endmark = Endmark::start(Script::new().default_answer(unknown)).await;
        let reply = endmark.ask(&request(5)).await;
        assert_eq!(
            (reply.status, reply.body.as_slice(), reply.header("content-encoding")),
            (status, b"\x01\x02".as_slice(), Some("snappy"))
        );
    }
}

#[tokio::test]
async fn an_answer_that_expands_beyond_the_limit_passes_unbuffered() {
    let long = chat_reply(&"x ".repeat(4_000_000), "stop", (1, 1)).to_string();
    let answer = Answer::new(200, "application/json", compress("gzip", long.as_bytes()))
        .header("content-encoding", "gzip");
    let endmark = Endmark::start_with(Script::new().default_answer(answer), |settings| {
        settings.limits.reply_bytes = 100_000;
    })
    .await;
    let reply = endmark.ask(&request(5)).await;
    assert_eq!((reply.body.len(), reply.header("content-encoding")), (long.len(), None));
    assert!(reply.is_complete);
}
