//! A text between fields that may be the heading of the next finding: whose the fields behind it are.

use std::borrow::Cow;

use super::super::Remarks;
use super::super::ahead::Ahead;
use super::super::heads::{self, Head};
use super::super::lines::Line;
use super::super::names::Key;
use super::super::words;
use super::Block;
use super::beginnings::LONGEST_TITLE;
use crate::{Field, RemarkKind};

/// Whose the fields behind a text are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The finding's that is open: they are more of it.
    Open,
    /// Another finding's, which the text begins.
    Another,
    /// Nobody's: the finding that is open may go on, and another one may have begun.
    Nobody,
}

impl Block {
    /// The beginning of a finding that a text is which stands alone behind the fields of another one: without a number, and
    /// without signs that set it apart. Where it stays open whose the fields behind it are, they are nobody's from here on.
    pub(super) fn plain_head<'t>(
        &mut self,
        line: &Line<'_>,
        text: &'t str,
        ahead: Ahead<'_, '_>,
        remarks: &mut Remarks,
    ) -> Option<Head<'t>> {
        match self.owner(line, text, ahead) {
            Owner::Open => None,
            Owner::Nobody => {
                self.disown(line, remarks);
                None
            }
            Owner::Another => {
                let mut head = heads::loose_head(text).unwrap_or_else(|| Head {
                    id: None,
                    title: Cow::Borrowed(words::without_lead(text).0.trim()),
                    shape: heads::Shape::default(),
                });
                head.id = head.id.filter(|id| !self.has(id));
                let is_sentence = head.title.ends_with([':', '.', ';', ',']);
                if is_sentence || head.title.chars().count() > LONGEST_TITLE {
                    head.title = Cow::Borrowed("");
                }
                Some(head)
            }
        }
    }

    fn owner(&self, line: &Line<'_>, text: &str, ahead: Ahead<'_, '_>) -> Owner {
        let Some(draft) = self.draft.as_ref().filter(|draft| !draft.is_bare()) else { return Owner::Open };
        let is_labelled = words::said(text).is_some_and(|said| !said.value.is_empty());
        let is_alone = ahead.is_behind_blank() || draft.is_behind_evidence();
        let is_more = self.last.is_some_and(|last| last.is_open || last.is_broken);
        if !line.is_settled || is_labelled || !is_alone || is_more || self.is_disowned {
            return Owner::Open;
        }
        let run = ahead.run(false, true);
        let values = draft.values();
        let repeats_evidence = run.said.iter().any(|(key, _)| *key == Key::Of(Field::Evidence))
            && !draft.is_new(Key::Of(Field::Evidence));
        // What is said again in a summary is no other finding's.
        if values.say_all(&run.said) {
            Owner::Open
        } else if values.are_of_another(&run.said, true) || draft.is_all_there() {
            Owner::Another
        } else if run.is_open || repeats_evidence {
            Owner::Nobody
        } else {
            Owner::Open
        }
    }

    /// Lets the fields from here on be nobody's, says so, and counts a finding that has to be looked at again.
    pub(super) fn disown(&mut self, line: &Line<'_>, remarks: &mut Remarks) {
        self.is_disowned = true;
        self.last = None;
        self.broken = self.broken.saturating_add(1);
        remarks.add(RemarkKind::UnreadFinding, &line.text, line.begins());
    }
}
