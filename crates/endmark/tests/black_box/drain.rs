//! `serve` stops: what is under way ends, nothing new begins, and whoever asks is told.

use std::time::Duration;

use serde_json::json;
use testkit::{Answer, Request, Script, Upstream, chat_stream};

use crate::run::Place;
use crate::serve::{Served, in_runtime};

/// Streams that are under way each time.
const STREAMS: usize = 8;

/// How often it is done; `ENDMARK_TEST_DRAINS` asks for more.
const ROUNDS: usize = 20;

fn rounds() -> usize {
    std::env::var("ENDMARK_TEST_DRAINS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

fn chat(served: &Served) -> Request {
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "Go."}]});
    Request::post(served.address, "/v1/chat/completions").json(&body)
}

/// An upstream whose stream takes so long between any two of its ten events.
async fn flowing(pause: Duration) -> Upstream {
    Upstream::start(Script::new().otherwise(Answer::sse(chat_stream(&["word "; 10], "stop")).pause(pause)))
        .await
}

#[test]
fn no_stream_under_way_is_broken() {
    in_runtime(async {
        let upstream = flowing(Duration::from_millis(15)).await;
        let place = Place::new();
        for round in 0..rounds() {
            let served = Served::start(&place, &["--upstream", &upstream.base_url()]);
            let mut open = Vec::new();
            for _ in 0..STREAMS {
                open.push(chat(&served).send().await);
            }
            served.signal("-TERM");
            let mut reading: Vec<_> = open.into_iter().map(|open| tokio::spawn(open.read())).collect();
            for (stream, reading) in reading.drain(..).enumerate() {
                let reply = reading.await.unwrap();
                let is_whole = reply.complete && reply.events().last().is_some_and(|event| event == "[DONE]");
                assert!(is_whole, "round {round}, stream {stream}: {}", reply.text());
            }
            assert_eq!(served.wait(), Some(0), "round {round}");
        }
        println!("{} drains under {STREAMS} live streams each: none broken", rounds());
    });
}

#[test]
fn while_it_stops_it_says_so_and_begins_nothing() {
    in_runtime(async {
        let upstream = flowing(Duration::from_millis(200)).await;
        let place = Place::new();
        let mut served = Served::start(&place, &["--upstream", &upstream.base_url()]);
        let open = chat(&served).send().await;
        served.signal("-TERM");
        served.says("Letting replies under way end");
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
        assert!(open.read().await.complete);
        assert_eq!(served.wait(), Some(0));
        assert_eq!(upstream.requests().len(), 1);
    });
}

#[test]
fn what_does_not_end_in_time_or_after_a_second_signal_is_cut_off_and_told() {
    in_runtime(async {
        let upstream = flowing(Duration::from_secs(20)).await;
        let place = Place::new();
        let start = |more: &[&str]| {
            let base_url = upstream.base_url();
            Served::start(&place, &[&["--upstream", base_url.as_str()], more].concat())
        };
        let served = start(&["--set", "limits.drain_seconds=1"]);
        let open = chat(&served).send().await;
        let (code, said) = served.end("-TERM");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("1 replies were still under way") && said.contains("drain_seconds"), "{said}");
        assert!(!open.read().await.complete);

        let mut served = start(&[]);
        let open = chat(&served).send().await;
        served.signal("-INT");
        served.says("once more to stop at once");
        let (code, said) = served.end("-INT");
        assert_eq!(code, Some(130), "{said}");
        assert!(!open.read().await.complete);
    });
}
