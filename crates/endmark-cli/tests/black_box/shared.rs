//! Gateway processes that share a PostgreSQL database: one budget, one set of keys, and every row once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use endmark_store::{Reader, StoreLocation};
use serde_json::json;
use testkit::{Postgres, Reply, Request, ScriptedModel, Upstream};

use crate::run::Place;
use crate::serve::{Served, in_runtime};

/// The variable that sets how often an instance is killed in the budget test; the default is once.
const KILLS: &str = "ENDMARK_TEST_SHARED_KILLS";

/// A folder whose gateway shares the database.
fn place(postgres: &Postgres, upstream: &Upstream, more: &str) -> Place {
    let text = format!(
        "store = \"{}\"\njournal = \"journal.db\"\n{more}\n[cap]\nenabled = false\n[compact.emergency]\nenabled = false\n\
         [upstreams.local]\nbase_url = \"{}\"\napi_key = \"upstream\"\n",
        postgres.url(),
        upstream.base_url(),
    );
    Place::new().with_file("endmark.toml", text)
}

async fn ask(served: &Served, session: &str, key: &str) -> Option<Reply> {
    ask_at(served.address, session, key).await
}

async fn ask_at(address: std::net::SocketAddr, session: &str, key: &str) -> Option<Reply> {
    let body = json!({"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": "Count."}]});
    let request = Request::post(address, "/v1/chat/completions").header("x-endmark-session", session);
    let request = request.header("authorization", &format!("Bearer {key}")).json(&body);
    Some(request.try_send().await.ok()?.read().await)
}

fn number(postgres: &Postgres, sql: &str) -> u64 {
    postgres.query(sql).parse().unwrap()
}

fn journal(place: &Place) -> Reader {
    Reader::open(&StoreLocation::sqlite(place.path().join("journal.db"))).unwrap()
}

/// Sends requests until a budget refuses, and counts the replies. Ends early if the gateway is killed.
async fn ask_until_refused(address: std::net::SocketAddr, task: usize, replies: Arc<AtomicU64>) {
    loop {
        match ask_at(address, &format!("s{task}"), "k").await.map(|reply| reply.status) {
            Some(200) => replies.fetch_add(1, Ordering::Relaxed),
            // Other instances hold the rest for now.
            Some(429) => 0,
            None | Some(402) => return,
            Some(other) => panic!("{other}"),
        };
    }
}

async fn load(served: &[&Served], replies: &Arc<AtomicU64>) {
    let mut running = Vec::new();
    for served in served {
        for task in 0..6 {
            running.push(tokio::spawn(ask_until_refused(served.address, task, Arc::clone(replies))));
        }
    }
    for task in running {
        task.await.unwrap();
    }
}

#[test]
fn two_gateways_spend_one_budget_exactly_though_one_is_killed() {
    const LIMIT: u64 = 6_000;
    let kills: usize = std::env::var(KILLS).map_or(1, |kills| kills.parse().unwrap());
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let budget = format!("[budget]\nday_tokens = {LIMIT}");
        let places = [(); 2].map(|()| place(&postgres, &upstream, &budget));
        let replies = Arc::new(AtomicU64::new(0));
        let first = Served::start(&places[0], &[]);
        for kill in 0..kills {
            let second = Served::start(&places[1], &[]);
            let address = second.address;
            let under_load = tokio::spawn({
                let replies = Arc::clone(&replies);
                async move {
                    let tasks = (0..6).map(|task| ask_until_refused(address, task, Arc::clone(&replies)));
                    let tasks: Vec<_> = tasks.map(tokio::spawn).collect();
                    for task in tasks {
                        task.await.unwrap();
                    }
                }
            });
            tokio::time::sleep(Duration::from_millis(150 + (kill as u64 * 37) % 200)).await;
            second.kill();
            under_load.await.unwrap();
        }
        let second = Served::start(&places[1], &[]);
        load(&[&first, &second], &replies).await;
        for served in [first, second] {
            assert_eq!(served.end("-TERM").0, Some(0));
        }
        let spent = number(&postgres, "SELECT spent FROM em_budgets WHERE scope = 'all'");
        assert!(spent <= LIMIT && spent * 100 >= LIMIT * 97, "{spent} of {LIMIT}");
        assert_eq!(number(&postgres, "SELECT committed FROM em_budgets WHERE scope = 'all'"), spent);
        let of_journals = |place: &Place| {
            let rows = journal(place).budgets().unwrap();
            rows.iter().filter(|row| row.scope == "all").map(|row| row.spent).sum::<u64>()
        };
        assert_eq!(places.iter().map(of_journals).sum::<u64>(), spent);
        let rows = number(&postgres, "SELECT count(*) FROM em_usage");
        let in_journals = |place: &Place| journal(place).recent_calls(10_000).unwrap().len() as u64;
        assert_eq!(places.iter().map(in_journals).sum::<u64>(), rows);
        let whole = number(&postgres, "SELECT count(*) FROM em_usage WHERE http_status = 200");
        assert!(whole >= replies.load(Ordering::Relaxed), "a reply without a row");
        let billed = "SELECT sum(prompt_tokens + output_tokens) FROM em_usage WHERE http_status = 200";
        // Calls in flight during a kill are charged what they held.
        assert!(number(&postgres, billed) <= spent);
    });
}

