//! Lists in pages: each page begins behind the last row of the one before, which is found by its key.

use rusqlite::{Row, named_params};

use crate::budgets::BudgetRow;
use crate::engine::Reader;
use crate::engine::integers::natural;
use crate::error::StoreError;
use crate::runs::StoredRun;

/// What the beginning of a conversation was condensed to, without the items themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionRow {
    /// Its number; newer ones have larger ones.
    pub id: i64,
    /// Whose conversation it is: the hash of the client's credential, empty where it sent none.
    pub client: String,
    /// `window` or `emergency`.
    pub mode: String,
    /// How many turns it stands for.
    pub turns: u64,
    /// Tokens of the history before, as an estimate.
    pub tokens_before: u64,
    /// Tokens of the history after.
    pub tokens_after: u64,
    /// Bytes of the request that it was made of.
    pub bytes: u64,
    /// Under which that request can be read.
    pub handle: Option<String>,
    /// When, in UTC.
    pub created_at: String,
}

/// The place of a budget in the list of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetPlace {
    /// The window.
    pub window: String,
    /// Whose it is.
    pub scope: String,
    /// Which session, key or model.
    pub subject: String,
    /// What is counted.
    pub unit: String,
}

impl BudgetPlace {
    /// Where a row stands.
    pub fn of(row: &BudgetRow) -> Self {
        Self {
            window: row.window.clone(),
            scope: row.scope.clone(),
            subject: row.subject.clone(),
            unit: row.unit.clone(),
        }
    }
}

impl Reader {
    /// Compactions whose number is below `before`, the newest first, at most `limit` of them.
    pub fn compactions(&self, before: Option<i64>, limit: u32) -> Result<Vec<CompactionRow>, StoreError> {
        let read = || {
            self.connection()
                .prepare(
                    "SELECT rowid, owner, mode, turns, tokens_before, tokens_after, bytes, handle, created_at
                     FROM compactions WHERE rowid < :before ORDER BY rowid DESC LIMIT :limit",
                )?
                .query_map(
                    named_params! { ":before": before.unwrap_or(i64::MAX), ":limit": limit },
                    compaction,
                )?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Budgets behind this place, in the order of [`Reader::budgets`], at most `limit` of them. What their entries come to
    /// is not recomputed: `recomputed` repeats the counters.
    pub fn budgets_behind(
        &self,
        place: Option<&BudgetPlace>,
        limit: u32,
    ) -> Result<Vec<BudgetRow>, StoreError> {
        let read = || {
            let behind = if place.is_some() {
                "WHERE window < :window OR (window = :window AND (scope, subject, unit) > (:scope, :subject, :unit))"
            } else {
                "WHERE :window IS NULL AND :scope IS NULL AND :subject IS NULL AND :unit IS NULL"
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
                    budget,
                )?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Runs behind the one with this id, the newest first, at most `limit` of them; none where there is no such run.
    pub fn runs_behind(&self, id: &str, limit: u32) -> Result<Vec<StoredRun>, StoreError> {
        self.runs_where(
            "(started_at, id) < (SELECT started_at, id FROM runs WHERE id = ?1)
             ORDER BY started_at DESC, id DESC LIMIT ?2",
            &[&id, &limit],
        )
    }
}

fn compaction(row: &Row<'_>) -> rusqlite::Result<CompactionRow> {
    let amount = |column: usize| row.get::<_, i64>(column).map(natural);
    let owner: String = row.get(1)?;
    Ok(CompactionRow {
        id: row.get(0)?,
        client: owner.strip_prefix(crate::compactions::CLIENT).unwrap_or(&owner).to_owned(),
        mode: row.get(2)?,
        turns: amount(3)?,
        tokens_before: amount(4)?,
        tokens_after: amount(5)?,
        bytes: amount(6)?,
        handle: row.get(7)?,
        created_at: row.get(8)?,
    })
}

fn budget(row: &Row<'_>) -> rusqlite::Result<BudgetRow> {
    let amount = |column: usize| row.get::<_, i64>(column).map(natural);
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
