//! Gateways that share a PostgreSQL database: one budget, one set of keys, and each row once.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use endmark_store::{Reader, StoreLocation};
use serde_json::json;
use testkit::{Postgres, Reply, Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

/// The variable that sets the number of kills in the budget test. The default is three.
const KILLS_VARIABLE: &str = "ENDMARK_TEST_SHARED_KILLS";

/// Returns the number in this variable, or the default.
pub(crate) fn number_from_variable(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Returns a folder whose gateway shares this database.
pub(crate) fn shared_folder(postgres: &Postgres, upstream: &Upstream, more: &str) -> TestFolder {
    shared_folder_at(&postgres.url(), upstream, more)
}

/// Returns a folder whose gateway shares the database at this URL.
pub(crate) fn shared_folder_at(url: &str, upstream: &Upstream, more: &str) -> TestFolder {
    let text = format!(
        "store = \"{}\"\njournal = \"journal.db\"\n{more}\n\
         [upstreams.local]\nbase_url = \"{}\"\napi_key = \"upstream\"\n",
        url,
        upstream.base_url(),
    );
    TestFolder::new().with_file("endmark.toml", text)
}

async fn ask(served: &ServeProcess, session: &str, key: &str) -> Option<Reply> {
    ask_at(served.address, session, key, "m").await
}

async fn ask_at(address: SocketAddr, session: &str, key: &str, model: &str) -> Option<Reply> {
    let body = json!({"model": model, "max_tokens": 20, "messages": [{"role": "user", "content": "Count."}]});
    let request = Request::post(address, "/v1/chat/completions").header("x-endmark-session", session);
    let request = request.header("authorization", &format!("Bearer {key}")).json(&body);
    Some(request.try_send().await.ok()?.read().await)
}

pub(crate) fn journal(place: &TestFolder) -> Reader {
    Reader::open(&StoreLocation::sqlite(place.path().join("journal.db"))).unwrap()
}

/// The models of the requests that got a reply. Each request names a different model.
pub(crate) type AnsweredModels = Arc<Mutex<Vec<String>>>;

/// Sends requests until a budget refuses one, and stores the replies. Ends early if the gateway is killed.
async fn ask_until_refused(address: SocketAddr, task: usize, replies: AnsweredModels) {
    for number in 0.. {
        let model = format!("m-{}-{task}-{number}", address.port());
        match ask_at(address, &format!("s{task}"), "k", &model).await.map(|reply| reply.status) {
            Some(200) => replies.lock().unwrap().push(model),
            // Other instances hold the rest of the budget, or this one waits for the database.
            Some(429 | 503) => tokio::time::sleep(Duration::from_millis(20)).await,
            None | Some(402) => return,
            Some(other) => panic!("{other}"),
        }
    }
}

/// Sends requests to each gateway from six clients.
pub(crate) async fn load_gateways(addresses: Vec<SocketAddr>, replies: AnsweredModels) {
    let clients = addresses.into_iter().flat_map(|address| (0..6).map(move |task| (address, task)));
    let clients: Vec<_> = clients
        .map(|(address, task)| tokio::spawn(ask_until_refused(address, task, Arc::clone(&replies))))
        .collect();
    for client in clients {
        client.await.unwrap();
    }
}

/// Checks that the database contains each row of these journals once, that no budget is held, and that the
/// limit was not exceeded. Returns the spent amount.
pub(crate) fn check_accounts(
    postgres: &Postgres,
    places: &[TestFolder],
    replies: &AnsweredModels,
    limit: u64,
) -> u64 {
    let spent = postgres.query_number("SELECT coalesce(sum(spent), 0) FROM em_budgets WHERE scope = 'all'");
    assert!(spent <= limit, "{spent} of {limit}");
    assert_eq!(
        postgres.query_number("SELECT committed FROM em_budgets WHERE scope = 'all'"),
        spent,
        "nothing is held"
    );
    let of_journals = |place: &TestFolder| {
        let rows = journal(place).budgets().unwrap();
        rows.iter().filter(|row| row.scope == "all").map(|row| row.spent).sum::<u64>()
    };
    assert_eq!(places.iter().map(of_journals).sum::<u64>(), spent, "what the journals charged");
    let rows = postgres.query("SELECT request_id || ' ' || call FROM em_usage");
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.sort_unstable();
    let mut of_journals: Vec<String> = Vec::new();
    for place in places {
        let calls = journal(place).recent_calls(100_000).unwrap();
        of_journals.extend(calls.iter().map(|call| format!("{} {}", call.request_id, call.call)));
    }
    of_journals.sort_unstable();
    assert_eq!(rows, of_journals, "each row once");
    let answered = postgres.query("SELECT model FROM em_usage WHERE http_status = 200");
    let mut answered: Vec<&str> = answered.lines().collect();
    answered.sort_unstable();
    assert!(answered.windows(2).all(|two| two[0] != two[1]), "one call has two rows");
    for model in replies.lock().unwrap().iter() {
        assert!(answered.binary_search(&model.as_str()).is_ok(), "the reply {model} has no row");
    }
    spent
}

#[test]
fn two_gateways_spend_one_budget_exactly_despite_a_kill() {
    let kills = number_from_variable(KILLS_VARIABLE, 3);
    let limit = 4_000 * (1 + kills);
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let budget = format!("[budget]\nday_tokens = {limit}");
        let places = [(); 2].map(|()| shared_folder(&postgres, &upstream, &budget));
        let replies = AnsweredModels::default();
        let count = || replies.lock().unwrap().len();
        let first = ServeProcess::start(&places[0], &[]);
        for kill in 0..kills {
            let second = ServeProcess::start(&places[1], &[]);
            let before = count();
            let under_load = tokio::spawn(load_gateways(vec![second.address], Arc::clone(&replies)));
            while count() == before && !under_load.is_finished() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(Duration::from_millis((kill * 37) % 200)).await;
            assert!(kill > 8 || !under_load.is_finished(), "the budget is used up before the kill");
            second.kill();
            under_load.await.unwrap();
        }
        let second = ServeProcess::start(&places[1], &[]);
        load_gateways(vec![first.address, second.address], Arc::clone(&replies)).await;
        for served in [first, second] {
            assert_eq!(served.stop("-TERM").0, Some(0));
        }
        let spent = check_accounts(&postgres, &places, &replies, limit);
        assert!(spent * 100 >= limit * 97, "{spent} of {limit}");
        // Calls that were in flight during a kill are charged the held amount.
        let billed = "SELECT sum(prompt_tokens + output_tokens) FROM em_usage WHERE http_status = 200";
        assert!(postgres.query_number(billed) <= spent);
        println!("{kills} kills: {} replies, {spent} of {limit} tokens", count());
    });
}