#[test]
fn a_key_is_of_all_gateways_and_a_revoked_one_is_refused_everywhere_within_a_second() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let places = [(); 2].map(|()| place(&postgres, &upstream, "require_key = true"));
        let served = [0, 1].map(|index| Served::start(&places[index], &[]));
        let added = places[0].run(&["keys", "add", "team-a"]);
        let key = added.output.trim().to_owned();
        let status = async |index: usize| ask(&served[index], "s", &key).await.unwrap().status;
        for index in [0, 1] {
            let begin = Instant::now();
            while status(index).await != 200 {
                assert!(begin.elapsed() < Duration::from_secs(1), "{} {}", added.errors, status(index).await);
            }
        }
        let shown = places[1].run(&["keys", "list"]);
        assert!(shown.output.contains("team-a  valid"), "{}", shown.output);
        let revoked = places[1].run(&["keys", "revoke", "team-a"]);
        assert_eq!(revoked.code, 0, "{}", revoked.errors);
        let begin = Instant::now();
        for index in [0, 1] {
            while status(index).await == 200 {
                assert!(begin.elapsed() < Duration::from_secs(1), "it is still accepted");
            }
        }
    });
}

#[test]
fn without_the_database_replies_go_on_and_budgets_close() {
    let Some(mut postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let closed = place(&postgres, &upstream, "[budget]\nsession_tokens = 5_000");
        let without = place(&postgres, &upstream, "require_key = true");
        let doctor = closed.run(&["doctor", "--json"]);
        assert!(doctor.output.contains("is PostgreSQL 1"), "{}", doctor.output);
        let key = without.run(&["keys", "add", "a"]).output.trim().to_owned();
        let (mut budgeted, keyed) = (Served::start(&closed, &[]), Served::start(&without, &[]));
        let banner = budgeted.says("recorded in");
        assert!(banner.contains(&postgres.url()) && banner.contains("journal.db"), "{banner}");
        for (served, key) in [(&budgeted, "k"), (&keyed, key.as_str())] {
            let begin = Instant::now();
            while ask(served, "s", key).await.unwrap().status != 200 {
                assert!(begin.elapsed() < Duration::from_secs(2));
            }
        }
        postgres.stop();
        assert_eq!(ask(&keyed, "s", &key).await.unwrap().status, 200, "no budget: it goes on");
        let refused = ask(&budgeted, "another", "k").await.unwrap();
        assert_eq!(refused.status, 503, "{}", refused.json());
        for _ in 0..20 {
            assert_eq!(ask(&budgeted, "another", "k").await.unwrap().status, 503);
        }
        let ready = Request::get(budgeted.address, "/endmark/readyz").send().await.read().await;
        assert_eq!((ready.status, ready.json()["status"].clone()), (200, json!("degraded")));
        assert_eq!(keyed.end("-KILL").0, None);
        // It starts without the database, with the keys it knew.
        let keyed = Served::start(&without, &[]);
        assert_eq!(ask(&keyed, "s", &key).await.unwrap().status, 200);
        let doctor = without.run(&["doctor", "--json"]).envelope();
        let check = |name: &str| {
            let checks = doctor["data"]["checks"].as_array().unwrap();
            checks.iter().find(|check| check["name"] == name).unwrap().clone()
        };
        assert_eq!((&check("journal")["ok"], &check("database")["ok"]), (&json!(true), &json!(false)));
        assert!(check("database")["message"].as_str().unwrap().contains("check that PostgreSQL runs there"));
        let usage = without.run(&["usage", "--json"]).envelope();
        assert_eq!(usage["warnings"][0]["code"], "THIS_GATEWAY_ALONE", "{usage}");
        postgres.start_again();
        let begin = Instant::now();
        let rows = || number(&postgres, "SELECT count(*) FROM em_usage WHERE http_status = 200");
        while rows() < 4 {
            assert!(begin.elapsed() < Duration::from_secs(10), "rows that waited do not arrive");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(ask(&budgeted, "s", "k").await.unwrap().status, 200);
        let (code, log) = budgeted.end("-TERM");
        let lines = log.lines().filter(|line| line.contains("the store that keeps the budgets fails"));
        assert_eq!((code, (1..20).contains(&lines.count())), (Some(0), true), "{log}");
        assert_eq!(keyed.end("-TERM").0, Some(0));
        assert_eq!(rows(), 5);
    });
}

