//! Parses a result between its markers: header, findings, fields. (AR-1)

use std::collections::HashMap;

use endmark_text::CodeFence;

use super::Remarks;
use super::coverage::read_dimensions;
use super::draft::{DraftOutcome, FindingDraft};
use super::evidence::{EvidenceCollector, EvidenceEffect};
use super::finding_hint::FindingHint;
use super::grammar::{
    LineEvent, NamedValue, START, classify_line, id_in_json, list_item, mentioned_id, parse_any_field,
    parse_headline,
};
use super::header::Header;
use super::key::Key;
use super::lines::Line;
use crate::expected::IdNumbers;
use crate::placeholder::is_placeholder;
use crate::{AgentResult, Checkpoint, Cut, Field, FindingId, Position, ReadFinding, RemarkKind};

/// The maximum number of bytes of a paragraph that are searched for a finding.
const MAX_PARAGRAPH_BYTES: usize = 2_000;

/// A result that is being parsed.
// Fields: the state of one pass over lines; each line may change most of them.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) start: Option<Position>,
    /// The open code fence around the result or its findings.
    surrounding_fence: Option<CodeFence>,
    /// An open code fence that belongs to no field.
    ignored_fence: Option<CodeFence>,
    pub(super) header: Header,
    pub(super) findings: Vec<ReadFinding>,
    /// The index in `findings` of each id.
    known_ids: HashMap<FindingId, usize>,
    id_numbers: IdNumbers,
    template_count: usize,
    pub(super) unread: u32,
    draft: Option<FindingDraft>,
    /// The field that the next line may continue.
    last_field: Option<LastField>,
    /// The fields of a finding without a first line. Such a finding is counted but not parsed.
    nameless_keys: Option<Vec<Key>>,
    /// Whether the previous line was ignored. Consecutive ignored lines share one remark.
    is_ignoring: bool,
    /// Whether text was ignored after the last field. The next field may then belong to something else.
    follows_text: bool,
    /// Whether the last ignored text contains the id of a finding. The fields after it are then counted by that id.
    follows_mention: bool,
    /// Hints of findings in text that is not parsed. Each counts as a lost finding unless it is also reported
    /// elsewhere.
    hints: Vec<FindingHint>,
    /// The current paragraph of ignored text, which may turn out to be such a hint.
    paragraph: Option<String>,
    /// Hints inside an open code fence. If the fence is closed, they were part of code and do not count.
    fenced_hints: Vec<FindingHint>,
}

