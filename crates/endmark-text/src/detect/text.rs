//! Detects cuts in text without a grammar: only a cut within a UTF-8 character is certain.

use serde::{Deserialize, Serialize};

use super::settled_tail::SettledTail;
use super::utf8::{PartialCharacter, Utf8Step};
use crate::{Hint, InToken, OpenStack, Truncation, Verdict};

/// The state of the detection for text without a grammar.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TextMachine {
    /// Bytes read so far.
    position: usize,
    /// End of the last complete character.
    settled: usize,
    /// The incomplete character at the end of the text, if any.
    pending: Option<PartialCharacter>,
    /// Position of the first byte that is not valid UTF-8.
    malformed: Option<usize>,
    /// Whether a character other than whitespace was read.
    has_text: bool,
    tail: SettledTail,
}

impl TextMachine {
    /// Reads the next bytes of the text.
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
            self.read_characters(&chunk[at..], base + at);
        }
        self.tail.advance(chunk, base, 0, self.settled);
    }

    /// Processes bytes that begin at a character boundary. `base` is their position in the text.
    fn read_characters(&mut self, bytes: &[u8], base: usize) {
        let Err(error) = std::str::from_utf8(bytes) else {
            self.settled = base + bytes.len();
            return;
        };
        self.settled = base + error.valid_up_to();
        let mut index = error.valid_up_to();
        self.pending = PartialCharacter::begin(bytes[index]);
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

    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        self.position <= super::MAX_POSITION
            && self.tail.is_consistent(self.position, self.settled)
            && self.pending.is_none_or(PartialCharacter::is_consistent)
            && self.malformed.is_none_or(|index| index < self.position)
    }

    /// Returns the number of bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Whether the text is not valid UTF-8.
    pub(super) fn is_malformed(&self) -> bool {
        self.malformed.is_some()
    }

    /// Whether the text would be whole if it ended here.
    pub(super) fn is_whole(&self) -> bool {
        self.malformed.is_none() && self.pending.is_none() && self.has_text
    }

    /// Returns the verdict as if the text ended here.
    pub(super) fn verdict(&self) -> Verdict {
        match self.malformed {
            Some(index) => Verdict::Malformed { index, reason: "invalid UTF-8".to_owned() },
            None if self.is_whole() => Verdict::Whole,
            None => Verdict::Truncated(self.truncation()),
        }
    }

    /// Returns the last complete characters between these offsets. The bytes before `end` must still be kept.
    pub(super) fn token(&self, start: usize, end: usize) -> String {
        self.tail.settled_between(start, end)
    }

    /// Returns the truncation of a text that is known to be cut.
    pub(super) fn truncation(&self) -> Truncation {
        let token = self.tail.settled_from(0);
        Truncation {
            truncation_index: if self.has_text { self.settled } else { 0 },
            balanced_index: 0,
            last_valid_token: if token.is_empty() { self.tail.unsettled_tail() } else { token },
            open: OpenStack::default(),
            in_token: self.pending.map(|_| InToken::Utf8),
        }
    }

    /// Returns a hint if the text seems to stop in the middle of a sentence.
    pub(super) fn hint(&self) -> Option<Hint> {
        (self.is_whole() && stops_in_mid_sentence(&self.tail.settled_from(0))).then_some(Hint::MidSentence)
    }
}

/// Minimum number of words of a paragraph that counts as prose. Prose should end in punctuation; short
/// answers, names and titles often do not.
const MIN_PROSE_WORDS: usize = 8;

/// Characters other than letters and digits after which a sentence continues.
const CONTINUING_CHARACTERS: [char; 20] =
    [',', ':', '-', '–', '—', '/', '(', '[', '{', '&', '+', '=', '“', '„', '«', '，', '、', '：', '（', '「'];

/// Whether the text ends in a prose paragraph without closing punctuation. `tail` is the end of the text.
fn stops_in_mid_sentence(tail: &str) -> bool {
    let text = tail.trim_end();
    let paragraph = last_paragraph(text);
    let last_token = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_emoji_name = last_token.len() > 2 && last_token.starts_with(':') && last_token.ends_with(':');
    text.ends_with(|last: char| last.is_alphanumeric() || CONTINUING_CHARACTERS.contains(&last))
        && !last_token.contains("://")
        && !is_emoji_name
        && count_words(paragraph) >= MIN_PROSE_WORDS
        && is_prose(paragraph)
}

/// Returns the lines after the last blank line, heading, fence or table row.
fn last_paragraph(text: &str) -> &str {
    let ends_block = |line: &str| {
        let line = line.trim_start();
        line.is_empty()
            || line.starts_with(['#', '|', '<'])
            || line.starts_with("```")
            || line.starts_with("~~~")
    };
    let (mut start, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        end += line.len();
        if ends_block(line) {
            start = end;
        }
    }
    text.get(start..).unwrap_or_default()
}

/// Whether a paragraph is prose. List items, quotations and fields (`name: value`) are not, and neither is
/// text with many symbols and identifiers, such as code.
fn is_prose(paragraph: &str) -> bool {
    let begins_item = |line: &str| {
        let line = line.trim_start();
        let after_digits = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let is_numbered = after_digits.len() < line.len() && after_digits.starts_with([')', '.']);
        line.starts_with('>') || is_numbered || ["- ", "* ", "+ "].iter().any(|sign| line.starts_with(sign))
    };
    let is_field = |line: &str| line.split_whitespace().next().is_some_and(|word| word.ends_with([':', '=']));
    let has_fields = paragraph.contains('\n') && paragraph.lines().all(is_field);
    let tokens = paragraph.split_whitespace().count();
    let plain_words = paragraph.split_whitespace().filter(|token| is_plain_word(token)).count();
    !paragraph.lines().any(begins_item) && !has_fields && plain_words * 4 >= tokens * 3
}

/// Whether a token is an ordinary word, with or without punctuation around it.
fn is_plain_word(token: &str) -> bool {
    let word = token.trim_matches(|character: char| !character.is_alphanumeric());
    let may_be_inside = |character: char| {
        character.is_alphanumeric() || !character.is_ascii() || matches!(character, '\'' | '-')
    };
    word.contains(char::is_alphabetic) && word.chars().all(may_be_inside)
}

/// Returns the number of words of `text`. In scripts without spaces, each letter counts as a word.
fn count_words(text: &str) -> usize {
    let without_spaces = |letter: &char| matches!(letter, '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}');
    text.split_whitespace().count() + text.chars().filter(without_spaces).count()
}

#[cfg(test)]
mod tests;
