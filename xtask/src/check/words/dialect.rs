//! Finds phrases in comments and documents that are hard to understand at the first reading.

use std::path::Path;

use super::contains_word;
use crate::source::is_test_file;

/// One phrase per line, with its replacement.
const PHRASES: &str = include_str!("dialect.txt");

/// The folders whose comments are checked.
const COMMENT_FOLDERS: [&str; 2] = ["crates", "xtask/src"];

/// Markdown files and folders whose prose is checked. Code blocks are skipped, because they quote outputs and
/// other texts.
const PROSE_FILES: [&str; 7] =
    ["README.md", "CHANGELOG.md", "SECURITY.md", "docs", "cases", "bench/README.md", "tests/README.md"];

/// Returns one sentence for each forbidden phrase or requirement id in a file.
pub(super) fn file_failures(file: &Path, text: &str) -> Vec<String> {
    let is_in = |places: &[&str]| places.iter().any(|place| file.starts_with(place));
    if is_in(&PROSE_FILES) && file.extension().is_some_and(|extension| extension == "md") {
        let mut failures = phrase_failures(file, prose_lines(text));
        failures.extend(id_failures(file, prose_lines(text)));
        return failures;
    }
    if is_test_file(file) || !is_in(&COMMENT_FOLDERS) {
        return Vec::new();
    }
    let comments = text.lines().zip(1..).filter(|(line, _)| line.trim_start().starts_with("//"));
    phrase_failures(file, comments.map(|(line, number)| (line.to_owned(), number)))
}

fn phrase_failures(file: &Path, lines: impl Iterator<Item = (String, usize)>) -> Vec<String> {
    let found = lines.flat_map(|(line, number)| {
        let line = line.to_lowercase();
        phrases().filter(move |(phrase, _)| contains_word(&line, phrase)).map(move |found| (number, found))
    });
    found
        .map(|(number, (phrase, better))| {
            format!("{}:{number} has the phrase `{phrase}`: write {better}", file.display())
        })
        .collect()
}

/// Finds requirement ids in pages, because their readers do not know the requirements.
fn id_failures(file: &Path, lines: impl Iterator<Item = (String, usize)>) -> Vec<String> {
    lines
        .filter_map(|(line, number)| {
            let mut words =
                line.split(|character: char| !character.is_ascii_alphanumeric() && character != '-');
            let id = words.find(|word| is_requirement(word))?;
            Some(format!("{}:{number} has the requirement id `{id}`: state what it demands", file.display()))
        })
        .collect()
}

/// Whether a word is two capital letters, a hyphen and a number.
fn is_requirement(word: &str) -> bool {
    word.split_once('-').is_some_and(|(area, number)| {
        area.len() == 2
            && area.bytes().all(|byte| byte.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns the lines of a page outside code blocks with their numbers. Inline code is removed.
fn prose_lines(page: &str) -> impl Iterator<Item = (String, usize)> {
    let mut fence: Option<&str> = None;
    page.lines().zip(1..).filter_map(move |(line, number)| {
        let signs = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) => {
                if line.trim_end() == open {
                    fence = None;
                }
                None
            }
            None if signs.len() >= 3 => {
                fence = Some(signs);
                None
            }
            None if line.starts_with("    ") => None,
            None => Some((line.split('`').step_by(2).collect::<Vec<_>>().join("` `"), number)),
        }
    })
}

/// Returns the phrases, each with what to write instead.
fn phrases() -> impl Iterator<Item = (&'static str, &'static str)> {
    PHRASES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_in_a_comment_is_found() {
        let text = "/// It is written anew.\nlet anew = 1;\n// Nobody reads it.\n// A new file.\n";
        let failures = file_failures(Path::new("crates/endmark-text/src/a.rs"), text);
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures[0].contains("a.rs:1 ") && failures[1].contains("a.rs:3 "));
    }

    #[test]
    fn a_phrase_in_the_prose_of_a_page_is_found() {
        let text = "It is read once more.\n\n```\nNobody reads it.\n```\n\n    for good\n\n`anew` is fine.\nNot anew.\n";
        for page in ["README.md", "docs/gateway/a.md", "cases/detect/json.md"] {
            let failures = file_failures(Path::new(page), text);
            assert_eq!(failures.len(), 2, "{failures:?}");
            assert!(failures[0].contains(".md:1 ") && failures[1].contains(".md:10 "));
        }
    }

    #[test]
    fn a_requirement_id_in_a_page_is_found() {
        let text = "It is capped (CX-3).\nUTF-8, RFC 9110, CWE-89 and `AR-1` are not requirements.\n";
        let failures = file_failures(Path::new("docs/cap.md"), text);
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert!(failures[0].contains(":1 ") && failures[0].contains("`CX-3`"));
    }

    #[test]
    fn other_folders_are_not_checked() {
        assert_eq!(
            file_failures(Path::new("crates/endmark-text/tests/a.rs"), "// nobody\n"),
            Vec::<String>::new()
        );
        assert_eq!(file_failures(Path::new("docs/schemas/a.json"), "nobody\n"), Vec::<String>::new());
    }
}
