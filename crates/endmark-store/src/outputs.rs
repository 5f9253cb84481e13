//! Full values of shortened outputs (CX-5). They are kept under a handle, for their owner, until they were not used
//! for a number of days.

mod capping;
mod draft;
mod elsewhere;
mod handle;
mod keeper;
mod reading;
mod share;

pub use capping::{CapRequest, EachChunk, cap_and_keep, cap_chunks_and_keep, one_limit, refused};
pub use draft::OutputDraft;
pub use handle::Handle;
pub use keeper::Keeper;
pub use reading::{note_read, unreadable};
pub use share::{MIN_SHARE, share, size};

/// A new output to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutput {
    /// The name under which it can be read.
    pub handle: Handle,
    /// The only owner that can read it.
    pub owner: String,
    /// Days without use after which it is deleted; 0 for never.
    pub keep_days: u32,
    /// Maximum size of all kept outputs of the store in bytes; others are removed for a new one. 0 means no limit.
    pub max_bytes: u64,
}
