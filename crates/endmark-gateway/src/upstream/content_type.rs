//! Determines the content type of a response if the upstream declares none or a wrong one.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use endmark_wire::json::without_byte_order_mark;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::ReadError;
use crate::body::{AnyBody, failing_body, with_prefix};

/// Maximum bytes of blank lines that are read before giving up.
const BLANK_LIMIT_BYTES: usize = 4096;

/// The possible beginnings of a line in an event stream: field names, or the colon of a comment.
const LINE_BEGINNINGS: [&[u8]; 5] = [b"data", b"event", b"id", b"retry", b":"];

/// Wrong content types that some servers declare for streams. JSON never begins like an event stream.
const WRONG_CONTENT_TYPES: [&str; 2] = ["application/json", "text/plain"];

/// Sets the event-stream content type of a response to a request for a stream. This is done if the upstream
/// declares no type, JSON or text, but the body begins like an event stream. Client libraries can then parse
/// it. `time_limit` limits how long the beginning may take.
///
/// # Errors
/// [`ReadError`] if nothing arrives in time, or if the response has no type and breaks off.
pub(crate) async fn with_stream_type(
    answer: Response<AnyBody>,
    time_limit: Duration,
) -> Result<Response<AnyBody>, ReadError> {
    let has_content_type = answer.headers().contains_key(header::CONTENT_TYPE);
    if has_content_type && !may_have_wrong_type(answer.headers()) {
        return Ok(answer);
    }
    let (mut head, mut body) = answer.into_parts();
    let mut read = BytesMut::new();
    while begins_like_events(&read).is_none() && read.len() < BLANK_LIMIT_BYTES {
        match timeout(time_limit, body.frame()).await {
            Ok(Some(Ok(frame))) => read.extend_from_slice(&frame.into_data().unwrap_or_default()),
            // Nothing contradicts the declared type, so accept it. The reader will notice how the body ends.
            Ok(None) if has_content_type => break,
            Ok(Some(Err(error))) if has_content_type => {
                body = failing_body(error);
                break;
            }
            // The body is completely empty.
            Ok(None) if read.trim_ascii().is_empty() => {
                return Err(ReadError::Broken("it ended before its first event".into()));
            }
            Ok(None) => break,
            Ok(Some(Err(error))) => return Err(ReadError::Broken(error)),
            Err(_) => return Err(ReadError::Stalled(time_limit)),
        }
    }
    if begins_like_events(&read) == Some(true) {
        head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    }
    Ok(Response::from_parts(head, with_prefix(Bytes::from(read), body)))
}

fn may_have_wrong_type(headers: &HeaderMap) -> bool {
    let called =
        headers.get(header::CONTENT_TYPE).and_then(|called| called.to_str().ok()).unwrap_or_default();
    let kind = called.split(';').next().unwrap_or_default().trim();
    WRONG_CONTENT_TYPES.iter().any(|misnomer| kind.eq_ignore_ascii_case(misnomer))
}

/// Whether a response that begins like this is an event stream. `None` if more bytes are needed.
fn begins_like_events(read: &[u8]) -> Option<bool> {
    let read = without_byte_order_mark(read).trim_ascii_start();
    if LINE_BEGINNINGS.iter().any(|field| read.starts_with(field)) {
        return Some(true);
    }
    let may_become_one = LINE_BEGINNINGS.iter().any(|field| field.starts_with(read));
    (!may_become_one && !"\u{feff}".as_bytes().starts_with(read)).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_detected_by_its_first_line() {
        for stream in ["data: {}", "event: a", "\n: hello", "id: 1", "retry: 3", "\u{feff}data:"] {
            assert_eq!(begins_like_events(stream.as_bytes()), Some(true), "{stream}");
        }
        for other in ["{\"a\": 1}", "[{}]", "<html>", "dab", "Not found"] {
            assert_eq!(begins_like_events(other.as_bytes()), Some(false), "{other}");
        }
        for start in ["", "\n", "d", "dat", "re", "i"] {
            assert_eq!(begins_like_events(start.as_bytes()), None, "{start}");
        }
    }
}
