//! A foreign command, given limits and an envelope by a manifest. (EN-1, EN-3, EN-4, EN-5)
//!
//! Everything but `drive` decides (manifest, limits, what the output is) and knows no process; `endmark-process` runs one and
//! decides nothing.

mod built_in;
mod drive;
mod limits;
mod manifest;
mod output;
mod page;
mod payload;
mod shortened;
mod verdict;
mod words;

pub use drive::{Answered, Capping, Tool};
pub use page::{PageError, Paging, capped_page};
