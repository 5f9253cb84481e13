//! Where a finding begins: by its id, by what it looks like, or because the fields that follow cannot be of the one before.

use std::collections::HashSet;

use super::super::Remarks;
use super::super::ahead::Ahead;
use super::super::draft::Draft;
use super::super::evidence::Begins;
use super::super::heads::{self, Head};
use super::super::lines::Line;
use super::super::names::Key;
use super::super::signs::Named;
use super::super::tags;
use super::super::words::{self, Said};
use super::Block;
use crate::expected::Numbers;
use crate::{FindingId, Position, RemarkKind};

/// A longer line, in characters, is no heading.
pub(super) const LONGEST_TITLE: usize = 160;

impl Block {
    /// The beginning of a finding that a line is, and whether its id alone says so.
    pub(super) fn head<'t>(
        &mut self,
        line: &Line<'_>,
        text: &'t str,
        ahead: Ahead<'_, '_>,
        remarks: &mut Remarks,
    ) -> Option<(Head<'t>, bool)> {
        let fields_follow = || ahead.fields_follow(usize::MAX, false) == Begins::Yes;
        // An id without brackets that the text stops in may have more digits.
        if let Some(head) = heads::head(text).filter(|head| line.is_settled || !head.ends_with_id(text)) {
            // An id that was there already is mentioned again, unless a finding of it follows.
            let is_known = head.id.as_ref().is_some_and(|id| self.has(id));
            // Under an id that has stood in an overview the finding itself comes, also where the text is cut in it.
            if head.id.as_ref().is_some_and(|id| self.is_bare(id))
                && ahead.fields_follow(usize::MAX, false) != Begins::No
            {
                return Some((head, true));
            }
            let is_first = self.shape.is_none() || !self.is_shape_sure;
            let is_alike = is_first || self.shape == Some(head.shape) || head.shape.is_set_apart();
            if is_alike {
                return (!is_known || fields_follow()).then_some((head, true));
            }
            let begins = if is_known {
                self.is_another(ahead)
            } else {
                fields_follow() || head.shape.is_bracket() && self.is_next(&head)
            };
            if begins {
                return Some((head, true));
            }
            if let Some(id) = head.id.filter(|_| !is_known && line.is_settled) {
                self.mentioned.push((id, text.to_owned(), line.begins()));
            }
            return None;
        }
        // What is a field is no beginning, whatever it looks like: most lines are one.
        if words::said(text).is_some_and(|said| said.key.is_some()) {
            return None;
        }
        let is_alike = |head: &Head<'_>| match self.shape {
            None => true,
            Some(shape) => !self.is_shape_sure && shape == head.shape,
        };
        let possible = heads::possible_head(text).filter(|head| is_alike(head) && fields_follow());
        if possible.is_some() {
            return possible.map(|head| (head, false));
        }
        // Of `Impact:`, a severity and a place may be told that are no other finding's.
        let is_name = self.draft.is_some() && words::is_label_alone(text) && ahead.goes_deeper();
        if is_name && !ahead.run(false, false).is_finding() {
            return None;
        }
        let loose = heads::loose_head(text).filter(|head| self.is_new_finding(head, ahead));
        let Some(mut loose) = loose else {
            return self.plain_head(line, text, ahead, remarks).map(|head| (head, false));
        };
        loose.id = loose.id.filter(|id| !self.has(id));
        Some((loose, false))
    }

    /// Whether a finding of this id is there.
    pub(super) fn has(&self, id: &FindingId) -> bool {
        self.draft.as_ref().is_some_and(|draft| draft.id == *id) || self.known.contains(id)
    }

    /// Whether nothing but a title has been said of a finding.
    fn is_bare(&self, id: &FindingId) -> bool {
        self.draft.as_ref().is_some_and(|draft| draft.id == *id && draft.is_bare()) || self.bare.contains(id)
    }

    /// Takes out what an overview has said of findings that have come behind it: it invents none.
    pub(super) fn drop_overview(&mut self) {
        if self.bare.is_empty() {
            return;
        }
        let said = self.findings.iter().filter(|read| !read.finding.is_bare());
        let mut said: HashSet<FindingId> = said.map(|read| read.finding.id.clone()).collect();
        let findings = std::mem::take(&mut self.findings);
        let of_table = std::mem::take(&mut self.of_table);
        self.ids = Numbers::default();
        for (read, of_table) in findings.into_iter().zip(of_table) {
            // A row of a table is told once in its own way.
            let is_again = !of_table && read.finding.is_bare() && !said.insert(read.finding.id.clone());
            if !is_again {
                self.ids.add(read.finding.id.number());
                self.findings.push(read);
                self.of_table.push(of_table);
            }
        }
    }

    /// Whether a beginning has the number behind that of the last finding.
    fn is_next(&self, head: &Head<'_>) -> bool {
        let number = head.id.as_ref().and_then(FindingId::number);
        let last = self.draft.as_ref().and_then(|draft| draft.id.number()).unwrap_or(self.highest);
        number.is_some() && number == last.checked_add(1)
    }

    /// Whether the fields behind a line are not those of the finding that is open.
    fn is_another(&self, ahead: Ahead<'_, '_>) -> bool {
        let run = ahead.run(false, false);
        self.draft.as_ref().is_some_and(|draft| draft.values().are_of_another(&run.said, true))
    }

    /// Whether a line that looks otherwise than the other beginnings is one all the same.
    fn is_new_finding(&self, head: &Head<'_>, ahead: Ahead<'_, '_>) -> bool {
        match &self.draft {
            None => head.id.is_some() && ahead.run(false, false).said.len() >= 2,
            Some(_) => self.is_another(ahead) || self.is_next(head) && ahead.run(false, false).is_finding(),
        }
    }

    /// Begins a finding.
    pub(super) fn begin(&mut self, head: Head<'_>, is_sure: bool, line: &Line<'_>, remarks: &mut Remarks) {
        self.finish_draft(true, remarks);
        self.section.clone_from(&self.next_section);
        (self.is_ignoring, self.last, self.table, self.above) = (false, None, None, None);
        self.unknown_at = None;
        // The findings look as the first behind their overview does.
        let is_behind_overview = head.id.as_ref().is_some_and(|id| self.bare.contains(id));
        if self.shape.is_none() || is_sure && (!self.is_shape_sure || is_behind_overview) {
            (self.shape, self.is_shape_sure) = (Some(head.shape), is_sure);
        }
        let id = head.id.unwrap_or_else(|| self.next_id());
        // A template that is cut is one all the same.
        let is_cut_template = !line.is_settled
            && self.findings.is_empty()
            && head.title.starts_with('<')
            && !head.title.contains('>');
        let title = match (is_cut_template, line.is_settled) {
            (true, _) => "…",
            (false, true) => tags::closed(&head.title, &line.text),
            (false, false) => tags::closed_at_cut(&head.title, &line.text),
        };
        let mut draft = Draft::new(id, title, line.begins());
        draft.told = std::mem::take(&mut self.turns.next);
        self.draft = Some(draft);
    }

    /// The id of a finding that says none.
    pub(super) fn next_id(&self) -> FindingId {
        FindingId::numbered(self.highest.saturating_add(1))
    }

    /// Opens a finding for a field of one where none is open, where one that has no beginning of its own repeats a field,
    /// and where what follows is said already, and otherwise.
    pub(super) fn has_place_for(
        &mut self,
        said: Said<'_>,
        key: Key,
        line: &Line<'_>,
        ahead: Ahead<'_, '_>,
        remarks: &mut Remarks,
    ) -> bool {
        if key.is_of_header() {
            return true;
        }
        let id = FindingId::read(said.value.trim_matches(['"', '`', '*', ' ', '[', ']']))
            .filter(|_| key == Key::Id);
        let is_said_below_name = self.unknown_at.is_some() && !matches!(key, Key::Id | Key::Title);
        // What is said of `Impact:` is no other finding, either.
        if self.draft.is_some() && is_said_below_name && !ahead.run(true, false).is_finding() {
            return !self.is_disowned;
        }
        let is_next = match &self.draft {
            None => true,
            Some(_) if self.is_disowned && key != Key::Id => return false,
            Some(draft) if key == Key::Id && id.as_ref() == Some(&draft.id) => return true,
            Some(draft) if key == Key::Id => {
                id.as_ref().is_some_and(|id| *id != draft.id) && !(draft.is_bare() && draft.is_headless)
            }
            // Where all is there, what follows at once may say other things: then all of it is another one's.
            Some(draft)
                if draft.is_all_there() && draft.is_new(key) && !matches!(key, Key::Title | Key::Part) =>
            {
                let run = ahead.run(true, true);
                let is_another = draft.values().are_of_another(&run.said, false);
                let is_apart = draft.is_ended_by_blank || self.above.is_some();
                if !is_another && is_apart && run.is_open {
                    self.disown(line, remarks);
                    return false;
                }
                is_another
            }
            // A title may be the heading of the next one.
            Some(draft) if draft.is_new(key) && (key != Key::Title || draft.is_bare()) => false,
            Some(draft) if draft.is_headless && !draft.is_bare() => true,
            Some(_) => self.is_restated(line, ahead, remarks),
        };
        if !is_next {
            return key != Key::Id;
        }
        if !line.is_settled || ahead.fields_follow(usize::MAX, false) != Begins::Yes {
            return false;
        }
        let (title, begins) = self.title_above(line);
        self.finish_draft(true, remarks);
        self.section.clone_from(&self.next_section);
        let id = id.unwrap_or_else(|| self.next_id());
        let mut draft = Draft::new(id, &title, begins);
        draft.is_headless = true;
        draft.told = std::mem::take(&mut self.turns.next);
        self.draft = Some(draft);
        true
    }

    /// Whether another finding is said from this line on, whose beginning could not be read. Where that is open, it is counted.
    fn is_restated(&mut self, line: &Line<'_>, ahead: Ahead<'_, '_>, remarks: &mut Remarks) -> bool {
        let Some(draft) = &mut self.draft else { return false };
        let run = ahead.run(true, false);
        let is_restated = draft.values().are_of_another(&run.said, false);
        if !is_restated && !draft.is_questioned && draft.values().are_in_question(&run.said) {
            draft.is_questioned = true;
            self.broken = self.broken.saturating_add(1);
            remarks.add(RemarkKind::UnreadFinding, &line.text, line.begins());
        }
        is_restated
    }

    /// What stands above the fields of a finding that has no beginning that could be read.
    fn title_above(&mut self, line: &Line<'_>) -> (String, Position) {
        let above = self.above.take().filter(|(text, _)| {
            let is_sentence = text.ends_with([':', '.', ';', ',']) || text.chars().count() > LONGEST_TITLE;
            !is_sentence && (self.draft.is_some() || heads::loose_head(text).is_some())
        });
        above.map_or((String::new(), line.begins()), |(text, begins)| {
            let (inner, _) = words::without_lead(&text);
            let title = heads::loose_head(&text).map_or(inner.to_owned(), |head| head.title.into_owned());
            (title, begins)
        })
    }

    /// Counts what was named as a finding is and is not there.
    pub(super) fn count_mentioned(&mut self, remarks: &mut Remarks) {
        // Where several are told, a summary of them names what they name.
        let mut told = Named::default();
        if !self.spoken_of.is_empty() {
            self.findings.iter().for_each(|read| told.add(&read.finding));
        }
        let mut counted = HashSet::new();
        for (named, text, position) in std::mem::take(&mut self.spoken_of) {
            if !named.has_some_of(&told) {
                counted.insert(position);
                self.broken = self.broken.saturating_add(1);
                remarks.add(RemarkKind::UnreadFinding, &text, position);
            }
        }
        let known: HashSet<&FindingId> = self.findings.iter().map(|read| &read.finding.id).collect();
        let mut mentioned = std::mem::take(&mut self.mentioned);
        mentioned.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
        mentioned.dedup_by(|next, first| next.0 == first.0);
        for (id, text, position) in mentioned {
            if !known.contains(&id) && counted.insert(position) {
                self.broken = self.broken.saturating_add(1);
                remarks.add(RemarkKind::UnreadFinding, &text, position);
            }
        }
    }
}
