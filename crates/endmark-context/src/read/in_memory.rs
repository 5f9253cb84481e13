//! Reads parts of an output that is in memory (CX-5).

use std::convert::Infallible;
use std::ops::Range;

use super::{Excerpt, ExcerptError, LineSelector, Pages, Part, PartContent, PartError, PartLocation};
use crate::cap::Limits;

/// Reads a part of an output within the limits.
///
/// Pages and byte ranges are returned unchanged. Lines and values are capped like an output.
///
/// ```
/// use endmark_context::{cap::Limits, read::{Part, read_part}};
///
/// let output = b"one\ntwo\nthree\n";
/// let limits = Limits::default();
/// let part = read_part(output, &Part::Grep("^t".to_owned()), &limits)?;
/// assert_eq!(part.text(&limits)?, "2:two\n3:three\n");
/// # Ok::<(), endmark_context::read::ExcerptError>(())
/// ```
///
/// # Errors
/// [`ExcerptError`] if the part does not exist, or the limits leave no room.
pub fn read_part(output: &[u8], part: &Part, limits: &Limits) -> Result<Excerpt, ExcerptError> {
    let bytes = output.len() as u64;
    match part {
        Part::Page(page) => {
            let pages = Pages { bytes, most_bytes: limits.most };
            let Ok(span) =
                pages.span(*page, |range| Ok::<_, Infallible>(byte_range(output, &range).to_vec()));
            let (page, pages) = (*page, pages.count());
            let span = span.ok_or(PartError::NoPage { page, pages })?;
            let content = PartContent::Bytes(byte_range(output, &span).to_vec());
            Ok(Excerpt { content, location: PartLocation::Page { page, pages, bytes: span } })
        }
        Part::Bytes(span) => {
            let range = span.resolve_bytes(bytes, limits.most)?;
            Ok(Excerpt {
                content: PartContent::Bytes(byte_range(output, &range).to_vec()),
                location: PartLocation::Bytes(range),
            })
        }
        Part::Lines(span) => {
            let lines = output.split_inclusive(|byte| *byte == b'\n').count() as u64;
            select_lines(output, LineSelector::line_range(span.resolve_lines(lines)?, limits)?)
        }
        Part::Grep(pattern) => select_lines(output, LineSelector::matching(pattern, limits)?),
        Part::Pointer(pointer) => Excerpt::from_pointer(output, pointer, limits),
    }
}

fn select_lines(output: &[u8], mut picking: LineSelector) -> Result<Excerpt, ExcerptError> {
    for (number, line) in (1..).zip(output.split_inclusive(|byte| *byte == b'\n')) {
        if picking.push_line(number, line)?.is_break() {
            break;
        }
    }
    Ok(picking.finish()?)
}

fn byte_range<'o>(output: &'o [u8], range: &Range<u64>) -> &'o [u8] {
    let place = |byte: u64| usize::try_from(byte).unwrap_or(usize::MAX).min(output.len());
    output.get(place(range.start)..place(range.end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_together_equal_the_output() {
        let lines: Vec<String> = (0..400).map(|line| format!("line {line} é\n")).collect();
        let output = lines.concat();
        let limits = Limits { most: 1_000, ..Limits::default() };
        let mut read = Vec::new();
        for page in 1.. {
            let Ok(part) = read_part(output.as_bytes(), &Part::Page(page), &limits) else { break };
            let PartContent::Bytes(bytes) = part.content else { panic!("a page is bytes") };
            assert!(bytes.len() <= 1_000 && bytes.starts_with(b"line"), "page {page}");
            read.extend(bytes);
        }
        assert_eq!(read, output.as_bytes());
    }

    #[test]
    fn a_missing_part_is_an_error() {
        let limits = Limits::default();
        for part in
            [Part::Page(2), Part::Page(0), Part::Lines("9:".parse().unwrap()), Part::Pointer("/a".into())]
        {
            assert!(read_part(b"one\n", &part, &limits).is_err(), "{part:?}");
        }
        assert!(read_part(b"", &Part::Page(1), &limits).is_ok());
    }
}
