//! Divides a value into pages.

use std::ops::Range;

use endmark_envelope::grapheme_boundary;

/// A page may begin at most this many bytes before its nominal position.
pub const PAGE_LOOKBACK_BYTES: usize = 4096;

/// This many bytes after a position are examined to find out whether a character ends there.
const CHARACTER_LOOKAHEAD_BYTES: u64 = 64;

/// Pages of at most `most_bytes` bytes in a value of `bytes` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    /// Size of the value in bytes.
    pub bytes: u64,
    /// Maximum size of a page in bytes.
    pub most_bytes: usize,
}

impl Pages {
    /// Returns the number of pages, at least 1.
    pub fn count(self) -> u64 {
        self.bytes.div_ceil(self.page_distance()).max(1)
    }

    /// Returns the byte range of a page. Pages are counted from 1. Returns `None` if the page does not exist.
    ///
    /// A page begins at a line, or at a grapheme if the line is long. `read` must return the bytes of a
    /// range, or fewer if the value ends earlier.
    pub fn span<E>(
        self,
        page: u64,
        mut read: impl FnMut(Range<u64>) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Range<u64>>, E> {
        if page == 0 || page > self.count() {
            return Ok(None);
        }
        let mut begin = |page: u64| {
            let place = page.saturating_mul(self.page_distance()).min(self.bytes);
            if place == 0 || place == self.bytes {
                return Ok(place);
            }
            let first = place - place.min(self.max_lookback() as u64);
            let near = read(first..place + CHARACTER_LOOKAHEAD_BYTES)?;
            let before = usize::try_from(place - first).unwrap_or_default().min(near.len());
            let (before, behind) = near.split_at(before);
            Ok(place - page_begin(before, behind) as u64)
        };
        Ok(Some(begin(page - 1)?..begin(page)?))
    }

    /// Returns the distance between the nominal positions of two pages. It is less than the maximum size of a
    /// page, because a page may begin before its nominal position.
    fn page_distance(self) -> u64 {
        (self.most_bytes - self.max_lookback()).max(1) as u64
    }

    fn max_lookback(self) -> usize {
        PAGE_LOOKBACK_BYTES.min(self.most_bytes / 4)
    }
}

/// Returns how many bytes before its nominal position a page begins.
///
/// These bytes belong to a line that would otherwise be split, or to a grapheme if there is no line break.
/// `before` contains the last [`PAGE_LOOKBACK_BYTES`] bytes before the position. `behind` contains some
/// bytes after it, which show whether a character is complete.
///
/// ```
/// use endmark_context::read::page_begin;
/// assert_eq!(page_begin(b"one\ntw", b"o\nthree"), 2);
/// assert_eq!(page_begin("e".as_bytes(), "\u{301}x".as_bytes()), 1);
/// ```
pub fn page_begin(before: &[u8], behind: &[u8]) -> usize {
    if let Some(at) = memchr::memrchr(b'\n', before) {
        return before.len() - at - 1;
    }
    let near = [before, behind].concat();
    // Continuation bytes at the start belong to a character that began earlier.
    let begin = near.iter().position(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    let text = match str::from_utf8(&near[begin..]) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&near[begin..begin + error.valid_up_to()]).unwrap_or_default()
        }
        // The bytes are not text, so any position is suitable.
        Err(_) => return 0,
    };
    let place = before.len().saturating_sub(begin);
    let boundary = grapheme_boundary(text, place.min(text.len()));
    // A grapheme that is longer than the examined text is split between characters.
    let is_too_long = boundary == 0 && before.len() >= PAGE_LOOKBACK_BYTES;
    if is_too_long { place - text.floor_char_boundary(place) } else { place - boundary }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_at_a_line_or_grapheme_boundary() {
        for (before, behind, taken) in
            [("a\nb", "c\n", 1), ("a\n", "b", 0), ("abc", "def", 0), ("ab\u{e9}", "x", 0), ("", "x", 0)]
        {
            assert_eq!(page_begin(before.as_bytes(), behind.as_bytes()), taken, "{before:?} {behind:?}");
        }
        let text = "aé".as_bytes();
        assert_eq!(page_begin(&text[..2], &text[2..]), 1);
        assert_eq!(page_begin(b"\xFF\xFE", b"\xFD"), 0);
    }
}
