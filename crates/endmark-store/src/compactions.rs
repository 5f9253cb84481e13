//! What the beginning of a conversation was condensed to, kept for its next requests (CX-1, CX-2); and the names of outputs.

mod kept;

use std::collections::BTreeMap;

/// What the owners of what is kept for clients of a gateway begin with; the hash of a client's credential follows.
pub const CLIENT: &str = "client:";

/// Whose outputs those of the command line are: the store's file is the local user's alone.
pub const LOCAL_USER: &str = "local";

/// What a conversation was condensed for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CondensedIn {
    /// The session's hash.
    pub session: String,
    /// How much no longer stands in full, by kind.
    pub dropped: BTreeMap<String, u64>,
}

/// What stands for the beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSummary {
    /// The hash of the conversation's first turn, by which it is found.
    pub first_sha256: String,
    /// How many turns it stands for.
    pub turns: u64,
    /// Their hash.
    pub sha256: String,
    /// The items that stand in their place, each a JSON value.
    pub items: Vec<String>,
    /// `window` or `emergency`.
    pub mode: String,
    /// Tokens of the history before and after, as an estimate.
    pub tokens_before: u64,
    /// See above.
    pub tokens_after: u64,
    /// Under which the request can be read that it was made of.
    pub handle: Option<String>,
    /// The bytes of that request.
    pub bytes: u64,
}
