//! What words in a location say besides files and lines: a function, a class, a handler. (AR-5)

/// The words that name a part of a file, without those that say nothing of which one, and without the signs around them.
pub(super) fn words_of(text: &str) -> String {
    let words = text.split(|sign: char| sign.is_whitespace() || "()[]{}`\"'*<>".contains(sign));
    let words = words.map(|word| word.trim_matches(|sign: char| ":,;.#@-–—/\\".contains(sign)));
    let is_name = |word: &str| word.contains(char::is_alphabetic) || word.contains('_');
    let is_said = |word: &&str| is_name(word) && !OF_NO_PART.contains(&word.to_ascii_lowercase().as_str());
    words.filter(is_said).collect::<Vec<_>>().join(" ")
}

/// Words around the name of a part.
const OF_NO_PART: [&str; 24] = [
    "in",
    "the",
    "of",
    "at",
    "from",
    "a",
    "and",
    "others",
    "other",
    "etc",
    "e.g",
    "see",
    "also",
    "file",
    "function",
    "functions",
    "func",
    "fn",
    "def",
    "method",
    "methods",
    "class",
    "whole",
    "entire",
];

/// What stands beside the file in a part of a location.
pub(super) fn beside(part: &str, file: &str) -> String {
    let part = part.replace('\\', "/");
    part.split_once(file).map_or_else(String::new, |(before, behind)| {
        let before = before.strip_suffix("./").unwrap_or(before);
        format!("{before} {behind}")
    })
}

/// Whether a text has words besides these files and parts of them, lines, and what only stands around names.
pub(super) fn says_more<'a>(text: &str, named: impl Iterator<Item = &'a str>) -> bool {
    let without = |text: String, named: &str| text.replace(named, " ");
    let text = named.fold(text.replace('\\', "/"), without);
    let mut words = text.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    words.any(|word| {
        let word = word.to_ascii_lowercase();
        // `12`, `L12`
        let is_line = word.trim_start_matches('l').chars().all(|sign| sign.is_ascii_digit());
        !is_line && !OF_LINES.contains(&word.as_str()) && !OF_NO_PART.contains(&word.as_str())
    })
}

/// Words around the numbers of lines.
const OF_LINES: [&str; 13] = [
    "line",
    "lines",
    "ln",
    "to",
    "bis",
    "col",
    "column",
    "approximately",
    "approx",
    "about",
    "around",
    "circa",
    "near",
];
