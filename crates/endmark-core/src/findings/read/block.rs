//! A result between its markers: header, findings, fields.

use crate::findings::expected::Numbers;
use crate::findings::{AgentResult, Checkpoint, Cut, Field, Position, ReadFinding, RemarkKind};

use super::Remarks;
use super::checkpoint::list;
use super::draft::{Draft, Finished};
use super::evidence::{Ahead, Fence, Step};
use super::lines::{Line, indent, unquoted};
use super::words::{self, Key, Marker, is_placeholder, item, may_become_structure};

/// A result that has begun.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) begins: Position,
    /// How many signs of a quotation stand before each line.
    quotes: usize,
    /// Code around the result, which may be closed inside of it.
    around: Option<Fence>,
    /// Code that belongs to no field.
    ignored: Option<Fence>,
    agent_id: Option<String>,
    dimensions: Option<Vec<String>>,
    declared: Option<u32>,
    findings: Vec<ReadFinding>,
    ids: Numbers,
    templates: usize,
    draft: Option<Draft>,
    /// The field that the next line may go on with, and how far it is indented.
    last: Option<(Key, usize)>,
    /// Whether the line before was ignored, so that one remark does for all of them.
    is_ignoring: bool,
}

/// What a line did to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// It is still open.
    Open,
    /// The line is a checkpoint.
    Checkpoint,
    /// The end marker came.
    Ended,
    /// Another start marker came.
    Restarted,
}

impl Block {
    pub(super) fn new(begins: Position, quotes: usize, around: Option<Fence>) -> Self {
        Self {
            begins,
            quotes,
            around,
            ignored: None,
            agent_id: None,
            dimensions: None,
            declared: None,
            findings: Vec::new(),
            ids: Numbers::default(),
            templates: 0,
            draft: None,
            last: None,
            is_ignoring: false,
        }
    }

    /// Whether nothing has come behind the start marker.
    pub(super) fn is_empty(&self) -> bool {
        self.agent_id.is_none() && self.dimensions.is_none() && self.ids.count == 0 && self.templates == 0
    }

