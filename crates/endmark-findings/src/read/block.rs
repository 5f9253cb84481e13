//! A result between its markers: header, findings, fields.

mod beginnings;
mod breaks;
mod ending;
mod last;
mod sections;
mod turns;

use std::collections::HashSet;

use crate::expected::Numbers;
use crate::stand_in::is_placeholder;
use crate::{AgentResult, Cut, Field, FindingId, FindingState, Position, ReadFinding, RemarkKind};

use super::Remarks;
use super::ahead::{Ahead, Surroundings};
use super::checkpoint::list;
use super::draft::{Draft, Taking};
use super::evidence::{Begins, Fence, Step};
use super::header::Header;
use super::heads::{self, Shape};
use super::lines::{Line, indent, unquoted};
use super::names::{Key, is_of_remedy};
use super::section::Section;
use super::signs::{Named, Paragraph};
use super::table::{self, Table};
use super::tags;
use super::words::{self, Marker, Said, item};
use last::{Last, Name, is_broken, is_place};
use turns::{Heard, Turns};

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
    header: Header,
    findings: Vec<ReadFinding>,
    /// The ids of those that are not rows of a table.
    known: HashSet<FindingId>,
    /// The ids of which nothing is said but a title: an overview, unless they come again with fields.
    bare: HashSet<FindingId>,
    /// The highest number among all.
    highest: u32,
    /// Which of them are rows of a table: what is said of them elsewhere is more.
    of_table: Vec<bool>,
    ids: Numbers,
    pub(super) templates: usize,
    unread: u32,
    /// How much JSON in it could not be read to its end.
    broken: u32,
    json: JsonEnd,
    draft: Option<Draft>,
    table: Option<Table>,
    /// A table with what the result says of itself has begun: what its columns are about.
    header_columns: Option<Vec<Option<Key>>>,
    /// How the first finding begins; the others look alike.
    shape: Option<Shape>,
    /// Whether that is known by its id alone.
    is_shape_sure: bool,
    /// How bad that is which the finding that is open stands under, and what the next one does.
    section: Option<Section>,
    next_section: Option<Section>,
    /// The field that the next line may go on with, and how far it is indented.
    last: Option<Last>,
    /// Whether the line before was ignored, so that one remark does for all of them.
    is_ignoring: bool,
    /// It is open whose the fields are that come: they are nobody's until a finding begins.
    is_disowned: bool,
    /// How far the name that is not known is indented whose text is to come: what stands deeper is said of that.
    unknown_at: Option<usize>,
    /// The text that was ignored last, while nothing else has come: it may be the heading of fields.
    above: Option<(String, Position)>,
    /// Ids that begin a line which looks otherwise than the findings, and has no fields: a finding, or a word about one.
    mentioned: Vec<(FindingId, String, Position)>,
    /// What the paragraph that is ignored has said of a finding.
    paragraph: Paragraph,
    /// Texts that speak of a finding, where there are others.
    spoken_of: Vec<(Named, String, Position)>,
    turns: Turns,
}

