//! Lines of prose, of code, and of the prompt itself.

/// Whether a line reads as a sentence of prose.
pub(super) fn is_sentence(line: &str) -> bool {
    let line = line.trim();
    let ends = line.ends_with(['.', '!', '?', ':', '。', '！', '？', '…', ')', '*']);
    ends && !line.starts_with(char::is_lowercase)
        && line.split_whitespace().count() >= 2
        && !line.contains(['{', '}', '='])
        || ends && line.chars().any(|sign| u32::from(sign) > 0x2e80)
}

/// Whether the continuation says what it was asked, rather than what it was asked for: words of the prompt that
/// are not in the text.
pub(super) fn quotes_the_prompt(initial: &str, continuation: &str) -> bool {
    const WORDS: &[&str] = &[
        "last valid token",
        "any content before the last",
        "your last reply was cut off",
        "text has been cut off",
    ];
    let (said, text) = (continuation.to_ascii_lowercase(), initial.to_ascii_lowercase());
    WORDS.iter().any(|words| said.contains(words) && !text.contains(words))
}
