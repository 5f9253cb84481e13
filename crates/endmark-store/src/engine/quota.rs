//! Removes kept outputs to keep their total size within the quota.

use std::collections::{HashMap, HashSet, VecDeque};

use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

use super::outputs::{delete_output, unix_seconds};
use crate::engine::StatementError;
use crate::engine::integers::from_sql_integer;

/// An output that was used within this time is not removed. Neither are the other outputs of its session.
const IN_USE_SECONDS: i64 = 3_600;

/// Each removal frees at least 1/32 of the quota. Otherwise every new piece would cause another removal.
const FREED_DIVISOR: u64 = 32;

/// Number of outputs that are looked up at once.
const LOOKUP_BATCH_OUTPUTS: u32 = 256;

/// Frees space for `bytes` more bytes of an output: repeatedly removes the least recently used output of the
/// owner with the most bytes. Fails with [`StatementError::QuotaExceeded`] if that is not enough. If the
/// output alone exceeds the quota, nothing is removed.
pub(crate) fn free_space(
    connection: &Connection,
    handle: &str,
    bytes: i64,
    max_bytes: u64,
) -> Result<(), StatementError> {
    let size = |sql: &str, values: &[&str]| -> rusqlite::Result<u64> {
        let read = |row: &Row<'_>| row.get::<_, i64>(0);
        let found = connection.prepare_cached(sql)?.query_row(params_from_iter(values), read);
        Ok(found.optional()?.map_or(0, from_sql_integer))
    };
    let needed = from_sql_integer(bytes);
    let mut total = size("SELECT bytes FROM output_total", &[])?.saturating_add(needed);
    if total <= max_bytes {
        return Ok(());
    }
    let own = size("SELECT bytes FROM output_sizes WHERE handle = ?1", &[handle])?;
    if own.saturating_add(needed) > max_bytes {
        return Err(StatementError::QuotaExceeded { max_bytes });
    }
    let mut candidates =
        Candidates { connection, in_use: query_outputs_in_use(connection)?, by_owner: HashMap::new() };
    let goal = max_bytes - max_bytes / FREED_DIVISOR;
    while total > goal {
        let Some((owner, victim, freed)) = candidates.next()? else { break };
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO removed_outputs (handle, owner, removed_at) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![victim, owner, unix_seconds()])?;
        delete_output(connection, &victim)?;
        total = total.saturating_sub(freed);
    }
    if total <= max_bytes { Ok(()) } else { Err(StatementError::QuotaExceeded { max_bytes }) }
}

/// Returns the outputs of sessions in which a call was made or an output was used recently.
fn query_outputs_in_use(connection: &Connection) -> rusqlite::Result<HashSet<String>> {
    connection
        .prepare_cached(
            "WITH lately(session) AS MATERIALIZED (
               SELECT session FROM usage WHERE started_at >= datetime('now', '-' || ?1 || ' seconds')
               UNION SELECT session FROM outputs JOIN session_outputs USING (handle) WHERE last_used >= ?2)
             SELECT handle FROM session_outputs WHERE session IN lately
             UNION SELECT handle FROM compactions JOIN compaction_sessions USING (owner, first_sha256, turns, sha256)
               WHERE session IN lately AND handle IS NOT NULL",
        )?
        .query_map([IN_USE_SECONDS, unix_seconds() - IN_USE_SECONDS], |row| row.get(0))?
        .collect()
}

/// The outputs that may be removed, in the order of removal.
struct Candidates<'a> {
    connection: &'a Connection,
    in_use: HashSet<String>,
    by_owner: HashMap<String, OwnerCandidates>,
}

/// The removable outputs of one owner that have been looked up so far.
#[derive(Default)]
struct OwnerCandidates {
    candidates: VecDeque<(String, u64)>,
    /// The last use and the handle of the output that was looked up last.
    last_looked_up: (i64, String),
    is_exhausted: bool,
}

impl Candidates<'_> {
    /// Returns the least recently used output of the owner with the most bytes, as owner, handle and size.
    fn next(&mut self) -> rusqlite::Result<Option<(String, String, u64)>> {
        let mut statement =
            self.connection.prepare_cached("SELECT owner FROM output_owners ORDER BY bytes DESC")?;
        let mut owners = statement.query([])?;
        while let Some(row) = owners.next()? {
            let owner: String = row.get(0)?;
            let of_owner = self.by_owner.entry(owner.clone()).or_default();
            while of_owner.candidates.is_empty() && !of_owner.is_exhausted {
                of_owner.find_candidates(self.connection, &owner, &self.in_use)?;
            }
            if let Some((handle, bytes)) = of_owner.candidates.pop_front() {
                return Ok(Some((owner, handle, bytes)));
            }
        }
        Ok(None)
    }
}

impl OwnerCandidates {
    fn find_candidates(
        &mut self,
        connection: &Connection,
        owner: &str,
        in_use: &HashSet<String>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(
            "SELECT handle, bytes, last_used FROM (SELECT handle, last_used FROM outputs
               WHERE owner = ?1 AND (last_used, handle) > (?2, ?3) AND last_used < ?4
               ORDER BY last_used, handle LIMIT ?5) JOIN output_sizes USING (handle) ORDER BY last_used, handle",
        )?;
        let (last_used, handle) = &self.last_looked_up;
        let mut rows = statement.query(params![
            owner,
            last_used,
            handle,
            unix_seconds() - IN_USE_SECONDS,
            LOOKUP_BATCH_OUTPUTS
        ])?;
        let mut found = 0;
        while let Some(row) = rows.next()? {
            let handle: String = row.get(0)?;
            found += 1;
            if !in_use.contains(&handle) {
                self.candidates.push_back((handle.clone(), from_sql_integer(row.get(1)?)));
            }
            self.last_looked_up = (row.get(2)?, handle);
        }
        self.is_exhausted = found < LOOKUP_BATCH_OUTPUTS;
        Ok(())
    }
}
