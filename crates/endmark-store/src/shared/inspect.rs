//! Inspects the state of the shared database for an operator.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use endmark_context::budget::Unit;
use tokio_postgres::Client;

use super::address::PostgresAddress;
use super::database;
use super::reader::SharedReader;
use super::usage::SharedSums;
use crate::budgets::{BudgetRow, RaiseOutcome};
use crate::engine::Dimension;
use crate::error::StoreError;
use crate::location::StoreLocation;

/// The state of a shared database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseState {
    /// The server's version, for example `15.8`.
    pub version: String,
    /// Minimum time by which the server's clock is ahead of this machine's, in milliseconds.
    pub clock_ahead_ms: i64,
    /// The schema version of the database. `None` before the first gateway starts.
    pub schema: Option<i64>,
    /// Whether this role may create tables.
    pub may_create: bool,
    /// Instances that reported recently.
    pub live_instances: i64,
    /// Instances that stopped reporting but still have unspent shares.
    pub silent_instances: Vec<String>,
}

/// Inspects the database of a shared store without changing it. Returns `None` for a store that is not shared.
///
/// # Errors
/// [`StoreError`] if the database cannot be reached, rejects the connection, or is newer than this version.
pub async fn inspect_database(location: &StoreLocation) -> Result<Option<DatabaseState>, StoreError> {
    let Some(address) = location.postgres() else { return Ok(None) };
    let client = address.connect().await?;
    let failed = |error: tokio_postgres::Error| address.statement_error(&error);
    let started = Instant::now();
    let sql =
        "SELECT current_setting('server_version'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
                 to_regclass('em_meta') IS NOT NULL,
                 coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)";
    let row = client.query_typed_one(sql, &[]).await.map_err(failed)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (there, here) = (row.get::<_, i64>(1), i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    // The server read its clock at an unknown time between the request and the answer.
    let on_the_way = i64::try_from(started.elapsed().as_millis()).unwrap_or(0);
    let clock_ahead_ms = match there - here {
        ahead if ahead > 0 => ahead,
        behind => (behind + on_the_way).min(0),
    };
    let version = row.get(0);
    let mut state = DatabaseState {
        version,
        clock_ahead_ms,
        schema: None,
        may_create: row.get(3),
        live_instances: 0,
        silent_instances: Vec::new(),
    };
    if !row.get::<_, bool>(2) {
        return Ok(Some(state));
    }
    let sql = "SELECT (SELECT value FROM em_meta WHERE name = 'schema'),
                 (SELECT count(*) FROM em_instances WHERE expires > clock_timestamp())";
    let row = client.query_typed_one(sql, &[]).await.map_err(failed)?;
    (state.schema, state.live_instances) = (row.get(0), row.get(1));
    state.schema.map_or(Ok(()), |found| address.check_schema(found))?;
    let sql = "SELECT id FROM em_instances i WHERE expires <= clock_timestamp()
                 AND EXISTS (SELECT 1 FROM em_shares s WHERE s.instance = i.id AND s.granted > s.spent) ORDER BY id LIMIT 20";
    let silent = client.query_typed(sql, &[]).await.map_err(failed)?;
    state.silent_instances = silent.iter().map(|row| row.get(0)).collect();
    Ok(Some(state))
}

/// Frees the unspent shares of a silent instance. An instance that returns later reports its spending and
/// requests new shares. Returns whether such a silent instance exists.
///
/// # Errors
/// [`StoreError`] if the database fails, or the store is not shared.
pub async fn forfeit_instance(location: &StoreLocation, id: &str) -> Result<bool, StoreError> {
    let Some(address) = location.postgres() else {
        return Err(StoreError::UnsupportedWhenShared {
            what: "giving up the shares of an instance without PostgreSQL",
        });
    };
    let mut client = address.connect().await?;
    database::forfeit(&mut client, id).await.map_err(|error| address.statement_error(&error))
}

/// Reads the sums of all calls that began at or after `since` and before `until` (`YYYY-MM-DD HH:MM:SS`,
/// UTC). Returns `None` for a store that is not shared.
///
/// # Errors
/// [`StoreError`] if the database cannot be reached or fails.
pub async fn shared_sums(
    location: &StoreLocation,
    by: Dimension,
    since: &str,
    until: &str,
) -> Result<Option<SharedSums>, StoreError> {
    let Some(address) = location.postgres() else { return Ok(None) };
    let client = address.connect().await?;
    let reader = SharedReader { client, address: address.clone(), instance: String::new() };
    reader.check_schema().await?;
    reader.sums(by, since, until).await.map(Some)
}

/// The budgets in a shared database, for an operator who lists them or raises a session's budget.
pub struct SharedBudgets {
    client: Client,
    address: PostgresAddress,
}

impl SharedBudgets {
    /// Connects to the database.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be reached or rejects the connection, or the store is not shared.
    pub async fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        let Some(address) = location.postgres().cloned() else {
            return Err(StoreError::UnsupportedWhenShared {
                what: "raising a budget in the database without PostgreSQL",
            });
        };
        Ok(Self { client: address.connect().await?, address })
    }

    /// Returns the sessions with a budget in this unit whose names have this prefix, at most 100.
    ///
    /// # Errors
    /// [`StoreError`] if the database fails.
    pub async fn sessions(&self, prefix: &str, unit: Unit) -> Result<Vec<String>, StoreError> {
        let found = database::query_sessions(&self.client, prefix, unit).await;
        found.map_err(|error| self.address.statement_error(&error))
    }

    /// Raises the budget of a session for all instances.
    ///
    /// # Errors
    /// [`StoreError`] if the database fails.
    pub async fn raise(&mut self, session: &str, unit: Unit, by: u64) -> Result<RaiseOutcome, StoreError> {
        let raised = database::raise_budget(&mut self.client, session, unit, by).await;
        raised.map_err(|error| self.address.statement_error(&error))
    }

    /// Returns all budgets of all instances except rate limits, newest windows first. Amounts that an
    /// instance was granted but has not spent count as held.
    ///
    /// # Errors
    /// [`StoreError`] if the database fails.
    pub async fn all_budgets(&self) -> Result<Vec<BudgetRow>, StoreError> {
        let found = database::query_budgets(&self.client).await;
        found.map_err(|error| self.address.statement_error(&error))
    }
}
