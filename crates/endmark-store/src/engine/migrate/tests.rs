use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;

use super::{MIGRATIONS, SCHEMA_MIGRATIONS};
use crate::fingerprint::sha256_hex;
use crate::{LogFilter, Reader, Store, StoreError, StoreLocation};

/// The table as the requirement has it; the shell, the file and this text must agree.
const PC_7: &str = "CREATE TABLE partial_completion_log (
      id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, turn_number INTEGER NOT NULL, truncation_index INTEGER,
      initial_chunk_length INTEGER, resume_attempts INTEGER DEFAULT 0,
      final_status TEXT NOT NULL CHECK(final_status IN ('RESOLVED','EXHAUSTED')),
      timestamp TEXT NOT NULL DEFAULT (datetime('now')))";

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs every migration's file in the stock shell, stopping at the first error.
fn run_in_shell(database: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), MIGRATIONS.len(), "each file is one migration");
    for file in files {
        let output = Command::new("sqlite3")
            .arg("-bail")
            .arg(database)
            .stdin(Stdio::from(fs::File::open(&file).unwrap()))
            .output()
            .expect("the sqlite3 shell is installed (apt-get install sqlite3)");
        assert!(output.status.success() && output.stderr.is_empty(), "{}: {output:?}", file.display());
    }
}

#[test]
fn the_files_run_twice_in_the_stock_shell_and_the_store_opens_on_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shell.db");
    run_in_shell(&path);
    run_in_shell(&path);
    let sql: String = Connection::open(&path)
        .unwrap()
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'partial_completion_log'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(words(&sql), words(PC_7));

    let location = StoreLocation::sqlite(&path);
    assert!(matches!(Reader::open(&location), Err(StoreError::Older { found: 0, .. })));
    let store = Store::open(&location).unwrap();
    assert!(store.recent(1, &LogFilter::default()).unwrap().is_empty());
    drop(store);
    run_in_shell(&path);
}

#[test]
fn opening_twice_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    let schema = |location: &StoreLocation| -> Vec<String> {
        drop(Store::open(location).unwrap());
        let connection = Connection::open(location.path()).unwrap();
        let mut statement = connection
            .prepare(
                "SELECT coalesce(sql, name) FROM sqlite_schema
                 UNION ALL SELECT version || name || sha256 || applied_at FROM schema_migrations",
            )
            .unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(schema(&location), schema(&location));
}

#[test]
fn no_added_column_is_named_like_the_truncation_index() {
    let text: String = MIGRATIONS.iter().map(|migration| migration.sql).collect();
    assert_eq!(text.matches("truncation_index").count(), 1);
}

#[test]
fn a_store_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let newer = StoreLocation::sqlite(folder.path().join("newer.db"));
    let connection = Connection::open(newer.path()).unwrap();
    connection.execute_batch(SCHEMA_MIGRATIONS).unwrap();
    connection
        .execute("INSERT INTO schema_migrations (version, name, sha256) VALUES (99, 'future', '')", [])
        .unwrap();
    drop(connection);
    assert!(matches!(Store::open(&newer), Err(StoreError::Newer { found: 99, .. })));
    assert!(matches!(Reader::open(&newer), Err(StoreError::Newer { found: 99, .. })));

    let other = StoreLocation::sqlite(folder.path().join("other.db"));
    drop(Store::open(&other).unwrap());
    Connection::open(other.path())
        .unwrap()
        .execute("UPDATE schema_migrations SET sha256 = 'x' WHERE version = 2", [])
        .unwrap();
    assert!(matches!(Store::open(&other), Err(StoreError::OtherMigration { version: 2, .. })));
}

#[test]
fn a_store_of_the_last_version_keeps_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(SCHEMA_MIGRATIONS).unwrap();
    for migration in &MIGRATIONS[..5] {
        connection.execute_batch(migration.sql).unwrap();
        connection
            .execute(
                "INSERT INTO schema_migrations (version, name, sha256) VALUES (?1, ?2, ?3)",
                (migration.version, migration.name, sha256_hex(migration.sql.as_bytes())),
            )
            .unwrap();
    }
    connection
        .execute_batch(
            "INSERT INTO usage (request_id, call, purpose, session, upstream, format, model, streamed, mode, started_at,
               ending, sent_bytes, total_ms) VALUES
               ('a', 1, 'reply', 's', 'u', 'openai', 'm', 1, 'auto', '2026-11-01 10:00:00.125', 'clean', 7, 1.5),
               ('a', 2, 'resume', 's', 'u', 'openai', 'm', 1, 'auto', '2026-11-01 10:00:01.000', 'clean', 8, NULL)",
        )
        .unwrap();
    let rows = |connection: &Connection| -> Vec<String> {
        let mut statement = connection.prepare("SELECT * FROM usage ORDER BY started_at").unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<String> {
            (0..columns).map(|column| row.get_ref(column).map(|value| format!("{value:?} "))).collect()
        };
        statement.query_map([], row).unwrap().map(Result::unwrap).collect()
    };
    let before = rows(&connection);
    assert_eq!(before.len(), 2);
    drop(connection);

    drop(Store::open(&StoreLocation::sqlite(&path)).unwrap());
    let connection = Connection::open(&path).unwrap();
    assert_eq!(rows(&connection), before);
    let without_purpose = connection.execute("UPDATE usage SET purpose = ''", []);
    assert!(without_purpose.is_err(), "the check of the purpose stands");
}
