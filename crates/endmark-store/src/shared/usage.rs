//! Writes, sums and reads the rows of calls in the database, over all instances.

use std::fmt::Write as _;
use std::sync::LazyLock;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

use super::calls;
use super::sql::{Parameter, SINCE, UNTIL, names};
use crate::calls::UsageRow;
use crate::counted::{CallClass, CallSums, INTERRUPTED, MINUTE_EDGES, PROMPT_EDGES};
use crate::engine::integers::natural;
use crate::engine::journal::CALL_COLUMNS;
use crate::engine::journal::rows::{CallRows, Column};
use crate::engine::{CountedCalls, Dimension};

/// Rows that one transaction sums. Other work waits for it for some tens of milliseconds.
const SUMMED_AT_ONCE: i64 = 5_000;

/// The age at which calls are summed. It exceeds [`LATE_AFTER`] by more than any transaction lasts.
const SUMMED_AFTER: &str = "60 minutes";

/// A call that is reported after this time is late: its time may already be summed.
pub(super) const LATE_AFTER: &str = "30 minutes";

/// Largest number of tokens that counts in one call: the arithmetic of the database fails where it overflows.
pub(super) const MOST: i64 = 1 << 40;

/// The columns of a usage class, in the order of the key of `em_usage_sums`.
const CLASS: &str = "upstream, purpose, model, answered_model, kinds, above_tokens, from_minute";

/// Sums of the calls of all instances that share a database.
#[derive(Debug, Default)]
pub struct SharedSums {
    sums: Vec<(String, String, CallClass, CallSums)>,
    /// The calls among them whose price cannot be derived from token sums.
    pub billed_apart: Vec<UsageRow>,
}

impl SharedSums {
    /// Returns the sums by day, key and class.
    pub fn iter(&self) -> impl Iterator<Item = CountedCalls<'_>> {
        self.sums.iter().map(|(at, key, class, sums)| CountedCalls { sample_time: at, key, class, sums })
    }
}

/// Inserts rows of calls from one array for each column. Existing rows stay unchanged.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    let names = names(&CALL_COLUMNS);
    let values = CALL_COLUMNS.map(|(name, kind)| format!("{name}::{kind}")).join(", ");
    let arrays: Vec<String> = (2..CALL_COLUMNS.len() + 2).map(|place| format!("${place}")).collect();
    format!(
        "INSERT INTO em_usage (instance, {names}) SELECT $1, {values} FROM unnest({}) AS r({names}) ON CONFLICT DO NOTHING",
        arrays.join(", ")
    )
});

/// Writes missing rows. Late rows are added to the sums at once if other calls of their time were already summed.
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
    // This lock prevents another instance from summing this time until these rows are committed.
    let until = "SELECT value FROM em_meta WHERE name = 'summed_until' FOR SHARE";
    let until: i64 = client.query_typed_one(until, &[]).await?.get(0);
    values.push((&until, Type::INT8));
    let summed =
        format!("(SELECT * FROM added WHERE started_at < {}) AS u", moment(&format!("${}", values.len())));
    let sql = format!("WITH added AS ({} RETURNING *) {}", *INSERT, add_to_sums(&summed));
    client.execute_typed(&sql, &values).await.map(|_| ())
}

/// Adds the next calls to the sums, once they are old enough that few calls of their time are still unreported.
/// Returns whether there may be more.
pub(super) async fn sum_step(client: &mut Client) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    // This lock serialises instances that sum at the same time or write late rows.
    let from = "SELECT value FROM em_meta WHERE name = 'summed_until' FOR UPDATE";
    let from: i64 = transaction.query_typed_one(from, &[]).await?.get(0);
    let next = format!(
        "SELECT count(*), (extract(epoch FROM max(started_at)) * 1000)::bigint + 1 FROM (
           SELECT started_at FROM em_usage WHERE started_at >= {}
             AND started_at < (SELECT clock_timestamp() - interval '{SUMMED_AFTER}') ORDER BY started_at LIMIT $2) AS next",
        moment("$1")
    );
    let next =
        transaction.query_typed_one(&next, &[(&from, Type::INT8), (&SUMMED_AT_ONCE, Type::INT8)]).await?;
    let (count, until): (i64, Option<i64>) = (next.get(0), next.get(1));
    let Some(until) = until else { return Ok(false) };
    let calls = format!(
        "(SELECT * FROM em_usage WHERE started_at >= {} AND started_at < {}) AS u",
        moment("$1"),
        moment("$2")
    );
    transaction.execute_typed(&add_to_sums(&calls), &[(&from, Type::INT8), (&until, Type::INT8)]).await?;
    let note = "UPDATE em_meta SET value = $1 WHERE name = 'summed_until'";
    transaction.execute_typed(note, &[(&until, Type::INT8)]).await?;
    transaction.commit().await?;
    Ok(count == SUMMED_AT_ONCE)
}

/// Returns the SQL for a time in milliseconds since 1970.
fn moment(milliseconds: &str) -> String {
    format!("to_timestamp({milliseconds} / 1000.0)")
}

