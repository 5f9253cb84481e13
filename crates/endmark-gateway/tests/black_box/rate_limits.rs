//! Rate limits of keys: requests and tokens per minute, and concurrent requests. (CX-7)
#![expect(clippy::unwrap_used, reason = "tests fail by panicking, in their helpers too")]

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use endmark_context::Moment;
use endmark_context::budget::RateLimits;
use endmark_gateway::{Clock, Secret, Settings};
use endmark_store::{NewKey, StoreLocation};
use serde_json::{Value, json};
use testkit::{
    Answer, ModelFormat, ModelFormatAdapter, OpenReply, Postgres, ReceivedRequest, Reply, Request, Script,
    ScriptedModel, chat_reply,
};

use crate::support::wire_replies::Wire;
use crate::support::{Endmark, request, stream_request};

/// The tokens that the scripted upstream bills for each call.
const BILLED_TOKENS_PER_CALL: u64 = 30;

/// Seconds since 1970: 18 seconds after the start of a minute.
const START_SECONDS: u64 = 1_700_000_000 / 60 * 60 + 18;

/// Returns the headers of the request limit: the names of limit, rest and reset, and the expected reset
/// value.
fn request_limit_headers(wire: Wire) -> [&'static str; 4] {
    match wire {
        Wire::Other(ModelFormat::Messages) => [
            "anthropic-ratelimit-requests-limit",
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
            "2023-11-14T22:14:00Z",
        ],
        _ => [
            "x-ratelimit-limit-requests",
            "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests",
            "42s",
        ],
    }
}

/// Returns the field with the error's type in this format.
fn error_type(wire: Wire, body: &Value) -> &Value {
    match wire {
        Wire::Other(ModelFormat::Gemini) => &body["error"]["details"][0]["reason"],
        _ => &body["error"]["type"],
    }
}

fn good_answer() -> Answer {
    Answer::json(200, &chat_reply("Yes.", "stop", (20, BILLED_TOKENS_PER_CALL - 20)))
}

/// Returns a stream that does not end.
fn endless_answer() -> Answer {
    let event =
        |text: &str| json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}).to_string();
    Answer::sse([event("On"), event(" and"), event(" on")]).stall_after(60)
}

fn slow_request() -> Value {
    let mut body = stream_request(10);
    body["messages"][0]["content"] = json!("slow");
    body
}

fn is_slow(request: &ReceivedRequest) -> bool {
    String::from_utf8_lossy(&request.body).contains("slow")
}

fn with_rate_limits(change: impl FnOnce(&mut RateLimits)) -> impl FnOnce(&mut Settings) {
    let mut rates = RateLimits::default();
    change(&mut rates);
    move |settings| {
        settings.budget.rates = rates;
        settings.budget.assume_output_tokens = 10;
        settings.upstreams[0].api_key = Some(Secret::new("sk-upstream".to_owned()));
    }
}

thread_local! {
    /// The stopped clock, in seconds since 1970. A single-threaded test shares it with its gateway.
    static NOW: Cell<u64> = const { Cell::new(START_SECONDS) };
}

/// Stops the gateway's clock at [`START_SECONDS`].
fn stop_clock(settings: &mut Settings) {
    NOW.set(START_SECONDS);
    settings.budget.clock = Clock(|| Moment::from_unix_seconds(NOW.get()));
}

async fn ask(endmark: &Endmark, key: &str, body: &Value) -> Reply {
    open(endmark, key, body).await.read().await
}

async fn open(endmark: &Endmark, key: &str, body: &Value) -> OpenReply {
    let sent = Request::post(endmark.address, "/v1/chat/completions");
    sent.header("authorization", &format!("Bearer {key}")).json(body).send().await
}

fn remaining_header(reply: &Reply, unit: &str) -> u64 {
    let name = format!("x-ratelimit-remaining-{unit}");
    reply.header(&name).and_then(|left| left.parse().ok()).unwrap()
}

