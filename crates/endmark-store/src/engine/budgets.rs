//! SQL statements for budgets. One transaction holds a call in all its budgets. The transaction that writes
//! the call's row also settles its holds, so the budgets always agree with the ledger.

use std::path::Path;

use endmark_context::budget::{Account, Level, Period, Scope, StoredBudget, Unit, oldest_kept_window};
use rusqlite::{Connection, params};

use crate::budgets::{BudgetRow, BudgetWarning, Claim, Hold, HoldOutcome, RaiseOutcome, RefusingBudget};
use crate::calls::{Call, Charge};
use crate::engine::integers::{from_sql_integer, to_sql_integer};
use crate::engine::{Reader, StatementError, journal};
use crate::error::StoreError;
use crate::leases::{BudgetKey, Leases};
use crate::ledger::encoding::clip;
use crate::owner::{self, DeadOwner};

/// Holds a call in all its budgets, or returns the budget that does not admit it. It first reclaims unused leases of
/// this process, so the decision is exact.
pub(crate) fn hold(
    connection: &Connection,
    owner: &str,
    leases: &Leases,
    hold: &Hold,
) -> Result<HoldOutcome, StatementError> {
    // The call has already ended, because its caller did not wait for this hold. The hold would never be
    // settled.
    let is_over: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM usage WHERE request_id = ?1 AND call = ?2)")?
        .query_row(params![clip(&hold.request_id), hold.call], |row| row.get(0))?;
    if is_over {
        return Ok(HoldOutcome::fits(Vec::new(), std::iter::empty()));
    }
    let mut accounts = Vec::with_capacity(hold.claims.len());
    for claim in &hold.claims {
        accounts.push((claim, read_account(connection, owner, leases, claim)?));
    }
    let is_used_up = |(claim, account): &&(&Claim, Account)| !account.may_admit(claim.amount);
    let is_too_full = |(claim, account): &&(&Claim, Account)| !account.admits(claim.amount);
    let used_up = accounts.iter().find(is_used_up);
    let Some((claim, account)) = used_up.or_else(|| accounts.iter().find(is_too_full)) else {
        let mut warnings = Vec::new();
        for (claim, account) in &accounts {
            insert_entry(
                connection,
                owner,
                (&hold.request_id, hold.call),
                &BudgetKey::new(claim),
                claim.amount,
            )?;
            leases.count_hold(claim, claim.amount);
            warnings.extend(claim_warning(connection, claim, account.level())?);
        }
        delete_old_rate_windows(connection, leases, &hold.claims)?;
        return Ok(HoldOutcome::fits(warnings, accounts.into_iter()));
    };
    // A held amount is not spent yet. A session therefore stays open if its budget is exhausted only by the
    // holds of other calls.
    let is_ending = |(claim, account): &(&Claim, Account)| {
        claim.scope == Scope::Session && account.is_closing_call(claim.amount)
    };
    let is_closable = |(claim, account): &(&Claim, Account)| match claim.scope {
        Scope::Session => !account.is_closed,
        _ => account.admits(claim.closing_amount),
    };
    if !hold.may_close || !accounts.iter().any(is_ending) || !accounts.iter().all(is_closable) {
        return Ok(HoldOutcome::Exhausted(RefusingBudget { claim: (*claim).clone(), account: *account }));
    }
    for used in &accounts {
        let (claim, _) = used;
        insert_entry(
            connection,
            owner,
            (&hold.request_id, hold.call),
            &BudgetKey::new(claim),
            claim.closing_amount,
        )?;
        if is_ending(used) {
            connection
                .prepare_cached(
                    "UPDATE budgets SET is_closed = 1
                     WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4",
                )?
                .execute(params![claim.scope.name(), claim.subject, claim.window, claim.unit.name()])?;
        }
    }
    Ok(HoldOutcome::Closing)
}

/// Returns the current state of a budget: the stored counters plus other processes' leases and this process's calls.
fn read_account(
    connection: &Connection,
    owner: &str,
    leases: &Leases,
    claim: &Claim,
) -> rusqlite::Result<Account> {
    let StoredBudget { account, .. } =
        read_budget_row(connection, owner, &BudgetKey::new(claim), claim.limit)?;
    let (unwritten, in_use) = leases.recall(claim);
    Ok(Account {
        spent: account.spent.saturating_add(unwritten),
        held: account.held.saturating_add(in_use),
        ..account
    })
}

