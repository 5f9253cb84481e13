//! The canonical form. (AR-1)

use std::fmt::Write;

use serde_json::json;

use super::control::{is_control, visible_json};
use super::finding::{Finding, FindingId};
use super::form::{FindingForm, ResultForm};
use super::read::{END, START, read};

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
        let form = |(finding, place): (&Finding, u32)| {
            let mut form = FindingForm::of(finding);
            if form.id.is_empty() {
                form.id = FindingId::numbered(place).to_string();
            }
            form
        };
        let forms: Vec<FindingForm> = findings.into_iter().zip(1..).map(form).collect();
        let mut text = self.lines(&forms);
        if !self.is_read(&text, &forms) {
            text = self.json_lines(&forms);
        }
        text.push_str(if self.is_whole { END } else { "" });
        text.push('\n');
        text
    }

    /// Whether what was written in lines is read again as it is.
    fn is_read(&self, text: &str, forms: &[FindingForm]) -> bool {
        let read = read(format!("{text}{END}\n").as_bytes());
        let [result] = &read.results[..] else { return false };
        let again = ResultForm::of(result);
        again.agent_id.as_deref() == self.agent_id
            && again.dimensions == self.dimensions
            && again.findings == forms
            && !text.contains(|sign| is_control(sign) && sign != '\n')
    }

    // Writing to a string cannot fail, here and below.
    fn lines(&self, forms: &[FindingForm]) -> String {
        let mut text = format!("{START}\n");
        if let Some(agent_id) = self.agent_id {
            let _ = writeln!(text, "agent_id: {agent_id}");
        }
        if !self.dimensions.is_empty() {
            let _ = writeln!(text, "dimensions: {}", self.dimensions.join(", "));
        }
        if let Some(declared) = self.declared_findings {
            let _ = writeln!(text, "declared_findings: {declared}");
        }
        for (form, place) in forms.iter().zip(1..) {
            text.push('\n');
            write_finding(&mut text, form, place);
        }
        text
    }

    fn json_lines(&self, forms: &[FindingForm]) -> String {
        let (agent_id, dimensions) = (self.agent_id, self.dimensions);
        let header = json!({"agent_id": agent_id, "dimensions": dimensions, "declared_findings": self.declared_findings});
        // What has names and texts alone can always be written.
        let lines = forms.iter().map(|form| serde_json::to_string(form).unwrap_or_default());
        let lines = std::iter::once(header.to_string()).chain(lines);
        let lines: Vec<String> = lines.map(|line| visible_json(&line).into_owned()).collect();
        format!("{START}\n{}\n", lines.join("\n"))
    }
}

fn write_finding(text: &mut String, form: &FindingForm, place: u32) {
    let _ = writeln!(text, "{}", head(&form.id, &form.title, place).trim_end());
    let fields = [
        ("severity", &form.severity),
        ("cwe", &form.cwe),
        ("location", &form.location),
        ("source", &form.source),
        ("sink", &form.sink),
        ("flow", &form.flow),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    if form.originally_truncated {
        text.push_str("originally_truncated: true\n");
    }
    if let Some(evidence) = &form.evidence {
        text.push_str("evidence:\n");
        write_evidence(text, evidence);
    }
}

/// The line that a finding begins with. An id of another form stands before its title: `[F002] SQLI-1: …`.
fn head(id: &str, title: &str, place: u32) -> String {
    match FindingId::read(id) {
        Some(_) => format!("[{id}] {title}"),
        None => format!("[{}] {id}: {title}", FindingId::numbered(place)),
    }
}

/// A text without line breaks.
pub(super) fn one_line(text: &str) -> String {
    let parts = text.split(['\n', '\r']).map(str::trim).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

fn write_evidence(text: &mut String, evidence: &str) {
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
