//! Explains why the gateway did not request the rest of a cut reply, and what to change (PC-7).

use endmark_store::{REASON_CLIENT_LIMIT, REASON_CLOSING_LIMIT, REASON_WARN_MODE, RecoveryRow};
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

const WARN_MODE: NotAsked = NotAsked {
    because: REASON_WARN_MODE,
    remedy: "send `x-endmark-resume: auto` or `on` with the request, or set `[resume] mode = \"auto\"`",
};

const CLIENT_LIMIT: NotAsked = NotAsked {
    because: REASON_CLIENT_LIMIT,
    remedy: "raise the limit in the request, send `x-endmark-resume: on` with it, or set `[resume] mode = \"on\"`",
};

const CLOSING_LIMIT: NotAsked = NotAsked {
    because: REASON_CLOSING_LIMIT,
    remedy: "raise the session's budget with `endmark budget raise`, and send the request again",
};

impl NotAsked {
    /// Returns the reason for a row of the log. Returns `None` if the gateway requested a continuation, or if
    /// the reply could not be continued for another reason.
    pub fn from_row(row: &RecoveryRow) -> Option<Self> {
        [WARN_MODE, CLIENT_LIMIT, CLOSING_LIMIT].into_iter().find(|not_asked| not_asked.because == row.reason)
    }
}
