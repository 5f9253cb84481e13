//! Proves a seam. If an answer repeats the received text from a position in the shown part up to the cut, it
//! continues after the cut (PC-4).
//!
//! A model that sees a text without its end, and writes that end, derives it from the text before it. Therefore the
//! position at which the answer joins is known, including the white space there. The comparison ignores differences
//! in white space, quotation marks, dashes and Markdown emphasis. The received bytes are kept.

pub(super) mod walk;

use endmark_text::Format;
use endmark_text::detect::detect;

use self::walk::{AnswerExtent, Reading, Walker, is_emphasis};
use super::prompt_echo::recites;
use super::shown::PromptExcerpt;
use super::weight::{MIN_PROOF_WEIGHT, MIN_PROOF_WEIGHT_IN_DOUBT, weight};
use crate::AskedFrom;
use crate::stitch::{announces, is_fence_line};

/// Number of bytes of an answer in which a repetition may begin. Announcements are not longer.
const ANNOUNCEMENT_LIMIT_BYTES: usize = 600;

/// Number of bytes before the cut, and at the beginning of the text, in which a repeated part may begin.
const REPEATED_LIMIT_BYTES: usize = 8_192;

/// The question to which an answer belongs.
#[derive(Debug, Clone)]
pub(crate) struct Question<'a> {
    /// The text up to the cut.
    pub(crate) so_far: &'a str,
    /// Bytes of it that were shown.
    pub(crate) shown_bytes: usize,
    /// Offset at which the quotation in the prompt began.
    pub(crate) quoted_from: usize,
    pub(crate) format: &'a Format,
    /// The words of the question, without its quotation of the text.
    pub(crate) words: String,
}

/// The result of looking for a proof in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The answer begins to repeat the text at the byte `start`, and the text after the cut begins at `rest_at`.
    /// `wrapped` means that the answer has words of its own before it.
    Proven { start: usize, rest_at: usize, wrapped: bool },
    /// The answer repeats the text, but several positions are possible, or the repetition is too short. `rest_at` is
    /// the first position.
    Doubtful { rest_at: usize },
    /// The answer repeats nothing.
    Nothing,
    /// The answer may still repeat the text.
    Open,
}

impl<'a> Question<'a> {
    pub(crate) fn new(so_far: &'a str, shown: PromptExcerpt, format: &'a Format, prompt: &str) -> Self {
        let words = prompt.replacen(shown.quoted_part(so_far, format), " ", 1);
        Self { so_far, shown_bytes: shown.length, quoted_from: shown.quoted_from, format, words }
    }
}

