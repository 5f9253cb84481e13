//! Makes the headers of a response agree with the actual end of its body.

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, HeaderValue, TRAILER, TRANSFER_ENCODING};

/// Removes every header that declares where a response ends. The HTTP library then declares the length if it
/// is known, or sends chunks. Therefore no header can contradict the actual end of the body.
///
/// A response to HEAD keeps its length, which describes a body that is not sent. `library_sets_length` means
/// that the library writes that header.
pub(super) fn frame_by_body(headers: &mut HeaderMap, is_head: bool, library_sets_length: bool) {
    let length = if is_head && !library_sets_length { consistent_length(headers) } else { None };
    for name in [CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER] {
        headers.remove(name);
    }
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
}

/// Returns the length if all length fields agree. One field may contain the same value several times.
fn consistent_length(headers: &HeaderMap) -> Option<u64> {
    let values = || headers.get_all(CONTENT_LENGTH).iter().map(HeaderValue::as_bytes);
    let mut lengths = values().flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let first = lengths.next().filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let length = str::from_utf8(first).ok()?.parse().ok()?;
    lengths.all(|other| other == first).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_head_response_keeps_its_content_length() {
        for (values, is_head, knows_length, left) in [
            (&["5"][..], false, false, None),
            (&["5"], false, true, None),
            (&["5"], true, true, None),
            (&["5"], true, false, Some("5")),
            (&["5", "5, 5"], true, false, Some("5")),
            (&["5", "6"], true, false, None),
            (&["+5"], true, false, None),
            (&["5, "], true, false, None),
            (&["99999999999999999999"], true, false, None),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_LENGTH, HeaderValue::from_static(value));
            }
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            frame_by_body(&mut headers, is_head, knows_length);
            let length = headers.remove(CONTENT_LENGTH);
            assert_eq!(length.as_ref().map(|value| value.to_str().unwrap()), left, "{values:?}");
            assert!(headers.is_empty(), "{headers:?}");
        }
    }
}