/// Reads a budget with the amounts that others hold and spend.
///
/// The budget's name is a one-row table in the statement. As parameters of the join they would make SQLite
/// plan the statement again at each execution, which costs a hundred thousand instructions.
const READ_BUDGET: &str = "
    SELECT coalesce(b.spent, 0), coalesce(b.held, 0), coalesce(b.extra, 0), coalesce(b.is_closed, 0),
      coalesce(b.warned_percent, 0),
      (SELECT coalesce(sum(l.amount), 0) FROM budget_leases l WHERE l.scope = k.scope AND l.subject = k.subject
         AND l.window = k.window AND l.unit = k.unit AND l.owner <> ?5),
      (SELECT count(*) FROM budget_leases l WHERE l.scope = k.scope AND l.subject = k.subject
         AND l.window = k.window AND l.unit = k.unit AND l.owner <> ?5),
      j.id IS NOT NULL, coalesce(s.granted, 0), coalesce(s.spent_elsewhere, 0)
    FROM (SELECT ?1 AS scope, ?2 AS subject, ?3 AS window, ?4 AS unit) k
      LEFT JOIN budgets b USING (scope, subject, window, unit)
      LEFT JOIN journal j
      LEFT JOIN journal_shares s USING (scope, subject, window, unit)";

/// Returns a budget without the lease of this process. The leases of other processes count as held. Amounts
/// that other instances spent or may spend are included.
pub(super) fn read_budget_row(
    connection: &Connection,
    owner: &str,
    key: &BudgetKey,
    limit: u64,
) -> rusqlite::Result<StoredBudget> {
    connection.prepare_cached(READ_BUDGET)?.query_row(
        params![key.scope.name(), key.subject, key.window, key.unit.name(), owner],
        |row| {
            let amount = |column: usize| row.get::<_, i64>(column).map(from_sql_integer);
            let mut account = Account {
                spent: amount(0)?,
                held: amount(1)?.saturating_add(amount(5)?),
                limit: limit.saturating_add(amount(2)?),
                is_closed: row.get(3)?,
                held_elsewhere: 0,
            };
            let is_exclusive = row.get(7)?;
            if is_exclusive {
                account = journal::with_other_instances(account, amount(8)?, amount(9)?);
            }
            // A rate limit has no warning level, so a lease may use it completely.
            let warned_percent = if key.scope == Scope::Rate { 100 } else { row.get(4)? };
            Ok(StoredBudget { account, warned_percent, other_owners: amount(6)?, is_exclusive })
        },
    )
}

