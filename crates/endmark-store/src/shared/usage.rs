//! Writes, sums and reads the rows of calls of all instances in the database.

use std::fmt::Write as _;
use std::sync::LazyLock;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

use super::calls;
use super::sql::{Parameter, SINCE_SQL, UNTIL_SQL, column_names};
use crate::calls::UsageRow;
use crate::counted::{CallClass, CallSums, INTERRUPTED, PRICE_CHANGE_MINUTES, PROMPT_PRICE_THRESHOLDS};
use crate::engine::integers::from_sql_integer;
use crate::engine::journal::CALL_COLUMNS;
use crate::engine::journal::rows::{CallRows, Column};
use crate::engine::{CountedCalls, Dimension};

/// Rows that one transaction sums. Other work waits for that transaction, which needs some tens of
/// milliseconds.
const SUM_BATCH_CALLS: i64 = 5_000;

/// The age at which calls are summed. It exceeds [`LATE_AGE`] by more than the duration of any transaction.
const SUM_AGE: &str = "60 minutes";

/// The age at which a newly reported call is late: calls of the same time may already be summed.
pub(super) const LATE_AGE: &str = "30 minutes";

/// Maximum number of tokens that is counted for one call. Larger numbers could overflow, which makes the
/// database fail.
pub(super) const MAX_COUNTED_TOKENS: i64 = 1 << 40;

/// The columns of a usage class, in the order of the key of `em_usage_sums`.
const CLASS_COLUMNS: &str = "upstream, purpose, model, answered_model, kinds, above_tokens, from_minute";

/// Sums of the calls of all instances that share a database.
#[derive(Debug, Default)]
pub struct SharedSums {
    sums: Vec<(String, String, CallClass, CallSums)>,
    /// Those of the calls whose price cannot be derived from token sums.
    pub separately_billed: Vec<UsageRow>,
}

impl SharedSums {
    /// Returns the sums by day, key and class.
    pub fn iter(&self) -> impl Iterator<Item = CountedCalls<'_>> {
        self.sums.iter().map(|(at, key, class, sums)| CountedCalls { started_at: at, key, class, sums })
    }
}

/// Inserts rows of calls from one array for each column. Keeps existing rows.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    let names = column_names(&CALL_COLUMNS);
    let values = CALL_COLUMNS.map(|(name, kind)| format!("{name}::{kind}")).join(", ");
    let arrays: Vec<String> = (2..CALL_COLUMNS.len() + 2).map(|place| format!("${place}")).collect();
    format!(
        "INSERT INTO em_usage (instance, {names}) SELECT $1, {values} FROM unnest({}) AS r({names}) ON CONFLICT DO NOTHING",
        arrays.join(", ")
    )
});

/// Writes missing rows. If other calls of the same time were already summed, adds late rows to the sums at
/// once.
pub(super) async fn record(
    client: &Client,
    instance: &str,
    rows: &CallRows,
    is_late: bool,
) -> Result<(), Error> {
    if rows.count == 0 {
        return Ok(());
    }
    let mut values: Vec<Parameter<'_>> = vec![(&instance, Type::TEXT)];
    values.extend(rows.columns.iter().map(|column| -> Parameter<'_> {
        match column {
            Column::Booleans(values) => (values, Type::BOOL_ARRAY),
            Column::Integers(values) => (values, Type::INT8_ARRAY),
            Column::Numbers(values) => (values, Type::FLOAT8_ARRAY),
            Column::Texts(values) => (values, Type::TEXT_ARRAY),
        }
    }));
    if !is_late {
        return client.execute_typed(&INSERT, &values).await.map(|_| ());
    }
    // This lock prevents other instances from summing this time until these rows are committed.
    let until = "SELECT value FROM em_meta WHERE name = 'summed_until' FOR SHARE";
    let until: i64 = client.query_typed_one(until, &[]).await?.get(0);
    values.push((&until, Type::INT8));
    let summed =
        format!("(SELECT * FROM added WHERE started_at < {}) AS u", time_sql(&format!("${}", values.len())));
    let sql = format!("WITH added AS ({} RETURNING *) {}", *INSERT, add_to_sums(&summed));
    client.execute_typed(&sql, &values).await.map(|_| ())
}

/// Adds the next calls to the sums, if they are old enough that hardly any call of their time is still
/// unreported. Returns whether there may be more.
pub(super) async fn sum_next_calls(client: &mut Client) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    // This lock serializes instances that sum calls or write late rows at the same time.
    let from = "SELECT value FROM em_meta WHERE name = 'summed_until' FOR UPDATE";
    let from: i64 = transaction.query_typed_one(from, &[]).await?.get(0);
    let next = format!(
        "SELECT count(*), (extract(epoch FROM max(started_at)) * 1000)::bigint + 1 FROM (
           SELECT started_at FROM em_usage WHERE started_at >= {}
             AND started_at < (SELECT clock_timestamp() - interval '{SUM_AGE}') ORDER BY started_at LIMIT $2) AS next",
        time_sql("$1")
    );
    let next =
        transaction.query_typed_one(&next, &[(&from, Type::INT8), (&SUM_BATCH_CALLS, Type::INT8)]).await?;
    let (count, until): (i64, Option<i64>) = (next.get(0), next.get(1));
    let Some(until) = until else { return Ok(false) };
    let calls = format!(
        "(SELECT * FROM em_usage WHERE started_at >= {} AND started_at < {}) AS u",
        time_sql("$1"),
        time_sql("$2")
    );
    transaction.execute_typed(&add_to_sums(&calls), &[(&from, Type::INT8), (&until, Type::INT8)]).await?;
    let note = "UPDATE em_meta SET value = $1 WHERE name = 'summed_until'";
    transaction.execute_typed(note, &[(&until, Type::INT8)]).await?;
    transaction.commit().await?;
    Ok(count == SUM_BATCH_CALLS)
}

