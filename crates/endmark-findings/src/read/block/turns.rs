//! Turns of a conversation inside of a result: where one ends, what stands before it may be cut. (AR-1)
//!
//! Whoever wrote the transcript down has ended the last line of each turn, so that its line break says nothing: the field
//! in it may have been cut. What the next turn begins with tells more, but no turn is joined to another one here.

use super::super::Remarks;
use super::super::ahead::Ahead;
use super::super::draft::{Draft, LeftOpen, Told};
use super::super::evidence::{Begins, Collecting, Fence};
use super::super::heads;
use super::super::lines::{Line, indent, unquoted};
use super::super::names::Key;
use super::super::speakers::{Speaker, Voice, asks_to_go_on, speaker, without_end};
use super::super::words;
use super::{Block, Taking};
use crate::transcript::letters;
use crate::{Field, Position, RemarkKind};

/// More lines than these are no turn between two of the model's.
const LONGEST_TURN: usize = 40;

/// The turns in a result.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Up to this line somebody else speaks than the model.
    silent_until: usize,
    /// No turn of the model begins before this line.
    none_before: usize,
    /// What stood last before a turn ended, until the next one tells more.
    doubt: Option<Doubt>,
    /// The field of the header that was said last.
    pub(super) of_header: Option<Key>,
    /// Where a turn has first ended in the middle of something.
    pub(super) cut_at: Option<Position>,
    /// The beginning of the finding that comes next may be cut.
    pub(super) next: Told,
}

/// What a turn has ended in, and where.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    what: LeftOpen,
    position: Position,
}

/// What a line says to the result.
pub(super) enum Heard<'t> {
    /// This.
    Text(&'t str),
    /// Nothing: it is another one's, or the rest of what was cut.
    Nothing,
}

