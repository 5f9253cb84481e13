//! Several instances share one PostgreSQL database: budgets are exact, and every row arrives once.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use endmark_context::budget::{Scope, Unit};
use endmark_store::{
    CallSettled, CallStarted, Claim, Hold, HoldOutcome, KeyBook, NewKey, NoSecrets, Purpose, RaiseOutcome,
    SharedBudgets, Store, StoreError, StoreLocation, Tokens,
};
use testkit::{LinkState, PgBouncer, Postgres, TcpProxy};

fn location(postgres: &Postgres, journal: &Path) -> StoreLocation {
    location_at(&postgres.url(), journal)
}

fn location_at(url: &str, journal: &Path) -> StoreLocation {
    StoreLocation::parse(url).unwrap().with_journal(journal)
}

/// Returns the URL of the database with these ports.
fn url(ports: &[u16]) -> String {
    let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("postgres://postgres@{}/endmark", hosts.join(","))
}

fn hold(request_id: &str, session: &str, limit: u64, amount: u64) -> Hold {
    let claim = |scope, subject: &str, limit| Claim {
        scope,
        subject: subject.to_owned(),
        window: "ever".to_owned(),
        unit: Unit::Tokens,
        limit,
        amount,
        closing_amount: amount,
    };
    let claims = vec![claim(Scope::All, "", limit), claim(Scope::Session, session, limit)];
    Hold { request_id: request_id.to_owned(), call: 1, claims, may_close: true }
}

fn call_started(request_id: &str, session: &str) -> CallStarted {
    CallStarted {
        request_id: request_id.to_owned(),
        call: 1,
        purpose: Purpose::Reply,
        session: session.to_owned(),
        credential: None,
        upstream: "local".to_owned(),
        format: "openai_chat".into(),
        model: "m\u{0}\\".to_owned(),
        streamed: false,
        mode: "auto".into(),
        started_ms: 1_700_000_000_123,
        sent_bytes: 40,
        prompt_estimate: 10,
        charges: Vec::new(),
    }
}

/// Makes a call with this hold and this cost. Returns whether it was admitted.
async fn call(
    store: &Store,
    request_id: &str,
    session: &str,
    limit: u64,
    amount: u64,
    cost: u64,
) -> Result<bool, StoreError> {
    let recorder = store.recorder(NoSecrets);
    let held = recorder.hold(hold(request_id, session, limit, amount)).await?;
    if !matches!(held, HoldOutcome::Fits { .. }) {
        return Ok(false);
    }
    let open = recorder.open_call(call_started(request_id, session)).await;
    tokio::task::yield_now().await;
    open.settle(CallSettled {
        http_status: Some(200),
        ending: "clean".into(),
        tokens: Tokens { prompt: Some(0), output: Some(cost), ..Tokens::default() },
        ..CallSettled::default()
    });
    Ok(true)
}

/// How long keys are accepted without the database.
const STALE_AFTER: Duration = Duration::from_hours(1);

const SPENT: &str = "SELECT spent FROM em_budgets WHERE scope = 'all'";
const COMMITTED: &str = "SELECT committed FROM em_budgets WHERE scope = 'all'";
const ROWS: &str = "SELECT count(*) FROM em_usage";
const BILLED: &str = "SELECT coalesce(sum(prompt_tokens + output_tokens), 0) FROM em_usage";

