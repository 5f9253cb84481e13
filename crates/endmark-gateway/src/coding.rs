//! Content codings (RFC 9110, section 8.4): how a body is compressed, and how to read it.
//!
//! A [`Decoder`] receives the bytes so far and returns what can be decoded of them, a piece at a time. A compressed
//! stream is passed on event by event, and memory does not grow with what a few bytes may expand to.

mod body;
mod decoder;
mod units;

pub(crate) use body::decoded;
pub(crate) use decoder::Decoder;

use http::header::{self, HeaderMap};

/// The supported codings, as in `Accept-Encoding`.
pub(crate) const UNDERSTOOD: &str = "gzip, deflate, br, zstd";

/// The most nested codings. A second one is a misconfiguration that still works; more are a decompression bomb.
const MAX_CODINGS: usize = 3;

/// One way to compress a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// The codings of a body, in the order of their application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Codings(Vec<Coding>);

/// A body that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnknownCoding {
    /// The coding is not supported.
    #[error("{0}")]
    Name(String),
    /// Too many nested codings.
    #[error("{0} codings one upon the other")]
    TooMany(usize),
}

impl Codings {
    /// Reads the codings from the headers of a message.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, UnknownCoding> {
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
