//! Finds words that must not be in the repository: marks of unfinished work, and phrases that are hard to
//! read.

mod dialect;

use std::path::Path;

use crate::workspace::{Workspace, WorkspaceError};

/// Forbidden words, each with what to do. They are split here, so that this file passes the check.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "do it, or document what is missing"),
    (concat!("FIX", "ME"), "fix it, or document the problem"),
];

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let mut failures = Vec::new();
    for file in workspace.files()? {
        let text = workspace.read(&file)?;
        // Skip binary files, which contain a NUL.
        if !text.contains('\0') {
            failures.extend(file_failures(&file, &text));
            failures.extend(dialect::file_failures(&file, &text));
        }
    }
    Ok(failures)
}

fn file_failures(file: &Path, text: &str) -> Vec<String> {
    let mut failures = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        for (word, advice) in FORBIDDEN {
            if contains_word(line, word) {
                failures.push(format!("{}:{number} says `{word}`: {advice}", file.display()));
            }
        }
    }
    failures
}

fn contains_word(line: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_found() {
        let (forbidden, _) = FORBIDDEN[0];
        let text =
            format!("fine\n// {forbidden}: later\n{forbidden}S and METHOD{forbidden}\n({forbidden})\n");
        let failures = file_failures(Path::new("a.rs"), &text);
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures[0].starts_with("a.rs:2 ") && failures[1].starts_with("a.rs:4 "));
    }
}
