//! The arguments of `endmark keys`.

use clap::{Args, Subcommand, ValueEnum};
use endmark_context::budget::Period;
use endmark_envelope::{Limits, TooLarge};

use crate::arguments::store::StoreArgument;

/// The arguments of `keys`.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// The subcommands of `keys`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key and print its secret, once
    Add(Add),
    /// Show all keys, without their secrets
    List(List),
    /// Give a key a new secret; the old one goes on for a while
    Rotate(Rotate),
    /// Take a key back
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

/// The arguments of `keys add`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Add {
    /// By which it is known in usage and budgets; it can be given once
    #[arg(value_name = "NAME")]
    #[limits(max_bytes = 64)]
    pub(crate) name: String,
    /// A model that it is for, or a pattern with `*`; without any it is for all
    #[arg(long, value_name = "PATTERN")]
    #[limits(max_bytes = 256, max_items = 100)]
    pub(crate) models: Vec<String>,
    /// Tokens that may be spent with it; 0 is no budget
    #[arg(long, value_name = "N", conflicts_with = "budget_usd", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) budget_tokens: Option<String>,
    /// Dollars that may be spent with it; 0 is no budget
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) budget_usd: Option<String>,
    /// How often its budget is reset
    #[arg(long, value_enum, default_value_t = Per::Ever)]
    #[limits(skip)]
    pub(crate) per: Per,
    /// Requests that it may make in one minute; 0 is no limit of its own
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) requests_per_minute: Option<String>,
    /// Tokens that it may use in one minute; 0 is no limit of its own
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) tokens_per_minute: Option<String>,
    /// Requests that it may make at once; 0 is no limit of its own
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[limits(max_bytes = 32)]
    pub(crate) parallel: Option<String>,
    /// When it ends: at the beginning of a day (UTC), or after a span (a number with m, h, d or w)
    #[arg(long, value_name = "DAY|SPAN")]
    #[limits(max_bytes = 32)]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// How often a budget is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Per {
    /// At midnight
    Day,
    /// On the first day of a month
    Month,
    /// Never
    Ever,
}

impl Per {
    pub(crate) fn period(self) -> Period {
        match self {
            Self::Day => Period::Day,
            Self::Month => Period::Month,
            Self::Ever => Period::Ever,
        }
    }
}

/// The arguments of `keys list`.
#[derive(Debug, Args, Limits)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The arguments of `keys rotate`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Rotate {
    /// The key
    #[arg(value_name = "NAME")]
    #[limits(max_bytes = 64)]
    pub(crate) name: String,
    /// For how long its old secret goes on: a number with m, h, d or w, or 0
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    #[limits(max_bytes = 32)]
    pub(crate) overlap: String,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The arguments of `keys revoke`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Revoke {
    /// The key
    #[arg(value_name = "NAME")]
    #[limits(max_bytes = 64)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}
