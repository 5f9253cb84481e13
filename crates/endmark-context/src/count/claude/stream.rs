//! The stream that is tiled: runs with their word boundaries and capitals as characters of their own.

use super::Generation;
use super::class::{
    BEGIN, CAPITAL, CAPITALS, Class, END, escaped, is_border_digit, is_caseless_letter, is_its_own_lower,
    is_like_punctuation, is_lower, is_of_digits, is_selector, is_upper, lower,
};
use super::runs::{Run, runs};

/// What an apostrophe binds to the word before it.
const CONTRACTIONS: [&str; 7] = ["s", "t", "d", "m", "ll", "re", "ve"];

/// The stream of a normalised text without newlines at its end. `begins_with_space` says whether the text did so before it
/// was normalised.
pub(super) fn marked(text: &str, generation: Generation, begins_with_space: bool) -> String {
    let frames = generation.frame_ends_in_boundary();
    let text: String = text.chars().map(escaped).collect();
    // A boundary stands for one space.
    let is_absorbed = frames && begins_with_space && text.starts_with(' ') && !text.starts_with("  ");
    let text = if is_absorbed { &text[1..] } else { &*text };
    let runs = runs(text);
    let mut stream =
        Stream { runs: &runs, frames, least_capitals: generation.least_capitals(), out: String::new() };
    if frames && !stream.first_has_boundary() {
        stream.out.push(if stream.opens_word(0) { ' ' } else { BEGIN });
    }
    for at in 0..runs.len() {
        stream.write(at);
    }
    stream.out
}

struct Stream<'a> {
    runs: &'a [Run<'a>],
    frames: bool,
    least_capitals: Option<usize>,
    out: String,
}

impl Stream<'_> {
    fn run(&self, at: usize) -> Option<Run<'_>> {
        self.runs.get(at).copied()
    }

    /// Whether the boundary at the end of the frame is the first run's own.
    fn first_has_boundary(&self) -> bool {
        let Some((class, body)) = self.run(0) else { return false };
        if self.opens_word(0) {
            return false;
        }
        match class {
            Class::Word | Class::Punctuation | Class::StrayMark => true,
            Class::Space => body.starts_with(' '),
            Class::Digit | Class::Hard => {
                takes_begin(body) || (is_of_digits(body) && body.chars().next().is_some_and(is_border_digit))
            }
        }
    }

    /// Whether a run is an apostrophe that opens the word behind it.
    fn opens_word(&self, at: usize) -> bool {
        self.run(at).is_some_and(|(_, body)| body == "'")
            && self.run(at + 1).is_some_and(|(class, _)| matches!(class, Class::Word | Class::StrayMark))
    }

    /// Whether a word is what an apostrophe binds to the word before it.
    fn is_contraction(&self, at: usize) -> bool {
        let Some((_, body)) = self.run(at).filter(|_| at > 0) else { return false };
        if !CONTRACTIONS.contains(&body) || self.run(at - 1) != Some((Class::Punctuation, "'")) {
            return false;
        }
        let before = at.checked_sub(2).and_then(|before| self.run(before));
        before.is_none_or(|(class, body)| {
            let ends_in_border_digit = || {
                matches!(class, Class::Digit | Class::Hard)
                    && is_of_digits(body)
                    && body.chars().next_back().is_some_and(is_border_digit)
            };
            class != Class::Punctuation && !takes_end(body) && !ends_in_border_digit()
        })
    }

    /// Whether a run begins behind a space, or at the frame's boundary.
    fn is_behind_space(&self, at: usize) -> bool {
        match at.checked_sub(1) {
            None => self.frames,
            Some(before) => {
                self.run(before).is_some_and(|(class, body)| class == Class::Space && body.ends_with(' '))
            }
        }
    }

    /// Whether a run ends before a single space.
    fn is_before_space(&self, at: usize) -> bool {
        self.run(at + 1).is_some_and(|(class, body)| {
            class == Class::Space && body.starts_with(' ') && !body.starts_with("  ")
        })
    }

    /// Writes a run with its boundaries.
    fn write(&mut self, at: usize) {
        let Some(&(class, body)) = self.runs.get(at) else { return };
        match class {
            Class::Word => {
                let is_fused = at > 0 && self.run(at - 1).is_some_and(|(class, _)| class == Class::StrayMark);
                let (mark, word) =
                    if is_fused { (None, body.to_owned()) } else { cased(body, self.least_capitals) };
                let begins = !is_fused && !self.is_contraction(at);
                self.open(mark, begins);
                self.out.push_str(&word);
                self.out.push(END);
            }
            Class::StrayMark => {
                self.open(None, true);
                self.out.push_str(body);
                if self.run(at + 1).is_none_or(|(class, _)| class != Class::Word) {
                    self.out.push(END);
                }
            }
            Class::Punctuation | Class::Hard
                if class == Class::Punctuation || takes_begin(body) || takes_end(body) =>
            {
                let is_punctuation = class == Class::Punctuation;
                let begins =
                    self.is_behind_space(at) && !self.opens_word(at) && (is_punctuation || takes_begin(body));
                let ends = self.is_before_space(at) && (is_punctuation || takes_end(body));
                self.bordered(body, begins, ends);
            }
            Class::Digit | Class::Hard if is_of_digits(body) => {
                let begins = body.chars().next().is_some_and(is_border_digit) && self.is_behind_space(at);
                let ends = body.chars().next_back().is_some_and(is_border_digit) && self.is_before_space(at);
                self.bordered(body, begins, ends);
            }
            Class::Digit | Class::Punctuation | Class::Hard | Class::Space => self.out.push_str(body),
        }
    }

    fn bordered(&mut self, body: &str, begins: bool, ends: bool) {
        self.open(None, begins);
        self.out.push_str(body);
        if ends {
            self.out.push(END);
        }
    }

    /// Writes the beginning of a word. Between two words the boundaries stand for a single space.
    fn open(&mut self, mark: Option<char>, begins: bool) {
        if begins && self.out.ends_with([' ']) {
            let before = &self.out[..self.out.len() - 1];
            if before.strip_suffix(END).is_some_and(|before| !before.is_empty()) {
                self.out.pop();
            }
        }
        self.out.extend(mark);
        if begins {
            self.out.push(BEGIN);
        }
    }
}

