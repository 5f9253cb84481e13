//! Runs an external command within the limits and in the envelope of a manifest. (EN-1, EN-3, EN-4, EN-5)
//!
//! Only `drive` starts processes, through `endmark-process`. All other modules only decide: they handle the
//! manifest, the limits and the kind of output. `endmark-process` runs a process and makes no such decisions.

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