/// Inserts the entry of a call in one budget.
pub(super) fn insert_entry(
    connection: &Connection,
    owner: &str,
    (request_id, call): (&str, u32),
    key: &BudgetKey,
    amount: u64,
) -> rusqlite::Result<()> {
    let amount = call_integer(amount);
    let BudgetKey { scope, subject, window, unit } = key;
    let (scope, unit) = (scope.name(), unit.name());
    connection
        .prepare_cached(
            "INSERT INTO budgets (scope, subject, window, unit, held) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (scope, subject, window, unit) DO UPDATE SET held = min(held + excluded.held, ?6)",
        )?
        .execute(params![scope, subject, window, unit, amount, MAX_SUM])?;
    connection
        .prepare_cached(
            "INSERT INTO budget_entries (request_id, call, scope, unit, subject, window, owner, held)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![clip(request_id), call, scope, unit, subject, window, owner, amount])?;
    Ok(())
}

/// Returns a warning if the budget reached this level for the first time in its window.
fn claim_warning(
    connection: &Connection,
    claim: &Claim,
    level: Level,
) -> rusqlite::Result<Option<BudgetWarning>> {
    if level == Level::Low || claim.scope == Scope::Rate {
        return Ok(None);
    }
    let is_news = connection
        .prepare_cached(
            "UPDATE budgets SET warned_percent = ?5
             WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4 AND warned_percent < ?5",
        )?
        .execute(params![
            claim.scope.name(),
            claim.subject,
            claim.window,
            claim.unit.name(),
            level.percent()
        ])?;
    Ok((is_news > 0).then(|| BudgetWarning { claim: claim.clone(), level }))
}

/// An entry of a call in a budget whose hold is not settled.
struct OpenEntry {
    scope: String,
    unit: String,
    subject: String,
    window: String,
    held: u64,
}

fn open_entries(connection: &Connection, request_id: &str, call: u32) -> rusqlite::Result<Vec<OpenEntry>> {
    connection
        .prepare_cached(
            "SELECT scope, unit, subject, window, held FROM budget_entries
             WHERE request_id = ?1 AND call = ?2 AND spent IS NULL",
        )?
        .query_map(params![clip(request_id), call], |row| {
            Ok(OpenEntry {
                scope: row.get(0)?,
                unit: row.get(1)?,
                subject: row.get(2)?,
                window: row.get(3)?,
                held: from_sql_integer(row.get(4)?),
            })
        })?
        .collect()
}

/// Settles the holds of a call in the transaction that writes its row. Also charges the call to budgets that
/// did not hold it, because the store had failed or was recreated. `is_new`: the row did not exist before.
pub(crate) fn settle(connection: &Connection, call: &Call, is_new: bool) -> rusqlite::Result<()> {
    let (request_id, number) = (&call.started.request_id, call.started.call);
    for entry in open_entries(connection, request_id, number)? {
        let spent = call.cost(&entry.unit, entry.held);
        settle_entry(connection, request_id, number, &entry, spent)?;
    }
    // A lease holds rate limits without an entry. Without one, only a new row proves that the call was not
    // charged yet.
    for charge in call.started.charges.iter().filter(|charge| is_new || charge.scope != Scope::Rate) {
        charge_without_hold(connection, call, charge)?;
    }
    Ok(())
}

/// Inserts the entry of a call that has no entry in this budget.
fn charge_without_hold(connection: &Connection, call: &Call, charge: &Charge) -> rusqlite::Result<()> {
    let (scope, unit) = (charge.scope.name(), charge.unit.name());
    let subject = call.started.subject(charge.scope);
    let (held, spent) = (call_integer(charge.held), call_integer(call.cost(unit, charge.held)));
    let is_new = connection
        .prepare_cached(
            "INSERT INTO budget_entries (request_id, call, scope, unit, subject, window, owner, held, spent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, '', ?7, ?8) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            clip(&call.started.request_id),
            call.started.call,
            scope,
            unit,
            subject,
            charge.window,
            held,
            spent
        ])?;
    if is_new > 0 {
        connection
            .prepare_cached(
                "INSERT INTO budgets (scope, subject, window, unit, spent) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (scope, subject, window, unit) DO UPDATE SET spent = min(spent + excluded.spent, ?6)",
            )?
            .execute(params![scope, subject, charge.window, unit, spent, MAX_SUM])?;
    }
    Ok(())
}

/// Turns a hold into spent budget.
fn settle_entry(
    connection: &Connection,
    request_id: &str,
    call: u32,
    entry: &OpenEntry,
    spent: u64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE budget_entries SET spent = ?5 WHERE request_id = ?1 AND call = ?2 AND scope = ?3 AND unit = ?4",
        )?
        .execute(params![clip(request_id), call, entry.scope, entry.unit, call_integer(spent)])?;
    connection
        .prepare_cached(
            "UPDATE budgets SET held = held - ?5, spent = min(spent + ?6, ?7)
             WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4",
        )?
        .execute(params![
            entry.scope,
            entry.subject,
            entry.window,
            entry.unit,
            call_integer(entry.held),
            call_integer(spent),
            MAX_SUM
        ])?;
    Ok(())
}

/// Releases the holds of a call that did not start. If it was the closing call of its session, reopens the
/// session.
pub(crate) fn release(
    connection: &Connection,
    request_id: &str,
    call: u32,
    closes: bool,
) -> Result<(), StatementError> {
    for entry in open_entries(connection, request_id, call)? {
        connection
            .prepare_cached(
                "UPDATE budgets SET held = held - ?5, is_closed = is_closed AND NOT (?6 AND scope = 'session')
                 WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4",
            )?
            .execute(params![
                entry.scope,
                entry.subject,
                entry.window,
                entry.unit,
                call_integer(entry.held),
                closes
            ])?;
    }
    connection
        .prepare_cached("DELETE FROM budget_entries WHERE request_id = ?1 AND call = ?2 AND spent IS NULL")?
        .execute(params![clip(request_id), call])?;
    Ok(())
}

