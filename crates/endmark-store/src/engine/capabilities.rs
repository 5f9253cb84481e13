//! SQL statements for the prefill capability of an upstream with a model.

use rusqlite::{Connection, OptionalExtension as _};

use crate::engine::StatementError;

/// Returns the last known prefill capability, if any.
pub(crate) fn query_prefill(
    connection: &Connection,
    upstream: &str,
    model: &str,
) -> Result<Option<String>, StatementError> {
    let prefill = connection
        .prepare_cached("SELECT prefill FROM capabilities WHERE upstream = ?1 AND model = ?2")?
        .query_row([upstream, model], |row| row.get(0))
        .optional()?;
    Ok(prefill)
}

/// Stores a capability and replaces the previous one.
pub(crate) fn store_prefill(
    connection: &Connection,
    upstream: &str,
    model: &str,
    prefill: &str,
) -> Result<(), StatementError> {
    connection
        .prepare_cached(
            "INSERT INTO capabilities (upstream, model, prefill) VALUES (?1, ?2, ?3)
             ON CONFLICT (upstream, model) DO UPDATE SET prefill = excluded.prefill, learned_at = datetime('now')",
        )?
        .execute([upstream, model, prefill])?;
    Ok(())
}
