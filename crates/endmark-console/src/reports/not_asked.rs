//! Why nothing was asked for a cut reply, and what would change that (PC-7).

use endmark_store::{LogRow, UsageRow};
use serde::Serialize;

/// The reason that the gateway writes down where the request itself, and nothing about the reply, kept it from asking.
const BY_RULE: &str = "the client's own limit, or the mode, says not to ask for more";

/// Why nothing was asked, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotAsked {
    /// What kept the gateway from it.
    pub because: &'static str,
    /// What makes it ask the next time.
    pub remedy: &'static str,
}

const WATCHING: NotAsked = NotAsked {
    because: "the mode is `warn`, which only watches and reports",
    remedy: "send `x-endmark-resume: auto` or `on` with the request, or set `[resume] mode = \"auto\"`",
};

const OWN_LIMIT: NotAsked = NotAsked {
    because: "the reply reached the limit that the client set itself, which the mode `auto` takes for what the client wants",
    remedy: "raise the limit in the request, send `x-endmark-resume: on` with it, or set `[resume] mode = \"on\"`",
};

impl NotAsked {
    /// Whether a row is one of those of which the mode of the calls says more.
    pub fn is_open(row: &LogRow) -> bool {
        row.reason == BY_RULE
    }

    /// Of a row of the log and the calls of its request, whose mode decided; none where something was asked, or where
    /// the row itself says what was in the way.
    pub fn of(row: &LogRow, calls: &[UsageRow]) -> Option<Self> {
        if row.reason != BY_RULE {
            return None;
        }
        let call = calls.iter().find(|call| call.request_id == row.request_id)?;
        match call.mode.as_str() {
            "warn" => Some(WATCHING),
            "auto" => Some(OWN_LIMIT),
            _ => None,
        }
    }
}
