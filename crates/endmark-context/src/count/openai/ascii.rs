//! Finds the end of a piece in ASCII text without the vocabulary's pattern. Nearly all text of agents is ASCII and a few
//! other signs, such as arrows, dashes and quotation marks.

/// Whether it is an ASCII space by the pattern.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Returns the length of the first piece of `o200k_base`, or `None` if only the pattern can determine it.
pub(super) fn o200k_piece(text: &[u8]) -> Option<usize> {
    let capitals_then_small = |word: usize| {
        let capitals = run(text, word, |byte| byte.is_ascii_uppercase());
        run(text, capitals, |byte| byte.is_ascii_lowercase())
    };
    let end = end(text, capitals_then_small, |byte| matches!(byte, b'\r' | b'\n' | b'/'))?;
    // The end of a contraction, as in "it's", belongs to the word.
    (!may_be_contraction(text, end) && is_sure(text, end)).then_some(end)
}

/// The same for `cl100k_base`, in which a contraction is a separate piece.
pub(super) fn cl100k_piece(text: &[u8]) -> Option<usize> {
    if may_be_contraction(text, 0) {
        return None;
    }
    let letters = |word: usize| run(text, word, |byte| byte.is_ascii_alphabetic());
    let end = end(text, letters, |byte| matches!(byte, b'\r' | b'\n'))?;
    is_sure(text, end).then_some(end)
}

/// Whether a contraction such as `'s` or `'ll` may begin here. In the pattern, `'ſ` is one, too.
fn may_be_contraction(text: &[u8], at: usize) -> bool {
    let is_letter = |letter: u8| !letter.is_ascii() || b"strvmld".contains(&letter.to_ascii_lowercase());
    text.get(at) == Some(&b'\'') && text.get(at + 1).is_some_and(|letter| is_letter(*letter))
}

/// Whether a piece certainly ends here. A letter or mark outside ASCII would continue a word, and any other sign would
/// continue the signs before it.
fn is_sure(text: &[u8], end: usize) -> bool {
    text.get(end).is_none_or(|next| next.is_ascii_graphic() || is_space(*next)) || sign_bytes(text, end) > 0
}

/// Returns the bytes of the sign at a position, or 0 if only the pattern can determine what is there.
fn sign_bytes(text: &[u8], at: usize) -> usize {
    match text.get(at..).unwrap_or_default() {
        [byte, ..] if byte.is_ascii_punctuation() => 1,
        // `×`
        [0xC3, 0x97, ..] => 2,
        // Dashes, quotation marks, bullets and ellipses (U+2010 to 2027, 2030 to 203E), arrows (from U+2190),
        // mathematical and technical signs (to U+23FF), and lines, boxes and symbols (U+2500 to 273F).
        [0xE2, 0x80, 0x90..=0xA7 | 0xB0..=0xBE, ..]
        | [0xE2, 0x86, 0x90..=0xBF, ..]
        | [0xE2, 0x87..=0x8F | 0x94..=0x9C, ..] => 3,
        _ => 0,
    }
}

/// Returns the end of the run of such bytes that begins here.
fn run(text: &[u8], begin: usize, is: impl Fn(u8) -> bool) -> usize {
    begin + text[begin..].iter().take_while(|byte| is(**byte)).count()
}

/// Returns the end of the first piece by its ASCII bytes. `word_end` returns the end of a word whose letters begin at
/// a position.
fn end(text: &[u8], word_end: impl Fn(usize) -> usize, is_after_signs: impl Fn(u8) -> bool) -> Option<usize> {
    let first = *text.first()?;
    if first.is_ascii_digit() {
        return Some(text.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count());
    }
    // Any one sign except a line end may begin a word.
    let word = match first {
        _ if first.is_ascii_alphabetic() => 0,
        _ if first.is_ascii() => 1,
        _ => Some(sign_bytes(text, 0)).filter(|sign| *sign > 0)?,
    };
    if !matches!(first, b'\r' | b'\n') && text.get(word).is_some_and(u8::is_ascii_alphabetic) {
        return Some(word_end(word));
    }
    let signs = usize::from(first == b' ');
    let mut end = signs;
    while let bytes @ 1.. = sign_bytes(text, end) {
        end += bytes;
    }
    if end > signs {
        return Some(run(text, end, is_after_signs));
    }
    let spaces = run(text, 0, is_space);
    // Spaces outside ASCII may follow.
    if text.get(spaces).is_some_and(|next| !next.is_ascii_graphic()) && sign_bytes(text, spaces) == 0 {
        return None;
    }
    match text[..spaces].iter().rposition(|byte| matches!(byte, b'\r' | b'\n')) {
        Some(last) => Some(last + 1),
        // The last space before something else does not belong to the spaces.
        None if spaces > 1 && spaces < text.len() => Some(spaces - 1),
        None => Some(spaces),
    }
}
