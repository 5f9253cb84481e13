//! Writes results in the canonical form. (AR-1)

use std::fmt::Write;

use serde_json::json;

use super::control::{escape_json_controls, is_control};
use super::finding::{Field, Finding, FindingId, OtherField, Severity};
use super::form::{FindingForm, ResultForm};
use super::read::{END, START, read, read_dimensions};

/// The parameters of a result to write.
#[derive(Debug, Clone, Copy)]
pub struct WriteParameters<'a> {
    /// The agent.
    pub agent_id: Option<&'a str>,
    /// The examined dimensions.
    pub dimensions: &'a [String],
    /// The declared number of findings.
    pub declared_findings: Option<usize>,
    /// Unknown fields of the header.
    pub other: &'a [OtherField],
    /// Whether the result is complete. An incomplete result gets no end marker.
    pub is_whole: bool,
}

impl WriteParameters<'_> {
    /// Returns the result with these findings in the canonical form (AR-1).
    ///
    /// Parsing it again yields the same content, except for empty values. Text that the line format cannot represent
    /// (a control character, a title that begins with `- `, a dimension with a comma) is written as JSON Lines.
    /// Evidence lines are indented, so that they cannot be parsed as a marker or a finding. They are never empty, so
    /// that they cannot end a finding.
    ///
    /// ```
    /// use endmark_findings::{Finding, FindingId, WriteParameters};
    ///
    /// let finding = Finding { id: FindingId::from_number(1), title: "Fixed key".into(), ..Finding::default() };
    /// let writing = WriteParameters {
    ///     agent_id: Some("crypto-1"),
    ///     dimensions: &["keys".into()],
    ///     declared_findings: Some(1),
    ///     other: &[],
    ///     is_whole: true,
    /// };
    /// assert_eq!(
    ///     writing.text([&finding]),
    ///     "===AGENT_RESULT===\nagent_id: crypto-1\ndimensions: keys\ndeclared_findings: 1\n\n[F001] Fixed key\n\
    ///      ===AGENT_RESULT_END===\n"
    /// );
    /// ```
    pub fn text<'f>(&self, findings: impl IntoIterator<Item = &'f Finding>) -> String {
        let form = |(finding, place): (&'f Finding, u32)| {
            let mut form = FindingForm::new(finding);
            if form.id.is_empty() {
                form.id = FindingId::from_number(place).to_string();
            }
            (form, finding)
        };
        let (forms, findings): (Vec<_>, Vec<_>) = findings.into_iter().zip(1..).map(form).unzip();
        let mut text = self.write_lines(&forms, &findings);
        if !self.round_trips(&text, &forms) {
            text = self.write_json_lines(&forms);
        }
        text.push_str(if self.is_whole { END } else { "" });
        text.push('\n');
        text
    }

    /// Whether parsing the written lines yields the same result.
    fn round_trips(&self, text: &str, forms: &[FindingForm]) -> bool {
        let read = read(format!("{text}{END}\n").as_bytes());
        let [result] = &read.results[..] else { return false };
        let again = ResultForm::new(result);
        again.agent_id.as_deref() == self.agent_id
            && again.dimensions == self.dimensions
            && result.other.iter().map(field_text).eq(self.other.iter().map(field_text))
            && again.findings == forms
            && !text.contains(|ch| is_control(ch) && ch != '\n')
    }

    // Writing to a string cannot fail, here and below.
    fn write_lines(&self, forms: &[FindingForm], findings: &[&Finding]) -> String {
        let mut text = format!("{START}\n");
        write_other(&mut text, self.other, "", "");
        if let Some(agent_id) = self.agent_id {
            let _ = writeln!(text, "agent_id: {agent_id}");
        }
        write_other(&mut text, self.other, "agent_id", "");
        // The unknown fields `coverage` and `gaps` may already contain the dimensions.
        let has_field_after = self.other.iter().any(|field| field.after == "dimensions");
        let is_new = has_field_after || self.dimensions != read_dimensions(self.other);
        if !self.dimensions.is_empty() && is_new {
            let _ = writeln!(text, "dimensions: {}", self.dimensions.join(", "));
        }
        write_other(&mut text, self.other, "dimensions", "");
        if let Some(declared) = self.declared_findings {
            let _ = writeln!(text, "declared_findings: {declared}");
        }
        write_other(&mut text, self.other, "declared_findings", "");
        for ((form, finding), place) in forms.iter().zip(findings).zip(1..) {
            text.push('\n');
            write_finding(&mut text, form, finding, place);
        }
        text
    }

    fn write_json_lines(&self, forms: &[FindingForm]) -> String {
        let (agent_id, dimensions) = (self.agent_id, self.dimensions);
        let mut header = json!({"agent_id": agent_id, "dimensions": dimensions, "declared_findings": self.declared_findings});
        for field in self.other {
            header[&field.name] = json!(field.value);
        }
        // Serialising names and texts cannot fail.
        let lines = forms.iter().map(|form| serde_json::to_string(form).unwrap_or_default());
        let lines = std::iter::once(header.to_string()).chain(lines);
        let lines: Vec<String> = lines.map(|line| escape_json_controls(&line).into_owned()).collect();
        format!("{START}\n{}\n", lines.join("\n"))
    }
}

