//! The stream that is split into pieces: runs, with separate characters for word boundaries and capitals.
//!
//! The stream is counted while it is written, so it never exists as a whole.

use std::borrow::Cow;

use super::Generation;
use super::class::{
    CAPITAL, CAPITALS, Class, END, WORD_START, escape_mark, is_border_digit, is_caseless_letter,
    is_digit_run, is_its_own_lower, is_like_punctuation, is_lower, is_own_mark, is_selector, is_upper, lower,
};
use super::runs::{Run, Runs};
use super::tally::Tally;

/// Suffixes that an apostrophe joins to the word before it.
const CONTRACTIONS: [&str; 7] = ["s", "t", "d", "m", "ll", "re", "ve"];

/// How many bytes of the stream are written before they are counted.
const COUNT_BATCH_BYTES: usize = 4 << 10;

/// Counts the tokens of a normalised text without trailing newlines. `begins_with_space` is true if the text began
/// with a space before it was normalised.
pub(super) fn tokens(
    text: &str,
    generation: Generation,
    begins_with_space: bool,
    is_stopped: fn() -> bool,
) -> u64 {
    let frames = generation.frame_ends_in_boundary();
    let is_any_taken = !text.is_ascii() && text.contains(is_own_mark);
    let text = if is_any_taken { text.chars().map(escape_mark).collect() } else { Cow::Borrowed(text) };
    // A boundary includes one space.
    let is_absorbed = frames && begins_with_space && text.starts_with(' ') && !text.starts_with("  ");
    let text = if is_absorbed { &text[1..] } else { &*text };
    let mut runs = Runs::new(text);
    let mut stream = Stream {
        before: [None; 2],
        current_run: runs.next(),
        next: runs.next(),
        frames,
        least_capitals: generation.least_capitals(),
        written: String::new(),
        ends: [0; 2],
        tally: Tally::new(generation.vocabulary().get(), is_stopped),
    };
    if frames && !stream.first_has_boundary() {
        stream.written.push(if stream.opens_word() { ' ' } else { WORD_START });
    }
    while let Some(own) = stream.current_run.filter(|_| !is_stopped()) {
        stream.write(own);
        stream.count_settled();
        stream.before = [stream.before[1], stream.current_run];
        (stream.current_run, stream.next) = (stream.next, runs.next());
    }
    stream.tally.add(&stream.written);
    stream.tally.tokens()
}

struct Stream<'a> {
    /// The two previous runs.
    before: [Option<Run<'a>>; 2],
    current_run: Option<Run<'a>>,
    next: Option<Run<'a>>,
    frames: bool,
    least_capitals: Option<usize>,
    /// Written text that is still to be counted.
    written: String,
    /// The ends of its last two words.
    ends: [usize; 2],
    tally: Tally,
}

