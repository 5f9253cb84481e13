//! Retries before a reply has begun: within a budget, and as the upstream requests.

use std::time::{Duration, Instant};

use testkit::{Answer, ChatFrames, Fault, ReceivedRequest, Script, chat_reply};

use crate::support::{Endmark, read_stream, request, stream_request, text};

fn good_answer() -> Answer {
    Answer::json(200, &chat_reply("Yes.", "stop", (1, 1)))
}

#[tokio::test]
async fn a_gateway_error_contains_the_logged_request_id() {
    let endmark =
        Endmark::start(Script::new().default_answer(Answer::new(200, "text/html", "<html>a page</html>")))
            .await;
    let reply = endmark.ask(&request(50)).await;
    assert_eq!(
        (reply.status, reply.json()["error"]["type"].as_str()),
        (502, Some("endmark_upstream_not_an_api"))
    );
    let id = reply.header("x-endmark-request").unwrap();
    for _ in 0..200 {
        let rows = endmark.store.reader().unwrap().recent_calls(9).unwrap();
        if let Some(row) = rows.first() {
            assert_eq!(row.request_id, id);
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    unreachable!("the call has no row");
}

#[tokio::test]
async fn an_unanswered_request_is_retried_and_disclosed() {
    for failure in
        [Answer::without_status(Fault::Reset), Answer::without_status(Fault::Close), Answer::server_error()]
    {
        let endmark = Endmark::start(Script::new().then(failure).default_answer(good_answer())).await;
        let reply = endmark.ask(&request(50)).await;
        assert_eq!(text(&reply), "Yes.");
        assert_eq!(reply.header("x-endmark-retries"), Some("1"));
        let sent = endmark.upstream.requests();
        assert_eq!(sent[0].body, sent[1].body, "the same bytes");
    }
}

#[tokio::test]
async fn a_short_retry_after_is_waited_for_and_a_long_one_is_returned() {
    let endmark =
        Endmark::start(Script::new().then(Answer::rate_limited(1)).default_answer(good_answer())).await;
    assert_eq!(text(&endmark.ask(&request(50)).await), "Yes.");
    let sent = endmark.upstream.requests();
    assert!(sent[1].received_at - sent[0].received_at >= Duration::from_secs(1));

    let endmark = Endmark::start(Script::new().default_answer(Answer::rate_limited(60))).await;
    let started = Instant::now();
    let reply = endmark.ask(&request(50)).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("60")));
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(endmark.calls(), 1);
}

#[tokio::test]
async fn a_retry_after_date_is_compared_with_the_upstreams_clock() {
    let busy = |moment: &str| {
        Answer::error(503, "server_error", None, "overloaded")
            .header("date", "Sun, 06 Nov 1994 08:49:37 GMT")
            .header("retry-after", moment)
    };
    let soon = busy("Sun, 06 Nov 1994 08:49:38 GMT");
    let endmark = Endmark::start(Script::new().then(soon).default_answer(good_answer())).await;
    assert_eq!(text(&endmark.ask(&request(50)).await), "Yes.");
    let sent = endmark.upstream.requests();
    assert!(sent[1].received_at - sent[0].received_at >= Duration::from_secs(1));

    let late = busy("Sun, 06 Nov 1994 08:59:37 GMT");
    let endmark = Endmark::start(Script::new().default_answer(late)).await;
    assert_eq!(endmark.ask(&request(50)).await.status, 503);
    assert_eq!(endmark.calls(), 1);
}

#[tokio::test]
async fn a_request_is_not_retried_with_an_exhausted_account() {
    let used_up = Answer::error(429, "insufficient_quota", Some("insufficient_quota"), "check your plan");
    let endmark = Endmark::start(Script::new().default_answer(used_up)).await;
    assert_eq!(endmark.ask(&request(50)).await.status, 429);
    assert_eq!(endmark.calls(), 1);
}

