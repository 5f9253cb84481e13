//! Finds the end of a piece of `o200k_base` without the pattern. Nearly all text that agents read is ASCII.

/// Whether it is an ASCII space by the pattern.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Returns the length of the first piece, or `None` if only the pattern can determine it.
pub(super) fn first_piece(text: &[u8]) -> Option<usize> {
    let end = end(text)?;
    let is_sure = match text.get(end) {
        None => true,
        // The end of a contraction, as in "it's", belongs to the word.
        Some(b'\'') => {
            let next = text.get(end + 1).map(u8::to_ascii_lowercase);
            next.is_none_or(|next| next.is_ascii() && !b"strvmld".contains(&next))
        }
        // A letter or a mark belongs to a word, and any other sign to the signs before it.
        Some(next) => next.is_ascii_graphic() || is_space(*next),
    };
    is_sure.then_some(end)
}

fn end(text: &[u8]) -> Option<usize> {
    let behind = |at: usize, is: fn(u8) -> bool| at + text[at..].iter().take_while(|byte| is(**byte)).count();
    let first = *text.first().filter(|byte| byte.is_ascii())?;
    if first.is_ascii_digit() {
        return Some(text.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count());
    }
    // A word may begin with any one sign except a line end.
    let word = usize::from(!first.is_ascii_alphabetic());
    if !matches!(first, b'\r' | b'\n') && text.get(word).is_some_and(u8::is_ascii_alphabetic) {
        let capitals = behind(word, |byte| byte.is_ascii_uppercase());
        return Some(behind(capitals, |byte| byte.is_ascii_lowercase()));
    }
    let signs = usize::from(first == b' ');
    if text.get(signs).is_some_and(u8::is_ascii_punctuation) {
        let signs = behind(signs, |byte| byte.is_ascii_punctuation());
        return Some(behind(signs, |byte| matches!(byte, b'\r' | b'\n' | b'/')));
    }
    let spaces = behind(0, is_space);
    // Further spaces outside ASCII may follow.
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
