//! Inspects the state of the shared database, for its operator.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::database;
use crate::error::StoreError;
use crate::location::StoreLocation;

/// The state of a shared database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseState {
    /// The server's version, for example `15.8`.
    pub version: String,
    /// Minimum number of milliseconds by which its clock is ahead of this machine's.
    pub clock_ahead_ms: i64,
    /// Its schema; `None` before the first start.
    pub schema: Option<i64>,
    /// Instances that reported recently.
    pub live_instances: i64,
    /// Instances that fell silent with unspent shares, which stay held.
    pub silent_instances: Vec<String>,
}

/// Inspects the database of a shared store without changing it. Returns `None` for a store that is not shared.
///
/// # Errors
/// [`StoreError`] if the database cannot be reached, rejects the connection, or is newer than this version.
pub async fn inspect_database(location: &StoreLocation) -> Result<Option<DatabaseState>, StoreError> {
    let Some(address) = location.postgres() else { return Ok(None) };
    let client = address.connect().await?;
    let failed = |error: tokio_postgres::Error| address.statement_failed(&error);
    let asked = Instant::now();
    let sql =
        "SELECT current_setting('server_version'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
                 to_regclass('em_meta') IS NOT NULL";
    let row = client.query_typed_one(sql, &[]).await.map_err(failed)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (there, here) = (row.get::<_, i64>(1), i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    // The server read its clock between the request and the answer.
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
    state.schema.map_or(Ok(()), |found| address.check_schema(found))?;
    let sql = "SELECT id FROM em_instances i WHERE expires <= clock_timestamp()
                 AND EXISTS (SELECT 1 FROM em_shares s WHERE s.instance = i.id AND s.granted > s.spent) ORDER BY id LIMIT 20";
    let silent = client.query_typed(sql, &[]).await.map_err(failed)?;
    state.silent_instances = silent.iter().map(|row| row.get(0)).collect();
    Ok(Some(state))
}

/// Frees the unspent shares of a silent instance. If the instance comes back, it reports its spending and requests
/// shares again. Returns whether there is such an instance.
///
/// # Errors
/// [`StoreError`] if the database fails, or the store is not shared.
pub async fn forfeit_instance(location: &StoreLocation, id: &str) -> Result<bool, StoreError> {
    let Some(address) = location.postgres() else {
        return Err(StoreError::NotShared { what: "giving up the shares of an instance without PostgreSQL" });
    };
    let mut client = address.connect().await?;
    database::forfeit(&mut client, id).await.map_err(|error| address.statement_failed(&error))
}