/// A retry is safe, because the client has received nothing. It is useful, because many client libraries do not retry.
#[tokio::test]
async fn a_broken_unstreamed_reply_is_retried() {
    let whole = good_answer();
    let half = whole.body().len() / 2;
    for fault in [Fault::Reset, Fault::Close] {
        let endmark = Endmark::start(
            Script::new().then(good_answer().fault(half, fault)).default_answer(good_answer()),
        )
        .await;
        let reply = endmark.ask(&request(50)).await;
        assert_eq!((text(&reply).as_str(), reply.header("x-endmark-retries")), ("Yes.", Some("1")));
        assert_eq!(endmark.calls(), 2);

        let endmark = Endmark::start(Script::new().default_answer(good_answer().fault(half, fault))).await;
        let reply = endmark.ask(&request(50)).await;
        assert_eq!(reply.status, 502);
        assert_eq!(reply.json()["error"]["type"], "endmark_upstream_answer_lost");
        assert_eq!(endmark.calls(), 3);
    }
}

/// The gateway requests the rest instead. This request contains the received text, so only the missing part
/// is paid for again.
#[tokio::test]
async fn a_started_stream_is_never_repeated() {
    let cut = Answer::sse(ChatFrames::new().text("The harbour ").text("was").cut());
    let rest = Answer::sse(testkit::chat_stream(&[" quiet."], "stop"));
    let endmark = Endmark::start(Script::new().then(cut).default_answer(rest)).await;
    let read = read_stream(&endmark.ask(&stream_request(50)).await);
    assert_eq!(read.text, "The harbour was quiet.");
    let sent = endmark.upstream.requests();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1].json()["messages"][1]["content"], "The harbour was");
}

#[tokio::test]
async fn a_failing_upstream_is_not_flooded_with_retries() {
    let down = |_: &ReceivedRequest| Answer::error(503, "server_error", None, "overloaded");
    let endmark = Endmark::start_with(down, |settings| {
        settings.retry.budget_percent = 20;
        settings.retry.budget_per_second = 0;
    })
    .await;
    let started = (0..50).map(|_| endmark.chat(&request(5)).send());
    for reply in started.collect::<Vec<_>>() {
        assert_eq!(reply.await.read().await.status, 503);
    }
    // Retries are limited to 20 % of the requests so far.
    assert!((51..=60).contains(&endmark.calls()), "{}", endmark.calls());
}

#[tokio::test]
async fn upstream_retry_instructions_are_followed() {
    let refused =
        |status, word| Answer::error(status, "server_error", None, "no").header("x-should-retry", word);
    for (answer, calls) in [(refused(503, "false"), 1), (refused(409, "true"), 2)] {
        let endmark = Endmark::start(Script::new().then(answer).default_answer(good_answer())).await;
        endmark.ask(&request(50)).await;
        assert_eq!(endmark.calls(), calls);
    }
    let busy = Answer::error(429, "rate_limit", None, "no")
        .header("retry-after-ms", "700")
        .header("retry-after", "60");
    let endmark = Endmark::start(Script::new().then(busy).default_answer(good_answer())).await;
    assert_eq!(text(&endmark.ask(&request(50)).await), "Yes.");
    let sent = endmark.upstream.requests();
    assert!(sent[1].received_at - sent[0].received_at >= Duration::from_millis(700));
}

/// A request that is already a retry by the client is not retried again. Otherwise three attempts would
/// become nine.
#[tokio::test]
async fn a_retry_by_the_client_is_not_multiplied() {
    let down = |_: &ReceivedRequest| Answer::error(503, "server_error", None, "overloaded");
    let endmark = Endmark::start(down).await;
    for count in ["0", "1", "2"] {
        let request = endmark.chat(&request(5)).header("x-stainless-retry-count", count);
        assert_eq!(request.send().await.read().await.status, 503);
    }
    assert_eq!(endmark.calls(), 3 + 1 + 1);
}

#[tokio::test]
async fn client_retries_use_up_the_retry_budget() {
    let down = |_: &ReceivedRequest| Answer::error(503, "server_error", None, "overloaded");
    let endmark = Endmark::start_with(down, |settings| {
        settings.retry.budget_percent = 50;
        settings.retry.budget_per_second = 0;
    })
    .await;
    for _ in 0..4 {
        let request = endmark.chat(&request(5)).header("x-stainless-retry-count", "1");
        request.send().await.read().await;
    }
    // The budget allows retries for half of the requests, and the client's own retries have used it up.
    for _ in 0..4 {
        endmark.ask(&request(5)).await;
    }
    assert_eq!(endmark.calls(), 8);
}
