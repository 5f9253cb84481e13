//! Collects the fields of a finding while it is parsed. (AR-1)

use super::evidence::EvidenceCollector;
use super::grammar::Headline;
use super::key::Key;
use crate::placeholder::{is_placeholder, is_uninformative};
use crate::unknown_fields::OtherFields;
use crate::{Cwe, Field, Finding, FindingId, Location, Position, ReadFinding, RemarkKind, Severity};

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct FindingDraft {
    pub(super) id: FindingId,
    title: String,
    position: Position,
    /// The values as written, each with its position. Evidence is stored separately.
    values: Vec<(Key, String, Position)>,
    pub(super) evidence: Option<EvidenceCollector>,
    /// Whether the next lines may be evidence.
    pub(super) is_in_evidence: bool,
    /// Whether a blank line followed the last line.
    pub(super) is_ended_by_blank: bool,
    /// Whether another turn of the conversation may have begun inside the finding, so that it may be incomplete.
    pub(super) is_interrupted: bool,
    /// The field that was continued last. It is incomplete if the text ends here.
    pub(super) growing_key: Option<Key>,
    /// The unknown fields.
    pub(super) other: OtherFields,
    pub(super) has_headline: bool,
    /// The name of the last known field. Empty before the first one.
    last_field_name: &'static str,
}

/// The outcome of a draft.
pub(super) enum DraftOutcome {
    Finding(Box<ReadFinding>, Vec<(RemarkKind, String, Position)>),
    /// All values are placeholders.
    Template(Position),
}

