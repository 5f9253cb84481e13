//! Each upstream call has one row in the ledger, whatever its outcome.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::time::Duration;

use endmark_context::count::{Family, TextTally};
use endmark_gateway::ResumeMode;
use endmark_store::UsageRow;
use serde_json::json;
use testkit::{Answer, ChatFrames, Fault, PrefillBehaviour, Script, ScriptedModel, Upstream, chat_reply};
use tokio::io::AsyncWriteExt as _;

use crate::support::raw::Raw;
use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, read_stream, request, stream_request, text};

const TEXT: &str = "one two three four five six seven eight nine ten";

/// Returns the rows, oldest call first, when there are at least `count`.
async fn wait_for_rows(endmark: &Endmark, count: usize) -> Vec<UsageRow> {
    for _ in 0..200 {
        let mut rows = endmark.store.reader().unwrap().recent_calls(1_000).unwrap();
        if rows.len() >= count {
            rows.reverse();
            assert_eq!(rows.len(), count, "{rows:?}");
            return rows;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("there never were {count} rows: {:?}", endmark.store.reader().unwrap().recent_calls(9).unwrap());
}

fn row_status(row: &UsageRow) -> (&str, &str, Option<&str>, Option<u16>) {
    (&row.purpose, &row.ending, row.verdict.as_deref(), row.http_status)
}

#[tokio::test]
async fn a_whole_reply_has_one_row_with_its_reported_usage() {
    for stream in [false, true] {
        let endmark = Endmark::start(ScriptedModel::new(TEXT)).await;
        let mut body = request(500);
        if stream {
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true});
        }
        endmark.ask(&body).await;
        let [row] = &wait_for_rows(&endmark, 1).await[..] else { panic!() };
        assert_eq!(row_status(row), ("reply", "clean", Some("whole"), Some(200)), "{stream}");
        assert_eq!((row.call, row.streamed, row.upstream.as_str()), (1, stream, "scripted"));
        assert_eq!((row.model.as_str(), row.answered_model.as_deref()), ("scripted", Some("scripted")));
        assert_eq!((row.stop.as_deref(), row.cut_kind.as_deref()), (Some("normal"), None));
        assert!(row.tokens.prompt > Some(0) && row.tokens.output > Some(0), "{row:?}");
        assert!(row.received_bytes > Some(50) && row.sent_bytes > 50 && row.total_ms >= row.first_byte_ms);
        assert!(row.first_byte_ms.is_some() && row.credential.is_some() && row.session.len() == 16);
    }
}

#[tokio::test]
async fn an_unread_answer_is_not_recorded_as_whole() {
    let odd = Answer::json(200, &json!({"choices": "none", "error": null}));
    let endmark = Endmark::start(Script::new().default_answer(odd)).await;
    endmark.ask(&request(500)).await;
    endmark.chat(&request(500)).header("x-endmark-resume", "off").send().await.read().await;
    for row in wait_for_rows(&endmark, 2).await {
        assert_eq!(row_status(&row), ("reply", "clean", Some("unread"), Some(200)));
    }
}

#[tokio::test]
async fn usage_is_read_from_an_untouched_answer() {
    for wire in Wire::ALL {
        for (stream, compressed) in [(false, false), (true, false), (false, true), (true, true)] {
            let plain = wire.answer(&[ReplyPart::Text("one two three")], End::Turn, stream);
            let answer = if compressed {
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                std::io::Write::write_all(&mut packed, &plain.body()).unwrap();
                let kind = if stream { "text/event-stream" } else { "application/json" };
                Answer::new(200, kind, packed.finish().unwrap()).header("content-encoding", "gzip")
            } else {
                plain
            };
            let sent = answer.body();
            let endmark = Endmark::start(Script::new().default_answer(answer)).await;
            let sent_request =
                testkit::Request::post(endmark.address, wire.path(stream)).header("x-endmark-resume", "off");
            let reply = sent_request.json(&wire.request(stream)).send().await.read().await;
            let what = format!("{wire:?} {stream} {compressed}");
            assert_eq!((reply.status, &reply.body), (200, &sent), "{what}");
            let row = wait_for_rows(&endmark, 1).await.remove(0);
            assert_eq!(row_status(&row), ("reply", "clean", Some("unread"), Some(200)), "{what}");
            // A Chat stream contains counts only if the client requests them.
            let counted = if stream && wire == Wire::Chat { (None, None) } else { (Some(5), Some(7)) };
            assert_eq!((row.tokens.prompt, row.tokens.output), counted, "{what}");
        }
    }
}

