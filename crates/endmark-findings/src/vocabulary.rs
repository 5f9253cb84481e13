//! The words that are known, as data: `vocabulary.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

static TEXT: &str = include_str!("vocabulary.txt");

/// Each word of each family of lists, with the name of its list.
static WORDS: LazyLock<HashMap<(&str, &str), &str>> = LazyLock::new(|| {
    let lists = TEXT.lines().filter(|line| !line.starts_with('#'));
    let lists = lists.filter_map(|line| line.split_once(": "));
    lists
        .flat_map(|(kind, words)| {
            let (family, list) = kind.split_once(' ').unwrap_or((kind, kind));
            words.split(", ").map(move |word| ((family, word), list))
        })
        .collect()
});

/// The list of this family that a word is in; words are in small letters.
pub(super) fn list_of(family: &'static str, word: &str) -> Option<&'static str> {
    // A map of borrowed pairs is asked with pairs that live as long as the call.
    let words: &HashMap<(&str, &str), &str> = &WORDS;
    words.get(&(family, word)).copied()
}

/// Whether a word is in a list, in whatever case.
pub(super) fn is_one_of(family: &'static str, word: &str) -> bool {
    list_of(family, &word.to_lowercase()).is_some()
}

/// A name in small letters, with one `_` for whatever is between its words.
pub(super) fn folded(name: &str) -> String {
    let words = name.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_").to_lowercase()
}
