//! Parses a result between its markers: header, findings, fields. (AR-1)

use std::collections::HashMap;

use endmark_text::CodeFence;

use super::Remarks;
use super::coverage::read_dimensions;
use super::draft::{Draft, DraftOutcome};
use super::evidence::{EvidenceCollector, Step};
use super::grammar::{
    Event, NamedValue, START, any_field, classify_line, headline, id_in_json, item, mentioned_id,
};
use super::header::Header;
use super::key::Key;
use super::lines::Line;
use super::sign::Sign;
use crate::expected::Numbers;
use crate::stand_in::is_placeholder;
use crate::{AgentResult, Checkpoint, Cut, Field, FindingId, Position, ReadFinding, RemarkKind};

/// The number of bytes at the start of a paragraph that are searched for a finding.
const LONGEST_PARAGRAPH: usize = 2_000;

/// A result that is being parsed.
// Fields: the state of one pass over lines; each line may change most of them.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) start: Option<Position>,
    /// The open code fence around the result or its findings.
    surrounding_fence: Option<CodeFence>,
    /// An open code fence that belongs to no field.
    ignored: Option<CodeFence>,
    pub(super) header: Header,
    pub(super) findings: Vec<ReadFinding>,
    /// The index in `findings` for each id.
    known_ids: HashMap<FindingId, usize>,
    ids: Numbers,
    templates: usize,
    pub(super) unread: u32,
    draft: Option<Draft>,
    /// The field that the next line may continue.
    last: Option<LastField>,
    /// The fields of a finding without a first line. It is counted but not parsed.
    nameless_keys: Option<Vec<Key>>,
    /// Whether the previous line was ignored. Consecutive ignored lines share one remark.
    is_ignoring: bool,
    /// Whether text was ignored after the last field. What follows may then concern something else.
    follows_text: bool,
    /// Whether the last ignored text names a finding. Fields after it are then counted under its id.
    follows_mention: bool,
    /// Signs of findings in text that is not parsed, and the paragraph that may become one. Such a finding is lost
    /// unless it is also reported elsewhere.
    signs: Vec<Sign>,
    paragraph: Option<String>,
    /// Signs within an open code fence. If the fence is closed, they are evidence.
    quoted: Vec<Sign>,
}

/// The last field, which the next line may continue.
#[derive(Debug, Clone, Copy)]
struct LastField {
    key: Key,
    indent: usize,
    /// Whether it has no value yet.
    is_open: bool,
    follows_blank: bool,
}

/// The effect of a line on a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockEffect {
    /// The result is still open.
    Open,
    /// The line is a checkpoint.
    Checkpoint,
    /// The line is the end marker.
    Ended,
    /// The line is another start marker.
    Restarted,
    /// Another turn of the conversation begins: the result is cut here.
    NewTurn,
}

impl Block {
    pub(super) fn new(begins: Position, around: Option<CodeFence>) -> Self {
        Self { start: Some(begins), surrounding_fence: around, ..Self::default() }
    }

    /// Whether nothing has followed the start marker.
    pub(super) fn is_empty(&self) -> bool {
        self.header.agent_id.is_none()
            && self.header.dimensions.is_none()
            && self.ids.count == 0
            && self.templates == 0
    }

    /// Whether JSON may begin here: no finding is open in line form.
    pub(super) fn takes_json(&self) -> bool {
        self.draft.is_none() && self.ignored.is_none() && self.nameless_keys.is_none()
    }

