//! A part of an output: the request, its location in the output, and how it is shown (CX-5).

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use endmark_envelope::WarningKind;

use super::{PointerError, Span, resolve_pointer, value_path};
use crate::cap::{CapError, Capped, Capper, Limits, RequestedFormat, binary, cap};

/// Largest output in bytes for a pointer, because it must be read as a whole.
pub const MAX_POINTER_TARGET_BYTES: u64 = 256 << 20;

/// A part of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A page, counted from 1.
    Page(u64),
    /// Lines, counted from 1, inclusive.
    Lines(Span),
    /// Bytes, counted from 0; the end is exclusive.
    Bytes(Span),
    /// The value at a JSON Pointer.
    Pointer(String),
    /// The lines that match a regular expression.
    Grep(String),
}

/// Why the requested part does not exist or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The output has fewer pages.
    #[error("there is no page {page}: the output has {pages}, from 1")]
    NoPage {
        /// The requested page.
        page: u64,
        /// Number of pages.
        pages: u64,
    },
    /// The output has fewer lines.
    #[error("there is no line {line}: the output has {lines}, from 1")]
    NoLine {
        /// The requested line.
        line: u64,
        /// Number of lines.
        lines: u64,
    },
    /// The output has fewer bytes.
    #[error("byte {byte} is behind the end: the output has {bytes}")]
    NoByte {
        /// The requested byte.
        byte: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// The range is longer than the limit.
    #[error(
        "these are {} bytes, and at most {most} can be read at once: {from}:{} is the first part",
        to - from, from + most
    )]
    TooMany {
        /// The begin of the range.
        from: u64,
        /// The end of the range, exclusive.
        to: u64,
        /// The limit, in bytes.
        most: u64,
    },
    /// The pattern is invalid.
    #[error("{0}")]
    Pattern(String),
    /// The output is too large for a pointer.
    #[error("the output has {0} bytes, which is too large for a pointer: read it by bytes, lines or pattern")]
    TooLarge(u64),
    /// The pointer addresses nothing.
    #[error(transparent)]
    Pointer(#[from] PointerError),
}

impl PartError {
    /// Returns the stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoPage { .. } => "no_page",
            Self::NoLine { .. } | Self::NoByte { .. } | Self::TooMany { .. } => "bad_range",
            Self::Pattern(_) => "bad_pattern",
            Self::TooLarge(_) | Self::Pointer(_) => "bad_pointer",
        }
    }
}

/// A part that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Content of the part.
    pub content: Content,
    /// Location of the part in the output.
    pub place: Place,
}

/// Content of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Unchanged bytes, within the limit.
    Bytes(Vec<u8>),
    /// Lines or a value, capped like an output.
    Capped(Capped),
}

/// Location of a part in its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A page, with the number of pages and its bytes.
    Page {
        /// The page, from 1.
        page: u64,
        /// Number of pages.
        pages: u64,
        /// Bytes of the page.
        bytes: Range<u64>,
    },
    /// Bytes.
    Bytes(Range<u64>),
    /// Lines, counted from 1, inclusive.
    Lines([u64; 2]),
    /// The value at the pointer.
    Value,
    /// Number of matching lines.
    Matches(u64),
}

impl Span {
    /// Resolves this span in an output of `lines` lines.
    ///
    /// A begin outside the output is an error. An end outside the output means the last line.
    pub fn resolve_lines(self, lines: u64) -> Result<[u64; 2], PartError> {
        let from = self.from.unwrap_or(1);
        if from == 0 || from > lines {
            return Err(PartError::NoLine { line: from, lines });
        }
        Ok([from, self.to.unwrap_or(lines).min(lines)])
    }

    /// Resolves this span in an output of `bytes` bytes.
    ///
    /// The range may have at most `most` bytes in any unit, because each character or token has at least one byte.
    pub fn resolve_bytes(self, bytes: u64, most: usize) -> Result<Range<u64>, PartError> {
        let (from, most) = (self.from.unwrap_or(0), most as u64);
        if from >= bytes {
            return Err(PartError::NoByte { byte: from, bytes });
        }
        let to = self.to.unwrap_or(bytes).min(bytes);
        if to - from > most { Err(PartError::TooMany { from, to, most }) } else { Ok(from..to) }
    }
}