/// Charges the holds of dead processes if their calls have no row, because such a call may have been billed.
/// The caller holds the database's write lock and the owner files of the processes that died since the last
/// start.
pub(crate) fn settle_interrupted(
    connection: &Connection,
    database: &Path,
    left: &[DeadOwner],
) -> rusqlite::Result<()> {
    let owners: Vec<String> = connection
        .prepare("SELECT DISTINCT owner FROM budget_entries WHERE spent IS NULL")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for dead in owners.iter().filter(|name| owner::is_dead(database, name, left)) {
        let calls: Vec<(String, u32)> = connection
            .prepare(
                "SELECT DISTINCT request_id, call FROM budget_entries WHERE owner = ?1 AND spent IS NULL",
            )?
            .query_map([dead], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (request_id, call) in calls {
            for entry in open_entries(connection, &request_id, call)? {
                // A request of a dead process is no longer running, so it occupies no parallel slot.
                let spent = if entry.unit == Unit::Parallel.name() { 0 } else { entry.held };
                settle_entry(connection, &request_id, call, &entry, spent)?;
            }
        }
    }
    Ok(())
}

/// Adds an amount to a session's budget, and reopens a closed session. A budget that was never used does not
/// exist yet.
pub(crate) fn raise(
    connection: &Connection,
    session: &str,
    unit: &str,
    by: u64,
) -> Result<RaiseOutcome, StatementError> {
    let extra: Option<i64> = connection
        .prepare_cached(
            "SELECT max(extra) FROM budgets WHERE scope = 'session' AND subject = ?1 AND unit = ?2",
        )?
        .query_row([session, unit], |row| row.get(0))?;
    let raised = RaiseOutcome::of(extra.map(from_sql_integer), by);
    if let RaiseOutcome::Raised(extra) = raised {
        connection
            .prepare_cached(
                "UPDATE budgets SET extra = ?3, is_closed = 0, warned_percent = 0
                 WHERE scope = 'session' AND subject = ?1 AND unit = ?2",
            )?
            .execute(params![session, unit, to_sql_integer(extra)])?;
    }
    Ok(raised)
}

/// Deletes rate limit windows that ended some minutes ago. Called when the first call of a new window is
/// held.
fn delete_old_rate_windows(
    connection: &Connection,
    leases: &Leases,
    claims: &[Claim],
) -> Result<(), StatementError> {
    let is_windowed =
        |claim: &&Claim| claim.scope == Scope::Rate && Period::from_window(&claim.window) == Period::Minute;
    let claim = claims.iter().find(is_windowed).filter(|claim| leases.is_new_window(&claim.window));
    let Some(oldest) = claim.and_then(|claim| oldest_kept_window(&claim.window)) else { return Ok(()) };
    for table in ["budgets", "journal_shares", "journal_changes"] {
        let sql = format!("DELETE FROM {table} WHERE scope = 'rate' AND window < ?1");
        connection.prepare_cached(&sql)?.execute([&oldest])?;
    }
    Ok(())
}

/// Deletes entries of calls that no longer have a row. The amounts stay in the counters of the budgets.
pub(crate) fn delete_old_entries(connection: &Connection) -> Result<(), StatementError> {
    connection.execute_batch(
        "UPDATE budgets SET forgotten = forgotten + (SELECT coalesce(sum(e.spent), 0) FROM budget_entries e
           WHERE e.spent IS NOT NULL AND e.scope = budgets.scope AND e.subject = budgets.subject
             AND e.window = budgets.window AND e.unit = budgets.unit
             AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.request_id = e.request_id AND u.call = e.call));
         DELETE FROM budget_entries WHERE spent IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM usage u
             WHERE u.request_id = budget_entries.request_id AND u.call = budget_entries.call);",
    )?;
    Ok(())
}

