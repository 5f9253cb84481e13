//! Content codings (RFC 9110, section 8.4): how a body was compressed, and how it is read all the same.
//!
//! A [`Decoder`] is fed what came and gives what can be read of it so far, a piece at a time: a stream that is
//! compressed flows event by event, and nobody's memory grows by what a few bytes may expand to.

mod body;
mod decoder;
mod units;

pub(crate) use body::decoded;
pub(crate) use decoder::Decoder;

use http::header::{self, HeaderMap};

/// What is understood, as `Accept-Encoding` says it.
pub(crate) const UNDERSTOOD: &str = "gzip, deflate, br, zstd";

/// Codings one upon the other. A second one is somebody's misconfiguration that still works; more are a bomb.
const MAX_CODINGS: usize = 3;

/// One way to compress a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// What a body was compressed with, in the order in which that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Codings(Vec<Coding>);

/// A body that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnknownCoding {
    /// Nobody here knows that coding.
    #[error("{0}")]
    Name(String),
    /// Too many, one upon the other.
    #[error("{0} codings one upon the other")]
    TooMany(usize),
}

impl Codings {
    /// What the headers of a message say of its body.
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

    /// Whether the body is plain.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests;
