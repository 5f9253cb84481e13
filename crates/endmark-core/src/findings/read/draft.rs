//! A finding while its lines come.

use crate::findings::{
    Cwe, Field, Finding, FindingId, Location, Position, ReadFinding, RemarkKind, Severity,
};

use super::evidence::{Collecting, Fence};
use super::names::Key;
use crate::findings::stand_in::{is_placeholder, says_nothing};

/// A finding while its lines come.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) id: FindingId,
    title: String,
    position: Position,
    /// It has no line of its own to begin with: its fields are all there is.
    pub(super) is_headless: bool,
    /// The values as they are written, each with its place; evidence is kept apart.
    values: Vec<(Key, String, Position)>,
    evidence: Option<Collecting>,
    /// Whether a blank line has come behind all of it.
    pub(super) is_ended_by_blank: bool,
    pub(super) taking: Taking,
    /// The field that came last, while it grows over several lines.
    growing: Option<Key>,
}

/// What the next lines of a finding can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taking {
    /// Fields.
    Fields,
    /// Evidence that may still go on.
    Evidence,
    /// Fields, or more code, which is more evidence: nothing but prose has come behind it.
    MoreCode,
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
            is_headless: false,
            evidence: None,
            is_ended_by_blank: false,
            taking: Taking::Fields,
            growing: None,
        }
    }

    /// Whether nothing but its beginning has come.
    pub(super) fn is_bare(&self) -> bool {
        self.values.is_empty() && self.evidence.is_none()
    }

    /// Takes a title, if there is none.
    pub(super) fn entitle(&mut self, title: &str) -> bool {
        if self.title.is_empty() {
            title.clone_into(&mut self.title);
            return true;
        }
        false
    }

    /// Whether nothing has been said about this yet.
    pub(super) fn is_new(&self, key: Key) -> bool {
        match key {
            Key::AgentId | Key::Dimensions | Key::Declared | Key::Id => false,
            Key::Title => self.title.is_empty(),
            Key::Lines if self.has_lines() => false,
            Key::Of(Field::Evidence) => self.evidence.is_none(),
            key => !self.values.iter().any(|(known, value, _)| *known == key && !value.is_empty()),
        }
    }

    /// Whether the location says which lines.
    fn has_lines(&self) -> bool {
        let location = self.values.iter().find(|(key, ..)| *key == Key::Of(Field::Location));
        location
            .and_then(|(_, value, _)| Location::read(value))
            .is_some_and(|location| location.places().iter().any(|place| place.lines.is_some()))
    }

    /// Takes a value; an empty one may follow in the next lines.
    pub(super) fn set(&mut self, key: Key, value: &str, position: Position) {
        self.is_ended_by_blank = false;
        self.taking = Taking::Fields;
        self.growing = None;
        self.values.retain(|(known, ..)| *known != key);
        self.values.push((key, value.to_owned(), position));
    }

    /// Goes on with the value that was taken last.
    pub(super) fn go_on(&mut self, key: Key, more: &str, is_item: bool) {
        self.is_ended_by_blank = false;
        self.growing = Some(key);
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
        self.taking = Taking::Evidence;
        self.evidence = Some(Collecting::new(key_indent, inline));
    }

    /// Takes evidence that is there in one piece.
    pub(super) fn collect_text(&mut self, text: &str) {
        self.evidence = Some(Collecting::of_text(text));
    }

    /// Goes on taking evidence: another piece of code.
    pub(super) fn reopen(&mut self, fence: Fence) {
        if let Some(evidence) = &mut self.evidence {
            evidence.reopen(fence);
            self.taking = Taking::Evidence;
            self.is_ended_by_blank = false;
        }
    }

    /// Something came behind the field that grew, so that it is all there.
    pub(super) fn settle(&mut self) {
        self.growing = None;
    }

    /// The evidence that is being taken.
    pub(super) fn evidence(&mut self) -> Option<&mut Collecting> {
        self.evidence.as_mut().filter(|_| self.taking == Taking::Evidence)
    }

    /// The finding; `is_ended` says that something came behind it that ends it.
    pub(super) fn finish(self, is_ended: bool) -> Finished {
        if self.is_template() {
            return Finished::Template(self.position);
        }
        let (is_ended, position) = (is_ended || self.is_ended_by_blank, self.position);
        // A field that the text stops in could have gone on.
        let growing = self.growing.filter(|_| !is_ended);
        let mut draft = self;
        draft.values.retain(|(key, ..)| Some(*key) != growing);
        let mut remarks = Vec::new();
        let finding = draft.into_finding(&mut remarks);
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
            if let Key::Of(field) = key
                && says_nothing(field, &text)
            {
                remarks.push((RemarkKind::SaysNothing, text, position));
                continue;
            }
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
                Key::Of(Field::Evidence)
                | Key::AgentId
                | Key::Dimensions
                | Key::Declared
                | Key::Id
                | Key::Title => {}
            }
        }
        finding.location = location.and_then(|file| match lines {
            Some(lines) => Location::read(&format!("{}:{lines}", file.trim_matches('`'))),
            None => Location::read(&file),
        });
        let evidence = self.evidence.and_then(Collecting::finish);
        finding.evidence = evidence.filter(|text| !says_nothing(Field::Evidence, text.as_str()));
        finding
    }
}
