//! Full values of shortened outputs (CX-5). Each output is kept under a handle for its owner. It expires
//! after a number of days without use.

mod capping;
mod draft;
mod handle;
mod keeper;
mod reading;
mod remote;
mod share;

pub use capping::{CapRequest, ChunkSink, cap_and_keep, cap_chunks_and_keep, cap_error, only_limit};
pub use draft::OutputDraft;
pub use handle::Handle;
pub use keeper::OutputKeeper;
pub use reading::{read_error, record_read};
pub use share::{MIN_TEXT_SHARE, fair_share, size};

/// A new output to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutput {
    /// The handle under which it can be read.
    pub handle: Handle,
    /// The owner. Only the owner can read the output.
    pub owner: String,
    /// Days after the last use when it is deleted; 0 means never.
    pub keep_days: u32,
    /// Maximum total size of kept outputs in bytes. Others are removed to make room. 0 means unlimited.
    pub max_bytes: u64,
}
