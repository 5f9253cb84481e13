//! What the lines behind a line tell of it.

use std::borrow::Cow;

use super::draft::Values;
use super::evidence::{Around, Begins, Begun, Fence, is_of_code};
use super::header::Header;
use super::heads::{self, Head, Shape};
use super::lines::{Line, indent, unquoted};
use super::names::{self, Key};
use super::section::Section;
use super::table::Table;
use super::words::{self, Marker};
use crate::Field;
use crate::stand_in::is_placeholder;

/// How many lines with something in them are looked at ahead.
const LOOKAHEAD: usize = 8;

/// So many fields behind a line make it the beginning of a finding.
const FIELDS_OF_FINDING: usize = 2;

/// Where open code ends.
enum FenceEnd {
    /// In the line of this number.
    Closed(usize),
    /// Nowhere: other code begins before, or the result ends.
    Open,
    /// The text stops before.
    Cut,
}

/// Whether a line says that code follows: `evidence:`, `Fix:`.
fn opens_code(text: &str) -> bool {
    words::said(text).is_some_and(|said| {
        let is_name = said.key == Some(Key::Of(Field::Evidence))
            || said.key.is_none() && (names::is_other_label(said.name) || names::is_of_remedy(said.name));
        said.value.is_empty() && is_name
    })
}

/// Whether a line is nothing but `=` or `-`, at least three of them.
fn is_underline(text: &str) -> bool {
    let text = text.trim();
    text.len() >= 3 && ['=', '-'].iter().any(|sign| text.chars().all(|other| other == *sign))
}

/// Whether a line is a heading below another one: a single `#` may as well begin a comment.
fn is_subheading(text: &str) -> bool {
    text.starts_with("##") && words::without_lead(text).1.hashes > 1
}

/// The lines from one on.
#[derive(Clone, Copy)]
pub(super) struct Ahead<'a, 'b> {
    pub(super) lines: &'a [Line<'b>],
    pub(super) at: usize,
    pub(super) quotes: usize,
}

