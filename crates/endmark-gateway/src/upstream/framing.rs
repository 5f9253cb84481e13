//! Determines how an HTTP/1.1 upstream declares the end of its response.

use http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use http::{Method, StatusCode};

/// How reliably an upstream declares the end of its response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// All readers find the same end.
    Clear,
    /// The body can be read, but another reader of the same bytes might find a different end. The next bytes on the
    /// connection may belong to this response, so the connection must not be reused.
    Contradictory,
    /// The body has a transfer coding that is not supported.
    TransferCoded(String),
}

impl Framing {
    /// Examines the headers of a response to a request with this method.
    ///
    /// The HTTP library decodes only `chunked`, and only as the last coding. With any other coding it would
    /// return the body encoded, and without the header that names the coding.
    pub(super) fn from_response(method: &Method, status: StatusCode, headers: &HeaderMap) -> Self {
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        let has_length = headers.contains_key(CONTENT_LENGTH);
        let is_without_body =
            *method == Method::HEAD || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        match (codings.next(), codings.next()) {
            (None, _) if is_without_body && declares_nonzero_length(headers) => Self::Contradictory,
            (None, _) => Self::Clear,
            (Some(_), _) if is_without_body => Self::Contradictory,
            (Some(only), None) if only.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => {
                if has_length {
                    Self::Contradictory
                } else {
                    Self::Clear
                }
            }
            _ => {
                let values = headers.get_all(TRANSFER_ENCODING).iter();
                let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
                Self::TransferCoded(values.join(", "))
            }
        }
    }
}

/// Whether a response without a body declares a length. Some servers also send such a body.
fn declares_nonzero_length(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_LENGTH).iter().any(|length| length.as_bytes().iter().any(|byte| *byte != b'0'))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn conflicting_body_lengths_are_ambiguous() {
        let length = ("content-length", "5");
        let of = |method: Method, status: u16, pairs: &[(&'static str, &'static str)]| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            Framing::from_response(&method, StatusCode::from_u16(status).unwrap(), &headers)
        };
        let coding = |value: &'static str| ("transfer-encoding", value);
        assert_eq!(of(Method::POST, 200, &[]), Framing::Clear);
        assert_eq!(of(Method::POST, 200, &[length]), Framing::Clear);
        assert_eq!(of(Method::POST, 200, &[coding("Chunked ")]), Framing::Clear);
        assert_eq!(of(Method::POST, 200, &[coding("chunked"), length]), Framing::Contradictory);
        for value in ["gzip", "gzip, chunked", "chunked, chunked", "chunked,", "identity", ""] {
            assert_eq!(of(Method::POST, 200, &[coding(value)]), Framing::TransferCoded(value.to_owned()));
        }
        let twice = [coding("chunked"), coding("chunked")];
        assert_eq!(of(Method::POST, 200, &twice), Framing::TransferCoded("chunked, chunked".to_owned()));
        for (method, status) in [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304)] {
            assert_eq!(of(method.clone(), status, &[]), Framing::Clear);
            assert_eq!(of(method.clone(), status, &[("content-length", "0")]), Framing::Clear);
            assert_eq!(of(method.clone(), status, &[length]), Framing::Contradictory);
            assert_eq!(of(method, status, &[coding("chunked")]), Framing::Contradictory);
        }
    }
}
