//! Where the pages of a value begin.

use std::ops::Range;

use endmark_envelope::grapheme_boundary;

/// How far before a page's place its beginning may be.
pub const PAGE_LOOK_BEHIND_BYTES: usize = 4096;

/// As much as is needed to see the end of a character.
const LOOK_AHEAD_BYTES: u64 = 64;

/// A value of this many bytes in pages of at most `most_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    /// How many bytes the value has.
    pub bytes: u64,
    /// How many bytes a page has at most.
    pub most_bytes: usize,
}

impl Pages {
    /// How many pages there are: one at least.
    pub fn count(self) -> u64 {
        self.bytes.div_ceil(self.step()).max(1)
    }

    /// The bytes of a page, from 1, which begins with a line or a grapheme; none where there is no such page. `read` returns
    /// the bytes of a range, fewer where the value ends before.
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
            let first = place - place.min(self.look_behind() as u64);
            let near = read(first..place + LOOK_AHEAD_BYTES)?;
            let before = usize::try_from(place - first).unwrap_or_default().min(near.len());
            let (before, behind) = near.split_at(before);
            Ok(place - page_begin(before, behind) as u64)
        };
        Ok(Some(begin(page - 1)?..begin(page)?))
    }

    /// Bytes from one page's place to the next: a page may begin a little before its place, and must not be longer for it.
    fn step(self) -> u64 {
        (self.most_bytes - self.look_behind()).max(1) as u64
    }

    fn look_behind(self) -> usize {
        PAGE_LOOK_BEHIND_BYTES.min(self.most_bytes / 4)
    }
}

/// How many bytes at the end of what stands before a page's place belong to the page already: a line that is broken
/// there, or, where there is no line break, a grapheme. Given are the last [`PAGE_LOOK_BEHIND_BYTES`], and a little of what
/// follows, by which it shows whether a character is whole.
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
    // What stands before the first character that is whole here belongs to an earlier one.
    let begin = near.iter().position(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    let text = match str::from_utf8(&near[begin..]) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&near[begin..begin + error.valid_up_to()]).unwrap_or_default()
        }
        // No text: any place will do.
        Err(_) => return 0,
    };
    let place = before.len().saturating_sub(begin);
    let boundary = grapheme_boundary(text, place.min(text.len()));
    // One grapheme that is longer than what is looked at is broken between characters.
    let is_too_long = boundary == 0 && before.len() >= PAGE_LOOK_BEHIND_BYTES;
    if is_too_long { place - text.floor_char_boundary(place) } else { place - boundary }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_with_a_line_or_with_a_grapheme() {
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
