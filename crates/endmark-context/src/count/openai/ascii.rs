//! Finds the end of a piece without the vocabulary's pattern, for text of ASCII and a few common signs, such
//! as arrows, dashes and quotation marks. Nearly all text of agents is of this kind.

/// Whether the byte is an ASCII space in the sense of the pattern.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Returns the length of the first piece for `o200k_base`. Returns `None` if this needs the pattern.
pub(super) fn o200k_piece(text: &[u8]) -> Option<usize> {
    let capitals_then_small = |word: usize| {
        let capitals = run_end(text, word, |byte| byte.is_ascii_uppercase());
        run_end(text, capitals, |byte| byte.is_ascii_lowercase())
    };
    let end = piece_end(text, capitals_then_small, |byte| matches!(byte, b'\r' | b'\n' | b'/'))?;
    // A contraction after the word, as in "it's", belongs to the piece, so leave it to the pattern.
    (!may_be_contraction(text, end) && is_certain_end(text, end)).then_some(end)
}

/// Like [`o200k_piece`], for `cl100k_base`. Here a contraction is a separate piece.
pub(super) fn cl100k_piece(text: &[u8]) -> Option<usize> {
    if may_be_contraction(text, 0) {
        return None;
    }
    let letters = |word: usize| run_end(text, word, |byte| byte.is_ascii_alphabetic());
    let end = piece_end(text, letters, |byte| matches!(byte, b'\r' | b'\n'))?;
    is_certain_end(text, end).then_some(end)
}

/// Whether a contraction such as `'s` or `'ll` may begin here. The pattern also accepts `'ſ`.
fn may_be_contraction(text: &[u8], at: usize) -> bool {
    let is_letter = |letter: u8| !letter.is_ascii() || b"strvmld".contains(&letter.to_ascii_lowercase());
    text.get(at) == Some(&b'\'') && text.get(at + 1).is_some_and(|letter| is_letter(*letter))
}

/// Whether a piece certainly ends here. A letter or mark outside ASCII could continue a word, and another
/// sign could continue the signs before it.
fn is_certain_end(text: &[u8], end: usize) -> bool {
    text.get(end).is_none_or(|next| next.is_ascii_graphic() || is_space(*next)) || sign_bytes(text, end) > 0
}

/// Returns the length of the sign at a position in bytes. Returns 0 if this needs the pattern.
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

/// Returns the end of the run of bytes that starts at `begin` and satisfies `is`.
fn run_end(text: &[u8], begin: usize, is: impl Fn(u8) -> bool) -> usize {
    begin + text[begin..].iter().take_while(|byte| is(**byte)).count()
}

/// Returns the end of the first piece. `word_end` returns the end of a word whose letters start at a
/// position.
fn piece_end(
    text: &[u8],
    word_end: impl Fn(usize) -> usize,
    is_after_signs: impl Fn(u8) -> bool,
) -> Option<usize> {
    let first = *text.first()?;
    if first.is_ascii_digit() {
        return Some(text.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count());
    }
    // One sign other than a line end may precede the letters of a word.
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
        return Some(run_end(text, end, is_after_signs));
    }
    let spaces = run_end(text, 0, is_space);
    // Spaces outside ASCII may follow.
    if text.get(spaces).is_some_and(|next| !next.is_ascii_graphic()) && sign_bytes(text, spaces) == 0 {
        return None;
    }
    match text[..spaces].iter().rposition(|byte| matches!(byte, b'\r' | b'\n')) {
        Some(last) => Some(last + 1),
        // The last space before another character does not belong to the run of spaces.
        None if spaces > 1 && spaces < text.len() => Some(spaces - 1),
        None => Some(spaces),
    }
}
