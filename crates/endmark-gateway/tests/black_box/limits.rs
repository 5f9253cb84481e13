//! Tests each limit of the listener.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Answer, Request, Script, ScriptedModel, chat_reply, chat_stream};

use crate::support::raw::{Raw, answer, parse_refusal};
use crate::support::{Endmark, read_stream, request, stream_request};

const SHORT_TIMEOUT: Duration = Duration::from_millis(300);
const MODELS_REQUEST: &str = "GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n";
const HEALTH_REQUEST: &str = "GET /endmark/healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn plain_script() -> Script {
    Script::new().default_answer(Answer::new(200, "text/plain", "reached"))
}

/// Returns a script whose answer starts after `wait`.
fn slow_script(wait: Duration) -> Script {
    Script::new().default_answer(Answer::json(200, &chat_reply("slow", "stop", (1, 1))).wait(wait))
}

#[tokio::test]
async fn a_head_with_too_many_bytes_or_fields_gets_431() {
    let endmark = Endmark::start_with(plain_script(), |settings| {
        settings.limits.header_bytes = 2_000;
        settings.limits.header_fields = 5;
    })
    .await;
    let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}", "x".repeat(4_000));
    let many = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: 1\r\n".repeat(5));
    for head in [long, many] {
        let response = answer(endmark.address, head).await;
        assert_eq!(parse_refusal(&response), (431, "endmark_head_too_large".to_owned()));
        assert!(response.contains("[limits] header_"), "{response}");
    }
}

#[tokio::test]
async fn an_unfinished_head_gets_408_and_an_idle_connection_is_closed() {
    let endmark =
        Endmark::start_with(plain_script(), |settings| settings.limits.header = SHORT_TIMEOUT).await;
    let mut dripping = Raw::connect(endmark.address).await;
    dripping.send("GET / HTTP/1.1\r\nhost").await;
    let began = Instant::now();
    assert_eq!(parse_refusal(&dripping.read_rest().await), (408, "endmark_head_late".to_owned()));
    assert!(began.elapsed() >= SHORT_TIMEOUT);
    assert_eq!(Raw::connect(endmark.address).await.read_rest().await, "");
}

#[tokio::test]
async fn slow_bytes_do_not_extend_the_head_timeout() {
    let endmark =
        Endmark::start_with(plain_script(), |settings| settings.limits.header = SHORT_TIMEOUT).await;
    let mut raw = Raw::connect(endmark.address).await;
    raw.send("GET / HTTP/1.1\r\n").await;
    let mut drips = 0;
    while raw.0.try_read(&mut [0]).is_err() {
        raw.send("x: 1\r\n").await;
        tokio::time::sleep(SHORT_TIMEOUT / 10).await;
        drips += 1;
        assert!(drips < 90, "it never ends");
    }
}

#[tokio::test]
async fn an_idle_kept_connection_is_closed() {
    let endmark =
        Endmark::start_with(plain_script(), |settings| settings.limits.keep_alive = SHORT_TIMEOUT).await;
    let mut raw = Raw::connect(endmark.address).await;
    raw.send(MODELS_REQUEST).await.read_until("reached").await;
    raw.send(MODELS_REQUEST).await.read_until("reached").await;
    assert_eq!(raw.read_rest().await, "");
}