#[tokio::test]
async fn each_continuation_has_its_own_row() {
    for stream in [false, true] {
        let endmark =
            Endmark::start_resuming(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let body = if stream { stream_request(4) } else { request(4) };
        let reply = endmark.ask(&body).await;
        let got = if stream { read_stream(&reply).text } else { text(&reply) };
        assert_eq!(got, TEXT);
        let rows = wait_for_rows(&endmark, endmark.calls()).await;
        assert!(rows.len() >= 2);
        assert_eq!(row_status(&rows[0]), ("reply", "clean", Some("cut"), Some(200)));
        assert_eq!(rows[0].cut_kind.as_deref(), Some("limit"));
        assert_eq!((rows[0].call, rows[1].call, rows[1].purpose.as_str()), (1, 2, "resume"));
        assert!(rows.iter().all(|row| row.request_id == rows[0].request_id));
        assert!(rows[1].tokens.output.is_some());
    }
}

#[tokio::test]
async fn each_attempt_and_the_fallback_have_a_row() {
    let good = Answer::json(200, &chat_reply("Yes.", "stop", (1, 1)));
    let script = Script::new()
        .then(Answer::without_status(Fault::Reset))
        .then(Answer::server_error())
        .default_answer(good);
    let endmark = Endmark::start(script).await;
    endmark.ask(&request(50)).await;
    let tries = wait_for_rows(&endmark, 3).await;
    assert_eq!(row_status(&tries[0]), ("reply", "dropped", None, None));
    assert_eq!(row_status(&tries[1]), ("retry", "upstream_error", None, Some(500)));
    assert_eq!(row_status(&tries[2]), ("retry", "clean", Some("whole"), Some(200)));

    let second = Upstream::start(ScriptedModel::new(TEXT)).await;
    let empty = Answer::error(429, "insufficient_quota", Some("insufficient_quota"), "check your plan");
    let endmark =
        Endmark::with_fallback(Script::new().default_answer(empty), &second, ("its-key", "m-2"), |_| {})
            .await;
    endmark.ask(&request(500)).await;
    let calls = wait_for_rows(&endmark, 2).await;
    assert_eq!(row_status(&calls[0]), ("reply", "upstream_error", None, Some(429)));
    assert_eq!(row_status(&calls[1]), ("fallback", "clean", Some("whole"), Some(200)));
    assert_eq!((calls[1].upstream.as_str(), calls[1].model.as_str()), ("second", "m-2"));
}

#[tokio::test]
async fn calls_with_refused_lost_and_oversized_answers_have_rows() {
    let refused = Endmark::start(Script::new().default_answer(Answer::unauthorized())).await;
    refused.ask(&request(50)).await;
    assert_eq!(
        row_status(&wait_for_rows(&refused, 1).await[0]),
        ("reply", "upstream_error", None, Some(401))
    );

    let reply = chat_reply(&"a long reply ".repeat(100), "stop", (1, 1));
    let lost = Endmark::start(Script::new().default_answer(Answer::json(200, &reply).close_after(300))).await;
    lost.ask(&request(50)).await;
    let mut lost = wait_for_rows(&lost, 3).await;
    lost.sort_by(|one, other| row_status(one).0.cmp(row_status(other).0));
    let lost: Vec<_> = lost.iter().map(row_status).collect();
    let of = |purpose| (purpose, "dropped", None, Some(200));
    assert_eq!(lost, [of("reply"), of("retry"), of("retry")]);

    let over = |settings: &mut endmark_gateway::Settings| settings.limits.reply_bytes = 200;
    let whole = Endmark::start_with(Script::new().default_answer(Answer::json(200, &reply)), over).await;
    assert_eq!(whole.ask(&request(50)).await.json(), reply);
    let row = wait_for_rows(&whole, 1).await.remove(0);
    assert_eq!(row_status(&row), ("reply", "over_cap", Some("unread"), Some(200)));
    assert!(row.received_bytes > Some(1_000));

    let no_api = Endmark::start(Script::new().default_answer(Answer::html(200))).await;
    no_api.ask(&request(50)).await;
    assert_eq!(row_status(&wait_for_rows(&no_api, 1).await[0]), ("reply", "upstream_error", None, Some(200)));
}

/// The estimate uses the text, because the frames of a stream are many times larger.
#[tokio::test]
async fn unreported_tokens_are_recorded_as_an_estimate() {
    let frames = ChatFrames::new().text("one ").text("two ").text("three").finish("stop").done();
    for (answer, body) in [
        (Answer::sse(frames), stream_request(500)),
        (Answer::json(200, &reply_without_usage("one two three")), request(500)),
    ] {
        let endmark = Endmark::start(Script::new().default_answer(answer)).await;
        endmark.ask(&body).await;
        let row = wait_for_rows(&endmark, 1).await.remove(0);
        let estimate = TextTally::of("one two three").tokens(Family::of("m"));
        assert_eq!(row.tokens.output, None, "{row:?}");
        assert_eq!(row.estimate.map(|estimate| estimate.output), Some(estimate), "{row:?}");
        assert!(row.received_bytes > Some(130), "{row:?}");
    }
}

/// Returns a reply without token counts.
fn reply_without_usage(text: &str) -> serde_json::Value {
    let mut reply = chat_reply(text, "stop", (1, 1));
    reply.as_object_mut().unwrap().remove("usage");
    reply
}

#[tokio::test]
async fn a_call_whose_client_leaves_has_a_row() {
    let slow = Answer::sse(ChatFrames::new().text("one ").text("two ").text("three").finish("stop").done())
        .pause(Duration::from_millis(200));
    let endmark = Endmark::start(Script::new().default_answer(slow)).await;
    endmark.chat(&stream_request(500)).send().await.reset();
    assert_eq!(row_status(&wait_for_rows(&endmark, 1).await[0]), ("reply", "cancelled", None, Some(200)));

    let silent = Script::new().default_answer(Answer::without_status(Fault::Stall));
    let endmark = Endmark::start(silent).await;
    let waiting = tokio::time::timeout(Duration::from_millis(300), endmark.ask(&request(50))).await;
    assert!(waiting.is_err());
    assert_eq!(row_status(&wait_for_rows(&endmark, 1).await[0]), ("reply", "cancelled", None, None));
}

/// The gateway cannot distinguish a half-closed connection from a disconnected client, whose unread reply
/// would still cost money.
#[tokio::test]
async fn a_half_closed_client_counts_as_gone() {
    let endmark = Endmark::start(Script::new().default_answer(Answer::without_status(Fault::Stall))).await;
    let body = request(50).to_string();
    let head =
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}", body.len());
    let mut client = Raw::connect(endmark.address).await;
    client.send(format!("{head}\r\n\r\n{body}")).await;
    while endmark.calls() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.0.shutdown().await.unwrap();
    assert_eq!(client.read_rest().await, "");
    assert_eq!(row_status(&wait_for_rows(&endmark, 1).await[0]), ("reply", "cancelled", None, None));
}

#[tokio::test]
async fn pass_through_calls_have_a_row_too() {
    for stream in [false, true] {
        let off = |settings: &mut endmark_gateway::Settings| settings.resume.mode = ResumeMode::Off;
        let endmark = Endmark::start_with(ScriptedModel::new(TEXT), off).await;
        let body = if stream { stream_request(500) } else { request(500) };
        endmark.ask(&body).await;
        let row = wait_for_rows(&endmark, 1).await.remove(0);
        assert_eq!(
            (row_status(&row), row.mode.as_str()),
            (("reply", "clean", Some("unread"), Some(200)), "off")
        );
    }
}

#[tokio::test]
async fn a_resumed_stream_records_the_break_and_the_recovery() {
    let model = ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes).fault(0, 600, Fault::Close);
    let endmark = Endmark::start(model).await;
    let reply = endmark.ask(&stream_request(500)).await;
    assert_eq!(read_stream(&reply).text, TEXT);
    let rows = wait_for_rows(&endmark, 2).await;
    assert_eq!(row_status(&rows[0]), ("reply", "dropped", Some("cut"), Some(200)));
    assert_eq!(row_status(&rows[1]), ("resume", "clean", None, Some(200)));
}
