//! A finding while its lines come.

use crate::findings::{
    Cwe, Field, Finding, FindingId, Location, Position, ReadFinding, RemarkKind, Severity,
};

use super::evidence::Collecting;
use super::words::{Key, is_placeholder};

/// A finding while its lines come.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) id: FindingId,
    title: String,
    position: Position,
    /// The values as they are written, each with its place; evidence is kept apart.
    values: Vec<(Key, String, Position)>,
    evidence: Option<Collecting>,
    /// Whether a blank line has come behind all of it.
    pub(super) is_ended_by_blank: bool,
    /// Whether evidence may still go on.
    pub(super) is_in_evidence: bool,
}

/// What a draft came to.
pub(super) enum Finished {
    Finding(Box<ReadFinding>, Vec<(RemarkKind, String, Position)>),
    /// All that is said stands for something else.
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
            is_ended_by_blank: false,
            is_in_evidence: false,
        }
    }

    /// Whether nothing has been said about this yet.
    pub(super) fn is_new(&self, key: Key) -> bool {
        match key {
            Key::AgentId | Key::Dimensions | Key::Declared => false,
            Key::Of(Field::Evidence) => self.evidence.is_none(),
            key => !self.values.iter().any(|(known, value, _)| *known == key && !value.is_empty()),
        }
    }

    /// Takes a value; an empty one may follow in the next lines.
    pub(super) fn set(&mut self, key: Key, value: &str, position: Position) {
        self.is_ended_by_blank = false;
        self.values.retain(|(known, ..)| *known != key);
        self.values.push((key, value.to_owned(), position));
    }

    /// Goes on with the value that was taken last.
    pub(super) fn go_on(&mut self, key: Key, more: &str, is_item: bool) {
        self.is_ended_by_blank = false;
        if let Some((_, value, _)) = self.values.iter_mut().find(|(known, ..)| *known == key) {
            let between = match key {
                _ if value.is_empty() => "",
                // Steps in a list are the steps of a flow.
                Key::Of(Field::Flow) if is_item => " -> ",
                Key::Of(Field::Location) if is_item => ", ",
                _ if is_item => "; ",
                _ => " ",
            };
            value.push_str(between);
            value.push_str(more);
        }
    }

    /// Begins to take evidence.
    pub(super) fn collect(&mut self, key_indent: usize, inline: &str) {
        self.is_ended_by_blank = false;
        self.is_in_evidence = true;
        self.evidence = Some(Collecting::new(key_indent, inline));
    }

    /// The evidence that is being taken.
    pub(super) fn evidence(&mut self) -> Option<&mut Collecting> {
        self.evidence.as_mut().filter(|_| self.is_in_evidence)
    }

    /// The finding; `is_ended` says that something came behind it that ends it.
    pub(super) fn finish(self, is_ended: bool) -> Finished {
        if self.is_template() {
            return Finished::Template(self.position);
        }
        let (is_ended, position) = (is_ended || self.is_ended_by_blank, self.position);
        let mut remarks = Vec::new();
        let finding = self.into_finding(&mut remarks);
        Finished::Finding(Box::new(ReadFinding::new(finding, is_ended, position)), remarks)
    }

    /// Whether all that is said stands for something else: `severity: <Critical, High, …>`.
    fn is_template(&self) -> bool {
        let values = self.values.iter().map(|(_, value, _)| value.as_str());
        let mut said = values.chain([self.title.as_str()]).filter(|value| !value.is_empty()).peekable();
        said.peek().is_some() && said.all(is_placeholder)
    }

    fn into_finding(self, remarks: &mut Vec<(RemarkKind, String, Position)>) -> Finding {
        let mut finding = Finding { id: self.id, title: self.title, ..Finding::default() };
        let (mut location, mut lines) = (None, None);
        for (key, value, position) in self.values {
            let text = Some(value.trim().to_owned()).filter(|text| !text.is_empty());
            let Some(text) = text else { continue };
            match key {
                Key::Lines => lines = Some(text),
                Key::Of(Field::Location) => location = Some(text),
                Key::Of(Field::Source) => finding.source = Some(text),
                Key::Of(Field::Sink) => finding.sink = Some(text),
                Key::Of(Field::Flow) => finding.flow = Some(text),
                Key::Of(Field::Severity) => {
                    finding.severity = Severity::read(&text);
                    if let Some(Severity::Other(_)) = finding.severity {
                        remarks.push((RemarkKind::UnknownSeverity, text, position));
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
                Key::Of(Field::Evidence) | Key::AgentId | Key::Dimensions | Key::Declared => {}
            }
        }
        finding.location = location.and_then(|file| match lines {
            Some(lines) => Location::read(&format!("{}:{lines}", file.trim_matches('`'))),
            None => Location::read(&file),
        });
        finding.evidence = self.evidence.and_then(Collecting::finish);
        finding
    }
}