/// Returns the SQL for a time in milliseconds since 1970.
fn time_sql(milliseconds: &str) -> String {
    format!("to_timestamp({milliseconds} / 1000.0)")
}

/// Returns the statement that adds rows of `em_usage` to the sums. It locks rows in the order of their key.
fn add_to_sums(source: &str) -> String {
    let counts = CallSums::COLUMNS.join(", ");
    let grown =
        CallSums::COLUMNS.iter().map(|count| format!("{count} = em_usage_sums.{count} + excluded.{count}"));
    format!(
        "INSERT INTO em_usage_sums (day, credential, {CLASS_COLUMNS}, {counts})
         SELECT day, credential, {CLASS_COLUMNS}, {} FROM ({}) AS counted
         GROUP BY day, credential, {CLASS_COLUMNS} ORDER BY day, credential, {CLASS_COLUMNS}
         ON CONFLICT (day, credential, {CLASS_COLUMNS}) DO UPDATE SET {}",
        totals_sql(),
        counts_sql(source),
        grown.collect::<Vec<_>>().join(", ")
    )
}

/// Returns the SQL that sums the counting columns.
fn totals_sql() -> String {
    let total = |count: &&str| format!("sum({count})::bigint");
    CallSums::COLUMNS.iter().map(total).collect::<Vec<_>>().join(", ")
}

/// Returns the query for the class and the counts of each row of `em_usage` in a source. It repeats the rules
/// of [`counted`](crate::counted) in SQL, and a test compares the two.
fn counts_sql(source: &str) -> String {
    let mut above_tokens = "CASE".to_owned();
    for edge in PROMPT_PRICE_THRESHOLDS.iter().rev() {
        // Writing to a `String` cannot fail.
        let _ = write!(above_tokens, " WHEN prompt > {edge} THEN {edge}");
    }
    let mut from_minute = "CASE".to_owned();
    for (word, edges) in PRICE_CHANGE_MINUTES {
        for edge in edges.iter().rev() {
            let _ = write!(
                from_minute,
                " WHEN minute >= {edge} AND strpos(lower(model || ' ' || answered_model), '{word}') > 0 THEN {edge}"
            );
        }
    }
    let known = |column: &str| format!("least(coalesce({column}, 0), most)");
    let is_plain = "prompt - cached - cache_write - cache_write_1h";
    format!(
        "SELECT *,
           (plain_prompt > 0)::int * 32 + (cached > 0)::int * 16 + (cache_write > 0)::int * 8 + (cache_write_1h > 0)::int * 4
             + (plain_completion > 0)::int * 2 + (reasoning > 0)::int AS kinds,
           ({above_tokens} ELSE 0 END)::bigint AS above_tokens, ({from_minute} ELSE 0 END)::int AS from_minute
         FROM (SELECT *, greatest({is_plain}, 0) AS plain_prompt, greatest(completion - reasoning, 0) AS plain_completion
           FROM (SELECT *, greatest(cache_written - cache_write_1h, 0) AS cache_write
             FROM (SELECT (started_at AT TIME ZONE 'UTC')::date AS day, session,
                 coalesce(credential, '') AS credential, upstream, purpose, model, coalesce(answered_model, '') AS answered_model,
                 (floor(extract(epoch FROM started_at) / 60)::bigint % 1440)::int AS minute,
                 1 AS calls, (call = 1)::int AS requests,
                 (verdict IS NOT NULL)::int AS judged, coalesce((verdict = 'cut')::int, 0) AS cut,
                 (verdict IS NULL AND ending <> '{INTERRUPTED}' AND mode <> 'off')::int AS without_reply,
                 (ending = '{INTERRUPTED}')::int AS interrupted, (prompt_tokens IS NULL)::int AS unreported,
                 {reported_prompt} AS reported_prompt, {reported_output} AS reported_output,
                 {prompt} AS prompt, {completion} AS completion, {cached} AS cached, {written} AS cache_written,
                 {written_1h} AS cache_write_1h, {reasoning} AS reasoning,
                 (most > 0 AND (prompt_tokens IS NULL OR output_tokens IS NULL))::int AS estimated
               FROM (SELECT *, CASE WHEN coalesce(prompt_tokens, output_tokens, estimated_prompt) IS NULL THEN 0
                   ELSE {MAX_COUNTED_TOKENS} END AS most
                 FROM {source}) AS billed) AS known) AS written) AS plain",
        reported_prompt = known("prompt_tokens"),
        reported_output = known("output_tokens"),
        prompt = known("prompt_tokens, estimated_prompt"),
        completion = known("output_tokens, estimated_output"),
        cached = known("cached_tokens"),
        written = known("cache_written_tokens"),
        written_1h = known("cache_written_1h_tokens"),
        reasoning = known("reasoning_tokens"),
    )
}