#[tokio::test]
async fn a_request_over_its_rate_is_refused_until_the_next_minute() {
    for wire in Wire::ALL {
        let model = || ScriptedModel::new("All of it.");
        let change = |settings: &mut Settings| {
            with_rate_limits(|rates| rates.requests_per_minute = Some(1_000))(settings);
            stop_clock(settings);
        };
        let endmark = match wire {
            Wire::Chat => Endmark::start_with(model(), change).await,
            Wire::Other(dialect) => {
                Endmark::start_with(ModelFormatAdapter::new(dialect, model()), change).await
            }
        };
        let own = RateLimits { requests_per_minute: Some(3), ..RateLimits::default() };
        let new = NewKey { name: "alice".to_owned(), rates: own, ..NewKey::default() };
        let secret = endmark.change_keys(async |book| book.add(new).await).await;
        let header = if wire == Wire::Other(ModelFormat::Gemini) { "x-goog-api-key" } else { "x-api-key" };
        let ask = async |stream: bool| {
            let prepared_request =
                Request::post(endmark.address, wire.path(stream)).json(&wire.request(stream));
            prepared_request.header(header, secret.reveal()).send().await.read().await
        };
        let [limit, left, reset, resets_at] = request_limit_headers(wire);
        for expected in ["2", "1", "0"] {
            let reply = ask(expected == "1").await;
            assert_eq!(reply.status, 200, "{wire:?}: {}", reply.text());
            assert_eq!(
                (reply.header(limit), reply.header(left), reply.header(reset)),
                (Some("3"), Some(expected), Some(resets_at)),
                "{wire:?}"
            );
        }
        for stream in [false, true] {
            let refused = ask(stream).await;
            assert_eq!(refused.status, 429, "{wire:?}: {}", refused.text());
            let body = refused.json();
            assert_eq!(error_type(wire, &body), "endmark_rate_limited", "{wire:?}: {body}");
            assert_eq!(body["endmark"]["unit"], "requests", "{body}");
            assert!(refused.text().contains("the key alice is 3 requests a minute"), "{}", refused.text());
            assert_eq!(
                (refused.header("retry-after"), refused.header("x-should-retry")),
                (Some("42"), Some("true"))
            );
            assert_eq!((refused.header(limit), refused.header(left)), (Some("3"), Some("0")), "{wire:?}");
        }
        assert_eq!(endmark.calls(), 3, "{wire:?}");
        NOW.set(START_SECONDS + 42);
        assert_eq!(ask(false).await.header(left), Some("2"), "{wire:?}");
    }
}

#[tokio::test]
async fn minute_tokens_are_held_and_then_settled() {
    const LIMIT: u64 = 1_000;
    let endmark = Endmark::start_with(Script::new().default_answer(good_answer()), |settings| {
        with_rate_limits(|rates| rates.tokens_per_minute = Some(LIMIT))(settings);
        stop_clock(settings);
    })
    .await;
    let first = ask(&endmark, "k", &request(10)).await;
    let held = LIMIT - remaining_header(&first, "tokens");
    assert!(held > BILLED_TOKENS_PER_CALL, "the estimate and the output limit are held: {held}");
    let mut calls = 1;
    let refused = loop {
        let reply = ask(&endmark, "k", &request(10)).await;
        if reply.status != 200 {
            break reply;
        }
        calls += 1;
        assert!(calls < LIMIT, "it is never refused");
    };
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.json()["endmark"]["unit"], "tokens");
    assert!(
        calls * BILLED_TOKENS_PER_CALL <= LIMIT && (calls + 2) * BILLED_TOKENS_PER_CALL + held > LIMIT,
        "{calls}"
    );
    // Another client has its own limit.
    assert_eq!(ask(&endmark, "other", &request(10)).await.status, 200);
    let too_large = ask(&endmark, "other", &request(LIMIT)).await;
    assert_eq!((too_large.status, too_large.header("retry-after")), (429, None), "{}", too_large.text());
    assert_eq!(too_large.header("x-should-retry"), Some("false"));
    NOW.set(START_SECONDS + 60);
    let next = ask(&endmark, "k", &request(10)).await;
    assert_eq!(next.status, 200);
    assert!(remaining_header(&next, "tokens") > LIMIT / 2);
}

