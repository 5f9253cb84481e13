//! The arguments of `endmark init`.

use std::path::PathBuf;

use clap::Args;
use endmark_envelope::Limits;

#[derive(Debug, Args, Limits)]
pub(crate) struct Init {
    /// The file to write; Endmark finds `endmark.toml` in the current folder automatically
    #[arg(value_name = "FILE", default_value = "endmark.toml")]
    #[limits(skip)]
    pub(crate) file: PathBuf,
}
