//! The beginning of a stream: whether any part of a reply arrives.
//!
//! A stream that fails before that, for example at an overloaded server, has given its client nothing. It is handled
//! like a refused request. Events that only open a reply are held until its content arrives: after them, another
//! reply could not be streamed with its own thoughts, signatures and ids.

use std::time::Duration;

use bytes::BytesMut;
use endmark_recovery::Ending;
use endmark_wire::sse::{Decoder, Frame, Tail};
use endmark_wire::stream::Reader;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::body::{AnyBody, preceded};
use crate::exchange::Exchange;

/// How long a client waits for the head of its response because of this. An immediate failure shows within a moment.
/// After a later failure the rest is requested.
const HEAD_DELAY_LIMIT: Duration = Duration::from_secs(2);

/// The longest opening of a reply, in bytes. Some servers repeat the request in it.
const MAX_BYTES: usize = 256 * 1024;

/// How a stream began.
pub(super) enum Beginning {
    /// A part of a reply arrived, or may arrive. The body is that of the response, from its first byte on.
    Begun(AnyBody),
    /// No byte arrived before the deadline.
    Silent,
    /// It ended like this, for this reason, before any part of a reply arrived.
    Fruitless(Ending, String),
}

/// What an event shows about a beginning.
enum Sign {
    /// Nothing yet.
    None,
    Begun,
    Fruitless(String),
}

/// Reads a stream up to the first event with a part of a reply. With a deadline, its first byte must arrive by then.
pub(super) async fn beginning(
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
            Err(_) => return Beginning::Begun(preceded(came.freeze(), body)),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => data,
                Err(_) => continue,
            },
            Ok(Some(Err(error))) => return broken_off(&error.to_string()),
            Ok(None) => {
                return match decoder.finish() {
                    Tail::Frame(frame) => match sign(reader.as_mut(), &frame) {
                        Sign::Begun => Beginning::Begun(preceded(came.freeze(), body)),
                        Sign::Fruitless(why) => Beginning::Fruitless(Ending::UpstreamError, why),
                        Sign::None => broken_off("it ended"),
                    },
                    Tail::Clean | Tail::Residue(_) => broken_off("it ended"),
                };
            }
        };
        came.extend_from_slice(&data);
        if decoder.push(&data).is_err() || came.len() > MAX_BYTES {
            return Beginning::Begun(preceded(came.freeze(), body));
        }
        while let Some(frame) = decoder.next_frame() {
            match sign(reader.as_mut(), &frame) {
                Sign::None => {}
                Sign::Begun => return Beginning::Begun(preceded(came.freeze(), body)),
                Sign::Fruitless(why) => return Beginning::Fruitless(Ending::UpstreamError, why),
            }
        }
    }
}

fn broken_off(how: &str) -> Beginning {
    Beginning::Fruitless(Ending::Dropped, format!("{how} before anything of a reply came"))
}

/// Returns what this event shows. A final error is the reply.
fn sign(reader: &mut dyn Reader, frame: &Frame) -> Sign {
    match reader.frame(frame) {
        Err(error) if error.is_broken_chunk() => {
            Sign::Fruitless(format!("an event before anything of a reply cannot be read: {error}"))
        }
        Err(_) => Sign::Begun,
        Ok(event) if event.idle || event.opens => Sign::None,
        Ok(event) => match event.error {
            Some(error) if !error.is_final() => Sign::Fruitless(format!("it failed: {}", error.message)),
            _ => Sign::Begun,
        },
    }
}
