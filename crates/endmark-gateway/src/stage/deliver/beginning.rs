//! The beginning of a stream: whether anything of a reply comes.
//!
//! A stream that fails before that, as one does whose server is overloaded, has given its client nothing yet: it is as if
//! the request had been refused, and can be met in the same way. Events that only open a reply wait with it for what
//! they open: behind them another answer could not be passed on as it comes, with its thoughts, signatures and ids.

use std::time::Duration;

use bytes::BytesMut;
use endmark_recovery::Ending;
use endmark_wire::sse::{Decoder, Frame, Tail};
use endmark_wire::stream::Reader;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::body::{AnyBody, preceded};
use crate::exchange::Exchange;

/// How long a client waits for the head of its answer on this account. What fails at once fails within a moment; for what
/// fails later the rest is asked for.
const HEAD_DELAY_LIMIT: Duration = Duration::from_secs(2);

/// What only opens a reply is not longer, though some repeat the request in it.
const MOST_BYTES: usize = 256 * 1024;

/// How a stream began.
pub(super) enum Beginning {
    /// Something of a reply came, or may come: the body is that of the answer, from its first byte on.
    Begun(AnyBody),
    /// No byte came until the deadline.
    Silent,
    /// It ended so before anything of a reply came, and this is why.
    Fruitless(Ending, String),
}

/// What an event says of a beginning.
enum Sign {
    /// Nothing yet.
    None,
    Begun,
    Fruitless(String),
}

/// Reads a stream up to the first event that has something of a reply. With a deadline its first byte has to be there by then.
pub(super) async fn beginning(
    exchange: &Exchange,
    mut body: AnyBody,
    deadline: Option<Instant>,
) -> Beginning {
    let mut decoder = Decoder::new(MOST_BYTES);
    let mut reader = exchange.request.stream(MOST_BYTES);
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
        if decoder.push(&data).is_err() || came.len() > MOST_BYTES {
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

/// What this event says; a final error is the reply.
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