    /// Takes the line at this index.
    pub(super) fn line(&mut self, lines: &[Line<'_>], at: usize, remarks: &mut Remarks) -> Closed {
        let line = &lines[at];
        let text = unquoted(&line.text, self.quotes);
        let ahead = Next { lines, at, quotes: self.quotes };
        if let Some(draft) = &mut self.draft
            && self.ignored.is_none()
        {
            let known: Vec<Key> = WITHIN_EVIDENCE.into_iter().filter(|key| !draft.is_new(*key)).collect();
            let is_new = |key| WITHIN_EVIDENCE.contains(&key) && !known.contains(&key);
            if let Some(evidence) = draft.evidence() {
                match evidence.step(line, text, is_new, &ahead) {
                    Step::Taken => {
                        draft.is_ended_by_blank = false;
                        return Closed::Open;
                    }
                    Step::TakenForEvidence => {
                        draft.is_ended_by_blank = false;
                        remarks.add(RemarkKind::InsideEvidence, text, line.begins());
                        return Closed::Open;
                    }
                    Step::Blank => {
                        draft.is_ended_by_blank |= line.is_empty();
                        return Closed::Open;
                    }
                    Step::NotEvidence => draft.is_in_evidence = false,
                }
            }
        }
        self.structure(line, text, &ahead, remarks)
    }

    fn structure(
        &mut self,
        line: &Line<'_>,
        text: &str,
        ahead: &Next<'_, '_>,
        remarks: &mut Remarks,
    ) -> Closed {
        if let Some(fence) = self.ignored {
            let is_closing = Fence::of(text).is_some_and(|other| fence.is_closed_by(other));
            if is_closing {
                self.ignored = None;
            }
            if is_closing || !ahead.begins_finding() {
                return Closed::Open;
            }
            self.ignored = None;
        }
        match words::marker(text) {
            Some(Marker::Start) => return Closed::Restarted,
            Some(Marker::End) => return Closed::Ended,
            None => {}
        }
        if super::checkpoint::checkpoint(text, true, line.begins()).is_some() {
            return Closed::Checkpoint;
        }
        if text.trim().is_empty() {
            self.last = None;
            if let Some(draft) = &mut self.draft {
                draft.is_ended_by_blank |= line.is_empty();
            }
        } else if let Some((id, title)) = words::head(text) {
            self.is_ignoring = false;
            self.finish_draft(true, remarks);
            self.last = None;
            self.draft = Some(Draft::new(id, title, line.begins()));
        } else if let Some(fence) = Fence::of(text) {
            self.fence(fence, ahead);
        } else {
            self.field(line, text, remarks);
        }
        Closed::Open
    }

    /// A fence where there is no evidence: it is around the result, or around what belongs to no field.
    fn fence(&mut self, fence: Fence, ahead: &Next<'_, '_>) {
        if self.around.is_some_and(|around| around.is_closed_by(fence)) {
            self.around = None;
        } else if self.draft.is_some() && (fence.has_info || !ahead.goes_on_with_structure()) {
            self.ignored = Some(fence);
        }
    }

    fn field(&mut self, line: &Line<'_>, text: &str, remarks: &mut Remarks) {
        let depth = indent(text);
        let said = words::said(text);
        let key = said.and_then(|said| said.key).filter(|key| self.draft.is_some() != key.is_of_header());
        if let (Some(said), Some(key)) = (said, key) {
            self.is_ignoring = false;
            // What was cut in the middle is not there; evidence alone is worth having in part.
            if line.is_settled || key == Key::Of(Field::Evidence) {
                self.set(key, said.value, depth, line, remarks);
            }
            return;
        }
        if let Some((key, key_depth)) = self.last {
            let inner = item(text);
            if depth > key_depth
                || inner.is_some() && said.is_none_or(|said| said.key.is_none()) && depth == key_depth
            {
                if line.is_settled {
                    self.go_on(key, inner.unwrap_or(text).trim(), inner.is_some());
                }
                return;
            }
        }
        self.last = None;
        if !line.is_settled || std::mem::replace(&mut self.is_ignoring, said.is_none()) && said.is_none() {
            return;
        }
        let is_rule = text.trim().chars().all(|character| "-*_=|: ".contains(character));
        if is_rule || may_become_structure(text) && !line.is_settled {
            return;
        }
        let kind = if said.is_some() { RemarkKind::UnknownField } else { RemarkKind::IgnoredText };
        remarks.add(kind, text, line.begins());
    }

    fn set(&mut self, key: Key, value: &str, depth: usize, line: &Line<'_>, remarks: &mut Remarks) {
        self.last = Some((key, depth));
        let position = line.begins();
        let mut repeated = || remarks.add(RemarkKind::RepeatedField, &line.text, position);
        match (key, &mut self.draft) {
            (Key::AgentId, _) if self.agent_id.is_some() => repeated(),
            (Key::AgentId, _) => {
                let value = value.trim_matches(['`', '*', '"']).trim();
                self.agent_id = Some(value.to_owned()).filter(|value| !value.is_empty());
            }
            (Key::Dimensions, _) if self.dimensions.as_ref().is_some_and(|list| !list.is_empty()) => {
                repeated();
            }
            (Key::Dimensions, _) => self.dimensions = Some(list(value)),
            (Key::Declared, _) if self.declared.is_some() => repeated(),
            (Key::Declared, _) => {
                let digits = value.trim_matches(|character: char| !character.is_ascii_digit());
                self.declared = digits.parse().ok();
                if self.declared.is_none() && !is_placeholder(value) {
                    remarks.add(RemarkKind::NoNumber, value, position);
                }
            }
            (key, Some(draft)) if !draft.is_new(key) => {
                self.last = None;
                repeated();
            }
            (Key::Of(Field::Evidence), Some(draft)) => {
                self.last = None;
                draft.collect(depth, value);
            }
            (key, Some(draft)) => draft.set(key, value, position),
            (_, None) => {}
        }
    }

    fn go_on(&mut self, key: Key, more: &str, is_item: bool) {
        match (key, &mut self.draft) {
            (Key::Dimensions, _) => {
                if let Some(dimensions) = &mut self.dimensions {
                    dimensions.extend(list(more));
                }
            }
            (Key::AgentId, _) if self.agent_id.is_none() => self.agent_id = Some(more.to_owned()),
            (Key::AgentId | Key::Declared, _) | (_, None) => {}
            (key, Some(draft)) => draft.go_on(key, more, is_item),
        }
    }

    fn finish_draft(&mut self, is_ended: bool, remarks: &mut Remarks) {
        let Some(mut draft) = self.draft.take() else { return };
        if !is_ended && draft.evidence().is_some_and(|evidence| evidence.is_open()) {
            draft.is_ended_by_blank = false;
        }
        let number = draft.id.number();
        match draft.finish(is_ended) {
            Finished::Template(position) => {
                self.templates += 1;
                remarks.add(RemarkKind::Template, "[F…]", position);
            }
            Finished::Finding(finding, said) => {
                self.ids.add(number);
                self.findings.push(*finding);
                for (kind, text, position) in said {
                    remarks.add(kind, &text, position);
                }
            }
        }
    }

    /// The result; none if it is a template.
    pub(super) fn finish(
        mut self,
        is_whole: bool,
        ends: Position,
        checkpoint: Option<Checkpoint>,
        remarks: &mut Remarks,
    ) -> Option<AgentResult> {
        self.finish_draft(is_whole, remarks);
        // Some models keep the brackets of the id that they fill in.
        let is_template = self.findings.is_empty()
            && (self.templates > 0 || self.agent_id.as_deref().is_some_and(is_placeholder));
        if is_template {
            return None;
        }
        let cut = match (is_whole, &self.agent_id) {
            (true, _) => Cut::Whole,
            (false, Some(_)) => Cut::Mild,
            (false, None) => Cut::Severe,
        };
        if is_whole && self.agent_id.is_none() {
            remarks.add(RemarkKind::NoAgent, "===AGENT_RESULT===", self.begins);
        }
        let discarded = if cut == Cut::Severe { self.ids.count } else { 0 };
        if cut == Cut::Severe {
            self.findings.clear();
        }
        Some(AgentResult {
            agent_id: self.agent_id,
            dimensions: self.dimensions.unwrap_or_default(),
            declared_findings: self.declared,
            findings: self.findings,
            discarded,
            unread: 0,
            cut,
            begins: Some(self.begins),
            ends,
            checkpoint,
            numbers: self.ids,
        })
    }
}

/// The fields that can stand behind evidence.
const WITHIN_EVIDENCE: [Key; 8] = [
    Key::Of(Field::Severity),
    Key::Of(Field::Cwe),
    Key::Of(Field::Location),
    Key::Of(Field::Source),
    Key::Of(Field::Sink),
    Key::Of(Field::Flow),
    Key::Of(Field::OriginallyTruncated),
    Key::Lines,
];

/// How many lines with something in them are looked at ahead.
const LOOKAHEAD: usize = 4;

/// The lines from one on.
struct Next<'a, 'b> {
    lines: &'a [Line<'b>],
    at: usize,
    quotes: usize,
}

impl Next<'_, '_> {
    /// The next lines with something in them.
    fn behind(&self) -> impl Iterator<Item = &str> {
        // Blank lines are not waited out for ever.
        let lines = self.lines.iter().skip(self.at + 1).take(4 * LOOKAHEAD);
        let texts = lines.map(|line| unquoted(&line.text, self.quotes));
        texts.filter(|text| !text.trim().is_empty()).take(LOOKAHEAD)
    }

    /// Whether the next line is a marker, a finding or a field.
    fn goes_on_with_structure(&self) -> bool {
        self.behind().next().is_none_or(|text| {
            words::marker(text).is_some()
                || words::head(text).is_some()
                || words::said(text).is_some_and(|said| said.is_plain && said.key.is_some())
        })
    }
}

impl Ahead for Next<'_, '_> {
    fn begins_finding(&self) -> bool {
        let text = unquoted(&self.lines[self.at].text, self.quotes);
        words::head(text).is_some()
            && self
                .behind()
                .take_while(|text| Fence::of(text).is_none())
                .filter(|text| words::said(text).is_some_and(|said| said.key.is_some()))
                .count()
                >= 2
    }
}
