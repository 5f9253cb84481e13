//! Parses and decodes content codings (RFC 9110, section 8.4), which are compressions of a body.
//!
//! A [`Decoder`] receives compressed bytes and returns decoded pieces of limited size. A compressed stream
//! can therefore be forwarded event by event, and a decompression bomb does not fill the memory.

mod body;
mod coding_decoders;
mod decoder;

pub(crate) use body::decode;
pub(crate) use decoder::Decoder;

use http::header::{self, HeaderMap};

/// The supported codings, as in `Accept-Encoding`.
pub(crate) const SUPPORTED_CODINGS: &str = "gzip, deflate, br, zstd";

/// Maximum number of nested codings. Two or three may be a harmless misconfiguration, but more indicate a
/// decompression bomb.
const MAX_CODINGS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// The codings of a body in the order in which they were applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Codings(Vec<Coding>);

/// Error of a message whose content codings are not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnknownCoding {
    /// A coding is not supported.
    #[error("{0}")]
    Name(String),
    /// There are too many nested codings.
    #[error("{0} nested codings")]
    TooMany(usize),
}

impl Codings {
    /// Reads the codings from the headers of a message.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, UnknownCoding> {
        let mut codings = Vec::new();
        for value in headers.get_all(header::CONTENT_ENCODING) {
            for name in String::from_utf8_lossy(value.as_bytes()).split(',').map(str::trim) {
                match name.to_ascii_lowercase().as_str() {
                    "" | "identity" => {}
                    "gzip" | "x-gzip" => codings.push(Coding::Gzip),
                    "deflate" => codings.push(Coding::Deflate),
                    "br" => codings.push(Coding::Brotli),
                    "zstd" => codings.push(Coding::Zstd),
                    _ => return Err(UnknownCoding::Name(name.to_owned())),
                }
            }
        }
        if codings.len() > MAX_CODINGS {
            return Err(UnknownCoding::TooMany(codings.len()));
        }
        Ok(Self(codings))
    }

    /// Whether the body is not compressed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests;