/// The last field, which the next line may continue.
#[derive(Debug, Clone, Copy)]
struct LastField {
    key: Key,
    indent: usize,
    /// Whether the field has no value yet.
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
            && self.id_numbers.count == 0
            && self.template_count == 0
    }

    /// Whether JSON may begin at the next line: no finding is open in line form.
    pub(super) fn may_start_json(&self) -> bool {
        self.draft.is_none() && self.ignored_fence.is_none() && self.nameless_keys.is_none()
    }

    /// Processes the next line.
    pub(super) fn read_line(&mut self, line: &Line<'_>, remarks: &mut Remarks) -> BlockEffect {
        let event = classify_line(&line.text);
        if self.read_evidence(line, &event, remarks) {
            return BlockEffect::Open;
        }
        if let Some(fence) = self.ignored_fence {
            self.read_unknown_block(line, &event);
            match event {
                LineEvent::Fence(other) if fence.is_closed_by(other) => self.ignored_fence = None,
                LineEvent::Head(id, _) => {
                    self.fenced_hints.push(FindingHint::new(Some(id), "", line.start_position()));
                }
                _ => {}
            }
            if self.ignored_fence.is_none() {
                self.fenced_hints.clear();
            }
            return BlockEffect::Open;
        }
        let was_ignoring = std::mem::take(&mut self.is_ignoring);
        match event {
            LineEvent::Start => return BlockEffect::Restarted,
            LineEvent::End => return BlockEffect::Ended,
            LineEvent::Turn => return BlockEffect::NewTurn,
            LineEvent::Checkpoint => return BlockEffect::Checkpoint,
            LineEvent::Blank => {
                self.last_field = self.last_field.map(|last| LastField { follows_blank: true, ..last });
                if let Some(draft) = &mut self.draft {
                    draft.is_ended_by_blank |= line.is_empty();
                }
            }
            // The text ends in this number, so digits may be missing.
            LineEvent::Head(_, "") if !line.is_terminated && !line.text.contains(']') => {}
            LineEvent::Head(id, title) => {
                self.finish_draft(true, remarks);
                // A title such as `<what is wr` is a placeholder that was cut.
                let title = if !line.is_terminated && title.starts_with('<') { "" } else { title };
                (self.follows_text, self.follows_mention) = (false, false);
                self.draft = Some(match parse_headline(title).filter(|_| line.is_terminated) {
                    Some(head) => FindingDraft::from_headline(id, &head, line.start_position()),
                    None => FindingDraft::new(id, title, line.start_position()),
                });
            }
            // Deeper lines belong to an unknown field such as `impact`, because all fields have the same indentation.
            LineEvent::Fields(_) if self.is_below_unknown(line) => {
                self.read_unknown_block(line, &event);
            }
            LineEvent::Fields(fields) => {
                for field in fields {
                    self.read_field(field, line, remarks);
                }
            }
            LineEvent::Fence(fence) => self.read_fence(fence, line, remarks),
            LineEvent::Rule => self.last_field = None,
            LineEvent::Other | LineEvent::Text => self.read_text(line, &event, was_ignoring, remarks),
        }
        BlockEffect::Open
    }

    /// Reads a line as evidence. Returns `false` if the line is not evidence.
    fn read_evidence(&mut self, line: &Line<'_>, event: &LineEvent<'_>, remarks: &mut Remarks) -> bool {
        let Some(draft) = self.draft.as_mut().filter(|draft| draft.is_in_evidence) else { return false };
        let Some(evidence) = &mut draft.evidence else { return false };
        if draft.has_headline && evidence.is_followed_by_field(line) {
            draft.is_in_evidence = false;
            return false;
        }
        match evidence.push_line(line, event, self.surrounding_fence) {
            EvidenceEffect::Taken => {
                draft.is_ended_by_blank = false;
                if let Some(id) = id_in_json(&line.text) {
                    self.hints.push(FindingHint::new(Some(id), "", line.start_position()));
                }
                let id = match event {
                    LineEvent::Turn if evidence.is_flush_code() => {
                        draft.is_interrupted = true;
                        remarks.add(RemarkKind::InnerTurn, &line.text, line.start_position());
                        return true;
                    }
                    LineEvent::Head(id, _) => Some(id.clone()),
                    LineEvent::Start | LineEvent::End => None,
                    _ => return true,
                };
                if *event != LineEvent::End && evidence.is_flush_code() {
                    self.fenced_hints.push(FindingHint::new(id, START, line.start_position()));
                }
                remarks.add(RemarkKind::InsideEvidence, &line.text, line.start_position());
            }
            EvidenceEffect::Blank => draft.is_ended_by_blank |= line.is_empty(),
            EvidenceEffect::Unknown => {}
            EvidenceEffect::Ended => draft.is_in_evidence = false,
        }
        match &draft.evidence {
            Some(evidence) if evidence.is_doubtful => self.hints.append(&mut self.fenced_hints),
            Some(evidence) if !evidence.is_open() => self.fenced_hints.clear(),
            _ => {}
        }
        draft.is_in_evidence
    }

    /// Reads a code fence outside evidence. It encloses the findings, or text that belongs to no field.
    fn read_fence(&mut self, fence: CodeFence, line: &Line<'_>, remarks: &mut Remarks) {
        if self.surrounding_fence.is_some_and(|around| around.is_closed_by(fence)) {
            self.surrounding_fence = None;
        } else if self.read_unknown_block(line, &LineEvent::Fence(fence)) {
            self.ignored_fence = Some(fence);
            return;
        } else if self.draft.as_ref().is_none_or(FindingDraft::is_bare) && self.surrounding_fence.is_none() {
            self.surrounding_fence = Some(fence);
        } else {
            self.ignored_fence = Some(fence);
            remarks.add(RemarkKind::IgnoredText, &line.text, line.start_position());
        }
        self.last_field = self.last_field.filter(|last| last.key != Key::Unknown);
    }

    fn read_field(&mut self, field: NamedValue<'_>, line: &Line<'_>, remarks: &mut Remarks) {
        let NamedValue { key, value } = field;
        let position = line.start_position();
        let last = LastField { key, indent: line.indent(), is_open: value.is_empty(), follows_blank: false };
        if key.is_header_field() {
            self.last_field = Some(last);
            // A value that is cut in the middle is dropped.
            if !line.is_terminated {
                return;
            }
            if !self.header.set(key, value) {
                remarks.add(RemarkKind::RepeatedField, &line.text, position);
            } else if key == Key::Declared && self.header.declared.is_none() && !is_placeholder(value) {
                remarks.add(RemarkKind::NotANumber, value, position);
            }
            return;
        }
        let is_name_key = matches!(key, Key::Id | Key::Title);
        let known = self.draft.as_ref().map(|draft| draft.value(key).map(|known| known == value));
        match known {
            // The finding may have ended and other text follows it, so the field belongs to another finding.
            Some(None)
                if self.follows_text && self.draft.as_ref().is_some_and(FindingDraft::may_have_ended) =>
            {
                return self.count_nameless(key, line, remarks);
            }
            // An id or a title after other fields starts another finding.
            Some(None | Some(false))
                if is_name_key && !self.draft.as_ref().is_some_and(FindingDraft::is_bare) =>
            {
                return self.count_nameless(key, line, remarks);
            }
            Some(None) => {}
            Some(Some(is_same)) if is_same || !starts_other_finding(key) => {
                self.last_field = None;
                return remarks.add(RemarkKind::RepeatedField, &line.text, position);
            }
            Some(Some(_)) | None => return self.count_nameless(key, line, remarks),
        }
        let Some(draft) = &mut self.draft else { return };
        if key == Key::Finding(Field::Evidence) {
            self.last_field = None;
            draft.set_evidence(EvidenceCollector::new(last.indent, value));
            draft.is_in_evidence = true;
        } else if line.is_terminated {
            self.last_field = Some(last);
            draft.set(key, value, position);
        }
        (draft.is_ended_by_blank, draft.growing_key) = (false, None);
        self.follows_text = false;
    }

    /// Counts a finding without a first line, when its first field appears.
    fn count_nameless(&mut self, key: Key, line: &Line<'_>, remarks: &mut Remarks) {
        if !key.is_finding_field() && self.draft.is_none() {
            return;
        }
        self.last_field = None;
        let is_same = |known: &Vec<Key>| !(starts_other_finding(key) && known.contains(&key));
        if self.draft.is_some() || !self.nameless_keys.as_ref().is_some_and(is_same) {
            self.finish_draft(true, remarks);
            self.nameless_keys = Some(Vec::new());
            if !std::mem::take(&mut self.follows_mention) {
                self.unread += 1;
                remarks.add(RemarkKind::UnreadFinding, &line.text, line.start_position());
            }
        }
        self.nameless_keys.get_or_insert_default().push(key);
    }

    /// Reads a line of text, which continues the field before it or belongs to no field.
    fn read_text(
        &mut self,
        line: &Line<'_>,
        event: &LineEvent<'_>,
        was_ignoring: bool,
        remarks: &mut Remarks,
    ) {
        let kind =
            if *event == LineEvent::Other { RemarkKind::UnknownField } else { RemarkKind::IgnoredText };
        let more = list_item(&line.text);
        if self.read_unknown_block(line, event) {
            // A finding may also be hidden in this text. Count it.
            let id = mentioned_id(&line.text).or_else(|| id_in_json(&line.text));
            let hint_in_line =
                || FindingHint::find(&line.text, line.start_position()).filter(|_| self.draft.is_none());
            let hint =
                id.map(|id| FindingHint::new(Some(id), "", line.start_position())).or_else(hint_in_line);
            return self.hints.extend(hint);
        }
        let continues = |last: &LastField| {
            let is_deeper = line.indent() > last.indent && !last.follows_blank;
            is_deeper || last.is_open && (more.is_some() || !last.follows_blank)
        };
        if let Some(last) =
            self.last_field.as_mut().filter(|last| last.key != Key::Unknown && continues(last))
        {
            last.is_open &= more.is_some();
            let (key, text) = (last.key, more.unwrap_or(line.text.trim()));
            match &mut self.draft {
                _ if key.is_header_field() && line.is_terminated => self.header.append(key, text),
                Some(draft) if line.is_terminated => draft.append(key, text, more.is_some()),
                Some(draft) => draft.growing_key = Some(key),
                None => {}
            }
            return;
        }
        if !line.is_terminated {
            return;
        }
        if let Some((name, value)) = parse_any_field(&line.text)
            && let Some(is_new) = self.keep_unknown_field(kind, was_ignoring, name, value)
        {
            let (key, indent) = (Key::Unknown, line.indent());
            let last = LastField { key, indent, is_open: value.is_empty(), follows_blank: false };
            self.last_field = is_new.then_some(last);
            return;
        }
        self.last_field =
            self.last_field.map(|last| LastField { is_open: false, follows_blank: true, ..last });
        (self.is_ignoring, self.follows_text) = (true, true);
        let mentioned = mentioned_id(&line.text).or_else(|| id_in_json(&line.text));
        self.follows_mention = mentioned.is_some();
        // Each paragraph and each list item counts as one finding. If it contains an id, the id is counted instead.
        if !was_ignoring || more.is_some() || line.text.starts_with('|') {
            // An additional section of a finding, such as `Impact`, is not another finding.
            let is_of_finding = kind == RemarkKind::UnknownField && self.draft.is_some();
            self.paragraph = Some(String::new()).filter(|_| !is_of_finding);
        }
        if let Some(id) = mentioned {
            self.hints.push(FindingHint::new(Some(id), "", line.start_position()));
            self.paragraph = None;
        } else if let Some(paragraph) =
            self.paragraph.as_mut().filter(|text| text.len() < MAX_PARAGRAPH_BYTES)
        {
            paragraph.push_str(&line.text);
            paragraph.push(' ');
            if let Some(hint) = FindingHint::find(paragraph, line.start_position()) {
                self.hints.push(hint);
                self.paragraph = None;
            }
        }
        if !was_ignoring || kind == RemarkKind::UnknownField {
            remarks.add(kind, &line.text, line.start_position());
        }
    }

    /// Keeps an unknown field of a finding or of the header. Returns whether its name is new, or `None` if the field
    /// may belong to something else.
    fn keep_unknown_field(
        &mut self,
        kind: RemarkKind,
        was_ignoring: bool,
        name: &str,
        value: &str,
    ) -> Option<bool> {
        let follows_other_text = was_ignoring || self.follows_text;
        match &mut self.draft {
            _ if follows_other_text || self.nameless_keys.is_some() => None,
            Some(draft) if draft.has_headline || kind == RemarkKind::UnknownField => {
                Some(draft.set_other(name, value))
            }
            None if self.findings.is_empty() && self.header.agent_id.is_some() => {
                Some(self.header.set_other(name, value))
            }
            _ => None,
        }
    }

    /// Whether a line is indented deeper than the unknown field before it, in a finding with the severity in its first
    /// line.
    fn is_below_unknown(&self, line: &Line<'_>) -> bool {
        let is_below =
            |last: LastField| last.key == Key::Unknown && last.is_open && line.indent() > last.indent;
        self.last_field.is_some_and(is_below) && self.draft.as_ref().is_some_and(|draft| draft.has_headline)
    }

    /// Adds a line to the block of an unknown field: a deeper line, text that follows directly, or code. Returns
    /// `false` if the line is not part of the block. In the header, a code fence may enclose the findings instead.
    fn read_unknown_block(&mut self, line: &Line<'_>, event: &LineEvent<'_>) -> bool {
        let Some(last) =
            self.last_field.as_mut().filter(|last| last.key == Key::Unknown && line.is_terminated)
        else {
            return false;
        };
        let is_deeper = line.indent() > last.indent;
        let is_below = match event {
            LineEvent::Fence(_) => last.is_open && (is_deeper || self.draft.is_some()),
            _ if is_deeper => last.is_open || !last.follows_blank,
            LineEvent::Text => last.is_open && !last.follows_blank && parse_any_field(&line.text).is_none(),
            _ => false,
        };
        if !is_below && self.ignored_fence.is_none() {
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
        (self.nameless_keys, self.last_field) = (None, None);
        if let Some(draft) = self.draft.take() {
            self.add_finding(draft.finish(is_ended), remarks);
        }
    }

    /// Adds a finished finding, unless it repeats one. Counts templates.
    pub(super) fn add_finding(&mut self, finished: DraftOutcome, remarks: &mut Remarks) {
        let (read, new_remarks) = match finished {
            DraftOutcome::Template(position) => {
                self.template_count += 1;
                return remarks.add(RemarkKind::Template, "[F…]", position);
            }
            DraftOutcome::Finding(read, field) => (*read, field),
        };
        for (kind, text, position) in new_remarks {
            remarks.add(kind, &text, position);
        }
        let id = read.finding.id.clone();
        if let Some(known) = self.known_ids.get(&id).and_then(|at| self.findings.get_mut(*at)) {
            // An overview before the findings, or a summary after them, repeats their ids without fields.
            if known.finding.is_bare() {
                *known = read;
                return;
            }
            if read.finding.is_bare() || read.finding == known.finding {
                return;
            }
            remarks.add(RemarkKind::RepeatedId, id.as_str(), read.position);
        }
        self.id_numbers.add(id.number());
        self.known_ids.entry(id).or_insert(self.findings.len());
        self.findings.push(read);
    }

    /// Returns the next id, for a finding without one.
    pub(super) fn next_id(&self) -> FindingId {
        let next = u32::try_from(self.findings.len() + 1).unwrap_or(u32::MAX);
        FindingId::from_number(next)
    }

    /// Discards the last value, which may be incomplete because another turn of the conversation begins.
    pub(super) fn mark_cut(&mut self) {
        let last = self.last_field.take();
        if let Some(last) = last.filter(|last| last.key.is_header_field()) {
            self.header.remove(last.key);
        }
        if let Some(draft) = &mut self.draft {
            draft.is_ended_by_blank = false;
            if let Some(last) = last {
                draft.remove(last.key);
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
        // A fence that was never closed may enclose findings, so the hints inside it count.
        self.hints.append(&mut self.fenced_hints);
        self.finish_draft(is_whole, remarks);
        // Some models keep the angle brackets of the template around their agent's id.
        let has_placeholder_id = self.header.agent_id.as_deref().is_some_and(is_placeholder);
        if self.findings.is_empty() && self.unread == 0 && (self.template_count > 0 || has_placeholder_id) {
            return None;
        }
        for hint in std::mem::take(&mut self.hints) {
            let is_reported = match &hint.id {
                Some(id) => self.known_ids.contains_key(id),
                None => self.findings.iter().any(|read| hint.is_about(&read.finding)),
            };
            if is_reported {
                continue;
            }
            self.unread += 1;
            remarks.add(RemarkKind::UnreadFinding, &hint.text, hint.position);
            if let Some(id) = hint.id {
                self.id_numbers.add(id.number());
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
            discarded: if is_severe { self.id_numbers.count } else { 0 },
            findings: if is_severe { Vec::new() } else { self.findings },
            unread: self.unread,
            cut,
            begins: self.start,
            ends,
            checkpoint,
            numbers: self.id_numbers,
        })
    }
}

/// Whether a repeated field with a different value belongs to another finding.
fn starts_other_finding(key: Key) -> bool {
    matches!(key, Key::Finding(Field::Severity | Field::Location))
}
