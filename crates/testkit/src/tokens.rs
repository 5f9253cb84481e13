//! The scripted model's tokens: parts of words, split by a simple rule.

/// Splits a text into tokens. A token is a run of at most four letters and digits, including a single space
/// before it, or any other single character. Concatenated, the tokens are the text.
///
/// ```
/// assert_eq!(testkit::tokens("One, twelve ∎"), ["One", ",", " twel", "ve", " ", "∎"]);
/// ```
pub fn tokens(text: &str) -> Vec<&str> {
    const LONGEST: usize = 4;
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let space = usize::from(rest.starts_with(' '));
        let is_word = |character: &char| character.is_ascii_alphanumeric();
        let word = rest[space..].chars().take(LONGEST).take_while(is_word).count();
        let end = match word {
            0 => rest.chars().next().map_or(0, char::len_utf8),
            word => space + word,
        };
        let (token, left) = rest.split_at(end);
        tokens.push(token);
        rest = left;
    }
    tokens
}