    /// Processes the next line.
    pub(super) fn read_line(&mut self, line: &Line<'_>, remarks: &mut Remarks) -> BlockEffect {
        let event = classify_line(&line.text);
        if self.is_evidence(line, &event, remarks) {
            return BlockEffect::Open;
        }
        if let Some(fence) = self.ignored {
            self.continues_unknown(line, &event);
            match event {
                Event::Fence(other) if fence.is_closed_by(other) => self.ignored = None,
                Event::Head(id, _) => self.quoted.push(Sign::new(Some(id), "", line.begins())),
                _ => {}
            }
            if self.ignored.is_none() {
                self.quoted.clear();
            }
            return BlockEffect::Open;
        }
        let was_ignoring = std::mem::take(&mut self.is_ignoring);
        match event {
            Event::Start => return BlockEffect::Restarted,
            Event::End => return BlockEffect::Ended,
            Event::Turn => return BlockEffect::NewTurn,
            Event::Checkpoint => return BlockEffect::Checkpoint,
            Event::Blank => {
                self.last = self.last.map(|last| LastField { follows_blank: true, ..last });
                if let Some(draft) = &mut self.draft {
                    draft.is_ended_by_blank |= line.is_empty();
                }
            }
            // The text ends within this number, so more digits may be missing.
            Event::Head(_, "") if !line.is_settled && !line.text.contains(']') => {}
            Event::Head(id, title) => {
                self.finish_draft(true, remarks);
                // A title such as `<what is wr` is a cut placeholder.
                let title = if !line.is_settled && title.starts_with('<') { "" } else { title };
                (self.follows_text, self.follows_mention) = (false, false);
                self.draft = Some(match headline(title).filter(|_| line.is_settled) {
                    Some(head) => Draft::from_headline(id, &head, line.begins()),
                    None => Draft::new(id, title, line.begins()),
                });
            }
            // In this form the fields of a finding are not indented deeper than an unknown field such as `impact`.
            Event::Fields(_) if self.is_below_unknown(line) => {
                self.continues_unknown(line, &event);
            }
            Event::Fields(fields) => {
                for field in fields {
                    self.read_field(field, line, remarks);
                }
            }
            Event::Fence(fence) => self.read_fence(fence, line, remarks),
            Event::Rule => self.last = None,
            Event::Other | Event::Text => self.read_text(line, &event, was_ignoring, remarks),
        }
        BlockEffect::Open
    }

    /// Reads a line as evidence. Returns whether it is evidence.
    fn is_evidence(&mut self, line: &Line<'_>, event: &Event<'_>, remarks: &mut Remarks) -> bool {
        let Some(draft) = self.draft.as_mut().filter(|draft| draft.is_in_evidence) else { return false };
        let Some(evidence) = &mut draft.evidence else { return false };
        if draft.has_headline && evidence.is_followed_by_field(line) {
            draft.is_in_evidence = false;
            return false;
        }
        match evidence.step(line, event, self.surrounding_fence) {
            Step::Taken => {
                draft.is_ended_by_blank = false;
                if let Some(id) = id_in_json(&line.text) {
                    self.signs.push(Sign::new(Some(id), "", line.begins()));
                }
                let id = match event {
                    Event::Turn if evidence.is_flush_code() => {
                        draft.is_interrupted = true;
                        remarks.add(RemarkKind::InnerTurn, &line.text, line.begins());
                        return true;
                    }
                    Event::Head(id, _) => Some(id.clone()),
                    Event::Start | Event::End => None,
                    _ => return true,
                };
                if *event != Event::End && evidence.is_flush_code() {
                    self.quoted.push(Sign::new(id, START, line.begins()));
                }
                remarks.add(RemarkKind::InsideEvidence, &line.text, line.begins());
            }
            Step::Blank => draft.is_ended_by_blank |= line.is_empty(),
            Step::Unknown => {}
            Step::Ended => draft.is_in_evidence = false,
        }
        match &draft.evidence {
            Some(evidence) if evidence.is_doubtful => self.signs.append(&mut self.quoted),
            Some(evidence) if !evidence.is_open() => self.quoted.clear(),
            _ => {}
        }
        draft.is_in_evidence
    }

    /// Handles a fence outside evidence. It encloses the findings, or content that belongs to no field.
    fn read_fence(&mut self, fence: CodeFence, line: &Line<'_>, remarks: &mut Remarks) {
        if self.surrounding_fence.is_some_and(|around| around.is_closed_by(fence)) {
            self.surrounding_fence = None;
        } else if self.continues_unknown(line, &Event::Fence(fence)) {
            self.ignored = Some(fence);
            return;
        } else if self.draft.as_ref().is_none_or(Draft::is_bare) && self.surrounding_fence.is_none() {
            self.surrounding_fence = Some(fence);
        } else {
            self.ignored = Some(fence);
            remarks.add(RemarkKind::IgnoredText, &line.text, line.begins());
        }
        self.last = self.last.filter(|last| last.key != Key::Unknown);
    }

