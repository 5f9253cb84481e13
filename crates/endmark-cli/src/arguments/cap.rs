//! The arguments of `endmark cap`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use endmark_context::cap::{FORMATS, Unit};
use endmark_envelope::Limits;
use endmark_failure::CommandError;
use endmark_store::one_limit;

use crate::arguments::store::StoreArgument;

/// The arguments of `cap`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Cap {
    /// The output; standard input if it is `-` or not named
    #[arg(value_name = "FILE")]
    #[limits(skip)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) most: Most,
    /// Items of a list, rows of a table (key `cap.max_items`)
    #[arg(long, value_name = "N")]
    pub(crate) max_items: Option<u64>,
    /// The format of the output; `auto` detects and reports it
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = PossibleValuesParser::new(FORMATS))]
    #[limits(max_bytes = 16)]
    pub(crate) format: String,
    /// What is kept besides errors: the beginning, the end, or both
    #[arg(long, value_name = "PART", default_value = "both")]
    #[limits(skip)]
    pub(crate) keep: KeepChoice,
    /// Keep no copy of the full output
    #[arg(long, conflicts_with = "store")]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// Read many outputs as JSON Lines, and answer each with a line
    #[arg(long)]
    pub(crate) batch: bool,
}

/// How much there may be, in one unit.
#[derive(Debug, Args, Limits)]
#[group(multiple = false)]
pub(crate) struct Most {
    /// Characters (key `cap.max_chars`)
    #[arg(id = "max_chars", long = "max-chars", value_name = "N")]
    pub(crate) chars: Option<u64>,
    /// UTF-8 bytes
    #[arg(id = "max_bytes", long = "max-bytes", value_name = "N")]
    pub(crate) bytes: Option<u64>,
    /// Tokens of `o200k_base`
    #[arg(id = "max_tokens", long = "max-tokens", value_name = "N")]
    pub(crate) tokens: Option<u64>,
}

impl Most {
    /// Returns the requested limit with its unit. At most one may be given.
    pub(crate) fn limit(&self) -> Result<Option<(u64, Unit)>, CommandError> {
        one_limit(self.chars, self.bytes, self.tokens)
    }
}

/// What is kept of an output besides errors (CX-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepChoice {
    Both,
    Head,
    Tail,
}
