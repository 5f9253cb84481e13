//! The arguments of `endmark read`.

use clap::Args;
use endmark_envelope::Limits;

use crate::arguments::cap::AmountLimit;
use crate::arguments::store::StoreArgument;

#[derive(Debug, Args, Limits)]
pub(crate) struct Read {
    /// The handle of a stored output, as in a marker or a warning
    #[arg(value_name = "HANDLE")]
    #[limits(max_bytes = 64)]
    pub(crate) handle: String,
    #[command(flatten)]
    pub(crate) part: Part,
    #[command(flatten)]
    pub(crate) most: AmountLimit,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The part to read; by default the first page.
#[derive(Debug, Args, Limits)]
#[group(multiple = false)]
pub(crate) struct Part {
    /// This page, counted from 1; a page is as large as the limit allows
    #[arg(long, value_name = "N")]
    pub(crate) page: Option<u64>,
    /// Lines A to B inclusive, counted from 1; `A:` and `:B` are open ranges
    #[arg(long, value_name = "A:B")]
    #[limits(max_bytes = 64)]
    pub(crate) lines: Option<String>,
    /// Bytes from A up to but not including B, from 0
    #[arg(long, value_name = "A:B")]
    #[limits(max_bytes = 64)]
    pub(crate) bytes: Option<String>,
    /// The target of a JSON Pointer, as in `/items/0`
    #[arg(long, value_name = "POINTER")]
    #[limits(max_bytes = 4096)]
    pub(crate) pointer: Option<String>,
    /// The lines that match a regular expression, with their numbers
    #[arg(long, value_name = "PATTERN")]
    #[limits(max_bytes = 4096)]
    pub(crate) grep: Option<String>,
}
