//! The memory that work on large bodies needs.

use std::sync::Arc;

use super::held::{Held, Holding};
use crate::work::{LARGE_BYTES, Large, large};

/// Bytes that work on a large input may need beside it, for each of its bytes: it is copied when it is parsed, and by edits.
const ROOM_FACTOR: usize = 3;

/// Work on one request's body: apart where that is large, and then with room for it.
#[must_use]
pub(crate) struct Work {
    _large: Large,
    room: Option<Holding>,
}

impl Work {
    /// Begins to work on a body of `bytes` bytes. Returns `None` if all requests together would hold too much memory.
    pub(crate) async fn begin(bytes: usize, held: &Arc<Held>, limit: usize) -> Option<Self> {
        let mut room = held.part(limit);
        if !room.grow(extra_bytes(bytes)) {
            return None;
        }
        Some(Self { _large: large(bytes).await, room: Some(room) })
    }

    /// It only waits from now on: it needs no room.
    pub(crate) fn rest(&mut self) {
        self.room = None;
    }
}

/// Bytes of memory to reserve, beside the input itself, for work on an input of `bytes` bytes.
pub(crate) fn extra_bytes(bytes: usize) -> usize {
    if bytes < LARGE_BYTES { 0 } else { bytes.saturating_mul(ROOM_FACTOR) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_on_a_large_body_needs_room_and_gives_it_back() {
        let held = Arc::<Held>::default();
        let begin = |bytes: usize| Work::begin(bytes, &held, 7 * LARGE_BYTES);
        let mut first = begin(LARGE_BYTES).await.unwrap();
        let second = begin(LARGE_BYTES).await.unwrap();
        assert!(begin(LARGE_BYTES).await.is_none());
        assert!(begin(LARGE_BYTES - 1).await.is_some());
        first.rest();
        assert!(begin(LARGE_BYTES).await.is_some());
        drop(second);
    }
}
