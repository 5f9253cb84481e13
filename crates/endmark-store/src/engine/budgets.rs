//! SQL statements for budgets. One transaction holds a call in all its budgets. The transaction that writes the
//! call's row settles the holds, so counters and ledger cannot diverge.

use std::path::Path;

use endmark_context::budget::{Account, Level, Scope};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::budgets::{BudgetRow, BudgetWarning, Claim, Held, Hold, UsedUp};
use crate::calls::{Call, Charge};
use crate::engine::integers::{integer, natural};
use crate::engine::{Fault, Reader, journal, leases};
use crate::error::StoreError;
use crate::leases::{BudgetKey, Leases};
use crate::ledger::encoding::clipped;
use crate::owner::{self, Dead};

/// Holds a call in all its budgets, or returns the budget that does not admit it. Leases of this process that are not
/// in use are reclaimed first, so the decision is exact.
pub(crate) fn hold(
    connection: &Connection,
    owner: &str,
    leases: &Leases,
    hold: &Hold,
) -> Result<Held, Fault> {
    // The call is already over: its caller did not wait for this hold, and nothing would settle it.
    let is_over: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM usage WHERE request_id = ?1 AND call = ?2)")?
        .query_row(params![clipped(&hold.request_id), hold.call], |row| row.get(0))?;
    if is_over {
        return Ok(Held::Fits { warnings: Vec::new(), least_left: None });
    }
    let mut accounts = Vec::with_capacity(hold.claims.len());
    for claim in &hold.claims {
        accounts.push((claim, account_now(connection, owner, leases, claim)?));
    }
    let is_used_up = |(claim, account): &&(&Claim, Account)| !account.may_admit(claim.amount);
    let is_too_full = |(claim, account): &&(&Claim, Account)| !account.admits(claim.amount);
    let used_up = accounts.iter().find(is_used_up);
    let Some((claim, account)) = used_up.or_else(|| accounts.iter().find(is_too_full)) else {
        let mut warnings = Vec::new();
        for (claim, account) in &accounts {
            enter(connection, owner, (&hold.request_id, hold.call), &BudgetKey::of(claim), claim.amount)?;
            leases.note(claim, claim.amount);
            warnings.extend(warning(connection, claim, account.level())?);
        }
        let least_left = Held::least_left(accounts.into_iter());
        return Ok(Held::Fits { warnings, least_left });
    };
    // An amount that is only held is not spent: a session stays open if the rest of its budget is held by other
    // calls.
    let is_ending = |(claim, account): &(&Claim, Account)| {
        claim.scope == Scope::Session && account.is_closed_by(claim.amount)
    };
    let is_closable = |(claim, account): &(&Claim, Account)| match claim.scope {
        Scope::Session => !account.is_closed,
        _ => account.admits(claim.closing_amount),
    };
    if !hold.may_close || !accounts.iter().any(is_ending) || !accounts.iter().all(is_closable) {
        return Ok(Held::UsedUp(UsedUp { claim: (*claim).clone(), account: *account }));
    }
    for used in &accounts {
        let (claim, _) = used;
        enter(connection, owner, (&hold.request_id, hold.call), &BudgetKey::of(claim), claim.closing_amount)?;
        if is_ending(used) {
            connection
                .prepare_cached(
                    "UPDATE budgets SET is_closed = 1
                     WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4",
                )?
                .execute(params![claim.scope.name(), claim.subject, claim.window, claim.unit.name()])?;
        }
    }
    Ok(Held::Closing)
}

/// Returns the current state of a budget: the stored counters plus other processes' leases and this process's calls.
fn account_now(
    connection: &Connection,
    owner: &str,
    leases: &Leases,
    claim: &Claim,
) -> rusqlite::Result<Account> {
    let key = BudgetKey::of(claim);
    let (account, _) = account(connection, &key, claim.limit)?;
    let (amount_of_others, _) = leases::of_others(connection, owner, &key)?;
    let (unwritten, in_use) = leases.recall(claim);
    Ok(Account {
        spent: account.spent.saturating_add(unwritten),
        held: account.held.saturating_add(amount_of_others).saturating_add(in_use),
        ..account
    })
}

