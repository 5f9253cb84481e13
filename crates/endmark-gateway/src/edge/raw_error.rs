//! Builds the error response for a request that could not be parsed. It bypasses the HTTP library, which would only
//! close the connection or send a bare status.

use bytes::{BufMut, Bytes, BytesMut};
use http::header;

use crate::refusals::{Refusal, raw_response_parts};

/// Returns the complete response, after which the connection is closed.
pub(super) fn raw_error_response(refusal: &Refusal) -> Bytes {
    let (status, retry_after, body) = raw_response_parts(refusal);
    let reason = status.canonical_reason().unwrap_or("Refused");
    let mut bytes = BytesMut::with_capacity(body.len() + 160);
    bytes.put_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).as_bytes());
    let mut field = |name: header::HeaderName, value: &str| {
        bytes.put_slice(format!("{name}: {value}\r\n").as_bytes());
    };
    field(header::CONTENT_TYPE, "application/json");
    field(header::CONTENT_LENGTH, &body.len().to_string());
    if let Some(seconds) = retry_after {
        field(header::RETRY_AFTER, &seconds.to_string());
    }
    field(header::CONNECTION, "close");
    bytes.put_slice(b"\r\n");
    bytes.put_slice(&body);
    bytes.freeze()
}
