//! Parts of an output (CX-5): which part is requested, where it is in the output, and its content.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use endmark_envelope::WarningKind;

use super::{NumberRange, PointerError, resolve_pointer, value_path};
use crate::cap::{CapError, CappedValue, Capper, Limits, RequestedFormat, binary_format_name, cap};

/// Maximum size of an output that can be searched by a JSON Pointer, in bytes. Such an output must be read
/// completely.
pub const MAX_POINTER_TARGET_BYTES: u64 = 256 << 20;

/// The part of an output that is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A page, counted from 1.
    Page(u64),
    /// Lines, counted from 1. The end is included.
    Lines(NumberRange),
    /// Bytes, counted from 0. The end is excluded.
    Bytes(NumberRange),
    /// The value at a JSON Pointer.
    Pointer(String),
    /// The lines that match a regular expression.
    Grep(String),
}

/// Error of a part that does not exist or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The output does not have this page.
    #[error("there is no page {page}: the output has {pages}, from 1")]
    NoPage {
        /// The requested page.
        page: u64,
        /// The number of pages.
        pages: u64,
    },
    /// The output does not have this line.
    #[error("there is no line {line}: the output has {lines}, from 1")]
    NoLine {
        /// The requested line.
        line: u64,
        /// The number of lines.
        lines: u64,
    },
    /// The output does not have this byte.
    #[error("byte {byte} is after the end: the output has {bytes} bytes")]
    NoByte {
        /// The requested byte.
        byte: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// The range has more bytes than can be read at once.
    #[error(
        "these are {} bytes, and at most {most} can be read at once: {from}:{} is the first part",
        to - from, from + most
    )]
    TooManyBytes {
        /// The start of the range.
        from: u64,
        /// The end of the range, excluded.
        to: u64,
        /// The maximum size in bytes.
        most: u64,
    },
    /// The regular expression is invalid.
    #[error("{0}")]
    Pattern(String),
    /// The output is too large for a JSON Pointer. The number is its size in bytes.
    #[error("the output has {0} bytes, which is too large for a pointer: read it by bytes, lines or pattern")]
    TooLarge(u64),
    /// The JSON Pointer is invalid or does not match a value.
    #[error(transparent)]
    Pointer(#[from] PointerError),
}

impl PartError {
    /// Returns the stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoPage { .. } => "no_page",
            Self::NoLine { .. } | Self::NoByte { .. } | Self::TooManyBytes { .. } => "bad_range",
            Self::Pattern(_) => "bad_pattern",
            Self::TooLarge(_) | Self::Pointer(_) => "bad_pointer",
        }
    }
}

/// A part that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The content of the part.
    pub content: PartContent,
    /// Where the part is in the output.
    pub location: PartLocation,
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartContent {
    /// Bytes of the output, unchanged and within the limit.
    Bytes(Vec<u8>),
    /// Lines or a JSON value, capped like an output.
    Capped(CappedValue),
}

/// Where a part is in its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartLocation {
    /// A page, with its byte range and the number of pages.
    Page {
        /// The number of the page, counted from 1.
        page: u64,
        /// The number of pages.
        pages: u64,
        /// The byte range of the page.
        bytes: Range<u64>,
    },
    /// A byte range.
    Bytes(Range<u64>),
    /// Lines, counted from 1. The end is included.
    Lines([u64; 2]),
    /// The value at the JSON Pointer.
    Value,
    /// The number of matching lines.
    Matches(u64),
}

impl NumberRange {
    /// Returns the range of lines in an output with this many lines.
    ///
    /// Fails if the start is outside the output. If the end is outside the output, the last line is used.
    pub fn resolve_lines(self, lines: u64) -> Result<[u64; 2], PartError> {
        let from = self.from.unwrap_or(1);
        if from == 0 || from > lines {
            return Err(PartError::NoLine { line: from, lines });
        }
        Ok([from, self.to.unwrap_or(lines).min(lines)])
    }

    /// Returns the byte range in an output with this many bytes.
    ///
    /// The range may have at most `most` bytes, whatever unit the limit has, because each character or token
    /// has at least one byte.
    pub fn resolve_bytes(self, bytes: u64, most: usize) -> Result<Range<u64>, PartError> {
        let (from, most) = (self.from.unwrap_or(0), most as u64);
        if from >= bytes {
            return Err(PartError::NoByte { byte: from, bytes });
        }
        let to = self.to.unwrap_or(bytes).min(bytes);
        if to - from > most { Err(PartError::TooManyBytes { from, to, most }) } else { Ok(from..to) }
    }
}

impl Excerpt {
    /// Returns the value at a JSON Pointer in an output, capped as JSON.
    pub fn from_pointer(output: &[u8], pointer: &str, limits: &Limits) -> Result<Self, ExcerptError> {
        let text = str::from_utf8(output).map_err(|_| PartError::from(PointerError::NotJson))?;
        let value = resolve_pointer(text, pointer).map_err(PartError::from)?;
        let mut capper = Capper::new(RequestedFormat::Json, limits.clone())?.with_path(value_path());
        capper.push(value.as_bytes())?;
        Ok(Self { content: PartContent::Capped(capper.finish()?), location: PartLocation::Value })
    }

