//! The statements that a copy runs in the shared database.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use super::database;
use super::keys;
use super::sql::Parameter;
use crate::copy_result::{CopySums, OmittedKind};
use crate::engine::integers::from_sql_integer;
use crate::engine::journal::CALL_COLUMNS;
use crate::leases::BudgetKey;

/// Position of a row: its time, request and call. A page begins after such a position.
pub(crate) type DatabaseRowPosition = (String, String, i32);

/// Returns whether the tables contain records, and whether the file with this id was copied into them.
pub(crate) async fn query_contents(client: &Client, id: &str) -> Result<(bool, bool), Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM em_usage) OR EXISTS (SELECT 1 FROM em_budgets) OR EXISTS (SELECT 1 FROM em_keys),
                 EXISTS (SELECT 1 FROM em_instances WHERE id = $1)";
    let row = client.query_typed_one(sql, &[(&id, Type::TEXT)]).await?;
    Ok((row.get(0), row.get(1)))
}

/// Returns the number of live instances, and the name of a silent instance that may have unreported costs.
pub(crate) async fn count_live_instances(client: &Client) -> Result<(u64, Option<String>), Error> {
    let sql = "SELECT (SELECT count(*) FROM em_instances WHERE expires > clock_timestamp()),
                 (SELECT min(instance) FROM em_shares WHERE granted > spent)";
    let row = client.query_typed_one(sql, &[]).await?;
    Ok((from_sql_integer(row.get(0)), row.get(1)))
}

/// Returns the id of the database. Creates the id if it is missing.
pub(crate) async fn read_or_create_id(client: &Client, random: u128) -> Result<String, Error> {
    let random = i64::try_from(random % (1 << 63)).unwrap_or_default();
    let sql = "INSERT INTO em_meta (name, value) VALUES ('id', $1) ON CONFLICT DO NOTHING";
    client.execute_typed(sql, &[(&random, Type::INT8)]).await?;
    let row = client.query_typed_one("SELECT value FROM em_meta WHERE name = 'id'", &[]).await?;
    Ok(row.get::<_, i64>(0).to_string())
}

/// Adds missing keys with their secrets. Existing keys can only be revoked.
pub(crate) async fn add_keys(client: &mut Client, keys: &str, secrets: &str) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    // This comes first, because it blocks gateways that would change keys.
    keys::increment_keys_version(&transaction).await?;
    let add_secrets = "INSERT INTO em_key_secrets (sha256, name, ends_at)
                   SELECT sha256, name, ends_at FROM json_to_recordset($1::text::json) AS r(sha256 text, name text, ends_at bigint)
                   WHERE name NOT IN (SELECT name FROM em_keys)";
    transaction.execute_typed(add_secrets, &[(&secrets, Type::TEXT)]).await?;
    let add = "INSERT INTO em_keys (name, models, budget_unit, budget_period, budget_limit, ends_at, created_at, revoked_at,
                 requests_per_minute, tokens_per_minute, parallel)
               SELECT name, models, budget_unit, budget_period, budget_limit, ends_at, created_at, revoked_at,
                 requests_per_minute, tokens_per_minute, parallel
               FROM json_to_recordset($1::text::json) AS r(name text, models text, budget_unit text, budget_period text,
                 budget_limit bigint, ends_at bigint, created_at bigint, revoked_at bigint,
                 requests_per_minute bigint, tokens_per_minute bigint, parallel bigint)
               ON CONFLICT (name) DO UPDATE SET revoked_at = coalesce(em_keys.revoked_at, excluded.revoked_at)";
    transaction.execute_typed(add, &[(&keys, Type::TEXT)]).await?;
    transaction.commit().await
}

/// Returns counts and sums of the data that was copied from the file: its rows since a time, its costs, and
/// all keys.
pub(crate) async fn query_file_sums(client: &Client, id: &str, since: &str) -> Result<CopySums, Error> {
    let sql = "SELECT count(*), coalesce(sum(prompt_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint,
                 (SELECT count(*) FROM em_shares WHERE instance = $1 AND spent > 0),
                 (SELECT coalesce(sum(spent), 0)::bigint FROM em_shares WHERE instance = $1 AND unit = 'tokens'),
                 (SELECT coalesce(sum(spent), 0)::bigint FROM em_shares WHERE instance = $1 AND unit = 'nano_usd'),
                 (SELECT count(*) FROM em_keys)
               FROM em_usage WHERE instance = $1 AND started_at >= $2::text::timestamptz";
    let row = client.query_typed_one(sql, &[(&id, Type::TEXT), (&since, Type::TEXT)]).await?;
    Ok(read_sums(&row))
}

