//! Instances with one PostgreSQL database share kept outputs and summaries.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::time::Duration;

use endmark_store::{
    CondensedSession, Handle, KeptSummary, NewOutput, Reader, Store, StoreError, StoreLocation, record_read,
};
use rusqlite::Connection;
use tempfile::TempDir;
use testkit::Postgres;

const OWNER: &str = "client:a";

/// A database, and a folder with the journals of its instances.
struct Instances {
    postgres: Postgres,
    folder: TempDir,
}

impl Instances {
    fn start() -> Option<Self> {
        Some(Self { postgres: Postgres::start()?, folder: tempfile::tempdir().unwrap() })
    }

    fn location(&self, name: &str) -> StoreLocation {
        StoreLocation::parse(&self.postgres.url()).unwrap().with_journal(self.folder.path().join(name))
    }

    fn open(&self, name: &str) -> Store {
        Store::open(&self.location(name)).unwrap()
    }

    fn journal(&self, name: &str) -> Connection {
        Connection::open(self.folder.path().join(name)).unwrap()
    }

    /// Waits until a journal has nothing left to upload.
    async fn wait_until_uploaded(&self, name: &str) {
        let journal = self.journal(name);
        let sql =
            "SELECT (SELECT count(*) FROM journal_outputs) + (SELECT count(*) FROM journal_compactions)";
        let left = || journal.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        for _ in 0..400 {
            if left() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        assert_eq!(left(), 0, "{name} does not upload what it keeps");
    }
}

async fn keep_with_handle(store: &Store, handle: &Handle, value: &[u8]) {
    let new = NewOutput { handle: handle.clone(), owner: OWNER.to_owned(), keep_days: 30, max_bytes: 0 };
    let mut draft = store.begin_output(new).await.unwrap();
    draft.push(value).await.unwrap();
    draft.keep("text").await.unwrap();
}

async fn keep(store: &Store, value: &[u8]) -> Handle {
    let handle = Handle::random().unwrap();
    keep_with_handle(store, &handle, value).await;
    handle
}

async fn read(store: &Store, handle: &Handle, owner: &str) -> Result<Vec<u8>, StoreError> {
    let (wanted_handle, owner) = (handle.clone(), owner.to_owned());
    store.read_output(handle, move |reader| reader.output(&wanted_handle, &owner)?.read(0..u64::MAX)).await
}

/// Returns bytes that cannot be compressed.
fn incompressible_bytes(length: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

const COMPLETE: &str = "SELECT count(*) FROM em_outputs WHERE bytes IS NOT NULL";
const PIECES: &str = "SELECT count(*) FROM em_output_pieces";

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_reads_its_output_through_every_instance() {
    let Some(instances) = Instances::start() else { return };
    let (first, second) = (instances.open("a.db"), instances.open("b.db"));
    // This output needs several transactions of several pieces.
    let large = incompressible_bytes(3 << 20);
    let (handle, empty) = (keep(&first, &large).await, keep(&first, b"").await);
    instances.postgres.wait_for_number(COMPLETE, 2).await;
    instances.postgres.wait_for_number(PIECES, 12).await;
    assert_eq!(read(&second, &handle, OWNER).await.unwrap(), large);
    assert_eq!(read(&second, &empty, OWNER).await.unwrap(), b"");
    let foreign = read(&second, &handle, "client:b").await;
    assert!(matches!(foreign, Err(StoreError::NoOutput { .. })), "{foreign:?}");
    let unknown = read(&second, &Handle::random().unwrap(), OWNER).await;
    assert!(matches!(unknown, Err(StoreError::NoOutput { .. })), "{unknown:?}");
    // A command needs no journal of its own.
    let location = instances.location("missing.db");
    let wanted_handle = handle.clone();
    let of_command = tokio::task::spawn_blocking(move || {
        let read = Reader::read_output(&location, &wanted_handle, |reader| {
            reader.client_output(&wanted_handle)?.read(0..u64::MAX)
        });
        record_read(&location, &wanted_handle).unwrap();
        read
    });
    assert_eq!(of_command.await.unwrap().unwrap(), large);
    assert!(!instances.folder.path().join("missing.db").exists());
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_written_during_an_outage_arrive_once_later() {
    let Some(mut instances) = Instances::start() else { return };
    let (first, second) = (instances.open("a.db"), instances.open("b.db"));
    let theirs = keep(&first, b"theirs").await;
    instances.postgres.wait_for_number(COMPLETE, 1).await;
    instances.postgres.stop();
    let own = keep(&second, b"own").await;
    assert_eq!(read(&second, &own, OWNER).await.unwrap(), b"own");
    let unreachable = read(&second, &theirs, OWNER).await.unwrap_err();
    assert!(matches!(unreachable, StoreError::OutputNotHere { .. }), "{unreachable}");
    assert!(unreachable.to_string().contains("cannot be reached"), "{unreachable}");
    assert!(!unreachable.client_message().contains("127.0.0.1"), "{unreachable}");
    let (location, wanted_handle) = (instances.location("b.db"), theirs.clone());
    let of_command = tokio::task::spawn_blocking(move || {
        Reader::read_output(&location, &wanted_handle, |reader| {
            reader.output(&wanted_handle, OWNER).map(|_| ())
        })
    });
    let of_command = of_command.await.unwrap();
    assert!(matches!(of_command, Err(StoreError::OutputNotHere { .. })), "{of_command:?}");
    // The process ends while the database is still stopped.
    second.close().await;
    instances.postgres.restart();
    let second = instances.open("b.db");
    instances.postgres.wait_for_number(COMPLETE, 2).await;
    // The instance notices that the database is back at its next attempt.
    while first.condition().failure.is_some() {
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(read(&first, &own, OWNER).await.unwrap(), b"own");
    assert_eq!(read(&second, &theirs, OWNER).await.unwrap(), b"theirs");
    // Repeating the upload changes nothing.
    instances
        .journal("b.db")
        .execute("INSERT INTO journal_outputs (handle) VALUES (?1)", [own.as_str()])
        .unwrap();
    second.close().await;
    let second = instances.open("b.db");
    instances.wait_until_uploaded("b.db").await;
    assert_eq!(
        (instances.postgres.query(COMPLETE), instances.postgres.query(PIECES)),
        ("2".into(), "2".into())
    );
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_restarts_if_the_database_lost_a_part() {
    let Some(mut instances) = Instances::start() else { return };
    let first = instances.open("a.db");
    instances.postgres.stop();
    let large = incompressible_bytes(1 << 20);
    let handle = keep(&first, &large).await;
    first.close().await;
    // Simulate an upload whose first pieces the database has deleted as abandoned.
    instances.journal("a.db").execute("UPDATE journal_outputs SET next_piece = 3", []).unwrap();
    instances.postgres.restart();
    let (first, second) = (instances.open("a.db"), instances.open("b.db"));
    instances.postgres.wait_for_number(COMPLETE, 1).await;
    assert_eq!(read(&second, &handle, OWNER).await.unwrap(), large);
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_with_one_handle_do_not_mix() {
    let Some(instances) = Instances::start() else { return };
    let stores = [instances.open("a.db"), instances.open("b.db")];
    let handle = Handle::derive("result", OWNER, "n");
    let value = incompressible_bytes(700_000);
    let mut running = Vec::new();
    for nth in 0..8 {
        let (store, handle, value) = (stores[nth % 2].clone(), handle.clone(), value.clone());
        running.push(tokio::spawn(async move { keep_with_handle(&store, &handle, &value).await }));
    }
    for task in running {
        task.await.unwrap();
    }
    for (store, name) in stores.iter().zip(["a.db", "b.db"]) {
        instances.wait_until_uploaded(name).await;
        assert_eq!(read(store, &handle, OWNER).await.unwrap(), value);
    }
    assert_eq!(
        (instances.postgres.query(COMPLETE), instances.postgres.query(PIECES)),
        ("1".into(), "3".into())
    );
    for store in stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_on_any_instance_extends_retention() {
    let Some(instances) = Instances::start() else { return };
    let (first, second) = (instances.open("a.db"), instances.open("b.db"));
    let (used, old) = (keep(&first, b"used").await, keep(&first, b"old").await);
    first.keep_summary(OWNER, 30, summary("one", 4), CondensedSession::default()).await.unwrap();
    instances.wait_until_uploaded("a.db").await;
    first.close().await;
    let retention = "SELECT count(*) FROM em_outputs
        WHERE expires_at - extract(epoch FROM now()) BETWEEN 30 * 86400 + 1 AND 31 * 86400 + 1";
    assert_eq!(instances.postgres.query(retention), "2");
    let almost = "UPDATE em_outputs SET expires_at = extract(epoch FROM now())::bigint + 600";
    instances.postgres.query(almost);
    second.touch_output(&used).await.unwrap();
    instances.postgres.wait_for_number(retention, 1).await;
    let over = format!("UPDATE em_outputs SET expires_at = 1 WHERE handle = '{old}'");
    instances.postgres.query(&over);
    instances.postgres.query("UPDATE em_compactions SET expires_at = 1");
    let expired = read(&second, &old, OWNER).await;
    assert!(matches!(expired, Err(StoreError::ExpiredOutput { .. })), "{expired:?}");
    assert_eq!(second.summary_of_other_instance(OWNER, &digests("one", 4), 0).await.unwrap(), None);
    // An instance deletes expired outputs after its start, and then regularly.
    let third = instances.open("c.db");
    instances.postgres.wait_for_number(COMPLETE, 1).await;
    instances.postgres.wait_for_number(PIECES, 1).await;
    instances.postgres.wait_for_number("SELECT count(*) FROM em_compactions", 0).await;
    assert_eq!(read(&third, &used, OWNER).await.unwrap(), b"used");
    second.close().await;
    third.close().await;
}

fn digests(name: &str, turns: usize) -> Vec<String> {
    (1..=turns).map(|turn| format!("{name} {turn}")).collect()
}

fn summary(name: &str, turns: u64) -> KeptSummary {
    KeptSummary {
        first_sha256: format!("{name} 1"),
        turns,
        sha256: format!("{name} {turns}"),
        items: vec!["{\n \"a\":\"\\u0000\"}".to_owned(), "{\"b\":\"x\\ny\u{1f}\"}".to_owned()],
        mode: "window".to_owned(),
        tokens_before: 30_000,
        tokens_after: 9_000,
        handle: None,
        bytes: 120_000,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_share_summaries_by_owner_and_conversation() {
    let Some(mut instances) = Instances::start() else { return };
    let (first, second) = (instances.open("a.db"), instances.open("b.db"));
    let condensed_in =
        CondensedSession { session: "s".to_owned(), dropped: [("turns".to_owned(), 3)].into() };
    for turns in [4, 9] {
        first.keep_summary(OWNER, 30, summary("one", turns), condensed_in.clone()).await.unwrap();
    }
    instances.wait_until_uploaded("a.db").await;
    let find = async |owner: &str, conversation: Vec<String>, beyond: u64| {
        second.summary_of_other_instance(owner, &conversation, beyond).await
    };
    assert_eq!(find("client:b", digests("one", 12), 0).await.unwrap(), None);
    assert_eq!(find(OWNER, digests("other", 12), 0).await.unwrap(), None);
    assert_eq!(find(OWNER, digests("one", 3), 0).await.unwrap(), None);
    assert_eq!(find(OWNER, digests("one", 12), 9).await.unwrap(), None, "it has this one");
    assert_eq!(find(OWNER, digests("one", 8), 0).await.unwrap(), Some(summary("one", 4)));
    assert_eq!(find(OWNER, digests("one", 12), 4).await.unwrap(), Some(summary("one", 9)));
    // From now on the instance has the summary even without the database.
    instances.wait_until_uploaded("b.db").await;
    instances.postgres.stop();
    let mut own = second.summaries(OWNER, "one 1").await.unwrap();
    own.sort_by_key(|summary| summary.turns);
    assert_eq!(own, [summary("one", 4), summary("one", 9)]);
    let failed = find(OWNER, digests("one", 12), 0).await;
    assert!(matches!(failed, Err(StoreError::Database { .. })), "{failed:?}");
    let shown = Reader::open(&instances.location("b.db")).unwrap().compactions(None, 9).unwrap();
    assert_eq!((shown.len(), &shown[0].dropped), (2, &condensed_in.dropped));
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_kept_before_a_kill_arrive() {
    let Some(mut instances) = Instances::start() else { return };
    let first = instances.open("a.db");
    instances.postgres.stop();
    let handle = keep(&first, b"kept").await;
    // A copy of the files has the same state as after a kill.
    let killed = instances.folder.path().join("killed");
    std::fs::create_dir(&killed).unwrap();
    for name in ["a.db", "a.db-wal"] {
        std::fs::copy(instances.folder.path().join(name), killed.join(name)).unwrap();
    }
    first.close().await;
    instances.postgres.restart();
    let after = instances.open("killed/a.db");
    instances.postgres.wait_for_number(COMPLETE, 1).await;
    assert_eq!(read(&after, &handle, OWNER).await.unwrap(), b"kept");
    after.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_rejects_outputs_still_serves_budgets() {
    let Some(instances) = Instances::start() else { return };
    let first = instances.open("a.db");
    instances.postgres.query("ALTER TABLE em_output_pieces RENAME TO elsewhere");
    let handle = keep(&first, b"kept").await;
    // Each heartbeat reports the instance as alive. Failed uploads are retried after a pause.
    let since = "SELECT extract(epoch FROM expires) * 1000 FROM em_instances";
    let before = instances.postgres.query(since);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(first.condition().failure, None);
    }
    assert_ne!(instances.postgres.query(since), before, "it goes on to report");
    assert_eq!(read(&first, &handle, OWNER).await.unwrap(), b"kept");
    instances.postgres.query("ALTER TABLE elsewhere RENAME TO em_output_pieces");
    instances.postgres.wait_for_number(COMPLETE, 1).await;
    first.close().await;
}
