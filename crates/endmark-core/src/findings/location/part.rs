//! The part of a file that words name where no lines are: a function, a class, a handler. (AR-5)

/// The words that name a part of a file, without those that say nothing of which one, and without the signs around them.
pub(super) fn words_of(text: &str) -> String {
    let words = text.split(|sign: char| sign.is_whitespace() || "()[]{}`\"'*<>".contains(sign));
    let words = words.map(|word| word.trim_matches(|sign: char| ":,;.#@-–—/\\".contains(sign)));
    let is_said = |word: &&str| !word.is_empty() && !OF_NO_PART.contains(&word.to_ascii_lowercase().as_str());
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
