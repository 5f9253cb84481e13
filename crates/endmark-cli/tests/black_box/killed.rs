//! A gateway is killed with many requests in flight. Each request has exactly one row.

use std::collections::BTreeMap;
use std::time::Duration;

use endmark_store::{Reader, Store, StoreLocation, UsageRow};
use serde_json::json;
use testkit::{Answer, ChatFrames, Fault, Request, Script, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

/// The variable that sets the number of kills. The default is three.
const KILLS_VARIABLE: &str = "ENDMARK_TEST_KILLS";

/// Number of requests in flight when the gateway is killed.
const REQUESTS_IN_FLIGHT: usize = 64;

fn body(session: &str, stream: bool) -> serde_json::Value {
    json!({"model": session, "stream": stream, "messages": [{"role": "user", "content": "Tell."}]})
}

/// Starts an upstream that answers some requests, begins to answer others, and sends nothing to the rest.
///
/// The name of the model selects the behaviour.
async fn start_upstream() -> Upstream {
    let frames = ChatFrames::new().text("one two three").finish("stop").done();
    let is = |word: &'static str| {
        move |request: &testkit::ReceivedRequest| {
            request.json()["model"].as_str().is_some_and(|model| model.starts_with(word))
        }
    };
    let script = Script::new()
        .when(is("done"), Answer::json(200, &testkit::chat_reply("Yes.", "stop", (3, 1))))
        .when(is("streamed"), Answer::sse(frames.clone()))
        .when(is("begun"), Answer::sse(frames).stall_after(120))
        .default_answer(Answer::without_status(Fault::Stall));
    Upstream::start(script).await
}

#[test]
fn every_request_of_a_killed_gateway_has_exactly_one_row() {
    let kills: usize = std::env::var(KILLS_VARIABLE).map_or(3, |kills| kills.parse().unwrap());
    in_runtime(async move {
        for kill in 0..kills {
            kill_once(Duration::from_micros(((kill as u64 * 7_919) % 40) * 1_000)).await;
        }
    });
}

async fn kill_once(wait: Duration) {
    let upstream = start_upstream().await;
    let place = TestFolder::new();
    let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
    let address = served.address;
    // After a complete reply the row must exist. A killed gateway gives no complete reply.
    let answered = |name: String, stream: bool| async move {
        let request = Request::post(address, "/v1/chat/completions").json(&body(&name, stream));
        let reply = request.try_send().await.ok()?.read().await;
        (reply.status == 200 && (!stream || reply.events().last().is_some_and(|last| last == "[DONE]")))
            .then_some(name)
    };
    let mut whole = Vec::new();
    for number in 0..8 {
        for (name, stream) in [("done", false), ("streamed", true)] {
            // These requests are answered before the kill.
            whole.push(answered(format!("{name}-{number}"), stream).await.unwrap());
        }
    }
    assert_eq!(whole.len(), 16);
    let waiting: Vec<_> = (0..REQUESTS_IN_FLIGHT)
        .map(|number| {
            let is_started = number % 2 == 0;
            let name = if is_started { format!("begun-{number}") } else { format!("silent-{number}") };
            tokio::spawn(async move {
                let request = Request::post(address, "/v1/chat/completions").json(&body(&name, is_started));
                // This request does not end by itself.
                if let Ok(reply) = request.try_send().await {
                    reply.read().await;
                }
            })
        })
        .collect();
    while upstream.requests().len() < 16 + REQUESTS_IN_FLIGHT {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // A few more requests begin and end during the kill.
    let passing: Vec<_> =
        (0..8).map(|number| tokio::spawn(answered(format!("done-late-{number}"), false))).collect();
    tokio::time::sleep(wait).await;
    served.kill();
    for late in passing {
        // Requests without a complete reply are not counted as answered.
        whole.extend(late.await.unwrap());
    }
    for waiting in waiting {
        waiting.abort();
    }

    let location = StoreLocation::sqlite(place.store());
    for _ in 0..2 {
        // After the second start, no call is left to settle.
        Store::open(&location).unwrap().close().await;
        check_rows(&Reader::open(&location).unwrap(), &whole, &upstream);
    }
}

fn check_rows(reader: &Reader, whole: &[String], upstream: &Upstream) {
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
    let mut rows: BTreeMap<String, Vec<UsageRow>> = BTreeMap::new();
    for row in reader.recent_calls(10_000).unwrap() {
        rows.entry(row.model.clone()).or_default().push(row);
    }
    for name in whole {
        let [row] = &rows[name][..] else { panic!("{name}: {:?}", rows[name]) };
        assert_eq!((row.ending.as_str(), row.verdict.as_deref()), ("clean", Some("whole")), "{name}");
    }
    // Each request that the upstream received has a row.
    for request in upstream.requests() {
        let requested_model = request.json()["model"].as_str().unwrap().to_owned();
        let found = rows.get(&requested_model).map_or(&[][..], |found| found);
        let [row] = found else { panic!("{requested_model} was asked for and has {} rows", found.len()) };
        if requested_model.starts_with("begun") || requested_model.starts_with("silent") {
            assert_eq!((row.ending.as_str(), &row.ended_at), ("interrupted", &None), "{requested_model}");
        }
    }
}