/// Returns a budget without its leases, and the warning level in percent that was last reported. Amounts that other
/// instances spent or may spend are included.
pub(super) fn account(
    connection: &Connection,
    key: &BudgetKey,
    limit: u64,
) -> rusqlite::Result<(Account, u8)> {
    let found = connection
        .prepare_cached(
            "SELECT spent, held, extra, is_closed, warned_percent FROM budgets
             WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4",
        )?
        .query_row(params![key.scope.name(), key.subject, key.window, key.unit.name()], |row| {
            let account = Account {
                spent: natural(row.get(0)?),
                held: natural(row.get(1)?),
                limit: limit.saturating_add(natural(row.get(2)?)),
                is_closed: row.get(3)?,
            };
            Ok((account, row.get(4)?))
        })
        .optional()?;
    let (account, warned_percent) = found.unwrap_or((Account { limit, ..Account::default() }, 0));
    Ok((journal::add_elsewhere(connection, key, account)?, warned_percent))
}

/// Inserts the entry of a call in one budget.
pub(super) fn enter(
    connection: &Connection,
    owner: &str,
    (request_id, call): (&str, u32),
    key: &BudgetKey,
    amount: u64,
) -> rusqlite::Result<()> {
    let amount = of_call(amount);
    let BudgetKey { scope, subject, window, unit } = key;
    let (scope, unit) = (scope.name(), unit.name());
    connection
        .prepare_cached(
            "INSERT INTO budgets (scope, subject, window, unit, held) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (scope, subject, window, unit) DO UPDATE SET held = min(held + excluded.held, ?6)",
        )?
        .execute(params![scope, subject, window, unit, amount, SUM_LIMIT])?;
    connection
        .prepare_cached(
            "INSERT INTO budget_entries (request_id, call, scope, unit, subject, window, owner, held)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![clipped(request_id), call, scope, unit, subject, window, owner, amount])?;
    Ok(())
}

/// Returns a warning if the budget reached this level for the first time in its window.
fn warning(connection: &Connection, claim: &Claim, level: Level) -> rusqlite::Result<Option<BudgetWarning>> {
    if level == Level::Low {
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

/// An entry that is still held.
struct Open {
    scope: String,
    unit: String,
    subject: String,
    window: String,
    held: u64,
}

fn open_entries(connection: &Connection, request_id: &str, call: u32) -> rusqlite::Result<Vec<Open>> {
    connection
        .prepare_cached(
            "SELECT scope, unit, subject, window, held FROM budget_entries
             WHERE request_id = ?1 AND call = ?2 AND spent IS NULL",
        )?
        .query_map(params![clipped(request_id), call], |row| {
            Ok(Open {
                scope: row.get(0)?,
                unit: row.get(1)?,
                subject: row.get(2)?,
                window: row.get(3)?,
                held: natural(row.get(4)?),
            })
        })?
        .collect()
}

/// Settles the holds of a call in the transaction that writes its row. Charges the call in budgets that did not hold
/// it, because the store failed then or was recreated since.
pub(crate) fn settle(connection: &Connection, call: &Call) -> rusqlite::Result<()> {
    let (request_id, number) = (&call.started.request_id, call.started.call);
    for entry in open_entries(connection, request_id, number)? {
        let spent = call.cost(&entry.unit, entry.held);
        close(connection, request_id, number, &entry, spent)?;
    }
    for charge in &call.started.charges {
        charge_late(connection, call, charge)?;
    }
    Ok(())
}

/// Inserts the entry of a call that has no entry in this budget.
fn charge_late(connection: &Connection, call: &Call, charge: &Charge) -> rusqlite::Result<()> {
    let (scope, unit) = (charge.scope.name(), charge.unit.name());
    let subject = call.started.subject(charge.scope);
    let (held, spent) = (of_call(charge.held), of_call(call.cost(unit, charge.held)));
    let is_new = connection
        .prepare_cached(
            "INSERT INTO budget_entries (request_id, call, scope, unit, subject, window, owner, held, spent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, '', ?7, ?8) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            clipped(&call.started.request_id),
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
            .execute(params![scope, subject, charge.window, unit, spent, SUM_LIMIT])?;
    }
    Ok(())
}

/// Turns a hold into spent budget.
fn close(
    connection: &Connection,
    request_id: &str,
    call: u32,
    entry: &Open,
    spent: u64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE budget_entries SET spent = ?5 WHERE request_id = ?1 AND call = ?2 AND scope = ?3 AND unit = ?4",
        )?
        .execute(params![clipped(request_id), call, entry.scope, entry.unit, of_call(spent)])?;
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
            of_call(entry.held),
            of_call(spent),
            SUM_LIMIT
        ])?;
    Ok(())
}

