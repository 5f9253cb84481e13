//! Reads usage that a server reports after the end of its stream.

use std::time::Duration;

use endmark_wire::sse::Decoder;
use endmark_wire::stream::Reader;
use tokio::time::{Instant, timeout_at};

use crate::body::TimedBody;

/// How long to read after the end of a stream without usage. Nearly all servers close the stream at once.
const LATE_USAGE_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum number of frames to read after the end of a stream. No known server sends this many.
const MAX_FRAMES: usize = 16;

/// Reads briefly after the end of a stream to get the usage. Returns the bytes that arrived, which are also
/// forwarded. Only usage is read from them, because the reply has ended.
pub(crate) async fn read_late_usage(
    decoder: &mut Decoder,
    reader: &mut Box<dyn Reader>,
    upstream: &mut TimedBody,
) -> Vec<u8> {
    let until = Instant::now() + LATE_USAGE_TIMEOUT;
    let mut passed = Vec::new();
    for _ in 0..MAX_FRAMES {
        if reader.received().is_counted() {
            break;
        }
        let frame = loop {
            if let Some(frame) = decoder.next_frame() {
                break frame;
            }
            match timeout_at(until, upstream.next()).await {
                Ok(Ok(Some(data))) if decoder.push(&data).is_ok() => {}
                _ => return passed,
            }
        };
        let mut next = reader.fork();
        let is_usage_only = next
            .read_frame(&frame)
            .is_ok_and(|event| event.usage.is_some() && event.pieces.is_empty() && event.error.is_none());
        if is_usage_only {
            *reader = next;
        }
        passed.extend_from_slice(&frame.raw);
    }
    passed
}
