//! `serve --fault`: injects faults that either Endmark or the client must handle.

use serde_json::{Value, json};
use testkit::{PrefillBehaviour, Reply, Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const TEXT: &str = "one two three four five six seven eight nine ten";

async fn model() -> Upstream {
    Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await
}

fn start(place: &TestFolder, upstream: &Upstream, faults: &[&str]) -> ServeProcess {
    ServeProcess::start(place, &[&["--upstream", &upstream.base_url(), "--fault"], faults].concat())
}

async fn ask(served: &ServeProcess, stream: bool) -> Reply {
    let body = json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Count."}]});
    Request::post(served.address, "/v1/chat/completions").json(&body).send().await.read().await
}

fn text(reply: &Reply) -> String {
    let piece = |event: &Value| event["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned();
    reply.json_events().iter().map(piece).collect()
}

#[test]
fn faults_between_endmark_and_the_upstream_are_recovered() {
    in_runtime(async {
        let (upstream, place) = (model().await, TestFolder::new());
        for fault in ["cut@3", "drop@4", "reset@200b", "end@4", "error@5", "malformed@4", "503"] {
            let served = start(&place, &upstream, &[fault]);
            let reply = ask(&served, true).await;
            assert_eq!(reply.header("x-endmark-fault"), Some(fault));
            assert_eq!(text(&reply), TEXT, "{fault}");
            assert_eq!(reply.events().last().map(String::as_str), Some("[DONE]"), "{fault}");
            served.stop("-TERM");
        }
        let served = start(&place, &upstream, &["cut@3", "--fault-seed", "7"]);
        let reply = ask(&served, false).await;
        assert_eq!(reply.json()["choices"][0]["message"]["content"], TEXT);
        assert_eq!(reply.header("x-endmark-outcome"), Some("resumed"));
        let (code, said) = served.stop("-TERM");
        assert_eq!(code, Some(0));
        assert!(said.contains("REHEARSAL") && said.contains("--fault-seed 7"), "{said}");
    });
}

#[test]
fn faults_on_every_call_are_unrecoverable_and_disclosed() {
    in_runtime(async {
        let (upstream, place) = (model().await, TestFolder::new());
        let served = start(&place, &upstream, &["cut@3@always"]);
        let reply = ask(&served, false).await;
        assert_ne!(reply.json()["choices"][0]["message"]["content"], TEXT);
        assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"));
        served.stop("-TERM");
    });
}

#[test]
fn faults_between_endmark_and_the_client_reach_the_client() {
    in_runtime(async {
        let (upstream, place) = (model().await, TestFolder::new());
        let served = start(&place, &upstream, &["drop@4", "--fault-side", "client"]);
        let reply = ask(&served, true).await;
        assert!(!reply.is_complete, "{}", reply.text());
        assert!(TEXT.starts_with(&text(&reply)) && text(&reply) != TEXT, "{}", reply.text());
        served.stop("-TERM");

        let request_count = upstream.requests().len();
        let served = start(&place, &upstream, &["429@2s", "--fault-side", "client"]);
        let reply = ask(&served, false).await;
        assert_eq!((reply.status, reply.header("retry-after")), (429, Some("2")));
        assert_eq!(reply.json()["error"]["type"], "endmark_rehearsed_fault");
        assert_eq!(upstream.requests().len(), request_count, "no model is asked");
        served.stop("-TERM");
    });
}

#[test]
fn an_invalid_fault_is_refused_before_the_start() {
    for (arguments, part) in [
        (&["--fault", "explode@3"][..], "cut@20,drop@10%"),
        (&["--fault", "cut@60%,drop@50%"], "more than 100%"),
        (&["--fault", "cut", "--fault-side", "both"], "use upstream"),
        (&["--fault-seed", "7"], "--fault"),
    ] {
        let ran = TestFolder::new().run(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.errors);
        assert!(ran.errors.contains(part), "{arguments:?}: {}", ran.errors);
    }
}

#[test]
fn fault_injection_continues_after_a_reload() {
    in_runtime(async {
        let upstream = model().await;
        let file = format!("[upstreams.local]\nbase_url = \"{}\"\n", upstream.base_url());
        let mut struck = Vec::new();
        for is_reloaded in [false, true] {
            let place = TestFolder::new().with_file("endmark.toml", file.clone());
            let mut served = ServeProcess::start(&place, &["--fault", "503@50%", "--fault-seed", "7"]);
            let mut faults = Vec::new();
            for number in 0..16 {
                if is_reloaded && number == 5 {
                    served.signal("-HUP");
                    served.wait_for_line("was reloaded");
                }
                faults.push(ask(&served, false).await.header("x-endmark-fault").is_some());
            }
            served.stop("-TERM");
            struck.push(faults);
        }
        assert_eq!(struck[0], struck[1]);
        assert!(struck[0].contains(&true) && struck[0].contains(&false), "{struck:?}");
    });
}
