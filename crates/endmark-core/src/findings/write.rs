//! The canonical form. (AR-1)

use std::borrow::Cow;
use std::fmt::Write;

use super::finding::{Evidence, Finding, FindingId, Severity};
use super::location::Location;

/// A result that is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Writing<'a> {
    /// Whose it is.
    pub agent_id: Option<&'a str>,
    /// What was looked into.
    pub dimensions: &'a [String],
    /// How many findings there are, or were meant to be.
    pub declared_findings: Option<usize>,
    /// Whether it is whole: without that it gets no end marker.
    pub is_whole: bool,
}

impl Writing<'_> {
    /// The result with these findings in the canonical form (AR-1).
    ///
    /// What is read from it again is the same. No line of evidence can be taken for a marker or a finding, since each is
    /// indented, and none for a finding's end, since none is empty.
    ///
    /// ```
    /// use endmark_core::findings::{Finding, FindingId, Writing};
    ///
    /// let finding = Finding { id: FindingId::numbered(1), title: "Fixed key".into(), ..Finding::default() };
    /// let writing = Writing {
    ///     agent_id: Some("crypto-1"),
    ///     dimensions: &["keys".into()],
    ///     declared_findings: Some(1),
    ///     is_whole: true,
    /// };
    /// assert_eq!(
    ///     writing.text([&finding]),
    ///     "===AGENT_RESULT===\nagent_id: crypto-1\ndimensions: keys\ndeclared_findings: 1\n\n[F001] Fixed key\n\
    ///      ===AGENT_RESULT_END===\n"
    /// );
    /// ```
    pub fn text<'f>(&self, findings: impl IntoIterator<Item = &'f Finding>) -> String {
        let mut text = String::from("===AGENT_RESULT===\n");
        if let Some(agent_id) = self.agent_id {
            field(&mut text, "agent_id", agent_id);
        }
        if !self.dimensions.is_empty() {
            field(&mut text, "dimensions", &self.dimensions.join(", "));
        }
        if let Some(declared) = self.declared_findings {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(text, "declared_findings: {declared}");
        }
        for (finding, place) in findings.into_iter().zip(1..) {
            text.push('\n');
            write_finding(&mut text, finding, place);
        }
        text.push_str(if self.is_whole { "===AGENT_RESULT_END===\n" } else { "\n" });
        text
    }
}

fn write_finding(text: &mut String, finding: &Finding, place: u32) {
    let _ = writeln!(text, "{}", head(finding, place).trim_end());
    let cwe = Some(finding.cwe_text()).filter(|cwe| !cwe.is_empty());
    let fields = [
        ("severity", finding.severity.as_ref().map(Severity::name)),
        ("cwe", cwe.as_deref()),
        ("location", finding.location.as_ref().map(Location::as_str)),
        ("source", finding.source.as_deref()),
        ("sink", finding.sink.as_deref()),
        ("flow", finding.flow.as_deref()),
        ("originally_truncated", finding.originally_truncated.then_some("true")),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            field(text, name, value);
        }
    }
    if let Some(evidence) = &finding.evidence {
        text.push_str("evidence:\n");
        write_evidence(text, evidence);
    }
}

/// The line that a finding begins with. An id of another form stands before its title: `[F002] SQLI-1: …`.
fn head(finding: &Finding, place: u32) -> String {
    let (id, title) = (finding.id.as_str(), one_line(&finding.title));
    match FindingId::read(id) {
        Some(_) => format!("[{id}] {title}"),
        None if id.is_empty() => format!("[{}] {title}", FindingId::numbered(place)),
        None => format!("[{}] {}: {title}", FindingId::numbered(place), one_line(id)),
    }
}

fn field(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name}: {}", one_line(value));
}

/// A text without line breaks.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if text.contains(['\n', '\r']) {
        Cow::Owned(
            text.split(['\n', '\r'])
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" "),
        )
    } else {
        Cow::Borrowed(text)
    }
}

fn write_evidence(text: &mut String, evidence: &Evidence) {
    // A fence in front would be taken for a mere wrapping, unless it is itself wrapped.
    let first = evidence.lines().next().unwrap_or_default().trim_start();
    let fence =
        (first.starts_with("```") || first.starts_with("~~~")).then(|| fence_around(evidence.as_str()));
    for line in fence.as_deref().into_iter().chain(evidence.lines()).chain(fence.as_deref()) {
        let _ = writeln!(text, "  {line}");
    }
}

/// A fence that no line of the text can close.
pub(super) fn fence_around(text: &str) -> String {
    let (mut longest, mut run) = (2, 0);
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest + 1)
}