fn takes_begin(body: &str) -> bool {
    body.chars().next().is_some_and(|c| is_selector(c) || is_like_punctuation(c))
}

fn takes_end(body: &str) -> bool {
    body.chars().next_back().is_some_and(|c| is_selector(c) || is_like_punctuation(c))
}

/// A word in small letters behind a mark, where a mark says all of its capitals; else as it is.
fn cased(word: &str, least_capitals: Option<usize>) -> (Option<char>, String) {
    let lowered = |text: &str| {
        let mut into = String::with_capacity(text.len());
        text.chars().for_each(|c| lower(c, &mut into));
        into
    };
    let as_it_is = || (None, word.to_owned());
    let Some(first) = word.chars().next() else { return as_it_is() };
    let rest = &word[first.len_utf8()..];
    if word.contains('ẞ') {
        return as_it_is();
    }
    if word.contains('İ') {
        let is_title = is_upper(first) && first != 'İ' && !rest.chars().any(|c| c != 'İ' && is_upper(c));
        if !is_title {
            return as_it_is();
        }
        let mut body = lowered(&word[..first.len_utf8()]);
        for c in rest.chars() {
            if c == 'İ' { body.push(c) } else { lower(c, &mut body) }
        }
        return (Some(CAPITAL), body);
    }
    let is_upper_alone = || {
        let mut cased = word.chars().filter(|c| is_upper(*c) || is_lower(*c)).peekable();
        cased.peek().is_some() && cased.all(is_upper)
    };
    if least_capitals.is_some_and(|least| word.chars().count() >= least)
        && !word.chars().any(is_caseless_letter)
        && is_upper_alone()
    {
        return (Some(CAPITALS), lowered(word).replace('ς', "σ"));
    }
    if is_its_own_lower(first) || !is_upper(first) || rest.chars().any(is_upper) {
        return as_it_is();
    }
    (Some(CAPITAL), lowered(word))
}
