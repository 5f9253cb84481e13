//! Uploads, fetches and deletes kept outputs and summaries in the database.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, GenericClient, Row, Transaction};

use super::recoveries;
use super::sql::{column_definitions, column_names};
use crate::compactions::{CondensedSession, KeptSummary};
use crate::engine::compactions::{parse_dropped, split_items};
use crate::engine::fetched_output::FetchedOutput;
use crate::engine::integers::{from_sql_integer, to_sql_integer};
use crate::engine::journal::uploads::{OutputUpload, OutputValue, Uploads};
use crate::engine::outputs::{CompressedPiece, SECONDS_PER_DAY, unix_seconds};

/// The columns of a summary with their PostgreSQL types, as read from JSON.
const SUMMARY_COLUMNS: [(&str, &str); 14] = [
    ("owner", "text"),
    ("first_sha256", "text"),
    ("turns", "bigint"),
    ("sha256", "text"),
    ("items", "text"),
    ("mode", "text"),
    ("tokens_before", "bigint"),
    ("tokens_after", "bigint"),
    ("handle", "text"),
    ("bytes", "bigint"),
    ("session", "text"),
    ("dropped", "text"),
    ("keep_days", "bigint"),
    ("expires_at", "bigint"),
];

/// Maximum number of expired outputs, or of expired summaries, that one transaction deletes.
const MAX_DELETED_OUTPUTS: i64 = 100;

/// A parameter of a statement.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Uploads outputs, summaries and recoveries in one transaction. It can be repeated, because all of them have
/// keys that identify their content. Returns the handles of outputs whose pieces are incomplete in the
/// database.
pub(crate) async fn upload(
    client: &mut Client,
    instance: &str,
    uploads: &Uploads,
) -> Result<Vec<String>, Error> {
    let transaction = client.transaction().await?;
    if let Some(recoveries) = &uploads.recoveries {
        recoveries::record(&transaction, instance, recoveries).await?;
    }
    if let Some(summaries) = &uploads.summaries {
        let (names, columns) = (column_names(&SUMMARY_COLUMNS), column_definitions(&SUMMARY_COLUMNS));
        let sql = format!(
            "INSERT INTO em_compactions ({names}) SELECT {names} FROM json_to_recordset($1::text::json) AS r({columns})
             ON CONFLICT (owner, first_sha256, turns, sha256)
             DO UPDATE SET expires_at = greatest(em_compactions.expires_at, excluded.expires_at)"
        );
        transaction.execute_typed(&sql, &[(summaries, Type::TEXT)]).await?;
    }
    let incomplete = insert_outputs(&transaction, uploads).await?;
    transaction.commit().await?;
    Ok(incomplete)
}

async fn insert_outputs(transaction: &Transaction<'_>, uploads: &Uploads) -> Result<Vec<String>, Error> {
    if uploads.outputs.is_empty() {
        return Ok(Vec::new());
    }
    let handles: Vec<&str> = uploads.outputs.iter().map(|output| output.handle.as_str()).collect();
    // Another instance may have uploaded the same output, or this instance may only have used another
    // instance's output.
    let known = record_uses(transaction, &handles).await?;
    let mut new: Vec<(&OutputUpload, &OutputValue)> = uploads
        .outputs
        .iter()
        .filter(|output| !known.contains(&output.handle))
        .filter_map(|output| Some((output, output.value.as_ref()?)))
        .collect();
    // All instances use this order, so that their transactions do not deadlock.
    new.sort_unstable_by_key(|(output, _)| &output.handle);
    insert_incomplete(transaction, &new, unix_seconds() + SECONDS_PER_DAY).await?;
    let mut pieces: Vec<&(String, CompressedPiece)> =
        uploads.pieces.iter().filter(|(handle, _)| !known.contains(handle)).collect();
    pieces.sort_unstable_by_key(|(handle, piece)| (handle, piece.ordinal));
    add_pieces(transaction, &pieces).await?;
    let whole: Vec<_> = new.into_iter().filter(|(output, _)| output.next_piece.is_none()).collect();
    let complete = mark_complete(transaction, &whole).await?;
    let is_missing = |handle: &String| !complete.contains(handle);
    Ok(whole.into_iter().map(|(output, _)| output.handle.clone()).filter(is_missing).collect())
}

