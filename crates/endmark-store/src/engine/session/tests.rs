use std::time::Duration;

use rusqlite::Connection;

use crate::engine::{Session, StatementError};
use crate::writer::WriterSettings;
use crate::{LogFilter, NoSecrets, Store, StoreError, StoreLocation};

const LONG_TIMEOUT: WriterSettings = WriterSettings { busy_timeout: Duration::from_secs(30), queue: 4 };

fn location(folder: &tempfile::TempDir) -> StoreLocation {
    StoreLocation::sqlite(folder.path().join("a.db"))
}

/// Acquires the database's write lock, so that the writer waits and its queue fills.
fn lock_database(location: &StoreLocation) -> Connection {
    let connection = Connection::open(location.path()).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

fn count_capabilities(location: &StoreLocation) -> i64 {
    Connection::open(location.path())
        .unwrap()
        .query_row("SELECT count(*) FROM capabilities", [], |row| row.get(0))
        .unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn waiting_writes_are_committed_together() {
    let folder = tempfile::tempdir().unwrap();
    let location = location(&folder);
    let store = Store::open_with(&location, WriterSettings { queue: 200, ..LONG_TIMEOUT }, true).unwrap();
    let lock = lock_database(&location);
    let writes: Vec<_> = (0..100)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                store.recorder(NoSecrets).remember_capability("u", &number.to_string(), "plain").await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(writes.iter().all(|write| !write.is_finished()), "an answer means committed");
    drop(lock);
    for write in writes {
        write.await.unwrap().unwrap();
    }
    let counts = store.writer.counts();
    let (commits, written) = (counts.commits, counts.writes);
    assert_eq!(written, 100);
    assert!(commits <= 2, "one transaction for the first, one for those that waited; it took {commits}");
    assert_eq!(count_capabilities(&location), 100);
}

#[tokio::test(flavor = "current_thread")]
async fn a_full_queue_delays_callers_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let location = location(&folder);
    let store = Store::open_with(&location, LONG_TIMEOUT, true).unwrap();
    let lock = lock_database(&location);
    let writes: Vec<_> = (0..60)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                store.recorder(NoSecrets).remember_capability("u", &number.to_string(), "plain").await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(writes.iter().all(|write| !write.is_finished()));
    drop(lock);
    for write in writes {
        write.await.unwrap().unwrap();
    }
    assert_eq!(count_capabilities(&location), 60);
}

#[tokio::test(flavor = "current_thread")]
async fn a_cancelled_caller_does_not_undo_its_write() {
    let folder = tempfile::tempdir().unwrap();
    let location = location(&folder);
    let store = Store::open_with(&location, LONG_TIMEOUT, true).unwrap();
    let lock = lock_database(&location);
    let recorder = store.recorder(NoSecrets);
    let write = recorder.remember_capability("u", "m", "plain");
    assert!(tokio::time::timeout(Duration::from_millis(50), write).await.is_err());
    drop(lock);
    store.close().await;
    assert_eq!(count_capabilities(&location), 1);
}

#[tokio::test(flavor = "current_thread")]
async fn a_failed_write_is_rolled_back_alone() {
    let folder = tempfile::tempdir().unwrap();
    let location = location(&folder);
    let store = Store::open_with(&location, LONG_TIMEOUT, true).unwrap();
    let lock = lock_database(&location);
    let insert = |model: &'static str, broken: bool| {
        store.writer.write(move |session: &Session| -> Result<(), StatementError> {
            session.connection.execute(
                "INSERT INTO capabilities (upstream, model, prefill) VALUES ('u', ?1, 'p')",
                [model],
            )?;
            if broken {
                session.connection.execute("INSERT INTO no_such_table VALUES (1)", [])?;
            }
            Ok(())
        })
    };
    let release = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(lock);
    };
    let (first, second, third, ()) =
        tokio::join!(insert("a", false), insert("b", true), insert("c", false), release);
    first.unwrap();
    assert!(matches!(second, Err(StoreError::Failed { .. })), "{second:?}");
    third.unwrap();
    assert_eq!(count_capabilities(&location), 2);
    assert_eq!(store.recorder(NoSecrets).capability("u", "b").await.unwrap(), None);
}

#[tokio::test(flavor = "current_thread")]
async fn writing_resumes_after_a_lock_or_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let location = location(&folder);
    let impatient = WriterSettings { busy_timeout: Duration::from_millis(50), queue: 4 };
    let store = Store::open_with(&location, impatient, true).unwrap();
    let lock = lock_database(&location);
    let busy = store.recorder(NoSecrets).remember_capability("u", "m", "plain").await;
    assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
    drop(lock);

    let pages = |limit: u32| {
        store.writer.write(move |session: &Session| {
            session.connection.query_row(&format!("PRAGMA max_page_count = {limit}"), [], |_| Ok(()))?;
            Ok(())
        })
    };
    // The lowest possible page limit is the current size, so the database cannot grow.
    pages(1).await.unwrap();
    let large = "x".repeat(1 << 20);
    let full = store.recorder(NoSecrets).remember_capability("u", "m", &large).await;
    assert!(matches!(full, Err(StoreError::DiskFull { .. })), "{full:?}");
    assert_eq!(count_capabilities(&location), 0);
    pages(1_000_000).await.unwrap();
    store.recorder(NoSecrets).remember_capability("u", "m", &large).await.unwrap();
    assert_eq!(count_capabilities(&location), 1);
}

#[tokio::test(flavor = "current_thread")]
async fn closing_commits_waiting_writes_and_rejects_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let location = location(&folder);
    let store = Store::open_with(&location, LONG_TIMEOUT, true).unwrap();
    let lock = lock_database(&location);
    let writes: Vec<_> = (0..20)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                store.recorder(NoSecrets).remember_capability("u", &number.to_string(), "plain").await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(lock);
    store.close().await;
    store.close().await;
    let mut kept = 0;
    for write in writes {
        match write.await.unwrap() {
            Ok(()) => kept += 1,
            Err(error) => assert_eq!(error, StoreError::Closed),
        }
    }
    assert!(kept >= 4, "the queue's four were taken before the close");
    assert_eq!(store.health().await, Err(StoreError::Closed));
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "journal and sign of life are gone: {names:?}");
    assert_eq!(count_capabilities(&location), kept);
    // A new reader does not need the writer.
    assert!(store.recent(1, &LogFilter::default()).unwrap().is_empty(), "reading needs no writer");
}