/// How the JSON has ended that came last in a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum JsonEnd {
    /// There was none, or it was closed, or cut in the middle of a finding.
    #[default]
    Closed,
    /// Behind a finding that was all there: another one may have been to come.
    Open,
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
            header: Header::default(),
            findings: Vec::new(),
            known: HashSet::new(),
            bare: HashSet::new(),
            highest: 0,
            of_table: Vec::new(),
            ids: Numbers::default(),
            templates: 0,
            unread: 0,
            broken: 0,
            json: JsonEnd::Closed,
            draft: None,
            table: None,
            header_columns: None,
            shape: None,
            is_shape_sure: false,
            section: None,
            next_section: None,
            last: None,
            is_ignoring: false,
            is_disowned: false,
            unknown_at: None,
            above: None,
            mentioned: Vec::new(),
            paragraph: Paragraph::default(),
            spoken_of: Vec::new(),
            turns: Turns::default(),
        }
    }

    /// Whether nothing has come behind the start marker.
    pub(super) fn is_empty(&self) -> bool {
        self.header.agent_id.is_none()
            && self.header.dimensions.is_none()
            && self.ids.count == 0
            && self.templates == 0
    }

    /// Whether no finding has begun, so that a result in JSON may come.
    pub(super) fn is_before_findings(&self) -> bool {
        self.draft.is_none() && self.ignored.is_none()
    }

    /// Whether JSON in this line may be a finding, and not evidence of the one before.
    pub(super) fn may_take_json(&self, line: &Line<'_>) -> bool {
        let text = unquoted(&line.text, self.quotes);
        match &self.draft {
            _ if self.ignored.is_some() => false,
            None => true,
            Some(draft) => draft.open_evidence().is_none_or(|evidence| evidence.may_end_before(text)),
        }
    }

    /// Takes a result that stands in it as JSON.
    pub(super) fn take(&mut self, result: AgentResult, remarks: &mut Remarks) {
        self.finish_draft(true, remarks);
        self.last = None;
        let header = &mut self.header;
        header.agent_id = header.agent_id.take().or(result.agent_id);
        header.dimensions = header.dimensions.take().or(Some(result.dimensions));
        header.declared = header.declared.or(result.declared_findings);
        // What is cut in the middle of a finding is that one.
        let is_in_finding =
            result.findings.last().is_some_and(|read| read.state == FindingState::NeedsReaudit);
        self.broken += result.unread;
        for finding in result.findings {
            self.push(finding, false);
        }
        if result.cut != Cut::Whole && !is_in_finding {
            self.json = JsonEnd::Open;
        }
    }

    fn push(&mut self, finding: ReadFinding, of_table: bool) {
        self.broken += u32::from(std::mem::take(&mut self.json) == JsonEnd::Open);
        let number = finding.finding.id.number();
        self.ids.add(number);
        self.highest = self.highest.max(number.unwrap_or(0));
        if !of_table {
            self.known.insert(finding.finding.id.clone());
            if finding.finding.is_bare() {
                self.bare.insert(finding.finding.id.clone());
            }
        }
        self.findings.push(finding);
        self.of_table.push(of_table);
    }

    /// Takes the line at this index.
    pub(super) fn line(&mut self, lines: &[Line<'_>], at: usize, remarks: &mut Remarks) -> Closed {
        let line = &lines[at];
        let text = unquoted(&line.text, self.quotes);
        let ahead = Ahead { lines, at, quotes: self.quotes };
        let Heard::Text(text) = self.of_turn(line, text, ahead, remarks) else { return Closed::Open };
        if let Some(draft) = &mut self.draft
            && self.ignored.is_none()
            && draft.taking == Taking::Evidence
        {
            let next_number = draft.id.number().and_then(|number| number.checked_add(1));
            if let Some((evidence, values)) = draft.evidence_and_values() {
                let surroundings =
                    Surroundings { ahead, header: &self.header, shape: self.shape, next_number, values };
                match evidence.step(line, text, &surroundings) {
                    Step::Taken => {
                        draft.is_ended_by_blank = false;
                        self.leave_section(text);
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
                    Step::Unknown => return Closed::Open,
                    Step::NotEvidence => {
                        draft.taking = Taking::MoreCode;
                    }
                }
            }
        }
        self.structure(line, text, ahead, remarks)
    }

    fn structure(
        &mut self,
        line: &Line<'_>,
        text: &str,
        ahead: Ahead<'_, '_>,
        remarks: &mut Remarks,
    ) -> Closed {
        if let Some(fence) = self.ignored {
            let is_closing = Fence::of(text).is_some_and(|other| fence.is_closed_by(other));
            if is_closing {
                self.ignored = None;
            }
            let begins_finding = || {
                heads::head(text).is_some() && ahead.fields_follow(LINES_BEHIND_FENCE, true) == Begins::Yes
            };
            if is_closing || !begins_finding() {
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
            self.paragraph = Paragraph::default();
            if let (Some(last), Some(draft)) = (self.last, &mut self.draft)
                && !line.is_settled
                && indent(text) > last.name.indent
            {
                draft.grows(last.key);
            }
            // A name that stands alone has its value behind the blank line, too.
            self.last = self.last.filter(|last| last.is_open);
            if let Some(draft) = &mut self.draft {
                draft.is_ended_by_blank |= line.is_empty();
            }
        } else if self.section(line, text, ahead) {
            (self.last, self.above) = (None, None);
        } else if let Some((head, is_sure)) = self.head(line, &ahead.heading_of(text), ahead, remarks) {
            self.begin(head, is_sure, line, remarks);
        } else if self.table(line, text, remarks) {
            self.last = None;
        } else if let Some(fence) = Fence::of(text) {
            self.fence(fence, line, ahead, remarks);
        } else {
            for field in words::fields(text) {
                self.field(line, text, field, ahead, remarks);
            }
        }
        Closed::Open
    }

    /// Takes a line of a table with what the result says of itself.
    fn header_table(&mut self, line: &Line<'_>, text: &str, remarks: &mut Remarks) -> bool {
        if self.draft.is_some() || !line.is_settled {
            return false;
        }
        if let Some(columns) = self.header_columns.take() {
            if table::is_rule(text) {
                self.header_columns = Some(columns);
                return true;
            }
            if let Some(said) = table::header_row(text, &columns) {
                for (key, value) in said.into_iter().filter(|(_, value)| !value.is_empty()) {
                    self.set(key, &value, Name::OF_CELL, line, remarks);
                }
                self.last = None;
                return true;
            }
        }
        self.header_columns = table::header_columns(text);
        self.header_columns.is_some()
    }

    /// Takes a line of a table with a finding in each row.
    fn table(&mut self, line: &Line<'_>, text: &str, remarks: &mut Remarks) -> bool {
        if self.header_table(line, text, remarks) {
            return true;
        }
        if let Some(table) = self.table.as_ref().filter(|_| Table::of(text).is_none()) {
            if table::is_rule(text) {
                return true;
            }
            if let Some(row) = table.row(text, line.is_settled) {
                let id = row.id.filter(|id| !id.as_str().is_empty()).unwrap_or_else(|| self.next_id());
                if !self.has(&id) {
                    let mut draft = Draft::new(id, &row.title, line.begins());
                    self.section.clone_from(&self.next_section);
                    for (key, value) in row.values {
                        match key {
                            Key::Of(Field::Evidence) => draft.collect_text(&value),
                            key => draft.set(key, &value, line.begins()),
                        }
                    }
                    self.finished(draft, line.is_settled, true, remarks);
                }
                return true;
            }
            self.table = None;
        }
        self.table = Table::of(text).filter(|_| line.is_settled);
        if self.table.is_some() {
            self.finish_draft(true, remarks);
        }
        self.table.is_some()
    }

    /// A fence where there is no evidence: it is around the result, or around what belongs to no field.
    fn fence(&mut self, fence: Fence, line: &Line<'_>, ahead: Ahead<'_, '_>, remarks: &mut Remarks) {
        let is_code = fence.has_info || !ahead.goes_on_with_structure();
        if self.around.is_some_and(|around| around.is_closed_by(fence)) {
            self.around = None;
        } else if let Some(draft) = self.draft.as_mut().filter(|_| is_code) {
            if draft.taking == Taking::MoreCode {
                draft.reopen(fence);
            } else {
                self.ignored = Some(fence);
                if !self.is_ignoring {
                    remarks.add(RemarkKind::IgnoredText, &line.text, line.begins());
                }
            }
        }
    }

    fn field(
        &mut self,
        line: &Line<'_>,
        text: &str,
        field: &str,
        ahead: Ahead<'_, '_>,
        remarks: &mut Remarks,
    ) {
        self.unknown_at = self.unknown_at.filter(|depth| indent(text) > *depth);
        let said = words::said(field);
        let key = said.and_then(|said| said.key).filter(|key| self.is_asked_for(*key));
        // `Method: by hand`, behind a finding, is none of its fields.
        let is_close = || self.draft.as_ref().is_some_and(|draft| !draft.is_ended_by_blank);
        let is_set_apart = || said.is_some_and(|said| said.is_bold) || item(field).is_some();
        let key = key.filter(|key| *key != Key::Part || is_close() || is_set_apart());
        if let (Some(said), Some(key)) = (said, key)
            && self.has_place_for(said, key, line, ahead, remarks)
        {
            (self.is_ignoring, self.above) = (false, None);
            self.paragraph = Paragraph::default();
            // What was cut in the middle is not there; evidence alone is worth having in part.
            let of_row = text.trim_start().starts_with('|');
            let value = if line.is_settled {
                said.value
            } else {
                tags::closed_at_cut(without_cut_signs(said.value, field), field)
            };
            let is_of_word = matches!(key, Key::Of(Field::Location | Field::Severity | Field::Cwe));
            let value = if is_of_word { tags::without_code(value) } else { value };
            // `a \|` is cut behind a sign of the code, and not at the end of the cell.
            let value = if line.is_settled || !of_row { value } else { value.trim_end_matches('\\') };
            let unescaped = of_row.then(|| table::value_of_row(value, key));
            if line.is_settled || key == Key::Of(Field::Evidence) {
                self.set(key, unescaped.as_deref().unwrap_or(value), Name::of(text), line, remarks);
            }
            return;
        }
        let said = said.filter(|_| key.is_none());
        if let Some(last) = self.last.filter(|last| last.goes_on_in(text, field)) {
            let inner = item(field);
            if line.is_settled {
                self.go_on(last.key, inner.unwrap_or(field).trim(), inner.is_some());
            } else if let Some(draft) = &mut self.draft {
                draft.grows(last.key);
            }
            return;
        }
        self.last = None;
        self.ignore(line, field, said, remarks);
    }

    /// Whether a field can be said here: those of the header before the findings, and once behind them.
    fn is_asked_for(&self, key: Key) -> bool {
        match (key.is_of_header(), &self.draft) {
            (true, Some(draft)) => draft.is_ended_by_blank && self.header.lacks().contains(&key),
            (true, None) | (false, Some(_)) => true,
            (false, None) => !matches!(key, Key::Lines | Key::LastLine | Key::Part),
        }
    }

    fn ignore(&mut self, line: &Line<'_>, text: &str, said: Option<Said<'_>>, remarks: &mut Remarks) {
        if let Some(draft) = &mut self.draft {
            // A line that is cut may yet go on with the field before it.
            if line.is_settled {
                draft.settle();
            }
            // `which runs as:` speaks of the code behind it, `Fix:` of other code.
            let is_about_code =
                said.is_none_or(|said| said.value.is_empty() && !said.is_bold && !is_of_remedy(said.name));
            if !is_about_code {
                draft.taking = Taking::Fields;
            }
        }
        let is_rule = words::is_rule(text);
        // The head of a table is no title of what is in it.
        let is_title = !is_rule && !text.trim_start().starts_with('|');
        if said.is_none_or(|said| said.key.is_none()) && line.is_settled && is_title {
            self.above = Some((text.trim().to_owned(), line.begins()));
        }
        self.turns.of_header = None;
        // What stands behind a line that parts is told for itself.
        let was_ignoring = std::mem::replace(&mut self.is_ignoring, said.is_none() && !is_rule);
        if self.draft.is_some() && line.is_settled && words::is_label_alone(text) {
            self.unknown_at = Some(indent(text));
        }
        // Of a finding that is open, each label says something else.
        if self.draft.is_some() && item(text).is_some() && words::is_labelled(text) {
            self.paragraph = Paragraph::default();
        }
        let is_sign = line.is_settled && self.paragraph.takes(text);
        if is_sign && self.draft.is_none() && self.findings.is_empty() {
            self.unread += 1;
            remarks.add(RemarkKind::UnreadFinding, text, line.begins());
            return;
        }
        if let Some(id) = heads::named(text).filter(|id| line.is_settled && !self.has(id)) {
            self.mentioned.push((id, text.to_owned(), line.begins()));
        }
        if is_sign {
            // What is said of a finding under a name of its own, as an impact, is more of that one.
            // `a hole in src/b.rs:20` is no name, either.
            let is_named = said.is_some_and(|said| !is_place(said));
            let named = if is_named { Named::of(text) } else { self.paragraph.named().clone() };
            if named.is_precise() || !is_named && named.has_place() {
                self.spoken_of.push((named, text.to_owned(), line.begins()));
            }
        }
        if !line.is_settled || was_ignoring && said.is_none() || is_rule {
            return;
        }
        let kind = if said.is_some() { RemarkKind::UnknownField } else { RemarkKind::IgnoredText };
        remarks.add(kind, text, line.begins());
    }

    fn set(&mut self, key: Key, value: &str, name: Name, line: &Line<'_>, remarks: &mut Remarks) {
        let is_broken = is_broken(value);
        self.last = Some(Last { key, name, is_open: value.trim().is_empty(), is_list: false, is_broken });
        let position = line.begins();
        let mut repeated = || remarks.add(RemarkKind::RepeatedField, &line.text, position);
        if key.is_of_header() {
            self.turns.of_header = Some(key);
            if !self.header.set(key, value) {
                repeated();
            } else if key == Key::Declared && self.header.declared.is_none() && !is_placeholder(value) {
                remarks.add(RemarkKind::NoNumber, value, position);
            }
            return;
        }
        let Some(draft) = &mut self.draft else { return };
        match key {
            Key::Id => self.last = None,
            Key::Title if draft.entitle(value.trim_matches(['"', '*', '`', '_'])) => {}
            key if !draft.is_new(key) => {
                self.last = None;
                repeated();
            }
            Key::Of(Field::Evidence) => {
                self.last = None;
                draft.collect(name.indent, name.is_item, value);
            }
            key => {
                draft.set(key, value, position);
                if is_broken {
                    draft.grows(key);
                }
            }
        }
    }

    fn go_on(&mut self, key: Key, more: &str, is_item: bool) {
        if let Some(last) = &mut self.last {
            last.is_list |= last.is_open && is_item;
            (last.is_open, last.is_broken) = (false, is_broken(more));
        }
        match (key, &mut self.draft) {
            (Key::Dimensions, _) => {
                if let Some(dimensions) = &mut self.header.dimensions {
                    dimensions.extend(list(more));
                }
            }
            (Key::AgentId, _) if self.header.agent_id.is_none() => {
                self.header.agent_id = Some(more.to_owned());
            }
            (Key::AgentId | Key::Declared | Key::Escapes | Key::Title | Key::Id, _) | (_, None) => {}
            (key, Some(draft)) => draft.go_on(key, more, is_item),
        }
    }
}

/// A value that the text stops in, without the signs that its name or its emphasis has begun with.
fn without_cut_signs<'a>(value: &'a str, field: &str) -> &'a str {
    let is_quoted = field.trim_start().starts_with('"');
    let value = if is_quoted { value.strip_prefix('"').unwrap_or(value) } else { value };
    let is_begun = value.chars().all(|sign| "*_`~\"".contains(sign));
    if is_begun { "" } else { value }
}

/// How many lines behind the beginning of a finding are looked at where code is open.
const LINES_BEHIND_FENCE: usize = 4;