/// Returns the statement that adds rows of `em_usage` to the sums. It locks rows in the order of their key.
fn add_to_sums(source: &str) -> String {
    let counts = CallSums::COLUMNS.join(", ");
    let grown =
        CallSums::COLUMNS.iter().map(|count| format!("{count} = em_usage_sums.{count} + excluded.{count}"));
    format!(
        "INSERT INTO em_usage_sums (day, credential, {CLASS}, {counts})
         SELECT day, credential, {CLASS}, {} FROM ({}) AS counted
         GROUP BY day, credential, {CLASS} ORDER BY day, credential, {CLASS}
         ON CONFLICT (day, credential, {CLASS}) DO UPDATE SET {}",
        totals(),
        counted(source),
        grown.collect::<Vec<_>>().join(", ")
    )
}

/// Returns the SQL that sums the counting columns.
fn totals() -> String {
    let total = |count: &&str| format!("sum({count})::bigint");
    CallSums::COLUMNS.iter().map(total).collect::<Vec<_>>().join(", ")
}

/// Returns the query for the class and the counts of each row of `em_usage` in a source. It repeats in SQL the rules of
/// [`counted`](crate::counted). A test compares the two.
fn counted(source: &str) -> String {
    let mut above_tokens = "CASE".to_owned();
    for edge in PROMPT_EDGES.iter().rev() {
        // Writing to a `String` cannot fail.
        let _ = write!(above_tokens, " WHEN prompt > {edge} THEN {edge}");
    }
    let mut from_minute = "CASE".to_owned();
    for (word, edges) in MINUTE_EDGES {
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
                   ELSE {MOST} END AS most
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

/// Reads the sums of all calls that began from `since` on and before `until` (`YYYY-MM-DD HH:MM:SS`, UTC).
pub(crate) async fn query_sums(
    client: &Client,
    by: Dimension,
    since: &str,
    until: &str,
) -> Result<SharedSums, Error> {
    // PostgreSQL has no year 0.
    let since = since.max("0001-01-01 00:00:00");
    let span: [Parameter<'_>; 2] = [(&since, Type::TEXT), (&until, Type::TEXT)];
    // Before the sums, so that each of these calls is also in the sums.
    let end = format!("WHERE web_searches IS NOT NULL AND started_at >= {SINCE} AND started_at < {UNTIL}");
    let billed_apart = calls::select(client, &end, &span).await?;
    let rows = client.query_typed(&sums_between(by), &span).await?;
    Ok(SharedSums { sums: rows.iter().map(summed).collect(), billed_apart })
}

/// Reads the sums of all calls of a session.
pub(super) async fn session_sums(client: &Client, session: &str) -> Result<SharedSums, Error> {
    let session: [Parameter<'_>; 1] = [(&session, Type::TEXT)];
    let end = "WHERE web_searches IS NOT NULL AND session = $1";
    let billed_apart = calls::select(client, end, &session).await?;
    let sql = sums_of(&counted("(SELECT * FROM em_usage WHERE session = $1) AS u"), "session");
    let rows = client.query_typed(&sql, &session).await?;
    Ok(SharedSums { sums: rows.iter().map(summed).collect(), billed_apart })
}

/// Returns the query for the sums of counted calls, or of sums of them, by day, key and class.
fn sums_of(parts: &str, key: &str) -> String {
    format!(
        "SELECT to_char(day::timestamp, 'YYYY-MM-DD'), {key}, {CLASS}, {} FROM ({parts}) AS parts GROUP BY day, {key}, {CLASS}",
        totals()
    )
}

/// Returns the query for the sums of a span. Whole days come from the table of sums. The ends of the span, and calls
/// that are not summed yet, are read row by row. Sums by session are always read row by row.
fn sums_between(by: Dimension) -> String {
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
    let columns = format!("day, {key} AS key, {CLASS}, {counts}");
    let calls = |from: &str, until: &str| {
        format!("SELECT * FROM em_usage WHERE started_at >= {from} AND started_at < {until}")
    };
    let counted_of =
        |calls: &str| format!("SELECT {columns} FROM ({}) AS c", counted(&format!("({calls}) AS u")));
    let parts = if by == Dimension::Session {
        counted_of(&calls(SINCE, UNTIL))
    } else {
        let summed_until = moment("(SELECT value FROM em_meta WHERE name = 'summed_until')");
        let rest = [
            calls(SINCE, &format!("least({UNTIL}, {first_begins})")),
            calls(&format!("greatest({first_begins}, {summed_until})"), &last_begins),
            calls(&format!("greatest({first_begins}, {last_begins})"), UNTIL),
        ];
        format!(
            "SELECT {columns} FROM em_usage_sums WHERE day >= {first} AND day < {last} UNION ALL {}",
            counted_of(&rest.join(" UNION ALL "))
        )
    };
    sums_of(&parts, "key")
}

fn summed(row: &Row) -> (String, String, CallClass, CallSums) {
    let class = CallClass {
        upstream: row.get(2),
        purpose: row.get(3),
        model: row.get(4),
        answered_model: row.get(5),
        kinds: u8::try_from(row.get::<_, i32>(6)).unwrap_or(0),
        above_tokens: natural(row.get(7)),
        from_minute: u16::try_from(row.get::<_, i32>(8)).unwrap_or(0),
    };
    let mut counts = [0; CallSums::COLUMNS.len()];
    for (column, count) in counts.iter_mut().enumerate() {
        *count = natural(row.get(9 + column));
    }
    (row.get(0), row.get(1), class, CallSums::from_counts(counts))
}
