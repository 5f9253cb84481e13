//! A finding while its lines come.

use crate::{Cwe, Field, Finding, FindingId, Location, Position, ReadFinding, RemarkKind, Severity};

use super::evidence::{Collecting, Fence};
use super::names::Key;
use super::words::without_lead;
use crate::narrow::narrow;
use crate::stand_in::{is_placeholder, says_nothing};
use crate::transcript::letters;

/// A finding while its lines come.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) id: FindingId,
    title: String,
    position: Position,
    /// It has no line of its own to begin with: its fields are all there is.
    pub(super) is_headless: bool,
    /// Most of it has been said again, and otherwise.
    pub(super) is_questioned: bool,
    /// The values as they are written, each with its place; evidence is kept apart.
    values: Vec<(Key, String, Position)>,
    evidence: Option<Collecting>,
    /// Whether a blank line has come behind all of it.
    pub(super) is_ended_by_blank: bool,
    pub(super) taking: Taking,
    /// The field that came last, while it grows over several lines.
    growing: Option<Key>,
    /// The field that came last, while nothing else has come.
    latest: Option<Key>,
    pub(super) told: Told,
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

/// How a finding stands in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Told {
    /// In one turn, or in several that have ended between its fields.
    #[default]
    InOne,
    /// A turn has ended in the middle of it: it is not known to be whole.
    Interrupted,
}

/// What somebody has begun to say and may not have ended where another one speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftOpen {
    Header(Key),
    /// Nothing but the beginning of a finding.
    Title,
    /// The name of a field, of which nothing has been said.
    Name,
    Value(Key),
    Evidence,
    /// Text that belongs to no field: it may have been the name of one, or the beginning of a finding.
    Text,
}

/// What a finding says so far.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    said: &'a [(Key, String, Position)],
    has_evidence: bool,
}