#[test]
fn the_password_comes_from_where_secrets_are_mounted_and_a_wrong_one_ends_the_start() {
    let Some(postgres) = Postgres::start() else { return };
    postgres.query("CREATE ROLE em LOGIN PASSWORD 'hunter2'; GRANT CREATE ON SCHEMA public TO em");
    postgres.ask_for_passwords();
    let url = postgres.url().replace("postgres@", "em@");
    let place = |more: &str| {
        let off = "[cap]\nenabled = false\n[compact.emergency]\nenabled = false\n";
        let text = format!("store = \"{url}\"\njournal = \"j.db\"\nlisten = \"127.0.0.1:0\"\n{more}\n{off}");
        Place::new().with_file("endmark.toml", text).with_file("secret", "hunter2\n")
    };
    let in_file = place("store_password = { file = \"secret\" }");
    let in_variable = place("").with_variable("PGPASSWORD", "hunter2");
    for place in [&in_file, &in_variable] {
        let added = place.run(&["keys", "add", &format!("k{}", place.path().display()).replace('/', "-")]);
        assert_eq!(added.code, 0, "{}", added.errors);
    }
    assert_eq!(Served::start(&in_file, &[]).end("-TERM").0, Some(0));
    for wrong in [place(""), place("").with_variable("ENDMARK_STORE_PASSWORD", "hunter3")] {
        let run = wrong.run(&["serve"]);
        assert_eq!(run.code, 4, "{}", run.errors);
        assert!(run.errors.contains("PGPASSWORD") && !run.errors.contains("hunter"), "{}", run.errors);
        assert!(run.errors.contains(&format!("127.0.0.1:{}", postgres.port())), "{}", run.errors);
    }
    let url = postgres.url();
    let nowhere =
        Place::new().with_variable("ENDMARK_STORE", &url).with_variable("ENDMARK_JOURNAL", "/missing/j.db");
    let run = nowhere
        .with_variable("ENDMARK_CAP_ENABLED", "false")
        .with_variable("ENDMARK_COMPACT_EMERGENCY_ENABLED", "false")
        .run(&["serve"]);
    assert!(run.code == 4 && run.errors.contains("the key `journal`"), "{}", run.errors);
}

#[test]
fn a_raised_budget_of_a_session_admits_calls_on_all_gateways() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let places = [(); 2].map(|()| place(&postgres, &upstream, "[budget]\nsession_tokens = 100"));
        let served = [0, 1].map(|index| Served::start(&places[index], &[]));
        let mut last = ask(&served[0], "s", "k").await.unwrap();
        while last.status != 402 {
            last = ask(&served[0], "s", "k").await.unwrap();
        }
        let session = last.json()["endmark"]["subject"].as_str().unwrap().to_owned();
        assert!(last.json().to_string().contains("endmark budget raise"), "{}", last.json());
        let raised = places[1].run(&["budget", "raise", &session, "+5000"]);
        assert_eq!(raised.code, 0, "{}", raised.errors);
        for served in &served {
            assert_eq!(ask(served, "s", "k").await.unwrap().status, 200);
        }
        let unknown = places[1].run(&["budget", "raise", "nobody", "+5000"]);
        assert_eq!(unknown.code, 2, "{}", unknown.errors);
    });
}
