//! A text as runs of characters of one class.

use super::class::{Class, class, is_border_digit, is_like_punctuation, is_selector, is_stray};

/// A run, and what it is.
pub(super) type Run<'a> = (Class, &'a str);

/// Which characters of a hard run belong together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Punctuation,
    Number,
    Letter,
}

/// The longest runs of one class, in their order.
pub(super) fn runs(text: &str) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    let (mut from, mut current) = (0, None);
    for (at, c) in text.char_indices() {
        let own = class(c);
        let is_stray = own == Class::Word && is_stray(c);
        let next = match current {
            Some(Class::Word) => own,
            _ if is_stray => Class::StrayMark,
            _ => own,
        };
        if let Some(before) = current.filter(|before| *before != next) {
            push(&mut runs, before, &text[from..at]);
            from = at;
        }
        current = Some(next);
    }
    if let Some(last) = current {
        push(&mut runs, last, &text[from..]);
    }
    runs
}

/// Adds a run; a hard one in its parts.
fn push<'a>(runs: &mut Vec<Run<'a>>, class: Class, run: &'a str) {
    if class != Class::Hard {
        runs.push((class, run));
        return;
    }
    let (mut from, mut current) = (0, None);
    for (at, c) in run.char_indices() {
        let kind = kind(c);
        // A selector rides what it selects a variation of.
        if current.is_some_and(|before| before != kind && !is_selector(c)) {
            runs.push((class, &run[from..at]));
            (from, current) = (at, Some(kind));
        }
        current = current.or(Some(kind));
    }
    runs.push((class, &run[from..]));
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
