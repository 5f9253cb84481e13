//! `usage` with PostgreSQL: every machine reports the calls of all gateways.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, Postgres, Request, Upstream, chat_reply};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};
use crate::shared::shared_folder;
use crate::usage::{SPECIALLY_BILLED_MODELS, specially_billed_replies, usage_row};

async fn ask(served: &ServeProcess, key: &str, model: &str) -> u16 {
    let body = json!({"model": model, "messages": [{"role": "user", "content": "Count."}]});
    let request = Request::post(served.address, "/v1/chat/completions");
    request.header("authorization", &format!("Bearer {key}")).json(&body).send().await.read().await.status
}

fn usage(place: &TestFolder, by: &str) -> Value {
    place.run(&["usage", "--by", by, "--json"]).envelope()
}

/// Returns the number of rows that the database does not have yet.
async fn unreported_rows(served: &ServeProcess) -> u64 {
    served.metric("endmark_store_rows_unreported").await
}

async fn wait_until(condition: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !condition().await {
        assert!(begin.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn every_machine_reports_the_costs_of_all_gateways() {
    let Some(mut postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let replies = specially_billed_replies().then(Answer::json(200, &chat_reply("One.", "stop", (1, 1))));
        let upstream = Upstream::start(replies).await;
        let places = [(); 2].map(|()| {
            let more = "require_key = true\nadmin_key = \"a-long-admin-key-0123456789\"\n[prices.mine]\ninput = 1\noutput = 0";
            shared_folder(&postgres, &upstream, more)
        });
        let keys =
            ["team-a", "team-b"].map(|name| places[0].run(&["keys", "add", name]).output.trim().to_owned());
        let served = [0, 1].map(|index| ServeProcess::start(&places[index], &[]));
        // Each gateway has calls of every key.
        for (nth, model) in SPECIALLY_BILLED_MODELS.iter().enumerate() {
            assert_eq!(ask(&served[nth % 2], &keys[nth / 3], model).await, 200);
        }
        let begin = Instant::now();
        while usage(&places[0], "model")["data"]["total"]["calls"] != 6 {
            assert!(begin.elapsed() < Duration::from_secs(10), "{}", usage(&places[0], "model"));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for place in &places {
            let answer = usage(place, "model");
            assert_eq!(
                (&answer["warnings"], &answer["data"]["this_gateway_alone"]),
                (&json!([]), &json!(false))
            );
            let data = &answer["data"];
            // As on one machine: the standard price, half of it for flex, and double for priority.
            assert_eq!(usage_row(data, "model", "gpt-5")["usd"], "0.005075000");
            assert_eq!(usage_row(data, "model", "gemini-2.5-flash")["usd"], "0.106050000");
            let mine = usage_row(data, "model", "mine");
            assert_eq!((&mine["usd"], &mine["unpriced_calls"]), (&Value::Null, &json!(1)));
            let by_key = usage(place, "key")["data"].clone();
            assert_eq!(usage_row(&by_key, "key", "key:team-a")["usd"], "0.005075000");
            assert_eq!(usage_row(&by_key, "key", "key:team-b")["usd_at_least"], "0.106050000");
            for by in ["key", "session", "day", "upstream", "purpose"] {
                assert_eq!(usage(place, by)["data"]["total"], data["total"], "{by}");
            }
        }
        for served in &served {
            let of_console = Request::get(served.address, "/endmark/api/usage?by=model&since=1d");
            let of_console = of_console
                .header("authorization", "Bearer a-long-admin-key-0123456789")
                .send()
                .await
                .read()
                .await;
            assert_eq!(of_console.json(), usage(&places[0], "model")["data"]);
        }
        // Without the database, each gateway reports its own calls, and a machine without a journal reports
        // none.
        postgres.stop();
        let alone = usage(&places[0], "model");
        assert_eq!(
            (&alone["data"]["total"]["calls"], &alone["data"]["this_gateway_alone"]),
            (&json!(3), &json!(true))
        );
        assert_eq!(alone["warnings"][0]["code"], "THIS_GATEWAY_ALONE", "{alone}");
        let page = Request::get(served[1].address, "/endmark/usage")
            .header("authorization", "Bearer a-long-admin-key-0123456789");
        let page = String::from_utf8(page.send().await.read().await.body).unwrap();
        assert!(page.contains("the calls of this gateway alone"), "{page}");
        let elsewhere = TestFolder::new().with_variable("ENDMARK_STORE", &postgres.url());
        let run = elsewhere.with_variable("ENDMARK_JOURNAL", "missing.db").run(&["usage"]);
        assert!(run.code != 0 && run.errors.contains("check that PostgreSQL runs there"), "{}", run.errors);
        // The gateway answers, keeps the row of the call, and counts it until the database has it.
        assert_eq!(unreported_rows(&served[1]).await, 0);
        assert_eq!(ask(&served[1], &keys[1], "mine").await, 200);
        wait_until(async || unreported_rows(&served[1]).await == 1).await;
        postgres.restart();
        wait_until(async || unreported_rows(&served[1]).await == 0).await;
        let elsewhere = TestFolder::new().with_variable("ENDMARK_STORE", &postgres.url());
        let elsewhere = elsewhere.with_variable("ENDMARK_JOURNAL", "missing.db");
        assert_eq!(usage(&elsewhere, "model")["data"]["total"]["calls"], 7);
    });
}
