//! Shutdown of `serve`: replies in progress are completed, no new ones begin, and clients are informed.

use std::time::Duration;

use endmark_store::{Reader, StoreLocation};
use serde_json::json;
use testkit::{Answer, ReceivedRequest, Reply, Request, Script, Upstream, chat_reply, chat_stream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

/// Number of concurrent streams in each round.
const STREAMS_PER_ROUND: usize = 8;

/// Number of rounds, unless `ENDMARK_TEST_DRAINS` is set.
const DEFAULT_ROUNDS: usize = 10;

fn configured_rounds() -> usize {
    std::env::var("ENDMARK_TEST_DRAINS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(DEFAULT_ROUNDS)
}

fn chat(served: &ServeProcess) -> Request {
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "Go."}]});
    Request::post(served.address, "/v1/chat/completions").json(&body)
}

/// Starts an upstream whose stream has ten events with this pause between them.
async fn start_slow_upstream(pause: Duration) -> Upstream {
    Upstream::start(
        Script::new().default_answer(Answer::sse(chat_stream(&["word "; 10], "stop")).pause(pause)),
    )
    .await
}

#[test]
fn a_drain_breaks_no_stream_in_progress() {
    in_runtime(async {
        let upstream = start_slow_upstream(Duration::from_millis(15)).await;
        let place = TestFolder::new();
        for round in 0..configured_rounds() {
            let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
            let mut open = Vec::new();
            for _ in 0..STREAMS_PER_ROUND {
                open.push(chat(&served).send().await);
            }
            served.signal("-TERM");
            let mut reading: Vec<_> = open.into_iter().map(|open| tokio::spawn(open.read())).collect();
            for (stream, reading) in reading.drain(..).enumerate() {
                let reply = reading.await.unwrap();
                let is_whole =
                    reply.is_complete && reply.events().last().is_some_and(|event| event == "[DONE]");
                assert!(is_whole, "round {round}, stream {stream}: {}", reply.text());
            }
            assert_eq!(served.wait(), Some(0), "round {round}");
        }
        println!("{} drains under {STREAMS_PER_ROUND} live streams each: none broken", configured_rounds());
    });
}

#[test]
fn a_long_drain_ends_with_the_last_stream() {
    in_runtime(async {
        let upstream = start_slow_upstream(Duration::from_millis(50)).await;
        let arguments = ["--upstream", &upstream.base_url(), "--set", "limits.drain_seconds=600"];
        let place = TestFolder::new();
        assert_eq!(ServeProcess::start(&place, &arguments).stop("-TERM").0, Some(0), "without a stream");
        let served = ServeProcess::start(&place, &arguments);
        let open = chat(&served).send().await;
        served.signal("-TERM");
        assert!(open.read().await.is_complete);
        assert_eq!(served.wait(), Some(0));
    });
}

#[test]
fn a_draining_gateway_reports_it_and_accepts_no_requests() {
    in_runtime(async {
        let upstream = start_slow_upstream(Duration::from_millis(200)).await;
        let place = TestFolder::new();
        let mut served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        let open = chat(&served).send().await;
        served.signal("-TERM");
        served.wait_for_line("Waiting for active replies to end");
        let ready = loop {
            let ready = Request::get(served.address, "/endmark/readyz").send().await.read().await;
            if ready.status != 200 {
                break ready;
            }
        };
        assert_eq!((ready.status, ready.json()["status"].as_str()), (503, Some("stopping")));
        assert_eq!(Request::get(served.address, "/endmark/healthz").send().await.status, 200);
        let refused = chat(&served).send().await.read().await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        assert_eq!(refused.json()["error"]["type"], "endmark_stopping");
        assert!(open.read().await.is_complete);
        assert_eq!(served.wait(), Some(0));
        assert_eq!(upstream.requests().len(), 1);
    });
}

