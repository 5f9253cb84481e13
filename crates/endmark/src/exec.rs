//! A foreign command, given limits and an envelope by a manifest. (EN-1, EN-3, EN-4, EN-5)
//!
//! What is decided (manifest, limits, capture, what the output is) knows no process; what runs one decides nothing.

pub(crate) mod capture;
pub(crate) mod child;
pub(crate) mod limits;
pub(crate) mod manifest;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod passing;
pub(crate) mod signals;
pub(crate) mod spool;
pub(crate) mod verdict;