impl Excerpt {
    /// Reads the value at a pointer in an output, capped as JSON.
    pub fn from_pointer(output: &[u8], pointer: &str, limits: &Limits) -> Result<Self, ExcerptError> {
        let text = str::from_utf8(output).map_err(|_| PartError::from(PointerError::NotJson))?;
        let value = resolve_pointer(text, pointer).map_err(PartError::from)?;
        let mut capper = Capper::new(RequestedFormat::Json, limits.clone())?.with_path(value_path());
        capper.push(value.as_bytes())?;
        Ok(Self { content: Content::Capped(capper.finish()?), place: Place::Value })
    }

    /// Returns the part as text, for clients that can read only text.
    ///
    /// Bytes that are not UTF-8 are shown as in a capped output. Binary data is shown as Base64 if it fits. Notices follow
    /// the text.
    ///
    /// # Errors
    /// [`CapError`] if the limits leave no room.
    pub fn text(&self, limits: &Limits) -> Result<String, CapError> {
        match &self.content {
            Content::Capped(capped) => Ok(with_notices(capped)),
            Content::Bytes(bytes) => match str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => display_bytes(bytes, limits),
            },
        }
    }

    /// Returns the text for a model, with the location if the model needs it.
    ///
    /// # Errors
    /// [`CapError`] if the limits leave no room.
    pub fn to_model_text(&self, limits: &Limits) -> Result<String, CapError> {
        let text = self.text(limits)?;
        Ok(match &self.place {
            Place::Page { page, pages, .. } if *pages > 1 => format!("{text}\n[page {page} of {pages}]"),
            Place::Matches(0) => "[no line matches]".to_owned(),
            _ => text,
        })
    }
}

/// Why a part cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExcerptError {
    /// The output does not have the requested part.
    #[error(transparent)]
    Part(#[from] PartError),
    /// The part cannot be capped.
    #[error(transparent)]
    Cap(#[from] CapError),
}

/// Returns bytes that are not UTF-8 in a textual form.
fn display_bytes(bytes: &[u8], limits: &Limits) -> Result<String, CapError> {
    let base64_bytes = bytes.len().div_ceil(3) * 4;
    if binary(bytes).is_some() && base64_bytes <= limits.most {
        return Ok(format!("[this part is not text; in Base64:]\n{}", STANDARD.encode(bytes)));
    }
    // The bytes are already within the limit, so `cap` only detects their format.
    let limits = Limits { max_items: usize::MAX, handle: None, ..limits.clone() };
    Ok(with_notices(&cap(bytes, RequestedFormat::Auto, &limits)?))
}

/// Returns a capped text followed by its notices.
fn with_notices(capped: &Capped) -> String {
    let notices = capped.warnings.iter().filter(|warning| warning.kind == WarningKind::Notice);
    notices.fold(capped.text.clone(), |text, notice| format!("{text}\n[{}]", notice.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_within_the_output_or_an_error() {
        let span = |from, to| Span { from, to };
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
    fn non_text_content_is_identified() {
        let limits = Limits { most: 100, ..Limits::default() };
        let text = |bytes: &[u8]| {
            let content = Content::Bytes(bytes.to_vec());
            Excerpt { content, place: Place::Bytes(0..bytes.len() as u64) }.text(&limits).unwrap()
        };
        assert_eq!(text(b"as it is\n"), "as it is\n");
        let foreign = text(b"caf\xE9 au lait, and more of it\n");
        assert_eq!(
            foreign,
            "caf\u{FFFD} au lait, and more of it\n\n[1 places that are no UTF-8 are shown as U+FFFD]"
        );
        assert!(text(b"\x7FELF\xFF\x00").ends_with("in Base64:]\nf0VMRv8A"));
        let large = [b"\x7FELF".as_slice(), &[0xFF; 90]].concat();
        assert_eq!(text(&large), "[… 94 bytes of ELF program are not shown …]");
        let page = Place::Page { page: 2, pages: 3, bytes: 0..1 };
        let page = Excerpt { content: Content::Bytes(b"x".to_vec()), place: page };
        assert_eq!(page.to_model_text(&limits).unwrap(), "x\n[page 2 of 3]");
    }
}
