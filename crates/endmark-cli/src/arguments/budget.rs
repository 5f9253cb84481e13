//! The arguments of `endmark budget`.

use clap::{Args, Subcommand};
use endmark_envelope::Limits;

use crate::arguments::store::StoreArgument;

/// The arguments of `budget`.
#[derive(Debug, Args)]
pub(crate) struct Budget {
    #[command(subcommand)]
    pub(crate) command: Option<BudgetCommand>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The subcommands of `budget`.
#[derive(Debug, Subcommand)]
pub(crate) enum BudgetCommand {
    /// Raise the budget of a session, which can then continue
    Raise(Raise),
    /// Release the unspent budget shares of a silent instance of a PostgreSQL store
    Forfeit(Forfeit),
}

/// The arguments of `budget forfeit`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Forfeit {
    /// The instance, as `endmark doctor` lists it
    #[arg(value_name = "INSTANCE")]
    #[limits(max_bytes = 64)]
    pub(crate) instance: String,
}

/// The arguments of `budget raise`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Raise {
    /// The session as in the refusal or in `endmark budget`, or the beginning of its name
    #[arg(value_name = "SESSION")]
    #[limits(max_bytes = 64)]
    pub(crate) session: String,
    /// The amount to add: tokens, or with `--usd` dollars
    #[arg(value_name = "+N")]
    #[limits(max_bytes = 32)]
    pub(crate) by: String,
    /// The amount is in dollars
    #[arg(long)]
    pub(crate) usd: bool,
}
