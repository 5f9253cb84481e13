//! Waits until the first part of a streamed reply arrives.
//!
//! If a stream fails before that, for example because the server is overloaded, the client has received nothing. The
//! stream is then handled like a refused request. Events that only open a reply are held until content follows. After
//! they are sent, no other reply could replace this one, because its reasoning, signatures and ids differ.

use std::time::Duration;

use bytes::BytesMut;
use endmark_recovery::Ending;
use endmark_wire::sse::{Decoder, Frame, Tail};
use endmark_wire::stream::Reader;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::body::{AnyBody, with_prefix};
use crate::exchange::Exchange;

/// Maximum additional wait of a client for the head of its response. Immediate failures happen within this time.
/// After a later failure, the rest is requested.
const HEAD_DELAY_LIMIT: Duration = Duration::from_secs(2);

/// Maximum size of the events that open a reply. Some servers repeat the request in them.
const MAX_BYTES: usize = 256 * 1024;

/// How a stream began.
pub(super) enum Beginning {
    /// Content arrived, or may still arrive. The body contains the complete response.
    Started(AnyBody),
    /// No byte arrived before the deadline.
    Silent,
    /// The stream ended before any content, with this ending and for this reason.
    Empty(Ending, String),
}

/// What an event shows about the beginning of a stream.
enum Sign {
    /// The event shows nothing yet.
    None,
    Started,
    Empty(String),
}

/// Reads a stream up to its first event with content. The first byte must arrive before the deadline, if there is one.
pub(super) async fn read_beginning(
    exchange: &Exchange,
    mut body: AnyBody,
    deadline: Option<Instant>,
) -> Beginning {
    let mut decoder = Decoder::new(MAX_BYTES);
    let mut reader = exchange.attempt.request.stream(MAX_BYTES);
    let mut came = BytesMut::new();
    let patience = Instant::now() + HEAD_DELAY_LIMIT;
    loop {
        let until = deadline.filter(|_| came.is_empty()).unwrap_or(patience);
        let data = match timeout_at(until, body.frame()).await {
            Err(_) if came.is_empty() && deadline.is_some() => return Beginning::Silent,
            Err(_) => return Beginning::Started(with_prefix(came.freeze(), body)),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => data,
                Err(_) => continue,
            },
            Ok(Some(Err(error))) => return broken_beginning(&error.to_string()),
            Ok(None) => {
                return match decoder.finish() {
                    Tail::Frame(frame) => match sign(reader.as_mut(), &frame) {
                        Sign::Started => Beginning::Started(with_prefix(came.freeze(), body)),
                        Sign::Empty(why) => Beginning::Empty(Ending::UpstreamError, why),
                        Sign::None => broken_beginning("it ended"),
                    },
                    Tail::Clean | Tail::Residue(_) => broken_beginning("it ended"),
                };
            }
        };
        came.extend_from_slice(&data);
        if decoder.push(&data).is_err() || came.len() > MAX_BYTES {
            return Beginning::Started(with_prefix(came.freeze(), body));
        }
        while let Some(frame) = decoder.next_frame() {
            match sign(reader.as_mut(), &frame) {
                Sign::None => {}
                Sign::Started => return Beginning::Started(with_prefix(came.freeze(), body)),
                Sign::Empty(why) => return Beginning::Empty(Ending::UpstreamError, why),
            }
        }
    }
}

fn broken_beginning(how: &str) -> Beginning {
    Beginning::Empty(Ending::Dropped, format!("{how} before anything of a reply came"))
}

/// Classifies an event. A final error counts as the reply.
fn sign(reader: &mut dyn Reader, frame: &Frame) -> Sign {
    match reader.read_frame(frame) {
        Err(error) if error.is_broken_chunk() => {
            Sign::Empty(format!("an event before anything of a reply cannot be read: {error}"))
        }
        Err(_) => Sign::Started,
        Ok(event) if event.idle || event.opens => Sign::None,
        Ok(event) => match event.error {
            Some(error) if !error.is_final() => Sign::Empty(format!("it failed: {}", error.message)),
            _ => Sign::Started,
        },
    }
}
