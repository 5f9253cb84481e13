//! Detects text that a model writes around JSON: quotations of the prompt, and remarks after the end.

/// Number of bytes at the beginning of a continuation that are searched for a quotation of the prompt.
const SEARCHED_BYTES: usize = 600;

/// Whether the continuation quotes the prompt instead of answering it: it contains words of the prompt that
/// are not in the text.
pub(super) fn quotes_the_prompt(initial: &str, continuation: &str) -> bool {
    const PROMPT_PHRASES: &[&str] = &[
        "last valid token",
        "any content before the last",
        "your last reply was cut off",
        "text has been cut off",
    ];
    let (said, text) =
        (beginning(continuation, SEARCHED_BYTES).to_ascii_lowercase(), initial.to_ascii_lowercase());
    let has = |text: &str| PROMPT_PHRASES.iter().any(|words| text.contains(words));
    has(&said) && !has(&text)
}

/// Whether the text after the end of a document is a remark or a closing fence, and not more JSON.
pub(super) fn is_remark(mut rest: &str) -> bool {
    while let Some(after) = super::fence::rest_after_closing(rest.trim()) {
        rest = after;
    }
    let text = rest.trim();
    let Some(first) = text.chars().next() else { return true };
    let separated = rest.starts_with(char::is_whitespace);
    let words = text.split_whitespace().take(2).count();
    let bracketed = first == '[' && !begins_json(text);
    let json = matches!(first, '{' | '}' | '[' | ']' | '"' | ',' | ':' | '\\') && !bracketed
        || first.is_ascii_digit() && !text.contains(' ');
    !json
        && (separated
            || words == 2
                && (first.is_alphabetic() || matches!(first, '*' | '#' | '(' | '>' | '_' | '\u{2014}')))
}

/// Whether a text is a valid beginning of JSON.
pub(super) fn begins_json(text: &str) -> bool {
    let mut detector = endmark_text::detect::Detector::for_strict_json();
    detector.push(text.as_bytes());
    !detector.is_malformed()
}

/// Returns the beginning of a text, at most `most` bytes, up to a character boundary.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}
