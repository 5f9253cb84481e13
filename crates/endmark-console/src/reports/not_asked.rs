//! Explains why the gateway did not request the rest of a cut reply, and how to change that (PC-7).

use endmark_store::{LEFT_BY_CLOSING_LIMIT, LEFT_BY_OWN_LIMIT, LEFT_BY_WARN, LogRow};
use serde::Serialize;

/// The reason for not requesting a continuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotAsked {
    /// The condition that prevented a continuation request.
    pub because: &'static str,
    /// What to change so that the next cut reply is continued.
    pub remedy: &'static str,
}

const WATCHING: NotAsked = NotAsked {
    because: LEFT_BY_WARN,
    remedy: "send `x-endmark-resume: auto` or `on` with the request, or set `[resume] mode = \"auto\"`",
};

const OWN_LIMIT: NotAsked = NotAsked {
    because: LEFT_BY_OWN_LIMIT,
    remedy: "raise the limit in the request, send `x-endmark-resume: on` with it, or set `[resume] mode = \"on\"`",
};

const CLOSING_LIMIT: NotAsked = NotAsked {
    because: LEFT_BY_CLOSING_LIMIT,
    remedy: "raise the session's budget with `endmark budget raise`, and send the request again",
};

impl NotAsked {
    /// Returns the reason for a row of the log. Returns `None` if the gateway requested a continuation, or if the
    /// reply could not be continued.
    pub fn from_row(row: &LogRow) -> Option<Self> {
        [WATCHING, OWN_LIMIT, CLOSING_LIMIT].into_iter().find(|not_asked| not_asked.because == row.reason)
    }
}
