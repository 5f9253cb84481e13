//! Applies the numbered migrations that the store does not have yet.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::fingerprint::sha256_hex;

/// One migration. Its statements can be repeated without harm, here and in the `sqlite3` shell (PC-7).
struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "store", sql: include_str!("../../migrations/0001_store.sqlite.sql") },
    Migration { version: 2, name: "journal", sql: include_str!("../../migrations/0002_journal.sqlite.sql") },
    Migration { version: 3, name: "runs", sql: include_str!("../../migrations/0003_runs.sqlite.sql") },
    Migration {
        version: 4,
        name: "recoveries",
        sql: include_str!("../../migrations/0004_recoveries.sqlite.sql"),
    },
];

/// Returns the number of the newest migration that this version knows.
pub(crate) fn newest_known() -> u32 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

/// The table of applied migrations. The checksum detects a migration whose text was changed later.
const SCHEMA_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT (datetime('now')))";

/// Applies missing migrations. The caller holds the database's write lock, so that two processes do not both
/// migrate a new file.
pub(crate) fn migrate(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::from_sqlite(path, &error);
    connection.execute_batch(SCHEMA_MIGRATIONS).map_err(failed)?;
    let found = verified_version(connection, path)?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        connection.execute_batch(migration.sql).map_err(failed)?;
        connection
            .execute(
                "INSERT INTO schema_migrations (version, name, sha256) VALUES (?1, ?2, ?3)",
                params![migration.version, migration.name, sha256_hex(migration.sql.as_bytes())],
            )
            .map_err(failed)?;
    }
    Ok(())
}

/// Checks that the store has the tables that this version expects. A reader does not migrate.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let has_migrations: bool = connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations')",
            [],
            |row| row.get(0),
        )
        .map_err(|error| StoreError::from_sqlite(path, &error))?;
    let found = if has_migrations { verified_version(connection, path)? } else { 0 };
    if found < newest_known() {
        return Err(StoreError::OlderSchema { path: path.to_owned(), found, known: newest_known() });
    }
    Ok(())
}

/// Returns the number of the newest migration in the store. Fails if this version does not know it, or if the text of
/// a migration differs. Texts are compared first, because another build may use the same numbers for different
/// migrations.
fn verified_version(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let applied = || {
        connection
            .prepare("SELECT version, sha256 FROM schema_migrations ORDER BY version")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<(u32, String)>>>()
    };
    let applied = applied().map_err(|error| StoreError::from_sqlite(path, &error))?;
    for (version, sha256) in &applied {
        let known = MIGRATIONS.iter().find(|migration| migration.version == *version);
        if known.is_some_and(|known| sha256_hex(known.sql.as_bytes()) != *sha256) {
            return Err(StoreError::OtherMigration { path: path.to_owned(), version: *version });
        }
    }
    let found = applied.last().map_or(0, |(version, _)| *version);
    if found > newest_known() {
        return Err(StoreError::NewerSchema { path: path.to_owned(), found, known: newest_known() });
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
