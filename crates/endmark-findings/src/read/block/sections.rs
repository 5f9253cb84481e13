//! Headings that say how bad what stands under them is.

use super::super::ahead::Ahead;
use super::super::draft::Draft;
use super::super::evidence::{Begins, Collecting};
use super::super::heads;
use super::super::lines::Line;
use super::super::names::Key;
use super::super::section::Section;
use super::Block;
use crate::Field;

impl Block {
    /// Takes a line that heads findings by how bad they are.
    pub(super) fn section(&mut self, line: &Line<'_>, text: &str, ahead: Ahead<'_, '_>) -> bool {
        let heading = ahead.heading_of(text);
        let Some(section) = Section::of(&heading) else {
            let is_ended = self.next_section.as_ref().is_some_and(|section| section.ends_at(&heading));
            let begins_finding =
                || heads::head(&heading).is_some() || ahead.fields_follow(usize::MAX, false) == Begins::Yes;
            if is_ended && line.is_settled && !begins_finding() {
                self.next_section = None;
            }
            return false;
        };
        if !line.is_settled || self.says_itself(&section) {
            return false;
        }
        // `**Impact:**` may have `**High**` below it: then it is not known how bad the next finding is.
        let is_open = self.last.is_some_and(|last| last.is_open) || self.unknown_at.is_some();
        let is_heading = section.hashes() > 0;
        let is_heading_others = ahead.heads_findings() != Begins::No;
        if !is_heading && (is_open || !is_heading_others) {
            self.next_section = None;
            return false;
        }
        self.next_section = Some(section);
        (self.table, self.unknown_at) = (None, None);
        is_heading_others
    }

    /// Leaves what a heading has said where another one stands in the evidence, outside of code.
    pub(super) fn leave_section(&mut self, text: &str) {
        let is_code = self.draft.as_ref().and_then(Draft::open_evidence).is_some_and(Collecting::is_open);
        self.next_section = self.next_section.take().filter(|section| is_code || !section.ends_at(text));
    }

    /// Whether such a heading is a field of the finding that is open, and no heading of others.
    fn says_itself(&self, section: &Section) -> bool {
        let Some(draft) = self.draft.as_ref().filter(|_| section.is_field) else { return false };
        let above = self.section.as_ref().map(Section::hashes).or(self.shape.map(heads::Shape::hashes));
        let is_above = above.and_then(|hashes| section.is_above(hashes));
        let is_known = !draft.is_new(Key::Of(Field::Severity)) || self.section.is_some();
        !is_above.unwrap_or(is_known)
    }
}
