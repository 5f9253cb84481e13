//! A finding whose fields are being parsed. (AR-1)

use super::evidence::EvidenceCollector;
use super::grammar::Headline;
use super::key::Key;
use crate::other::OtherFields;
use crate::stand_in::{is_placeholder, says_nothing};
use crate::{Cwe, Field, Finding, FindingId, Location, Position, ReadFinding, RemarkKind, Severity};

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Draft {
    pub(super) id: FindingId,
    title: String,
    position: Position,
    /// The values as written, each with its position. Evidence is kept separately.
    values: Vec<(Key, String, Position)>,
    pub(super) evidence: Option<EvidenceCollector>,
    /// Whether the next lines may be evidence.
    pub(super) is_in_evidence: bool,
    /// Whether a blank line followed all of it.
    pub(super) is_ended_by_blank: bool,
    /// Whether another turn may have begun within it, so that it may be incomplete.
    pub(super) is_interrupted: bool,
    /// The field that continues at the end of the text and is incomplete.
    pub(super) growing: Option<Key>,
    /// Unknown fields.
    pub(super) other: OtherFields,
    pub(super) is_headed: bool,
    /// The last known field.
    said_last: &'static str,
}

/// The outcome of a draft.
pub(super) enum DraftOutcome {
    Finding(Box<ReadFinding>, Vec<(RemarkKind, String, Position)>),
    /// All values are placeholders.
    Template(Position),
}

impl Draft {
    pub(super) fn new(id: FindingId, title: &str, position: Position) -> Self {
        Self {
            id,
            title: title.to_owned(),
            position,
            values: Vec::new(),
            evidence: None,
            is_in_evidence: false,
            is_ended_by_blank: false,
            is_interrupted: false,
            growing: None,
            other: OtherFields::default(),
            is_headed: false,
            said_last: "",
        }
    }

    /// Creates a finding whose first line contains severity and weakness.
    pub(super) fn headed(id: FindingId, head: &Headline<'_>, position: Position) -> Self {
        let mut draft = Self { is_headed: true, ..Self::new(id, &head.title, position) };
        for (field, part) in [(Field::Severity, head.severity), (Field::Cwe, head.cwe)] {
            if let Some(part) = part {
                draft.set(Key::Of(field), part, position);
            }
        }
        Self { said_last: "", ..draft }
    }

    /// Sets an unknown field, unless its name is already present.
    pub(super) fn set_other(&mut self, name: &str, value: &str) -> bool {
        self.other.set(name, value, self.said_last)
    }

    /// Sets the first part of its evidence.
    pub(super) fn set_evidence(&mut self, evidence: EvidenceCollector) {
        (self.evidence, self.said_last) = (Some(evidence), Field::Evidence.name());
    }

    /// Whether it has no fields yet besides its first line.
    pub(super) fn is_bare(&self) -> bool {
        self.said_last.is_empty() && self.other.is_empty()
    }

    /// Whether it may have ended: it has all required fields, or a blank line followed its evidence.
    pub(super) fn may_have_ended(&self) -> bool {
        self.evidence.is_some() && self.is_ended_by_blank
            || Field::NEEDED.into_iter().all(|field| self.said(Key::Of(field)).is_some())
    }

    /// Returns the value of a field so far. For evidence this is an empty text if there is any.
    pub(super) fn said(&self, key: Key) -> Option<&str> {
        match key {
            Key::Title => Some(self.title.as_str()).filter(|title| !title.is_empty()),
            Key::Id => Some(self.id.as_str()),
            Key::Of(Field::Evidence) => self.evidence.as_ref().map(|_| ""),
            key => self.values.iter().find(|(known, ..)| *known == key).map(|(_, value, _)| value.as_str()),
        }
    }

    /// Sets a value. If it is empty, the value may follow on the next lines.
    pub(super) fn set(&mut self, key: Key, value: &str, position: Position) {
        match key {
            Key::Title => value.clone_into(&mut self.title),
            key => {
                self.said_last = match key {
                    Key::Of(field) => field.name(),
                    _ => Field::Location.name(),
                };
                self.values.push((key, value.to_owned(), position));
            }
        }
    }