/// Returns counts and sums of all data.
pub(crate) async fn query_total_sums(client: &Client) -> Result<CopySums, Error> {
    let sql =
        "SELECT count(*), coalesce(sum(prompt_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint,
                 (SELECT count(*) FROM em_budgets WHERE spent > 0),
                 (SELECT coalesce(sum(spent), 0)::bigint FROM em_budgets WHERE unit = 'tokens'),
                 (SELECT coalesce(sum(spent), 0)::bigint FROM em_budgets WHERE unit = 'nano_usd'),
                 (SELECT count(*) FROM em_keys)
               FROM em_usage";
    Ok(read_sums(&client.query_typed_one(sql, &[]).await?))
}

fn read_sums(row: &tokio_postgres::Row) -> CopySums {
    let amount = |column: usize| from_sql_integer(row.get(column));
    CopySums {
        rows: amount(0),
        prompt_tokens: amount(1),
        output_tokens: amount(2),
        budgets: amount(3),
        spent_tokens: amount(4),
        spent_nano_usd: amount(5),
        keys: amount(6),
    }
}

/// Returns the next rows of calls after a position as an array of JSON objects, with their number and the
/// position of the last row.
pub(crate) async fn query_next_rows(
    client: &Client,
    (time, request_id, call): &DatabaseRowPosition,
    most: u32,
) -> Result<Option<(String, u64, DatabaseRowPosition)>, Error> {
    let written = CALL_COLUMNS.map(|(name, kind)| match kind {
        "timestamptz" => format!("to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS') AS {name}"),
        _ => name.to_owned(),
    });
    let sql = format!(
        "WITH page AS (SELECT * FROM em_usage WHERE (started_at, request_id, call) > ($1::text::timestamptz, $2, $3)
                 ORDER BY started_at, request_id, call LIMIT $4),
               written AS (SELECT {} FROM page)
               SELECT (SELECT json_agg(w)::text FROM written w), (SELECT count(*) FROM page), started_at::text, request_id, call
               FROM page ORDER BY page.started_at DESC, page.request_id DESC, page.call DESC LIMIT 1",
        written.join(", ")
    );
    let place: [Parameter<'_>; 4] =
        [(time, Type::TEXT), (request_id, Type::TEXT), (call, Type::INT4), (&i64::from(most), Type::INT8)];
    let row = client.query_typed_opt(&sql, &place).await?;
    Ok(row.map(|row| (row.get(0), from_sql_integer(row.get(1)), (row.get(2), row.get(3), row.get(4)))))
}

/// Returns the amounts spent in budgets after a position, ordered by key.
pub(crate) async fn budgets(
    client: &Client,
    after: &[String; 4],
    most: u32,
) -> Result<(Vec<(BudgetKey, u64)>, Option<[String; 4]>), Error> {
    let sql = "SELECT scope, subject, span, unit, spent FROM em_budgets WHERE (scope, subject, span, unit) > ($1, $2, $3, $4)
               ORDER BY scope, subject, span, unit LIMIT $5";
    let [scope, subject, span, unit] = after;
    let place: [Parameter<'_>; 5] = [
        (scope, Type::TEXT),
        (subject, Type::TEXT),
        (span, Type::TEXT),
        (unit, Type::TEXT),
        (&i64::from(most), Type::INT8),
    ];
    let rows = client.query_typed(sql, &place).await?;
    let last = rows.last().map(|row| [row.get(0), row.get(1), row.get(2), row.get(3)]);
    Ok((rows.iter().map(database::read_spending).filter(|(_, spent)| *spent > 0).collect(), last))
}

/// Returns the kinds of records that are not copied into a file, with their counts.
pub(crate) async fn query_omitted_records(client: &Client) -> Result<Vec<(&'static str, u64)>, Error> {
    let mut omitted = Vec::new();
    for OmittedKind { name, table, condition, .. } in OmittedKind::ALL {
        // Databases of older versions lack some of these tables.
        let exists = format!("SELECT to_regclass('{table}') IS NOT NULL");
        if !client.query_typed_one(&exists, &[]).await?.get::<_, bool>(0) {
            continue;
        }
        let count = format!("SELECT count(*) FROM {table} WHERE {condition}");
        let count = from_sql_integer(client.query_typed_one(&count, &[]).await?.get(0));
        if count > 0 {
            omitted.push((name, count));
        }
    }
    Ok(omitted)
}
