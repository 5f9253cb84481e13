//! `endmark store copy`: copies a store from one machine to several, and back.

use std::thread;
use std::time::Duration;

use endmark_store::{CallSettled, CallStarted, NoSecrets, Purpose, Reader, Store, StoreLocation, Tokens};
use serde_json::json;
use testkit::{Postgres, Request, ScriptedModel, Upstream};

use crate::log::call_record;
use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

fn configuration(store: &str, upstream: &Upstream) -> String {
    format!(
        "{store}\nrequire_key = true\n[upstreams.local]\nbase_url = \"{}\"\napi_key = \"upstream\"\n",
        upstream.base_url()
    )
}

async fn ask(served: &ServeProcess, key: &str) -> u16 {
    let body = json!({"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": "Count."}]});
    let request = Request::post(served.address, "/v1/chat/completions");
    request.header("authorization", &format!("Bearer {key}")).json(&body).send().await.read().await.status
}

#[test]
fn a_copy_to_postgresql_and_back_keeps_keys_and_budgets() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let place = TestFolder::new()
            .with_file("endmark.toml", configuration("store = \"sqlite:one.db\"", &upstream))
            .with_variable("SHARED", &postgres.url());
        let added = place.run(&["keys", "add", "alice", "--budget-tokens", "100000"]);
        let key = added.output.trim().to_owned();
        let served = ServeProcess::start(&place, &[]);
        for _ in 0..5 {
            assert_eq!(ask(&served, &key).await, 200);
        }
        let busy = place.run(&["store", "copy", "sqlite:one.db", "env:SHARED", "--json"]);
        assert_eq!((busy.code, busy.envelope()["error"]["code"].as_str()), (2, Some("store_in_use")));
        assert_eq!(served.stop("-TERM").0, Some(0));
        let run = place.run(&["store", "copy", "sqlite:one.db", "env:SHARED", "--json"]);
        assert_eq!(run.code, 0, "{} {}", run.output, run.errors);
        let data = run.envelope()["data"].clone();
        assert_eq!((&data["source"]["calls"], &data["source"]["keys"]), (&json!(5), &json!(1)));
        assert_eq!(data["source"], data["target"]);

        let shared = format!("store = \"{}\"\njournal = \"journal.db\"", postgres.url());
        let place = place.with_file("endmark.toml", configuration(&shared, &upstream));
        let spent = || postgres.query_number("SELECT spent FROM em_budgets WHERE scope = 'key'");
        let before = spent();
        assert_eq!(before, data["source"]["spent_tokens"].as_u64().unwrap());
        let served = ServeProcess::start(&place, &[]);
        assert_eq!(ask(&served, &key).await, 200);
        assert_eq!(served.stop("-TERM").0, Some(0));
        assert!(spent() > before, "the call counts in the budget that was copied");

        postgres.query("UPDATE em_budgets SET closed_by = 'em_1'");
        let run = place.run(&["store", "copy", "env:SHARED", "sqlite:back.db", "--json"]);
        let omitted = json!([{"what": "raised or closed budgets of sessions", "count": 1}]);
        assert_eq!(run.envelope()["data"]["left_out"], omitted, "{}", run.errors);
        let run = place.run(&["store", "copy", "env:SHARED", "sqlite:back.db"]);
        assert_eq!(run.code, 0, "{} {}", run.output, run.errors);
        assert!(run.output.contains("6 calls") && run.output.contains("1 keys"), "{}", run.output);
        let place = place.with_file("endmark.toml", configuration("store = \"sqlite:back.db\"", &upstream));
        let served = ServeProcess::start(&place, &[]);
        assert_eq!(ask(&served, &key).await, 200);
        assert_eq!(served.stop("-TERM").0, Some(0));
        let reader = Reader::open(&StoreLocation::sqlite(place.path().join("back.db"))).unwrap();
        let budget = reader.budgets().unwrap().into_iter().find(|row| row.scope == "key").unwrap();
        assert!(budget.spent > spent(), "the budget continues");
    });
}

#[test]
fn an_interrupted_copy_can_be_repeated_without_double_counts() {
    const COPIED_CALLS: u64 = 40_000;
    let Some(postgres) = Postgres::start() else { return };
    let place = TestFolder::new().with_variable("SHARED", &postgres.url());
    let location = StoreLocation::sqlite(place.path().join("one.db"));
    in_runtime(async move {
        let store = Store::open(&location).unwrap();
        let recorder = store.recorder(NoSecrets);
        for nth in 0..COPIED_CALLS {
            let started_ms = 1_790_000_000_000 + nth;
            let started =
                CallStarted { started_ms, ..call_record("m", &format!("em_{nth}"), 1, Purpose::Reply) };
            let open = recorder.open_call(started).await;
            open.settle(CallSettled {
                http_status: Some(200),
                ending: "clean".into(),
                tokens: Tokens { prompt: Some(1), output: Some(nth), ..Tokens::default() },
                ..CallSettled::default()
            });
        }
        store.close().await;
    });
    let arguments = ["store", "copy", "sqlite:one.db", "env:SHARED"];
    let count = || match postgres.query("SELECT to_regclass('em_usage') IS NOT NULL").as_str() {
        "t" => postgres.query_number("SELECT count(*) FROM em_usage"),
        _ => 0,
    };
    let mut copy = place.command(&arguments).spawn().unwrap();
    while count() == 0 {
        assert!(copy.try_wait().unwrap().is_none(), "it ended before it was killed");
        thread::sleep(Duration::from_millis(5));
    }
    copy.kill().unwrap();
    copy.wait().unwrap();
    let rows = count();
    assert!(rows > 0 && rows < COPIED_CALLS, "{rows}");
    let run = place.run(&arguments);
    assert_eq!(run.code, 0, "{} {}", run.output, run.errors);
    let sums = postgres.query("SELECT count(*), sum(prompt_tokens), sum(output_tokens) FROM em_usage");
    assert_eq!(sums, format!("{COPIED_CALLS}|{COPIED_CALLS}|{}", COPIED_CALLS * (COPIED_CALLS - 1) / 2));
}

#[test]
fn an_unreadable_store_location_is_explained() {
    let place = TestFolder::new();
    for (from, to, part) in [
        ("one.db", "sqlite:b.db", "`one.db` does not say where the store is"),
        ("env:MISSING", "sqlite:b.db", "the environment variable `MISSING` is not set"),
        ("sqlite:a.db", "sqlite:b.db", "one of the two must be a SQLite store"),
    ] {
        let run = place.run(&["store", "copy", from, to]);
        assert_eq!(run.code, 2);
        assert!(run.errors.contains(part), "{}", run.errors);
    }
}
