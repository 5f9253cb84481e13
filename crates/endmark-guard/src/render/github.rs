//! Renders annotations for GitHub workflows.

use std::fmt::Write;

use super::AssessedArtifact;

/// Returns one line per finding, which GitHub shows next to the affected line.
pub fn github(artifacts: &[AssessedArtifact<'_>]) -> String {
    let mut lines = String::new();
    for one in artifacts {
        for finding in one.report.findings() {
            let quote = if finding.text.is_empty() { String::new() } else { format!(" `{}`:", finding.text) };
            // Writing to a string cannot fail.
            let _ = writeln!(
                lines,
                "::error file={},line={},col={},title={}::{}",
                escape_property(one.path),
                finding.line,
                finding.column,
                escape_property(&format!("endmark guard: {}", finding.check.name())),
                escape_message(&format!("{}:{quote} {}. {}", finding.check.name(), finding.why, finding.fix)),
            );
        }
        if one.report.unlisted_count() > 0 {
            let _ = writeln!(
                lines,
                "::notice file={}::{}",
                escape_property(one.path),
                escape_message(&format!("{} further findings are not listed", one.report.unlisted_count()))
            );
        }
    }
    lines
}

fn escape_message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}
