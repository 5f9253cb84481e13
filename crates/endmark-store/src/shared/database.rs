//! SQL statements for PostgreSQL. They are typed, unnamed and independent of session state, so they work
//! through a transaction pooler.

use endmark_context::budget::{Pool, Share, ShareReport, TENURE_MS, Unit};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::address::PostgresAddress;
use super::sql::Parameter;
use super::usage;
use crate::budgets::{BudgetRow, RaiseOutcome};
use crate::engine::integers::{from_sql_integer, to_sql_integer};
use crate::engine::journal::rows::CallRows;
use crate::engine::journal::{DueReport, GrantedShare, Instance};
use crate::error::StoreError;
use crate::leases::BudgetKey;

/// The schema version: the number of the newest migration.
pub(crate) const SCHEMA_VERSION: i64 = 5;

/// All migrations. Each can be repeated, so running all of them updates a database of any older version.
const CREATE_TABLES: &str = concat!(
    include_str!("../../migrations/0001_shared.postgres.sql"),
    include_str!("../../migrations/0002_outputs.postgres.sql"),
    include_str!("../../migrations/0003_runs.postgres.sql"),
    include_str!("../../migrations/0004_usage.postgres.sql"),
    include_str!("../../migrations/0005_recoveries.postgres.sql")
);

/// Maximum attempts to create the tables, which can fail while another instance creates them.
const MAX_SCHEMA_ATTEMPTS: u32 = 5;

impl PostgresAddress {
    /// Returns an error if the database has a newer schema than this program supports.
    pub(crate) fn check_schema(&self, found: i64) -> Result<(), StoreError> {
        if found > SCHEMA_VERSION {
            return Err(StoreError::NewerDatabase {
                address: self.to_string(),
                found,
                known: SCHEMA_VERSION,
            });
        }
        Ok(())
    }
}

/// The result of a report to the database.
pub(crate) enum ExchangeOutcome {
    Done {
        granted: Vec<GrantedShare>,
        keys_version: i64,
    },
    /// The database does not know this instance or its token. The shares of the instance were freed, or
    /// another process took over its journal.
    Unknown,
}

/// The result of registering an instance with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegistrationOutcome {
    /// The database accepted the instance with its new token.
    Accepted,
    /// Another process uses a newer journal of this instance, or did so less than [`TENURE_MS`] ago.
    InUse,
    /// The journal is older than the database's record of this instance, but no other process uses the
    /// instance. The journal is a copy, or a power failure lost its newest commits. The instance is not
    /// accepted yet.
    Outdated,
}

/// Returns the schema version of the database, or `None` if it has no tables.
pub(crate) async fn query_schema_version(client: &Client) -> Result<Option<i64>, Error> {
    let found = "SELECT to_regclass('em_meta') IS NOT NULL";
    if !client.query_typed_one(found, &[]).await?.get::<_, bool>(0) {
        return Ok(None);
    }
    let schema = client.query_typed_opt("SELECT value FROM em_meta WHERE name = 'schema'", &[]).await?;
    Ok(schema.map(|schema| schema.get(0)))
}

/// Creates missing tables and columns. Returns the database's schema version.
pub(crate) async fn create_tables(client: &Client) -> Result<i64, Error> {
    let mut made = 0;
    loop {
        if let Some(schema) = query_schema_version(client).await?.filter(|schema| *schema >= SCHEMA_VERSION) {
            return Ok(schema);
        }
        made += 1;
        let migrated = format!(
            "UPDATE em_meta SET value = {SCHEMA_VERSION} WHERE name = 'schema' AND value < {SCHEMA_VERSION};"
        );
        match client.batch_execute(&format!("BEGIN;{CREATE_TABLES}{migrated}COMMIT")).await {
            // `IF NOT EXISTS` does not prevent an error if another transaction creates the same table.
            Err(error) if made < MAX_SCHEMA_ATTEMPTS && error.code().is_some() => {
                client.batch_execute("ROLLBACK").await?;
            }
            made => made?,
        }
    }
}

