//! SQL statements for summaries of conversations, and for the sessions of outputs.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::integers::to_sql_integer;
use super::outputs::{SECONDS_PER_DAY, unix_seconds};
use crate::compactions::{CondensedSession, KeptSummary};
use crate::engine::StatementError;

/// Separates items. JSON never contains this character unescaped.
const ITEM_SEPARATOR: &str = "\u{1e}";

/// Returns the summaries of conversations with this first turn, and updates the time of their last use with a
/// resolution of one hour.
pub(crate) fn query_summaries(
    connection: &Connection,
    owner: &str,
    first_sha256: &str,
) -> Result<Vec<KeptSummary>, StatementError> {
    let mut statement = connection.prepare_cached(
        "SELECT turns, sha256, items, mode, tokens_before, tokens_after, handle, bytes FROM compactions
         WHERE owner = ?1 AND first_sha256 = ?2",
    )?;
    let rows = statement.query_map([owner, first_sha256], |row| {
        let items: String = row.get(2)?;
        let number =
            |column: usize| Ok::<_, rusqlite::Error>(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0));
        Ok(KeptSummary {
            first_sha256: first_sha256.to_owned(),
            turns: number(0)?,
            sha256: row.get(1)?,
            items: split_items(&items),
            mode: row.get(3)?,
            tokens_before: number(4)?,
            tokens_after: number(5)?,
            handle: row.get(6)?,
            bytes: number(7)?,
        })
    })?;
    let found: Vec<KeptSummary> = rows.collect::<Result<_, _>>()?;
    if !found.is_empty() {
        connection
            .prepare_cached("UPDATE compactions SET last_used = ?3 WHERE owner = ?1 AND first_sha256 = ?2 AND last_used < ?3 - 3600")?
            .execute(params![owner, first_sha256, unix_seconds()])?;
    }
    Ok(found)
}

/// Splits the stored items of a summary at [`ITEM_SEPARATOR`].
pub(crate) fn split_items(items: &str) -> Vec<String> {
    items.split(ITEM_SEPARATOR).map(str::to_owned).collect()
}

/// Parses the stored amounts that a summary dropped, by kind.
pub(crate) fn parse_dropped(dropped: &str) -> BTreeMap<String, u64> {
    let counts = dropped.lines().filter_map(|line| line.split_once(' '));
    counts.filter_map(|(kind, count)| Some((kind.to_owned(), count.parse().ok()?))).collect()
}

/// Stores a summary, and replaces an earlier one of the same turns.
pub(crate) fn store_summary(
    connection: &Connection,
    owner: &str,
    keep_days: u32,
    kept: &KeptSummary,
    condensed_in: &CondensedSession,
) -> Result<(), StatementError> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO compactions (owner, first_sha256, turns, sha256, items, mode, tokens_before,
               tokens_after, handle, bytes, keep_days, last_used) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            owner,
            kept.first_sha256,
            to_sql_integer(kept.turns),
            kept.sha256,
            kept.items.join(ITEM_SEPARATOR),
            kept.mode,
            to_sql_integer(kept.tokens_before),
            to_sql_integer(kept.tokens_after),
            kept.handle,
            to_sql_integer(kept.bytes),
            keep_days,
            unix_seconds()
        ])?;
    let dropped: Vec<String> =
        condensed_in.dropped.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO compaction_sessions (owner, first_sha256, turns, sha256, session, dropped)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            owner,
            kept.first_sha256,
            to_sql_integer(kept.turns),
            kept.sha256,
            condensed_in.session,
            dropped.join("\n")
        ])?;
    Ok(())
}

/// Records the session in which an output was first shortened.
pub(crate) fn record_output_session(
    connection: &Connection,
    handle: &str,
    session: &str,
) -> Result<(), StatementError> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO session_outputs (handle, session) VALUES (?1, ?2)")?
        .execute([handle, session])?;
    Ok(())
}

/// Returns the size in bytes of the smallest request that was condensed, if any.
pub(crate) fn query_least_bytes(connection: &Connection) -> Result<Option<u64>, StatementError> {
    let least: Option<i64> =
        connection.query_row("SELECT min(bytes) FROM compactions", [], |row| row.get(0))?;
    Ok(least.and_then(|bytes| u64::try_from(bytes).ok()))
}

/// Deletes summaries whose retention time has passed since their last use. Returns their number.
pub(crate) fn delete_expired(connection: &Connection) -> Result<u64, StatementError> {
    let forgotten = connection
        .prepare_cached("DELETE FROM compactions WHERE keep_days > 0 AND last_used + keep_days * ?1 < ?2")?
        .execute([SECONDS_PER_DAY, unix_seconds()])?;
    Ok(forgotten as u64)
}
