//! Gateways that share a PostgreSQL database, while the network to it fails, a gateway is stopped, or all of
//! them are restarted. No budget is overspent, no row is lost or duplicated, and no stream is cut.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{
    Answer, ChatFrames, LinkState, Postgres, ReceivedRequest, Reply, Request, TcpProxy, Upstream, chat_reply,
};

use crate::serve::{ServeProcess, in_runtime};
use crate::shared::{AnsweredModels, check_accounts, load_gateways, number_from_variable, shared_folder_at};

/// The variable that sets how long the faults last, in seconds. The default is 2. More than 60 lets shares
/// expire.
const SECONDS_VARIABLE: &str = "ENDMARK_TEST_SHARED_FAULT_SECONDS";

/// The variable that sets the number of streams during the rolling restart.
const STREAMS_VARIABLE: &str = "ENDMARK_TEST_SHARED_STREAMS";

/// Starts an upstream whose streams have 43 events, with this pause before each.
async fn start_upstream(pause: Duration) -> Upstream {
    Upstream::start(move |request: &ReceivedRequest| {
        if request.json()["stream"] == true {
            let frames = (0..39).fold(ChatFrames::new(), |frames, _| frames.text("word "));
            Answer::sse(frames.finish("stop").usage((10, 10)).done()).pause(pause)
        } else {
            Answer::json(200, &chat_reply("one two", "stop", (10, 10)))
        }
    })
    .await
}

fn stream_request(address: SocketAddr, model: &str) -> Request {
    let body = json!({"model": model, "stream": true, "max_tokens": 20, "messages": [{"role": "user", "content": "Go."}]});
    Request::post(address, "/v1/chat/completions").header("authorization", "Bearer k").json(&body)
}

fn assert_whole(reply: &Reply) {
    let is_whole = reply.is_complete && reply.events().last().is_some_and(|event| event == "[DONE]");
    assert!(is_whole, "a stream was cut: {}", reply.text());
}

#[test]
fn partitions_and_outages_cause_no_overspend_and_cut_no_stream() {
    const LIMIT: u64 = 20_000;
    let seconds = number_from_variable(SECONDS_VARIABLE, 2);
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = start_upstream(Duration::from_millis(seconds * 30)).await;
        let proxies = [(); 4].map(|()| TcpProxy::start(postgres.port()));
        let places = proxies.each_ref().map(|proxy| {
            let url = format!("postgres://postgres@127.0.0.1:{}/endmark", proxy.port());
            shared_folder_at(&url, &upstream, &format!("[budget]\nday_tokens = {LIMIT}"))
        });
        let served = places.each_ref().map(|place| ServeProcess::start(place, &[]));
        let [frozen, cut, stopped, slow] = [0, 1, 2, 3];
        let replies = AnsweredModels::default();
        // Streams use the other gateways, because clients of a stopped gateway would give up.
        let mut streams = Vec::new();
        for at in [frozen, cut, slow] {
            let open = stream_request(served[at].address, &format!("stream-{at}")).send().await;
            assert_eq!(open.status, 200);
            streams.push(tokio::spawn(open.read()));
        }
        let loads = served
            .each_ref()
            .map(|served| tokio::spawn(load_gateways(vec![served.address], Arc::clone(&replies))));
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxies[frozen].set_link(LinkState::Frozen);
        proxies[cut].set_link(LinkState::Cut);
        served[stopped].signal("-STOP");
        proxies[slow].set_link(LinkState::Slow(Duration::from_millis(5)));
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        served[stopped].signal("-CONT");
        for proxy in &proxies {
            proxy.set_link(LinkState::Up);
        }
        for stream in streams {
            assert_whole(&stream.await.unwrap());
        }
        replies.lock().unwrap().extend([frozen, cut, slow].map(|at| format!("stream-{at}")));
        for load in loads {
            load.await.unwrap();
        }
        // Clients of the stopped gateway may have given up, so send requests again.
        load_gateways(vec![served[stopped].address], Arc::clone(&replies)).await;
        for served in served {
            let (code, said) = served.stop("-TERM");
            assert_eq!(code, Some(0), "{said}");
        }
        let spent = check_accounts(&postgres, &places, &replies, LIMIT);
        assert!(spent * 100 >= LIMIT * 99, "{spent} of {LIMIT}");
        println!(
            "faults of {seconds} s: {} replies, {spent} of {LIMIT} tokens",
            replies.lock().unwrap().len()
        );
    });
}

/// Reads one complete stream from the first gateway that accepts it, as a load balancer does.
async fn read_one_stream(addresses: Arc<Mutex<Vec<SocketAddr>>>, number: usize) -> String {
    let model = format!("stream-{number}");
    for attempt in number.. {
        let address = addresses.lock().unwrap()[attempt % 3];
        match stream_request(address, &model).try_send().await {
            Ok(open) if open.status == 200 => {
                let reply = open.read().await;
                assert_whole(&reply);
                return model;
            }
            // The gateway is stopping, has stopped, or has too many requests.
            Ok(open) => assert!(matches!(open.status, 503 | 429), "{}", open.read().await.text()),
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    model
}

#[test]
fn a_rolling_restart_cuts_no_stream_and_loses_no_row() {
    let streams = number_from_variable(STREAMS_VARIABLE, 60);
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = start_upstream(Duration::from_millis(45)).await;
        let places = [(); 3]
            .map(|()| shared_folder_at(&postgres.url(), &upstream, "[budget]\nday_tokens = 1_000_000"));
        let mut served = places.each_ref().map(|place| Some(ServeProcess::start(place, &[])));
        let addresses: Vec<_> = served.iter().flatten().map(|served| served.address).collect();
        let addresses = Arc::new(Mutex::new(addresses));
        // Half of the streams are in progress before the restarts, and the others begin during them.
        let reading: Vec<_> = (0..streams)
            .map(|number| {
                let (addresses, number) = (Arc::clone(&addresses), usize::try_from(number).unwrap());
                let delay =
                    Duration::from_millis(if number % 2 == 0 { 0 } else { number as u64 * 3_000 / streams });
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    read_one_stream(addresses, number).await
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let begin = Instant::now();
        for (at, place) in places.iter().enumerate() {
            let old = served[at].take().unwrap();
            let (code, said) = tokio::task::spawn_blocking(move || old.stop("-TERM")).await.unwrap();
            assert_eq!(code, Some(0), "{said}");
            let new = ServeProcess::start(place, &[]);
            addresses.lock().unwrap()[at] = new.address;
            served[at] = Some(new);
        }
        let restarted = begin.elapsed();
        let replies = AnsweredModels::default();
        for stream in reading {
            let model = stream.await.unwrap();
            replies.lock().unwrap().push(model);
        }
        for served in served.into_iter().flatten() {
            assert_eq!(served.stop("-TERM").0, Some(0));
        }
        assert_eq!(
            check_accounts(&postgres, &places, &replies, 1_000_000),
            streams * 20,
            "each stream is charged once"
        );
        println!("{streams} streams over three restarts in {restarted:?}: none cut");
    });
}
