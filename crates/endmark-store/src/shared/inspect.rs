//! How the shared database is, for a check by its operator.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::connect::{connect, words};
use super::database;
use crate::error::StoreError;
use crate::location::StoreLocation;

/// The state of a shared database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseState {
    /// The server's version, as `15.8`.
    pub version: String,
    /// By how many milliseconds its clock is ahead of this machine's, at least.
    pub clock_ahead_ms: i64,
    /// The schema that it has; `None` before the first start.
    pub schema: Option<i64>,
    /// Instances that reported lately.
    pub live_instances: i64,
    /// Instances that fell silent while something granted to them was not spent: it stays held.
    pub silent_instances: Vec<String>,
}

/// Looks at the database of a shared store, and changes nothing. `None` for a store of its own.
///
/// # Errors
/// [`StoreError`] if the database cannot be reached, refuses, or is newer than this version.
pub async fn inspect_database(location: &StoreLocation) -> Result<Option<DatabaseState>, StoreError> {
    let Some(address) = location.postgres() else { return Ok(None) };
    let client = connect(address).await.map_err(|unconnected| address.failed(unconnected.detail))?;
    let failed = |error: tokio_postgres::Error| address.failed(words(&error));
    let asked = Instant::now();
    let sql =
        "SELECT current_setting('server_version'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
                 to_regclass('em_meta') IS NOT NULL";
    let row = client.query_typed_one(sql, &[]).await.map_err(failed)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (there, here) = (row.get::<_, i64>(1), i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    // It read its clock between the question and the answer.
    let on_the_way = i64::try_from(asked.elapsed().as_millis()).unwrap_or(0);
    let clock_ahead_ms = match there - here {
        ahead if ahead > 0 => ahead,
        behind => (behind + on_the_way).min(0),
    };
    let version = row.get(0);
    let mut state = DatabaseState {
        version,
        clock_ahead_ms,
        schema: None,
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
    if let Some(found) = state.schema.filter(|found| *found > database::SCHEMA) {
        let known = database::SCHEMA;
        return Err(StoreError::NewerDatabase { address: address.to_string(), found, known });
    }
    let sql = "SELECT id FROM em_instances i WHERE expires <= clock_timestamp()
                 AND EXISTS (SELECT 1 FROM em_shares s WHERE s.instance = i.id AND s.granted > s.spent) ORDER BY id LIMIT 20";
    let silent = client.query_typed(sql, &[]).await.map_err(failed)?;
    state.silent_instances = silent.iter().map(|row| row.get(0)).collect();
    Ok(Some(state))
}

/// Frees what a silent instance was granted and did not spend. If it comes back, it reports what it spent and asks again. Returns
/// whether there is such an instance.
///
/// # Errors
/// [`StoreError`] if the database fails, or the store is not shared.
pub async fn forfeit_instance(location: &StoreLocation, id: &str) -> Result<bool, StoreError> {
    let Some(address) = location.postgres() else {
        return Err(StoreError::NotShared { what: "giving up the shares of an instance without PostgreSQL" });
    };
    let mut client = connect(address).await.map_err(|unconnected| address.failed(unconnected.detail))?;
    database::forfeit(&mut client, id).await.map_err(|error| address.failed(words(&error)))
}