/// Spends the whole limit from several instances at once, even while the database fails. Returns the number
/// of calls and their total cost.
async fn spend_all(stores: &[Store], limit: u64, tasks: usize) -> (u64, u64) {
    let (calls, cost) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut running = Vec::new();
    for (index, store) in stores.iter().enumerate() {
        for task in 0..tasks {
            let (store, calls, sum) = (store.clone(), Arc::clone(&calls), Arc::clone(&cost));
            running.push(tokio::spawn(async move {
                for nth in 0_u64.. {
                    let amount = 1 + (nth * 7 + task as u64 * 13 + index as u64) % 40;
                    let cost = amount - (nth % 3).min(amount - 1);
                    let request_id = format!("em_{index}_{task}_{nth}");
                    let session = format!("s{}", task % 3);
                    match call(&store, &request_id, &session, limit, amount, cost).await {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(StoreError::Database { .. }) => {
                            tokio::time::sleep(Duration::from_millis(20)).await;
                            continue;
                        }
                        Err(other) => panic!("{other}"),
                    }
                    calls.fetch_add(1, Ordering::Relaxed);
                    sum.fetch_add(cost, Ordering::Relaxed);
                }
            }));
        }
    }
    for task in running {
        task.await.unwrap();
    }
    (calls.load(Ordering::Relaxed), cost.load(Ordering::Relaxed))
}

/// Asserts that the calls of these instances used nearly all of a limit and no more, and that each row arrived once.
async fn assert_exact(postgres: &Postgres, stores: &[Store], limit: u64, (calls, cost): (u64, u64)) {
    for store in stores {
        store.close().await;
    }
    assert!(cost <= limit, "{cost}");
    assert!(cost * 100 >= limit * 99, "{cost}");
    assert_eq!((postgres.query_number(ROWS), postgres.query_number(BILLED)), (calls, cost));
    assert_eq!(
        (postgres.query_number(SPENT), postgres.query_number(COMMITTED)),
        (cost, cost),
        "all was returned"
    );
    let sessions = "SELECT sum(spent) FROM em_budgets WHERE scope = 'session'";
    assert_eq!(postgres.query_number(sessions), cost);
}

#[tokio::test(flavor = "multi_thread")]
async fn four_instances_never_exceed_one_budget() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Store::open(&location(&postgres, &folder.path().join(name))).unwrap();
    let stores = ["a.db", "b.db", "c.db", "d.db"].map(open);
    let spent = spend_all(&stores, 40_000, 16).await;
    assert_exact(&postgres, &stores, 40_000, spent).await;
}

/// Two connections serve four instances, so consecutive transactions of an instance may use different
/// connections. The database fails for a while, but the pooler does not.
#[tokio::test(flavor = "multi_thread")]
async fn instances_work_through_a_transaction_pooler() {
    let Some(mut postgres) = Postgres::start() else { return };
    let Some(pooler) = PgBouncer::start(&postgres) else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = url(&[pooler.port()]);
    let open = |name: &str| Store::open(&location_at(&url, &folder.path().join(name))).unwrap();
    let stores = ["a.db", "b.db", "c.db", "d.db"].map(open);
    let (spent, ()) = tokio::join!(spend_all(&stores, 20_000, 8), async {
        wait_for_more_rows(&postgres, 50).await;
        postgres.stop();
        postgres.restart();
    });
    assert_exact(&postgres, &stores, 20_000, spent).await;
}

/// A standby is promoted. One instance knows both hosts. For the other one, the address of the old host then
/// leads to the standby.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_gets_each_row_once() {
    let Some(mut primary) = Postgres::start() else { return };
    let standby = primary.standby();
    let moving = TcpProxy::start(primary.port());
    let folder = tempfile::tempdir().unwrap();
    let urls = [url(&[primary.port(), standby.port()]), url(&[moving.port()])];
    let open = |number: usize| {
        Store::open(&location_at(&urls[number], &folder.path().join(format!("{number}.db")))).unwrap()
    };
    let stores = [open(0), open(1)];
    let failing = async {
        wait_for_more_rows(&primary, 50).await;
        primary.kill();
        let (before, begin) = (standby.query_number(ROWS), Instant::now());
        standby.promote();
        moving.redirect(standby.port());
        wait_for_more_rows(&standby, before).await;
        println!("rows arrive {:?} after the primary was killed", begin.elapsed());
    };
    let (spent, ()) = tokio::join!(spend_all(&stores, 40_000, 8), failing);
    assert_exact(&standby, &stores, 40_000, spent).await;
}