/// Registers an instance with its pending token. With `has_caught_up`, accepts an outdated journal that was
/// updated from the database.
pub(crate) async fn register(
    client: &mut Client,
    instance: &Instance,
    has_caught_up: bool,
) -> Result<RegistrationOutcome, Error> {
    let transaction = client.transaction().await?;
    let found = transaction
        .query_typed_opt(
            "SELECT token, is_forfeited, expires > clock_timestamp() FROM em_instances WHERE id = $1 FOR UPDATE",
            &[(&instance.id, Type::TEXT)],
        )
        .await?;
    if let Some(found) = found {
        let (token, is_forfeited, is_alive): (String, bool, bool) =
            (found.get(0), found.get(1), found.get(2));
        // A journal stores its next token before the database gets it. Therefore the newest journal always
        // contains the database's token, even after a kill, and an older copy does not.
        if token != instance.token && token != instance.next_token {
            if is_alive && !is_forfeited {
                return Ok(RegistrationOutcome::InUse);
            }
            if !has_caught_up {
                return Ok(RegistrationOutcome::Outdated);
            }
        }
    }
    transaction
        .execute_typed(
            "INSERT INTO em_instances (id, token, expires) VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
             ON CONFLICT (id) DO UPDATE SET token = excluded.token, is_forfeited = false, expires = excluded.expires",
            &[
                (&instance.id, Type::TEXT),
                (&instance.next_token, Type::TEXT),
                (&to_sql_integer(TENURE_MS), Type::INT8),
            ],
        )
        .await?;
    transaction.commit().await?;
    Ok(RegistrationOutcome::Accepted)
}

/// Deregisters an instance that has reported everything, so that another process can use its journal at once.
pub(crate) async fn deregister(client: &Client, instance: &Instance) -> Result<(), Error> {
    let sql = "UPDATE em_instances SET expires = clock_timestamp() WHERE id = $1 AND token = $2";
    let parameters: [Parameter<'_>; 2] = [(&instance.id, Type::TEXT), (&instance.token, Type::TEXT)];
    client.execute_typed(sql, &parameters).await.map(|_| ())
}

/// Returns the budgets in which this instance has a share, or only those with an open share. Each has the
/// amount that the instance reported as spent.
pub(crate) async fn query_instance_shares(
    client: &Client,
    id: &str,
    is_all: bool,
) -> Result<Vec<(BudgetKey, u64)>, Error> {
    let sql = "SELECT scope, subject, span, unit, spent FROM em_shares WHERE instance = $1 AND ($2 OR granted > spent)";
    let rows = client.query_typed(sql, &[(&id, Type::TEXT), (&is_all, Type::BOOL)]).await?;
    Ok(rows.iter().map(read_spending).collect())
}

/// Reads a budget and its spent amount from the columns scope, subject, span, unit and amount.
pub(super) fn read_spending(row: &Row) -> (BudgetKey, u64) {
    let key = BudgetKey::from_columns(row.get(0), unescape_nul(row.get(1)), row.get(2), row.get(3));
    (key, from_sql_integer(row.get(4)))
}

/// Frees the unspent shares of a silent instance. Returns whether such an instance exists.
pub(crate) async fn forfeit(client: &mut Client, id: &str) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    // From now on its reports are rejected until it registers again.
    let sql = "UPDATE em_instances SET is_forfeited = true WHERE id = $1 AND expires <= clock_timestamp()";
    if transaction.execute_typed(sql, &[(&id, Type::TEXT)]).await? == 0 {
        return Ok(false);
    }
    let lock = "SELECT 1 FROM em_budgets b WHERE EXISTS (SELECT 1 FROM em_shares s
                  WHERE (s.scope, s.subject, s.span, s.unit, s.instance) = (b.scope, b.subject, b.span, b.unit, $1)
                    AND s.granted > s.spent)
                ORDER BY scope, subject, span, unit FOR UPDATE";
    transaction.query_typed(lock, &[(&id, Type::TEXT)]).await?;
    let free = "UPDATE em_budgets b SET committed = b.committed - (s.granted - s.spent) FROM em_shares s
                WHERE (s.scope, s.subject, s.span, s.unit, s.instance) = (b.scope, b.subject, b.span, b.unit, $1)
                  AND s.granted > s.spent";
    transaction.execute_typed(free, &[(&id, Type::TEXT)]).await?;
    let lower = "UPDATE em_shares SET granted = spent WHERE instance = $1 AND granted > spent";
    transaction.execute_typed(lower, &[(&id, Type::TEXT)]).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Reports everything that is due in one transaction. It can be repeated, because rows have keys and shares