    fn read_field(&mut self, field: NamedValue<'_>, line: &Line<'_>, remarks: &mut Remarks) {
        let NamedValue { key, value } = field;
        let position = line.begins();
        let last = LastField { key, indent: line.indent(), is_open: value.is_empty(), follows_blank: false };
        if key.is_header_field() {
            self.last = Some(last);
            // A value that is cut in the middle is dropped.
            if !line.is_settled {
                return;
            }
            if !self.header.set(key, value) {
                remarks.add(RemarkKind::RepeatedField, &line.text, position);
            } else if key == Key::Declared && self.header.declared.is_none() && !is_placeholder(value) {
                remarks.add(RemarkKind::NoNumber, value, position);
            }
            return;
        }
        let names = matches!(key, Key::Id | Key::Title);
        let known = self.draft.as_ref().map(|draft| draft.value(key).map(|known| known == value));
        match known {
            // After a finding that may have ended and other text, the field belongs to another finding.
            Some(None) if self.follows_text && self.draft.as_ref().is_some_and(Draft::may_have_ended) => {
                return self.count_nameless(key, line, remarks);
            }
            // A name after other fields is that of another finding.
            Some(None | Some(false)) if names && !self.draft.as_ref().is_some_and(Draft::is_bare) => {
                return self.count_nameless(key, line, remarks);
            }
            Some(None) => {}
            Some(Some(is_same)) if is_same || !starts_other_finding(key) => {
                self.last = None;
                return remarks.add(RemarkKind::RepeatedField, &line.text, position);
            }
            Some(Some(_)) | None => return self.count_nameless(key, line, remarks),
        }
        let Some(draft) = &mut self.draft else { return };
        if key == Key::Finding(Field::Evidence) {
            self.last = None;
            draft.set_evidence(EvidenceCollector::new(last.indent, value));
            draft.is_in_evidence = true;
        } else if line.is_settled {
            self.last = Some(last);
            draft.set(key, value, position);
        }
        (draft.is_ended_by_blank, draft.growing_key) = (false, None);
        self.follows_text = false;
    }

    /// Counts a finding without a first line, by the first of its fields.
    fn count_nameless(&mut self, key: Key, line: &Line<'_>, remarks: &mut Remarks) {
        if !key.is_finding_field() && self.draft.is_none() {
            return;
        }
        self.last = None;
        let is_same = |known: &Vec<Key>| !(starts_other_finding(key) && known.contains(&key));
        if self.draft.is_some() || !self.nameless_keys.as_ref().is_some_and(is_same) {
            self.finish_draft(true, remarks);
            self.nameless_keys = Some(Vec::new());
            if !std::mem::take(&mut self.follows_mention) {
                self.unread += 1;
                remarks.add(RemarkKind::UnreadFinding, &line.text, line.begins());
            }
        }
        self.nameless_keys.get_or_insert_default().push(key);
    }