impl Values<'_> {
    /// Whether nothing has been said yet about a field of one line.
    pub(super) fn lacks(self, key: Key) -> bool {
        let is_said = self.said.iter().any(|(known, value, _)| *known == key && !value.is_empty());
        // A place may have several: a class, and a method of it.
        let is_of_lines = matches!(key, Key::Lines | Key::LastLine);
        key == Key::Part || !(is_said || is_of_lines && self.has_lines())
    }

    /// Whether the location says which lines.
    fn has_lines(self) -> bool {
        let location = self.said.iter().find(|(key, ..)| *key == Key::Of(Field::Location));
        location.and_then(|(_, value, _)| Location::read(value)).is_some_and(|location| location.has_lines())
    }

    /// Whether the fields that follow are of another finding, since this one has them already and says another place, source
    /// or sink. Without a heading, two of them have to be there, and how bad it is.
    pub(super) fn are_of_another(self, fields: &[(Key, &str)], is_headed: bool) -> bool {
        let evidence = Key::Of(Field::Evidence);
        let has = |key: Key| self.repeated(fields).any(|(known, ..)| known == key);
        let is_told = has(Key::Of(Field::Severity)) || is_headed && has(Key::Of(Field::Location));
        let is_of_flow =
            |key: Key| matches!(key, Key::Lines | Key::Of(Field::Location | Field::Source | Field::Sink));
        fields.len() >= 2
            && is_told
            && (is_headed || self.repeated(fields).filter(|(key, _)| *key != evidence).count() >= 2)
            && self.repeated(fields).any(|(key, is_same)| !is_same && is_of_flow(key))
    }

    /// Whether most of a finding is said again, and otherwise, but not how bad it is: that is not taken for one.
    pub(super) fn are_in_question(self, fields: &[(Key, &str)]) -> bool {
        self.repeated(fields).filter(|(_, is_same)| !is_same).count() >= 3
    }

    /// Whether nothing is said but what is there, and the same.
    pub(super) fn say_all(self, fields: &[(Key, &str)]) -> bool {
        self.repeated(fields).filter(|(_, is_same)| *is_same).count() == fields.len()
    }

    /// The fields that are there already, and whether they say the same.
    fn repeated(self, fields: &[(Key, &str)]) -> impl Iterator<Item = (Key, bool)> {
        fields.iter().filter_map(move |(key, value)| {
            if *key == Key::Of(Field::Evidence) {
                return self.has_evidence.then_some((*key, true));
            }
            let (_, known, _) = self.said.iter().find(|(known, ..)| known == key)?;
            let (known, value) = (letters(known), letters(value));
            // Only the first of several lines is looked at.
            (!known.is_empty()).then(|| (*key, known.starts_with(&value)))
        })
    }
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
            is_questioned: false,
            evidence: None,
            is_ended_by_blank: false,
            taking: Taking::Fields,
            growing: None,
            latest: None,
            told: Told::InOne,
        }
    }

    /// What has begun and may not have ended, where somebody else speaks behind it.
    pub(super) fn begun(&self) -> Option<LeftOpen> {
        if let Some(evidence) = self.open_evidence() {
            return evidence.may_be_cut().then_some(LeftOpen::Evidence);
        }
        if self.is_bare() {
            return Some(LeftOpen::Title);
        }
        let is_said =
            |key: Key| self.values.iter().any(|(known, value, _)| *known == key && !value.is_empty());
        self.latest.map(|key| if is_said(key) { LeftOpen::Value(key) } else { LeftOpen::Name })
    }

    /// Whether its evidence is being taken.
    pub(super) fn is_in_evidence(&self) -> bool {
        self.open_evidence().is_some()
    }

    /// Takes a value back, and answers it.
    pub(super) fn forget(&mut self, key: Key) -> String {
        self.latest = None;
        let at = self.values.iter().position(|(known, ..)| *known == key);
        at.map(|at| self.values.remove(at).1).unwrap_or_default()
    }

    /// Takes all evidence back.
    pub(super) fn forget_evidence(&mut self) {
        self.evidence = None;
        self.taking = Taking::Fields;
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// Whether nothing but its beginning has come.
    pub(super) fn is_bare(&self) -> bool {
        self.values.is_empty() && self.evidence.is_none()
    }

    /// Whether evidence has come, and no field behind it.
    pub(super) fn is_behind_evidence(&self) -> bool {
        self.taking == Taking::MoreCode
    }

    /// Whether all is said that a finding has to say.
    pub(super) fn is_all_there(&self) -> bool {
        let needed = [Field::Severity, Field::Location, Field::Source, Field::Sink, Field::Evidence];
        needed.into_iter().all(|field| !self.is_new(Key::Of(field)))
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
            Key::AgentId | Key::Dimensions | Key::Declared | Key::Escapes | Key::Id => false,
            Key::Title => self.title.is_empty(),
            Key::Of(Field::Evidence) => self.evidence.is_none(),
            key => self.values().lacks(key),
        }
    }

    /// Takes a value; an empty one may follow in the next lines.
    pub(super) fn set(&mut self, key: Key, value: &str, position: Position) {
        self.is_ended_by_blank = false;
        self.taking = Taking::Fields;
        self.growing = None;
        self.latest = Some(key);
        if key != Key::Part {
            self.values.retain(|(known, ..)| *known != key);
        }
        self.values.push((key, value.to_owned(), position));
    }

    /// Takes how bad it is from the heading that it stands under, where it does not say that itself.
    pub(super) fn stands_under(&mut self, severity: &Severity) {
        let key = Key::Of(Field::Severity);
        if self.is_new(key) && !self.is_bare() {
            self.values.push((key, severity.name().to_owned(), self.position));
        }
    }

    /// The value that was taken last goes on in the next line.
    pub(super) fn grows(&mut self, key: Key) {
        self.growing = Some(key);
    }

    /// Goes on with the value that was taken last.
    pub(super) fn go_on(&mut self, key: Key, more: &str, is_item: bool) {
        self.is_ended_by_blank = false;
        self.growing = Some(key);
        self.latest = Some(key);
        if let Some((_, value, _)) = self.values.iter_mut().rfind(|(known, ..)| *known == key) {
            let between = match key {
                _ if value.is_empty() => "",
                // Steps in a list are the steps of a flow.
                Key::Ends | Key::Of(Field::Flow) if is_item => " -> ",
                Key::Of(Field::Location) if is_item => ", ",
                _ if is_item => "; ",
                _ => " ",
            };
            value.push_str(between);
            value.push_str(more);
        }
    }

    /// Begins to take evidence.
    pub(super) fn collect(&mut self, key_indent: usize, is_item: bool, inline: &str) {
        self.is_ended_by_blank = false;
        self.taking = Taking::Evidence;
        self.growing = None;
        self.latest = None;
        self.evidence = Some(Collecting::new(key_indent, is_item, inline));
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
        self.latest = None;
    }

    /// The evidence that is being taken.
    pub(super) fn evidence(&mut self) -> Option<&mut Collecting> {
        self.evidence.as_mut().filter(|_| self.taking == Taking::Evidence)
    }

    /// The same beside all that is said.
    pub(super) fn evidence_and_values(&mut self) -> Option<(&mut Collecting, Values<'_>)> {
        let evidence = self.evidence.as_mut().filter(|_| self.taking == Taking::Evidence)?;
        Some((evidence, Values { said: &self.values, has_evidence: true }))
    }

    /// The evidence while it is being taken, to look at.
    pub(super) fn open_evidence(&self) -> Option<&Collecting> {
        self.evidence.as_ref().filter(|_| self.taking == Taking::Evidence)
    }

    /// All that is said but for the title.
    pub(super) fn values(&self) -> Values<'_> {
        Values { said: &self.values, has_evidence: self.evidence.is_some() }
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
        let is_ended = is_ended && draft.told == Told::InOne;
        let mut remarks = Vec::new();
        if !is_ended {
            // The fields that may have been to come say it better.
            draft.values.retain(|(key, ..)| *key != Key::Ends);
        }
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
        let (mut location, mut lines, mut last) = (None, None, None);
        let mut parts = Vec::new();
        let mut ends = None;
        let mut beside_severity = Vec::new();
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
                Key::Lines => lines = Some((text, position)),
                Key::LastLine => last = Some((text, position)),
                Key::Part => parts.push(text),
                Key::Ends => ends = Some(text),
                Key::Of(Field::Location) => location = Some(text),
                Key::Of(Field::Source) => finding.source = Some(text),
                Key::Of(Field::Sink) => finding.sink = Some(text),
                Key::Of(Field::Flow) => finding.flow = Some(text),
                Key::Of(Field::Severity) => {
                    finding.severity = severity(&text);
                    if let Some(Severity::Other(_)) = finding.severity {
                        remarks.push((RemarkKind::UnknownSeverity, text, position));
                    } else {
                        beside_severity = Cwe::named_in(&narrow(&text));
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
                | Key::Escapes
                | Key::Id
                | Key::Title => {}
            }
        }
        if let Some(ends) = ends {
            between_ends(&mut finding, ends);
        }
        // `severity: High (CWE-89)`
        Cwe::add_new(&mut finding.cwe, beside_severity);
        finding.location = location.as_deref().and_then(Location::read);
        let lines = match (lines, last) {
            (Some((first, position)), Some((last, of_last))) => {
                let whole = up_to(&first, &last);
                if whole.is_none() {
                    remarks.push((RemarkKind::RepeatedField, last, of_last));
                }
                Some((whole.unwrap_or(first), position))
            }
            (lines, last) => lines.or(last),
        };
        match (location, lines) {
            (Some(file), Some((lines, _))) if !finding.location.as_ref().is_some_and(Location::has_lines) => {
                finding.location = Location::read(&format!("{}:{lines}", file.trim_matches('`')));
            }
            (Some(_), Some((lines, position))) => {
                remarks.push((RemarkKind::RepeatedField, lines, position));
            }
            (None, _) | (_, None) => {}
        }
        finding.location = with_parts(finding.location, &parts);
        let evidence = self.evidence.and_then(Collecting::finish);
        finding.evidence = evidence.filter(|text| !says_nothing(Field::Evidence, text.as_str()));
        finding
    }
}