/// New calls may use up the share that an earlier call waited for. The earlier call then waits for another
/// share.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_within_the_budget_is_rejected_while_the_database_is_slow() {
    let Some(postgres) = Postgres::start() else { return };
    let link = TcpProxy::start(postgres.port());
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&location_at(&url(&[link.port()]), &folder.path().join("a.db"))).unwrap();
    link.set_link(LinkState::Slow(Duration::from_millis(90)));
    let calls: Vec<_> = (0..120)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(25 * number)).await;
                call(&store, &format!("em_{number}"), "s", 1_000_000, 50, 50).await
            })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(true));
    }
    link.set_link(LinkState::Up);
    store.close().await;
    assert_eq!((postgres.query_number(ROWS), postgres.query_number(SPENT)), (120, 6_000));
}

/// Waits until the database has more rows than this.
async fn wait_for_more_rows(postgres: &Postgres, count: u64) {
    let has_table = "SELECT to_regclass('em_usage') IS NOT NULL";
    while postgres.query(has_table) != "t" || postgres.query_number(ROWS) <= count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_continue_within_their_grants_during_an_outage() {
    let Some(mut postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&location(&postgres, &folder.path().join("a.db"))).unwrap();
    let mut calls = 0;
    for nth in 0..40 {
        assert!(call(&store, &format!("em_before_{nth}"), "s", 1_000_000, 50, 1).await.unwrap());
        calls += 1;
    }
    postgres.stop();
    // The instance has a share for some calls. It does not admit calls beyond its share, because another
    // instance may have the rest of the budget.
    let mut has_failed = false;
    for nth in 0..2_000 {
        match call(&store, &format!("em_gone_{nth}"), "s", 1_000_000, 50, 50).await {
            Ok(is_admitted) => {
                assert!(is_admitted);
                calls += 1;
            }
            Err(StoreError::Database { .. }) => {
                has_failed = true;
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(has_failed && calls > 40, "{calls} calls");
    assert!(matches!(store.condition().failure, Some(StoreError::Database { .. })));
    let unknown = store.find_key("sk-em-unknown", STALE_AFTER).await;
    assert!(matches!(unknown, Err(StoreError::Database { .. })), "it may be new: {unknown:?}");
    postgres.restart();
    postgres.wait_for_number(ROWS, calls).await;
    assert!(call(&store, "em_after", "s", 1_000_000, 50, 50).await.unwrap());
    postgres.wait_for_number(ROWS, calls + 1).await;
    assert_eq!(store.condition().failure, None);
    store.close().await;
    assert_eq!(postgres.query_number(SPENT), postgres.query_number(BILLED));
    assert_eq!(postgres.query_number(COMMITTED), postgres.query_number(BILLED));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raised_budget_applies_to_all_instances() {
    const LIMIT: u64 = 1_000;
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Store::open(&location(&postgres, &folder.path().join(name))).unwrap();
    let stores = [open("a.db"), open("b.db")];
    // The budget over all sessions does not matter here.
    let call = async |store: &Store, id: &str, amount| {
        let mut planned = hold(id, "session", LIMIT, amount);
        planned.claims.remove(0);
        let held = store.recorder(NoSecrets).hold(planned).await.unwrap();
        matches!(held, HoldOutcome::Fits { .. })
    };
    assert!(call(&stores[0], "em_1", 900).await && !call(&stores[1], "em_2", 200).await);
    let mut budgets = SharedBudgets::open(stores[0].location()).await.unwrap();
    assert_eq!(budgets.sessions("sess", Unit::Tokens).await.unwrap(), ["session"]);
    assert!(budgets.sessions("sess", Unit::NanoUsd).await.unwrap().is_empty());
    assert_eq!(budgets.raise("sess", Unit::Tokens, 500).await, Ok(RaiseOutcome::NoBudget));
    assert_eq!(budgets.raise("session", Unit::Tokens, 500).await, Ok(RaiseOutcome::Raised(500)));
    let of_session = budgets.all_budgets().await.unwrap();
    assert_eq!((of_session[0].extra, of_session[0].held), (500, 900), "{of_session:?}");
    assert!(call(&stores[1], "em_3", 200).await, "1,100 of 1,500");
    // The other instance may first have to return the part of its grant that it does not need.
    let mut tries = 0;
    while !call(&stores[0], &format!("em_4_{tries}"), 400).await {
        tries += 1;
        assert!(tries < 100, "1,500 of 1,500");
    }
    assert!(!call(&stores[0], "em_5", 1).await && !call(&stores[1], "em_6", 1).await, "1,500 of 1,500");
    for store in &stores {
        assert_eq!(store.reader().unwrap().budgets().unwrap()[0].extra, 500);
        store.close().await;
    }
}

/// Holds a call in a budget of 100 tokens of its session, and in a large budget over all sessions.
async fn hold_in_session(store: &Store, request_id: &str, session: &str, amount: u64) -> HoldOutcome {
    let mut wanted_hold = hold(request_id, session, 100, amount);
    wanted_hold.claims[0].limit = 1_000_000;
    store.recorder(NoSecrets).hold(wanted_hold).await.unwrap()
}

async fn settle(store: &Store, request_id: &str, session: &str, cost: u64) {
    let tokens = Tokens { prompt: Some(0), output: Some(cost), ..Tokens::default() };
    let open = store.recorder(NoSecrets).open_call(call_started(request_id, session)).await;
    open.settle(CallSettled { ending: "clean".into(), tokens, ..CallSettled::default() });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_has_one_closing_call_across_instances() {
    const SESSIONS: u64 = 6;
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Store::open(&location(&postgres, &folder.path().join(name))).unwrap();
    let stores = ["a.db", "b.db", "c.db"].map(open);
    for number in 0..SESSIONS {
        let session = format!("s{number}");
        let first = format!("em_first_{number}");
        assert!(matches!(hold_in_session(&stores[0], &first, &session, 90).await, HoldOutcome::Fits { .. }));
        settle(&stores[0], &first, &session, 90).await;
        let (mut closing, mut after) = (0, 0);
        for round in 0_u32.. {
            let mut wanted_hold = Vec::new();
            for (index, store) in stores.iter().cycle().take(9).enumerate() {
                let (store, session) = (store.clone(), session.clone());
                let id = format!("em_{number}_{round}_{index}");
                wanted_hold.push(tokio::spawn(async move {
                    let held = hold_in_session(&store, &id, &session, 20).await;
                    if held == HoldOutcome::Closing {
                        settle(&store, &id, &session, 5).await;
                    }
                    held
                }));
            }
            for wanted_hold in wanted_hold {
                match wanted_hold.await.unwrap() {
                    HoldOutcome::Closing => closing += 1,
                    held => assert!(matches!(held, HoldOutcome::Exhausted(_)), "{held:?}"),
                }
            }
            assert!(round < 100, "it has no closing call");
            after += u32::from(closing > 0);
            if after > 2 {
                break;
            }
        }
        assert_eq!(closing, 1, "{session}");
    }
    // After the closing call, all instances refuse even calls that would fit.
    for store in &stores {
        let held = hold_in_session(store, "em_small", "s0", 1).await;
        assert!(matches!(&held, HoldOutcome::Exhausted(used_up) if used_up.account.is_closed), "{held:?}");
    }
    let closed =
        postgres.query_number("SELECT count(DISTINCT closed_by) FROM em_budgets WHERE closed_by <> ''");
    assert_eq!(closed, SESSIONS);
    // If the closing call does not start, any instance can make the next closing call.
    assert!(matches!(hold_in_session(&stores[0], "em_first", "again", 90).await, HoldOutcome::Fits { .. }));
    settle(&stores[0], "em_first", "again", 90).await;
    postgres.wait_for_number("SELECT spent FROM em_budgets WHERE subject = 'again'", 90).await;
    assert_eq!(hold_in_session(&stores[0], "em_unmade", "again", 20).await, HoldOutcome::Closing);
    assert!(matches!(hold_in_session(&stores[1], "em_other", "again", 20).await, HoldOutcome::Exhausted(_)));
    stores[0].recorder(NoSecrets).release("em_unmade", 1, true).await.unwrap();
    assert_eq!(hold_in_session(&stores[1], "em_made", "again", 20).await, HoldOutcome::Closing);
    assert!(matches!(hold_in_session(&stores[0], "em_late", "again", 1).await, HoldOutcome::Exhausted(_)));
    assert_eq!(stores[2].raise_budget("again", Unit::Tokens, 500).await, Ok(RaiseOutcome::Raised(500)));
    assert!(matches!(hold_in_session(&stores[0], "em_raised", "again", 1).await, HoldOutcome::Fits { .. }));
    for store in stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_journal_is_not_recreated_and_admits_nothing() {
    const LIMIT: u64 = 1_000;
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    std::fs::create_dir(&journal).unwrap();
    let (first, second) = (
        Store::open(&location(&postgres, &journal.join("a.db"))).unwrap(),
        Store::open(&location(&postgres, &folder.path().join("b.db"))).unwrap(),
    );
    let (_, cost) = spend_all(std::slice::from_ref(&second), LIMIT, 1).await;
    assert!(cost > LIMIT / 2, "{cost}: another 500 do not fit");
    for file in std::fs::read_dir(&journal).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let refused = call(&first, "em_gone", "s0", LIMIT, 500, 500).await;
    assert!(matches!(refused, Err(StoreError::FilesGone { .. })), "{refused:?}");
    assert!(!journal.join("a.db").exists());
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forfeited_instance_does_not_spend_the_grants_of_others() {
    const LIMIT: u64 = 1_000;
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Store::open(&location(&postgres, &folder.path().join(name))).unwrap();
    let (first, second) = (open("a.db"), open("b.db"));
    // A call in progress holds half of the budget.
    let recorder = first.recorder(NoSecrets);
    assert!(matches!(
        recorder.hold(hold("em_long", "s", LIMIT, 500)).await.unwrap(),
        HoldOutcome::Fits { .. }
    ));
    let long = recorder.open_call(call_started("em_long", "s")).await;
    assert!(!call(&second, "em_no", "t", LIMIT, 501, 501).await.unwrap(), "it is held");
    // The shares of a live instance cannot be freed.
    let id = postgres.query("SELECT instance FROM em_shares WHERE scope = 'all' AND granted > spent");
    let shared = location(&postgres, Path::new("unused.db"));
    assert!(!endmark_store::forfeit_instance(&shared, &id).await.unwrap());
    // Wait until the instance counts as silent.
    while !endmark_store::forfeit_instance(&shared, &id).await.unwrap() {
        postgres
            .query(&format!("UPDATE em_instances SET expires = now() - interval '1 hour' WHERE id = '{id}'"));
    }
    // The other instance only holds its call and has not spent it. Therefore only the grant can reject calls
    // of the first.
    let other = second.recorder(NoSecrets);
    assert!(matches!(other.hold(hold("em_other", "t", LIMIT, 900)).await.unwrap(), HoldOutcome::Fits { .. }));
    let since = other.open_call(call_started("em_other", "t")).await;
    // The instance returns: its call is charged, and no further call is admitted.
    let cost = |output| CallSettled {
        http_status: Some(200),
        ending: "clean".into(),
        tokens: Tokens { prompt: Some(0), output: Some(output), ..Tokens::default() },
        ..CallSettled::default()
    };
    long.settle(cost(300));
    postgres.wait_for_number(SPENT, 300).await;
    assert!(!call(&first, "em_again", "s", LIMIT, 100, 100).await.unwrap(), "it was granted to another one");
    since.settle(cost(900));
    postgres.wait_for_number(SPENT, 1_200).await;
    for store in [&first, &second] {
        assert!(!call(store, "em_more", "s", LIMIT, 1, 1).await.unwrap());
        store.close().await;
    }
    assert_eq!((postgres.query_number(ROWS), postgres.query_number(COMMITTED)), (2, 1_200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_belongs_to_one_process_and_one_instance() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let first = Store::open(&location(&postgres, &path("a.db"))).unwrap();
    let in_use = |error: StoreError| matches!(error, StoreError::JournalInUse { .. });
    assert!(in_use(Store::open(&location(&postgres, &path("a.db"))).unwrap_err()));
    assert!(call(&first, "em_1", "s", 1_000, 10, 10).await.unwrap());
    copy(&path("a.db"), &path("copy.db"));
    first.close().await;
    assert_eq!(postgres.query_number("SELECT count(*) FROM em_instances"), 1);
    assert!(matches!(Store::open(&StoreLocation::sqlite(path("a.db"))), Err(StoreError::IsJournal { .. })));
    let own = Store::open(&StoreLocation::sqlite(path("own.db"))).unwrap();
    own.add_key(endmark_store::NewKey { name: "k".to_owned(), ..Default::default() }).await.unwrap();
    own.close().await;
    let own = Store::open(&location(&postgres, &path("own.db")));
    assert!(matches!(own, Err(StoreError::UnusableJournal { .. })));
    let refused = location(&postgres, Path::new("")).to_string().replace("/endmark", "/missing");
    let refused = StoreLocation::parse(&refused).unwrap().with_journal(path("c.db"));
    assert!(matches!(Store::open(&refused), Err(StoreError::Database { .. })), "no such database");
    postgres.query("UPDATE em_meta SET value = 99 WHERE name = 'schema'");
    let newer = Store::open(&location(&postgres, &path("c.db")));
    assert!(matches!(newer, Err(StoreError::NewerDatabase { found: 99, .. })));
}

fn copy(from: &Path, to: &Path) {
    for more in ["", "-wal"] {
        let named = |path: &Path| format!("{}{more}", path.display());
        std::fs::copy(named(from), named(to)).unwrap();
    }
}

/// Waits until the database has a new token of the only instance.
async fn wait_for_new_token(postgres: &Postgres) {
    let token = || postgres.query("SELECT token FROM em_instances");
    let old = token();
    for _ in 0..400 {
        if token() != old {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the token stays the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_journal_is_rejected_while_its_instance_is_alive() {
    const LIMIT: u64 = 1_000;
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (original, early, late) =
        (folder.path().join("a.db"), folder.path().join("early.db"), folder.path().join("late.db"));
    let open = |path: &Path| Store::open(&location(&postgres, path));
    let refused = |path: &Path| {
        let error = open(path).unwrap_err();
        assert!(matches!(error, StoreError::InstanceInUse { .. }), "{error}");
    };
    let store = open(&original).unwrap();
    assert!(call(&store, "em_1", "s", LIMIT, 100, 100).await.unwrap());
    postgres.wait_for_number(SPENT, 100).await;
    copy(&original, &early);
    assert!(call(&store, "em_2", "s", LIMIT, 300, 300).await.unwrap());
    postgres.wait_for_number(SPENT, 400).await;
    wait_for_new_token(&postgres).await;
    refused(&early);
    assert!(call(&store, "em_3", "s", LIMIT, 50, 50).await.unwrap(), "the original goes on");
    postgres.wait_for_number(SPENT, 450).await;
    // Same state as after `kill -9`: a copy of the file, and no process. The database still counts the
    // instance as alive.
    copy(&original, &late);
    store.close().await;
    let alive = "UPDATE em_instances SET expires = now() + interval '1 hour'";
    postgres.query(alive);
    let store = open(&original).unwrap();
    store.close().await;
    // After a proper close, an older copy may continue. It learns the amounts that were spent since.
    let store = open(&early).unwrap();
    postgres.wait_for_number(SPENT, 450).await;
    assert!(!call(&store, "em_4", "s", LIMIT, 600, 600).await.unwrap());
    assert!(call(&store, "em_5", "s", LIMIT, 550, 550).await.unwrap());
    assert!(!call(&store, "em_6", "s", LIMIT, 1, 1).await.unwrap(), "450 and 550");
    wait_for_new_token(&postgres).await;
    refused(&late);
    store.close().await;
    assert_eq!((postgres.query_number(SPENT), postgres.query_number(COMMITTED)), (1_000, 1_000));
    assert_eq!((postgres.query_number(ROWS), postgres.query_number(BILLED)), (4, 1_000));
    let rows = store.reader().unwrap().budgets().unwrap();
    assert!(rows.iter().all(|row| (row.spent, row.held) == row.recomputed), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_restarts_whether_or_not_its_last_token_was_committed() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let open = || Store::open(&location(&postgres, &path));
    open().unwrap().close().await;
    let journal = rusqlite::Connection::open(&path).unwrap();
    let alive = |token: &str| {
        postgres
            .query(&format!("UPDATE em_instances SET token = '{token}', expires = now() + interval '1 hour'"))
    };
    // The journal stored the next token. The database either committed it or did not.
    for token in ["next", "last"] {
        journal.execute("UPDATE journal SET token = 'last', pending = 'next'", []).unwrap();
        alive(token);
        open().unwrap().close().await;
    }
    alive("another");
    assert!(matches!(open(), Err(StoreError::InstanceInUse { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_journal_recovers_the_slates_of_a_removed_one() {
    let Some(postgres) = Postgres::start() else { return };
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(&location(&postgres, &folder.path().join("a.db"))).unwrap();
    let open = store.recorder(NoSecrets).open_call(call_started("em_left", "s")).await;
    // Same state as after `kill -9`, but without the journal itself.
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        if !["a.db", "a.db-wal", "a.db-shm", "a.db-instance"].contains(&name.as_str()) {
            std::fs::copy(file.path(), other.path().join(name)).unwrap();
        }
    }
    drop(open);
    store.close().await;
    postgres.query("DELETE FROM em_usage");
    let store = Store::open(&location(&postgres, &other.path().join("a.db"))).unwrap();
    postgres.wait_for_number(ROWS, 1).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permanent_database_error_stops_the_start_with_advice() {
    let Some(mut postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    let mut start = |url: &str| {
        number += 1;
        let journal = folder.path().join(format!("{number}.db"));
        Store::open(&StoreLocation::parse(url).unwrap().with_journal(journal))
            .map_err(|error| error.to_string())
    };
    postgres.query("CREATE ROLE em LOGIN PASSWORD 'hunter2'");
    let at = format!("127.0.0.1:{}", postgres.port());
    let refused = start(&format!("postgres://em:hunter2@{at}/endmark")).unwrap_err();
    assert!(refused.contains("GRANT USAGE, CREATE ON SCHEMA public"), "{refused}");
    let missing = start(&format!("postgres://postgres@{at}/missing")).unwrap_err();
    assert!(missing.contains("CREATE DATABASE"), "{missing}");
    postgres.require_passwords();
    for password in ["", ":hunter3"] {
        let refused = start(&format!("postgres://em{password}@{at}/endmark")).unwrap_err();
        assert!(refused.contains("`pg_hba.conf`") && refused.contains(&at), "{refused}");
        assert!(!refused.contains("hunter"), "{refused}");
    }
    let no_tls = start(&format!("postgres://em:hunter2@{at}/endmark?sslmode=verify-full")).unwrap_err();
    assert!(no_tls.contains("offers no TLS"), "{no_tls}");
    let file = start(&format!("postgres://em@{at}/endmark?sslrootcert=/missing.pem"));
    assert!(file.unwrap_err().contains("offers no TLS"), "the server is asked first");
    // These conditions are temporary.
    postgres.stop();
    let store = start(&format!("postgres://em:hunter2@{at}/endmark")).unwrap();
    let failure = store.condition().failure.unwrap().to_string();
    assert!(failure.contains("check that PostgreSQL runs there") && failure.contains(&at), "{failure}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_verifies_the_server_name() {
    let Some(mut postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let authority = folder.path().join("ca.pem");
    std::fs::write(&authority, made.cert.pem()).unwrap();
    let url =
        |host: &str, more: &str| format!("postgres://postgres@{host}:{}/endmark?{more}", postgres.port());
    let trusted = format!("sslmode=verify-full&sslrootcert={}", authority.display());
    let state = async |url: String| {
        endmark_store::inspect_database(&StoreLocation::parse(&url).unwrap())
            .await
            .map_err(|error| error.to_string())
    };
    let without = state(url("localhost", &trusted)).await.unwrap_err();
    assert!(without.contains("offers no TLS"), "{without}");
    let urls =
        [url("localhost", &trusted), url("127.0.0.1", &trusted), url("localhost", "sslmode=verify-full")];
    postgres.use_tls(&made.cert.pem(), &made.signing_key.serialize_pem());
    let [right, other_name, other_authority] = urls.map(state);
    let found = right.await.unwrap().unwrap();
    assert_eq!((found.schema, found.live_instances), (None, 0));
    assert!(
        found.clock_ahead_ms.abs() < 2_000 && found.version.starts_with(|digit: char| digit.is_ascii_digit())
    );
    for refused in [other_name.await, other_authority.await] {
        let refused = refused.unwrap_err();
        assert!(refused.contains("certificate"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_progress_stay_held_after_a_reconnect() {
    const LIMIT: u64 = 1_000;
    let Some(mut postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Store::open(&location(&postgres, &folder.path().join(name))).unwrap();
    let (first, second) = (open("a.db"), open("b.db"));
    let recorder = first.recorder(NoSecrets);
    assert!(matches!(
        recorder.hold(hold("em_long", "s", LIMIT, 600)).await.unwrap(),
        HoldOutcome::Fits { .. }
    ));
    let long = recorder.open_call(call_started("em_long", "s")).await;
    postgres.stop();
    while first.condition().failure.is_none() || second.condition().failure.is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    postgres.restart();
    while first.condition().failure.is_some() || second.condition().failure.is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!call(&second, "em_no", "t", LIMIT, 500, 500).await.unwrap(), "600 of 1,000 are held");
    long.settle(CallSettled {
        http_status: Some(200),
        ending: "clean".into(),
        tokens: Tokens { prompt: Some(0), output: Some(600), ..Tokens::default() },
        ..CallSettled::default()
    });
    postgres.wait_for_number(SPENT, 600).await;
    first.close().await;
    second.close().await;
    assert_eq!(postgres.query_number(COMMITTED), 600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_instance_knows_the_keys_immediately() {
    let Some(mut postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let shared = location(&postgres, Path::new("unused.db"));
    let mut book = KeyBook::open(&shared).await.unwrap();
    let secret = book.add(NewKey { name: "team-a".to_owned(), ..NewKey::default() }).await.unwrap();
    let store = Store::open(&location(&postgres, &folder.path().join("a.db"))).unwrap();
    assert!(store.find_key(secret.reveal(), STALE_AFTER).await.unwrap().is_some());
    store.close().await;
    postgres.stop();
    // Without the database, a new instance does not know any key.
    let store = Store::open(&location(&postgres, &folder.path().join("b.db"))).unwrap();
    assert!(matches!(store.find_key(secret.reveal(), STALE_AFTER).await, Err(StoreError::Database { .. })));
    store.close().await;
}
