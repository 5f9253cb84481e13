//! The arguments of `endmark usage`.

use clap::{Args, ValueEnum};
use endmark_console::reports::usage;
use endmark_envelope::Limits;

use crate::arguments::store::StoreArgument;

/// The arguments of `usage`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Usage {
    /// How calls are grouped
    #[arg(long, value_enum, default_value_t = UsageKey::Model)]
    #[limits(skip)]
    pub(crate) by: UsageKey,
    /// Only calls since a day, or within a span (a number with m, h, d or w)
    #[arg(long, value_name = "DAY|SPAN")]
    #[limits(max_bytes = 32)]
    pub(crate) since: Option<String>,
    /// Only calls before a day, or before a span
    #[arg(long, value_name = "DAY|SPAN")]
    #[limits(max_bytes = 32)]
    pub(crate) until: Option<String>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// How calls are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageKey {
    /// The session, by its hash
    Session,
    /// The requested model
    Model,
    /// The client's key, by its hash
    Key,
    /// The upstream
    Upstream,
    /// The day, UTC
    Day,
    /// Why the call was made: reply, retry, fallback, resume, correction
    Purpose,
}

impl UsageKey {
    /// Returns the grouping key of the report.
    pub(crate) fn key(self) -> usage::UsageKey {
        match self {
            Self::Session => usage::UsageKey::Session,
            Self::Model => usage::UsageKey::Model,
            Self::Key => usage::UsageKey::Key,
            Self::Upstream => usage::UsageKey::Upstream,
            Self::Day => usage::UsageKey::Day,
            Self::Purpose => usage::UsageKey::Purpose,
        }
    }
}
