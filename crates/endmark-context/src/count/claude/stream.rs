//! Writes the stream that is divided into vocabulary pieces: the runs of a text, with separate characters
//! that mark word boundaries and capitals.
//!
//! The stream is counted while it is written, so it is never in memory as a whole.

use std::borrow::Cow;

use super::TokenizerVersion;
use super::class::{
    CAPITAL, CAPITALS, RunClass, WORD_END, WORD_START, escape_mark, is_border_digit, is_caseless_letter,
    is_digit_run, is_its_own_lower, is_like_punctuation, is_lower, is_own_mark, is_selector, is_upper,
    push_lowercase,
};
use super::runs::{ClassRun, ClassRuns};
use super::tally::StreamTally;

/// Suffixes that are joined to the previous word by an apostrophe.
const CONTRACTIONS: [&str; 7] = ["s", "t", "d", "m", "ll", "re", "ve"];

/// The stream is counted in batches of about this many bytes.
const COUNT_BATCH_BYTES: usize = 4 << 10;

/// Returns the number of tokens in a normalised text without trailing newlines. `begins_with_space` states
/// whether the text began with a space before it was normalised.
pub(super) fn count_tokens(
    text: &str,
    generation: TokenizerVersion,
    begins_with_space: bool,
    is_stopped: fn() -> bool,
) -> u64 {
    let frames = generation.frame_ends_in_boundary();
    let is_any_taken = !text.is_ascii() && text.contains(is_own_mark);
    let text = if is_any_taken { text.chars().map(escape_mark).collect() } else { Cow::Borrowed(text) };
    // A word boundary includes one space.
    let is_absorbed = frames && begins_with_space && text.starts_with(' ') && !text.starts_with("  ");
    let text = if is_absorbed { &text[1..] } else { &*text };
    let mut runs = ClassRuns::new(text);
    let mut stream = TokenStream {
        before: [None; 2],
        current_run: runs.next(),
        next: runs.next(),
        has_frame_boundary: frames,
        least_capitals: generation.least_capitals(),
        written: String::new(),
        ends: [0; 2],
        tally: StreamTally::new(generation.vocabulary().get(), is_stopped),
    };
    if frames && !stream.first_run_has_boundary() {
        stream.written.push(if stream.opens_word() { ' ' } else { WORD_START });
    }
    while let Some(own) = stream.current_run.filter(|_| !is_stopped()) {
        stream.write_run(own);
        stream.count_finished_words();
        stream.before = [stream.before[1], stream.current_run];
        (stream.current_run, stream.next) = (stream.next, runs.next());
    }
    stream.tally.add(&stream.written);
    stream.tally.tokens()
}

struct TokenStream<'a> {
    /// The last two runs before the current one.
    before: [Option<ClassRun<'a>>; 2],
    current_run: Option<ClassRun<'a>>,
    next: Option<ClassRun<'a>>,
    has_frame_boundary: bool,
    least_capitals: Option<usize>,
    /// The part of the stream that is written but not counted yet.
    written: String,
    /// The ends of the last two words in `written`.
    ends: [usize; 2],
    tally: StreamTally,
}

