//! The arguments of `endmark count`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use endmark_envelope::Limits;

use crate::arguments::compact::FORMATS;

/// The arguments of `count`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Count {
    /// The text, or with `--for` the request's body or a list of messages; standard input if it is `-` or not named
    #[arg(value_name = "FILE")]
    #[limits(skip)]
    pub(crate) file: Option<PathBuf>,
    /// Count as this model reads it
    #[arg(long, value_name = "MODEL")]
    #[limits(max_bytes = 255)]
    pub(crate) model: String,
    /// It is a conversation in this wire format
    #[arg(long = "for", value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS))]
    #[limits(max_bytes = 32)]
    pub(crate) format: Option<String>,
}
