//! A store is copied from one machine to a shared database and back. Nothing is lost or counted twice.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;
use std::time::Duration;

use endmark_context::budget::sim::{LOG_BYTES_PER_ROW, ROW_BYTES};
use endmark_context::budget::{RateLimits, Scope, Unit};
use endmark_store::{
    Billing, CallSettled, CallStarted, Claim, CopyError, CopyResult, Hold, KeyBook, KeyState, NewKey,
    NoSecrets, Purpose, Reader, Store, StoreLocation, Tokens, copy_store, sha256_hex,
};
use testkit::Postgres;

const STARTED_MS: u64 = 1_790_000_000_123;

/// Makes calls that count towards the budget of a session and the budget of all. Call `nth` has 100 prompt
/// tokens and `nth` output tokens.
async fn make_calls(store: &Store, numbers: std::ops::Range<u64>) {
    let recorder = store.recorder(NoSecrets);
    for nth in numbers {
        let request_id = format!("em_{}", &sha256_hex(&nth.to_le_bytes())[..27]);
        let session = sha256_hex(&(nth % 400).to_le_bytes())[..16].to_owned();
        let claim = |scope, subject: &str, unit| Claim {
            scope,
            subject: subject.to_owned(),
            window: "2026-09".to_owned(),
            unit,
            limit: 1 << 50,
            amount: 4_000,
            closing_amount: 0,
        };
        let claims =
            vec![claim(Scope::All, "", Unit::NanoUsd), claim(Scope::Session, &session, Unit::Tokens)];
        recorder
            .hold(Hold { request_id: request_id.clone(), call: 1, claims, may_close: false })
            .await
            .unwrap();
        let open = recorder
            .open_call(CallStarted {
                request_id,
                call: 1,
                purpose: Purpose::Reply,
                session,
                credential: Some("key:team-a".to_owned()),
                upstream: "openai".to_owned(),
                format: "openai_chat".into(),
                model: "gpt-5-mini-2026-08-07".to_owned(),
                streamed: nth % 2 == 0,
                mode: "auto".into(),
                started_ms: STARTED_MS + nth * 7,
                sent_bytes: 40_000 + nth,
                prompt_estimate: 10,
                charges: Vec::new(),
            })
            .await;
        open.settle(CallSettled {
            http_status: Some(200),
            ending: "clean".into(),
            stop: Some("stop".into()),
            verdict: Some("whole".into()),
            answered_model: Some("gpt-5-mini-2026-08-07".to_owned()),
            tokens: Tokens {
                prompt: Some(100),
                output: Some(nth),
                cached: Some(64),
                cache_written: (nth % 3 == 0).then_some(9),
                cache_written_1h: (nth % 6 == 0).then_some(4),
                total: Some(100 + nth),
                ..Tokens::default()
            },
            billing: Billing {
                tier: (nth % 100 == 0).then(|| "flex".to_owned()),
                prompt_audio: u64::from(nth % 100 == 1),
                ..Billing::default()
            },
            received_bytes: 2_000 + nth,
            first_byte_us: Some(412_250),
            total_us: 5_312_500,
            ..CallSettled::default()
        });
    }
}

async fn make_store(path: &Path, calls: u64) -> StoreLocation {
    let location = StoreLocation::sqlite(path);
    let store = Store::open(&location).unwrap();
    make_calls(&store, 0..calls).await;
    store.close().await;
    location
}