impl Stream<'_> {
    /// Whether the first run has the boundary of the frame.
    fn first_has_boundary(&self) -> bool {
        let Some((class, body)) = self.current_run else { return false };
        if self.opens_word() {
            return false;
        }
        match class {
            Class::Word | Class::Punctuation | Class::StrayMark => true,
            Class::Space => body.starts_with(' '),
            Class::Digit | Class::Hard => {
                takes_begin(body) || (is_digit_run(body) && body.chars().next().is_some_and(is_border_digit))
            }
        }
    }

    /// Whether the current run is an apostrophe that begins the next word.
    fn opens_word(&self) -> bool {
        self.current_run.is_some_and(|(_, body)| body == "'")
            && self.next.is_some_and(|(class, _)| matches!(class, Class::Word | Class::StrayMark))
    }

    /// Whether an apostrophe joins a word to the previous word.
    fn is_contraction(&self, word: &str) -> bool {
        let [before, apostrophe] = self.before;
        if !CONTRACTIONS.contains(&word) || apostrophe != Some((Class::Punctuation, "'")) {
            return false;
        }
        before.is_none_or(|(class, body)| {
            let ends_in_border_digit = || {
                matches!(class, Class::Digit | Class::Hard)
                    && is_digit_run(body)
                    && body.chars().next_back().is_some_and(is_border_digit)
            };
            class != Class::Punctuation && !takes_end(body) && !ends_in_border_digit()
        })
    }

    /// Whether the current run follows a space or the boundary of the frame.
    fn follows_space(&self) -> bool {
        self.before[1].map_or(self.frames, |(class, body)| class == Class::Space && body.ends_with(' '))
    }

    /// Whether a single space follows the current run.
    fn is_before_space(&self) -> bool {
        self.next.is_some_and(|(class, body)| {
            class == Class::Space && body.starts_with(' ') && !body.starts_with("  ")
        })
    }

    /// Writes a run with its boundaries.
    fn write(&mut self, (class, body): Run<'_>) {
        match class {
            Class::Word => {
                let is_fused = self.before[1].is_some_and(|(class, _)| class == Class::StrayMark);
                let (mark, word) =
                    if is_fused { (None, Cow::Borrowed(body)) } else { mark_case(body, self.least_capitals) };
                let begins = !is_fused && !self.is_contraction(body);
                self.open(mark, begins);
                self.written.push_str(&word);
                self.close();
            }
            Class::StrayMark => {
                self.open(None, true);
                self.written.push_str(body);
                if self.next.is_none_or(|(class, _)| class != Class::Word) {
                    self.close();
                }
            }
            Class::Punctuation | Class::Hard
                if class == Class::Punctuation || takes_begin(body) || takes_end(body) =>
            {
                let is_punctuation = class == Class::Punctuation;
                let begins =
                    self.follows_space() && !self.opens_word() && (is_punctuation || takes_begin(body));
                let ends = self.is_before_space() && (is_punctuation || takes_end(body));
                self.write_bordered(body, begins, ends);
            }
            Class::Digit | Class::Hard if is_digit_run(body) => {
                let begins = body.chars().next().is_some_and(is_border_digit) && self.follows_space();
                let ends = body.chars().next_back().is_some_and(is_border_digit) && self.is_before_space();
                self.write_bordered(body, begins, ends);
            }
            Class::Digit | Class::Punctuation | Class::Hard | Class::Space => self.written.push_str(body),
        }
    }

    /// Writes the end of a word.
    fn close(&mut self) {
        self.written.push(END);
        self.ends = [self.ends[1], self.written.len()];
    }

    /// Counts the written text up to its second-last word, because the beginning of a word can still change the rest.
    fn count_settled(&mut self) {
        let [settled, last] = self.ends;
        if settled < COUNT_BATCH_BYTES {
            return;
        }
        self.tally.add(&self.written[..settled]);
        self.written.drain(..settled);
        self.ends = [0, last - settled];
    }

    fn write_bordered(&mut self, body: &str, begins: bool, ends: bool) {
        self.open(None, begins);
        self.written.push_str(body);
        if ends {
            self.close();
        }
    }

    /// Writes the beginning of a word. Between two words, the boundaries include a single space.
    fn open(&mut self, mark: Option<char>, begins: bool) {
        if begins && self.written.ends_with([' ']) {
            let before = &self.written[..self.written.len() - 1];
            if before.strip_suffix(END).is_some_and(|before| !before.is_empty()) {
                self.written.pop();
            }
        }
        self.written.extend(mark);
        if begins {
            self.written.push(WORD_START);
        }
    }
}

fn takes_begin(body: &str) -> bool {
    body.chars().next().is_some_and(|c| is_selector(c) || is_like_punctuation(c))
}

fn takes_end(body: &str) -> bool {
    body.chars().next_back().is_some_and(|c| is_selector(c) || is_like_punctuation(c))
}

/// Returns a word in lower case with its mark, if a mark can describe its capitals. Otherwise returns the word
/// unchanged.
fn mark_case(word: &str, least_capitals: Option<usize>) -> (Option<char>, Cow<'_, str>) {
    if word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return mark_ascii_case(word, least_capitals);
    }
    let lowered = |text: &str| {
        let mut into = String::with_capacity(text.len());
        text.chars().for_each(|c| lower(c, &mut into));
        into
    };
    let as_it_is = || (None, Cow::Borrowed(word));
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
        return (Some(CAPITAL), body.into());
    }
    let is_upper_alone = || {
        let mut cased = word.chars().filter(|c| is_upper(*c) || is_lower(*c)).peekable();
        cased.peek().is_some() && cased.all(is_upper)
    };
    if least_capitals.is_some_and(|least| word.chars().count() >= least)
        && is_upper_alone()
        && !word.chars().any(is_caseless_letter)
    {
        return (Some(CAPITALS), lowered(word).replace('ς', "σ").into());
    }
    if !is_upper(first) || is_its_own_lower(first) || rest.chars().any(is_upper) {
        return as_it_is();
    }
    (Some(CAPITAL), lowered(word).into())
}

/// The same for a word of ASCII letters, which nearly all words are.
fn mark_ascii_case(word: &str, least_capitals: Option<usize>) -> (Option<char>, Cow<'_, str>) {
    let capitals = word.bytes().filter(u8::is_ascii_uppercase).count();
    let is_capitals = capitals == word.len() && least_capitals.is_some_and(|least| capitals >= least.max(1));
    let is_title = capitals == 1 && word.starts_with(|first: char| first.is_ascii_uppercase());
    let mark = if is_capitals { CAPITALS } else { CAPITAL };
    if is_capitals || is_title {
        (Some(mark), Cow::Owned(word.to_ascii_lowercase()))
    } else {
        (None, Cow::Borrowed(word))
    }
}
