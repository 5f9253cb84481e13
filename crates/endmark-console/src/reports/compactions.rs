//! Compactions: summaries that replace the beginning of a conversation (CX-1, CX-2).

use std::collections::BTreeMap;

use endmark_store::CompactionRow;
use serde::Serialize;

use super::serialize_with_zone;

/// Compactions, the newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionsReport {
    /// The compactions.
    pub rows: Vec<CompactionEntry>,
    /// Whether the compactions of other gateways that share a database are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub this_gateway_alone: bool,
}

/// One compaction.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionEntry {
    /// The number of the compaction.
    pub id: i64,
    /// The hash of the client's credential. Empty without one.
    pub client: String,
    /// `window` or `emergency`.
    pub mode: String,
    /// The number of turns that the summary replaces.
    pub turns: u64,
    /// Estimated tokens of the history before the compaction.
    pub tokens_before: u64,
    /// Estimated tokens of the history after the compaction.
    pub tokens_after: u64,
    /// Size of the original request in bytes.
    pub bytes: u64,
    /// The handle with which `endmark read` shows the original request. Null if it was not kept.
    pub handle: Option<String>,
    /// The time of the compaction, in RFC 3339.
    #[serde(serialize_with = "serialize_with_zone")]
    pub created_at: String,
    /// The hash of the session; null if unknown.
    pub session: Option<String>,
    /// How many turns, calls and results are no longer complete.
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
