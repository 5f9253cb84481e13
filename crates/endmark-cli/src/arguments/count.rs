//! The arguments of `endmark count`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use endmark_envelope::Limits;

use crate::arguments::compact::FORMATS;

#[derive(Debug, Args, Limits)]
pub(crate) struct Count {
    /// The text, or with `--for` the request body or a list of messages; `-` or no file: standard input
    #[arg(value_name = "FILE")]
    #[limits(skip)]
    pub(crate) file: Option<PathBuf>,
    /// Count tokens as this model does
    #[arg(long, value_name = "MODEL")]
    #[limits(max_bytes = 255)]
    pub(crate) model: String,
    /// The input is a conversation in this wire format
    #[arg(long = "for", value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS))]
    #[limits(max_bytes = 32)]
    pub(crate) format: Option<String>,
}
