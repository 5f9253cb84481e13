//! Guesses what a text is: JSON, also within Markdown fences and prose; otherwise text.

pub(super) mod markdown;

use markdown::{Markdown, Place};

use super::json::{JsonMachine, Values};
use super::text::TextMachine;
use crate::{Format, Hint, Verdict};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The machine that guesses. It does not take for JSON what may as well be prose (PC-1):
///
/// - what begins with `{` or `[` counts at once where nothing stands before it, or in a fence that says
///   `json`, as long as it follows the grammar;
/// - anywhere else it counts from an object's first colon on, and `[1]` before prose not at all;
/// - what breaks the grammar is prose, unless it counted, had such a colon and nothing stands before it:
///   that is malformed.
#[derive(Debug, Clone, Default)]
pub(super) struct AutoMachine {
    /// The whole text, whatever else it may be.
    text: TextMachine,
    markdown: Markdown,
    /// How many bytes of a byte order mark the text begins with.
    mark: usize,
    /// The part that the text ends in, if it may be JSON.
    candidate: Option<Candidate>,
    /// What was found before that part.
    found: Option<Found>,
    /// A text that was JSON up to there.
    broken: Option<Verdict>,
}

/// JSON that was found whole.
#[derive(Debug, Clone, Copy)]
struct Found {
    end: usize,
    /// How many values stand one after the other.
    values: usize,
}

/// A part of the text that may be JSON: one value, and whitespace after it.
#[derive(Debug, Clone)]
struct Candidate {
    machine: JsonMachine,
    start: usize,
    bracket: u8,
    place: Place,
    /// How many values stand right before it.
    values_before: usize,
    /// Whether it counts without an object's colon.
    trusted: bool,
    /// Whether its last line is blank.
    blank_line: bool,
}

impl Candidate {
    fn new(start: usize, bracket: u8, place: Place) -> Self {
        let machine = JsonMachine::new(Values::One);
        let trusted = place != Place::Prose;
        Self { machine, start, bracket, place, values_before: 0, trusted, blank_line: false }
    }

    /// A value right after this one, at `start`.
    fn next(&self, start: usize, bracket: u8) -> Self {
        let values_before = self.values_before + 1;
        Self { values_before, trusted: self.bracket == bracket, ..Self::new(start, bracket, self.place) }
    }

    /// Takes bytes; answers how many of them may belong to it.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let base = self.machine.position();
        self.machine.push(bytes);
        let taken = self.machine.malformed().map_or(bytes.len(), |(index, _)| index - base);
        if let Some(&byte) = bytes[..taken].iter().rfind(|byte| !matches!(byte, b' ' | b'\t' | b'\r')) {
            self.blank_line = byte == b'\n';
        }
        taken
    }

    /// Whether it is taken for JSON as long as it follows the grammar.
    fn counts(&self) -> bool {
        self.trusted || self.machine.has_member()
    }

    /// Whether it is taken for JSON, whole as it is, when `byte` follows.
    fn counts_before(&self, byte: u8) -> bool {
        self.machine.has_member()
            || matches!(self.place, Place::FirstFence | Place::JsonFence)
            || self.trusted && matches!(byte, b'{' | b'[')
    }

    /// Whether nothing stands before it but values of its kind.
    fn is_first(&self) -> bool {
        matches!(self.place, Place::First | Place::FirstFence)
    }
}

impl AutoMachine {
    /// Takes the text's next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let base = self.text.position();
        self.text.push(chunk);
        let mut at = self.byte_order_mark(chunk, base);
        while at < chunk.len() && self.broken.is_none() {
            if let Some(mut candidate) = self.candidate.take() {
                at += candidate.push(&chunk[at..]);
                match chunk.get(at) {
                    Some(&byte) => self.end_candidate(&candidate, byte, base + at),
                    None => self.candidate = Some(candidate),
                }
            } else {
                let (taken, place) = self.markdown.push(&chunk[at..]);
                at += taken;
                self.candidate = place.map(|place| Candidate::new(base + at, chunk[at], place));
            }
        }
    }

    /// How many bytes at the beginning of `chunk`, itself at `base`, belong to a byte order mark.
    fn byte_order_mark(&mut self, chunk: &[u8], base: usize) -> usize {
        if self.mark < base {
            return 0;
        }
        let missing = BYTE_ORDER_MARK.get(base..).unwrap_or_default();
        let taken = chunk.iter().zip(missing).take_while(|(byte, expected)| byte == expected).count();
        self.mark += taken;
        taken
    }

    /// Ends a candidate before `byte`, which does not belong to it.
    fn end_candidate(&mut self, candidate: &Candidate, byte: u8, offset: usize) {
        match candidate.machine.value_end() {
            Some(end) => {
                if candidate.counts_before(byte) {
                    self.found =
                        Some(Found { end: candidate.start + end, values: candidate.values_before + 1 });
                }
                if matches!(byte, b'{' | b'[') {
                    self.candidate = Some(candidate.next(offset, byte));
                }
            }
            None if candidate.is_first() && candidate.machine.has_member() => {
                let reason =
                    candidate.machine.malformed().map_or_else(String::new, |(_, reason)| reason.to_owned());
                self.found = Some(Found { end: 0, values: candidate.values_before + 1 });
                self.broken = Some(Verdict::Malformed { index: offset, reason });
            }
            None => {}
        }
        self.markdown.resume(candidate.blank_line);
    }

    /// The part that the text ends in, if it is taken for JSON.
    fn ends_in(&self) -> Option<&Candidate> {
        self.candidate.as_ref().filter(|candidate| candidate.counts())
    }

    /// Bytes seen.
    pub(super) fn position(&self) -> usize {
        self.text.position()
    }

    /// Whether no continuation could make it whole.
    pub(super) fn is_malformed(&self) -> bool {
        self.broken.is_some() || self.text.is_malformed()
    }

    /// Whether the text, should it end here, is whole as far as can be told.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_malformed()
            && self.text.is_whole()
            && self.ends_in().is_none_or(|candidate| candidate.machine.is_whole())
    }

    /// What the text is taken for.
    pub(super) fn detected(&self) -> Format {
        let values = match (self.ends_in(), self.found) {
            (Some(candidate), _) => candidate.values_before + 1,
            (None, Some(found)) => found.values,
            (None, None) => return Format::Text,
        };
        if values > 1 { Format::Jsonl } else { Format::Json }
    }

    /// Whether prose seems to stop in the middle of a sentence.
    pub(super) fn hint(&self) -> Option<Hint> {
        let is_prose = self.ends_in().is_none() && !self.is_malformed() && !self.markdown.in_fence();
        if is_prose { self.text.hint() } else { None }
    }

    /// What the text is, should it end here.
    pub(super) fn verdict(&self) -> Verdict {
        if let Some(broken) = &self.broken {
            let text = self.text.verdict();
            // Half a byte order mark is a fault of the text before the JSON that stands behind it.
            return match (&text, broken) {
                (Verdict::Malformed { index, .. }, Verdict::Malformed { index: later, .. })
                    if index < later =>
                {
                    text
                }
                _ => broken.clone(),
            };
        }
        match self.ends_in().map(|candidate| (candidate.start, candidate.machine.verdict())) {
            Some((start, Verdict::Truncated(mut truncation))) if !self.text.is_malformed() => {
                truncation.truncation_index += start;
                truncation.balanced_index = self.found.map_or(0, |found| found.end);
                Verdict::Truncated(truncation)
            }
            _ => self.text.verdict(),
        }
    }
}

#[cfg(test)]
mod tests;