/// Releases the holds of a call that was never made. If the call was to close a session, the session is open again.
pub(crate) fn release(
    connection: &Connection,
    request_id: &str,
    call: u32,
    closes: bool,
) -> Result<(), Fault> {
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
                of_call(entry.held),
                closes
            ])?;
    }
    connection
        .prepare_cached("DELETE FROM budget_entries WHERE request_id = ?1 AND call = ?2 AND spent IS NULL")?
        .execute(params![clipped(request_id), call])?;
    Ok(())
}

/// Counts the holds of dead processes as spent if no row of the call was found: a call in flight may have been
/// billed. The caller holds the database's write lock and the owner files of the processes that died since the last
/// start.
pub(crate) fn settle_interrupted(
    connection: &Connection,
    database: &Path,
    left: &[Dead],
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
                close(connection, &request_id, call, &entry, entry.held)?;
            }
        }
    }
    Ok(())
}

/// Adds to a session's budgets and reopens a closed session. Returns the number of budgets changed; a budget that was
/// never used does not exist yet and is not counted.
pub(crate) fn raise(connection: &Connection, session: &str, unit: &str, by: u64) -> Result<usize, Fault> {
    let raised = connection
        .prepare_cached(
            "UPDATE budgets SET extra = min(extra + ?3, ?4), is_closed = 0, warned_percent = 0
             WHERE scope = 'session' AND subject = ?1 AND unit = ?2",
        )?
        .execute(params![session, unit, amount(by), SUM_LIMIT])?;
    Ok(raised)
}

/// Deletes entries whose call has no ledger row any more. Their amounts stay counted.
pub(crate) fn forget(connection: &Connection) -> Result<(), Fault> {
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
    /// Returns all budgets, each recomputed from its entries (CX-7), the newest windows first.
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
                     GROUP BY b.scope, b.subject, b.window, b.unit
                     ORDER BY b.window DESC, b.scope, b.subject, b.unit",
                )?
                .query_map([], |row| {
                    let amount = |column: usize| row.get::<_, i64>(column).map(natural);
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
        read().map_err(|error| self.failed(&error))
    }
}

/// Largest sum of a budget: half of the largest integer, so that adding one more amount cannot overflow into a
/// floating-point value in SQLite.
pub(super) const SUM_LIMIT: i64 = 1 << 62;
/// Largest amount that a caller can name.
const AMOUNT_LIMIT: i64 = 1 << 60;
/// Largest cost of a call, in tokens or nano-dollars, whatever its upstream reports. A hundred thousand such costs
/// can be added.
const CALL_LIMIT: i64 = 1 << 46;

/// Converts an amount to an SQLite integer.
pub(super) fn amount(value: u64) -> i64 {
    integer(value).min(AMOUNT_LIMIT)
}

/// Converts what a call holds or costs to an SQLite integer.
fn of_call(value: u64) -> i64 {
    amount(value).min(CALL_LIMIT)
}
