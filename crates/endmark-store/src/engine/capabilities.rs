//! SQL statements for the capabilities of an upstream with a model.

use rusqlite::{Connection, OptionalExtension as _};

use crate::engine::Fault;

/// Returns the last known prefill capability, if any.
pub(crate) fn prefill(connection: &Connection, upstream: &str, model: &str) -> Result<Option<String>, Fault> {
    let prefill = connection
        .prepare_cached("SELECT prefill FROM capabilities WHERE upstream = ?1 AND model = ?2")?
        .query_row([upstream, model], |row| row.get(0))
        .optional()?;
    Ok(prefill)
}

/// Stores a capability, and replaces the previous one.
pub(crate) fn remember(
    connection: &Connection,
    upstream: &str,
    model: &str,
    prefill: &str,
) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO capabilities (upstream, model, prefill) VALUES (?1, ?2, ?3)
             ON CONFLICT (upstream, model) DO UPDATE SET prefill = excluded.prefill, learned_at = datetime('now')",
        )?
        .execute([upstream, model, prefill])?;
    Ok(())
}
