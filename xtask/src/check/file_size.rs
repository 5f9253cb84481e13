//! Limits the size of files, so that each file has one subject and can be read at once.

use std::path::Path;

use crate::source::{is_test_file, lines_without_tests};
use crate::workspace::{Workspace, WorkspaceError};

/// Maximum number of lines of a file, not counting its tests.
const MAX_LINES: usize = 600;

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let files = workspace.rust_files()?;
    Ok(files.iter().filter_map(|(file, text)| failure(file, text)).collect())
}

fn failure(file: &Path, text: &str) -> Option<String> {
    let lines = if is_test_file(file) { 0 } else { lines_without_tests(text).len() };
    (lines > MAX_LINES).then(|| {
        format!(
            "{} has {lines} lines without its tests, at most {MAX_LINES}: split it by subject",
            file.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_counted() {
        let code = "fn a() {}\n".repeat(MAX_LINES);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    fn b() {}\n".repeat(100));
        let file = Path::new("src/a.rs");
        assert_eq!(failure(file, &(code.clone() + &tests)), None);
        assert!(failure(file, &(code.clone() + "fn c() {}\n" + &tests)).is_some());
        assert_eq!(failure(Path::new("tests/a.rs"), &code.repeat(2)), None);
    }
}