async fn copy_without_progress(from: &StoreLocation, to: &StoreLocation) -> Result<CopyResult, CopyError> {
    copy_store(from, to, |_| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_to_postgresql_and_back_keeps_all_sums() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = make_store(&folder.path().join("a.db"), 1_100).await;
    let database = StoreLocation::parse(&postgres.url()).unwrap();
    let mut book = KeyBook::open(&file).await.unwrap();
    let rates =
        RateLimits { requests_per_minute: Some(60), tokens_per_minute: Some(90_000), parallel: Some(4) };
    let new = |name: &str| NewKey {
        rates,
        name: name.to_owned(),
        models: vec!["gpt-5*".to_owned()],
        ..NewKey::default()
    };
    let secret = book.add(new("team-a")).await.unwrap();
    book.add(new("gone")).await.unwrap();
    book.revoke("gone").await.unwrap();
    book.close().await;

    let mut steps = Vec::new();
    let first = copy_store(&file, &database, |step| steps.push(step.rows)).await.unwrap();
    assert!(first.is_whole(), "{first:?}");
    assert_eq!(steps, [512, 1_024, 1_100], "transactions are bounded");
    assert_eq!((first.source.rows, first.source.prompt_tokens, first.source.keys), (1_100, 110_000, 2));
    assert_eq!(first.source.budgets, 401);
    // All columns are present: the optional ones have the same number of values.
    let written =
        "SELECT count(*), sum(cache_written_tokens), min(started_at AT TIME ZONE 'UTC') FROM em_usage";
    assert_eq!(postgres.query(written), "1100|3303|2026-09-21 14:13:20.123");
    let spent = "SELECT sum(spent), sum(committed) FROM em_budgets WHERE unit = 'tokens'";
    assert_eq!(postgres.query(spent), format!("{0}|{0}", first.source.spent_tokens));
    assert_eq!(postgres.query("SELECT count(*) FROM em_instances WHERE expires > now()"), "0");

    // Repeating the copy changes nothing, and later records are added once.
    assert_eq!(copy_without_progress(&file, &database).await.unwrap(), first);
    let store = Store::open(&file).unwrap();
    make_calls(&store, 1_100..1_200).await;
    store.close().await;
    let more = copy_without_progress(&file, &database).await.unwrap();
    assert!(more.is_whole() && more.source.rows == 1_200, "{more:?}");
    assert_eq!(postgres.query(spent), format!("{0}|{0}", more.source.spent_tokens));

    let back = StoreLocation::sqlite(folder.path().join("b.db"));
    let returned = copy_without_progress(&database, &back).await.unwrap();
    assert!(returned.is_whole() && returned.source == more.source, "{returned:?}");
    assert_eq!(copy_without_progress(&database, &back).await.unwrap(), returned);
    let (one, other) = (Reader::open(&file).unwrap(), Reader::open(&back).unwrap());
    let columns = |reader: &Reader| {
        let mut rows = reader.recent_calls(2_000).unwrap();
        rows.sort_by(|one, other| one.request_id.cmp(&other.request_id));
        rows
    };
    assert_eq!(columns(&one), columns(&other));
    let spent = |reader: &Reader| {
        let rows = reader.budgets().unwrap();
        assert!(rows.iter().all(|row| row.recomputed == (row.spent, row.held)));
        rows.into_iter().map(|row| (row.subject, row.unit, row.window, row.spent)).collect::<Vec<_>>()
    };
    assert_eq!(spent(&one), spent(&other));
    let store = Store::open(&back).unwrap();
    let key = store.find_key(secret.reveal(), Duration::from_hours(1)).await.unwrap().unwrap().key;
    assert_eq!((key.models, key.rates), (vec!["gpt-5*".to_owned()], rates));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copying_rejects_stores_in_use_and_nonempty_targets() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = make_store(&folder.path().join("a.db"), 3).await;
    let other = make_store(&folder.path().join("other.db"), 4).await;
    let database = StoreLocation::parse(&postgres.url()).unwrap();
    assert!(matches!(copy_without_progress(&database, &file).await, Err(CopyError::EmptySource { .. })));
    assert!(matches!(copy_without_progress(&file, &other).await, Err(CopyError::SameKind)));
    let empty = StoreLocation::sqlite(folder.path().join("none.db"));
    assert!(matches!(copy_without_progress(&empty, &database).await, Err(CopyError::Store(_))));
    assert!(!folder.path().join("none.db").exists());

    let gateway = Store::open(&file).unwrap();
    assert!(matches!(copy_without_progress(&file, &database).await, Err(CopyError::FileInUse { .. })));
    gateway.close().await;
    drop(gateway);
    assert!(copy_without_progress(&file, &database).await.unwrap().is_whole());
    assert!(matches!(copy_without_progress(&other, &database).await, Err(CopyError::OtherContents { .. })));
    assert!(matches!(copy_without_progress(&database, &other).await, Err(CopyError::OtherContents { .. })));
    assert!(
        matches!(copy_without_progress(&database, &file).await, Err(CopyError::OtherContents { .. })),
        "nor its own source"
    );

    let instance = Store::open(&database.clone().with_journal(folder.path().join("j.db"))).unwrap();
    let back = StoreLocation::sqlite(folder.path().join("b.db"));
    assert!(matches!(
        copy_without_progress(&database, &back).await,
        Err(CopyError::DatabaseInUse { instances: 1 })
    ));
    assert!(matches!(
        copy_without_progress(&StoreLocation::sqlite(folder.path().join("j.db")), &database).await,
        Err(CopyError::Store(_))
    ));
    instance.close().await;
    postgres.query(
        "INSERT INTO em_shares SELECT scope, subject, span, unit, 'silent', 9, 3 FROM em_budgets LIMIT 1",
    );
    let unreported = copy_without_progress(&database, &back).await;
    assert_eq!(unreported, Err(CopyError::Unreported { instance: "silent".to_owned() }));
    postgres.query("DELETE FROM em_shares WHERE instance = 'silent'");
    assert!(copy_without_progress(&database, &back).await.unwrap().is_whole());
    // A file that came from a database contains the spending of all instances, which would count twice there.
    assert!(matches!(copy_without_progress(&back, &database).await, Err(CopyError::OtherContents { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn repeating_a_copy_does_not_restore_revoked_keys_or_old_secrets() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = make_store(&folder.path().join("a.db"), 1).await;
    let database = StoreLocation::parse(&postgres.url()).unwrap();
    let mut book = KeyBook::open(&file).await.unwrap();
    for name in ["leaked", "rotated", "late"] {
        book.add(NewKey { name: name.to_owned(), ..NewKey::default() }).await.unwrap();
    }
    book.close().await;
    assert!(copy_without_progress(&file, &database).await.unwrap().is_whole());
    let mut shared = KeyBook::open(&database).await.unwrap();
    shared.revoke("leaked").await.unwrap();
    // The second rotation deletes the first secret.
    shared.rotate("rotated", 0).await.unwrap();
    shared.rotate("rotated", 0).await.unwrap();
    let mut book = KeyBook::open(&file).await.unwrap();
    book.revoke("late").await.unwrap();
    book.close().await;
    let secrets = postgres.query("SELECT sha256 FROM em_key_secrets ORDER BY 1");
    let again = copy_without_progress(&file, &database).await.unwrap();
    assert_eq!(again.differing_keys, ["leaked", "rotated"]);
    assert!(!again.is_whole());
    assert_eq!(postgres.query("SELECT sha256 FROM em_key_secrets ORDER BY 1"), secrets);
    let states: Vec<_> = shared.all_keys().await.unwrap().iter().map(|key| key.state(0)).collect();
    assert_eq!(states, [KeyState::Revoked, KeyState::Revoked, KeyState::Valid], "late, leaked, rotated");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_and_log_sizes_match_the_simulation() {
    const CALLS: u64 = 6_000;
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = make_store(&folder.path().join("a.db"), CALLS).await;
    let database = StoreLocation::parse(&postgres.url()).unwrap();
    let log = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    let mut logged = Vec::new();
    copy_store(&file, &database, |step| logged.push((step.rows, postgres.query_number(log)))).await.unwrap();
    // After a checkpoint, the first change of each page is logged with the complete page.
    let (from, to) = (logged[logged.len() / 2], logged[logged.len() - 1]);
    let row = postgres.query_number("SELECT pg_total_relation_size('em_usage')") / CALLS;
    let log = (to.1 - from.1) / (to.0 - from.0);
    let is_near = |measured: u64, assumed: u64| measured.abs_diff(assumed) * 10 <= assumed * 3;
    assert!(is_near(row, ROW_BYTES), "{row} bytes a row");
    assert!(is_near(log, LOG_BYTES_PER_ROW), "{log} bytes of log a row");
}
