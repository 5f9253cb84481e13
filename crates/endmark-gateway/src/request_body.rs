//! A request's body: read to its end, and decoded where it is compressed.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};

use crate::body::{AnyBody, full};
use crate::coding::{Codings, Decoder};
use crate::held::{Held, Holding};
use crate::rescue::Refusal;
use crate::settings::Limits;
use crate::upstream::{Read, read_up_to};

/// Decoding goes on for so many steps before another request gets its turn: about a millisecond of work.
const STEPS_AT_ONCE: usize = 32;

/// A request's body on its way to whoever answers: it is read once, however many look at it.
pub(crate) enum Incoming {
    /// Nobody needed it so far.
    Arriving(AnyBody),
    /// It was read to choose an upstream, and is held since.
    Read(RequestBody, Holding),
}

impl Incoming {
    /// The body, read to its end, and what is held for it.
    pub(crate) async fn read(
        self,
        headers: &HeaderMap,
        limits: &Limits,
        held: &Arc<Held>,
    ) -> Result<(RequestBody, Holding), Refusal> {
        match self {
            Self::Read(body, holding) => Ok((body, holding)),
            Self::Arriving(body) => {
                let mut holding = held.part(limits.held_bytes);
                let body = read(headers, body, limits, &mut holding).await?;
                Ok((body, holding))
            }
        }
    }

    /// The bytes as they came, and what is held for them until they are sent.
    pub(crate) fn unchanged(self) -> (AnyBody, Option<Holding>) {
        match self {
            Self::Arriving(body) => (body, None),
            Self::Read(body, holding) => {
                (full(body.encoded.map_or(body.plain, |encoded| encoded.bytes)), Some(holding))
            }
        }
    }
}

/// A request's body as it can be read.
pub(crate) struct RequestBody {
    pub(crate) plain: Bytes,
    /// As it came, if it came compressed.
    pub(crate) encoded: Option<Encoded>,
}

/// A body as the client compressed it: the upstream that it is for gets the same bytes.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    pub(crate) bytes: Bytes,
    /// The values of `Content-Encoding`.
    pub(crate) codings: Vec<HeaderValue>,
}

/// Reads a body of at most `[limits] body_bytes`, compressed and plain.
async fn read(
    headers: &HeaderMap,
    body: AnyBody,
    limits: &Limits,
    holding: &mut Holding,
) -> Result<RequestBody, Refusal> {
    let codings = Codings::of(headers).map_err(|unknown| Refusal::Encoding(unknown.to_string()))?;
    let cap = limits.body_bytes;
    let body = match read_up_to(body, cap, limits.idle, Some(holding)).await {
        Ok(Read::Whole(body)) => body,
        Ok(Read::Longer(..)) => return Err(Refusal::BodyTooLong(cap)),
        Ok(Read::NoRoom(..)) => return Err(Refusal::NoRoom(limits.held_bytes)),
        Err(error) => return Err(Refusal::BodyLost(error.to_string())),
    };
    if codings.is_empty() {
        return Ok(RequestBody { plain: body, encoded: None });
    }
    let plain = decode(&body, &codings, cap).await?;
    if !holding.grow(plain.len()) {
        return Err(Refusal::NoRoom(limits.held_bytes));
    }
    let codings = headers.get_all(header::CONTENT_ENCODING).iter().cloned().collect();
    Ok(RequestBody { plain, encoded: Some(Encoded { bytes: body, codings }) })
}

/// The plain body. What a few bytes would expand to is made only up to the limit.
async fn decode(body: &[u8], codings: &Codings, cap: usize) -> Result<Bytes, Refusal> {
    let mut decoder = Decoder::new(codings);
    decoder.push(body);
    decoder.end();
    let mut plain = BytesMut::new();
    for step in 1_usize.. {
        let piece = decoder.pull().map_err(|error| {
            Refusal::BadRequest(format!(
                "the request body cannot be decoded: {error}, as its Content-Encoding says; send it again, or send it uncompressed"
            ))
        })?;
        if piece.is_empty() {
            break;
        }
        if plain.len() + piece.len() > cap {
            return Err(Refusal::BodyTooLong(cap));
        }
        plain.extend_from_slice(&piece);
        if step.is_multiple_of(STEPS_AT_ONCE) {
            tokio::task::yield_now().await;
        }
    }
    Ok(plain.freeze())
}
