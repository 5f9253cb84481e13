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
    /// Add to the budget of a session, which goes on where it was used up
    Raise(Raise),
    /// Give up a silent instance of a PostgreSQL store: free what was granted to it and not spent
    Forfeit(Forfeit),
}

/// The arguments of `budget forfeit`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Forfeit {
    /// The instance, as `endmark doctor` names it
    #[arg(value_name = "INSTANCE")]
    #[limits(max_bytes = 64)]
    pub(crate) instance: String,
}

/// The arguments of `budget raise`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Raise {
    /// The session, as the refusal and `endmark budget` name it, or the beginning of that
    #[arg(value_name = "SESSION")]
    #[limits(max_bytes = 64)]
    pub(crate) session: String,
    /// How much is added: tokens, or with `--usd` dollars
    #[arg(value_name = "+N")]
    #[limits(max_bytes = 32)]
    pub(crate) by: String,
    /// Add dollars
    #[arg(long)]
    pub(crate) usd: bool,
}
