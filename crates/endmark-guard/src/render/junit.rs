//! Renders `JUnit` XML, which all CI servers can read, with one test case per artifact.

use std::fmt::Write;

use super::{AssessedArtifact, escape_xml};

/// Returns a test suite with one test case per artifact. The findings are its failures.
pub fn junit(artifacts: &[AssessedArtifact<'_>]) -> String {
    let failed = artifacts.iter().filter(|one| !one.report.findings().is_empty()).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "<testsuites tests=\"{0}\" failures=\"{failed}\"><testsuite name=\"endmark guard\" tests=\"{0}\" failures=\"{failed}\">",
        artifacts.len()
    );
    for one in artifacts {
        let path = escape_xml(one.path);
        let _ = write!(text, "<testcase name=\"{path}\" classname=\"endmark.guard\" file=\"{path}\">");
        if let Some(first) = one.report.findings().first() {
            let mut lines: Vec<String> = one
                .report
                .findings()
                .iter()
                .map(|finding| {
                    format!(
                        "{}:{}:{}: {}: {}. {}",
                        one.path,
                        finding.line,
                        finding.column,
                        finding.check.name(),
                        finding.why,
                        finding.fix
                    )
                })
                .collect();
            if one.report.unlisted_count() > 0 {
                lines.push(format!(
                    "{}: {} further findings are not listed",
                    one.path,
                    one.report.unlisted_count()
                ));
            }
            let _ = write!(
                text,
                "<failure type=\"{}\" message=\"{}\">{}</failure>",
                one.report.verdict().name(),
                escape_xml(&format!("{}: {}", first.check.name(), first.why)),
                escape_xml(&lines.join("\n"))
            );
        }
        text.push_str("</testcase>\n");
    }
    text.push_str("</testsuite></testsuites>\n");
    text
}
