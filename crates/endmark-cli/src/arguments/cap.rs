//! The arguments of `endmark cap`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use endmark_context::cap::{FORMATS, Unit};
use endmark_envelope::Limits;
use endmark_failure::CommandError;
use endmark_store::only_limit;

use crate::arguments::store::StoreArgument;

#[derive(Debug, Args, Limits)]
pub(crate) struct Cap {
    /// The output file; `-` or no file: standard input
    #[arg(value_name = "FILE")]
    #[limits(skip)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) most: AmountLimit,
    /// Most items of a list or rows of a table (key `cap.max_items`)
    #[arg(long, value_name = "N")]
    pub(crate) max_items: Option<u64>,
    /// The format of the output; `auto` detects and reports it
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = PossibleValuesParser::new(FORMATS))]
    #[limits(max_bytes = 16)]
    pub(crate) format: String,
    /// What to keep besides errors: the beginning, the end, or both
    #[arg(long, value_name = "PART", default_value = "both")]
    #[limits(skip)]
    pub(crate) keep: KeepChoice,
    /// Do not store the full output
    #[arg(long, conflicts_with = "store")]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// Read many outputs as JSON Lines, and write one result per line
    #[arg(long)]
    pub(crate) batch: bool,
}

/// The size limit, in one unit.
#[derive(Debug, Args, Limits)]
#[group(multiple = false)]
pub(crate) struct AmountLimit {
    /// Most characters (key `cap.max_chars`)
    #[arg(id = "max_chars", long = "max-chars", value_name = "N")]
    pub(crate) chars: Option<u64>,
    /// Most UTF-8 bytes
    #[arg(id = "max_bytes", long = "max-bytes", value_name = "N")]
    pub(crate) bytes: Option<u64>,
    /// Most `o200k_base` tokens
    #[arg(id = "max_tokens", long = "max-tokens", value_name = "N")]
    pub(crate) tokens: Option<u64>,
}

impl AmountLimit {
    /// Returns the limit with its unit. Fails if more than one limit is given.
    pub(crate) fn limit(&self) -> Result<Option<(u64, Unit)>, CommandError> {
        only_limit(self.chars, self.bytes, self.tokens)
    }
}

/// The part of an output that is kept besides errors (CX-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepChoice {
    Both,
    Head,
    Tail,
}