#[tokio::test]
async fn a_stalled_or_slow_body_gets_408_on_every_path() {
    let endmark = Endmark::start_with(plain_script(), |settings| {
        settings.limits.body = SHORT_TIMEOUT;
        settings.limits.idle = Duration::from_secs(20);
    })
    .await;
    for path in ["/v1/chat/completions", "/v1/files"] {
        let mut raw = Raw::connect(endmark.address).await;
        raw.send(format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n{{"))
            .await;
        assert_eq!(parse_refusal(&raw.read_rest().await), (408, "endmark_body_lost".to_owned()), "{path}");
    }
    let endmark = Endmark::start_with(plain_script(), |settings| settings.limits.idle = SHORT_TIMEOUT).await;
    let stopped =
        "POST /v1/files HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n";
    assert_eq!(parse_refusal(&answer(endmark.address, stopped).await).0, 408);
}

#[tokio::test]
async fn an_oversized_body_gets_413_on_every_path() {
    let endmark = Endmark::start_with(plain_script(), |settings| {
        settings.limits.body_bytes = 1_000;
        settings.limits.upload_bytes = 2_000;
    })
    .await;
    let long = "x".repeat(3_000);
    let chunk = format!("bb8\r\n{long}\r\n0\r\n\r\n");
    for (path, length, body) in [
        ("/v1/chat/completions", "content-length: 1500", &long[..1_500]),
        ("/v1/chat/completions", "transfer-encoding: chunked", chunk.as_str()),
        ("/v1/files", "content-length: 3000", long.as_str()),
        ("/v1/files", "transfer-encoding: chunked", chunk.as_str()),
    ] {
        let bytes = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{length}\r\n\r\n{body}");
        let mut raw = Raw::connect(endmark.address).await;
        let response = raw.send(bytes).await.read_until("}}").await;
        assert_eq!(parse_refusal(&response), (413, "endmark_body_too_large".to_owned()), "{path} {length}");
    }
}

#[tokio::test]
async fn excess_requests_wait_and_a_full_queue_gets_429() {
    let endmark = Endmark::start_with(slow_script(Duration::from_secs(2)), |settings| {
        settings.limits.requests = 1;
        settings.limits.queue = 1;
    })
    .await;
    let first = tokio::spawn(endmark.chat(&request(5)).send());
    endmark.upstream.wait_for_requests(1).await;
    let others: Vec<_> = (0..3).map(|_| tokio::spawn(endmark.ask_later(&request(5)))).collect();
    let (mut served, mut sent_away) = (0, 0);
    for other in others {
        let reply = other.await.unwrap();
        if reply.status == 200 {
            served += 1;
            continue;
        }
        assert_eq!((reply.status, reply.header("retry-after")), (429, Some("1")));
        assert_eq!(reply.json()["error"]["type"], "endmark_too_many_requests");
        // The gateway reports its readiness even when it is full.
        assert_eq!(Request::get(endmark.address, "/endmark/readyz").send().await.status, 200);
        sent_away += 1;
    }
    assert_eq!((served, sent_away), (1, 2));
    assert_eq!(first.await.unwrap().read().await.status, 200);
}

#[tokio::test]
async fn a_request_that_waits_too_long_gets_429() {
    let endmark = Endmark::start_with(slow_script(Duration::from_secs(10)), |settings| {
        settings.limits.requests = 1;
        settings.limits.queue_wait = SHORT_TIMEOUT;
    })
    .await;
    let _first = tokio::spawn(endmark.chat(&request(5)).send());
    endmark.upstream.wait_for_requests(1).await;
    assert_eq!(endmark.ask(&request(5)).await.status, 429);
}

/// A request whose body is still arriving occupies no slot, so that slow clients do not block others.
#[tokio::test]
async fn slow_body_senders_do_not_delay_other_clients() {
    let endmark = Endmark::start_with(ScriptedModel::new("Hello"), |settings| {
        settings.limits.requests = 1;
        settings.limits.queue = 0;
    })
    .await;
    let body = request(50).to_string();
    let (begun, rest) = body.split_at(body.len() / 2);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut slow = Raw::connect(endmark.address).await;
    slow.send(head + begun).await;
    tokio::time::sleep(SHORT_TIMEOUT).await;
    assert_eq!(endmark.ask(&request(50)).await.status, 200);
    let response = slow.send(rest.to_owned()).await.read_until("}}").await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[tokio::test]
async fn a_permit_is_released_after_a_reply_an_error_or_a_lost_client() {
    let script = Script::new()
        .then(Answer::sse(chat_stream(&["a", "b"], "stop")).pause(SHORT_TIMEOUT))
        .then(Answer::without_status(testkit::Fault::Reset))
        .then(Answer::sse(chat_stream(&["a", "b", "c", "d"], "stop")).pause(Duration::from_secs(5)))
        .default_answer(Answer::sse(chat_stream(&["a", "b"], "stop")));
    let endmark = Endmark::start_with(script, |settings| {
        settings.limits.requests = 1;
        settings.limits.queue = 1;
        settings.retry.max_retries = 0;
    })
    .await;
    assert!(read_stream(&endmark.ask(&stream_request(50)).await).is_done);
    assert_eq!(endmark.ask(&stream_request(50)).await.status, 502);
    let mut open = endmark.chat(&stream_request(50)).send().await;
    open.next_bytes().await.unwrap();
    open.reset();
    // This reply arrives long before the upstream would have ended the abandoned one.
    assert!(read_stream(&endmark.ask(&stream_request(50)).await).is_done);
}

#[tokio::test]
async fn total_memory_for_all_requests_is_bounded() {
    let endmark = Endmark::start_with(ScriptedModel::new("Hello"), |settings| {
        settings.limits.held_bytes = 2_000;
    })
    .await;
    assert_eq!(crate::support::text(&endmark.ask(&request(50)).await), "Hello");
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(3_000)}]});
    let reply = endmark.ask(&body).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert_eq!(reply.json()["error"]["type"], "endmark_overloaded");
    assert_eq!(endmark.calls(), 1);
}

/// Parsing and editing make copies, so a request needs more memory than its size.
#[tokio::test]
async fn working_memory_of_large_requests_counts_too() {
    let endmark = Endmark::start_with(ScriptedModel::new("one two"), |settings| {
        settings.limits.held_bytes = 3_000_000;
    })
    .await;
    let body =
        |bytes: usize| json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(bytes)}]});
    let refused = endmark.ask(&body(1_000_000)).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.text().contains("held_bytes"), "{}", refused.text());
    for bytes in [200_000, 500_000, 500_000] {
        assert_eq!(endmark.ask(&body(bytes)).await.status, 200);
    }
}

