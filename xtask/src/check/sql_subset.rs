//! Restricts SQL for PostgreSQL to what compatible databases and transaction poolers support.

use std::path::Path;

use crate::source::{is_test_file, lines_without_tests};
use crate::workspace::{Workspace, WorkspaceError};

/// The folder with SQL statements for PostgreSQL.
const STATEMENT_FOLDER: &str = "crates/endmark-store/src/shared";
/// Ending of the file names of PostgreSQL migrations.
const MIGRATION_SUFFIX: &str = ".postgres.sql";

/// Forbidden SQL, each with what to write instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("CREATE TRIGGER", "write the same rows in the same transaction"),
    ("CREATE FUNCTION", "decide in Rust"),
    ("SEQUENCE", "use a key that the instance chooses"),
    ("nextval(", "use a key that the instance chooses"),
    ("serial ", "use a key that the instance chooses"),
    ("FOREIGN KEY", "delete dependent rows in the same transaction"),
    ("REFERENCES", "delete dependent rows in the same transaction"),
    ("LISTEN", "poll: with a pooler no session can listen"),
    ("NOTIFY", "poll: it takes a lock over the whole database at each commit"),
    ("pg_notify", "poll: it takes a lock over the whole database at each commit"),
    ("advisory", "lock a row"),
    ("PREPARE ", "send a typed statement: with a pooler no session can keep it"),
    (".prepare(", "send a typed statement: with a pooler no session can keep it"),
    (".query(", "call `query_typed`, which prepares nothing by name"),
    (".query_one(", "call `query_typed_one`, which prepares nothing by name"),
    (".query_opt(", "call `query_typed_opt`, which prepares nothing by name"),
    (".execute(", "call `execute_typed`, which prepares nothing by name"),
    (" now()", "call `clock_timestamp()`: a transaction may have waited for a lock"),
    ("(now()", "call `clock_timestamp()`: a transaction may have waited for a lock"),
    ("CURRENT_TIMESTAMP", "call `clock_timestamp()`: a transaction may have waited for a lock"),
];

pub(crate) fn run(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    let mut failures = Vec::new();
    for file in workspace.files()? {
        let is_code = file.starts_with(STATEMENT_FOLDER) && !is_test_file(&file);
        if is_code || file.to_string_lossy().ends_with(MIGRATION_SUFFIX) {
            failures.extend(file_failures(&file, &workspace.read(&file)?));
        }
    }
    Ok(failures)
}

fn file_failures(file: &Path, text: &str) -> Vec<String> {
    let mut failures = Vec::new();
    for (number, line) in lines_without_tests(text) {
        let is_comment = ["--", "//"].iter().any(|comment| line.trim_start().starts_with(comment));
        let found = FORBIDDEN.iter().filter(|(word, _)| !is_comment && line.contains(word));
        failures.extend(found.map(|(word, advice)| {
            format!("{}:{number} has `{}` for PostgreSQL: {advice}", file.display(), word.trim())
        }));
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_that_poolers_do_not_support_is_found() {
        let text = "-- no TRIGGER here\nCREATE TRIGGER t;\nUPDATE a SET b = now();\nlet begin = Instant::now();\nid bigserial PRIMARY KEY\n";
        let failures = file_failures(Path::new("a.postgres.sql"), text);
        let lines: Vec<_> = failures.iter().map(|failure| &failure[..16]).collect();
        assert_eq!(lines, ["a.postgres.sql:2", "a.postgres.sql:3", "a.postgres.sql:5"]);
    }
}
