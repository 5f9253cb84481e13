//! Finds the end of a piece in ASCII text without the vocabulary's pattern. Nearly all text of agents is ASCII.

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
    text.get(end).is_none_or(|next| next.is_ascii_graphic() || is_space(*next))
}

/// Returns the end of the run of such bytes that begins here.
fn run(text: &[u8], begin: usize, is: impl Fn(u8) -> bool) -> usize {
    begin + text[begin..].iter().take_while(|byte| is(**byte)).count()
}

/// Returns the end of the first piece by its ASCII bytes. `word_end` returns the end of a word whose letters begin at
/// a position.
fn end(text: &[u8], word_end: impl Fn(usize) -> usize, is_after_signs: impl Fn(u8) -> bool) -> Option<usize> {
    let first = *text.first().filter(|byte| byte.is_ascii())?;
    if first.is_ascii_digit() {
        return Some(text.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count());
    }
    // Any one sign except a line end may begin a word.
    let word = usize::from(!first.is_ascii_alphabetic());
    if !matches!(first, b'\r' | b'\n') && text.get(word).is_some_and(u8::is_ascii_alphabetic) {
        return Some(word_end(word));
    }
    let signs = usize::from(first == b' ');
    if text.get(signs).is_some_and(u8::is_ascii_punctuation) {
        let signs = run(text, signs, |byte| byte.is_ascii_punctuation());
        return Some(run(text, signs, is_after_signs));
    }
    let spaces = run(text, 0, is_space);
    // Spaces outside ASCII may follow.
    if text.get(spaces).is_some_and(|next| !next.is_ascii_graphic()) {
        return None;
    }
    match text[..spaces].iter().rposition(|byte| matches!(byte, b'\r' | b'\n')) {
        Some(last) => Some(last + 1),
        // The last space before something else does not belong to the spaces.
        None if spaces > 1 && spaces < text.len() => Some(spaces - 1),
        None => Some(spaces),
    }
}
