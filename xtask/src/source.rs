//! Reads Rust files as far as the checks need it. Relies on the layout of `cargo fmt`.

use std::path::Path;

/// Whether a file contains only tests: `tests.rs`, or any file in a folder `tests`.
pub(crate) fn is_test_file(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == "tests.rs")
        || file.parent().is_some_and(|folder| folder.iter().any(|name| name == "tests"))
}

/// Returns the lines outside test modules. Numbers begin at 1.
pub(crate) fn lines_without_tests(text: &str) -> Vec<(usize, &str)> {
    let mut kept = Vec::new();
    let mut lines = text.lines().zip(1..).peekable();
    while let Some((line, number)) = lines.next() {
        let begins_module = |next: &str| next.starts_with("mod ") || next.starts_with("pub(crate) mod ");
        let next = lines.peek().map(|(next, _)| *next);
        if line == "#[cfg(test)]" && next.is_some_and(begins_module) {
            if next.is_some_and(|next| next.ends_with('{')) {
                // The formatter puts only the closing brace of the module into the first column.
                lines.by_ref().find(|(line, _)| *line == "}");
            } else {
                lines.next();
            }
        } else {
            kept.push((number, line));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_modules_are_not_counted() {
        let text =
            "a\n#[cfg(test)]\nmod tests {\n    b\n}\nc\n#[cfg(test)]\nmod more;\n#[cfg(test)]\nfn d() {}\n";
        assert_eq!(lines_without_tests(text), [(1, "a"), (6, "c"), (9, "#[cfg(test)]"), (10, "fn d() {}")]);
    }

    #[test]
    fn test_files_are_recognised_by_path() {
        for (file, is_test) in [
            ("src/a.rs", false),
            ("src/a/tests.rs", true),
            ("tests/a/b.rs", true),
            ("src/tests_of.rs", false),
        ] {
            assert_eq!(is_test_file(Path::new(file)), is_test, "{file}");
        }
    }
}
