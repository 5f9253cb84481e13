//! A text as runs of characters of one class.

use super::class::{Class, class, is_border_digit, is_like_punctuation, is_selector, is_stray};

/// A longer run is taken for several, so that no text needs memory in proportion to its longest word: a token or two too many.
const MAX_RUN_BYTES: usize = 64 * 1024;

/// A run, and what it is.
pub(super) type Run<'a> = (Class, &'a str);

/// Which characters of a hard run belong together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Punctuation,
    Number,
    Letter,
}

/// The runs of one class, in their order; hard ones in their parts.
pub(super) struct Runs<'a> {
    text: &'a str,
    /// The class of the run that ended last.
    last: Option<Class>,
    /// What is left of a hard run.
    hard: &'a str,
}

impl<'a> Runs<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, last: None, hard: "" }
    }

    /// The next part of a hard run.
    fn part(&mut self) -> Option<Run<'a>> {
        let own = kind(self.hard.chars().next()?);
        // A selector rides what it selects a variation of.
        let end = self.hard.char_indices().find(|(at, c)| *at > 0 && kind(*c) != own && !is_selector(*c));
        let (part, rest) = self.hard.split_at(end.map_or(self.hard.len(), |(at, _)| at));
        self.hard = rest;
        Some((Class::Hard, part))
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        if let Some(part) = self.part() {
            return Some(part);
        }
        let mut current = self.last;
        let mut own = None;
        let mut end = self.text.len();
        for (at, c) in self.text.char_indices() {
            let next = class_behind(current, c);
            if at >= MAX_RUN_BYTES || own.is_some_and(|own| own != next) {
                end = at;
                break;
            }
            (own, current) = (Some(next), Some(next));
        }
        let (run, rest) = self.text.split_at(end);
        (self.text, self.last) = (rest, own);
        if own? == Class::Hard {
            self.hard = run;
            return self.part();
        }
        Some((own?, run))
    }
}

/// The class of a character behind one of another.
fn class_behind(before: Option<Class>, c: char) -> Class {
    let own = class(c);
    if own == Class::Word && before != Some(Class::Word) && is_stray(c) { Class::StrayMark } else { own }
}

fn kind(c: char) -> Kind {
    if is_like_punctuation(c) {
        Kind::Punctuation
    } else if is_border_digit(c) {
        Kind::Number
    } else {
        Kind::Letter
    }
}
