//! Locates the pages of a value.

use std::ops::Range;

use endmark_envelope::grapheme_boundary;

/// How many bytes before its nominal position a page may begin.
pub const PAGE_LOOK_BEHIND_BYTES: usize = 4096;

/// How many bytes after a position are needed to find the end of a character.
const CHARACTER_LOOKAHEAD_BYTES: u64 = 64;

/// The division of a value of this many bytes into pages of at most `most_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    /// Size of the value in bytes.
    pub bytes: u64,
    /// Largest size of a page in bytes.
    pub most_bytes: usize,
}

impl Pages {
    /// Returns the number of pages, at least 1.
    pub fn count(self) -> u64 {
        self.bytes.div_ceil(self.step()).max(1)
    }

    /// Returns the byte range of a page, counted from 1.
    ///
    /// A page begins at a line or a grapheme. Returns `None` if the page does not exist. `read` returns the bytes of a range,
    /// or fewer if the value ends earlier.
    pub fn span<E>(
        self,
        page: u64,
        mut read: impl FnMut(Range<u64>) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Range<u64>>, E> {
        if page == 0 || page > self.count() {
            return Ok(None);
        }
        let mut begin = |page: u64| {
            let place = page.saturating_mul(self.step()).min(self.bytes);
            if place == 0 || place == self.bytes {
                return Ok(place);
            }
            let first = place - place.min(self.bytes_before() as u64);
            let near = read(first..place + CHARACTER_LOOKAHEAD_BYTES)?;
            let before = usize::try_from(place - first).unwrap_or_default().min(near.len());
            let (before, behind) = near.split_at(before);
            Ok(place - page_begin(before, behind) as u64)
        };
        Ok(Some(begin(page - 1)?..begin(page)?))
    }

    /// Returns the distance between the nominal positions of two pages. A page may begin slightly earlier, but must not
    /// exceed its limit because of that.
    fn step(self) -> u64 {
        (self.most_bytes - self.bytes_before()).max(1) as u64
    }

    fn bytes_before(self) -> usize {
        PAGE_LOOK_BEHIND_BYTES.min(self.most_bytes / 4)
    }
}

/// Returns how many bytes before its nominal position a page begins.
///
/// These bytes belong to a line that would otherwise be broken, or to a grapheme if there is no line break. `before`
/// has the last [`PAGE_LOOK_BEHIND_BYTES`] bytes. `behind` has some of the following bytes, which show whether a
/// character is complete.
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
    // Bytes before the first complete character belong to an earlier character.
    let begin = near.iter().position(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    let text = match str::from_utf8(&near[begin..]) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&near[begin..begin + error.valid_up_to()]).unwrap_or_default()
        }
        // This is not text, so any position is suitable.
        Err(_) => return 0,
    };
    let place = before.len().saturating_sub(begin);
    let boundary = grapheme_boundary(text, place.min(text.len()));
    // A grapheme that is longer than the examined text is split between characters.
    let is_too_long = boundary == 0 && before.len() >= PAGE_LOOK_BEHIND_BYTES;
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