#[tokio::test]
async fn the_tighter_of_two_rate_limits_is_shown() {
    let of_upstream = |left: &str| {
        good_answer()
            .header("x-ratelimit-limit-requests", "10000")
            .header("x-ratelimit-remaining-requests", left)
            .header("x-ratelimit-reset-requests", "6m0s")
    };
    let script = Script::new().then(of_upstream("9000")).then(of_upstream("3")).default_answer(good_answer());
    let endmark = Endmark::start_with(script, |settings| {
        with_rate_limits(|rates| rates.requests_per_minute = Some(10))(settings);
        stop_clock(settings);
    })
    .await;
    let shown = async || {
        let reply = ask(&endmark, "k", &request(10)).await;
        request_limit_headers(Wire::Chat)[..3]
            .iter()
            .map(|name| reply.header(name).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(shown().await, ["10", "9", "42s"]);
    assert_eq!(shown().await, ["10000", "3", "6m0s"]);
    assert_eq!(shown().await, ["10", "7", "42s"]);
}

#[tokio::test]
async fn an_answer_without_a_rate_limit_has_no_rate_header() {
    let endmark = Endmark::start(Script::new().default_answer(good_answer())).await;
    let reply = ask(&endmark, "k", &request(10)).await;
    assert!(reply.headers.iter().all(|(name, _)| !name.contains("ratelimit")), "{:?}", reply.headers);
    let embedded =
        Request::post(endmark.address, "/v1/embeddings").json(&json!({"model": "m", "input": "a"}));
    let embedded = embedded.send().await.read().await;
    assert!(embedded.headers.iter().all(|(name, _)| !name.contains("ratelimit")), "{:?}", embedded.headers);
}

#[tokio::test]
async fn concurrent_requests_are_limited_and_free_their_slots() {
    let script = Script::new().when(is_slow, endless_answer()).default_answer(good_answer());
    let endmark = Endmark::start_with(script, with_rate_limits(|rates| rates.parallel = Some(2))).await;
    // Sequential requests use one slot after each other.
    for _ in 0..8 {
        assert_eq!(ask(&endmark, "k", &request(10)).await.status, 200);
    }
    let (first, second) =
        (open(&endmark, "k", &slow_request()).await, open(&endmark, "k", &slow_request()).await);
    assert_eq!((first.status, second.status), (200, 200));
    let refused = ask(&endmark, "k", &request(10)).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{}", refused.text());
    assert!(refused.text().contains("is 2 requests at once"), "{}", refused.text());
    assert_eq!(refused.json()["endmark"]["unit"], "parallel");
    assert_eq!(ask(&endmark, "other", &request(10)).await.status, 200, "another client");
    first.reset();
    assert_eq!(ask_until_admitted(&endmark, &request(10)).await, 200, "a client left");
    let embedded = Request::post(endmark.address, "/v1/embeddings").header("authorization", "Bearer k");
    let embedded = embedded.json(&json!({"model": "m", "input": "a"})).send().await.read().await;
    assert_eq!(embedded.status, 200, "{}", embedded.text());
    assert_eq!(ask(&endmark, "k", &request(10)).await.status, 200, "the answer before is over");
    second.reset();
}

/// Asks up to 20 times, until a request is admitted. Returns the last status.
async fn ask_until_admitted(endmark: &Endmark, body: &Value) -> u16 {
    for _ in 0..20 {
        let status = ask(endmark, "k", body).await.status;
        if status != 429 {
            return status;
        }
    }
    429
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_gateways_share_one_rate_limit() {
    static NOW: AtomicU64 = AtomicU64::new(START_SECONDS);
    const LIMIT: u64 = 40;
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut gateways = Vec::new();
    for name in ["a.db", "b.db"] {
        let location = StoreLocation::parse(&postgres.url()).unwrap().with_journal(folder.path().join(name));
        let script = Script::new().default_answer(good_answer().wait(Duration::from_millis(20)));
        let change = |settings: &mut Settings| {
            with_rate_limits(|rates| {
                rates.requests_per_minute = Some(LIMIT);
                rates.parallel = Some(LIMIT);
            })(settings);
            settings.budget.clock = Clock(|| Moment::from_unix_seconds(NOW.load(Ordering::Relaxed)));
        };
        gateways.push(Endmark::start_on(&location, script, change).await);
    }
    for minute in 0..3 {
        NOW.store(START_SECONDS + minute * 1_200, Ordering::Relaxed);
        let mut prepared_request = Vec::new();
        for _ in 0..LIMIT {
            for endmark in &gateways {
                prepared_request.push(tokio::spawn(endmark.ask_later(&request(10))));
            }
        }
        let mut admitted = 0;
        for reply in prepared_request {
            let reply = reply.await.unwrap();
            assert!(matches!(reply.status, 200 | 429), "{}", reply.text());
            admitted += u64::from(reply.status == 200);
        }
        // A request may be refused while another request of its key is in progress, so it is repeated.
        for _ in 0..20 {
            admitted += u64::from(gateways[0].ask(&request(10)).await.status == 200);
        }
        assert_eq!(admitted, LIMIT, "minute {minute}");
    }
    // The gateways delete the rows of old windows. In this test, a gateway may return its share of an old
    // window later, so that the row exists until the next window. With real minutes, all shares are returned
    // in time.
    let is_gone = |table| {
        let rows = format!("SELECT count(*) FROM {table} WHERE scope = 'rate' AND span = '2023-11-14T22:13'");
        postgres.query(&rows) == "0"
    };
    for _ in 0..100 {
        NOW.fetch_add(1_200, Ordering::Relaxed);
        gateways[0].ask(&request(10)).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        if ["em_budgets", "em_shares"].into_iter().all(is_gone) {
            return;
        }
    }
    panic!("the first window is still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_gateways_share_the_slots_of_a_key() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut gateways = Vec::new();
    for name in ["a.db", "b.db"] {
        let location = StoreLocation::parse(&postgres.url()).unwrap().with_journal(folder.path().join(name));
        let script = Script::new().when(is_slow, endless_answer()).default_answer(good_answer());
        gateways.push(
            Endmark::start_on(&location, script, with_rate_limits(|rates| rates.parallel = Some(4))).await,
        );
    }
    let mut streams = Vec::new();
    for endmark in gateways.iter().cycle().take(4) {
        let stream = open(endmark, "k", &slow_request()).await;
        assert_eq!(stream.status, 200);
        streams.push(stream);
    }
    for endmark in &gateways {
        assert_eq!(ask(endmark, "k", &request(10)).await.status, 429);
    }
    // Gateways return unused shares within this time. Calls in progress keep their slots.
    tokio::time::sleep(Duration::from_secs(1)).await;
    streams.remove(0).reset();
    assert_eq!(
        ask_until_admitted(&gateways[1], &request(10)).await,
        200,
        "the other gateway gave its place back"
    );
}

over_postgresql! {
    "rate_limits.rs":
    a_request_over_its_rate_is_refused_until_the_next_minute,
    minute_tokens_are_held_and_then_settled,
    the_tighter_of_two_rate_limits_is_shown,
    an_answer_without_a_rate_limit_has_no_rate_header,
    concurrent_requests_are_limited_and_free_their_slots,
    ;
    alone:
    two_gateways_share_one_rate_limit: "it starts gateways over PostgreSQL itself",
    two_gateways_share_the_slots_of_a_key: "it starts gateways over PostgreSQL itself",
}
