//! Reserves memory for processing large bodies.

use std::sync::Arc;

use super::memory::{BytesReservation, HeldBytes};
use crate::work::{LARGE_BYTES, LargeInput, enter_pool_if_large};

/// Memory for processing a large input, as a multiple of its size. Parsing and edits make copies.
const MEMORY_FACTOR: usize = 3;

/// Memory for each JSON object, in bytes. Counting and shortening 36,000 message objects in 1 MiB needed 42 MiB.
const MEMORY_PER_OBJECT_BYTES: usize = 1_200;

/// Processes the body of one request. A large body is processed on a separate thread, and with reserved memory.
#[must_use]
pub(crate) struct BodyWorkPermit {
    _pool_guard: LargeInput,
    room: Option<BytesReservation>,
}

impl BodyWorkPermit {
    /// Starts to process a body. Returns `None` if all requests together would exceed the memory limit.
    pub(crate) async fn begin(body: &[u8], held: &Arc<HeldBytes>, limit: usize) -> Option<Self> {
        let mut room = held.new_reservation(limit);
        if !room.grow(extra_memory_bytes(body.len())) {
            return None;
        }
        let large = enter_pool_if_large(body.len()).await;
        // Count objects only in large bodies, because counting takes as long as reading the body once.
        if body.len() >= LARGE_BYTES
            && !room.grow(count_objects(body).saturating_mul(MEMORY_PER_OBJECT_BYTES))
        {
            return None;
        }
        Some(Self { _pool_guard: large, room: Some(room) })
    }

    /// Releases the extra memory while the request is only waiting.
    pub(crate) fn release(&mut self) {
        self.room = None;
    }
}

/// Returns the extra memory to reserve for an input of `bytes` bytes.
pub(crate) fn extra_memory_bytes(bytes: usize) -> usize {
    if bytes < LARGE_BYTES { 0 } else { bytes.saturating_mul(MEMORY_FACTOR) }
}

/// Returns the number of objects in a JSON text, in linear time. The text may be invalid.
fn count_objects(text: &[u8]) -> usize {
    let (mut at, mut is_in_string, mut objects) = (0, false, 0);
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr3(b'"', b'\\', b'{', rest)) {
        let byte = text.get(at + found);
        match byte {
            Some(b'"') => is_in_string = !is_in_string,
            Some(b'{') if !is_in_string => objects += 1,
            _ => {}
        }
        at += found + if byte == Some(&b'\\') { 2 } else { 1 };
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_on_a_large_body_reserves_memory_and_returns_it() {
        let held = Arc::<HeldBytes>::default();
        let (large, small) = (vec![b' '; LARGE_BYTES], vec![b'{'; LARGE_BYTES - 1]);
        let begin = |body| BodyWorkPermit::begin(body, &held, 7 * LARGE_BYTES);
        let mut first = begin(&large).await.unwrap();
        let second = begin(&large).await.unwrap();
        assert!(begin(&large).await.is_none());
        assert!(begin(&small).await.is_some());
        first.release();
        assert!(begin(&large).await.is_some());
        drop(second);
    }

    #[tokio::test]
    async fn many_small_objects_need_more_memory_than_one_long_text() {
        let held = Arc::<HeldBytes>::default();
        let limit = 64 << 20;
        let text = format!(r#"{{"a":"{}"}}"#, r#"{\"{\\"#.repeat(200_000));
        let objects = format!("[{}]", r#"{"a":1},"#.repeat(200_000));
        assert_eq!((count_objects(text.as_bytes()), count_objects(objects.as_bytes())), (1, 200_000));
        assert!(BodyWorkPermit::begin(text.as_bytes(), &held, limit).await.is_some());
        assert!(BodyWorkPermit::begin(objects.as_bytes(), &held, limit).await.is_none());
    }
}
