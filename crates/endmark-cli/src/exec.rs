//! A foreign command, given limits and an envelope by a manifest. (EN-1, EN-3, EN-4, EN-5)
//!
//! What is decided here (manifest, limits, what the output is) knows no process; `endmark-process` runs one and decides nothing.

pub(crate) mod built_in;
pub(crate) mod limits;
pub(crate) mod manifest;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod payload;
pub(crate) mod shortened;
pub(crate) mod verdict;
mod words;
