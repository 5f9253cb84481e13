//! Rows of calls in PostgreSQL: tables of an older version are updated, and old rows are deleted.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use endmark_context::budget::{Scope, Unit};
use endmark_store::{
    CallSettled, CallStarted, Claim, Dimension, Hold, HoldOutcome, NoSecrets, Purpose, Store, StoreLocation,
    Tokens, shared_sums, utc,
};
use testkit::Postgres;

const DAY_MS: u64 = 86_400_000;

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn location(postgres: &Postgres, folder: &Path, journal: &str) -> StoreLocation {
    StoreLocation::parse(&postgres.url()).unwrap().with_journal(folder.join(journal))
}

/// Makes a call of 10 tokens that starts at this time and counts in these windows of a budget.
async fn call(store: &Store, request_id: &str, started_ms: u64, windows: &[&str]) {
    let claim = |window: &&str| Claim {
        scope: Scope::Key,
        subject: "k".to_owned(),
        window: (*window).to_owned(),
        unit: Unit::Tokens,
        limit: 1_000,
        amount: 20,
        closing_amount: 0,
    };
    let recorder = store.recorder(NoSecrets);
    for (at, claim) in windows.iter().map(claim).enumerate() {
        let call = u32::try_from(at + 1).unwrap();
        let request_id = request_id.to_owned();
        let hold = Hold { request_id: request_id.clone(), call, claims: vec![claim], may_close: false };
        assert!(matches!(recorder.hold(hold).await.unwrap(), HoldOutcome::Fits { .. }));
        let started = CallStarted {
            request_id,
            call,
            purpose: Purpose::Reply,
            session: "s".to_owned(),
            credential: None,
            upstream: "local".to_owned(),
            format: "openai_chat".into(),
            model: "m".to_owned(),
            streamed: false,
            mode: "auto".into(),
            started_ms,
            sent_bytes: 40,
            prompt_estimate: 10,
            charges: Vec::new(),
        };
        recorder.open_call(started).await.settle(CallSettled {
            ending: "clean".into(),
            tokens: Tokens { prompt: Some(7), output: Some(3), ..Tokens::default() },
            ..CallSettled::default()
        });
    }
}

async fn calls_in_sums(location: &StoreLocation) -> u64 {
    let ever = ("0000-01-01 00:00:00", "9999-12-31 23:59:59");
    let sums = shared_sums(location, Dimension::Nothing, ever.0, ever.1).await.unwrap().unwrap();
    sums.iter().map(|summed| summed.sums.calls).sum()
}

async fn wait_for_result(postgres: &Postgres, sql: &str, expected: &str) {
    let begin = Instant::now();
    while postgres.query(sql) != expected {
        assert!(begin.elapsed() < Duration::from_secs(20), "{sql}: {}", postgres.query(sql));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_an_older_version_get_new_columns_and_sums() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let location = location(&postgres, folder.path(), "a.db");
    let store = Store::open(&location).unwrap();
    for nth in 0..5 {
        call(&store, &format!("em_{nth}"), now_ms() - nth * DAY_MS, &["ever"]).await;
    }
    store.close().await;
    // The tables as the first version created them.
    postgres.query(
        "DROP TABLE em_usage_sums; DROP INDEX em_budgets_by_span; DROP INDEX em_usage_billed_apart;
         ALTER TABLE em_usage DROP COLUMN web_searches, DROP COLUMN tier, DROP COLUMN cache_written_1h_tokens,
           DROP COLUMN prompt_audio_tokens, DROP COLUMN cached_audio_tokens, DROP COLUMN output_audio_tokens;
         DELETE FROM em_meta WHERE name = 'summed_until'; UPDATE em_meta SET value = 1 WHERE name = 'schema'",
    );
    let without = shared_sums(&location, Dimension::Nothing, "2026-01-01", "9999-01-01").await;
    assert!(without.unwrap_err().to_string().contains("start a gateway"));
    // An instance tidies the database once before it closes.
    Store::open(&location).unwrap().close().await;
    let summed = "SELECT count(*), sum(calls) FROM em_usage_sums";
    assert_eq!(postgres.query(summed), "4|4", "the call of this hour is not summed yet");
    assert_eq!(calls_in_sums(&location).await, 5, "whether they are summed or not");
    // A late row is added to the sums at once, and an existing row is not counted again.
    let store = Store::open(&location).unwrap();
    call(&store, "em_late", now_ms() - 3 * DAY_MS, &["ever"]).await;
    store.close().await;
    assert_eq!((postgres.query(summed).as_str(), calls_in_sums(&location).await), ("4|5", 6));
    let journal = rusqlite::Connection::open(folder.path().join("a.db")).unwrap();
    journal
        .execute("INSERT INTO journal_rows (request_id, call) SELECT request_id, call FROM usage", [])
        .unwrap();
    Store::open(&location).unwrap().close().await;
    assert_eq!((postgres.query(summed).as_str(), calls_in_sums(&location).await), ("4|5", 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn old_rows_and_ended_budgets_are_deleted() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let location = location(&postgres, folder.path(), "a.db");
    let store = Store::open(&location).unwrap();
    let now = now_ms();
    let [long_ago, today] = [70, 0].map(|days| utc(now - days * DAY_MS)[..10].to_owned());
    let windows = [long_ago.as_str(), &long_ago[..7], today.as_str(), &today[..7], "ever"];
    call(&store, "em_old", now - 70 * DAY_MS, &windows).await;
    call(&store, "em_new", now, &["ever"]).await;
    let kept_days = "SELECT count(*), count(DISTINCT started_at::date) FROM em_usage";
    wait_for_result(&postgres, kept_days, "6|2").await;
    wait_for_result(&postgres, "SELECT count(*) FROM em_budgets WHERE committed = spent", "5").await;
    // A silent instance may still spend its share of an ended budget.
    postgres.query("INSERT INTO em_budgets (scope, subject, span, unit, committed) VALUES ('key', 'open', '2020-01-01', 'tokens', 5)");
    assert!(store.delete_older_than(30).await.unwrap() > 0);
    wait_for_result(&postgres, kept_days, "1|1").await;
    wait_for_result(&postgres, "SELECT count(*) FROM em_budgets WHERE subject = 'k'", "3").await;
    for table in ["em_budgets", "em_shares"] {
        let spans =
            format!("SELECT span FROM {table} WHERE subject = 'k' GROUP BY span ORDER BY length(span)");
        assert_eq!(postgres.query(&spans), format!("ever\n{}\n{today}", &today[..7]), "{table}");
    }
    assert_eq!(postgres.query_number("SELECT count(*) FROM em_budgets WHERE subject = 'open'"), 1);
    assert_eq!(calls_in_sums(&location).await, 1, "the sums forget them, too");
    store.close().await;
    // An instance that returns does not report deleted rows again.
    let store = Store::open(&location).unwrap();
    call(&store, "em_newer", now, &["ever"]).await;
    store.close().await;
    assert_eq!(postgres.query_number("SELECT count(*) FROM em_budgets WHERE subject = 'k'"), 3);
    let ever = "SELECT spent FROM em_budgets WHERE subject = 'k' AND span = 'ever'";
    assert_eq!(postgres.query_number(ever), 30);
}