impl Question<'_> {
    /// Returns what an answer proves. Unless it `is_over`, more of it may arrive.
    pub(crate) fn proof(&self, answer: &str, is_over: bool) -> Proof {
        let starts = self.starts(answer);
        let last = starts.last().map_or(0, |(start, _)| *start);
        // If the words before the last start do not recite the question, those before an earlier start do not either.
        let may_be_recited = self.is_recited(answer.get(..last).unwrap_or_default());
        let places: Vec<usize> = self.places().collect();
        let mut walker = Walker::new(self.comparison_reading(), answer);
        let mut announced = None;
        for (start, wrapped) in starts {
            // A model that continues from the cut may also reach lines that precede the cut. Only words to the reader
            // may precede the repetition.
            let words = answer.get(..start).unwrap_or_default();
            if wrapped && !*announced.get_or_insert_with(|| announces(self.so_far, words))
                || may_be_recited && self.is_recited(words)
            {
                continue;
            }
            let again = answer.get(start..).unwrap_or_default();
            // Only a fence repeats a fence. Without this rule, a fence was skipped as emphasis in the shown text but
            // not in the held text, and one of two matching positions seemed to be the only one.
            let is_fence = is_fence_line(again);
            let unmarked = again.trim_start_matches(is_emphasis);
            // The positions with the same rest, and whether another rest is possible.
            let (mut found, mut same, mut several) = (None, Vec::new(), false);
            for &from in &places {
                if is_fence && !self.so_far.get(from..).is_some_and(is_fence_line) {
                    continue;
                }
                let is_held = from >= self.shown_bytes && unmarked.len() < again.len();
                match self.agreement_from(from, again, is_over, &mut walker) {
                    AnswerExtent::No if is_held => {
                        // Without the answer's emphasis it may repeat the held text.
                        several |=
                            self.agreement_from(from, unmarked, is_over, &mut walker) != AnswerExtent::No;
                    }
                    AnswerExtent::Complete(length) if found.is_none_or(|found| found == length) => {
                        found = Some(length);
                        same.push(from);
                    }
                    AnswerExtent::Complete(_) | AnswerExtent::Unknown => several = true,
                    AnswerExtent::Partial if !is_over => return Proof::Open,
                    AnswerExtent::Partial | AnswerExtent::No => {}
                }
                // More positions cannot change the result.
                if several {
                    break;
                }
            }
            let Some(length) = found else {
                if several {
                    return Proof::Nothing;
                }
                continue;
            };
            let rest_at = start + length;
            if !several && same.iter().any(|from| self.is_repetition_certain(*from, answer, start, wrapped)) {
                return Proof::Proven { start, rest_at, wrapped };
            }
            if !wrapped || several {
                return Proof::Doubtful { rest_at };
            }
            // A later repetition is the second one.
            break;
        }
        if !is_over && answer.len() <= ANNOUNCEMENT_LIMIT_BYTES { Proof::Open } else { Proof::Nothing }
    }

    /// Whether the complete answer proves where it continues.
    pub(crate) fn proves_position(&self, answer: &str) -> bool {
        matches!(self.proof(answer, true), Proof::Proven { .. })
    }

    /// Returns the positions of an answer at which a repetition may begin: its beginning and each of its first lines.
    /// The flag is whether anything but white space, dots of omission or a fence precedes the position.
    fn starts(&self, answer: &str) -> Vec<(usize, bool)> {
        let mut found = Vec::new();
        let mut wrapped = false;
        // The content of the answer's first fence is the answer, whatever precedes it, unless that fence may close a
        // block at the cut.
        let mut may_open = true;
        let in_block = self.so_far.lines().filter(|line| is_fence_line(line)).count() % 2 == 1;
        let mut at = 0;
        for line in answer.split_inclusive('\n') {
            if at > ANNOUNCEMENT_LIMIT_BYTES {
                break;
            }
            let text = line.trim_start().trim_start_matches(['.', '…']).trim_start();
            if !text.is_empty() {
                found.push((at + line.len() - text.len(), wrapped));
                let opens = is_fence_line(text) && may_open && !(wrapped && in_block);
                may_open &= !is_fence_line(text);
                wrapped = !opens;
            }
            at += line.len();
        }
        found
    }

    /// Whether an answer repeats the question's own words.
    pub(crate) fn is_recited(&self, answer: &str) -> bool {
        recites(&self.words, self.so_far, answer)
    }

    /// Returns where an answer continues that repeats the shown text to its end and then differs from the held text.
    /// Returns `None` if there is no such position, or more than one.
    pub(crate) fn position_after_shown(&self, answer: &str) -> Option<usize> {
        let start = answer.len() - answer.trim_start().len();
        let again = answer.get(start..)?;
        let unmarked = again.trim_start_matches(|sign| is_emphasis(sign) || sign.is_whitespace());
        if unmarked.starts_with(self.held_text().trim_end()) {
            return None;
        }
        let mut found = None;
        let mut walker = Walker::new(self.comparison_reading(), answer);
        for from in self.places().filter(|from| *from < self.shown_bytes) {
            let shown = self.so_far.get(from..self.shown_bytes)?;
            let at = match walker.walk(shown.trim_end(), shown.len(), again) {
                AnswerExtent::Complete(at) => Some(at),
                AnswerExtent::Unknown => return None,
                AnswerExtent::Partial | AnswerExtent::No => None,
            };
            if let Some(at) = at.filter(|_| weight(shown) >= MIN_PROOF_WEIGHT_IN_DOUBT) {
                let rest = again.get(at..)?;
                let blank = if shown.ends_with(char::is_whitespace) {
                    rest.len() - rest.trim_start().len()
                } else {
                    0
                };
                if found.replace(start + at + blank).is_some_and(|other| other != start + at + blank) {
                    return None;
                }
            }
        }
        found
    }

    /// Returns where the model was asked to continue if the question holds nothing back. It also showed the token at
    /// the cut, so only the grammar determines where the answer continues.
    pub(crate) fn asked_from(&self) -> AskedFrom {
        let verdict = detect(self.so_far.as_bytes(), self.format).verdict;
        let settled = verdict.truncation().map_or(self.so_far.len(), |cut| cut.truncation_index);
        if settled == self.so_far.len() { AskedFrom::Token } else { AskedFrom::Unknown }
    }

    /// Returns the held text, which was received but not shown.
    pub(crate) fn held_text(&self) -> &str {
        self.so_far.get(self.shown_bytes..).unwrap_or_default()
    }

    /// Returns the positions of the text at which a repetition may begin: each beginning of a word or sign in the
    /// shown text, within the search limit, and the beginning of the text.
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let cut = self.so_far.len();
        let earliest = self.so_far.ceil_char_boundary(cut.saturating_sub(REPEATED_LIMIT_BYTES));
        let window = self.so_far.get(earliest..).unwrap_or_default();
        let mut before: Option<char> = self.so_far.get(..earliest).and_then(|text| text.chars().next_back());
        let begins = window.char_indices().filter_map(move |(at, sign)| {
            let in_word =
                before.replace(sign).is_some_and(|before| before.is_alphanumeric() && sign.is_alphanumeric());
            (!in_word && !sign.is_whitespace()).then_some(earliest + at)
        });
        let start = self.so_far.len() - self.so_far.trim_start().len();
        let first = (start < earliest).then_some(start);
        // A quotation may begin within a word if the text has no other boundary.
        let quoted = (self.quoted_from < self.shown_bytes).then_some(self.quoted_from);
        let held = self.held_text();
        let last = match held.trim_start() {
            "" => self.so_far.trim_end().len(),
            begun => self.shown_bytes + held.len() - begun.len() + 1,
        };
        // A single sign does not count as a repetition.
        let signs_more = usize::from(held.trim().is_empty());
        let says_something = move |at: &usize| {
            let repeated = self.so_far.get(*at..).unwrap_or_default();
            repeated.chars().filter(|sign| !sign.is_whitespace()).nth(signs_more).is_some()
        };
        quoted.into_iter().chain(first).chain(begins).filter(move |at| *at < last).filter(says_something)
    }

    /// Returns how far an answer agrees with the text from this position on.
    fn agreement_from(&self, from: usize, answer: &str, is_over: bool, walker: &mut Walker) -> AnswerExtent {
        let Some(expected) = self.so_far.get(from..) else { return AnswerExtent::No };
        let core = expected.trim_end();
        let blank = expected.get(core.len()..).unwrap_or_default();
        let loose = self.shown_bytes.saturating_sub(from);
        let at = match walker.walk(core, loose, answer) {
            AnswerExtent::Complete(at) => at,
            other => return other,
        };
        if blank.is_empty() {
            return AnswerExtent::Complete(at);
        }
        let rest = answer.get(at..).unwrap_or_default();
        // A string that was received with a raw line feed may be repeated with an escaped one.
        if self.comparison_reading() == Reading::Json
            && blank.contains(|sign: char| sign.is_control())
            && !self.is_between_tokens()
        {
            return match walker.walk_blank(blank, rest) {
                AnswerExtent::Complete(length) => AnswerExtent::Complete(at + length),
                other => other,
            };
        }
        let run = rest.get(..rest.len() - rest.trim_start().len()).unwrap_or_default();
        if run.len() == rest.len() && !is_over {
            return AnswerExtent::Partial;
        }
        match run {
            // White space between JSON tokens proves nothing.
            _ if self.is_between_tokens() => AnswerExtent::Complete(at + run.len()),
            // The received text has white space where the answer has none, so the answer is another text.
            "" if !rest.is_empty() => AnswerExtent::No,
            _ if run.starts_with(blank) => AnswerExtent::Complete(at + blank.len()),
            // A line may end with spaces.
            _ if run.starts_with(['\n', '\r']) && !blank.contains(['\n', '\r']) => AnswerExtent::Complete(at),
            _ => AnswerExtent::Complete(at + run.len()),
        }
    }

    /// Whether a match from this position on can only be a repetition.
    fn is_repetition_certain(&self, from: usize, answer: &str, start: usize, wrapped: bool) -> bool {
        let repeated = weight(self.so_far.get(from..).unwrap_or_default());
        let behind_space = answer.get(..start).is_some_and(|before| before.ends_with([' ', '\t']));
        // If the text also begins with the repeated part, no position is proved: the answer may be a new version of
        // the text.
        let part = self.so_far.get(from..).unwrap_or_default().trim();
        // A model that saw the complete text may begin with a word that also precedes the cut.
        let in_doubt = wrapped
            || self.so_far.trim_start().starts_with(part)
            || behind_space && from >= self.shown_bytes
            || self.held_text().trim().is_empty()
            || !self.so_far.ends_with(char::is_alphanumeric);
        repeated >= if in_doubt { MIN_PROOF_WEIGHT_IN_DOUBT } else { MIN_PROOF_WEIGHT }
    }

    /// Returns which differences a repetition of the text may have.
    fn comparison_reading(&self) -> Reading {
        match self.format {
            Format::Json | Format::Jsonl => Reading::Json,
            Format::Tags => Reading::Exact,
            Format::Markdown | Format::Text | Format::Marker(_) | Format::Auto => Reading::Prose,
        }
    }

    fn is_between_tokens(&self) -> bool {
        matches!(self.format, Format::Json | Format::Jsonl) && {
            let mut detector = endmark_text::detect::Detector::new(self.format);
            detector.push(self.so_far.as_bytes());
            // A space can follow a string's opening quote, and a raw line break indicates something else.
            detector.refuse_control_characters();
            detector.push(b"\n");
            !detector.is_malformed()
        }
    }
}

#[cfg(test)]
mod tests;
