//! Splits a text into runs of characters of the same class.

use super::class::{
    RunClass, ascii_class, class_of_char, is_border_digit, is_like_punctuation, is_selector, is_stray_mark,
};

/// Longer runs are split, so that the memory does not grow with the longest word. This adds one or two
/// tokens.
const MAX_RUN_BYTES: usize = 64 * 1024;

/// A run: its class and its text.
pub(super) type ClassRun<'a> = (RunClass, &'a str);

/// Kinds of characters that separate the parts of a hard run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Punctuation,
    Number,
    Letter,
}

/// Iterates over the runs of a text, in order. Hard runs are split into parts.
pub(super) struct ClassRuns<'a> {
    text: &'a str,
    /// The class of the previous run.
    last: Option<RunClass>,
    /// The remaining parts of the current hard run.
    hard_rest: &'a str,
}

impl<'a> ClassRuns<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, last: None, hard_rest: "" }
    }

    /// Returns the next run if it depends only on ASCII characters, as nearly all runs do.
    fn next_ascii_run(&mut self) -> Option<ClassRun<'a>> {
        let bytes = self.text.as_bytes();
        let own = ascii_class(*bytes.first()?)?;
        let is_own = |byte: &&u8| ascii_class(**byte) == Some(own);
        let end = bytes.iter().take(MAX_RUN_BYTES).take_while(is_own).count();
        // A character outside ASCII could continue the run.
        if bytes.get(end).is_some_and(|next| !next.is_ascii()) {
            return None;
        }
        let (run, rest) = self.text.split_at(end);
        (self.text, self.last) = (rest, Some(own));
        Some((own, run))
    }

    /// Returns the next part of the current hard run.
    fn next_hard_part(&mut self) -> Option<ClassRun<'a>> {
        let own = part_kind(self.hard_rest.chars().next()?);
        // A variation selector belongs to the character before it.
        let end =
            self.hard_rest.char_indices().find(|(at, c)| *at > 0 && part_kind(*c) != own && !is_selector(*c));
        let (part, rest) = self.hard_rest.split_at(end.map_or(self.hard_rest.len(), |(at, _)| at));
        self.hard_rest = rest;
        Some((RunClass::Separate, part))
    }
}

impl<'a> Iterator for ClassRuns<'a> {
    type Item = ClassRun<'a>;

    fn next(&mut self) -> Option<ClassRun<'a>> {
        if let Some(part) = self.next_hard_part() {
            return Some(part);
        }
        if let Some(run) = self.next_ascii_run() {
            return Some(run);
        }
        let mut current = self.last;
        let mut own = None;
        let mut end = self.text.len();
        for (at, c) in self.text.char_indices() {
            let next = class_after(current, c);
            if at >= MAX_RUN_BYTES || own.is_some_and(|own| own != next) {
                end = at;
                break;
            }
            (own, current) = (Some(next), Some(next));
        }
        let (run, rest) = self.text.split_at(end);
        (self.text, self.last) = (rest, own);
        if own? == RunClass::Separate {
            self.hard_rest = run;
            return self.next_hard_part();
        }
        Some((own?, run))
    }
}

/// Returns the class of a character after a run of the class `before`.
fn class_after(before: Option<RunClass>, c: char) -> RunClass {
    let own = class_of_char(c);
    if own == RunClass::Word && before != Some(RunClass::Word) && is_stray_mark(c) {
        RunClass::StrayMark
    } else {
        own
    }
}

fn part_kind(c: char) -> PartKind {
    if is_like_punctuation(c) {
        PartKind::Punctuation
    } else if is_border_digit(c) {
        PartKind::Number
    } else {
        PartKind::Letter
    }
}