#[test]
fn keys_are_shared_and_a_revoked_one_is_refused_within_a_second() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let places = [(); 2].map(|()| shared_folder(&postgres, &upstream, "require_key = true"));
        let served = [0, 1].map(|index| ServeProcess::start(&places[index], &[]));
        let added = places[0].run(&["keys", "add", "team-a"]);
        let key = added.output.trim().to_owned();
        let status = async |index: usize| ask(&served[index], "s", &key).await.unwrap().status;
        for index in [0, 1] {
            let begin = Instant::now();
            while status(index).await != 200 {
                assert!(
                    begin.elapsed() < Duration::from_secs(20),
                    "{} {}",
                    added.errors,
                    status(index).await
                );
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
fn last_known_keys_are_accepted_for_the_configured_outage_time() {
    let Some(mut postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let settings = ["require_key = true\n[keys]\nstale_seconds = 5", "require_key = true"];
        let places = settings.map(|more| shared_folder(&postgres, &upstream, more));
        let key = places[0].run(&["keys", "add", "a"]).output.trim().to_owned();
        let served = [0, 1].map(|index| ServeProcess::start(&places[index], &[]));
        let reply = async |index: usize| ask(&served[index], "s", &key).await.unwrap();
        let becomes = async |index: usize, status: u16| {
            let begin = Instant::now();
            while reply(index).await.status != status {
                assert!(begin.elapsed() < Duration::from_mins(1), "{}", reply(index).await.text());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        becomes(0, 200).await;
        becomes(1, 200).await;
        postgres.stop();
        becomes(0, 503).await;
        let refused = reply(0).await;
        assert_eq!(refused.json()["error"]["type"], "endmark_store_failed", "{}", refused.text());
        assert_eq!(reply(1).await.status, 200, "an hour is the default");
        postgres.restart();
        becomes(0, 200).await;
    });
}

#[test]
fn without_the_database_replies_continue_and_budgets_close() {
    let Some(mut postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let closed = shared_folder(&postgres, &upstream, "[budget]\nsession_tokens = 5_000");
        let without = shared_folder(&postgres, &upstream, "require_key = true");
        let doctor = closed.run(&["doctor", "--json"]);
        assert!(doctor.output.contains("is PostgreSQL 1"), "{}", doctor.output);
        let key = without.run(&["keys", "add", "a"]).output.trim().to_owned();
        let (mut budgeted, keyed) = (ServeProcess::start(&closed, &[]), ServeProcess::start(&without, &[]));
        let banner = budgeted.wait_for_line("recorded in");
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
        // The store fails. The budget is not used up, so clients may retry.
        assert_eq!(refused.json()["error"]["type"], "endmark_store_failed", "{}", refused.text());
        assert_eq!(refused.header("x-should-retry"), None);
        for _ in 0..20 {
            assert_eq!(ask(&budgeted, "another", "k").await.unwrap().status, 503);
        }
        let ready = Request::get(budgeted.address, "/endmark/readyz").send().await.read().await;
        assert_eq!((ready.status, ready.json()["status"].clone()), (200, json!("degraded")));
        assert_eq!(keyed.stop("-KILL").0, None);
        // The gateway starts without the database, and uses the last known keys.
        let keyed = ServeProcess::start(&without, &[]);
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
        let budgets = closed.run(&["budget", "--json"]).envelope();
        assert_eq!(budgets["warnings"][0]["code"], "THIS_GATEWAY_ALONE", "{budgets}");
        postgres.restart();
        let begin = Instant::now();
        let rows = || postgres.query_number("SELECT count(*) FROM em_usage WHERE http_status = 200");
        while rows() < 4 {
            assert!(begin.elapsed() < Duration::from_secs(10), "rows that waited do not arrive");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // All rows so far may have come from the other gateway.
        while ask(&budgeted, "s", "k").await.unwrap().status != 200 {
            assert!(begin.elapsed() < Duration::from_secs(10), "it does not connect again");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (code, log) = budgeted.stop("-TERM");
        let lines = log.lines().filter(|line| line.contains("the store that keeps the budgets fails"));
        assert_eq!((code, (1..20).contains(&lines.count())), (Some(0), true), "{log}");
        assert_eq!(keyed.stop("-TERM").0, Some(0));
        assert_eq!(rows(), 5);
    });
}

#[test]
fn a_mounted_password_is_read_and_a_wrong_one_prevents_the_start() {
    let Some(postgres) = Postgres::start() else { return };
    postgres.query("CREATE ROLE em LOGIN PASSWORD 'hunter2'; GRANT CREATE ON SCHEMA public TO em");
    postgres.require_passwords();
    let url = postgres.url().replace("postgres@", "em@");
    let place = |more: &str| {
        let text = format!("store = \"{url}\"\njournal = \"j.db\"\nlisten = \"127.0.0.1:0\"\n{more}\n");
        TestFolder::new().with_file("endmark.toml", text).with_file("secret", "hunter2\n")
    };
    let in_file = place("store_password = { file = \"secret\" }");
    let in_variable = place("").with_variable("PGPASSWORD", "hunter2");
    for place in [&in_file, &in_variable] {
        let added = place.run(&["keys", "add", &format!("k{}", place.path().display()).replace('/', "-")]);
        assert_eq!(added.code, 0, "{}", added.errors);
    }
    assert_eq!(ServeProcess::start(&in_file, &[]).stop("-TERM").0, Some(0));
    for wrong in [place(""), place("").with_variable("ENDMARK_STORE_PASSWORD", "hunter3")] {
        let run = wrong.run(&["serve"]);
        assert_eq!(run.code, 4, "{}", run.errors);
        assert!(run.errors.contains("PGPASSWORD") && !run.errors.contains("hunter"), "{}", run.errors);
        assert!(run.errors.contains(&format!("127.0.0.1:{}", postgres.port())), "{}", run.errors);
    }
    let url = postgres.url();
    let nowhere = TestFolder::new()
        .with_variable("ENDMARK_STORE", &url)
        .with_variable("ENDMARK_JOURNAL", "/missing/j.db");
    let run = nowhere.run(&["serve"]);
    assert!(run.code == 4 && run.errors.contains("the key `journal`"), "{}", run.errors);
}

#[test]
fn a_raised_session_budget_admits_calls_on_all_gateways() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let upstream = Upstream::start(ScriptedModel::new("one two three")).await;
        let places = [(); 2].map(|()| shared_folder(&postgres, &upstream, "[budget]\nsession_tokens = 100"));
        let served = [0, 1].map(|index| ServeProcess::start(&places[index], &[]));
        let mut last = ask(&served[0], "s", "k").await.unwrap();
        while last.status != 402 {
            last = ask(&served[0], "s", "k").await.unwrap();
        }
        let session = last.json()["endmark"]["subject"].as_str().unwrap().to_owned();
        assert!(last.json().to_string().contains("endmark budget raise"), "{}", last.json());
        let raised = places[1].run(&["budget", "raise", &session, "+5000"]);
        assert_eq!(raised.code, 0, "{}", raised.errors);
        // The second gateway has not seen this session yet.
        assert!(raised.output.contains("5100 tokens"), "{}", raised.output);
        for served in &served {
            assert_eq!(ask(served, "s", "k").await.unwrap().status, 200);
        }
        let unknown = places[1].run(&["budget", "raise", "nobody", "+5000"]);
        assert_eq!(unknown.code, 2, "{}", unknown.errors);
    });
}