/// Inserts rows of outputs without their sizes. A missing size marks an output as incomplete. An abandoned
/// upload is deleted after a day.
async fn insert_incomplete(
    transaction: &Transaction<'_>,
    new: &[(&OutputUpload, &OutputValue)],
    expires_at: i64,
) -> Result<(), Error> {
    if new.is_empty() {
        return Ok(());
    }
    let handles: Vec<&str> = new.iter().map(|(output, _)| output.handle.as_str()).collect();
    let owners: Vec<&str> = new.iter().map(|(_, value)| value.owner.as_str()).collect();
    let formats: Vec<&str> = new.iter().map(|(_, value)| value.format.as_str()).collect();
    let days: Vec<i64> = new.iter().map(|(_, value)| value.keep_days).collect();
    let parameters: [Parameter<'_>; 5] = [
        (&handles, Type::TEXT_ARRAY),
        (&owners, Type::TEXT_ARRAY),
        (&formats, Type::TEXT_ARRAY),
        (&days, Type::INT8_ARRAY),
        (&expires_at, Type::INT8),
    ];
    let sql = "INSERT INTO em_outputs (handle, owner, format, keep_days, expires_at)
               SELECT handle, owner, format, days, $5 FROM unnest($1, $2, $3, $4) AS n(handle, owner, format, days)
               ON CONFLICT DO NOTHING";
    transaction.execute_typed(sql, &parameters).await.map(|_| ())
}

