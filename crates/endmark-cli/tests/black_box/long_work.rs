//! Expensive requests do not delay other clients or the shutdown.

use std::time::Duration;

use serde_json::json;
use testkit::{Reply, Request, ScriptedModel, Upstream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

/// Size of each request in bytes. Counting its tokens takes a debug build almost a minute.
const LONG_BODY_BYTES: usize = 24 * 1024 * 1024;

/// Far longer than any other request needs, unless it waits for the token counts.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a request whose tokens must be counted for a budget. No two adjacent words are equal.
fn long_body() -> Vec<u8> {
    let letter = |n: u32| b'a' + n.wrapping_mul(2_654_435_761).to_be_bytes()[0] % 26;
    let letters: Vec<u8> = (0..65_537).map(letter).collect();
    let mut body = br#"{"model":"gpt-5","max_tokens":9,"messages":[{"role":"user","content":""#.to_vec();
    while body.len() < LONG_BODY_BYTES {
        body.extend_from_slice(&letters);
    }
    body.extend_from_slice(br#""}]}"#);
    body
}

/// Starts a gateway with one worker thread that counts the tokens of two long requests.
async fn start_busy_gateway(upstream: &Upstream) -> (ServeProcess, [JoinHandle<Reply>; 2]) {
    let place = TestFolder::new()
        .with_variable("TOKIO_WORKER_THREADS", "1")
        .with_variable("ENDMARK_TOKEN_BUDGET", "999999999");
    let served =
        ServeProcess::start(&place, &["--upstream", &upstream.base_url(), "--set", "limits.drain_seconds=1"]);
    let body = long_body();
    let pending = [body.clone(), body].map(|body| {
        let request = Request::post(served.address, "/v1/chat/completions")
            .header("content-type", "application/json")
            .body(body);
        tokio::spawn(async move { request.send().await.read().await })
    });
    // Wait until both bodies have arrived and the second one is being copied: the program has 20 MB, and each
    // body exists twice.
    while served.status_kib("VmRSS") * 2 * 1024 < 9 * LONG_BODY_BYTES as u64 {
        sleep(Duration::from_millis(20)).await;
    }
    (served, pending)
}

#[test]
fn other_clients_are_served_during_long_work() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let (served, pending) = start_busy_gateway(&upstream).await;
        for _ in 0..3 {
            let health = Request::get(served.address, "/endmark/healthz");
            assert_eq!(timeout(REPLY_TIMEOUT, health.send()).await.unwrap().status, 200);
        }
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "Count."}]});
        let small = Request::post(served.address, "/v1/chat/completions").json(&body);
        assert_eq!(timeout(REPLY_TIMEOUT, small.send()).await.unwrap().status, 200);
        assert!(pending.iter().all(|pending| !pending.is_finished()) && upstream.requests().len() == 1);
        served.kill();
    });
}

#[test]
fn a_stop_does_not_wait_for_long_work() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let (served, pending) = start_busy_gateway(&upstream).await;
        let ended = tokio::task::spawn_blocking(move || served.stop("-TERM"));
        let (code, said) = timeout(REPLY_TIMEOUT, ended).await.unwrap().unwrap();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("2 replies were still under way"), "{said}");
        assert!(upstream.requests().is_empty());
        pending.iter().for_each(JoinHandle::abort);
    });
}
