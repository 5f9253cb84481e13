//! Runs a foreign command with the limits and the envelope of a manifest. (EN-1, EN-3, EN-4, EN-5)
//!
//! Everything except `drive` decides (manifest, limits, kind of output) and starts no process. `endmark-process` runs
//! a process and decides nothing.

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

pub use drive::{CapPlan, Tool, ToolAnswer};
pub use page::{PageError, PageRequest, capped_page};
