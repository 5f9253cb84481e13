//! Reads and writes the SQLite file of a copy: pages of rows and budgets, and the keys as JSON.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::integers::from_sql_integer;
use super::journal::rows::{CallRows, values_sql};
use super::journal::{self, EXTRA_COLUMN_JOINS};
use super::{BUSY_TIMEOUT, Session, StatementError, keys};
use crate::copy_result::{CopyError, CopySums, OmittedKind};
use crate::error::StoreError;
use crate::leases::BudgetKey;
use crate::owner::{self, Owner};

/// The table with the file's id in the database, and with the id of the database from which it was copied.
/// Only a copied store has this table.
const CREATE_COPY_MARKS: &str =
    "CREATE TABLE IF NOT EXISTS copy_marks (name TEXT PRIMARY KEY, value TEXT NOT NULL)";

/// Name of the mark with the file's id in the database into which it was copied.
pub(crate) const ID_MARK: &str = "id";
/// Name of the mark with the id of the database from which the file was copied.
pub(crate) const SOURCE_MARK: &str = "source";

/// A SQLite store that no other process has open.
pub(crate) struct CopyFile {
    session: Session,
    owner: Owner,
    path: PathBuf,
}

/// Position of a row in the file: its request and call. A page begins after such a position.
pub(crate) type FileRowPosition = (String, u32);

impl CopyFile {
    /// Opens the store, and settles what dead processes left unfinished.
    pub(crate) fn open(path: &Path) -> Result<Self, CopyError> {
        let (session, owner, ()) =
            Session::open(path, BUSY_TIMEOUT, |connection| journal::fail_if_journal(connection, path))?;
        Ok(Self { session, owner, path: path.to_owned() })
    }

    /// Begins a transaction. Until it ends, no other process can start using the file.
    pub(crate) fn begin(&self) -> Result<(), CopyError> {
        self.session.begin()?;
        let has_others = owner::has_others(&self.path, self.owner.name());
        if has_others.map_err(|error| StoreError::from_io(&self.path, &error))? {
            return Err(CopyError::FileInUse { path: self.path.clone() });
        }
        Ok(())
    }