async fn add_pieces(
    transaction: &Transaction<'_>,
    pieces: &[&(String, CompressedPiece)],
) -> Result<(), Error> {
    if pieces.is_empty() {
        return Ok(());
    }
    let handles: Vec<&str> = pieces.iter().map(|(handle, _)| handle.as_str()).collect();
    let numbers =
        |number: fn(&CompressedPiece) -> i64| pieces.iter().map(|(_, piece)| number(piece)).collect();
    let ordinals: Vec<i64> = numbers(|piece| piece.ordinal);
    let (first_bytes, first_lines): (Vec<i64>, Vec<i64>) =
        (numbers(|piece| piece.first_byte), numbers(|piece| piece.first_line));
    let sizes: Vec<i64> = numbers(|piece| piece.bytes);
    let contents: Vec<&[u8]> = pieces.iter().map(|(_, piece)| piece.content.as_slice()).collect();
    let parameters: [Parameter<'_>; 6] = [
        (&handles, Type::TEXT_ARRAY),
        (&ordinals, Type::INT8_ARRAY),
        (&first_bytes, Type::INT8_ARRAY),
        (&first_lines, Type::INT8_ARRAY),
        (&sizes, Type::INT8_ARRAY),
        (&contents, Type::BYTEA_ARRAY),
    ];
    let sql = "INSERT INTO em_output_pieces (handle, ordinal, first_byte, first_line, bytes, content)
               SELECT * FROM unnest($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    transaction.execute_typed(sql, &parameters).await.map(|_| ())
}

/// Marks outputs as complete if all their bytes were uploaded, and returns these outputs. Pieces may be
/// missing if the upload needed more than a day.
async fn mark_complete(
    transaction: &Transaction<'_>,
    whole: &[(&OutputUpload, &OutputValue)],
) -> Result<Vec<String>, Error> {
    if whole.is_empty() {
        return Ok(Vec::new());
    }
    let handles: Vec<&str> = whole.iter().map(|(output, _)| output.handle.as_str()).collect();
    let numbers = |number: fn(&OutputValue) -> i64| whole.iter().map(|(_, value)| number(value)).collect();
    let (bytes, lines): (Vec<i64>, Vec<i64>) = (numbers(|value| value.bytes), numbers(|value| value.lines));
    let expires: Vec<i64> = numbers(|value| value.expires_at);
    let parameters: [Parameter<'_>; 4] = [
        (&handles, Type::TEXT_ARRAY),
        (&bytes, Type::INT8_ARRAY),
        (&lines, Type::INT8_ARRAY),
        (&expires, Type::INT8_ARRAY),
    ];
    let sql =
        "UPDATE em_outputs o SET bytes = n.bytes, lines = n.lines, expires_at = greatest(o.expires_at, n.expires_at)
         FROM unnest($1, $2, $3, $4) AS n(handle, bytes, lines, expires_at)
         WHERE o.handle = n.handle
           AND (SELECT coalesce(sum(p.bytes), 0) FROM em_output_pieces p WHERE p.handle = n.handle) = n.bytes
         RETURNING o.handle";
    let complete = transaction.query_typed(sql, &parameters).await?;
    Ok(complete.iter().map(|row| row.get(0)).collect())
}

/// Returns an output with all its pieces, if the database has the complete output.
pub(crate) async fn fetch(client: &Client, handle: &str) -> Result<Option<FetchedOutput>, Error> {
    let sql = "SELECT o.owner, o.format, o.bytes, o.lines, o.expires_at, p.ordinal, p.first_byte, p.first_line, p.bytes, p.content
               FROM em_outputs o LEFT JOIN em_output_pieces p ON p.handle = o.handle
               WHERE o.handle = $1 AND o.bytes IS NOT NULL ORDER BY p.ordinal";
    let rows = client.query_typed(sql, &[(&handle, Type::TEXT)]).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let piece = |row: &Row| {
        Some(CompressedPiece {
            ordinal: row.get::<_, Option<i64>>(5)?,
            first_byte: row.get(6),
            first_line: row.get(7),
            bytes: row.get(8),
            content: row.get(9),
        })
    };
    Ok(Some(FetchedOutput {
        handle: handle.to_owned(),
        owner: first.get(0),
        format: first.get(1),
        bytes: first.get(2),
        lines: first.get(3),
        is_expired: first.get::<_, i64>(4) < unix_seconds(),
        pieces: rows.iter().filter_map(piece).collect(),
    }))
}

/// Updates the last use of outputs. Returns the handles of those outputs that are complete in the database.
pub(crate) async fn record_uses(client: &impl GenericClient, handles: &[&str]) -> Result<Vec<String>, Error> {
    let sql = "UPDATE em_outputs SET expires_at = greatest(expires_at, $2 + (keep_days + 1) * $3)
               WHERE handle = ANY($1) AND bytes IS NOT NULL RETURNING handle";
    let parameters: [Parameter<'_>; 3] =
        [(&handles, Type::TEXT_ARRAY), (&unix_seconds(), Type::INT8), (&SECONDS_PER_DAY, Type::INT8)];
    let touched = client.query_typed(sql, &parameters).await?;
    Ok(touched.iter().map(|row| row.get(0)).collect())
}

/// A summary from the database.
pub(crate) struct FoundSummary {
    pub(crate) summary: KeptSummary,
    pub(crate) keep_days: u32,
    pub(crate) condensed_in: CondensedSession,
}

/// Returns this owner's summary that replaces the most turns of a conversation. `digests` are the hashes of
/// the conversation's prefixes, shortest first. Summaries of at most `beyond` turns are ignored.
pub(crate) async fn find_summary(
    client: &Client,
    owner: &str,
    digests: &[String],
    beyond: u64,
) -> Result<Option<FoundSummary>, Error> {
    let Some(first) = digests.first() else { return Ok(None) };
    let sql =
        "SELECT turns, sha256, items, mode, tokens_before, tokens_after, handle, bytes, keep_days, session, dropped
         FROM em_compactions WHERE owner = $1 AND first_sha256 = $2 AND sha256 = ANY($3) AND turns > $4 AND expires_at >= $5
         ORDER BY turns DESC LIMIT 1";
    let parameters: [Parameter<'_>; 5] = [
        (&owner, Type::TEXT),
        (first, Type::TEXT),
        (&digests, Type::TEXT_ARRAY),
        (&to_sql_integer(beyond), Type::INT8),
        (&unix_seconds(), Type::INT8),
    ];
    let found = client.query_typed_opt(sql, &parameters).await?;
    Ok(found.map(|row| FoundSummary {
        summary: KeptSummary {
            first_sha256: first.clone(),
            turns: from_sql_integer(row.get(0)),
            sha256: row.get(1),
            items: split_items(row.get(2)),
            mode: row.get(3),
            tokens_before: from_sql_integer(row.get(4)),
            tokens_after: from_sql_integer(row.get(5)),
            handle: row.get(6),
            bytes: from_sql_integer(row.get(7)),
        },
        keep_days: u32::try_from(row.get::<_, i64>(8)).unwrap_or(0),
        condensed_in: CondensedSession { session: row.get(9), dropped: parse_dropped(row.get(10)) },
    }))
}

/// Deletes a batch of expired outputs and summaries. Returns whether there may be more.
pub(crate) async fn delete_expired(client: &mut Client) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    let limits: [Parameter<'_>; 2] = [(&unix_seconds(), Type::INT8), (&MAX_DELETED_OUTPUTS, Type::INT8)];
    let sql = "DELETE FROM em_outputs WHERE expires_at < $1 AND handle IN
                 (SELECT handle FROM em_outputs WHERE expires_at < $1 ORDER BY expires_at, handle LIMIT $2) RETURNING handle";
    let deleted = transaction.query_typed(sql, &limits).await?;
    let handles: Vec<String> = deleted.iter().map(|row| row.get(0)).collect();
    if !handles.is_empty() {
        let sql = "DELETE FROM em_output_pieces WHERE handle = ANY($1)";
        transaction.execute_typed(sql, &[(&handles, Type::TEXT_ARRAY)]).await?;
    }
    let sql = "DELETE FROM em_compactions WHERE expires_at < $1 AND (owner, first_sha256, turns, sha256) IN
                 (SELECT owner, first_sha256, turns, sha256 FROM em_compactions WHERE expires_at < $1
                  ORDER BY expires_at, owner, first_sha256, turns, sha256 LIMIT $2)";
    let summaries = transaction.execute_typed(sql, &limits).await?;
    transaction.commit().await?;
    Ok(to_sql_integer(summaries) == MAX_DELETED_OUTPUTS
        || i64::try_from(handles.len()) == Ok(MAX_DELETED_OUTPUTS))
}