/// are absolute amounts. A pending token becomes the current token.
pub(crate) async fn exchange(
    client: &Client,
    instance: &Instance,
    due: &DueReport,
    rows: &CallRows,
) -> Result<ExchangeOutcome, Error> {
    let columns = BudgetColumns::of(due);
    // Send the statements without waiting for each answer, because a caller may be waiting for the
    // transaction. After an error the database refuses all later statements, and the connection is closed.
    let ((), known) = tokio::try_join!(biased; client.batch_execute("BEGIN"), report_alive(client, instance, rows.oldest_start.as_ref()))?;
    let Some((instances, keys_version, is_late)) = known else {
        client.batch_execute("ROLLBACK").await?;
        return Ok(ExchangeOutcome::Unknown);
    };
    let (record, lock) =
        (usage::record(client, &instance.id, rows, is_late), lock_budgets(client, instance, &columns));
    let found = if is_late {
        record.await?;
        lock.await?
    } else {
        tokio::try_join!(biased; record, lock)?.1
    };
    let (granted, decided) = decide(due, &found, instances);
    tokio::try_join!(
        biased;
        write_shares(client, instance, &columns, &decided),
        client.batch_execute("COMMIT"),
    )?;
    Ok(ExchangeOutcome::Done { granted, keys_version })
}

/// Reports that an instance is alive. Returns the number of live instances, the version of the keys, and
/// whether a call that began at `oldest` is late. Returns `None` if the database does not know the instance.
async fn report_alive(
    client: &Client,
    instance: &Instance,
    oldest: Option<&String>,
) -> Result<Option<(u64, i64, bool)>, Error> {
    let next = if instance.next_token.is_empty() { &instance.token } else { &instance.next_token };
    let known = format!(
        "UPDATE em_instances SET expires = clock_timestamp() + $3 * interval '1 millisecond', token = $4
         WHERE id = $1 AND token = $2 AND NOT is_forfeited
         RETURNING (SELECT count(*) FROM em_instances o WHERE o.expires > clock_timestamp()),
           (SELECT value FROM em_meta WHERE name = 'key_version'),
           $5::text::timestamptz < clock_timestamp() - interval '{}'",
        usage::LATE_AGE
    );
    let known = client
        .query_typed_opt(
            &known,
            &[
                (&instance.id, Type::TEXT),
                (&instance.token, Type::TEXT),
                (&to_sql_integer(TENURE_MS), Type::INT8),
                (next, Type::TEXT),
                (&oldest, Type::TEXT),
            ],
        )
        .await?;
    let is_late = |known: &Row| known.get::<_, Option<bool>>(2).unwrap_or(false);
    Ok(known.map(|known| (from_sql_integer(known.get(0)), known.get(1), is_late(&known))))
}

/// Deletes rate limit windows that are older than `oldest_kept`.
pub(crate) async fn delete_old_rate_windows(client: &Client, oldest_kept: &str) -> Result<(), Error> {
    for table in ["em_shares", "em_budgets"] {
        let sql = format!("DELETE FROM {table} WHERE scope = 'rate' AND span < $1");
        client.execute_typed(&sql, &[(&oldest_kept, Type::TEXT)]).await?;
    }
    Ok(())
}

/// Escapes U+0000, which subjects from outside may contain, but PostgreSQL cannot store. Different subjects
/// have different results.
pub(super) fn escape_nul(subject: &str) -> String {
    subject.replace('\\', r"\\").replace('\0', r"\0")
}

/// Restores an escaped subject.
fn unescape_nul(subject: &str) -> String {
    let mut characters = subject.chars();
    let mut text = String::with_capacity(subject.len());
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        text.push(match escaped {
            Some('0') => '\0',
            Some(other) => other,
            None => character,
        });
    }
    text
}

/// The budgets of one transaction, with one array for each column.
struct BudgetColumns {
    scopes: Vec<String>,
    subjects: Vec<String>,
    spans: Vec<String>,
    units: Vec<String>,
}

impl BudgetColumns {
    fn of(due: &DueReport) -> Self {
        let texts = |text: fn(&BudgetKey) -> String| due.shares.iter().map(|(key, _)| text(key)).collect();
        Self {
            scopes: texts(|key| key.scope.name().to_owned()),
            subjects: texts(|key| escape_nul(&key.subject)),
            spans: texts(|key| key.window.clone()),
            units: texts(|key| key.unit.name().to_owned()),
        }
    }

