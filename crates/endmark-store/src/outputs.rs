//! Full values of outputs that were shortened (CX-5): kept under a handle, for their owner, until they were not used for
//! so many days.

mod capping;
mod draft;
mod handle;
mod keeper;
mod reading;
mod share;

pub use capping::{CapRequest, EachChunk, cap_and_keep, cap_chunks_and_keep, one_limit, refused};
pub use draft::OutputDraft;
pub use handle::Handle;
pub use keeper::Keeper;
pub use reading::{note_read, unreadable};
pub use share::{LEAST_SHARE, share, size};

/// What a new output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutput {
    /// The name under which it can be read.
    pub handle: Handle,
    /// Who alone can read it.
    pub owner: String,
    /// After how many days without use it is forgotten; 0: never.
    pub keep_days: u32,
    /// The room that all kept outputs may take in the store, in bytes; others are removed for a new one. 0: no limit.
    pub max_bytes: u64,
}