impl Reader {
    /// Returns all budgets except rate limits, newest windows first, with sums that are recomputed from their
    /// entries (CX-7).
    pub fn budgets(&self) -> Result<Vec<BudgetRow>, StoreError> {
        let read = || {
            self.connection()
                .prepare(
                    "SELECT b.scope, b.subject, b.window, b.unit, b.spent, b.held, b.extra, b.is_closed,
                       b.forgotten + coalesce(sum(e.spent), 0),
                       coalesce(sum(CASE WHEN e.spent IS NULL THEN e.held END), 0),
                       (SELECT coalesce(sum(l.in_use), 0) FROM budget_leases l WHERE l.scope = b.scope
                          AND l.subject = b.subject AND l.window = b.window AND l.unit = b.unit)
                     FROM budgets b LEFT JOIN budget_entries e ON e.scope = b.scope AND e.subject = b.subject
                       AND e.window = b.window AND e.unit = b.unit
                     WHERE b.scope <> 'rate' GROUP BY b.scope, b.subject, b.window, b.unit
                     ORDER BY b.window DESC, b.scope, b.subject, b.unit",
                )?
                .query_map([], |row| {
                    let amount = |column: usize| row.get::<_, i64>(column).map(from_sql_integer);
                    // Calls held in leases have no entries.
                    let leased = amount(10)?;
                    Ok(BudgetRow {
                        scope: row.get(0)?,
                        subject: row.get(1)?,
                        window: row.get(2)?,
                        unit: row.get(3)?,
                        spent: amount(4)?,
                        held: amount(5)?.saturating_add(leased),
                        extra: amount(6)?,
                        is_closed: row.get(7)?,
                        recomputed: (amount(8)?, amount(9)?.saturating_add(leased)),
                    })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }
}

/// Largest sum of a budget: half of the largest integer. Adding one more amount to it cannot overflow, which
/// SQLite would answer with a floating-point value.
pub(super) const MAX_SUM: i64 = 1 << 62;
/// Largest amount that a caller can request.
const MAX_AMOUNT: i64 = 1 << 60;
/// Largest cost of one call in tokens or nano-dollars. A larger cost that an upstream reports is reduced to
/// it. A hundred thousand such costs can be added.
const MAX_CALL_COST: i64 = 1 << 46;

/// Converts an amount to an SQLite integer.
pub(super) fn budget_integer(value: u64) -> i64 {
    to_sql_integer(value).min(MAX_AMOUNT)
}

/// Converts the held amount or the cost of a call to an SQLite integer.
fn call_integer(value: u64) -> i64 {
    budget_integer(value).min(MAX_CALL_COST)
}

#[cfg(test)]
mod tests {
    use endmark_context::budget::Unit;
    use rusqlite::StatementStatus;

    use super::*;
    use crate::engine::{BUSY_TIMEOUT, Session};

    #[test]
    fn a_budget_includes_holds_of_other_owners() {
        let folder = tempfile::tempdir().unwrap();
        let (session, _owner, ()) =
            Session::open(&folder.path().join("b.db"), BUSY_TIMEOUT, |_| Ok(())).unwrap();
        let key = |subject: &str| BudgetKey {
            scope: Scope::Session,
            subject: subject.to_owned(),
            window: "ever".to_owned(),
            unit: Unit::Tokens,
        };
        session
            .execute_batch(
                "INSERT INTO budgets (scope, subject, window, unit, spent, held, extra)
                   VALUES ('session', 'a', 'ever', 'tokens', 5, 2, 40);
                 INSERT INTO budget_leases (scope, subject, window, unit, owner, amount, in_use) VALUES
                   ('session', 'a', 'ever', 'tokens', 'own', 1, 0), ('session', 'a', 'ever', 'tokens', 'p', 20, 0),
                   ('session', 'a', 'ever', 'tokens', 'q', 30, 0), ('session', 'b', 'ever', 'tokens', 'p', 9, 0)",
            )
            .unwrap();
        let read = |subject: &str| read_budget_row(&session, "own", &key(subject), 100).unwrap();
        let account =
            |spent, held, limit| Account { spent, held, limit, is_closed: false, held_elsewhere: 0 };
        let expected = |account, other_owners| StoredBudget {
            account,
            warned_percent: 0,
            other_owners,
            is_exclusive: false,
        };
        let of_journal =
            |account, other_owners| StoredBudget { is_exclusive: true, ..expected(account, other_owners) };
        assert_eq!(read("a"), expected(account(5, 52, 140), 2));
        assert_eq!(read("b"), expected(account(0, 9, 100), 1));
        assert_eq!(read("c"), expected(account(0, 0, 100), 0));
        // A journal counts the amount that the database did not grant to this instance as held.
        session
            .execute_batch(
                "INSERT INTO journal (id, instance, token, pending) VALUES (1, 'i', '', '');
                 INSERT INTO journal_shares (scope, subject, window, unit, granted, spent_elsewhere)
                   VALUES ('session', 'a', 'ever', 'tokens', 60, 7)",
            )
            .unwrap();
        let in_journal = Account { held_elsewhere: 73, ..account(12, 125, 140) };
        assert_eq!(read("a"), of_journal(in_journal, 2));
        assert_eq!(read("c"), of_journal(Account { held_elsewhere: 100, ..account(0, 100, 100) }, 0));
        let statement = session.prepare_cached(READ_BUDGET).unwrap();
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
