//! Numbered migrations: which are in the store, and the rest of them.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::StoreError;
use crate::fingerprint::sha256_hex;

/// One migration. Its text can be run any number of times, here and in the `sqlite3` shell (PC-7).
struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "partial_completion_log",
        sql: include_str!("../../migrations/0001_partial_completion_log.sqlite.sql"),
    },
    Migration {
        version: 2,
        name: "recoveries",
        sql: include_str!("../../migrations/0002_recoveries.sqlite.sql"),
    },
    Migration {
        version: 3,
        name: "open_recoveries",
        sql: include_str!("../../migrations/0003_open_recoveries.sqlite.sql"),
    },
    Migration {
        version: 4,
        name: "capabilities",
        sql: include_str!("../../migrations/0004_capabilities.sqlite.sql"),
    },
    Migration { version: 5, name: "usage", sql: include_str!("../../migrations/0005_usage.sqlite.sql") },
    Migration {
        version: 6,
        name: "usage_purpose",
        sql: include_str!("../../migrations/0006_usage_purpose.sqlite.sql"),
    },
    Migration { version: 7, name: "outputs", sql: include_str!("../../migrations/0007_outputs.sqlite.sql") },
    Migration {
        version: 8,
        name: "usage_cache_writes",
        sql: include_str!("../../migrations/0008_usage_cache_writes.sqlite.sql"),
    },
    Migration { version: 9, name: "runs", sql: include_str!("../../migrations/0009_runs.sqlite.sql") },
    Migration {
        version: 10,
        name: "compactions",
        sql: include_str!("../../migrations/0010_compactions.sqlite.sql"),
    },
    Migration { version: 11, name: "budgets", sql: include_str!("../../migrations/0011_budgets.sqlite.sql") },
    Migration {
        version: 12,
        name: "usage texts",
        sql: include_str!("../../migrations/0012_usage_texts.sqlite.sql"),
    },
    Migration { version: 13, name: "keys", sql: include_str!("../../migrations/0013_keys.sqlite.sql") },
    Migration {
        version: 14,
        name: "run tasks",
        sql: include_str!("../../migrations/0014_run_tasks.sqlite.sql"),
    },
    Migration {
        version: 15,
        name: "usage_purposes",
        sql: include_str!("../../migrations/0015_usage_purposes.sqlite.sql"),
    },
    Migration {
        version: 16,
        name: "usage_sums",
        sql: include_str!("../../migrations/0016_usage_sums.sqlite.sql"),
    },
    Migration {
        version: 17,
        name: "sessions",
        sql: include_str!("../../migrations/0017_sessions.sqlite.sql"),
    },
    Migration {
        version: 18,
        name: "output_sizes",
        sql: include_str!("../../migrations/0018_output_sizes.sqlite.sql"),
    },
    Migration {
        version: 19,
        name: "usage_billing",
        sql: include_str!("../../migrations/0019_usage_billing.sqlite.sql"),
    },
    Migration {
        version: 20,
        name: "requests",
        sql: include_str!("../../migrations/0020_requests.sqlite.sql"),
    },
    Migration {
        version: 21,
        name: "leases_and_sums",
        sql: include_str!("../../migrations/0021_leases_and_sums.sqlite.sql"),
    },
];

/// The newest migration this version knows.
pub(crate) fn known() -> u32 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

/// The table in which a store remembers its migrations; the checksum shows one that was changed afterwards.
const SCHEMA_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT (datetime('now')))";

/// Brings the store up to date. The caller holds the database's write lock, so that two processes that open
/// a new file at once do not both do it.
pub(crate) fn migrate(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::of_sqlite(path, &error);
    connection.execute_batch(SCHEMA_MIGRATIONS).map_err(failed)?;
    let found = newest(connection).map_err(failed)?;
    if found > known() {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: known() });
    }
    for migration in MIGRATIONS {
        let checksum = sha256_hex(migration.sql.as_bytes());
        let applied: Option<String> = connection
            .query_row(
                "SELECT sha256 FROM schema_migrations WHERE version = ?1",
                [migration.version],
                |row| row.get(0),
            )
            .optional()
            .map_err(failed)?;
        match applied {
            Some(applied) if applied == checksum => {}
            Some(_) => {
                return Err(StoreError::OtherMigration { path: path.to_owned(), version: migration.version });
            }
            None => {
                connection.execute_batch(migration.sql).map_err(failed)?;
                connection
                    .execute(
                        "INSERT INTO schema_migrations (version, name, sha256) VALUES (?1, ?2, ?3)",
                        params![migration.version, migration.name, checksum],
                    )
                    .map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// Checks that a reader, which does not migrate, finds the tables it knows.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::of_sqlite(path, &error);
    let has_migrations: bool = connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations')",
            [],
            |row| row.get(0),
        )
        .map_err(failed)?;
    let found = if has_migrations { newest(connection).map_err(failed)? } else { 0 };
    let (path, known) = (path.to_owned(), known());
    match found.cmp(&known) {
        std::cmp::Ordering::Less => Err(StoreError::Older { path, found, known }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(StoreError::Newer { path, found, known }),
    }
}

fn newest(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("SELECT coalesce(max(version), 0) FROM schema_migrations", [], |row| row.get(0))
}

#[cfg(test)]
mod tests;
