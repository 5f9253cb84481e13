//! Phrases in comments and documents that a reader would have to read twice.

use std::path::Path;

use super::contains_word;
use crate::source::is_test_file;

/// One phrase a line, then what to write instead.
const PHRASES: &str = include_str!("dialect.txt");

/// The folders whose comments are checked.
const CHECKED: [&str; 2] = ["crates", "xtask/src"];

/// Returns one sentence for each phrase in the comments of a checked file.
pub(super) fn failures_of(file: &Path, text: &str) -> Vec<String> {
    if is_test_file(file) || !CHECKED.iter().any(|folder| file.starts_with(folder)) {
        return Vec::new();
    }
    let comments = text.lines().zip(1..).filter(|(line, _)| line.trim_start().starts_with("//"));
    let found = comments.flat_map(|(line, number)| {
        let line = line.to_lowercase();
        phrases().filter(move |(phrase, _)| contains_word(&line, phrase)).map(move |found| (number, found))
    });
    found
        .map(|(number, (phrase, better))| {
            format!("{}:{number} has the phrase `{phrase}`: write {better}", file.display())
        })
        .collect()
}

/// Returns the phrases with their replacements.
fn phrases() -> impl Iterator<Item = (&'static str, &'static str)> {
    PHRASES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_in_a_comment_is_found() {
        let text = "/// It is written anew.\nlet anew = 1;\n// Nobody reads it.\n// A new file.\n";
        let failures = failures_of(Path::new("crates/endmark-text/src/a.rs"), text);
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures[0].contains("a.rs:1 ") && failures[1].contains("a.rs:3 "));
    }

    #[test]
    fn other_folders_are_not_checked() {
        assert_eq!(
            failures_of(Path::new("crates/endmark-text/tests/a.rs"), "// nobody\n"),
            Vec::<String>::new()
        );
    }
}