/// Lines up to the last of them: `3` and `9` are `3-9`; none where the first say already how far they go.
fn up_to(first: &str, last: &str) -> Option<String> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(first) && is_number(last)).then(|| format!("{first}-{last}"))
}

/// Takes the source and the sink from both ends of a flow, where no other field names them; a flow of more steps is one.
fn between_ends(finding: &mut Finding, ends: String) {
    let steps = ["→", "⟶", "⇒", "->", "=>"].iter().fold(vec![ends.as_str()], |steps, arrow| {
        steps.into_iter().flat_map(|step| step.split(arrow)).collect()
    });
    let steps: Vec<&str> = steps.into_iter().map(str::trim).collect();
    if let [source, between @ .., sink] = steps.as_slice()
        && !source.is_empty()
        && !sink.is_empty()
    {
        let is_all_said = between.is_empty() && finding.source.is_none() && finding.sink.is_none();
        finding.source.get_or_insert_with(|| (*source).to_owned());
        finding.sink.get_or_insert_with(|| (*sink).to_owned());
        if is_all_said {
            return;
        }
    }
    finding.flow.get_or_insert(ends);
}

/// A location and what of it other fields name, where it does not say that itself: `src/a.rs (login)`.
fn with_parts(location: Option<Location>, parts: &[String]) -> Option<Location> {
    let places = location.as_ref().map(Location::places).unwrap_or_default();
    let is_said = |part: &&str| {
        let part = letters(part);
        places.iter().filter_map(|place| place.part.as_deref()).any(|known| letters(known).contains(&part))
    };
    let parts = parts.iter().map(|part| part.trim_matches(['`', ' ']));
    let parts: Vec<&str> =
        parts.filter(|part| !says_nothing(Field::Location, part) && !is_said(part)).collect();
    match location {
        _ if parts.is_empty() => location,
        None => Location::read(&parts.join(", ")),
        Some(location) => Location::read(&format!("{} ({})", location.as_str(), parts.join(", "))),
    }
}

/// A severity, also behind a picture or a tag; what is none stays as it is written.
fn severity(text: &str) -> Option<Severity> {
    let bare = Severity::read(without_lead(text).0);
    bare.filter(|severity| !matches!(severity, Severity::Other(_))).or_else(|| Severity::read(text))
}