    /// Returns the first four parameters of a statement.
    fn parameters(&self) -> Vec<Parameter<'_>> {
        let columns = [&self.scopes, &self.subjects, &self.spans, &self.units];
        columns.into_iter().map(|column| -> Parameter<'_> { (column, Type::TEXT_ARRAY) }).collect()
    }
}

/// Locks the rows of budgets in a fixed order, and creates missing rows. Returns them with the shares of this
/// instance.
async fn lock_budgets(
    client: &Client,
    instance: &Instance,
    columns: &BudgetColumns,
) -> Result<Vec<Row>, Error> {
    let keys = columns.parameters();
    if columns.scopes.is_empty() {
        return Ok(Vec::new());
    }
    let create = client.execute_typed(
        "INSERT INTO em_budgets (scope, subject, span, unit) SELECT * FROM unnest($1, $2, $3, $4) ORDER BY 1, 2, 3, 4
         ON CONFLICT DO NOTHING",
        &keys,
    );
    let mut parameters = columns.parameters();
    parameters.push((&instance.id, Type::TEXT));
    let lock = client.query_typed(
        "SELECT k.place, b.spent, b.committed, b.is_tight, coalesce(s.granted, 0), coalesce(s.spent, 0), b.extra,
           b.closed_by <> ''
         FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS k(scope, subject, span, unit, place)
         JOIN em_budgets b USING (scope, subject, span, unit)
         LEFT JOIN em_shares s ON (s.scope, s.subject, s.span, s.unit, s.instance)
           = (b.scope, b.subject, b.span, b.unit, $5)
         ORDER BY b.scope, b.subject, b.span, b.unit FOR UPDATE OF b",
        &parameters,
    );
    let (_, found) = tokio::try_join!(biased; create, lock)?;
    Ok(found)
}

/// Decides the share of each budget from the reported costs and requests.
fn decide(due: &DueReport, found: &[Row], instances: u64) -> (Vec<GrantedShare>, Vec<(Pool, Share)>) {
    let mut decided = vec![(Pool::default(), Share::default()); due.shares.len()];
    let mut granted = Vec::with_capacity(found.len());
    for row in found {
        let place = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(usize::MAX);
        let Some(((key, report), decided)) = due.shares.get(place).zip(decided.get_mut(place)) else {
            continue;
        };
        let amount = |column: usize| from_sql_integer(row.get(column));
        let mut pool = Pool { spent: amount(1), committed: amount(2), is_tight: row.get(3) };
        let mut share = Share { granted: amount(4), spent: amount(5) };
        let extra = amount(6);
        let limit = if report.limit > 0 { report.limit.saturating_add(extra) } else { 0 };
        pool.exchange(&mut share, &ShareReport { limit, ..*report }, instances);
        *decided = (pool, share);
        granted.push(GrantedShare {
            key: key.clone(),
            reported: report.spent,
            used: report.used,
            granted: share.granted,
            spent_elsewhere: pool.spent.saturating_sub(share.spent),
            is_tight: pool.is_tight,
            extra,
            is_closed: row.get(7),
        });
    }
    (granted, decided)
}

