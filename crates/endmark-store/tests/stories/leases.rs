//! Leases hold calls without a transaction. They survive a kill, and processes share a budget through them
//! without overspending it.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use endmark_context::budget::{Scope, Unit};
use endmark_store::{
    BudgetRow, CallSettled, CallStarted, Charge, Claim, Hold, HoldOutcome, NoSecrets, Reader, Recorder,
    Store, StoreLocation, Tokens,
};

use crate::budgets;
use crate::place::Place;

const CHILD_STORE_VARIABLE: &str = "ENDMARK_TEST_STORE_OF_CHILD";
const TEST: &str = "leases::killed_processes_neither_overspend_nor_charge_twice";
/// Tokens of the budget that the child processes share. They last for a few seconds.
const LIMIT: u64 = 3_000_000;

over_both_stores! {
    a_busy_budget_needs_few_transactions_and_has_exact_sums,
    an_unused_lease_is_returned_to_others,
    two_processes_never_hold_more_than_a_shared_budget,
}

fn hold(request_id: &str, limit: u64, amount: u64) -> Hold {
    let claim = Claim {
        scope: Scope::Session,
        subject: "s".to_owned(),
        window: "ever".to_owned(),
        unit: Unit::Tokens,
        limit,
        amount,
        closing_amount: amount,
    };
    Hold { request_id: request_id.to_owned(), call: 1, claims: vec![claim], may_close: false }
}

fn call_started(request_id: &str, held: u64) -> CallStarted {
    CallStarted {
        charges: vec![Charge { scope: Scope::Session, unit: Unit::Tokens, window: "ever".to_owned(), held }],
        ..budgets::call_started(request_id)
    }
}

fn call_settled(tokens: u64) -> CallSettled {
    CallSettled {
        http_status: Some(200),
        ending: "clean".into(),
        tokens: Tokens { prompt: Some(0), output: Some(tokens), ..Tokens::default() },
        ..CallSettled::default()
    }
}

/// Makes one call. Returns whether the budget admitted it.
async fn call(recorder: &Recorder, request_id: &str, limit: u64, amount: u64, cost: u64) -> bool {
    match recorder.hold(hold(request_id, limit, amount)).await.unwrap() {
        HoldOutcome::Fits { .. } => {
            recorder.open_call(call_started(request_id, amount)).await.settle(call_settled(cost));
            true
        }
        HoldOutcome::Closing | HoldOutcome::Exhausted(_) => false,
    }
}

fn budget(location: &StoreLocation) -> BudgetRow {
    let row = Reader::open(location).unwrap().budgets().unwrap().remove(0);
    assert_eq!((row.spent, row.held), row.recomputed, "{row:?}");
    row
}

/// Returns the amount that all stores of a story spent of their budget. Asserts that nothing is held.
fn total_spent(place: &Place) -> u64 {
    let mut spent = budget(&place.location()).spent;
    if place.is_shared() {
        spent += budget(&place.other_location()).spent;
    }
    assert_eq!(budget(&place.location()).held + budget(&place.other_location()).held, 0);
    spent
}

pub(crate) async fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(is_so(), "it does not come to this: {what}");
}

async fn a_busy_budget_needs_few_transactions_and_has_exact_sums(place: &Place) {
    let (location, store) = place.open();
    let recorder = store.recorder(NoSecrets);
    for number in 0..2_000 {
        assert!(call(&recorder, &format!("em_{number}"), 1 << 40, 50, 7).await);
    }
    let commits = store.condition().commits;
    // An instance also commits its reports and its grants.
    assert!(
        commits < if place.is_shared() { 500 } else { 200 },
        "each call had a transaction of its own: {commits}"
    );
    wait_until("all are charged", || budget(&location).spent == 14_000).await;

    // Readers see a hold in a lease, and the remaining amount includes it at once.
    assert!(matches!(recorder.hold(hold("em_long", 1 << 40, 50)).await.unwrap(), HoldOutcome::Fits { .. }));
    let open = recorder.open_call(call_started("em_long", 50)).await;
    let HoldOutcome::Fits { least_left, .. } = recorder.hold(hold("em_next", 1 << 40, 50)).await.unwrap()
    else {
        panic!("it fits")
    };
    if !place.is_shared() {
        assert_eq!(least_left, Some((Scope::Session, Unit::Tokens, (1 << 40) - 14_050)));
    }
    recorder.release("em_next", 1, false).await.unwrap();
    wait_until("the call is held", || budget(&location).held == 50).await;
    open.settle(call_settled(9));
    wait_until("it is settled", || (budget(&location).spent, budget(&location).held) == (14_009, 0)).await;

    // A call without a row stays held, and the next start charges it.
    assert!(matches!(recorder.hold(hold("em_lost", 1 << 40, 50)).await.unwrap(), HoldOutcome::Fits { .. }));
    store.close().await;
    assert_eq!((budget(&location).spent, budget(&location).held), (14_009, 50));
    drop(Store::open(&location).unwrap());
    assert_eq!((budget(&location).spent, budget(&location).held), (14_059, 0));
    let leases = rusqlite::Connection::open(location.path())
        .unwrap()
        .query_row("SELECT count(*) FROM budget_leases", [], |row| row.get::<_, i64>(0))
        .unwrap();
    assert_eq!(leases, 0);
}

