//! SQL statements for leases, and for the calls that are held in them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rusqlite::{Connection, Params, ToSql, params};

use crate::calls::Call;
use crate::engine::budgets::{self, MAX_SUM};
use crate::engine::integers::to_sql_integer;
use crate::leases::{BudgetKey, LeasedAmount, LeasedCall, Leases};
use crate::ledger::encoding::clip;
use crate::owner::{self, DeadOwner};

/// Entries that one statement writes. Most of a statement's cost is its start and end.
const ENTRIES_PER_STATEMENT: usize = 16;

/// The statements that insert one entry and [`ENTRIES_PER_STATEMENT`] entries.
static INSERT_ENTRIES: LazyLock<[String; 2]> = LazyLock::new(|| {
    [1, ENTRIES_PER_STATEMENT].map(|entries| {
        let rows = vec!["(?, ?, ?, ?, ?, ?, '', ?, ?)"; entries].join(", ");
        format!(
            "INSERT INTO budget_entries (request_id, call, scope, unit, subject, window, owner, held, spent)
             VALUES {rows} ON CONFLICT DO NOTHING"
        )
    })
});

/// Plans and writes changed leases in the current transaction.
pub(super) fn write(
    connection: &Connection,
    owner: &str,
    leases: &Leases,
    changed: &[(Arc<BudgetKey>, u64)],
) -> rusqlite::Result<()> {
    for (key, limit) in changed {
        let standing = budgets::read_budget_row(connection, owner, key, *limit)?;
        let Some((amount, in_use)) = leases.plan(key, standing) else { continue };
        let place = params![key.scope.name(), key.subject, key.window, key.unit.name(), owner];
        if amount == 0 {
            execute(
                connection,
                "DELETE FROM budget_leases
                 WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4 AND owner = ?5",
                place,
            )?;
        } else {
            execute(
                connection,
                "INSERT INTO budget_leases (scope, subject, window, unit, owner, amount, in_use)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT DO UPDATE SET amount = excluded.amount, in_use = excluded.in_use",
                params![
                    key.scope.name(),
                    key.subject,
                    key.window,
                    key.unit.name(),
                    owner,
                    to_sql_integer(amount),
                    to_sql_integer(in_use)
                ],
            )?;
        }
    }
    Ok(())
}

/// Writes the entries of calls that were held in leases, in the transaction that writes their rows.
pub(super) fn settle(connection: &Connection, entries: &[(&Call, &LeasedAmount)]) -> rusqlite::Result<()> {
    let (together, rest) = entries.as_chunks::<ENTRIES_PER_STATEMENT>();
    for entries in together.iter().map(<[_; ENTRIES_PER_STATEMENT]>::as_slice).chain(rest.chunks(1)) {
        let mut statement = connection.prepare_cached(&INSERT_ENTRIES[usize::from(entries.len() > 1)])?;
        let mut place = 0;
        for (Call { started, .. }, LeasedAmount { key, held, cost }) in entries {
            let (held, cost) = (to_sql_integer(*held), to_sql_integer(*cost));
            let values: [&dyn ToSql; 8] = [
                &clip(&started.request_id),
                &started.call,
                &key.scope.name(),
                &key.unit.name(),
                &key.subject,
                &key.window,
                &held,
                &cost,
            ];
            for value in values {
                place += 1;
                statement.raw_bind_parameter(place, value)?;
            }
        }
        statement.raw_execute()?;
    }
    Ok(())
}

/// Adds the costs of calls to their budgets, and writes each budget once.
pub(super) fn charge(connection: &Connection, costs: &HashMap<Arc<BudgetKey>, u64>) -> rusqlite::Result<()> {
    for (key, cost) in costs {
        let values = params![
            key.scope.name(),
            key.subject,
            key.window,
            key.unit.name(),
            budgets::budget_integer(*cost),
            MAX_SUM
        ];
        // Update first: nearly every budget exists, and an upsert costs more than an update.
        let update = "UPDATE budgets SET spent = min(spent + ?5, ?6)
                      WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4";
        if connection.prepare_cached(update)?.execute(values)? == 0 {
            let insert = "INSERT INTO budgets (scope, subject, window, unit, spent) VALUES (?1, ?2, ?3, ?4, min(?5, ?6))";
            execute(connection, insert, values)?;
        }
    }
    Ok(())
}

/// Deletes the leases of an ending process. Inserts entries for the amounts that its calls in progress still
/// hold.
pub(super) fn return_all(connection: &Connection, owner: &str, calls: &[LeasedCall]) -> rusqlite::Result<()> {
    for call in calls {
        for LeasedAmount { key, held, .. } in &call.amounts {
            budgets::insert_entry(connection, owner, (&call.request_id, call.call), key, *held)?;
        }
    }
    execute(connection, "DELETE FROM budget_leases WHERE owner = ?1", [owner])
}

/// Deletes the leases of dead processes, and charges their calls. The caller holds the database's write lock.
pub(crate) fn settle_dead_processes(
    connection: &Connection,
    database: &Path,
    left: &[DeadOwner],
) -> rusqlite::Result<()> {
    let owners: Vec<String> = connection
        .prepare("SELECT DISTINCT owner FROM budget_leases")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for name in owners.iter().filter(|name| owner::is_dead(database, name, left)) {
        execute(connection, "DELETE FROM budget_leases WHERE owner = ?1", [name])?;
    }
    Ok(())
}

fn execute(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(values).map(|_| ())
}