async fn write_shares(
    client: &Client,
    instance: &Instance,
    columns: &BudgetColumns,
    decided: &[(Pool, Share)],
) -> Result<(), Error> {
    if decided.is_empty() {
        return Ok(());
    }
    let amounts = |amount: fn(&(Pool, Share)) -> u64| -> Vec<i64> {
        decided.iter().map(|of| to_sql_integer(amount(of))).collect()
    };
    let (spent, committed) = (amounts(|of| of.0.spent), amounts(|of| of.0.committed));
    let tight: Vec<bool> = decided.iter().map(|(pool, _)| pool.is_tight).collect();
    let mut of_budgets = columns.parameters();
    of_budgets.extend([
        (&spent as &(dyn ToSql + Sync), Type::INT8_ARRAY),
        (&committed, Type::INT8_ARRAY),
        (&tight, Type::BOOL_ARRAY),
    ]);
    let write_budgets = client.execute_typed(
        "UPDATE em_budgets b SET spent = n.spent, committed = n.committed, is_tight = n.is_tight
         FROM unnest($1, $2, $3, $4, $5, $6, $7) AS n(scope, subject, span, unit, spent, committed, is_tight)
         WHERE (b.scope, b.subject, b.span, b.unit) = (n.scope, n.subject, n.span, n.unit)",
        &of_budgets,
    );
    let (granted, spent) = (amounts(|of| of.1.granted), amounts(|of| of.1.spent));
    let mut of_shares = columns.parameters();
    of_shares.extend([
        (&instance.id as &(dyn ToSql + Sync), Type::TEXT),
        (&granted, Type::INT8_ARRAY),
        (&spent, Type::INT8_ARRAY),
    ]);
    let write_shares = client.execute_typed(
        "INSERT INTO em_shares (scope, subject, span, unit, instance, granted, spent)
         SELECT scope, subject, span, unit, $5, granted, spent
         FROM unnest($1, $2, $3, $4, $6, $7) AS n(scope, subject, span, unit, granted, spent)
         ON CONFLICT (scope, subject, span, unit, instance)
         DO UPDATE SET granted = excluded.granted, spent = excluded.spent",
        &of_shares,
    );
    tokio::try_join!(biased; write_budgets, write_shares).map(|_| ())
}

/// Returns sessions that have a budget in this unit and this prefix in their names, up to a limit.
pub(crate) async fn query_sessions(client: &Client, prefix: &str, unit: Unit) -> Result<Vec<String>, Error> {
    let sql = "SELECT DISTINCT subject FROM em_budgets
               WHERE scope = 'session' AND unit = $2 AND left(subject, length($1)) = $1 ORDER BY subject LIMIT 100";
    let rows =
        client.query_typed(sql, &[(&escape_nul(prefix), Type::TEXT), (&unit.name(), Type::TEXT)]).await?;
    Ok(rows.iter().map(|row| unescape_nul(row.get(0))).collect())
}

/// Returns all budgets except rate limits.
pub(crate) async fn query_budgets(client: &Client) -> Result<Vec<BudgetRow>, Error> {
    let sql =
        "SELECT scope, subject, span, unit, spent, greatest(committed - spent, 0), extra, closed_by <> ''
               FROM em_budgets WHERE scope <> 'rate' ORDER BY span DESC, scope, subject, unit";
    let rows = client.query_typed(sql, &[]).await?;
    let budget = |row: &Row| {
        let (spent, held) = (from_sql_integer(row.get(4)), from_sql_integer(row.get(5)));
        BudgetRow {
            scope: row.get(0),
            subject: unescape_nul(row.get(1)),
            window: row.get(2),
            unit: row.get(3),
            spent,
            held,
            extra: from_sql_integer(row.get(6)),
            is_closed: row.get(7),
            recomputed: (spent, held),
        }
    };
    Ok(rows.iter().map(budget).collect())
}

/// Raises the limit of a session's budget, and reopens the session if it was closed. Each instance learns the
/// new limit with its next request for a share.
pub(crate) async fn raise_budget(
    client: &mut Client,
    session: &str,
    unit: Unit,
    by: u64,
) -> Result<RaiseOutcome, Error> {
    let transaction = client.transaction().await?;
    let session = escape_nul(session);
    let sql = "SELECT unit, extra FROM em_budgets WHERE scope = 'session' AND subject = $1 ORDER BY span, unit FOR UPDATE";
    let budgets = transaction.query_typed(sql, &[(&session, Type::TEXT)]).await?;
    let of_unit = budgets.iter().filter(|budget| budget.get::<_, &str>(0) == unit.name());
    let raised = RaiseOutcome::of(of_unit.map(|budget| from_sql_integer(budget.get(1))).max(), by);
    if let RaiseOutcome::Raised(extra) = raised {
        let sql = "UPDATE em_budgets SET extra = CASE WHEN unit = $2 THEN $3 ELSE extra END, closed_by = ''
                   WHERE scope = 'session' AND subject = $1";
        let parameters: [Parameter<'_>; 3] =
            [(&session, Type::TEXT), (&unit.name(), Type::TEXT), (&to_sql_integer(extra), Type::INT8)];
        transaction.execute_typed(sql, &parameters).await?;
    }
    transaction.commit().await?;
    Ok(raised)
}