fn field_text(field: &OtherField) -> (&str, &str) {
    (&field.name, &field.value)
}

/// Writes the unknown fields that follow the known field `after`.
fn write_other(text: &mut String, other: &[OtherField], after: &str, indent: &str) {
    for (name, value) in other.iter().filter(|field| field.after == after).map(field_text) {
        let mut lines = value.split('\n');
        let first = format!("{indent}{name}: {}", lines.next().unwrap_or_default());
        let _ = writeln!(text, "{}", first.trim_end());
        for line in lines {
            let _ = writeln!(text, "{indent}  {line}");
        }
    }
}

fn write_finding(text: &mut String, form: &FindingForm, finding: &Finding, place: u32) {
    let is_known = !matches!(finding.severity, Some(Severity::Other(_)));
    let in_head = |field: Field| match field {
        Field::Severity => finding.has_headline && is_known,
        field => finding.has_headline && field == Field::Cwe,
    };
    let severity = form.severity.as_deref().filter(|_| in_head(Field::Severity));
    let cwe = form.cwe.as_deref().filter(|_| in_head(Field::Cwe));
    let has_headline = severity.is_some() || cwe.is_some();
    let title = Some(form.title.as_str()).filter(|title| !(has_headline && title.is_empty()));
    let title = [severity, cwe, title].into_iter().flatten().collect::<Vec<_>>().join(" | ");
    let (indent, location) = if has_headline { ("  ", "file") } else { ("", "location") };
    let _ = writeln!(text, "{}", finding_head(&form.id, &title, place).trim_end());
    write_other(text, &finding.other, "", indent);
    let truncated = form.originally_truncated.then(|| "true".to_owned());
    let fields = [
        (Field::Severity, "severity", &form.severity),
        (Field::Cwe, "cwe", &form.cwe),
        (Field::Location, location, &form.location),
        (Field::Source, "source", &form.source),
        (Field::Sink, "sink", &form.sink),
        (Field::Flow, "flow", &form.flow),
        (Field::OriginallyTruncated, "originally_truncated", &truncated),
    ];
    for (field, name, value) in fields {
        if let Some(value) = value
            && !in_head(field)
        {
            let _ = writeln!(text, "{indent}{name}: {value}");
        }
        write_other(text, &finding.other, field.name(), indent);
    }
    match form.evidence.as_deref() {
        Some(line) if has_headline && !line.contains('\n') && line.trim() == line => {
            let _ = writeln!(text, "{indent}evidence: {line}");
        }
        Some(evidence) => {
            let _ = writeln!(text, "{indent}evidence:");
            write_evidence(text, evidence, indent);
        }
        None => {}
    }
    write_other(text, &finding.other, Field::Evidence.name(), indent);
}

/// Returns the first line of a finding. An id of another form precedes the title: `[F002] SQLI-1: …`.
fn finding_head(id: &str, title: &str, place: u32) -> String {
    match FindingId::read(id) {
        Some(_) => format!("[{id}] {title}"),
        None => format!("[{}] {id}: {title}", FindingId::from_number(place)),
    }
}

/// Joins the lines of a text with spaces.
pub(super) fn one_line(text: &str) -> String {
    let parts = text.split(['\n', '\r']).map(str::trim).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

fn write_evidence(text: &mut String, evidence: &str, indent: &str) {
    // A leading fence would be parsed as if it enclosed the evidence, so enclose such evidence in another fence.
    let first = evidence.trim_start();
    let fence = (first.starts_with("```") || first.starts_with("~~~")).then(|| fence_around(evidence));
    for line in fence.as_deref().into_iter().chain(evidence.split('\n')).chain(fence.as_deref()) {
        let _ = writeln!(text, "{indent}  {line}");
    }
}

/// Returns a fence that no line of the text can close.
pub(super) fn fence_around(text: &str) -> String {
    let (mut longest, mut run) = (2, 0);
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest + 1)
}
