//! The journal of an instance that shares a PostgreSQL database: the amounts that the instance may spend, and
//! the data that it has not reported yet.

pub(crate) mod recoveries;
pub(crate) mod rows;
pub(crate) mod runs;
pub(crate) mod uploads;

use std::path::Path;

use endmark_context::budget::pace::MAX_CHANGES;
use endmark_context::budget::{Account, Scope, ShareReport, WantedShare};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::budgets::{MAX_SUM, budget_integer};
use super::integers::{from_sql_integer, to_sql_integer};
use super::keys;
use crate::engine::StatementError;
use crate::error::StoreError;
use crate::leases::{BudgetKey, Leases};

/// The columns of a call's row in the database, with their types. Most of them are also columns of `usage` in
/// the file.
pub(crate) const CALL_COLUMNS: [(&str, &str); 36] = [
    ("started_at", "timestamptz"),
    ("request_id", "text"),
    ("call", "integer"),
    ("purpose", "text"),
    ("session", "text"),
    ("credential", "text"),
    ("upstream", "text"),
    ("format", "text"),
    ("model", "text"),
    ("answered_model", "text"),
    ("streamed", "boolean"),
    ("mode", "text"),
    ("ended_at", "timestamptz"),
    ("http_status", "integer"),
    ("ending", "text"),
    ("stop", "text"),
    ("verdict", "text"),
    ("cut_kind", "text"),
    ("prompt_tokens", "bigint"),
    ("output_tokens", "bigint"),
    ("cached_tokens", "bigint"),
    ("reasoning_tokens", "bigint"),
    ("total_tokens", "bigint"),
    ("cache_written_tokens", "bigint"),
    ("cache_written_1h_tokens", "bigint"),
    ("estimated_prompt", "bigint"),
    ("estimated_output", "bigint"),
    ("tier", "text"),
    ("prompt_audio_tokens", "bigint"),
    ("cached_audio_tokens", "bigint"),
    ("output_audio_tokens", "bigint"),
    ("web_searches", "bigint"),
    ("sent_bytes", "bigint"),
    ("received_bytes", "bigint"),
    ("first_byte_ms", "double precision"),
    ("total_ms", "double precision"),
];

/// The columns that come from the tables of [`EXTRA_COLUMN_JOINS`] in the file, each with its name there.
const EXTRA_COLUMNS: [(&str, &str); 9] = [
    ("cache_written_tokens", "w.tokens"),
    ("cache_written_1h_tokens", "w.tokens_1h"),
    ("estimated_prompt", "e.prompt"),
    ("estimated_output", "e.output"),
    ("tier", "b.tier"),
    ("prompt_audio_tokens", "b.prompt_audio"),
    ("cached_audio_tokens", "b.cached_audio"),
    ("output_audio_tokens", "b.completion_audio"),
    ("web_searches", "b.web_searches"),
];

/// Joins the tables that contain further columns of a call.
pub(super) const EXTRA_COLUMN_JOINS: &str = "LEFT JOIN usage_cache_writes w USING (request_id, call)
  LEFT JOIN usage_estimates e USING (request_id, call) LEFT JOIN usage_billing b USING (request_id, call)";

/// Returns the columns of `usage` that the database also has.
pub(super) fn usage_columns() -> impl Iterator<Item = &'static str> {
    let is_beside = |column: &str| EXTRA_COLUMNS.iter().any(|(name, _)| *name == column);
    CALL_COLUMNS.into_iter().map(|(name, _)| name).filter(move |name| !is_beside(name))
}

/// Returns the SQL for the value of a column, read from `usage u` and [`EXTRA_COLUMN_JOINS`].
fn value_sql(name: &str) -> String {
    let beside = EXTRA_COLUMNS.into_iter().find(|(column, _)| *column == name);
    beside.map_or_else(|| format!("u.{name}"), |(_, beside)| beside.to_owned())
}

/// Triggers that record unreported data. Only a journal has them, because they slow down all transactions by
/// about 10 %.
const TRIGGERS: &str = "
CREATE TRIGGER usage_in_journal AFTER INSERT ON usage BEGIN
  INSERT INTO journal_rows (request_id, call) VALUES (NEW.request_id, NEW.call);
END;
CREATE TRIGGER budget_in_journal AFTER INSERT ON budgets WHEN NEW.spent > 0 BEGIN
  INSERT INTO journal_changes (scope, subject, window, unit) VALUES (NEW.scope, NEW.subject, NEW.window, NEW.unit)
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER budget_changed_in_journal AFTER UPDATE OF spent ON budgets WHEN NEW.spent <> OLD.spent BEGIN
  INSERT INTO journal_changes (scope, subject, window, unit) VALUES (NEW.scope, NEW.subject, NEW.window, NEW.unit)
    ON CONFLICT DO NOTHING;
