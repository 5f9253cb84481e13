//! Rate limits in the store need no commit for each call, leave no rows, and end with their process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use endmark_context::budget::{Scope, Unit};
use endmark_store::{
    CallSettled, CallStarted, Charge, Claim, Hold, HoldOutcome, NoSecrets, Purpose, Recorder, Store,
    StoreLocation, Tokens,
};

const KEY: &str = "key:alice";

fn claim(unit: Unit, window: &str, limit: u64, amount: u64) -> Claim {
    Claim {
        scope: Scope::Rate,
        subject: KEY.to_owned(),
        window: window.to_owned(),
        unit,
        limit,
        amount,
        closing_amount: amount,
    }
}

/// Makes a call of 30 tokens in a minute that admits at most `limit` requests. Returns whether it was
/// admitted.
async fn call(recorder: &Recorder, request_id: &str, window: &str, limit: u64) -> bool {
    let Some(charges) = hold(recorder, request_id, window, limit).await else { return false };
    let started = CallStarted {
        request_id: request_id.to_owned(),
        call: 1,
        purpose: Purpose::Reply,
        session: "s".to_owned(),
        credential: Some(KEY.to_owned()),
        upstream: "local".to_owned(),
        format: "openai_chat".into(),
        model: "m".to_owned(),
        streamed: false,
        mode: "auto".into(),
        started_ms: 1_700_000_000_123,
        sent_bytes: 40,
        prompt_estimate: 10,
        charges,
    };
    recorder.open_call(started).await.settle(CallSettled {
        http_status: Some(200),
        ending: "clean".into(),
        tokens: Tokens { prompt: Some(20), output: Some(10), ..Tokens::default() },
        ..CallSettled::default()
    });
    true
}

/// Holds a call. Returns its charges if it was admitted.
async fn hold(recorder: &Recorder, request_id: &str, window: &str, limit: u64) -> Option<Vec<Charge>> {
    let claims = vec![claim(Unit::Requests, window, limit, 1), claim(Unit::Tokens, window, 1 << 40, 80)];
    let charge = |claim: &Claim| Charge {
        scope: Scope::Rate,
        unit: claim.unit,
        window: window.to_owned(),
        held: claim.amount,
    };
    let charges = claims.iter().map(charge).collect();
    let hold = Hold { request_id: request_id.to_owned(), call: 1, claims, may_close: false };
    matches!(recorder.hold(hold).await.unwrap(), HoldOutcome::Fits { .. }).then_some(charges)
}

async fn hold_parallel_slot(recorder: &Recorder, request_id: &str) -> bool {
    let claims = vec![claim(Unit::Parallel, "ever", 2, 1)];
    let hold = Hold { request_id: request_id.to_owned(), call: 0, claims, may_close: false };
    matches!(recorder.hold(hold).await.unwrap(), HoldOutcome::Fits { .. })
}

fn query_number(location: &StoreLocation, sql: &str) -> i64 {
    let connection = rusqlite::Connection::open(location.path()).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn minute_leases_are_exact_and_leave_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("r.db"));
    let store = Store::open(&location).unwrap();
    let recorder = store.recorder(NoSecrets);
    for nth in 0..2_000 {
        assert!(call(&recorder, &format!("em_{nth}"), "2026-11-24T18:42", 1 << 40).await);
    }
    let commits = store.condition().commits;
    assert!(commits < 200, "each call had a transaction of its own: {commits}");
    let mut admitted = 0;
    for nth in 2_000..2_500 {
        admitted += u64::from(call(&recorder, &format!("em_{nth}"), "2026-11-24T18:43", 400).await);
    }
    assert_eq!(admitted, 400);
    assert!(call(&recorder, "em_next", "2026-11-24T18:44", 400).await);
    // A call that is never settled counts as made.
    assert!(hold(&recorder, "em_late", "2026-11-24T19:44", 400).await.is_some());
    store.close().await;
    drop(Store::open(&location).unwrap());
    let spent = |unit: &str| {
        let sql = "SELECT sum(spent) FROM budgets WHERE scope = 'rate' AND window = '2026-11-24T19:44'";
        query_number(&location, &format!("{sql} AND unit = '{unit}'"))
    };
    assert_eq!((spent("requests"), spent("tokens")), (1, 80));
    let old = "SELECT count(*) FROM budgets WHERE window < '2026-11-24T19:00'";
    assert_eq!(query_number(&location, old), 0, "an hour later nothing is left of a minute");
    // The list of budgets does not contain rate limits.
    assert_eq!(Store::open(&location).unwrap().reader().unwrap().budgets().unwrap(), []);
}

#[tokio::test]
async fn a_slot_is_freed_on_release_and_on_process_exit() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("r.db"));
    let store = Store::open(&location).unwrap();
    let recorder = store.recorder(NoSecrets);
    assert!(hold_parallel_slot(&recorder, "em_1").await && hold_parallel_slot(&recorder, "em_2").await);
    assert!(!hold_parallel_slot(&recorder, "em_3").await);
    recorder.release("em_1", 0, false).await.unwrap();
    assert!(hold_parallel_slot(&recorder, "em_4").await && !hold_parallel_slot(&recorder, "em_5").await);
    store.close().await;
    let store = Store::open(&location).unwrap();
    let recorder = store.recorder(NoSecrets);
    assert!(hold_parallel_slot(&recorder, "em_6").await && hold_parallel_slot(&recorder, "em_7").await);
    assert!(!hold_parallel_slot(&recorder, "em_8").await);
    store.close().await;
}
