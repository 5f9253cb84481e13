//! Paged lists. Each page begins after the last row of the previous page, which is identified by its key.

use std::collections::BTreeMap;

use rusqlite::{Row, ToSql, named_params};

use endmark_context::budget::BudgetRule;

use crate::budgets::BudgetRow;
use crate::engine::Reader;
use crate::engine::compactions::parse_dropped;
use crate::engine::integers::from_sql_integer;
use crate::error::StoreError;
use crate::runs::StoredRun;

/// A compaction of a conversation, without the summary itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionRow {
    /// The number of the compaction. Newer compactions have larger numbers.
    pub id: i64,
    /// The client of the conversation: the hash of its credential, or empty without one.
    pub client: String,
    /// `window` or `emergency`.
    pub mode: String,
    /// Number of turns that the summary replaces.
    pub turns: u64,
    /// Estimated tokens of the history before the compaction.
    pub tokens_before: u64,
    /// Estimated tokens of the history after the compaction.
    pub tokens_after: u64,
    /// Size of the original request in bytes.
    pub bytes: u64,
    /// Handle under which that request can be read.
    pub handle: Option<String>,
    /// Creation time in UTC.
    pub created_at: String,
    /// Hash of the session; empty if unknown.
    pub session: String,
    /// Amounts that the summary no longer contains in full, by kind.
    pub dropped: BTreeMap<String, u64>,
}

/// An output that was shortened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOutput {
    /// Handle under which its full value can be read.
    pub handle: String,
    /// The format in which it was capped.
    pub format: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The number of lines.
    pub lines: u64,
    /// Creation time in UTC.
    pub created_at: String,
}

/// Position of a budget in the list of all budgets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetPosition {
    /// The window.
    pub window: String,
    /// Scope of the budget.
    pub scope: String,
    /// The session, key or model.
    pub subject: String,
    /// The unit.
    pub unit: String,
}

impl BudgetPosition {
    /// Returns the position of a row.
    pub fn new(row: &BudgetRow) -> Self {
        Self {
            window: row.window.clone(),
            scope: row.scope.clone(),
            subject: row.subject.clone(),
            unit: row.unit.clone(),
        }
    }
}

impl Reader {
    /// Returns compactions with a number below `before`, the newest first, at most `limit`.
    pub fn compactions(&self, before: Option<i64>, limit: u32) -> Result<Vec<CompactionRow>, StoreError> {
        self.compactions_where("rowid < ?1", &[&before.unwrap_or(i64::MAX), &limit])
    }

    /// Returns the compactions of a session, the newest first, at most `limit`.
    pub fn session_compactions(&self, session: &str, limit: u32) -> Result<Vec<CompactionRow>, StoreError> {
        self.compactions_where("s.session = ?1", &[&session, &limit])
    }

