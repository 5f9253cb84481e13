//! SQL statements for keys. The tables contain only hashes of secrets.

use endmark_context::budget::RateLimits;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::integers::{from_sql_integer, to_sql_integer};
use super::outputs::unix_seconds;
use crate::engine::{Reader, StatementError};
use crate::error::StoreError;
use crate::keys::{FoundKey, Key, KeyBudget, NewKey};

/// Creates a key with one secret. Returns `false` if the name is taken.
pub(crate) fn add(
    connection: &Connection,
    new: &NewKey,
    secret_sha256: &str,
) -> Result<bool, StatementError> {
    let added = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO keys (name, models, budget_unit, budget_period, budget_limit, ends_at, created_at,
               requests_per_minute, tokens_per_minute, parallel)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            new.name,
            new.models.join("\n"),
            new.budget.map(|budget| budget.unit.name()),
            new.budget.map(|budget| budget.period.name()),
            new.budget.map(|budget| to_sql_integer(budget.limit)),
            new.ends_at.map(to_sql_integer),
            unix_seconds(),
            new.rates.requests_per_minute.map(to_sql_integer),
            new.rates.tokens_per_minute.map(to_sql_integer),
            new.rates.parallel.map(to_sql_integer),
        ])?;
    if added > 0 {
        add_secret(connection, &new.name, secret_sha256)?;
    }
    Ok(added > 0)
}

fn add_secret(connection: &Connection, name: &str, secret_sha256: &str) -> Result<(), StatementError> {
    connection
        .prepare_cached("INSERT INTO key_secrets (sha256, name) VALUES (?1, ?2)")?
        .execute([secret_sha256, name])?;
    Ok(())
}

/// Adds a new secret to a key. Its other secrets expire after the overlap, unless they already expire
/// earlier. Returns whether the key exists and is not revoked.
pub(crate) fn rotate(
    connection: &Connection,
    name: &str,
    secret_sha256: &str,
    overlap_seconds: u64,
) -> Result<bool, StatementError> {
    let is_there: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM keys WHERE name = ?1 AND revoked_at IS NULL)")?
        .query_row([name], |row| row.get(0))?;
    if !is_there {
        return Ok(false);
    }
    connection
        .prepare_cached("DELETE FROM key_secrets WHERE name = ?1 AND ends_at <= ?2")?
        .execute(params![name, unix_seconds()])?;
    connection
        .prepare_cached("UPDATE key_secrets SET ends_at = min(coalesce(ends_at, ?2), ?2) WHERE name = ?1")?
        .execute(params![name, unix_seconds().saturating_add(to_sql_integer(overlap_seconds))])?;
    add_secret(connection, name, secret_sha256)?;
    Ok(true)
}

/// Revokes a key. Returns whether the key existed and was not revoked yet.
pub(crate) fn revoke(connection: &Connection, name: &str) -> Result<bool, StatementError> {
    let revoked = connection
        .prepare_cached("UPDATE keys SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL")?
        .execute(params![name, unix_seconds()])?;
    Ok(revoked > 0)
}

/// Adds missing keys with their secrets, given as two arrays of JSON objects. An existing key is changed only
/// if it has to be revoked.
pub(super) fn add_all(connection: &Connection, all: &str, secrets: &str) -> Result<(), StatementError> {
    connection.execute(
        "INSERT INTO key_secrets (sha256, name, ends_at)
         SELECT value ->> 'sha256', value ->> 'name', value ->> 'ends_at' FROM json_each(?1)
         WHERE value ->> 'name' NOT IN (SELECT name FROM keys)",
        [secrets],
    )?;
    connection.execute(
        "INSERT INTO keys (name, models, budget_unit, budget_period, budget_limit, ends_at, created_at, revoked_at,
           requests_per_minute, tokens_per_minute, parallel)
         SELECT value ->> 'name', value ->> 'models', value ->> 'budget_unit', value ->> 'budget_period',
           value ->> 'budget_limit', value ->> 'ends_at', value ->> 'created_at', value ->> 'revoked_at',
           value ->> 'requests_per_minute', value ->> 'tokens_per_minute', value ->> 'parallel'
         FROM json_each(?1) WHERE true
         ON CONFLICT DO UPDATE SET revoked_at = coalesce(revoked_at, excluded.revoked_at)",
        [all],
    )?;
    Ok(())
}

/// Returns all keys, and the hashes of their secrets, as two arrays of JSON objects.
pub(super) fn read_all_as_json(connection: &Connection) -> rusqlite::Result<(String, String)> {
    connection.query_row(
        "SELECT (SELECT json_group_array(json_object('name', name, 'models', models, 'budget_unit', budget_unit,
             'budget_period', budget_period, 'budget_limit', budget_limit, 'ends_at', ends_at,
             'created_at', created_at, 'revoked_at', revoked_at, 'requests_per_minute', requests_per_minute,
             'tokens_per_minute', tokens_per_minute, 'parallel', parallel)) FROM keys),
           (SELECT json_group_array(json_object('sha256', sha256, 'name', name, 'ends_at', ends_at)) FROM key_secrets)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

const KEY_COLUMNS: &str =
    "SELECT k.name, k.models, k.budget_unit, k.budget_period, k.budget_limit, k.ends_at, k.created_at,
  k.revoked_at, k.requests_per_minute, k.tokens_per_minute, k.parallel";

impl Reader {
    /// Returns all keys, ordered by name (CX-7).
    pub fn keys(&self) -> Result<Vec<Key>, StoreError> {
        let read = || {
            self.connection()
                .prepare(&format!("{KEY_COLUMNS} FROM keys k ORDER BY k.name"))?
                .query_map([], read_key)?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Returns the key whose secret has this hash.
    pub(crate) fn key_by_secret(&self, sha256: &str) -> Result<Option<FoundKey>, StoreError> {
        let read = || {
            self.connection()
                .prepare(&format!(
                    "{KEY_COLUMNS}, s.ends_at FROM key_secrets s JOIN keys k USING (name) WHERE s.sha256 = ?1"
                ))?
                .query_row([sha256], |row| {
                    let secret_ends_at = row.get::<_, Option<i64>>(11)?.map(from_sql_integer);
                    Ok(FoundKey { key: read_key(row)?, secret_ends_at })
                })
                .optional()
        };
        read().map_err(|error| self.store_error(&error))
    }
}

fn read_key(row: &Row<'_>) -> rusqlite::Result<Key> {
    let models: String = row.get(1)?;
    let (unit, period): (Option<String>, Option<String>) = (row.get(2)?, row.get(3)?);
    let limit: Option<i64> = row.get(4)?;
    let number =
        |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(from_sql_integer));
    let budget = KeyBudget::from_columns(unit.as_deref(), period.as_deref(), limit.map(from_sql_integer));
    Ok(Key {
        name: row.get(0)?,
        models: models.lines().map(str::to_owned).collect(),
        budget,
        rates: RateLimits {
            requests_per_minute: number(8)?,
            tokens_per_minute: number(9)?,
            parallel: number(10)?,
        },
        ends_at: number(5)?,
        created_at: from_sql_integer(row.get(6)?),
        revoked_at: number(7)?,
    })
}