impl<'a> Ahead<'a, '_> {
    /// The line itself.
    fn text(&self) -> &'a str {
        unquoted(&self.lines[self.at].text, self.quotes)
    }

    /// The line as a heading, where Markdown has a line of `=` or `-` below it.
    fn heading(&self) -> Cow<'a, str> {
        self.heading_of(self.text())
    }

    /// The same of what is left of the line.
    pub(super) fn heading_of<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_underlined() {
            Cow::Owned(format!("## {}", text.trim_start()))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Whether a line of `=` or `-` below it makes a heading of it: it is no field, no row and no such line itself.
    fn is_underlined(&self) -> bool {
        let text = self.text().trim();
        let below = self.lines.get(self.at + 1).filter(|below| below.is_settled);
        below.is_some_and(|below| is_underline(unquoted(&below.text, self.quotes)))
            && !text.is_empty()
            && !text.starts_with(['|', '#'])
            && !is_underline(text)
            && words::said(text).is_none_or(|said| said.key.is_none())
    }

    /// The same of the line of this number.
    fn is_underlined_at(self, number: usize) -> bool {
        Self { at: number - 1, ..self }.is_underlined()
    }

    /// Whether the line before this one is blank.
    pub(super) fn is_behind_blank(&self) -> bool {
        let before = self.at.checked_sub(1).map(|before| unquoted(&self.lines[before].text, self.quotes));
        before.is_some_and(|text| text.trim().is_empty())
    }

    /// Whether the next line stands deeper than this one.
    pub(super) fn goes_deeper(&self) -> bool {
        self.behind().next().is_some_and(|text| indent(text) > indent(self.text()))
    }

    /// The next lines with something in them.
    fn behind(&self) -> impl Iterator<Item = &'a str> {
        self.numbered_behind().map(|(_, text)| text)
    }

    /// The same with their numbers.
    fn numbered_behind(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let quotes = self.quotes;
        // Blank lines are not waited out for ever.
        let lines = self.lines.iter().skip(self.at + 1).take(4 * LOOKAHEAD);
        let texts = lines.map(move |line| (line.number, unquoted(&line.text, quotes)));
        texts.filter(|(_, text)| !text.trim().is_empty()).take(LOOKAHEAD)
    }

    /// Whether the window of the next lines reaches the end of the text.
    fn is_at_end(&self) -> bool {
        let behind = self.lines.iter().skip(self.at + 1).take(4 * LOOKAHEAD);
        let lines = behind.clone().count();
        lines < 4 * LOOKAHEAD && behind.filter(|line| !line.text.trim().is_empty()).count() < LOOKAHEAD
    }

    /// Where the code ends that is open in this line: at the next fence, unless that opens other code.
    fn end_of(&self, fence: Fence) -> FenceEnd {
        let mut has_end = false;
        let mut before = "";
        for line in self.lines.iter().skip(self.at + 1).filter(|line| !line.text.trim().is_empty()) {
            let text = unquoted(&line.text, self.quotes);
            if let Some(other) = Fence::of(text) {
                if fence.is_closed_by(other) && !opens_code(before) {
                    return FenceEnd::Closed(line.number);
                }
                if fence.is_alike(other) {
                    return FenceEnd::Open;
                }
            }
            has_end |= words::marker(text) == Some(Marker::End);
            before = text;
        }
        if has_end { FenceEnd::Open } else { FenceEnd::Cut }
    }

    /// Whether the next line is a marker, a finding or a field.
    pub(super) fn goes_on_with_structure(&self) -> bool {
        self.behind().next().is_none_or(|text| {
            words::marker(text).is_some()
                || heads::head(text).is_some()
                || words::said(text).is_some_and(|said| said.is_plain && said.key.is_some())
        })
    }

    /// Whether at least two fields of a finding follow before another could begin; those of code do not count.
    pub(super) fn fields_follow(&self, most: usize, is_fence_end: bool) -> Begins {
        let mut keys: Vec<Key> = Vec::new();
        for (number, text) in self.numbered_behind().take(most) {
            if words::marker(text) == Some(Marker::End) {
                return Begins::No;
            }
            let is_end = words::marker(text).is_some() || heads::head(text).is_some();
            if is_end || is_fence_end && Fence::of(text).is_some() {
                return Begins::No;
            }
            let known = words::fields(text)
                .into_iter()
                .filter_map(words::said)
                .filter(|said| said.is_plain || is_fence_end);
            let known: Vec<Key> = known.filter_map(|said| said.key).collect();
            let is_set_apart = || heads::possible_head(text).is_some_and(|head| head.shape.is_set_apart());
            if known.is_empty() && (is_set_apart() || self.is_underlined_at(number)) {
                return Begins::No;
            }
            for key in known.into_iter().filter(|key| key.is_of_finding()) {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
            if keys.len() >= FIELDS_OF_FINDING {
                return Begins::Yes;
            }
        }
        if self.is_at_end() { Begins::Unknown } else { Begins::No }
    }
}

impl Ahead<'_, '_> {
    /// Whether a finding begins behind this line before any field comes, so that the line can head it, and others.
    pub(super) fn heads_findings(&self) -> Begins {
        for (number, text) in self.numbered_behind() {
            let line = Self { at: number - 1, ..*self };
            let is_sure = heads::head(text).is_some_and(|head| head.id.is_some());
            if is_sure || Table::of(text).is_some() {
                return Begins::Yes;
            }
            let is_other = words::marker(text).is_some() || Fence::of(text).is_some();
            if is_other || words::said(text).is_some_and(|said| said.key.is_some()) {
                return Begins::No;
            }
            if heads::loose_head(text).is_some() && line.fields_follow(usize::MAX, false) == Begins::Yes {
                return Begins::Yes;
            }
        }
        if self.is_at_end() { Begins::Unknown } else { Begins::No }
    }
}

/// The fields of a finding that stand together in the next lines, each with what is said.
pub(super) struct Run<'a> {
    pub(super) said: Vec<(Key, &'a str)>,
    /// The text stops before something else follows.
    pub(super) is_open: bool,
}

