//! Runs an external command within the limits of a manifest, and returns its output in an envelope. (EN-1,
//! EN-3, EN-4, EN-5)
//!
//! Only `drive` starts processes. It uses `endmark-process`, which runs a process without knowing manifests.
//! The other modules do no I/O: they handle the manifest, the limits and the output.

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

pub use drive::{ManifestTool, OutputCapping, ToolResponse};
pub use page::{PageError, PageRequest, paginate_and_cap};
