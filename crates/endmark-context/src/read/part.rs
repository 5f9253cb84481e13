//! A part of an output: what is asked for, where in the output that is, and how it is shown. (CX-5)

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use endmark_envelope::WarningKind;

use super::{PointerError, Span, pointed_to, value_path};
use crate::cap::{Asked, CapError, Capped, Capper, Limits, binary, cap};

/// The largest output that a pointer can point into, in bytes: it is read as a whole.
pub const LARGEST_POINTED_INTO_BYTES: u64 = 256 << 20;

/// A part of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A page, from 1.
    Page(u64),
    /// Lines, from 1, both ends among them.
    Lines(Span),
    /// Bytes, from 0, the end not among them.
    Bytes(Span),
    /// What a JSON Pointer points to.
    Pointer(String),
    /// The lines that match a regular expression.
    Grep(String),
}

/// Why an output has no such part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// It has fewer pages.
    #[error("there is no page {page}: the output has {pages}, from 1")]
    NoPage {
        /// The page.
        page: u64,
        /// How many there are.
        pages: u64,
    },
    /// It has fewer lines.
    #[error("there is no line {line}: the output has {lines}, from 1")]
    NoLine {
        /// The line.
        line: u64,
        /// How many there are.
        lines: u64,
    },
    /// It has fewer bytes.
    #[error("byte {byte} is behind the end: the output has {bytes}")]
    NoByte {
        /// The byte.
        byte: u64,
        /// How many there are.
        bytes: u64,
    },
    /// The range is longer than the limit.
    #[error(
        "these are {} bytes, and at most {most} can be read at once: {from}:{} is the first part",
        to - from, from + most
    )]
    TooMany {
        /// Where the range begins.
        from: u64,
        /// Where it ends.
        to: u64,
        /// The limit.
        most: u64,
    },
    /// The pattern is none.
    #[error("{0}")]
    Pattern(String),
    /// The output is larger than what a pointer can point into.
    #[error("the output has {0} bytes, which is too large for a pointer: read it by bytes, lines or pattern")]
    TooLarge(u64),
    /// The pointer points to nothing.
    #[error(transparent)]
    Pointer(#[from] PointerError),
}

impl PartError {
    /// The code of the error, which stays the same.
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
    /// What is in it.
    pub content: Content,
    /// Where it stands in the output.
    pub place: Place,
}

/// What is in a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Bytes as they are, no more than the limit.
    Bytes(Vec<u8>),
    /// Lines or a value, capped as an output is.
    Capped(Capped),
}

/// Where a part stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A page of so many, with its bytes.
    Page {
        /// Which one, from 1.
        page: u64,
        /// How many there are.
        pages: u64,
        /// Its bytes.
        bytes: Range<u64>,
    },
    /// Bytes.
    Bytes(Range<u64>),
    /// Lines, from 1, both ends among them.
    Lines([u64; 2]),
    /// Wherever the pointer points to.
    Value,
    /// So many lines that match.
    Matches(u64),
}

impl Span {
    /// The lines that this is of so many: a beginning that is not there is an error, an end that is not there is the last.
    pub fn lines_of(self, lines: u64) -> Result<[u64; 2], PartError> {
        let from = self.from.unwrap_or(1);
        if from == 0 || from > lines {
            return Err(PartError::NoLine { line: from, lines });
        }
        Ok([from, self.to.unwrap_or(lines).min(lines)])
    }

    /// The bytes that this is of so many, at most as many as the limit counts; each character or token has one at least.
    pub fn bytes_of(self, bytes: u64, most: usize) -> Result<Range<u64>, PartError> {
        let (from, most) = (self.from.unwrap_or(0), most as u64);
        if from >= bytes {
            return Err(PartError::NoByte { byte: from, bytes });
        }
        let to = self.to.unwrap_or(bytes).min(bytes);
        if to - from > most { Err(PartError::TooMany { from, to, most }) } else { Ok(from..to) }
    }
}

impl Excerpt {
    /// What a pointer points to in an output, capped as JSON.
    pub fn pointed_to(output: &[u8], pointer: &str, limits: &Limits) -> Result<Self, ExcerptError> {
        let text = str::from_utf8(output).map_err(|_| PartError::from(PointerError::NotJson))?;
        let value = pointed_to(text, pointer).map_err(PartError::from)?;
        let mut capper = Capper::new(Asked::Json, limits.clone())?.called(value_path());
        capper.push(value.as_bytes())?;
        Ok(Self { content: Content::Capped(capper.finish()?), place: Place::Value })
    }

    /// The same as text, for who can read nothing else: bytes that are no UTF-8 are shown as those of an output are, and
    /// what is no text at all as Base64 where that has room. What has to be known of it stands behind it.
    ///
    /// # Errors
    /// [`CapError`] where the limits leave no room.
    pub fn text(&self, limits: &Limits) -> Result<String, CapError> {
        match &self.content {
            Content::Capped(capped) => Ok(noted(capped)),
            Content::Bytes(bytes) => match str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => shown(bytes, limits),
            },
        }
    }

    /// The same for a model, which is told in the text where the part stands.
    ///
    /// # Errors
    /// [`CapError`] where the limits leave no room.
    pub fn for_a_model(&self, limits: &Limits) -> Result<String, CapError> {
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
    /// The output has no such part.
    #[error(transparent)]
    Part(#[from] PartError),
    /// It cannot be capped.
    #[error(transparent)]
    Cap(#[from] CapError),
}

/// Bytes that are no UTF-8, as text.
fn shown(bytes: &[u8], limits: &Limits) -> Result<String, CapError> {
    let base64_bytes = bytes.len().div_ceil(3) * 4;
    if binary(bytes).is_some() && base64_bytes <= limits.most {
        return Ok(format!("[this part is no text; in Base64:]\n{}", STANDARD.encode(bytes)));
    }
    // They are within the limit: only what they are is to be found out.
    let limits = Limits { max_items: usize::MAX, handle: None, ..limits.clone() };
    Ok(noted(&cap(bytes, Asked::Auto, &limits)?))
}

/// A capped text with what is to be known of it and is not said in it.
fn noted(capped: &Capped) -> String {
    let notices = capped.warnings.iter().filter(|warning| warning.kind == WarningKind::Notice);
    notices.fold(capped.text.clone(), |text, notice| format!("{text}\n[{}]", notice.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_within_the_output_or_an_error() {
        let span = |from, to| Span { from, to };
        assert_eq!(span(Some(3), Some(99)).lines_of(7), Ok([3, 7]));
        assert_eq!(span(None, Some(2)).lines_of(7), Ok([1, 2]));
        for (from, lines) in [(0, 7), (8, 7), (1, 0)] {
            assert_eq!(span(Some(from), None).lines_of(lines), Err(PartError::NoLine { line: from, lines }));
        }
        assert_eq!(span(Some(2), None).bytes_of(9, 80), Ok(2..9));
        // A range of nothing is there, and has nothing in it.
        assert_eq!(span(Some(2), Some(2)).bytes_of(9, 80), Ok(2..2));
        assert!(span(Some(9), None).bytes_of(9, 80).is_err());
        let many = span(None, None).bytes_of(900, 80).unwrap_err().to_string();
        assert!(many.contains("900 bytes") && many.ends_with("0:80 is the first part"), "{many}");
    }

    #[test]
    fn what_is_no_text_is_shown_as_what_it_is() {
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
        assert_eq!(page.for_a_model(&limits).unwrap(), "x\n[page 2 of 3]");
    }
}