async fn an_unused_lease_is_returned_to_others(place: &Place) {
    let location = place.location();
    let (one, other) = (Store::open(&location).unwrap(), Store::open(&place.other_location()).unwrap());
    let (first, second) = (one.recorder(NoSecrets), other.recorder(NoSecrets));
    for number in 0..40 {
        assert!(call(&first, &format!("em_{number}"), 10_000, 10, 10).await);
    }
    // At this point part of the budget is leased. The other store admits at least the rest.
    let mut admitted = 0;
    for number in 0..960 {
        admitted += u64::from(call(&second, &format!("em_of_other_{number}"), 10_000, 10, 10).await);
    }
    assert!((500..=960).contains(&admitted), "{admitted}");
    wait_until("the lease is given back", || {
        let connection = rusqlite::Connection::open(location.path()).unwrap();
        let sql = "SELECT count(*) FROM budget_leases";
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() == 0
    })
    .await;
    for number in 0..960 - admitted {
        assert!(call(&second, &format!("em_rest_{number}"), 10_000, 10, 10).await);
    }
    assert!(!call(&first, "em_beyond", 10_000, 1, 1).await, "every token is spent");
    one.close().await;
    other.close().await;
    assert_eq!(total_spent(place), 10_000);
}

async fn two_processes_never_hold_more_than_a_shared_budget(place: &Place) {
    let stores = [place.location(), place.other_location()].map(|location| Store::open(&location).unwrap());
    let sum = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..16_usize)
        .map(|task| {
            let (recorder, sum) = (stores[task % 2].recorder(NoSecrets), Arc::clone(&sum));
            tokio::spawn(async move {
                for number in 0..150_u64 {
                    let amount = 10 + number * 7 % 90;
                    if call(&recorder, &format!("em_{task}_{number}"), 60_000, amount, amount).await {
                        sum.fetch_add(amount, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for store in stores {
        store.close().await;
    }
    let sum = sum.load(Ordering::Relaxed);
    assert!((55_000..=60_000).contains(&sum), "{sum}");
    assert_eq!(total_spent(place), sum);
}

/// The test starts its own program as the processes to kill, two at a time, until the budget is exhausted.
#[test]
fn killed_processes_neither_overspend_nor_charge_twice() {
    if let Some(path) = env::var_os(CHILD_STORE_VARIABLE) {
        spend_until_killed(&StoreLocation::sqlite(path));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    let mut leased = 0;
    for lines in [1, 5, 20, 3, 40, 10] {
        let mut children: Vec<_> = (0..2).map(|_| spawn_spender(&location)).collect();
        // Keep the pipes open until the children have ended: a closed pipe would end them with a panic.
        let mut reported_lines: Vec<_> = children
            .iter_mut()
            .map(|child| BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok))
            .collect();
        for reported_lines in &mut reported_lines {
            assert_eq!(reported_lines.filter(|line| line == "spent").take(lines).count(), lines);
        }
        leased += count(&location, "SELECT count(*) FROM budget_leases");
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        drop(Store::open(&location).unwrap());
        let budget = budget(&location);
        assert_eq!(budget.held, 0, "nothing stays held by the dead");
        assert!(budget.spent <= LIMIT, "{budget:?}");
        let sql = "SELECT sum(coalesce(u.output_tokens, e.held)) FROM budget_entries e
             LEFT JOIN usage u USING (request_id, call) WHERE e.scope = 'session'";
        assert_eq!(count(&location, sql), budget.spent, "each call counts once, for what its row says");
        assert_eq!(count(&location, "SELECT count(*) FROM budget_leases"), 0);
        let uncharged = "SELECT count(*) FROM usage u WHERE NOT EXISTS (SELECT 1 FROM budget_entries e
             WHERE e.request_id = u.request_id AND e.call = u.call)";
        assert_eq!(count(&location, uncharged), 0);
        let calls = "SELECT count(*) FROM budget_entries WHERE scope = 'session'";
        let requests = "SELECT spent FROM budgets WHERE scope = 'rate'";
        assert_eq!(count(&location, calls), count(&location, requests), "a rate limit counts each call once");
    }
    assert!(leased > 0, "no process had a lease when it was killed");
}

fn count(location: &StoreLocation, sql: &str) -> u64 {
    let connection = rusqlite::Connection::open(location.path()).unwrap();
    connection.busy_timeout(Duration::from_secs(10)).unwrap();
    connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs()
}

fn spawn_spender(location: &StoreLocation) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(CHILD_STORE_VARIABLE, location.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test starts itself")
}

fn spend_until_killed(location: &StoreLocation) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = Store::open(location).unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8_u64)
            .map(|task| {
                let recorder = store.recorder(NoSecrets);
                tokio::spawn(async move {
                    for number in 0.. {
                        let request_id = format!("em_{}_{task}_{number}", std::process::id());
                        let amount = 100 + number * 13 % 400;
                        let (mut hold, mut started) =
                            (hold(&request_id, LIMIT, amount), call_started(&request_id, amount));
                        let window = "2026-11-24T18:43".to_owned();
                        let (scope, unit) = (Scope::Rate, Unit::Requests);
                        started.charges.push(Charge { scope, unit, window: window.clone(), held: 1 });
                        hold.claims.push(Claim {
                            scope,
                            subject: String::new(),
                            window,
                            unit,
                            limit: 1 << 40,
                            amount: 1,
                            closing_amount: 1,
                        });
                        let outcome = recorder.hold(hold).await.unwrap();
                        if matches!(outcome, HoldOutcome::Fits { .. }) {
                            let open = recorder.open_call(started).await;
                            if number % 3 == 0 {
                                tokio::time::sleep(Duration::from_millis(2)).await;
                            }
                            open.settle(call_settled(amount * (number % 4) / 4));
                        } else {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                        if number % 50 == 0 {
                            let mut out = std::io::stdout().lock();
                            // Without the line break, the first report would be appended to the test runner's
                            // unfinished line.
                            writeln!(out, "\nspent").unwrap();
                            out.flush().unwrap();
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}