    /// Handles text: it continues the field before it, or is unknown.
    fn read_text(&mut self, line: &Line<'_>, event: &Event<'_>, was_ignoring: bool, remarks: &mut Remarks) {
        let kind = if *event == Event::Other { RemarkKind::UnknownField } else { RemarkKind::IgnoredText };
        let more = item(&line.text);
        if self.continues_unknown(line, event) {
            // Text that may be a finding is counted even so.
            let id = mentioned_id(&line.text).or_else(|| id_in_json(&line.text));
            let of_line = || Sign::find(&line.text, line.begins()).filter(|_| self.draft.is_none());
            let sign = id.map(|id| Sign::new(Some(id), "", line.begins())).or_else(of_line);
            return self.signs.extend(sign);
        }
        let continues = |last: &LastField| {
            let is_deeper = line.indent() > last.indent && !last.follows_blank;
            is_deeper || last.is_open && (more.is_some() || !last.follows_blank)
        };
        if let Some(last) = self.last.as_mut().filter(|last| last.key != Key::Unknown && continues(last)) {
            last.is_open &= more.is_some();
            let (key, text) = (last.key, more.unwrap_or(line.text.trim()));
            match &mut self.draft {
                _ if key.is_header_field() && line.is_settled => self.header.append(key, text),
                Some(draft) if line.is_settled => draft.append(key, text, more.is_some()),
                Some(draft) => draft.growing_key = Some(key),
                None => {}
            }
            return;
        }
        if !line.is_settled {
            return;
        }
        if let Some((name, value)) = any_field(&line.text)
            && let Some(is_new) = self.keep_unknown_field(kind, was_ignoring, name, value)
        {
            let (key, indent) = (Key::Unknown, line.indent());
            let last = LastField { key, indent, is_open: value.is_empty(), follows_blank: false };
            self.last = is_new.then_some(last);
            return;
        }
        self.last = self.last.map(|last| LastField { is_open: false, follows_blank: true, ..last });
        (self.is_ignoring, self.follows_text) = (true, true);
        let mentioned = mentioned_id(&line.text).or_else(|| id_in_json(&line.text));
        self.follows_mention = mentioned.is_some();
        // Each paragraph and each list item is about one finding. Text with an id is counted by the id.
        if !was_ignoring || more.is_some() || line.text.starts_with('|') {
            // Additional sections of a finding, such as `Impact`, are about that finding.
            let is_of_finding = kind == RemarkKind::UnknownField && self.draft.is_some();
            self.paragraph = Some(String::new()).filter(|_| !is_of_finding);
        }
        if let Some(id) = mentioned {
            self.signs.push(Sign::new(Some(id), "", line.begins()));
            self.paragraph = None;
        } else if let Some(paragraph) = self.paragraph.as_mut().filter(|text| text.len() < LONGEST_PARAGRAPH)
        {
            paragraph.push_str(&line.text);
            paragraph.push(' ');
            if let Some(sign) = Sign::find(paragraph, line.begins()) {
                self.signs.push(sign);
                self.paragraph = None;
            }
        }
        if !was_ignoring || kind == RemarkKind::UnknownField {
            remarks.add(kind, &line.text, line.begins());
        }
    }

    /// Keeps an unknown field of a finding or of the header, unless it may concern something else. Returns whether
    /// its name is new.
    fn keep_unknown_field(
        &mut self,
        kind: RemarkKind,
        was_ignoring: bool,
        name: &str,
        value: &str,
    ) -> Option<bool> {
        let is_behind_text = was_ignoring || self.follows_text;
        match &mut self.draft {
            _ if is_behind_text || self.nameless_keys.is_some() => None,
            Some(draft) if draft.has_headline || kind == RemarkKind::UnknownField => {
                Some(draft.set_other(name, value))
            }
            None if self.findings.is_empty() && self.header.agent_id.is_some() => {
                Some(self.header.set_other(name, value))
            }
            _ => None,
        }
    }

    /// Whether a line is indented deeper than an unknown field in block form, in a finding with the severity in its
    /// first line.
    fn is_below_unknown(&self, line: &Line<'_>) -> bool {
        let is_below =
            |last: LastField| last.key == Key::Unknown && last.is_open && line.indent() > last.indent;
        self.last.is_some_and(is_below) && self.draft.as_ref().is_some_and(|draft| draft.has_headline)
    }

    /// Reads a line of the block below an unknown field: a deeper line, text that follows directly, or code. A code
    /// fence in the header may enclose the findings.
    fn continues_unknown(&mut self, line: &Line<'_>, event: &Event<'_>) -> bool {
        let Some(last) = self.last.as_mut().filter(|last| last.key == Key::Unknown && line.is_settled) else {
            return false;
        };
        let is_deeper = line.indent() > last.indent;
        let is_below = match event {
            Event::Fence(_) => last.is_open && (is_deeper || self.draft.is_some()),
            _ if is_deeper => last.is_open || !last.follows_blank,
            Event::Text => last.is_open && !last.follows_blank && any_field(&line.text).is_none(),
            _ => false,
        };
        if !is_below && self.ignored.is_none() {
            return false;
        }
        let blank = std::mem::take(&mut last.follows_blank).then_some("");
        for more in blank.into_iter().chain([line.outdent(last.indent + 2)]) {
            match &mut self.draft {
                Some(draft) => draft.other.append_line(more),
                None => self.header.other.append_line(more),
            }
        }
        true
    }

    /// Ends the open finding. `is_ended` states whether anything follows it.
    fn finish_draft(&mut self, is_ended: bool, remarks: &mut Remarks) {
        (self.nameless_keys, self.last) = (None, None);
        if let Some(draft) = self.draft.take() {
            self.take(draft.finish(is_ended), remarks);
        }
    }

