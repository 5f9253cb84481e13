//! A conversation can continue at any of several gateways, because they share capped outputs and summaries.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Postgres, Reply, Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};
use crate::shared::shared_folder;

const SETTINGS: &str = "[cap]\nmax_chars = 4_000\n[compact.window]\nenabled = true\ntrigger_tokens = 6_000\nbudget_tokens = 8_000\n";

async fn ask(address: SocketAddr, messages: &[Value]) -> Reply {
    let body = json!({"model": "m", "messages": messages});
    let request = Request::post(address, "/v1/chat/completions").header("authorization", "Bearer key");
    let reply = request.json(&body).send().await.read().await;
    assert_eq!(reply.status, 200, "{}", reply.json());
    reply
}

/// Returns the messages of a request that the upstream received.
fn received_messages(upstream: &Upstream, nth: usize) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&upstream.requests()[nth].body).unwrap();
    body["messages"].as_array().unwrap().clone()
}

/// Returns a conversation with one large tool result.
fn conversation_with_result(result: &str) -> Vec<Value> {
    vec![
        json!({"role": "user", "content": "Look into the log."}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}]}),
        json!({"role": "tool", "tool_call_id": "call_1", "content": result}),
    ]
}

fn log(marker: &str) -> String {
    let line = |text: String, line| text + &format!("{marker} {line} was served as usual within its time\n");
    (0..4_000).fold(String::new(), line)
}

/// Returns a conversation with `rounds` rounds.
fn conversation(task: &str, rounds: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": task})];
    for round in 0..rounds {
        let words = format!("Order A-{round} was looked at in detail, and its amount of {round}17 agrees. ");
        messages.push(json!({"role": "assistant", "content": words.repeat(12)}));
        messages.push(json!({"role": "user", "content": format!("Go on with step {round} of the list")}));
    }
    messages
}

/// Returns the handle in a capped result.
fn parse_handle(capped: &Value) -> String {
    let text = capped["content"].as_str().unwrap();
    let (_, rest) = text.split_once("endmark read ").unwrap();
    rest.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap().to_owned()
}

async fn read(address: SocketAddr, handle: &str, key: &str) -> Reply {
    let request = Request::get(address, &format!("/endmark/api/outputs/{handle}"));
    request.header("authorization", &format!("Bearer {key}")).send().await.read().await
}

const COUNT_OUTPUTS: &str = "SELECT count(*) FROM em_outputs WHERE bytes IS NOT NULL";
const COUNT_SUMMARIES: &str = "SELECT count(*) FROM em_compactions";

#[test]
fn an_output_capped_by_one_gateway_is_read_through_another() {
    let Some(mut postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("It is locked.")).await;
        let places = [(); 2].map(|()| shared_folder(&postgres, &upstream, SETTINGS));
        let [first, second] = [0, 1].map(|index: usize| ServeProcess::start(&places[index], &[]));
        let (text, mut messages) = (log("request"), conversation_with_result(&log("request")));
        let reply = ask(first.address, &messages).await;
        assert_eq!(reply.header("x-endmark-capped"), Some("1"));
        let capped = received_messages(&upstream, 0).remove(2);
        let named = parse_handle(&capped);
        postgres.wait_for_number(COUNT_OUTPUTS, 1).await;

        // Only the client itself can read the output: by HTTP, on a page and with a command.
        let part = read(second.address, &named, "key").await.json();
        assert_eq!(part["of_bytes"], text.len());
        assert!(text.starts_with(part["text"].as_str().unwrap()), "{part}");
        assert_eq!(read(second.address, &named, "other").await.status, 404);
        let page =
            Request::get(second.address, &format!("/endmark/outputs/{named}")).send().await.read().await;
        assert!(page.text().contains("request 0 was served"), "{}", page.text());
        let command = places[1].run(&["read", &named, "--lines", "4000:4000"]);
        assert_eq!(
            (command.code, command.output.contains("request 3999 was")),
            (0, true),
            "{}",
            command.errors
        );
        assert!(!command.errors.contains("NOT_NOTED"), "{}", command.errors);

        // The conversation continues at the other gateway with the same bytes.
        messages.extend([
            json!({"role": "assistant", "content": "It is locked."}),
            json!({"role": "user", "content": "Since when?"}),
        ]);
        ask(second.address, &messages).await;
        assert_eq!(received_messages(&upstream, 1)[2], capped);

        // Without the database, each gateway caps and reads its own outputs, and reports which ones may be
        // missing.
        postgres.stop();
        ask(first.address, &conversation_with_result(&log("later"))).await;
        let later = parse_handle(&received_messages(&upstream, 2)[2]);
        assert_eq!(read(first.address, &later, "key").await.status, 200);
        let unknown = read(second.address, &later, "key").await;
        assert_eq!(unknown.status, 503);
        assert!(unknown.text().contains("not known here"), "{}", unknown.text());
        let command = places[1].run(&["read", &later]);
        assert!(command.errors.contains("cannot be reached"), "{}", command.errors);
        // The gateway is killed right after its answer, and nothing is lost.
        first.kill();
        postgres.restart();
        let first = ServeProcess::start(&places[0], &[]);
        postgres.wait_for_number(COUNT_OUTPUTS, 2).await;
        let begin = Instant::now();
        while read(second.address, &later, "key").await.status != 200 {
            assert!(begin.elapsed() < Duration::from_secs(20), "the other gateway does not find it");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(postgres.query("SELECT count(*) FROM em_output_pieces"), "2");
        for served in [first, second] {
            assert_eq!(served.stop("-TERM").0, Some(0));
        }
    });
}

#[test]
fn a_conversation_condensed_by_one_gateway_continues_at_another() {
    let Some(mut postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("I see.")).await;
        let places: [TestFolder; 2] = [(); 2].map(|()| shared_folder(&postgres, &upstream, SETTINGS));
        let [first, second] = [0, 1].map(|index: usize| ServeProcess::start(&places[index], &[]));
        let condensed = ask(first.address, &conversation("Book the orders.", 40)).await;
        assert!(condensed.header("x-endmark-compacted").is_some());
        postgres.wait_for_number(COUNT_SUMMARIES, 1).await;
        // A conversation that is too short to be condensed needs no query.
        ask(second.address, &conversation("Book the orders.", 2)).await;
        let condensed = ask(second.address, &conversation("Book the orders.", 43)).await;
        let disclosed = condensed.header("x-endmark-compacted").unwrap().to_owned();
        let (before, after) = (received_messages(&upstream, 0), received_messages(&upstream, 2));
        assert_eq!(after[..before.len()], before, "the same bytes, and then the further turns");
        assert_eq!(after.len(), before.len() + 6);
        // The whole request, which the first gateway stored, can be read through the second.
        let (_, named) = disclosed.split_once("handle=").unwrap();
        assert_eq!(read(second.address, named, "key").await.status, 200, "{disclosed}");
        assert_eq!(postgres.query(COUNT_SUMMARIES), "1");

        // The second gateway condenses the conversation further, and then it returns to the first.
        ask(second.address, &conversation("Book the orders.", 90)).await;
        postgres.wait_for_number(COUNT_SUMMARIES, 2).await;
        ask(first.address, &conversation("Book the orders.", 91)).await;
        let (before, after) = (received_messages(&upstream, 3), received_messages(&upstream, 4));
        assert_eq!(after[..before.len()], before);

        postgres.stop();
        let alone = ask(second.address, &conversation("Check the orders.", 40)).await;
        assert!(alone.header("x-endmark-compacted").is_some(), "it is condensed without the database");
        for served in [first, second] {
            served.kill();
        }
    });
}