END;";

/// The instance to which a journal belongs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) id: String,
    /// The token by which the database recognizes the instance.
    pub(crate) token: String,
    /// The token that replaces `token` with the next report.
    pub(crate) next_token: String,
    /// The version of the keys in the journal.
    pub(crate) keys_version: i64,
}

/// A request for a share of a budget, made without a report of costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShareRequest {
    pub(crate) key: BudgetKey,
    pub(crate) wanted: WantedShare,
}

impl ShareRequest {
    /// Creates a request that only returns the unused rest of a share.
    fn returning_rest(key: BudgetKey) -> Self {
        Self { key, wanted: WantedShare { returns_unused: true, ..WantedShare::default() } }
    }
}

/// The data to report in one transaction, except the rows of calls.
#[derive(Debug, Default)]
pub(crate) struct DueReport {
    pub(crate) shares: Vec<(BudgetKey, ShareReport)>,
    /// Budgets that calls in progress use, for which no share is requested.
    pub(crate) in_progress: Vec<BudgetKey>,
    /// Whether more data is due than one transaction may contain.
    pub(crate) is_more: bool,
    /// Whether there are outputs or summaries to upload.
    pub(crate) has_uploads: bool,
}

/// The share of a budget that the database granted.
#[derive(Debug, Clone)]
pub(crate) struct GrantedShare {
    pub(crate) key: BudgetKey,
    /// The cost of calls that this report contained.
    pub(crate) reported: u64,
    /// The reported cost, plus the amount that calls in progress held when the report was prepared.
    pub(crate) used: u64,
    pub(crate) granted: u64,
    pub(crate) spent_elsewhere: u64,
    pub(crate) is_tight: bool,
    /// Amount added to the configured limit.
    pub(crate) extra: u64,
    /// Whether the session's closing call was already made.
    pub(crate) is_closed: bool,
}

/// Turns a new file into the journal of an instance, or checks that it already is a journal. Fails if the
/// file is a store with records of its own. The caller provides the transaction.
pub(crate) fn open(connection: &Connection, path: &Path, random: &str) -> Result<Instance, StoreError> {
    let failed = |error| StoreError::from_sqlite(path, &error);
    if let Some(instance) = query_instance(connection).map_err(failed)? {
        // Journals of older versions lack these triggers.
        connection.execute_batch(runs::TRIGGERS).map_err(failed)?;
        recoveries::create_trigger(connection).map_err(failed)?;
        return Ok(instance);
    }
    let is_used: bool = connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM usage) OR EXISTS (SELECT 1 FROM budgets) OR EXISTS (SELECT 1 FROM keys)",
            [],
            |row| row.get(0),
        )
        .map_err(failed)?;
    if is_used {
        return Err(StoreError::UnusableJournal { path: path.to_owned() });
    }
    create(connection, random).map_err(failed)?;
    Ok(Instance { id: random.to_owned(), keys_version: -1, ..Instance::default() })
}

/// Turns a new file into the journal of a new instance.
fn create(connection: &Connection, random: &str) -> rusqlite::Result<()> {
    connection.execute_batch(TRIGGERS)?;
    connection.execute_batch(uploads::TRIGGERS)?;
    connection.execute_batch(runs::TRIGGERS)?;
    recoveries::create_trigger(connection)?;
    let sql = "INSERT INTO journal (id, instance, token, pending) VALUES (1, ?1, '', '')";
    connection.execute(sql, [random]).map(|_| ())
}

/// Fails if the file is the journal of an instance. Its budgets admit no calls without the database.
pub(crate) fn fail_if_journal(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    match query_instance(connection).map_err(|error| StoreError::from_sqlite(path, &error))? {
        Some(_) => Err(StoreError::IsJournal { path: path.to_owned() }),
        None => Ok(()),
    }
}

fn query_instance(connection: &Connection) -> rusqlite::Result<Option<Instance>> {
    connection
        .query_row("SELECT instance, token, pending, keys_version FROM journal", [], |row| {
            Ok(Instance {
                id: row.get(0)?,
                token: row.get(1)?,
                next_token: row.get(2)?,
                keys_version: row.get(3)?,
            })
        })
        .optional()
}

