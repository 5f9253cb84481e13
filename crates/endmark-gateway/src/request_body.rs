//! Reads and decompresses the body of a request.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use hyper::body::Body as _;

use crate::admission::{BytesReservation, HeldBytes};
use crate::body::{AnyBody, full};
use crate::coding::{Codings, Decoder};
use crate::refusals::Refusal;
use crate::settings::Limits;
use crate::upstream::{PartialBody, read_up_to};

/// Number of decoding steps before another request gets its turn, about a millisecond of work.
const STEPS_BEFORE_YIELD: usize = 32;

/// The body of a request on its way through the stages. It is read at most once.
pub(crate) enum IncomingBody {
    /// The body has not been read yet.
    Arriving(AnyBody),
    /// The body was read in order to choose an upstream, and is kept in memory.
    Read(RequestBody, BytesReservation),
}

impl IncomingBody {
    /// Whether the request certainly has no body.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Arriving(body) => body.is_end_stream(),
            Self::Read(body, _) => {
                body.encoded.as_ref().map_or(&body.plain, |encoded| &encoded.bytes).is_empty()
            }
        }
    }

    /// Reads the body to its end. Returns it with the memory that is reserved for it.
    pub(crate) async fn read(
        self,
        headers: &HeaderMap,
        limits: &Limits,
        held: &Arc<HeldBytes>,
    ) -> Result<(RequestBody, BytesReservation), Refusal> {
        match self {
            Self::Read(body, holding) => Ok((body, holding)),
            Self::Arriving(body) => {
                let mut holding = held.new_reservation(limits.held_bytes);
                let body = read(headers, body, limits, &mut holding).await?;
                Ok((body, holding))
            }
        }
    }

    /// Like `read`, but also accepts a body with an unknown or invalid encoding, because the gateway does not
    /// need its content.
    pub(crate) async fn read_if_possible(
        self,
        headers: &HeaderMap,
        limits: &Limits,
        held: &Arc<HeldBytes>,
    ) -> Result<(RequestBody, BytesReservation), Refusal> {
        let body = match self {
            Self::Read(body, holding) => return Ok((body, holding)),
            Self::Arriving(body) => body,
        };
        let mut holding = held.new_reservation(limits.held_bytes);
        let bytes = read_bytes(body, limits, &mut holding).await?;
        let body = match Codings::from_headers(headers) {
            Ok(codings) => decode_body(headers, bytes.clone(), &codings, limits, &mut holding).await,
            Err(unknown) => Err(Refusal::Encoding(unknown.to_string())),
        };
        match body {
            Err(Refusal::BadRequest(_) | Refusal::Encoding(_)) => Ok((
                RequestBody { plain: Bytes::new(), encoded: Some(compressed_body(headers, bytes)) },
                holding,
            )),
            body => Ok((body?, holding)),
        }
    }

    /// Returns the original bytes, and the memory reserved for them until they are sent.
    pub(crate) fn into_original(self) -> (AnyBody, Option<BytesReservation>) {
        match self {
            Self::Arriving(body) => (body, None),
            Self::Read(body, holding) => {
                (full(body.encoded.map_or(body.plain, |encoded| encoded.bytes)), Some(holding))
            }
        }
    }
}

/// The decompressed body of a request.
pub(crate) struct RequestBody {
    pub(crate) plain: Bytes,
    /// The compressed body, if it arrived compressed.
    pub(crate) encoded: Option<CompressedBody>,
}

/// A body as compressed by the client. The original upstream gets the same bytes.
#[derive(Debug, Clone)]
pub(crate) struct CompressedBody {
    pub(crate) bytes: Bytes,
    /// The values of `Content-Encoding`.
    pub(crate) codings: Vec<HeaderValue>,
}

/// Reads a body. Its compressed and its decompressed size must not exceed `[limits] body_bytes`.
async fn read(
    headers: &HeaderMap,
    body: AnyBody,
    limits: &Limits,
    holding: &mut BytesReservation,
) -> Result<RequestBody, Refusal> {
    let codings = Codings::from_headers(headers).map_err(|unknown| Refusal::Encoding(unknown.to_string()))?;
    let bytes = read_bytes(body, limits, holding).await?;
    decode_body(headers, bytes, &codings, limits, holding).await
}

/// Reads the raw bytes of a body.
async fn read_bytes(
    body: AnyBody,
    limits: &Limits,
    holding: &mut BytesReservation,
) -> Result<Bytes, Refusal> {
    let cap = limits.body_bytes;
    match read_up_to(body, cap, limits.idle, Some(holding)).await {
        Ok(PartialBody::Whole(body)) => Ok(body),
        Ok(PartialBody::Longer(..)) => Err(Refusal::BodyTooLong(cap)),
        Ok(PartialBody::NoRoom(..)) => Err(Refusal::NoRoom(limits.held_bytes)),
        Err(error) => Err(Refusal::BodyLost(error.to_string())),
    }
}

/// Decodes the bytes of a body.
async fn decode_body(
    headers: &HeaderMap,
    bytes: Bytes,
    codings: &Codings,
    limits: &Limits,
    holding: &mut BytesReservation,
) -> Result<RequestBody, Refusal> {
    if codings.is_empty() {
        return Ok(RequestBody { plain: bytes, encoded: None });
    }
    let plain = decode(&bytes, codings, limits.body_bytes).await?;
    if !holding.grow(plain.len()) {
        return Err(Refusal::NoRoom(limits.held_bytes));
    }
    Ok(RequestBody { plain, encoded: Some(compressed_body(headers, bytes)) })
}

fn compressed_body(headers: &HeaderMap, bytes: Bytes) -> CompressedBody {
    CompressedBody { bytes, codings: headers.get_all(header::CONTENT_ENCODING).iter().cloned().collect() }
}

/// Decompresses a body. The output never exceeds `cap`.
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
        if step.is_multiple_of(STEPS_BEFORE_YIELD) {
            tokio::task::yield_now().await;
        }
    }
    Ok(plain.freeze())
}