    pub(crate) fn commit(&self) -> Result<(), CopyError> {
        Ok(self.session.commit()?)
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, CopyError> {
        Ok(read(&self.session).map_err(|error| StoreError::from_sqlite(&self.path, &error))?)
    }

    fn write(&self, write: impl FnOnce(&Connection) -> Result<(), StatementError>) -> Result<(), CopyError> {
        Ok(write(&self.session).map_err(|fault| StoreError::from_fault(&self.path, &fault))?)
    }

    /// Returns the value of a mark.
    pub(crate) fn mark(&self, name: &str) -> Result<Option<String>, CopyError> {
        self.read(|connection| {
            connection.execute_batch(CREATE_COPY_MARKS)?;
            connection
                .query_row("SELECT value FROM copy_marks WHERE name = ?1", [name], |row| row.get(0))
                .optional()
        })
    }

    pub(crate) fn set_mark(&self, name: &str, value: &str) -> Result<(), CopyError> {
        self.write(|connection| {
            connection.execute("INSERT INTO copy_marks (name, value) VALUES (?1, ?2)", [name, value])?;
            Ok(())
        })
    }

    /// Whether it has no records.
    pub(crate) fn is_empty(&self) -> Result<bool, CopyError> {
        let tables = ["usage", "budgets", "keys", "partial_completion_log", "outputs", "compactions", "runs"];
        let is_empty = tables.map(|table| format!("NOT EXISTS (SELECT 1 FROM {table})")).join(" AND ");
        self.read(|connection| connection.query_row(&format!("SELECT {is_empty}"), [], |row| row.get(0)))
    }

    /// Returns counts and sums, and the time of the oldest row.
    pub(crate) fn sums(&self) -> Result<(CopySums, Option<String>), CopyError> {
        self.read(|connection| {
            let sql = "SELECT count(*), coalesce(sum(prompt_tokens), 0), coalesce(sum(output_tokens), 0),
                         min(started_at),
                         (SELECT count(*) FROM budgets WHERE spent > 0),
                         (SELECT coalesce(sum(spent), 0) FROM budgets WHERE unit = 'tokens'),
                         (SELECT coalesce(sum(spent), 0) FROM budgets WHERE unit = 'nano_usd'),
                         (SELECT count(*) FROM keys)
                       FROM usage";
            connection.query_row(sql, [], |row| {
                let amount = |column: usize| row.get::<_, i64>(column).map(from_sql_integer);
                let sums = CopySums {
                    rows: amount(0)?,
                    prompt_tokens: amount(1)?,
                    output_tokens: amount(2)?,
                    budgets: amount(4)?,
                    spent_tokens: amount(5)?,
                    spent_nano_usd: amount(6)?,
                    keys: amount(7)?,
                };
                Ok((sums, row.get(3)?))
            })
        })
    }

    /// Returns the next rows of calls after a position, with their last position.
    pub(crate) fn rows(
        &self,
        (request_id, call): &FileRowPosition,
        most: u32,
    ) -> Result<Option<(CallRows, FileRowPosition)>, CopyError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT u.request_id, u.call, {}
                 FROM (SELECT * FROM usage WHERE (request_id, call) > (?1, ?2) ORDER BY request_id, call LIMIT ?3) u
                   {EXTRA_COLUMN_JOINS}
                 ORDER BY u.request_id, u.call",
                values_sql()
            );
            let (mut found, mut last) = (CallRows::default(), None);
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![request_id, call, most])?;
            while let Some(row) = rows.next()? {
                found.push(row, 2)?;
                last = Some((row.get(0)?, row.get(1)?));
            }
            Ok(last.map(|last| (found, last)))
        })
    }

    /// Writes missing rows of calls.
    pub(crate) fn add_rows(&self, rows: &str) -> Result<(), CopyError> {
        let names: Vec<&str> = journal::usage_columns().collect();
        let values: Vec<String> = names.iter().map(|name| format!("value ->> '{name}'")).collect();
        let (names, values) = (names.join(", "), values.join(", "));
        self.write(|connection| {
            connection
                .prepare_cached(&format!(
                    "INSERT INTO usage ({names}) SELECT {values} FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING"
                ))?
                .execute([rows])?;
            connection
                .prepare_cached(
                    "INSERT INTO usage_cache_writes (request_id, call, tokens, tokens_1h)
                     SELECT value ->> 'request_id', value ->> 'call', value ->> 'cache_written_tokens',
                       coalesce(value ->> 'cache_written_1h_tokens', 0)
                     FROM json_each(?1) WHERE value ->> 'cache_written_tokens' IS NOT NULL ON CONFLICT DO NOTHING",
                )?
                .execute([rows])?;
            connection
                .prepare_cached(
                    "INSERT INTO usage_estimates (request_id, call, prompt, output)
                     SELECT value ->> 'request_id', value ->> 'call', coalesce(value ->> 'estimated_prompt', 0),
                       coalesce(value ->> 'estimated_output', 0)
                     FROM json_each(?1) WHERE value ->> 'estimated_prompt' IS NOT NULL
                       OR value ->> 'estimated_output' IS NOT NULL ON CONFLICT DO NOTHING",
                )?
                .execute([rows])?;
            connection
                .prepare_cached(
                    "INSERT INTO usage_billing (request_id, call, tier, prompt_audio, cached_audio, completion_audio, web_searches)
                     SELECT value ->> 'request_id', value ->> 'call', value ->> 'tier', value ->> 'prompt_audio_tokens',
                       value ->> 'cached_audio_tokens', value ->> 'output_audio_tokens', value ->> 'web_searches'
                     FROM json_each(?1) WHERE value ->> 'web_searches' IS NOT NULL ON CONFLICT DO NOTHING",
                )?
                .execute([rows])?;
            Ok(())
        })
    }

    /// Returns the amounts spent in budgets after a position, ordered by key.
    pub(crate) fn budgets(
        &self,
        after: Option<&BudgetKey>,
        most: u32,
    ) -> Result<Vec<(BudgetKey, u64)>, CopyError> {
        let words = |key: &BudgetKey| {
            [key.scope.name().to_owned(), key.subject.clone(), key.window.clone(), key.unit.name().to_owned()]
        };
        let [scope, subject, window, unit] = after.map(words).unwrap_or_default();
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT scope, subject, window, unit, spent FROM budgets
                     WHERE (scope, subject, window, unit) > (?1, ?2, ?3, ?4) AND spent > 0
                     ORDER BY scope, subject, window, unit LIMIT ?5",
                )?
                .query_map(params![scope, subject, window, unit, most], |row| {
                    Ok((journal::read_key(row)?, from_sql_integer(row.get(4)?)))
                })?
                .collect()
        })
    }

    /// Writes the amounts spent in budgets. A larger amount that the file already has is kept.
    pub(crate) fn add_budgets(&self, budgets: &[(BudgetKey, u64)]) -> Result<(), CopyError> {
        self.write(|connection| journal::raise_spent_amounts(connection, budgets))
    }

    /// Returns all keys and the hashes of their secrets, as JSON.
    pub(crate) fn keys(&self) -> Result<(String, String), CopyError> {
        self.read(keys::read_all_as_json)
    }

    /// Adds missing keys with their secrets. Existing keys can only be revoked.
    pub(crate) fn add_keys(&self, all: &str, secrets: &str) -> Result<(), CopyError> {
        self.write(|connection| keys::add_all(connection, all, secrets))
    }

    /// Returns the names of keys that differ from those in the database. Their secrets differ, or only one of the two
    /// is revoked.
    pub(crate) fn differing_keys(&self, keys: &str, secrets: &str) -> Result<Vec<String>, CopyError> {
        self.read(|connection| {
            connection
                .prepare(
                    "WITH theirs AS (SELECT value ->> 'name' AS name, value ->> 'revoked_at' AS revoked_at FROM json_each(?1)),
                       their_secrets AS (SELECT value ->> 'name' AS name, value ->> 'sha256' AS sha256 FROM json_each(?2))
                     SELECT k.name FROM keys k JOIN theirs t USING (name)
                     WHERE (k.revoked_at IS NULL) <> (t.revoked_at IS NULL)
                       OR EXISTS (SELECT sha256 FROM key_secrets s WHERE s.name = k.name
                                  EXCEPT SELECT sha256 FROM their_secrets s WHERE s.name = k.name)
                       OR EXISTS (SELECT sha256 FROM their_secrets s WHERE s.name = k.name
                                  EXCEPT SELECT sha256 FROM key_secrets s WHERE s.name = k.name)
                     ORDER BY k.name",
                )?
                .query_map([keys, secrets], |row| row.get(0))?
                .collect()
        })
    }

    /// Returns the kinds of records that are not copied, with their counts.
    pub(crate) fn omitted_records(&self) -> Result<Vec<(&'static str, u64)>, CopyError> {
        self.read(|connection| {
            let mut omitted = Vec::new();
            for OmittedKind { name, file_table: in_file, .. } in OmittedKind::ALL {
                let count = connection
                    .query_row(&format!("SELECT count(*) FROM {in_file}"), [], |row| row.get::<_, i64>(0))?;
                if count > 0 {
                    omitted.push((name, from_sql_integer(count)));
                }
            }
            Ok(omitted)
        })
    }
}
