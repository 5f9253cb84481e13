//! Summaries that replace the beginning of a conversation in later requests (CX-1, CX-2), and the names of
//! owners.

mod kept;

use std::collections::BTreeMap;

/// Prefix of the owner name of a gateway's clients. The hash of the client's credential follows.
pub const CLIENT_OWNER_PREFIX: &str = "client:";

/// Owner of outputs that the command line keeps. Only the local user can read the store's file.
pub const LOCAL_USER: &str = "local";

/// The session of a condensed request, and what was omitted from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CondensedSession {
    /// Hash of the session.
    pub session: String,
    /// Amounts that the summary no longer contains in full, by kind.
    pub dropped: BTreeMap<String, u64>,
}

/// A summary that replaces the beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSummary {
    /// Hash of the conversation's first turn, by which the summary is found.
    pub first_sha256: String,
    /// Number of turns that the summary replaces.
    pub turns: u64,
    /// Hash of those turns.
    pub sha256: String,
    /// The items that replace the turns, each a JSON value.
    pub items: Vec<String>,
    /// `window` or `emergency`.
    pub mode: String,
    /// Estimated tokens of the history before the compaction.
    pub tokens_before: u64,
    /// Estimated tokens of the history after the compaction.
    pub tokens_after: u64,
    /// Handle under which the original request can be read.
    pub handle: Option<String>,
    /// Size of the original request in bytes.
    pub bytes: u64,
}
