//! Compactions: the summaries that replace the beginnings of conversations (CX-1, CX-2).

use std::collections::BTreeMap;

use endmark_store::CompactionRow;
use serde::Serialize;

use super::zoned;

/// Compactions, the newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionsReport {
    /// One each.
    pub rows: Vec<CompactionEntry>,
}

/// One compaction.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionEntry {
    /// Its number.
    pub id: i64,
    /// The hash of the client's credential; empty without one.
    pub client: String,
    /// `window` or `emergency`.
    pub mode: String,
    /// The number of turns that it replaces.
    pub turns: u64,
    /// Tokens of the history before, as an estimate.
    pub tokens_before: u64,
    /// Tokens of the history after.
    pub tokens_after: u64,
    /// Bytes of the original request.
    pub bytes: u64,
    /// The handle with which `endmark read` shows that request; null if it was not kept.
    pub handle: Option<String>,
    /// When, in RFC 3339.
    #[serde(serialize_with = "zoned")]
    pub created_at: String,
    /// The hash of its session; null if unknown.
    pub session: Option<String>,
    /// How much is no longer in full, by kind: turns, calls, results.
    pub dropped: BTreeMap<String, u64>,
}

impl From<CompactionRow> for CompactionEntry {
    fn from(row: CompactionRow) -> Self {
        Self {
            id: row.id,
            client: row.client,
            mode: row.mode,
            turns: row.turns,
            tokens_before: row.tokens_before,
            tokens_after: row.tokens_after,
            bytes: row.bytes,
            handle: row.handle,
            created_at: row.created_at,
            session: Some(row.session).filter(|session| !session.is_empty()),
            dropped: row.dropped,
        }
    }
}
