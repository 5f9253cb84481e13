//! The arguments of `endmark keys`.

use clap::{Args, Subcommand, ValueEnum};
use endmark_context::budget::Period;
use endmark_envelope::{Limits, TooLarge};

use crate::arguments::store::StoreArgument;

#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key and print its secret, once
    Add(Add),
    /// Show all keys, without their secrets
    List(List),
    /// Give a key a new secret; the old one stays valid for a while
    Rotate(Rotate),
    /// Revoke a key
    Revoke(Revoke),
}

impl KeysCommand {
    /// Fails if an argument exceeds its size limit (EN-4).
    pub(crate) fn check_limits(&self) -> Result<(), TooLarge> {
        match self {
            Self::Add(arguments) => arguments.check_limits(),
            Self::List(arguments) => arguments.check_limits(),
            Self::Rotate(arguments) => arguments.check_limits(),
            Self::Revoke(arguments) => arguments.check_limits(),
        }
    }
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Add {
    /// The key's name in usage and budgets; it must be new
    #[arg(value_name = "NAME")]
    #[limits(max_bytes = 64)]
    pub(crate) name: String,
    /// A model that the key may use, or a pattern with `*`; by default all models
    #[arg(long, value_name = "PATTERN")]
    #[limits(max_bytes = 256, max_items = 100)]
    pub(crate) models: Vec<String>,
    /// The key's budget in tokens; 0 means no budget
    #[arg(long, value_name = "N", conflicts_with = "budget_usd", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) budget_tokens: Option<String>,
    /// The key's budget in dollars; 0 means no budget
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) budget_usd: Option<String>,
    /// How often the budget is reset
    #[arg(long, value_enum, default_value_t = ResetPeriod::Ever)]
    #[limits(skip)]
    pub(crate) per: ResetPeriod,
    /// Most requests in one minute; 0 means no limit for this key
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) requests_per_minute: Option<String>,
    /// Most tokens in one minute; 0 means no limit for this key
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) tokens_per_minute: Option<String>,
    /// Most requests at the same time; 0 means no limit for this key
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) parallel: Option<String>,
    /// When the key expires: at the beginning of a day (UTC), or after a span (a number with m, h, d or w)
    #[arg(long, value_name = "DAY|SPAN")]
    #[limits(max_bytes = 32)]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// How often a budget is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResetPeriod {
    /// At midnight (UTC)
    Day,
    /// On the first day of a month
    Month,
    /// Never
    Ever,
}

impl ResetPeriod {
    pub(crate) fn period(self) -> Period {
        match self {
            Self::Day => Period::Day,
            Self::Month => Period::Month,
            Self::Ever => Period::Ever,
        }
    }
}

#[derive(Debug, Args, Limits)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Rotate {
    /// The key
    #[arg(value_name = "NAME")]
    #[limits(max_bytes = 64)]
    pub(crate) name: String,
    /// How long the old secret stays valid: a number with m, h, d or w, or 0
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    #[limits(max_bytes = 32)]
    pub(crate) overlap: String,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Revoke {
    /// The key
    #[arg(value_name = "NAME")]
    #[limits(max_bytes = 64)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}