/// Writes the identity of this instance.
pub(crate) fn save_instance(connection: &Connection, instance: &Instance) -> Result<(), StatementError> {
    let Instance { id, token, next_token: pending, .. } = instance;
    connection.execute("UPDATE journal SET instance = ?1, token = ?2, pending = ?3", [id, token, pending])?;
    Ok(())
}

/// Discards the granted shares, because the database may have granted them to others. Schedules a report of
/// every budget.
pub(crate) fn discard_grants(connection: &Connection, leases: &Leases) -> Result<(), StatementError> {
    leases.recall_all();
    connection.execute(
        "INSERT INTO journal_changes (scope, subject, window, unit)
         SELECT scope, subject, window, unit FROM journal_shares WHERE true ON CONFLICT DO NOTHING",
        [],
    )?;
    connection.execute("UPDATE journal_shares SET granted = 0", [])?;
    Ok(())
}

/// Schedules a report of these budgets, because the database still records earlier shares of them.
pub(crate) fn schedule_reports(
    connection: &Connection,
    shares: &[(BudgetKey, u64)],
) -> Result<(), StatementError> {
    for (key, _) in shares {
        connection
            .prepare_cached(
                "INSERT INTO journal_changes (scope, subject, window, unit) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?
            .execute(params![key.scope.name(), key.subject, key.window, key.unit.name()])?;
    }
    Ok(())
}

/// Raises the spent amounts to those of the database. The file has no entries for the difference.
pub(crate) fn raise_spent_amounts(
    connection: &Connection,
    shares: &[(BudgetKey, u64)],
) -> Result<(), StatementError> {
    for (key, spent) in shares {
        let spent = to_sql_integer(*spent).min(MAX_SUM);
        connection
            .prepare_cached(
                "INSERT INTO budgets (scope, subject, window, unit, spent, forgotten) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
                 ON CONFLICT (scope, subject, window, unit) DO UPDATE SET spent = max(spent, excluded.spent),
                   forgotten = forgotten + max(excluded.spent - spent, 0)",
            )?
            .execute(params![key.scope.name(), key.subject, key.window, key.unit.name(), spent])?;
    }
    Ok(())
}

/// Adds the amounts that other instances spent and may spend to a budget of a journal.
pub(super) fn with_other_instances(account: Account, granted: u64, elsewhere: u64) -> Account {
    // An amount that was not granted to this instance counts as held, because it may be granted to others.
    let held = account.limit.saturating_sub(elsewhere).saturating_sub(granted);
    Account {
        spent: account.spent.saturating_add(elsewhere),
        held: account.held.saturating_add(held),
        held_elsewhere: held,
        ..account
    }
}

/// Collects the data to report to the database, with one report for each budget. A closing instance returns
/// all its unused shares. The journal deducts returned amounts before the database learns of them.
/// `with_report` returns the share to request for a budget with reported costs.
pub(crate) fn collect_due_report(
    connection: &Connection,
    leases: &Leases,
    requests: &[ShareRequest],
    with_report: impl Fn(&BudgetKey) -> WantedShare,
    is_closing: bool,
) -> Result<DueReport, StatementError> {
    let mut due = DueReport { has_uploads: uploads::has_uploads(connection)?, ..DueReport::default() };
    for request in requests {
        let (report, is_lowered) = prepare_share_report(connection, leases, request)?;
        if request.wanted.has_calls_in_progress(&report) {
            due.in_progress.push(request.key.clone());
        }
        if request.wanted.is_due(is_lowered) {
            due.shares.push((request.key.clone(), report));
        }
    }
    let changed: Vec<BudgetKey> = connection
        // If the limit were a parameter, SQLite would plan the statement again at each execution.
        .prepare_cached(&format!(
            "SELECT scope, subject, window, unit FROM journal_changes LIMIT {MAX_CHANGES}"
        ))?
        .query_map([], read_key)?
        .collect::<rusqlite::Result<_>>()?;
    due.is_more |= changed.len() >= MAX_CHANGES as usize;
    let unspent = if is_closing { query_open_shares(connection)? } else { Vec::new() };
    let unspent = unspent.into_iter().map(ShareRequest::returning_rest);
    let changed = changed.into_iter().map(|key| ShareRequest { wanted: with_report(&key), key });
    for request in unspent.chain(changed) {
        if !due.shares.iter().any(|(known, _)| *known == request.key) {
            let (report, _) = prepare_share_report(connection, leases, &request)?;
            due.shares.push((request.key, report));
        }
    }
    Ok(due)
}

/// Reads the budget from a row whose first columns are scope, subject, window and unit.
pub(super) fn read_key(row: &Row<'_>) -> rusqlite::Result<BudgetKey> {
    let (scope, unit): (String, String) = (row.get(0)?, row.get(3)?);
    Ok(BudgetKey::from_columns(&scope, row.get(1)?, row.get(2)?, &unit))
}

/// Returns the report for a share, and whether it returns a part of the share.
fn prepare_share_report(
    connection: &Connection,
    leases: &Leases,
    request: &ShareRequest,
) -> rusqlite::Result<(ShareReport, bool)> {
    let ShareRequest { key, wanted } = request;
    let place = params![key.scope.name(), key.subject, key.window, key.unit.name()];
    let (spent, held): (i64, i64) = connection
        .prepare_cached(
            "SELECT spent, held FROM budgets WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4",
        )?
        .query_row(place, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .unwrap_or_default();
    let granted: i64 = connection
        .prepare_cached(
            "SELECT granted FROM journal_shares WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4",
        )?
        .query_row(place, |row| row.get(0))
        .optional()?
        .unwrap_or_default();
    // Only the returned part must no longer be used. A lease that fits into the rest stays valid.
    let (unwritten, in_use) =
        if wanted.returns_unused { leases.recall_key(key) } else { leases.uncommitted(key) };
    let spent = from_sql_integer(spent);
    let used = spent.saturating_add(from_sql_integer(held)).saturating_add(unwritten).saturating_add(in_use);
    let report = wanted.report(from_sql_integer(granted), spent, used);
    let is_lowered = report.granted < from_sql_integer(granted);
    if is_lowered {
        connection
            .prepare_cached(
                "UPDATE journal_shares SET granted = ?5 WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4",
            )?
            .execute(params![
                key.scope.name(),
                key.subject,
                key.window,
                key.unit.name(),
                budget_integer(report.granted)
            ])?;
    }
    Ok((report, is_lowered))
}

/// Replaces the JSON escape of U+0000, because PostgreSQL rejects it in text.
fn without_nul(json: &str) -> String {
    let mut kept = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        kept.push_str(before);
        // An escape has at least two bytes, and these two are ASCII.
        let length = if escape.starts_with("\\u0000") { 6 } else { 2.min(escape.len()) };
        kept.push_str(if length == 6 { "\\ufffd" } else { &escape[..length] });
        rest = &escape[length..];
    }
    kept.push_str(rest);
    kept
}

/// Records the granted shares after the database has committed a report.
pub(crate) fn record_grants(
    connection: &Connection,
    leases: &Leases,
    through: i64,
    shares: &[GrantedShare],
) -> Result<(), StatementError> {
    connection.prepare_cached("DELETE FROM journal_rows WHERE number <= ?1")?.execute([through])?;
    for share in shares {
        let GrantedShare { key, reported, granted, spent_elsewhere, .. } = share;
        let (scope, unit) = (key.scope.name(), key.unit.name());
        if key.scope == Scope::Session {
            record_session_state(connection, share)?;
        }
        connection
            .prepare_cached(
                "INSERT INTO journal_shares (scope, subject, window, unit, granted, spent_elsewhere)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO UPDATE SET granted = excluded.granted, spent_elsewhere = excluded.spent_elsewhere",
            )?
            .execute(params![scope, key.subject, key.window, unit, budget_integer(*granted), budget_integer(*spent_elsewhere)])?;
        connection
            .prepare_cached(
                "DELETE FROM journal_changes WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4
                   AND coalesce((SELECT spent FROM budgets WHERE scope = ?1 AND subject = ?2 AND window = ?3 AND unit = ?4), 0) <= ?5",
            )?
            .execute(params![scope, key.subject, key.window, unit, budget_integer(*reported)])?;
        // Plan this process's lease again from the new grant, which is never smaller than the lease.
        leases.schedule_plan(key);
    }
    Ok(())
}

/// Records the amount by which a session's budget was raised, and whether the session is closed.
fn record_session_state(connection: &Connection, share: &GrantedShare) -> rusqlite::Result<()> {
    let GrantedShare { key, extra, is_closed, .. } = share;
    let unit = key.unit.name();
    if *extra > 0 || *is_closed {
        connection
            .prepare_cached(
                "INSERT INTO budgets (scope, subject, window, unit) VALUES ('session', ?1, ?2, ?3) ON CONFLICT DO NOTHING",
            )?
            .execute(params![key.subject, key.window, unit])?;
    }
    connection
        .prepare_cached(
            "UPDATE budgets SET extra = ?4, is_closed = ?5, warned_percent = iif(extra = ?4, warned_percent, 0)
             WHERE scope = 'session' AND subject = ?1 AND window = ?2 AND unit = ?3 AND (extra, is_closed) <> (?4, ?5)",
        )?
        .execute(params![key.subject, key.window, unit, budget_integer(*extra), is_closed])?;
    Ok(())
}

/// Deletes shares of budgets whose day or month ended before this day, unless they have unreported data. The
/// database deletes the same budgets.
pub(crate) fn delete_ended_shares(connection: &Connection, day: &str) -> Result<(), StatementError> {
    connection.execute(
        "DELETE FROM journal_shares WHERE window < ?1
           AND (length(window) = 10 OR length(window) = 7 AND window < substr(?1, 1, 7))
           AND granted <= coalesce((SELECT spent FROM budgets b WHERE b.scope = journal_shares.scope
             AND b.subject = journal_shares.subject AND b.window = journal_shares.window AND b.unit = journal_shares.unit), 0)
           AND NOT EXISTS (SELECT 1 FROM journal_changes c WHERE c.scope = journal_shares.scope
             AND c.subject = journal_shares.subject AND c.window = journal_shares.window AND c.unit = journal_shares.unit)",
        [day],
    )?;
    Ok(())
}

/// Whether everything was reported.
pub(crate) fn is_everything_reported(connection: &Connection) -> Result<bool, StatementError> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM journal_rows) AND NOT EXISTS (SELECT 1 FROM journal_changes)";
    let is_told = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(is_told && !uploads::has_uploads(connection)?)
}

