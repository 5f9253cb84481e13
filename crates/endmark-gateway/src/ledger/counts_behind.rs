//! Usage that a server reports after the end of its stream.

use std::time::Duration;

use endmark_wire::sse::Decoder;
use endmark_wire::stream::Reader;
use tokio::time::{Instant, timeout_at};

use crate::body::Patient;

/// How long a stream that ended without its usage is read. Nearly all servers close it at once.
const PATIENCE: Duration = Duration::from_millis(200);

/// More frames than a server sends after the end of a stream.
const MAX_FRAMES: usize = 16;

/// Reads briefly past the end of a stream until its usage arrives. Returns the bytes that arrived, which the client
/// gets as well. Only usage is taken from them: the reply has ended.
pub(crate) async fn counts_behind(
    decoder: &mut Decoder,
    reader: &mut Box<dyn Reader>,
    upstream: &mut Patient,
) -> Vec<u8> {
    let until = Instant::now() + PATIENCE;
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
        let counts = next
            .frame(&frame)
            .is_ok_and(|event| event.usage.is_some() && event.pieces.is_empty() && event.error.is_none());
        if counts {
            *reader = next;
        }
        passed.extend_from_slice(&frame.raw);
    }
    passed
}
