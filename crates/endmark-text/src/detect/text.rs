//! Text without a grammar: only a UTF-8 character can be cut for certain.

use serde::{Deserialize, Serialize};

use super::settled_tail::SettledTail;
use super::utf8::{Utf8, Utf8Step};
use crate::{Hint, InToken, OpenStack, Truncation, Verdict};

/// The machine for text without a grammar.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TextMachine {
    /// Bytes seen.
    position: usize,
    /// Where the complete characters end.
    settled: usize,
    /// The character that is not complete.
    pending: Option<Utf8>,
    /// The first byte that is no UTF-8.
    malformed: Option<usize>,
    /// Whether anything but whitespace was seen.
    has_text: bool,
    tail: SettledTail,
}

impl TextMachine {
    /// Takes the text's next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let base = self.position;
        self.position += chunk.len();
        if self.malformed.is_some() {
            return;
        }
        self.has_text |= !chunk.trim_ascii().is_empty();
        let mut at = 0;
        while let (Some(character), Some(&byte)) = (self.pending, chunk.get(at)) {
            at += 1;
            match character.next(byte) {
                Utf8Step::Complete => self.pending = None,
                Utf8Step::Incomplete(next) => self.pending = Some(next),
                Utf8Step::Invalid => {
                    self.malformed = Some(base + at - 1);
                    return;
                }
            }
        }
        if self.pending.is_none() {
            self.take_characters(&chunk[at..], base + at);
        }
        self.tail.advance(chunk, base, 0, self.settled);
    }

    /// Takes bytes that begin between two characters, at `base` in the text.
    fn take_characters(&mut self, bytes: &[u8], base: usize) {
        let Err(error) = std::str::from_utf8(bytes) else {
            self.settled = base + bytes.len();
            return;
        };
        self.settled = base + error.valid_up_to();
        let mut index = error.valid_up_to();
        self.pending = Utf8::begin(bytes[index]);
        while let Some(character) = self.pending {
            index += 1;
            match bytes.get(index).map(|&byte| character.next(byte)) {
                None => return,
                Some(Utf8Step::Incomplete(next)) => self.pending = Some(next),
                Some(Utf8Step::Complete | Utf8Step::Invalid) => break,
            }
        }
        self.malformed = Some(base + index);
    }

    /// Whether it is a state that can be reached, as far as anything rests on it.
    pub(super) fn is_consistent(&self) -> bool {
        self.position <= super::MAX_POSITION
            && self.tail.is_consistent(self.position, self.settled)
            && self.pending.is_none_or(Utf8::is_consistent)
            && self.malformed.is_none_or(|index| index < self.position)
    }

    /// Bytes seen.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Whether it is no UTF-8.
    pub(super) fn is_malformed(&self) -> bool {
        self.malformed.is_some()
    }

    /// Whether the text, should it end here, is whole as far as can be told.
    pub(super) fn is_whole(&self) -> bool {
        self.malformed.is_none() && self.pending.is_none() && self.has_text
    }

    /// What the text is, should it end here.
    pub(super) fn verdict(&self) -> Verdict {
        match self.malformed {
            Some(index) => Verdict::Malformed { index, reason: "invalid UTF-8".to_owned() },
            None if self.is_whole() => Verdict::Whole,
            None => Verdict::Truncated(self.truncation()),
        }
    }

    /// The last characters of the complete ones between these offsets, of which the last ones are kept.
    pub(super) fn token(&self, start: usize, end: usize) -> String {
        self.tail.settled_between(start, end)
    }

    /// Where the text is cut, taken as one that is.
    pub(super) fn truncation(&self) -> Truncation {
        let token = self.tail.settled_from(0);
        Truncation {
            truncation_index: if self.has_text { self.settled } else { 0 },
            balanced_index: 0,
            last_valid_token: if token.is_empty() { self.tail.unsettled() } else { token },
            open: OpenStack::default(),
            in_token: self.pending.map(|_| InToken::Utf8),
        }
    }

    /// Whether the text seems to stop in the middle of a sentence.
    pub(super) fn hint(&self) -> Option<Hint> {
        stops_in_mid_sentence(&self.tail.settled_from(0)).then_some(Hint::MidSentence)
    }
}

/// Whether prose that ends in `tail` seems to stop in the middle of a sentence. Short answers, list
/// items, headings and table rows need no full stop, and a line that was ended is taken as ended.
fn stops_in_mid_sentence(tail: &str) -> bool {
    let line = tail.rsplit('\n').next().unwrap_or_default();
    let Some(last) = line.trim_end().chars().next_back() else { return false };
    let is_prose =
        line.trim_start().starts_with(|first: char| first.is_alphabetic() || "\"'“‘(*_".contains(first));
    match last {
        ',' | ';' | '(' | '，' | '、' | '；' => true,
        _ if !last.is_alphanumeric() => false,
        _ => is_prose && words(line) >= 4,
    }
}

/// How many words `text` has; a letter of a script without spaces counts as one.
fn words(text: &str) -> usize {
    let without_spaces = |letter: &char| matches!(letter, '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}');
    text.split_whitespace().count() + text.chars().filter(without_spaces).count()
}

#[cfg(test)]
mod tests;
