//! Compares budgets with the ledger: the charge for each call must match the call's row.

use std::collections::HashMap;

use endmark_context::Moment;
use endmark_context::budget::{Period, Scope, Unit, Zone};

use crate::calls::UsageRow;
use crate::engine::Reader;
use crate::engine::integers::from_sql_integer;
use crate::engine::reader::calls::{EXTRA_TABLE_JOINS, SELECT_USAGE, read_usage_row};
use crate::error::StoreError;

/// A budget that differs from the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetDifference {
    /// Scope of the budget.
    pub scope: Scope,
    /// The session, key or model.
    pub subject: String,
    /// The window.
    pub window: String,
    /// Unit of the budget.
    pub unit: Unit,
    /// Number of calls that may have been billed but were not charged to the budget.
    pub uncharged_calls: u64,
    /// Number of calls whose charge differs from the tokens in their rows.
    pub wrong_calls: u64,
}

/// A subject and a window, which identify a budget of one scope and unit.
type BudgetSubject = (String, String);

impl Reader {
    /// Returns the first budget of this scope and unit that differs from the ledger. Returns `None` if every
    /// call since the first charge of each budget was charged correctly. Reads all these calls, and blocks.
    pub fn budget_difference(
        &self,
        scope: Scope,
        unit: Unit,
        zone: &Zone,
    ) -> Result<Option<BudgetDifference>, StoreError> {
        let compared = || -> rusqlite::Result<Option<BudgetDifference>> {
            let mut budgets = self.first_charges(scope, unit)?;
            let Some(since) = budgets.values().map(|budget| &budget.since).min().cloned() else {
                return Ok(None);
            };
            let sql = format!(
                "{SELECT_USAGE} usage {EXTRA_TABLE_JOINS} LEFT JOIN (SELECT request_id, call, subject AS charged_to, window, held, spent
                   FROM budget_entries WHERE scope = ?1 AND unit = ?2) e USING (request_id, call)
                 WHERE started_at >= ?3"
            )
            .replacen(" FROM ", ", e.charged_to, e.window, e.held, e.spent FROM ", 1);
            let mut statement = self.connection().prepare(&sql)?;
            let mut rows = statement.query((scope.name(), unit.name(), since))?;
            while let Some(row) = rows.next()? {
                let call = read_usage_row(row)?;
                let charged: Option<(String, String)> =
                    row.get::<_, Option<String>>("charged_to")?.zip(row.get("window")?);
                if let Some(place) = charged {
                    let (held, spent): (i64, Option<i64>) = (row.get("held")?, row.get("spent")?);
                    let is_wrong = unit == Unit::Tokens
                        && spent.is_some_and(|spent| {
                            !may_have_charged(&call, from_sql_integer(held), from_sql_integer(spent))
                        });
                    if let Some(budget) = budgets.get_mut(&place).filter(|_| is_wrong) {
                        budget.wrong_calls += 1;
                    }
                    continue;
                }
                let Some(at) = Moment::parse(&call.started_at).filter(|_| is_billed(&call)) else { continue };
                for period in Period::ALL {
                    let place = (call.subject(scope).to_owned(), period.window(at, zone));
                    let budget = budgets.get_mut(&place).filter(|budget| budget.since <= call.started_at);
                    if let Some(budget) = budget {
                        budget.uncharged_calls += 1;
                    }
                }
            }
            let mut wrong: Vec<_> = budgets
                .into_iter()
                .filter(|(_, budget)| budget.uncharged_calls + budget.wrong_calls > 0)
                .collect();
            wrong.sort_by(|(one, _), (other, _)| one.cmp(other));
            let first = wrong.into_iter().next();
            Ok(first.map(|((subject, window), ComparedCharges { uncharged_calls, wrong_calls, .. })| {
                BudgetDifference { scope, subject, window, unit, uncharged_calls, wrong_calls }
            }))
        };
        compared().map_err(|error| self.store_error(&error))
    }

    /// Returns the start time of the first call that was charged to each budget.
    fn first_charges(
        &self,
        scope: Scope,
        unit: Unit,
    ) -> rusqlite::Result<HashMap<BudgetSubject, ComparedCharges>> {
        self.connection()
            .prepare(
                "SELECT subject, window, min(started_at) FROM budget_entries JOIN usage USING (request_id, call)
                 WHERE scope = ?1 AND unit = ?2 GROUP BY subject, window",
            )?
            .query_map([scope.name(), unit.name()], |row| {
                let compared = ComparedCharges { since: row.get(2)?, uncharged_calls: 0, wrong_calls: 0 };
                Ok(((row.get(0)?, row.get(1)?), compared))
            })?
            .collect()
    }
}

struct ComparedCharges {
    since: String,
    uncharged_calls: u64,
    wrong_calls: u64,
}

fn is_billed(call: &UsageRow) -> bool {
    was_killed(call) || call.tokens.with_estimate(call.estimate).is_some()
}

/// Whether the gateway was killed before the call ended.
fn was_killed(call: &UsageRow) -> bool {
    call.ended_at.is_none()
}

/// Whether this amount is a valid charge for a call with this hold.
fn may_have_charged(call: &UsageRow, held: u64, spent: u64) -> bool {
    if was_killed(call) {
        return spent == held;
    }
    let tokens = call.tokens.with_estimate(call.estimate);
    spent == tokens.map_or(0, |(prompt, output)| prompt.saturating_add(output))
}
