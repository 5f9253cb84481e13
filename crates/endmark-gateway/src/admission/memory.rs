//! The memory that all requests together use for bodies and replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The total size of buffered bodies and replies.
#[derive(Default)]
pub(crate) struct HeldBytes(AtomicUsize);

impl HeldBytes {
    /// Creates an empty reservation. All reservations together may grow to `limit` bytes.
    pub(crate) fn new_reservation(self: &Arc<Self>, limit: usize) -> BytesReservation {
        BytesReservation { total: Arc::clone(self), limit, bytes: 0 }
    }
}

/// The bytes reserved for one body. Dropping this releases them.
pub(crate) struct BytesReservation {
    total: Arc<HeldBytes>,
    limit: usize,
    bytes: usize,
}

impl BytesReservation {
    /// Reserves more bytes. Returns `false` and reserves nothing if there is not enough room.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let fits = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.limit);
        let has_room = self.total.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if has_room {
            self.bytes += bytes;
        }
        has_room
    }
}

impl Drop for BytesReservation {
    fn drop(&mut self) {
        self.total.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_held_by_one_request_is_unavailable_to_others() {
        let held = Arc::new(HeldBytes::default());
        let (mut first, mut second) = (held.new_reservation(100), held.new_reservation(100));
        assert!(first.grow(60));
        assert!(!second.grow(41) && second.grow(40));
        assert!(!first.grow(1));
        drop(second);
        assert!(first.grow(40));
        drop(first);
        assert_eq!(held.0.load(Ordering::Relaxed), 0);
    }
}