    /// Adds a finished finding.
    pub(super) fn take(&mut self, finished: DraftOutcome, remarks: &mut Remarks) {
        let (read, field) = match finished {
            DraftOutcome::Template(position) => {
                self.templates += 1;
                return remarks.add(RemarkKind::Template, "[F…]", position);
            }
            DraftOutcome::Finding(read, field) => (*read, field),
        };
        for (kind, text, position) in field {
            remarks.add(kind, &text, position);
        }
        let id = read.finding.id.clone();
        if let Some(known) = self.known_ids.get(&id).and_then(|at| self.findings.get_mut(*at)) {
            // An overview lists findings in advance, a summary afterwards.
            if known.finding.is_bare() {
                *known = read;
                return;
            }
            if read.finding.is_bare() || read.finding == known.finding {
                return;
            }
            remarks.add(RemarkKind::RepeatedId, id.as_str(), read.position);
        }
        self.ids.add(id.number());
        self.known_ids.entry(id).or_insert(self.findings.len());
        self.findings.push(read);
    }

    /// Returns the next id, for a finding without one.
    pub(super) fn next_id(&self) -> FindingId {
        let next = u32::try_from(self.findings.len() + 1).unwrap_or(u32::MAX);
        FindingId::from_number(next)
    }

    /// Cuts the result where another turn begins, because its last part may be incomplete.
    pub(super) fn mark_cut(&mut self) {
        let last = self.last.take();
        if let Some(last) = last.filter(|last| last.key.is_header_field()) {
            self.header.forget(last.key);
        }
        if let Some(draft) = &mut self.draft {
            draft.is_ended_by_blank = false;
            if let Some(last) = last {
                draft.forget(last.key);
            }
        }
    }

    /// Returns the result, or `None` if it is a template.
    pub(super) fn finish(
        mut self,
        is_whole: bool,
        ends: Position,
        checkpoint: Option<Checkpoint>,
        remarks: &mut Remarks,
    ) -> Option<AgentResult> {
        // A fence that is never closed may enclose findings, so its signs count.
        self.signs.append(&mut self.quoted);
        self.finish_draft(is_whole, remarks);
        // Some models keep the brackets around the id that they fill in.
        let is_open = self.header.agent_id.as_deref().is_some_and(is_placeholder);
        if self.findings.is_empty() && self.unread == 0 && (self.templates > 0 || is_open) {
            return None;
        }
        for sign in std::mem::take(&mut self.signs) {
            let is_told = match &sign.id {
                Some(id) => self.known_ids.contains_key(id),
                None => self.findings.iter().any(|read| sign.is_about(&read.finding)),
            };
            if is_told {
                continue;
            }
            self.unread += 1;
            remarks.add(RemarkKind::UnreadFinding, &sign.text, sign.position);
            if let Some(id) = sign.id {
                self.ids.add(id.number());
                self.known_ids.insert(id, usize::MAX);
            }
        }
        let cut = match (is_whole, &self.header.agent_id) {
            (true, _) => Cut::Whole,
            (false, Some(_)) => Cut::Mild,
            (false, None) => Cut::Severe,
        };
        if let Some(begins) = self.start.filter(|_| is_whole && self.header.agent_id.is_none()) {
            remarks.add(RemarkKind::NoAgent, START, begins);
        }
        if let Some(declared) =
            self.header.declared.filter(|declared| self.findings.len() > *declared as usize)
        {
            let position = self.start.unwrap_or(ends);
            remarks.add(RemarkKind::MoreThanDeclared, &declared.to_string(), position);
        }
        let is_severe = cut == Cut::Severe;
        let other = self.header.other.into_fields();
        Some(AgentResult {
            agent_id: self.header.agent_id,
            dimensions: self.header.dimensions.unwrap_or_else(|| read_dimensions(&other)),
            other,
            declared_findings: self.header.declared,
            discarded: if is_severe { self.ids.count } else { 0 },
            findings: if is_severe { Vec::new() } else { self.findings },
            unread: self.unread,
            cut,
            begins: self.start,
            ends,
            checkpoint,
            numbers: self.ids,
        })
    }
}

/// Whether a repeated field with a different value belongs to another finding.
fn starts_other_finding(key: Key) -> bool {
    matches!(key, Key::Finding(Field::Severity | Field::Location))
}