impl Block {
    /// Takes the line out of the conversation around it: where a turn ends in it, what stands before may be cut.
    pub(super) fn of_turn<'t>(
        &mut self,
        line: &Line<'_>,
        text: &'t str,
        ahead: Ahead<'_, '_>,
        remarks: &mut Remarks,
    ) -> Heard<'t> {
        if ahead.at < self.turns.silent_until {
            return Heard::Nothing;
        }
        let mut text = without_end(text);
        let is_answer = self.is_answer(ahead);
        if let Some(speaker) = self.speaker(text, ahead) {
            if !is_answer {
                remarks.add(RemarkKind::InnerTurn, text, line.begins());
            }
            if self.turns.doubt.is_none() {
                let position = line.begins();
                self.turns.doubt = self.begun().map(|what| Doubt { what, position });
            }
            if self.turns.doubt.is_some_and(|doubt| doubt.what != LeftOpen::Name) {
                self.last = None;
            }
            text = if speaker.voice == Voice::Model { speaker.says } else { "" };
            if text.is_empty() {
                return Heard::Nothing;
            }
        }
        match self.turns.doubt.take_if(|_| !text.trim().is_empty()) {
            Some(doubt) if !self.goes_on(doubt, text, ahead) => {
                remarks.add(RemarkKind::IgnoredText, text, line.begins());
                Heard::Nothing
            }
            _ => Heard::Text(text),
        }
    }

    /// Who begins to speak in a line; none also where that may be a field, or evidence.
    fn speaker<'t>(&mut self, text: &'t str, ahead: Ahead<'_, '_>) -> Option<Speaker<'t>> {
        let speaker = speaker(text).filter(|_| self.ignored.is_none())?;
        let evidence = self.draft.as_ref().and_then(|draft| draft.open_evidence());
        if evidence.is_some_and(|evidence| evidence.is_deeper(indent(text))) {
            return None;
        }
        let is_code = evidence.is_some_and(Collecting::is_flush_code);
        if speaker.voice == Voice::Model {
            return (self.is_answer(ahead) || speaker.is_sure && !is_code).then_some(speaker);
        }
        let ends = self.next_of_model(ahead);
        let between = Between::of(ahead, ends.unwrap_or(ahead.at + LONGEST_TURN));
        let is_asked = asks_to_go_on(speaker.says) || ends.is_some() && between.is_asked;
        // Where the text stops, the model's turn may have been to come.
        let is_answered = ends.is_some() || ahead.at + LONGEST_TURN >= ahead.lines.len();
        let is_turn = if is_code {
            ends.is_some() && is_asked
        } else {
            is_asked || is_answered && !between.has_structure
        };
        if let Some(ends) = ends.filter(|_| is_turn && !between.has_head) {
            self.turns.silent_until = ends;
        }
        is_turn.then_some(speaker)
    }

    /// Whether the model speaks again in this line, behind another one.
    fn is_answer(&self, ahead: Ahead<'_, '_>) -> bool {
        self.turns.silent_until > 0 && self.turns.silent_until == ahead.at
    }

    /// The line in which the model speaks again, before the result is over.
    fn next_of_model(&mut self, ahead: Ahead<'_, '_>) -> Option<usize> {
        let first = self.turns.none_before.max(ahead.at + 1);
        let last = ahead.lines.len().min(ahead.at + 1 + LONGEST_TURN);
        for at in first..last {
            self.turns.none_before = at;
            let text = unquoted(&ahead.lines[at].text, ahead.quotes);
            if words::marker(text).is_some() {
                return None;
            }
            if speaker(text).is_some_and(|speaker| speaker.voice == Voice::Model) {
                return Some(at);
            }
        }
        None
    }

    /// What has begun and not ended where a turn ends.
    fn begun(&self) -> Option<LeftOpen> {
        let text = self.is_ignoring.then_some(LeftOpen::Text);
        match &self.draft {
            None if self.findings.is_empty() && self.turns.of_header.is_some() => {
                self.turns.of_header.map(LeftOpen::Header)
            }
            None => text,
            Some(draft) => draft.begun().or(text.filter(|_| !draft.is_in_evidence())),
        }
    }

    /// Takes what a turn begins with behind one that has ended in the middle of something. False if it is the rest of that,
    /// which is read as nothing else.
    fn goes_on(&mut self, doubt: Doubt, text: &str, ahead: Ahead<'_, '_>) -> bool {
        let said = words::said(text).filter(|said| said.is_plain);
        let key = said.and_then(|said| said.key);
        let head = heads::head(text);
        let is_code = self.draft.as_ref().and_then(Draft::open_evidence).is_some_and(Collecting::is_open);
        let is_field =
            key.is_some_and(|key| !is_code || self.draft.as_ref().is_some_and(|draft| draft.is_new(key)));
        // Code may look like the beginning of a finding: then nothing of one follows.
        let is_head = head.is_some() && ahead.fields_follow(usize::MAX, false) != Begins::No;
        let is_structure = is_field || is_head || words::marker(text).is_some();
        // The finding is told from its beginning again.
        if let (Some(draft), Some(head)) = (&self.draft, &head)
            && head.id.as_ref() == Some(&draft.id)
            && letters(&head.title).starts_with(&letters(draft.title()))
            && is_head
        {
            self.draft = None;
            return true;
        }
        let value = said.map_or("", |said| said.value);
        let (mut is_settled, mut is_first) = (false, false);
        let mut is_fence = Fence::of(text).is_some();
        match (doubt.what, &mut self.draft) {
            (LeftOpen::Header(of), _) if !is_structure || key == Some(of) => {
                is_settled = key == Some(of);
                self.header.forget(of);
            }
            (LeftOpen::Value(of), Some(draft)) if !is_structure || key == Some(of) => {
                let begun = draft.forget(of);
                is_settled = key == Some(of) && letters(value).starts_with(&letters(&begun));
            }
            (LeftOpen::Evidence, Some(draft)) => match draft.evidence() {
                Some(evidence) if !is_structure => {
                    evidence.stop();
                    is_first = !evidence.is_stopped();
                    // Code that goes on in a fence of its own ends with it; what is indented is none of that code.
                    is_fence = Fence::of(text).is_some() && !evidence.is_indented();
                    if is_fence && !is_code {
                        draft.taking = Taking::MoreCode;
                    }
                }
                _ if key == Some(Key::Of(Field::Evidence)) => draft.forget_evidence(),
                _ => draft.taking = Taking::MoreCode,
            },
            (LeftOpen::Name, _) => is_first = true,
            (LeftOpen::Text, draft) => {
                // It may have been the heading of the fields that come.
                let is_of_finding =
                    key.is_some_and(|key| key.is_of_finding() || matches!(key, Key::Id | Key::Title));
                let is_heading = !is_structure || !is_head && is_of_finding;
                let is_all_there = draft.as_ref().is_none_or(Draft::is_all_there);
                self.above = None;
                if is_heading && is_all_there || !is_structure {
                    self.turns.next = Told::Interrupted;
                }
                is_settled = is_all_there && !is_heading;
                // Code that comes is no longer of the finding that has all, but of the next one.
                if let Some(draft) = draft.as_mut().filter(|_| is_all_there) {
                    draft.taking = Taking::Fields;
                }
            }
            _ => {}
        }
        if !is_settled {
            self.turns.cut_at = self.turns.cut_at.or(Some(doubt.position));
            if let Some(draft) =
                self.draft.as_mut().filter(|draft| doubt.what != LeftOpen::Text || !draft.is_all_there())
            {
                draft.told = Told::Interrupted;
            }
        }
        is_structure || is_code || is_fence || is_first
    }
}

/// What stands between two turns of the model.
#[derive(Default)]
struct Between {
    has_structure: bool,
    has_head: bool,
    is_asked: bool,
}

impl Between {
    fn of(ahead: Ahead<'_, '_>, ends: usize) -> Self {
        let mut between = Self::default();
        let count = ends.saturating_sub(ahead.at + 1);
        for line in ahead.lines.iter().skip(ahead.at + 1).take(count) {
            let text = unquoted(&line.text, ahead.quotes);
            let is_field = |said: words::Said<'_>| said.is_plain && said.key.is_some_and(Key::is_of_finding);
            between.has_head |= heads::head(text).is_some();
            between.has_structure |= between.has_head || words::said(text).is_some_and(is_field);
            between.is_asked |= asks_to_go_on(text);
        }
        between
    }
}
