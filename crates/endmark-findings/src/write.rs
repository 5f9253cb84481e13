//! The canonical form. (AR-1)

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::json;

use super::control::visible_json;
use super::finding::{Evidence, Field, Finding, FindingId};
use super::form::FindingForm;
use super::read::{reads_as_agent, reads_as_dimension, reads_as_evidence, reads_as_title, reads_as_value};

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
    /// What is read from it again is the same, as far as it says something. Where a text could not be read in lines as it is (a
    /// control character, a title that begins with `- `, a dimension with a comma), it is JSON Lines. No line of evidence can be
    /// taken for a marker or a finding, since each is indented, and none for a finding's end, since none is empty.
    ///
    /// ```
    /// use endmark_findings::{Finding, FindingId, Writing};
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
        let findings: Vec<&Finding> = findings.into_iter().collect();
        let values = || findings.iter().flat_map(|finding| values(finding));
        let is_plain = self.agent_id.is_none_or(reads_as_agent)
            && self.dimensions.iter().all(|dimension| reads_as_dimension(dimension))
            && values().all(|(field, value)| reads_as_value(field, &value))
            && findings.iter().all(|finding| reads_as_title(&finding.title))
            && findings.iter().filter_map(|finding| finding.evidence.as_ref()).all(reads_as_evidence);
        let mut text = String::from("===AGENT_RESULT===\n");
        if is_plain {
            self.write_lines(&mut text, &findings);
        } else {
            self.write_json_lines(&mut text, &findings);
        }
        text.push_str(if self.is_whole { "===AGENT_RESULT_END===\n" } else { "\n" });
        text
    }

    // Writing to a string cannot fail, here and below.
    fn write_lines(&self, text: &mut String, findings: &[&Finding]) {
        if let Some(agent_id) = self.agent_id {
            let _ = writeln!(text, "agent_id: {agent_id}");
        }
        if !self.dimensions.is_empty() {
            let _ = writeln!(text, "dimensions: {}", self.dimensions.join(", "));
        }
        if let Some(declared) = self.declared_findings {
            let _ = writeln!(text, "declared_findings: {declared}");
        }
        for (finding, place) in findings.iter().zip(1..) {
            text.push('\n');
            write_finding(text, finding, place);
        }
    }

    fn write_json_lines(&self, text: &mut String, findings: &[&Finding]) {
        let (agent_id, dimensions) = (self.agent_id, self.dimensions);
        let header = json!({"agent_id": agent_id, "dimensions": dimensions, "declared_findings": self.declared_findings});
        let _ = writeln!(text, "{}", visible_json(&header.to_string()));
        for (finding, place) in findings.iter().zip(1..) {
            let mut form = FindingForm::of(finding);
            if form.id.is_empty() {
                form.id = FindingId::numbered(place).to_string();
            }
            // What has names and texts alone can always be written.
            let line = serde_json::to_string(&form).unwrap_or_default();
            let _ = writeln!(text, "{}", visible_json(&line));
        }
    }
}

/// The fields of a finding that have one line each, with what is said.
fn values(finding: &Finding) -> impl Iterator<Item = (Field, Cow<'_, str>)> {
    let cwe = Some(finding.cwe_text()).filter(|cwe| !cwe.is_empty());
    [
        (Field::Severity, finding.severity.as_ref().map(|severity| Cow::Borrowed(severity.name()))),
        (Field::Cwe, cwe.map(Cow::Owned)),
        (Field::Location, finding.location.as_ref().map(|location| Cow::Borrowed(location.as_str()))),
        (Field::Source, finding.source.as_deref().map(Cow::Borrowed)),
        (Field::Sink, finding.sink.as_deref().map(Cow::Borrowed)),
        (Field::Flow, finding.flow.as_deref().map(Cow::Borrowed)),
        (Field::OriginallyTruncated, finding.originally_truncated.then_some(Cow::Borrowed("true"))),
    ]
    .into_iter()
    .filter_map(|(field, value)| Some((field, value?)))
}

fn write_finding(text: &mut String, finding: &Finding, place: u32) {
    let _ = writeln!(text, "{}", head(&finding.id, &finding.title, place).trim_end());
    for (field, value) in values(finding) {
        let _ = writeln!(text, "{}: {value}", field.name());
    }
    if let Some(evidence) = &finding.evidence {
        text.push_str("evidence:\n");
        write_evidence(text, evidence);
    }
}

/// The line that a finding begins with. An id of another form stands before its title: `[F002] SQLI-1: …`.
fn head(id: &FindingId, title: &str, place: u32) -> String {
    match FindingId::read(id.as_str()) {
        Some(_) => format!("[{id}] {title}"),
        None if id.as_str().is_empty() => format!("[{}] {title}", FindingId::numbered(place)),
        None => format!("[{}] {id}: {title}", FindingId::numbered(place)),
    }
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
    let evidence = evidence.as_str();
    // A fence in front would be taken for a mere wrapping, unless it is itself wrapped.
    let first = evidence.trim_start();
    let fence = (first.starts_with("```") || first.starts_with("~~~")).then(|| fence_around(evidence));
    for line in fence.as_deref().into_iter().chain(evidence.split('\n')).chain(fence.as_deref()) {
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
