//! Deletes old rows of calls, recoveries and ended budgets from the database in batches.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::sql::Parameter;
use crate::engine::integers::to_sql_integer;

/// Maximum rows of calls, recoveries or budgets that one batch deletes.
const MAX_DELETED_ROWS: i64 = 1_000;

/// Deletes a batch of rows of calls, sums, recoveries and budgets from before this day (`YYYY-MM-DD`, UTC).
/// Returns whether there may be more. Several instances may run this at the same time.
pub(crate) async fn delete_before(client: &mut Client, day: &str) -> Result<bool, Error> {
    let limits: [Parameter<'_>; 2] = [(&day, Type::TEXT), (&MAX_DELETED_ROWS, Type::INT8)];
    // Delete one day of sums at a time. Reports skip a day without sums, so the rows of the day can be
    // deleted later.
    let sums = "DELETE FROM em_usage_sums WHERE day =
                  (SELECT min(day) FROM em_usage_sums WHERE day < $1::text::date)";
    let sums = client.execute_typed(sums, &limits[..1]).await?;
    let key = "started_at, request_id, call";
    let calls = format!(
        "DELETE FROM em_usage WHERE ({key}) IN
           (SELECT {key} FROM em_usage WHERE started_at < $1::text::timestamp AT TIME ZONE 'UTC' ORDER BY {key} LIMIT $2)"
    );
    let calls = client.execute_typed(&calls, &limits).await?;
    let key = "request_id, instance, id";
    let recoveries = format!(
        "DELETE FROM em_recoveries WHERE ({key}) IN
           (SELECT {key} FROM em_recoveries WHERE finished_at < $1 ORDER BY finished_at, instance, id LIMIT $2)"
    );
    let recoveries = client.execute_typed(&recoveries, &limits).await?;
    let budgets = delete_ended_budgets(client, &limits).await?;
    Ok(sums > 0
        || [calls, recoveries, budgets].iter().any(|deleted| to_sql_integer(*deleted) == MAX_DELETED_ROWS))
}

/// Deletes budgets whose day or month ended before a day, if no instance holds an unspent share of them. If
/// an instance later reports costs of a deleted budget, the budget is created again and deleted by a later
/// batch.
async fn delete_ended_budgets(client: &mut Client, limits: &[Parameter<'_>]) -> Result<u64, Error> {
    let transaction = client.transaction().await?;
    // Windows of minutes are rate limits, which are deleted sooner. The lock blocks reports of these budgets.
    let ended = "SELECT scope, subject, span, unit FROM em_budgets
                 WHERE span <> 'ever' AND span < $1 AND (length(span) = 10 OR length(span) = 7 AND span < left($1, 7))
                   AND committed = spent
                 ORDER BY scope, subject, span, unit LIMIT $2 FOR UPDATE";
    let ended = transaction.query_typed(ended, limits).await?;
    let columns =
        [0, 1, 2, 3].map(|column| ended.iter().map(|row: &Row| row.get(column)).collect::<Vec<String>>());
    let keys = columns.each_ref().map(|column| (column as &(dyn ToSql + Sync), Type::TEXT_ARRAY));
    for table in ["em_shares", "em_budgets"] {
        let sql = format!(
            "DELETE FROM {table} WHERE (scope, subject, span, unit) IN (SELECT * FROM unnest($1, $2, $3, $4))"
        );
        if !ended.is_empty() {
            transaction.execute_typed(&sql, &keys).await?;
        }
    }
    transaction.commit().await?;
    Ok(ended.len() as u64)
}
