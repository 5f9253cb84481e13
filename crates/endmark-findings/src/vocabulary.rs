//! Looks up the known words of `vocabulary.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

static VOCABULARY: &str = include_str!("vocabulary.txt");

/// Maps a family and a word to the name of the word's list.
static WORDS: LazyLock<HashMap<(&str, &str), &str>> = LazyLock::new(|| {
    let lists = VOCABULARY.lines().filter(|line| !line.starts_with('#'));
    let lists = lists.filter_map(|line| line.split_once(": "));
    lists
        .flat_map(|(kind, words)| {
            let (family, list) = kind.split_once(' ').unwrap_or((kind, kind));
            words.split(", ").map(move |word| ((family, word), list))
        })
        .collect()
});

/// Returns the list of this family that contains a word in lower case.
pub(super) fn find_list(family: &'static str, word: &str) -> Option<&'static str> {
    // The reborrow shortens the lifetime of the keys to that of the call.
    let words: &HashMap<(&str, &str), &str> = &WORDS;
    words.get(&(family, word)).copied()
}

/// Whether a word is in a family, ignoring case.
pub(super) fn contains(family: &'static str, word: &str) -> bool {
    find_list(family, &word.to_lowercase()).is_some()
}

/// Returns a name in lower case, with one `_` between its words.
pub(super) fn fold(name: &str) -> String {
    let words = name.split(|ch: char| !ch.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_").to_lowercase()
}
