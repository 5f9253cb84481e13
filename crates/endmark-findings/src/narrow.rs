//! Full-width letters, digits and signs, as keyboards for Chinese and Japanese write them. (AR-1)

use std::borrow::Cow;

/// What a full-width sign is the wide form of; others as they are.
pub(super) fn narrowed(sign: char) -> char {
    match sign {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(sign) - 0xfee0).unwrap_or(sign),
        '\u{3000}' => ' ',
        sign => sign,
    }
}

/// The text with its full-width signs as those of ASCII.
pub(super) fn narrow(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || text.chars().all(|sign| narrowed(sign) == sign) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(narrowed).collect())
}