/// Returns the budgets whose granted amount is not completely spent.
fn query_open_shares(connection: &Connection) -> rusqlite::Result<Vec<BudgetKey>> {
    connection
        .prepare_cached(
            "SELECT s.scope, s.subject, s.window, s.unit FROM journal_shares s LEFT JOIN budgets b ON b.scope = s.scope
               AND b.subject = s.subject AND b.window = s.window AND b.unit = s.unit
             WHERE s.granted > coalesce(b.spent, 0)",
        )?
        .query_map([], read_key)?
        .collect()
}

/// Replaces all keys by those in the database, given as two arrays of JSON objects.
pub(crate) fn replace_keys(
    connection: &Connection,
    version: i64,
    all: &str,
    secrets: &str,
) -> Result<(), StatementError> {
    connection.execute_batch("DELETE FROM keys; DELETE FROM key_secrets;")?;
    keys::add_all(connection, all, secrets)?;
    connection.execute("UPDATE journal SET keys_version = ?1", [version])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use endmark_context::budget::Unit;

    use super::*;
    use crate::engine::{BUSY_TIMEOUT, Session};

    #[test]
    fn a_closing_instance_reports_each_budget_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.db");
        let (session, _owner, _) =
            Session::open(&path, BUSY_TIMEOUT, |connection| open(connection, &path, "1")).unwrap();
        let leases = Leases::new();
        let shares = ["a", "b"].map(|subject| GrantedShare {
            key: BudgetKey {
                scope: Scope::Session,
                subject: subject.to_owned(),
                window: "ever".to_owned(),
                unit: Unit::Tokens,
            },
            reported: 0,
            used: 0,
            granted: 10,
            spent_elsewhere: 0,
            is_tight: false,
            extra: 0,
            is_closed: false,
        });
        record_grants(&session, &leases, 0, &shares).unwrap();
        // The granted amount includes the hold of a call in progress, and stays granted.
        session
            .execute_batch(
                "INSERT INTO budgets (scope, subject, window, unit, held) VALUES ('session', 'a', 'ever', 'tokens', 4),
                   ('session', 'b', 'ever', 'tokens', 4)",
            )
            .unwrap();
        let requests = shares.map(|share| ShareRequest::returning_rest(share.key));
        let due = collect_due_report(&session, &leases, &requests, |_| WantedShare::default(), true).unwrap();
        let reported: Vec<_> =
            due.shares.iter().map(|(key, report)| (key.subject.as_str(), report.granted)).collect();
        assert_eq!(reported, [("a", 4), ("b", 4)]);
    }

    #[test]
    fn only_the_escape_of_nul_is_replaced() {
        for (json, kept) in [
            (r#"["a\u0000b"]"#, r#"["a\ufffdb"]"#),
            (r#"["a\\u0000b","\"é\n\u0001"]"#, r#"["a\\u0000b","\"é\n\u0001"]"#),
            ("[]", "[]"),
        ] {
            assert_eq!(without_nul(json), kept);
        }
    }
}
