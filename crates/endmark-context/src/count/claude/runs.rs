//! Splits a text into runs of characters of one class.

use super::class::{Class, ascii_class, class, is_border_digit, is_like_punctuation, is_selector, is_stray};

/// Longer runs are split, so that memory does not grow with the longest word. This adds a token or two.
const MAX_RUN_BYTES: usize = 64 * 1024;

/// A run with its class.
pub(super) type Run<'a> = (Class, &'a str);

/// Kinds of characters that form parts of a hard run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Punctuation,
    Number,
    Letter,
}

/// Iterates over the runs of one class, in order. Hard runs are split into parts.
pub(super) struct Runs<'a> {
    text: &'a str,
    /// The class of the previous run.
    last: Option<Class>,
    /// The rest of a hard run.
    hard: &'a str,
}

impl<'a> Runs<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, last: None, hard: "" }
    }

    /// Returns the next run if ASCII alone determines it, as it does in nearly all text.
    fn next_ascii_run(&mut self) -> Option<Run<'a>> {
        let bytes = self.text.as_bytes();
        let own = ascii_class(*bytes.first()?)?;
        let is_own = |byte: &&u8| ascii_class(**byte) == Some(own);
        let end = bytes.iter().take(MAX_RUN_BYTES).take_while(is_own).count();
        // Another character could belong to the run.
        if bytes.get(end).is_some_and(|next| !next.is_ascii()) {
            return None;
        }
        let (run, rest) = self.text.split_at(end);
        (self.text, self.last) = (rest, Some(own));
        Some((own, run))
    }

    /// Returns the next part of a hard run.
    fn next_part(&mut self) -> Option<Run<'a>> {
        let own = kind(self.hard.chars().next()?);
        // A variation selector belongs to the character before it.
        let end = self.hard.char_indices().find(|(at, c)| *at > 0 && kind(*c) != own && !is_selector(*c));
        let (part, rest) = self.hard.split_at(end.map_or(self.hard.len(), |(at, _)| at));
        self.hard = rest;
        Some((Class::Hard, part))
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        if let Some(part) = self.next_part() {
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
        if own? == Class::Hard {
            self.hard = run;
            return self.next_part();
        }
        Some((own?, run))
    }
}

/// Returns the class of a character that follows another class.
fn class_after(before: Option<Class>, c: char) -> Class {
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