    /// Returns the part as text, for clients that can only read text.
    ///
    /// Bytes that are not UTF-8 are shown as in a capped output. Binary data is shown as Base64 if that fits.
    /// Notices follow the text.
    ///
    /// # Errors
    /// [`CapError`] if the limits leave no room.
    pub fn text(&self, limits: &Limits) -> Result<String, CapError> {
        match &self.content {
            PartContent::Capped(capped) => Ok(with_notices(capped)),
            PartContent::Bytes(bytes) => match str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => display_bytes(bytes, limits),
            },
        }
    }

    /// Returns the text for a model. States where the part is in the output if the model needs that.
    ///
    /// # Errors
    /// [`CapError`] if the limits leave no room.
    pub fn to_model_text(&self, limits: &Limits) -> Result<String, CapError> {
        let text = self.text(limits)?;
        Ok(match &self.location {
            PartLocation::Page { page, pages, .. } if *pages > 1 => {
                format!("{text}\n[page {page} of {pages}]")
            }
            PartLocation::Matches(0) => "[no line matches]".to_owned(),
            _ => text,
        })
    }
}

/// Error of a part that cannot be returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExcerptError {
    /// The output does not have the requested part.
    #[error(transparent)]
    Part(#[from] PartError),
    /// The part cannot be capped within the limits.
    #[error(transparent)]
    Cap(#[from] CapError),
}

/// Returns bytes as text, even if they are not UTF-8.
fn display_bytes(bytes: &[u8], limits: &Limits) -> Result<String, CapError> {
    let base64_bytes = bytes.len().div_ceil(3) * 4;
    if binary_format_name(bytes).is_some() && base64_bytes <= limits.most {
        return Ok(format!("[this part is not text; in Base64:]\n{}", STANDARD.encode(bytes)));
    }
    // The bytes are already within the limit. `cap` only detects their format.
    let limits = Limits { max_items: usize::MAX, handle: None, ..limits.clone() };
    Ok(with_notices(&cap(bytes, RequestedFormat::Auto, &limits)?))
}

/// Returns a capped text, followed by its notices.
fn with_notices(capped: &CappedValue) -> String {
    let notices = capped.warnings.iter().filter(|warning| warning.kind == WarningKind::Notice);
    notices.fold(capped.text.clone(), |text, notice| format!("{text}\n[{}]", notice.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_outside_the_output_is_an_error() {
        let span = |from, to| NumberRange { from, to };
        assert_eq!(span(Some(3), Some(99)).resolve_lines(7), Ok([3, 7]));
        assert_eq!(span(None, Some(2)).resolve_lines(7), Ok([1, 2]));
        for (from, lines) in [(0, 7), (8, 7), (1, 0)] {
            assert_eq!(
                span(Some(from), None).resolve_lines(lines),
                Err(PartError::NoLine { line: from, lines })
            );
        }
        assert_eq!(span(Some(2), None).resolve_bytes(9, 80), Ok(2..9));
        // An empty range is valid and has no content.
        assert_eq!(span(Some(2), Some(2)).resolve_bytes(9, 80), Ok(2..2));
        assert!(span(Some(9), None).resolve_bytes(9, 80).is_err());
        let many = span(None, None).resolve_bytes(900, 80).unwrap_err().to_string();
        assert!(many.contains("900 bytes") && many.ends_with("0:80 is the first part"), "{many}");
    }

    #[test]
    fn binary_content_is_shown_as_base64_or_named() {
        let limits = Limits { most: 100, ..Limits::default() };
        let text = |bytes: &[u8]| {
            let content = PartContent::Bytes(bytes.to_vec());
            Excerpt { content, location: PartLocation::Bytes(0..bytes.len() as u64) }.text(&limits).unwrap()
        };
        assert_eq!(text(b"as it is\n"), "as it is\n");
        let foreign = text(b"caf\xE9 au lait, and more of it\n");
        assert_eq!(
            foreign,
            "caf\u{FFFD} au lait, and more of it\n\n[1 invalid UTF-8 sequences are shown as U+FFFD]"
        );
        assert!(text(b"\x7FELF\xFF\x00").ends_with("in Base64:]\nf0VMRv8A"));
        let large = [b"\x7FELF".as_slice(), &[0xFF; 90]].concat();
        assert_eq!(text(&large), "[… 94 bytes of ELF program are not shown …]");
        let page = PartLocation::Page { page: 2, pages: 3, bytes: 0..1 };
        let page = Excerpt { content: PartContent::Bytes(b"x".to_vec()), location: page };
        assert_eq!(page.to_model_text(&limits).unwrap(), "x\n[page 2 of 3]");
    }
}