impl TokenStream<'_> {
    /// Whether the first run takes over the word boundary at the end of the frame.
    fn first_run_has_boundary(&self) -> bool {
        let Some((class, body)) = self.current_run else { return false };
        if self.opens_word() {
            return false;
        }
        match class {
            RunClass::Word | RunClass::Punctuation | RunClass::StrayMark => true,
            RunClass::Space => body.starts_with(' '),
            RunClass::Digit | RunClass::Separate => {
                has_boundary_before(body)
                    || (is_digit_run(body) && body.chars().next().is_some_and(is_border_digit))
            }
        }
    }

    /// Whether the current run is an apostrophe at the beginning of a word.
    fn opens_word(&self) -> bool {
        self.current_run.is_some_and(|(_, body)| body == "'")
            && self.next.is_some_and(|(class, _)| matches!(class, RunClass::Word | RunClass::StrayMark))
    }

    /// Whether the word is a suffix that an apostrophe joins to the previous word.
    fn is_contraction(&self, word: &str) -> bool {
        let [before, apostrophe] = self.before;
        if !CONTRACTIONS.contains(&word) || apostrophe != Some((RunClass::Punctuation, "'")) {
            return false;
        }
        before.is_none_or(|(class, body)| {
            let ends_in_border_digit = || {
                matches!(class, RunClass::Digit | RunClass::Separate)
                    && is_digit_run(body)
                    && body.chars().next_back().is_some_and(is_border_digit)
            };
            class != RunClass::Punctuation && !has_boundary_after(body) && !ends_in_border_digit()
        })
    }

    /// Whether the current run follows a space, or the word boundary of the frame.
    fn follows_space(&self) -> bool {
        self.before[1]
            .map_or(self.has_frame_boundary, |(class, body)| class == RunClass::Space && body.ends_with(' '))
    }

    /// Whether exactly one space follows the current run.
    fn is_before_space(&self) -> bool {
        self.next.is_some_and(|(class, body)| {
            class == RunClass::Space && body.starts_with(' ') && !body.starts_with("  ")
        })
    }

    /// Writes a run with its word boundaries.
    fn write_run(&mut self, (class, body): ClassRun<'_>) {
        match class {
            RunClass::Word => {
                let is_fused = self.before[1].is_some_and(|(class, _)| class == RunClass::StrayMark);
                let (mark, word) =
                    if is_fused { (None, Cow::Borrowed(body)) } else { mark_case(body, self.least_capitals) };
                let begins = !is_fused && !self.is_contraction(body);
                self.open_word(mark, begins);
                self.written.push_str(&word);
                self.close_word();
            }
            RunClass::StrayMark => {
                self.open_word(None, true);
                self.written.push_str(body);
                if self.next.is_none_or(|(class, _)| class != RunClass::Word) {
                    self.close_word();
                }
            }
            RunClass::Punctuation | RunClass::Separate
                if class == RunClass::Punctuation
                    || has_boundary_before(body)
                    || has_boundary_after(body) =>
            {
                let is_punctuation = class == RunClass::Punctuation;
                let begins = self.follows_space()
                    && !self.opens_word()
                    && (is_punctuation || has_boundary_before(body));
                let ends = self.is_before_space() && (is_punctuation || has_boundary_after(body));
                self.write_bordered(body, begins, ends);
            }
            RunClass::Digit | RunClass::Separate if is_digit_run(body) => {
                let begins = body.chars().next().is_some_and(is_border_digit) && self.follows_space();
                let ends = body.chars().next_back().is_some_and(is_border_digit) && self.is_before_space();
                self.write_bordered(body, begins, ends);
            }
            RunClass::Digit | RunClass::Punctuation | RunClass::Separate | RunClass::Space => {
                self.written.push_str(body);
            }
        }
    }

    /// Writes the end of a word.
    fn close_word(&mut self) {
        self.written.push(WORD_END);
        self.ends = [self.ends[1], self.written.len()];
    }

    /// Counts the written text up to the second-last word. The beginning of the next word can still change
    /// the rest.
    fn count_finished_words(&mut self) {
        let [settled, last] = self.ends;
        if settled < COUNT_BATCH_BYTES {
            return;
        }
        self.tally.add(&self.written[..settled]);
        self.written.drain(..settled);
        self.ends = [0, last - settled];
    }

    fn write_bordered(&mut self, body: &str, begins: bool, ends: bool) {
        self.open_word(None, begins);
        self.written.push_str(body);
        if ends {
            self.close_word();
        }
    }

    /// Writes the beginning of a word. If another word ends before a single space, the boundaries include
    /// that space.
    fn open_word(&mut self, mark: Option<char>, begins: bool) {
        if begins && self.written.ends_with([' ']) {
            let before = &self.written[..self.written.len() - 1];
            if before.strip_suffix(WORD_END).is_some_and(|before| !before.is_empty()) {
                self.written.pop();
            }
        }
        self.written.extend(mark);
        if begins {
            self.written.push(WORD_START);
        }
    }
}

fn has_boundary_before(body: &str) -> bool {
    body.chars().next().is_some_and(|c| is_selector(c) || is_like_punctuation(c))
}

fn has_boundary_after(body: &str) -> bool {
    body.chars().next_back().is_some_and(|c| is_selector(c) || is_like_punctuation(c))
}

/// Returns a word in lower case with a mark for its capitals. Returns the word unchanged if no mark can
/// describe its capitals.
fn mark_case(word: &str, least_capitals: Option<usize>) -> (Option<char>, Cow<'_, str>) {
    if word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return mark_ascii_case(word, least_capitals);
    }
    let lowered = |text: &str| {
        let mut into = String::with_capacity(text.len());
        text.chars().for_each(|c| push_lowercase(c, &mut into));
        into
    };
    let unchanged = || (None, Cow::Borrowed(word));
    let Some(first) = word.chars().next() else { return unchanged() };
    let rest = &word[first.len_utf8()..];
    if word.contains('ẞ') {
        return unchanged();
    }
    if word.contains('İ') {
        let is_title = is_upper(first) && first != 'İ' && !rest.chars().any(|c| c != 'İ' && is_upper(c));
        if !is_title {
            return unchanged();
        }
        let mut body = lowered(&word[..first.len_utf8()]);
        for c in rest.chars() {
            if c == 'İ' { body.push(c) } else { push_lowercase(c, &mut body) }
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
        return unchanged();
    }
    (Some(CAPITAL), lowered(word).into())
}

/// Like [`mark_case`], for words of ASCII letters. Nearly all words are of this kind.
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