impl FindingDraft {
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
            growing_key: None,
            other: OtherFields::default(),
            has_headline: false,
            last_field_name: "",
        }
    }

    /// Creates a finding whose first line contains the severity, the weakness, or both.
    pub(super) fn from_headline(id: FindingId, head: &Headline<'_>, position: Position) -> Self {
        let mut draft = Self { has_headline: true, ..Self::new(id, &head.title, position) };
        for (field, part) in [(Field::Severity, head.severity), (Field::Cwe, head.cwe)] {
            if let Some(part) = part {
                draft.set(Key::Finding(field), part, position);
            }
        }
        Self { last_field_name: "", ..draft }
    }

    /// Sets an unknown field, unless its name is already present. Returns whether it was set.
    pub(super) fn set_other(&mut self, name: &str, value: &str) -> bool {
        self.other.set(name, value, self.last_field_name)
    }

    /// Sets the evidence, which the next lines may continue.
    pub(super) fn set_evidence(&mut self, evidence: EvidenceCollector) {
        (self.evidence, self.last_field_name) = (Some(evidence), Field::Evidence.name());
    }

    /// Whether the finding has no fields yet besides its first line.
    pub(super) fn is_bare(&self) -> bool {
        self.last_field_name.is_empty() && self.other.is_empty()
    }

    /// Whether the finding may have ended: it has all required fields, or a blank line followed its evidence.
    pub(super) fn may_have_ended(&self) -> bool {
        self.evidence.is_some() && self.is_ended_by_blank
            || Field::REQUIRED.into_iter().all(|field| self.value(Key::Finding(field)).is_some())
    }

    /// Returns the value of a field so far. If there is evidence, returns an empty text for it.
    pub(super) fn value(&self, key: Key) -> Option<&str> {
        match key {
            Key::Title => Some(self.title.as_str()).filter(|title| !title.is_empty()),
            Key::Id => Some(self.id.as_str()),
            Key::Finding(Field::Evidence) => self.evidence.as_ref().map(|_| ""),
            key => self.values.iter().find(|(known, ..)| *known == key).map(|(_, value, _)| value.as_str()),
        }
    }

    /// Sets a value. If it is empty, the next lines may contain it.
    pub(super) fn set(&mut self, key: Key, value: &str, position: Position) {
        match key {
            Key::Title => value.clone_into(&mut self.title),
            key => {
                self.last_field_name = match key {
                    Key::Finding(field) => field.name(),
                    _ => Field::Location.name(),
                };
                self.values.push((key, value.to_owned(), position));
            }
        }
    }

    /// Appends to the value that was set last. Items are separated by commas, steps of a flow by arrows.
    pub(super) fn append(&mut self, key: Key, more: &str, is_item: bool) {
        self.growing_key = Some(key);
        if let Some((_, value, _)) = self.values.iter_mut().rfind(|(known, ..)| *known == key) {
            let between = match key {
                _ if value.is_empty() => "",
                Key::Finding(Field::Flow) if is_item => " -> ",
                _ if is_item => ", ",
                _ => " ",
            };
            value.push_str(between);
            value.push_str(more);
        }
    }

    /// Removes the value of a field.
    pub(super) fn remove(&mut self, key: Key) {
        self.values.retain(|(known, ..)| *known != key);
    }

    /// Finishes the finding. `is_ended` states that text follows which ends it.
    pub(super) fn finish(mut self, is_ended: bool) -> DraftOutcome {
        let position = self.position;
        if self.is_template() {
            return DraftOutcome::Template(position);
        }
        let is_open = self.evidence.as_ref().is_some_and(EvidenceCollector::is_open);
        let is_ended = (is_ended || self.is_ended_by_blank && !is_open) && !self.is_interrupted;
        if let Some(growing) = self.growing_key.filter(|_| !is_ended) {
            self.remove(growing);
        }
        let mut remarks = Vec::new();
        let finding = self.into_finding(&mut remarks);
        DraftOutcome::Finding(Box::new(ReadFinding::new(finding, is_ended, position)), remarks)
    }

    /// Whether all values are placeholders: `severity: <Critical, High, …>`.
    fn is_template(&self) -> bool {
        let values = self.values.iter().map(|(_, value, _)| value.as_str());
        let mut values_left =
            values.chain([self.title.as_str()]).filter(|value| !value.is_empty()).peekable();
        values_left.peek().is_some() && values_left.all(is_placeholder)
    }

    fn into_finding(self, remarks: &mut Vec<(RemarkKind, String, Position)>) -> Finding {
        let (other, is_headed) = (self.other.into_fields(), self.has_headline);
        let mut finding =
            Finding { id: self.id, title: self.title, other, has_headline: is_headed, ..Finding::default() };
        let (mut location, mut lines, mut last_line) = (None, None, None);
        let mut cwe_in_severity = Vec::new();
        for (key, value, position) in self.values {
            let text = value.trim().to_owned();
            if text.is_empty() {
                continue;
            }
            match key {
                Key::Finding(field) if is_uninformative(field, &text) => {
                    remarks.push((RemarkKind::PlaceholderValue, text, position));
                }
                Key::Finding(Field::Location) => location = Some(text),
                Key::Lines => lines = Some((text, position)),
                Key::LastLine => last_line = Some(text),
                Key::Finding(Field::Source) => finding.source = Some(text),
                Key::Finding(Field::Sink) => finding.sink = Some(text),
                Key::Finding(Field::Flow) => finding.flow = Some(text),
                Key::Finding(Field::Severity) => {
                    finding.severity = Severity::read(&text);
                    if let Some(Severity::Other(_)) = finding.severity {
                        remarks.push((RemarkKind::UnknownSeverity, text, position));
                    } else {
                        cwe_in_severity = Cwe::find_in(&text);
                    }
                }
                Key::Finding(Field::Cwe) => {
                    finding.cwe = Cwe::read(&text);
                    if finding.cwe.is_empty() {
                        remarks.push((RemarkKind::NoCwe, text, position));
                    }
                }
                Key::Finding(Field::OriginallyTruncated) => {
                    finding.originally_truncated = text.eq_ignore_ascii_case("true");
                }
                _ => {}
            }
        }
        // `severity: High (CWE-89)`
        Cwe::add_new(&mut finding.cwe, cwe_in_severity);
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
        finding.evidence = evidence.filter(|text| !is_uninformative(Field::Evidence, text.as_str()));
        finding
    }
}