impl<'a> Ahead<'a, '_> {
    /// The fields that stand behind this line, or from it on; `is_close` lets nothing stand between them.
    pub(super) fn run(&self, from_here: bool, is_close: bool) -> Run<'a> {
        let mut run = Run { said: Vec::new(), is_open: false };
        let first = self.at + usize::from(!from_here);
        let mut looked_at = 0;
        for line in self.lines.iter().skip(first).take(4 * LOOKAHEAD) {
            let text = unquoted(&line.text, self.quotes);
            if text.trim().is_empty() || line.number == self.lines[self.at].number + 1 && is_underline(text) {
                continue;
            }
            // What is cut may become anything, but for the end.
            if !line.is_settled && words::marker(text) != Some(Marker::End) {
                run.is_open = true;
                return run;
            }
            looked_at += 1;
            let is_this = line.number == self.lines[self.at].number;
            let is_other = words::marker(text).is_some()
                || Fence::of(text).is_some()
                || !is_this && (heads::head(text).is_some() || self.is_underlined_at(line.number));
            if is_other || looked_at > LOOKAHEAD || !run.take(text, is_this, is_close) {
                return run;
            }
        }
        run.is_open = self.is_at_end();
        run
    }
}

impl<'a> Run<'a> {
    /// Whether that is enough for a finding, with values that are no template's.
    pub(super) fn is_finding(&self) -> bool {
        self.said.iter().any(|(key, _)| *key == Key::Of(Field::Severity))
            && self.said.len() > FIELDS_OF_FINDING
            && self.said.iter().any(|(_, value)| !value.is_empty() && !is_placeholder(value))
    }

    /// Takes the fields of a line; not if something else stands there, or one of them is there already.
    fn take(&mut self, text: &'a str, is_this: bool, is_close: bool) -> bool {
        let known: Vec<_> =
            words::fields(text).into_iter().filter_map(words::said).filter(|said| said.is_plain).collect();
        let is_named = known.iter().any(|said| matches!(said.key, Some(Key::Id | Key::Title)));
        let mut is_of_finding = false;
        for said in known {
            let Some(key) = said.key.filter(|key| key.is_of_finding()) else { continue };
            if self.said.iter().any(|(known, _)| *known == key) {
                return false;
            }
            is_of_finding = true;
            self.said.push((key, said.value));
            // What stands behind it is code.
            if key == Key::Of(Field::Evidence) {
                return false;
            }
        }
        let is_set_apart = || heads::possible_head(text).is_some_and(|head| head.shape.is_set_apart());
        is_of_finding || is_this || is_named && self.said.is_empty() || !is_close && !is_set_apart()
    }
}

/// What is around a line of evidence.
pub(super) struct Surroundings<'a, 'b, 'v> {
    pub(super) ahead: Ahead<'a, 'b>,
    /// What is said before the findings; what that lacks may stand behind them.
    pub(super) header: &'v Header,
    /// How the findings of this result begin, and the number that the next one has.
    pub(super) shape: Option<Shape>,
    pub(super) next_number: Option<u32>,
    /// What the finding says so far.
    pub(super) values: Values<'v>,
}

impl Surroundings<'_, '_, '_> {
    fn is_next(&self, head: &Head<'_>) -> bool {
        (self.shape == Some(head.shape) || head.shape.is_bracket())
            && head
                .id
                .as_ref()
                .is_some_and(|id| id.number() == self.next_number && self.next_number.is_some())
    }
}

