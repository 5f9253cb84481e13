use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;

use super::{MIGRATIONS, SCHEMA_MIGRATIONS};
use crate::{LogFilter, Reader, Store, StoreError, StoreLocation};

/// The table as the requirement PC-7 defines it. The migration, the file in the store and the shell must
/// agree with it.
const REQUIRED_TABLE: &str = "CREATE TABLE partial_completion_log (
      id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, turn_number INTEGER NOT NULL, truncation_index INTEGER,
      initial_chunk_length INTEGER, resume_attempts INTEGER DEFAULT 0,
      final_status TEXT NOT NULL CHECK(final_status IN ('RESOLVED','EXHAUSTED')),
      timestamp TEXT NOT NULL DEFAULT (datetime('now')))";

fn normalize_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs the file of each migration in the original `sqlite3` shell, which stops at the first error.
fn run_in_shell(database: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".sqlite.sql"));
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
fn migrations_can_run_twice_in_the_sqlite_shell() {
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
    assert_eq!(normalize_spaces(&sql), normalize_spaces(REQUIRED_TABLE));

    let location = StoreLocation::sqlite(&path);
    assert!(matches!(Reader::open(&location), Err(StoreError::OlderSchema { found: 0, .. })));
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
fn no_added_column_contains_truncation_index_in_its_name() {
    let text: String = MIGRATIONS.iter().map(|migration| migration.sql).collect();
    assert_eq!(text.matches("truncation_index").count(), 1);
}

#[test]
fn a_store_of_another_version_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let newer = StoreLocation::sqlite(folder.path().join("newer.db"));
    let connection = Connection::open(newer.path()).unwrap();
    connection.execute_batch(SCHEMA_MIGRATIONS).unwrap();
    connection
        .execute("INSERT INTO schema_migrations (version, name, sha256) VALUES (99, 'future', '')", [])
        .unwrap();
    drop(connection);
    assert!(matches!(Store::open(&newer), Err(StoreError::NewerSchema { found: 99, .. })));
    assert!(matches!(Reader::open(&newer), Err(StoreError::NewerSchema { found: 99, .. })));

    let other = StoreLocation::sqlite(folder.path().join("other.db"));
    drop(Store::open(&other).unwrap());
    Connection::open(other.path())
        .unwrap()
        .execute("UPDATE schema_migrations SET sha256 = 'x' WHERE version = 1", [])
        .unwrap();
    assert!(matches!(Store::open(&other), Err(StoreError::OtherMigration { version: 1, .. })));
}

#[test]
fn a_development_store_is_rejected_and_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    let connection = Connection::open(location.path()).unwrap();
    connection.execute_batch(SCHEMA_MIGRATIONS).unwrap();
    for version in 1..=21 {
        connection
            .execute("INSERT INTO schema_migrations (version, name, sha256) VALUES (?1, 'x', 'x')", [version])
            .unwrap();
    }
    connection.execute_batch("CREATE TABLE usage (request_id TEXT); INSERT INTO usage VALUES ('r')").unwrap();
    for error in [Store::open(&location).unwrap_err(), Reader::open(&location).unwrap_err()] {
        assert!(matches!(error, StoreError::OtherMigration { version: 1, .. }), "{error:?}");
        assert!(error.to_string().contains("move the file away"), "{error}");
    }
    let tables = "SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let tables: String = connection.query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(tables, "schema_migrations,usage");
}