    fn compactions_where(&self, what: &str, values: &[&dyn ToSql]) -> Result<Vec<CompactionRow>, StoreError> {
        let sql = format!(
            "SELECT c.rowid, owner, mode, turns, tokens_before, tokens_after, bytes, handle, created_at,
               coalesce(session, ''), coalesce(dropped, '')
             FROM compactions c LEFT JOIN compaction_sessions s USING (owner, first_sha256, turns, sha256)
             WHERE {what} ORDER BY c.rowid DESC LIMIT ?2"
        );
        let read = || {
            let mut statement = self.connection().prepare(&sql)?;
            statement.query_map(values, read_compaction)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Returns the outputs that were shortened in a session and are still kept, the newest first, at most `limit`.
    pub fn session_outputs(&self, session: &str, limit: u32) -> Result<Vec<SessionOutput>, StoreError> {
        let read = || {
            self.connection()
                .prepare(
                    "SELECT handle, coalesce(format, ''), bytes, coalesce(lines, 0), created_at
                     FROM session_outputs JOIN outputs USING (handle)
                     WHERE session = ?1 AND bytes IS NOT NULL ORDER BY created_at DESC, handle LIMIT ?2",
                )?
                .query_map((session, limit), |row| {
                    Ok(SessionOutput {
                        handle: row.get(0)?,
                        format: row.get(1)?,
                        bytes: from_sql_integer(row.get(2)?),
                        lines: from_sql_integer(row.get(3)?),
                        created_at: row.get(4)?,
                    })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Returns the runs whose own keys were used for calls in a session, newest first, at most `limit`.
    pub fn session_runs(&self, session: &str, limit: u32) -> Result<Vec<StoredRun>, StoreError> {
        self.runs_where(
            "id IN (SELECT substr(credential, 5) FROM usage
               WHERE usage.session = ?1 AND credential >= 'key:' AND credential < 'key;')
             ORDER BY started_at DESC, id DESC LIMIT ?2",
            &[&session, &limit],
        )
    }

    /// Returns the budgets after this position, in the order of [`Reader::budgets`], at most `limit`. Reads
    /// only the counters and does not sum the entries, so `recomputed` contains the counters too.
    pub fn budgets_after(
        &self,
        place: Option<&BudgetPosition>,
        limit: u32,
    ) -> Result<Vec<BudgetRow>, StoreError> {
        let read = || {
            let behind = if place.is_some() {
                "WHERE scope <> 'rate' AND (window < :window OR (window = :window AND (scope, subject, unit) > (:scope, :subject, :unit)))"
            } else {
                "WHERE scope <> 'rate' AND :window IS NULL AND :scope IS NULL AND :subject IS NULL AND :unit IS NULL"
            };
            let sql = format!(
                "SELECT scope, subject, window, unit, spent, held, extra, is_closed FROM budgets {behind}
                 ORDER BY window DESC, scope, subject, unit LIMIT :limit"
            );
            self.connection()
                .prepare(&sql)?
                .query_map(
                    named_params! {
                        ":window": place.map(|place| &place.window), ":scope": place.map(|place| &place.scope),
                        ":subject": place.map(|place| &place.subject), ":unit": place.map(|place| &place.unit),
                        ":limit": limit,
                    },
                    read_budget,
                )?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Returns the budgets of a rule in one window whose spent and held amounts reach at least `percent`
    /// percent of the limit, fullest first.
    pub fn budgets_near_limit(
        &self,
        rule: BudgetRule,
        window: &str,
        subject: Option<&str>,
        percent: u32,
        limit: u32,
    ) -> Result<Vec<BudgetRow>, StoreError> {
        let read = || {
            self.connection()
                .prepare_cached(
                    "SELECT scope, subject, window, unit, spent, held, extra, is_closed FROM budgets
                     WHERE scope = ?1 AND (?2 IS NULL OR subject = ?2) AND window = ?3 AND unit = ?4
                       AND (spent + held) * 100.0 >= (?5 + extra) * 1.0 * ?6
                     ORDER BY (spent + held) * 1.0 / (?5 + extra) DESC LIMIT ?7",
                )?
                .query_map(
                    (
                        rule.scope.name(),
                        subject,
                        window,
                        rule.unit.name(),
                        crate::engine::integers::to_sql_integer(rule.limit),
                        percent,
                        limit,
                    ),
                    read_budget,
                )?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }
}

fn read_compaction(row: &Row<'_>) -> rusqlite::Result<CompactionRow> {
    let amount = |column: usize| row.get::<_, i64>(column).map(from_sql_integer);
    let owner: String = row.get(1)?;
    Ok(CompactionRow {
        id: row.get(0)?,
        client: owner.strip_prefix(crate::compactions::CLIENT_OWNER_PREFIX).unwrap_or(&owner).to_owned(),
        mode: row.get(2)?,
        turns: amount(3)?,
        tokens_before: amount(4)?,
        tokens_after: amount(5)?,
        bytes: amount(6)?,
        handle: row.get(7)?,
        created_at: row.get(8)?,
        session: row.get(9)?,
        dropped: parse_dropped(&row.get::<_, String>(10)?),
    })
}

fn read_budget(row: &Row<'_>) -> rusqlite::Result<BudgetRow> {
    let amount = |column: usize| row.get::<_, i64>(column).map(from_sql_integer);
    let (spent, held) = (amount(4)?, amount(5)?);
    Ok(BudgetRow {
        scope: row.get(0)?,
        subject: row.get(1)?,
        window: row.get(2)?,
        unit: row.get(3)?,
        spent,
        held,
        extra: amount(6)?,
        is_closed: row.get(7)?,
        recomputed: (spent, held),
    })
}