/// Reads the sums of all calls that began at or after `since` and before `until` (`YYYY-MM-DD HH:MM:SS`,
/// UTC).
pub(crate) async fn query_sums(
    client: &Client,
    by: Dimension,
    since: &str,
    until: &str,
) -> Result<SharedSums, Error> {
    // PostgreSQL has no year 0.
    let since = since.max("0001-01-01 00:00:00");
    let span: [Parameter<'_>; 2] = [(&since, Type::TEXT), (&until, Type::TEXT)];
    // Read these calls first, so that all of them are also in the sums.
    let end =
        format!("WHERE web_searches IS NOT NULL AND started_at >= {SINCE_SQL} AND started_at < {UNTIL_SQL}");
    let billed_apart = calls::select_calls(client, &end, &span).await?;
    let rows = client.query_typed(&span_sums_sql(by), &span).await?;
    Ok(SharedSums { sums: rows.iter().map(read_sums_row).collect(), separately_billed: billed_apart })
}

/// Reads the sums of all calls of a session.
pub(super) async fn session_sums(client: &Client, session: &str) -> Result<SharedSums, Error> {
    let session: [Parameter<'_>; 1] = [(&session, Type::TEXT)];
    let end = "WHERE web_searches IS NOT NULL AND session = $1";
    let billed_apart = calls::select_calls(client, end, &session).await?;
    let sql = total_sums_sql(&counts_sql("(SELECT * FROM em_usage WHERE session = $1) AS u"), "session");
    let rows = client.query_typed(&sql, &session).await?;
    Ok(SharedSums { sums: rows.iter().map(read_sums_row).collect(), separately_billed: billed_apart })
}

/// Returns the query that adds up counted calls, or sums of calls, by day, key and class.
fn total_sums_sql(parts: &str, key: &str) -> String {
    format!(
        "SELECT to_char(day::timestamp, 'YYYY-MM-DD'), {key}, {CLASS_COLUMNS}, {} FROM ({parts}) AS parts GROUP BY day, {key}, {CLASS_COLUMNS}",
        totals_sql()
    )
}

/// Returns the query for the sums of a span. Complete days come from the table of sums. The ends of the span,
/// and calls that are not summed yet, are read row by row. Sums by session are always computed row by row.
fn span_sums_sql(by: Dimension) -> String {
    let first = "($1::text::timestamp + interval '1 day' - interval '1 millisecond')::date";
    let last = "$2::text::timestamp::date";
    let begins = |day: &str| format!("({day}::timestamp AT TIME ZONE 'UTC')");
    let (first_begins, last_begins) = (begins(first), begins(last));
    let counts = CallSums::COLUMNS.join(", ");
    let key = match by {
        Dimension::Nothing => "''",
        Dimension::Session => "session",
        Dimension::Key => "credential",
    };
    let columns = format!("day, {key} AS key, {CLASS_COLUMNS}, {counts}");
    let calls = |from: &str, until: &str| {
        format!("SELECT * FROM em_usage WHERE started_at >= {from} AND started_at < {until}")
    };
    let counted_of =
        |calls: &str| format!("SELECT {columns} FROM ({}) AS c", counts_sql(&format!("({calls}) AS u")));
    let parts = if by == Dimension::Session {
        counted_of(&calls(SINCE_SQL, UNTIL_SQL))
    } else {
        let summed_until = time_sql("(SELECT value FROM em_meta WHERE name = 'summed_until')");
        let rest = [
            calls(SINCE_SQL, &format!("least({UNTIL_SQL}, {first_begins})")),
            calls(&format!("greatest({first_begins}, {summed_until})"), &last_begins),
            calls(&format!("greatest({first_begins}, {last_begins})"), UNTIL_SQL),
        ];
        format!(
            "SELECT {columns} FROM em_usage_sums WHERE day >= {first} AND day < {last} UNION ALL {}",
            counted_of(&rest.join(" UNION ALL "))
        )
    };
    total_sums_sql(&parts, "key")
}

fn read_sums_row(row: &Row) -> (String, String, CallClass, CallSums) {
    let class = CallClass {
        upstream: row.get(2),
        purpose: row.get(3),
        model: row.get(4),
        answered_model: row.get(5),
        kinds: u8::try_from(row.get::<_, i32>(6)).unwrap_or(0),
        above_tokens: from_sql_integer(row.get(7)),
        from_minute: u16::try_from(row.get::<_, i32>(8)).unwrap_or(0),
    };
    let mut counts = [0; CallSums::COLUMNS.len()];
    for (column, count) in counts.iter_mut().enumerate() {
        *count = from_sql_integer(row.get(9 + column));
    }
    (row.get(0), row.get(1), class, CallSums::from_counts(counts))
}
