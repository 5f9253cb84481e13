//! Renders `JUnit` XML, which every CI server reads: one test case per artifact.

use std::fmt::Write;

use super::{AssessedArtifact, xml};

/// Returns a test suite with one case per artifact, and its findings as failures.
pub fn junit(judged: &[AssessedArtifact<'_>]) -> String {
    let failed = judged.iter().filter(|one| !one.report.findings().is_empty()).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "<testsuites tests=\"{0}\" failures=\"{failed}\"><testsuite name=\"endmark guard\" tests=\"{0}\" failures=\"{failed}\">",
        judged.len()
    );
    for one in judged {
        let path = xml(one.path);
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
                xml(&format!("{}: {}", first.check.name(), first.why)),
                xml(&lines.join("\n"))
            );
        }
        text.push_str("</testcase>\n");
    }
    text.push_str("</testsuite></testsuites>\n");
    text
}
