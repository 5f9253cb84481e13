//! The keys of clients in the database.

use endmark_context::budget::RateLimits;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row, Transaction};

use crate::engine::integers::{from_sql_integer, to_sql_integer};
use crate::keys::{Key, KeyBudget, NewKey};

/// Returns all keys and the hashes of their secrets, as JSON, with their version.
pub(crate) async fn query_keys(client: &mut Client) -> Result<(i64, String, String), Error> {
    // One statement reads all three values, so that they are from the same snapshot.
    let row = client
        .query_typed_one(
            "SELECT (SELECT value FROM em_meta WHERE name = 'key_version'),
               (SELECT coalesce(json_agg(k ORDER BY k.name), '[]')::text FROM em_keys k),
               (SELECT coalesce(json_agg(s), '[]')::text FROM em_key_secrets s)",
            &[],
        )
        .await?;
    Ok((row.get(0), row.get(1), row.get(2)))
}

/// Returns all keys, ordered by name.
pub(crate) async fn query_all_keys(client: &Client) -> Result<Vec<Key>, Error> {
    let sql =
        "SELECT name, models, budget_unit, budget_period, budget_limit, ends_at, created_at, revoked_at,
                 requests_per_minute, tokens_per_minute, parallel
               FROM em_keys ORDER BY name";
    let rows = client.query_typed(sql, &[]).await?;
    let key = |row: &Row| {
        let number = |column: usize| row.get::<_, Option<i64>>(column).map(from_sql_integer);
        Key {
            name: row.get(0),
            models: row.get::<_, String>(1).lines().map(str::to_owned).collect(),
            budget: KeyBudget::from_columns(row.get(2), row.get(3), number(4)),
            rates: RateLimits {
                requests_per_minute: number(8),
                tokens_per_minute: number(9),
                parallel: number(10),
            },
            ends_at: number(5),
            created_at: from_sql_integer(row.get(6)),
            revoked_at: number(7),
        }
    };
    Ok(rows.iter().map(key).collect())
}

/// Creates a key with one secret. Returns `false` if the name is taken.
pub(crate) async fn add_key(client: &mut Client, new: &NewKey, sha256: &str) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    let limit = new.budget.map(|budget| to_sql_integer(budget.limit));
    let added = transaction
        .execute_typed(
            "INSERT INTO em_keys (name, models, budget_unit, budget_period, budget_limit, ends_at, created_at,
               requests_per_minute, tokens_per_minute, parallel)
             VALUES ($1, $2, $3, $4, $5, $6, extract(epoch FROM clock_timestamp())::bigint, $7, $8, $9) ON CONFLICT DO NOTHING",
            &[
                (&new.name, Type::TEXT),
                (&new.models.join("\n"), Type::TEXT),
                (&new.budget.map(|budget| budget.unit.name()), Type::TEXT),
                (&new.budget.map(|budget| budget.period.name()), Type::TEXT),
                (&limit, Type::INT8),
                (&new.ends_at.map(to_sql_integer), Type::INT8),
                (&new.rates.requests_per_minute.map(to_sql_integer), Type::INT8),
                (&new.rates.tokens_per_minute.map(to_sql_integer), Type::INT8),
                (&new.rates.parallel.map(to_sql_integer), Type::INT8),
            ],
        )
        .await?;
    if added == 0 {
        return Ok(false);
    }
    add_secret(&transaction, &new.name, sha256).await?;
    transaction.commit().await?;
    Ok(true)
}

async fn add_secret(transaction: &Transaction<'_>, name: &str, sha256: &str) -> Result<(), Error> {
    let sql = "INSERT INTO em_key_secrets (sha256, name) VALUES ($1, $2)";
    transaction.execute_typed(sql, &[(&sha256, Type::TEXT), (&name, Type::TEXT)]).await?;
    increment_keys_version(transaction).await
}

/// Increments the version of the keys. This locks its row, so that transactions that change keys run one
/// after another.
pub(super) async fn increment_keys_version(transaction: &Transaction<'_>) -> Result<(), Error> {
    let sql = "UPDATE em_meta SET value = value + 1 WHERE name = 'key_version'";
    transaction.execute_typed(sql, &[]).await.map(|_| ())
}

/// Adds a new secret to a key, and sets the expiry of its other secrets to the end of the overlap. Returns
/// whether the key exists.
pub(crate) async fn rotate_key(
    client: &mut Client,
    name: &str,
    sha256: &str,
    overlap_seconds: u64,
) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    let sql = "SELECT 1 FROM em_keys WHERE name = $1 AND revoked_at IS NULL FOR UPDATE";
    if transaction.query_typed_opt(sql, &[(&name, Type::TEXT)]).await?.is_none() {
        return Ok(false);
    }
    let ended = "DELETE FROM em_key_secrets WHERE name = $1 AND ends_at <= extract(epoch FROM clock_timestamp())::bigint";
    transaction.execute_typed(ended, &[(&name, Type::TEXT)]).await?;
    transaction
        .execute_typed(
            "UPDATE em_key_secrets SET ends_at = least(ends_at, extract(epoch FROM clock_timestamp())::bigint + $2)
             WHERE name = $1",
            &[(&name, Type::TEXT), (&to_sql_integer(overlap_seconds.min(1 << 40)), Type::INT8)],
        )
        .await?;
    add_secret(&transaction, name, sha256).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Revokes a key. Returns whether an unrevoked key of this name existed.
pub(crate) async fn revoke_key(client: &mut Client, name: &str) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    let revoked = transaction
        .execute_typed(
            "UPDATE em_keys SET revoked_at = extract(epoch FROM clock_timestamp())::bigint
             WHERE name = $1 AND revoked_at IS NULL",
            &[(&name, Type::TEXT)],
        )
        .await?;
    increment_keys_version(&transaction).await?;
    transaction.commit().await?;
    Ok(revoked > 0)
}