impl Surroundings<'_, '_, '_> {
    /// Whether fields stand here, or behind this line at once, that say other things than the finding has said.
    fn begins_another(&self) -> Begins {
        let heading = self.ahead.heading();
        let text = &*heading;
        let said = words::said(text).filter(|said| said.is_plain);
        let is_field = said.is_some_and(|said| {
            said.key.is_some_and(|key| key.is_of_finding() || matches!(key, Key::Id | Key::Title))
        });
        let head = heads::loose_head(text).filter(|_| !is_field);
        if !is_field && head.is_none() {
            return self.begins_plainly();
        }
        let run = self.ahead.run(is_field, true);
        // Where there is no heading, code that looks like fields is told from a finding by the place.
        let is_enough = |run: &Run<'_>| {
            !is_field || run.is_finding() && run.said.iter().any(|(key, _)| *key == Key::Of(Field::Location))
        };
        if is_field && !is_enough(&run) {
            return if run.is_open { Begins::Unknown } else { Begins::No };
        }
        let is_numbered = head.and_then(|head| head.id).is_some_and(|id| id.number() == self.next_number);
        if self.values.are_of_another(&run.said, !is_field)
            || is_numbered && run.said.len() >= FIELDS_OF_FINDING
        {
            Begins::Yes
        } else if run.is_open {
            Begins::Unknown
        } else {
            Begins::No
        }
    }
}

impl Surroundings<'_, '_, '_> {
    /// Whether a text that nothing sets apart is the heading of another finding: behind a blank line, with its fields at once.
    fn begins_plainly(&self) -> Begins {
        if !self.ahead.is_behind_blank() || words::said(self.ahead.text()).is_some() {
            return Begins::No;
        }
        let run = self.ahead.run(false, true);
        if self.values.are_of_another(&run.said, true) {
            Begins::Yes
        } else if run.is_open {
            Begins::Unknown
        } else {
            Begins::No
        }
    }
}

impl Around for Surroundings<'_, '_, '_> {
    fn begins_finding(&self, fence: Fence) -> Begun {
        let Some(head) = heads::head(self.ahead.text()) else { return Begun::Nothing };
        match self.ahead.fields_follow(LOOKAHEAD / 2, true) {
            Begins::No => Begun::Nothing,
            Begins::Unknown => Begun::Unknown,
            Begins::Yes => match self.ahead.end_of(fence) {
                FenceEnd::Closed(at) => Begun::ClosedAt(at),
                FenceEnd::Open => Begun::Finding,
                // What is cut in code may be quoted, unless it is the next one.
                FenceEnd::Cut if self.is_next(&head) => Begun::Finding,
                FenceEnd::Cut => Begun::Unknown,
            },
        }
    }

    fn begins_next_finding(&self) -> Begins {
        // A fence heads nothing, whatever the code in it says.
        if Fence::of(self.ahead.text()).is_some() {
            return Begins::No;
        }
        // Of a finding, or of several: it is no code.
        if self.ahead.is_behind_blank() && self.ahead.is_underlined() {
            return Begins::Yes;
        }
        let heading = self.ahead.heading();
        let text = &*heading;
        if self.ahead.is_behind_blank() && (Section::of(text).is_some() || is_subheading(text)) {
            match self.ahead.heads_findings() {
                Begins::No => {}
                begins => return begins,
            }
        }
        let head = heads::head(text)
            .or_else(|| heads::possible_head(text).filter(|head| self.shape == Some(head.shape)));
        match head {
            None => self.begins_another(),
            Some(head) if self.is_next(&head) => Begins::Yes,
            // `F1: x` is code among findings that begin with `[F001]`, unless another finding follows.
            Some(head)
                if self.shape.is_some_and(|shape| shape != head.shape) && !head.shape.is_set_apart() =>
            {
                self.begins_another()
            }
            Some(_) => self.ahead.fields_follow(LOOKAHEAD, true),
        }
    }

    fn is_between_code(&self) -> bool {
        let follows = self.ahead.behind().find(|text| !is_of_code(text));
        let is_heading =
            |text: &str| heads::possible_head(text).is_some_and(|head| head.shape.is_set_apart());
        heads::loose_head(self.ahead.text()).is_none()
            && !self.ahead.behind().take_while(|text| is_of_code(text)).any(is_heading)
            && follows.and_then(Fence::of).is_some()
    }

    fn is_new(&self, key: Key, is_after_blank: bool) -> bool {
        match key {
            Key::Id | Key::Title | Key::Part | Key::Of(Field::Evidence) => false,
            key if key.is_of_header() => is_after_blank && self.header.lacks().contains(&key),
            key => self.values.lacks(key),
        }
    }
}