#[test]
fn requests_are_cut_after_the_timeout_or_a_second_signal() {
    in_runtime(async {
        let upstream = start_slow_upstream(Duration::from_secs(20)).await;
        let place = TestFolder::new();
        let start = |more: &[&str]| {
            let base_url = upstream.base_url();
            ServeProcess::start(&place, &[&["--upstream", base_url.as_str()], more].concat())
        };
        let served = start(&["--set", "limits.drain_seconds=1"]);
        let open = chat(&served).send().await;
        let (code, said) = served.stop("-TERM");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("1 replies were still under way") && said.contains("drain_seconds"), "{said}");
        assert_cut_off(&open.read().await);

        let mut served = start(&[]);
        let open = chat(&served).send().await;
        served.signal("-INT");
        served.wait_for_line("Send the signal again to stop at once");
        let (code, said) = served.stop("-INT");
        assert_eq!(code, Some(130), "{said}");
        assert_cut_off(&open.read().await);
    });
}

#[test]
fn cut_requests_are_disclosed_and_recorded_before_the_exit() {
    in_runtime(async {
        let much = "word ".repeat(20_000);
        let slow = Upstream::start(move |request: &ReceivedRequest| {
            let pause = Duration::from_mins(1);
            match request.json()["model"].as_str() {
                Some("stream") => Answer::sse(chat_stream(&["word "; 10], "stop")).pause(pause),
                // More data than the buffers for an idle client can contain.
                Some("unread") => Answer::sse(chat_stream(&[much.as_str(); 200], "stop")),
                Some("head") => Answer::json(200, &chat_reply("whole", "stop", (1, 1))).wait(pause),
                _ => Answer::json(200, &chat_reply("whole", "stop", (1, 1))).wait_after_head(pause),
            }
        })
        .await;
        let place = TestFolder::new();
        let served =
            ServeProcess::start(&place, &["--upstream", &slow.base_url(), "--set", "limits.drain_seconds=1"]);
        let ask = |model: &str, stream: bool| {
            let body =
                json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "Go."}]});
            Request::post(served.address, "/v1/chat/completions").json(&body)
        };
        let stream = ask("stream", true).send().await;
        let unread = ask("unread", true).send().await;
        let waiting = [
            tokio::spawn(ask("head", false).send()),
            tokio::spawn(ask("body", false).send()),
            tokio::spawn(ask("head", true).send()),
        ];
        while slow.requests().len() < 5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (code, said) = served.stop("-TERM");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("5 replies were still under way"), "{said}");

        assert_cut_off(&stream.read().await);
        assert!(!unread.read().await.is_complete);
        for open in waiting {
            let reply = open.await.unwrap().read().await;
            let error = &reply.json()["error"]["type"];
            assert_eq!((reply.status, error.as_str()), (503, Some("endmark_stopping")), "{}", reply.text());
            assert_eq!(reply.header("retry-after"), Some("1"));
        }
        let store = Reader::open(&StoreLocation::sqlite(place.store())).unwrap();
        let rows = store.recent_calls(9).unwrap();
        let ends: Vec<&str> = rows.iter().map(|row| row.ending.as_str()).collect();
        assert_eq!(ends, ["interrupted"; 5]);
        assert!(rows.iter().all(|row| row.ended_at.is_some()), "{rows:?}");
    });
}

#[test]
fn a_cut_body_that_is_not_parsed_never_looks_whole() {
    in_runtime(async {
        let upstream = start_slow_upstream(Duration::from_millis(700)).await;
        let place = TestFolder::new();
        let served = ServeProcess::start(
            &place,
            &["--upstream", &upstream.base_url(), "--set", "limits.drain_seconds=1"],
        );
        let off = chat(&served).header("x-endmark-resume", "off").send().await;
        let other =
            Request::post(served.address, "/v1/audio/speech").json(&json!({"model": "m"})).send().await;
        let (code, said) = served.stop("-TERM");
        assert_eq!(code, Some(1), "{said}");
        for open in [off, other] {
            let reply = open.read().await;
            assert!(reply.text().contains("word ") && !reply.text().contains("[DONE]"), "{}", reply.text());
            assert!(!reply.is_complete || reply.text().contains("endmark_reply_cut"), "{}", reply.text());
        }
    });
}

/// Checks that the stream ends with an error of the gateway and does not look whole.
fn assert_cut_off(reply: &Reply) {
    let error = reply.json_events().last().map(|event| event["error"].clone()).unwrap_or_default();
    assert_eq!(error["type"], "endmark_reply_cut", "{}", reply.text());
    assert!(error["message"].as_str().unwrap().contains("the gateway stopped"), "{error}");
    assert!(!reply.text().contains("[DONE]"), "{}", reply.text());
}