#[tokio::test]
async fn a_reply_without_memory_for_it_passes_unchanged() {
    let long = "x".repeat(3_000);
    let whole = Answer::json(200, &chat_reply(&long, "length", (1, 1)));
    let stream = Answer::sse(chat_stream(&[&long, "end"], "length"));
    let (whole_bytes, stream_bytes) = (whole.body(), stream.body());
    let endmark = Endmark::start_with(Script::new().then(whole).then(stream), |settings| {
        settings.limits.held_bytes = 2_000;
        settings.resume.mode = endmark_gateway::ResumeMode::On;
    })
    .await;
    assert_eq!(endmark.ask(&request(50)).await.body, whole_bytes);
    assert_eq!(endmark.ask(&stream_request(50)).await.body, stream_bytes);
}

#[tokio::test]
async fn the_total_timeout_ends_awaited_and_flowing_replies() {
    let script = Script::new()
        .then(Answer::json(200, &chat_reply("late", "stop", (1, 1))).wait(Duration::from_secs(20)))
        .default_answer(Answer::sse(chat_stream(&["a"; 200], "stop")).pause(Duration::from_millis(200)));
    let endmark = Endmark::start_with(script, |settings| {
        settings.limits.total = Duration::from_secs(1);
        settings.retry.max_retries = 0;
    })
    .await;
    let reply = endmark.ask(&request(50)).await;
    assert_eq!(reply.status, 504);
    assert_eq!(reply.json()["error"]["type"], "endmark_took_too_long");
    let reply = read_stream(&endmark.ask(&stream_request(50)).await);
    assert!(!reply.is_done, "{reply:?}");
    // The message names the gateway's limit, and does not blame the upstream.
    let response = reply.error.unwrap()["message"].to_string();
    assert!(response.contains("[limits] total_seconds") && !response.contains("broke off"), "{response}");
    let calls = endmark.calls();
    let passed = Request::get(endmark.address, "/v1/models").try_send().await.unwrap().read().await;
    assert!(!passed.is_complete, "it ended as if it were whole");
    assert_eq!(calls, 2, "nothing more is asked once there is no time for it");
}

#[tokio::test]
async fn a_silent_upstream_on_another_path_times_out() {
    let endmark = Endmark::start_with(
        Script::new().default_answer(Answer::new(200, "text/plain", "0123456789").stall_after(5)),
        |settings| settings.limits.idle = SHORT_TIMEOUT,
    )
    .await;
    let passed = Request::get(endmark.address, "/v1/models").send().await.read().await;
    assert!(!passed.is_complete, "it ended as if it were whole");
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_dropped_with_its_upstream_call() {
    let part = "x".repeat(64 * 1024);
    let parts = vec![part.as_str(); 1_000];
    let endmark = Endmark::start_with(
        Script::new().default_answer(Answer::sse(chat_stream(&parts, "stop"))),
        |settings| {
            settings.limits.unread = SHORT_TIMEOUT;
        },
    )
    .await;
    for path in ["/v1/chat/completions", "/v1/other"] {
        let body = stream_request(50).to_string();
        let mut raw = Raw::connect(endmark.address).await;
        raw.send(format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
        raw.read_until("\r\n\r\n").await;
        let outcome = endmark.upstream.wait_for_outcome(endmark.calls() - 1).await;
        assert_ne!(outcome, testkit::ResponseOutcome::Delivered, "{path}: all of it was taken in");
    }
}

#[tokio::test]
async fn idle_connections_are_closed_for_new_ones_but_busy_ones_are_not() {
    let endmark = Endmark::start_with(slow_script(Duration::from_secs(1)), |settings| {
        settings.limits.connections = 3;
    })
    .await;
    let mut idle = Raw::connect(endmark.address).await;
    idle.send(HEALTH_REQUEST).await.read_until("}\n").await;
    let mut dripping = Raw::connect(endmark.address).await;
    dripping.send("GET / HTTP/1.1\r\n").await;
    let busy = tokio::spawn(endmark.chat(&request(5)).send());
    endmark.upstream.wait_for_requests(1).await;
    // All permits are in use, and two requests fit into the queue.
    let second = tokio::spawn(endmark.chat(&request(5)).send());
    endmark.upstream.wait_for_requests(2).await;
    assert_eq!(idle.read_rest().await, "");
    let third = tokio::spawn(endmark.chat(&request(5)).send());
    endmark.upstream.wait_for_requests(3).await;
    assert_eq!(parse_refusal(&dripping.read_rest().await), (408, "endmark_head_late".to_owned()));
    let none = answer(endmark.address, MODELS_REQUEST).await;
    assert_eq!(parse_refusal(&none), (503, "endmark_overloaded".to_owned()));
    assert!(none.contains("retry-after: 1\r\n"), "{none}");
    for served in [busy, second, third] {
        assert_eq!(served.await.unwrap().read().await.status, 200);
    }
}
