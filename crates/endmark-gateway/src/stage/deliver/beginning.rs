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
const MAX_OPENING_BYTES: usize = 256 * 1024;

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
enum BeginningSign {
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
    let mut decoder = Decoder::new(MAX_OPENING_BYTES);
    let mut reader = exchange.attempt.request.stream(MAX_OPENING_BYTES);
    let mut received = BytesMut::new();
    let head_deadline = Instant::now() + HEAD_DELAY_LIMIT;
    loop {
        let until = deadline.filter(|_| received.is_empty()).unwrap_or(head_deadline);
        let data = match timeout_at(until, body.frame()).await {
            Err(_) if received.is_empty() && deadline.is_some() => return Beginning::Silent,
            Err(_) => return Beginning::Started(with_prefix(received.freeze(), body)),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => data,
                Err(_) => continue,
            },
            Ok(Some(Err(error))) => return broken_beginning(&error.to_string()),
            Ok(None) => {
                return match decoder.finish() {
                    Tail::Frame(frame) => match classify_event(reader.as_mut(), &frame) {
                        BeginningSign::Started => Beginning::Started(with_prefix(received.freeze(), body)),
                        BeginningSign::Empty(why) => Beginning::Empty(Ending::UpstreamError, why),
                        BeginningSign::None => broken_beginning("it ended"),
                    },
                    Tail::Clean | Tail::Residue(_) => broken_beginning("it ended"),
                };
            }
        };
        received.extend_from_slice(&data);
        if decoder.push(&data).is_err() || received.len() > MAX_OPENING_BYTES {
            return Beginning::Started(with_prefix(received.freeze(), body));
        }
        while let Some(frame) = decoder.next_frame() {
            match classify_event(reader.as_mut(), &frame) {
                BeginningSign::None => {}
                BeginningSign::Started => return Beginning::Started(with_prefix(received.freeze(), body)),
                BeginningSign::Empty(why) => return Beginning::Empty(Ending::UpstreamError, why),
            }
        }
    }
}

fn broken_beginning(how: &str) -> Beginning {
    Beginning::Empty(Ending::Dropped, format!("{how} before anything of a reply came"))
}

/// Classifies an event. A final error counts as the reply.
fn classify_event(reader: &mut dyn Reader, frame: &Frame) -> BeginningSign {
    match reader.read_frame(frame) {
        Err(error) if error.is_broken_chunk() => {
            BeginningSign::Empty(format!("an event before anything of a reply cannot be read: {error}"))
        }
        Err(_) => BeginningSign::Started,
        Ok(event) if event.is_idle || event.only_begins => BeginningSign::None,
        Ok(event) => match event.error {
            Some(error) if !error.is_final() => BeginningSign::Empty(format!("it failed: {}", error.message)),
            _ => BeginningSign::Started,
        },
    }
}