    /// Continues the value that was set last.
    pub(super) fn go_on(&mut self, key: Key, more: &str, is_item: bool) {
        self.growing = Some(key);
        if let Some((_, value, _)) = self.values.iter_mut().rfind(|(known, ..)| *known == key) {
            let between = match key {
                _ if value.is_empty() => "",
                Key::Of(Field::Flow) if is_item => " -> ",
                _ if is_item => ", ",
                _ => " ",
            };
            value.push_str(between);
            value.push_str(more);
        }
    }

    /// Removes a value.
    pub(super) fn forget(&mut self, key: Key) {
        self.values.retain(|(known, ..)| *known != key);
    }

    /// Returns the finding. `is_ended` states that the text after it closed it.
    pub(super) fn finish(mut self, is_ended: bool) -> DraftOutcome {
        let position = self.position;
        if self.is_template() {
            return DraftOutcome::Template(position);
        }
        let is_open = self.evidence.as_ref().is_some_and(EvidenceCollector::is_open);
        let is_ended = (is_ended || self.is_ended_by_blank && !is_open) && !self.is_interrupted;
        if let Some(growing) = self.growing.filter(|_| !is_ended) {
            self.forget(growing);
        }
        let mut remarks = Vec::new();
        let finding = self.into_finding(&mut remarks);
        DraftOutcome::Finding(Box::new(ReadFinding::new(finding, is_ended, position)), remarks)
    }

    /// Whether all values are placeholders: `severity: <Critical, High, …>`.
    fn is_template(&self) -> bool {
        let values = self.values.iter().map(|(_, value, _)| value.as_str());
        let mut said = values.chain([self.title.as_str()]).filter(|value| !value.is_empty()).peekable();
        said.peek().is_some() && said.all(is_placeholder)
    }

    fn into_finding(self, remarks: &mut Vec<(RemarkKind, String, Position)>) -> Finding {
        let (other, is_headed) = (self.other.into_fields(), self.is_headed);
        let mut finding = Finding { id: self.id, title: self.title, other, is_headed, ..Finding::default() };
        let (mut location, mut lines, mut last_line) = (None, None, None);
        let mut beside_severity = Vec::new();
        for (key, value, position) in self.values {
            let text = value.trim().to_owned();
            if text.is_empty() {
                continue;
            }
            match key {
                Key::Of(field) if says_nothing(field, &text) => {
                    remarks.push((RemarkKind::SaysNothing, text, position));
                }
                Key::Of(Field::Location) => location = Some(text),
                Key::Lines => lines = Some((text, position)),
                Key::LastLine => last_line = Some(text),
                Key::Of(Field::Source) => finding.source = Some(text),
                Key::Of(Field::Sink) => finding.sink = Some(text),
                Key::Of(Field::Flow) => finding.flow = Some(text),
                Key::Of(Field::Severity) => {
                    finding.severity = Severity::read(&text);
                    if let Some(Severity::Other(_)) = finding.severity {
                        remarks.push((RemarkKind::UnknownSeverity, text, position));
                    } else {
                        beside_severity = Cwe::named_in(&text);
                    }
                }
                Key::Of(Field::Cwe) => {
                    finding.cwe = Cwe::read(&text);
                    if finding.cwe.is_empty() {
                        remarks.push((RemarkKind::NoCwe, text, position));
                    }
                }
                Key::Of(Field::OriginallyTruncated) => {
                    finding.originally_truncated = text.eq_ignore_ascii_case("true");
                }
                _ => {}
            }
        }
        // `severity: High (CWE-89)`
        Cwe::add_new(&mut finding.cwe, beside_severity);
        finding.location = location.as_deref().and_then(Location::read);
        if let (Some((lines, _)), Some(last)) = (&mut lines, last_line) {
            *lines = format!("{lines}-{last}");
        }
        match (location, lines) {
            // `file: src/a.rs`, `line: 41`
            (Some(file), Some((lines, _))) if !finding.location.as_ref().is_some_and(Location::has_lines) => {
                finding.location = Location::read(&format!("{}:{lines}", file.trim_matches('`')));
            }
            (_, Some((lines, position))) => remarks.push((RemarkKind::RepeatedField, lines, position)),
            (_, None) => {}
        }
        let evidence = self.evidence.and_then(EvidenceCollector::finish);
        finding.evidence = evidence.filter(|text| !says_nothing(Field::Evidence, text.as_str()));
        finding
    }
}
