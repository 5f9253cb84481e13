//! Requires types with many fields to state the reason in a comment.

use std::path::Path;

use crate::source::{is_test_file, lines_without_tests};
use crate::workspace::{Workspace, WorkspaceError};

/// Maximum number of fields of a struct without a reason.
const MAX_FIELDS: usize = 15;

/// Beginning of the comment with the reason.
const REASON_PREFIX: &str = "// Fields: ";

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let files = workspace.rust_files()?;
    Ok(files.iter().flat_map(|(file, text)| failures(file, text)).collect())
}

fn failures(file: &Path, text: &str) -> Vec<String> {
    if is_test_file(file) {
        return Vec::new();
    }
    let lines = lines_without_tests(text);
    let structs = lines.iter().enumerate().filter_map(|(at, (number, line))| {
        let name = struct_name(line)?;
        let fields = lines.get(at + 1..)?.iter().take_while(|(_, line)| line.trim() != "}");
        let fields = fields.filter(|(_, line)| is_field(line)).count();
        let above = lines.get(..at)?.iter().rev().map(|(_, line)| line.trim());
        let has_reason = above.take_while(|line| belongs_to_next(line)).any(|line| line.starts_with(REASON_PREFIX));
        (fields > MAX_FIELDS && !has_reason).then(|| {
            format!(
                "{}:{number}: `{name}` has {fields} fields, more than {MAX_FIELDS}: split it, or add a line `{REASON_PREFIX}REASON`",
                file.display()
            )
        })
    });
    structs.collect()
}

/// Returns the name of a struct with named fields that begins in this line.
fn struct_name(line: &str) -> Option<&str> {
    let (before, rest) = line.trim().strip_suffix('{')?.split_once("struct ")?;
    let is_item = before.is_empty() || before.starts_with("pub");
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    if is_item { rest.get(..end) } else { None }
}

fn is_field(line: &str) -> bool {
    let line = line.trim();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ').map_or("", |(_, rest)| rest),
        None => line,
    };
    let name = line.split_once(": ").map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether a line is a comment or an attribute of the next item.
fn belongs_to_next(line: &str) -> bool {
    line.starts_with("//") || line.starts_with("#[")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_struct(above: &str, fields: usize) -> String {
        let names: Vec<_> =
            (0..fields).map(|n| format!("    /// Of a.\n    pub(crate) field_{n}: u8,\n")).collect();
        let fields = names.concat();
        format!("/// A struct.\n{above}#[derive(Debug)]\npub(crate) struct A<'a> {{\n{fields}}}\n")
    }

    #[test]
    fn many_fields_need_a_reason() {
        let found = |text: &str| failures(Path::new("src/a.rs"), text).len();
        assert_eq!(found(&a_struct("", MAX_FIELDS)), 0);
        assert_eq!(found(&a_struct("", MAX_FIELDS + 1)), 1);
        assert_eq!(found(&a_struct("// Fields: a column each.\n", MAX_FIELDS + 1)), 0);
    }
}
