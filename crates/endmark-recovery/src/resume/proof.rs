//! Proves a seam: if an answer repeats the received text from some shown position up to the cut, it continues
//! after the cut (PC-4).
//!
//! The prompt does not show the end of the text. A model that writes this end nevertheless has continued the
//! shown part, so the position of the seam is known, including its whitespace. The comparison ignores
//! differences in whitespace, quotation marks, dashes and Markdown emphasis. The received bytes are kept.

pub(super) mod compare;

use endmark_text::Format;
use endmark_text::detect::detect;

use self::compare::{Agreement, ComparisonTolerance, TextComparer, is_emphasis};
use super::prompt_echo::repeats_prompt;
use super::prompt_excerpt::PromptExcerpt;
use super::weight::{MIN_PROOF_WEIGHT, MIN_PROOF_WEIGHT_IN_DOUBT, weight};
use crate::AskedFrom;
use crate::stitch::{is_announcement, is_fence_line};

/// Number of bytes of an answer within which a repetition may begin. Announcements are shorter.
const ANNOUNCEMENT_LIMIT_BYTES: usize = 600;

/// Number of bytes before the cut within which the repeated part may begin. It may also begin at the start of
/// the text.
const REPEATED_LIMIT_BYTES: usize = 8_192;

/// The prompt that an answer belongs to, and the text that it is about.
#[derive(Debug, Clone)]
pub(crate) struct PromptContext<'a> {
    /// The text up to the cut.
    pub(crate) so_far: &'a str,
    /// Number of bytes of the text that the prompt showed. The text after them is held back.
    pub(crate) shown_bytes: usize,
    /// Offset in the text at which the quotation in the prompt begins.
    pub(crate) quoted_from: usize,
    pub(crate) format: &'a Format,
    /// The words of the prompt without its quotation of the text.
    pub(crate) words: String,
}

/// The result of comparing an answer with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeamProof {
    /// The answer begins to repeat the text at byte `start`, and continues after the cut at byte `rest_at`.
    /// `wrapped` means that other words precede the repetition.
    Proven { start: usize, rest_at: usize, wrapped: bool },
    /// The answer repeats the text, but at several possible positions, or the repetition is too short.
    /// `rest_at` is the first position after it.
    Doubtful { rest_at: usize },
    /// The answer does not repeat the text.
    Nothing,
    /// The answer may still turn out to repeat the text.
    Open,
}

impl<'a> PromptContext<'a> {
    pub(crate) fn new(so_far: &'a str, shown: PromptExcerpt, format: &'a Format, prompt: &str) -> Self {
        let words = prompt.replacen(shown.quoted_part(so_far, format), " ", 1);
        Self { so_far, shown_bytes: shown.length, quoted_from: shown.quoted_from, format, words }
    }
}

impl PromptContext<'_> {
    /// Compares an answer with the text. Unless `is_over`, more of the answer may arrive.
    pub(crate) fn proof(&self, answer: &str, is_over: bool) -> SeamProof {
        let starts = self.repetition_starts(answer);
        let last = starts.last().map_or(0, |(start, _)| *start);
        // If the words before the last start do not recite the prompt, then no shorter beginning does.
        let may_be_recited = self.repeats_prompt(answer.get(..last).unwrap_or_default());
        let places: Vec<usize> = self.repeatable_positions().collect();
        let mut walker = TextComparer::new(self.comparison_tolerance(), answer);
        let mut announced = None;
        for (start, wrapped) in starts {
            // Only an announcement may precede the repetition. Otherwise, the answer may continue from the
            // cut and happen to contain a line that occurs before the cut.
            let words = answer.get(..start).unwrap_or_default();
            if wrapped && !*announced.get_or_insert_with(|| is_announcement(self.so_far, words))
                || may_be_recited && self.repeats_prompt(words)
            {
                continue;
            }
            let again = answer.get(start..).unwrap_or_default();
            // A fence can only repeat a fence. Without this rule, a fence was skipped as emphasis in the
            // shown part but not in the held part, so that one of two matching positions was missed.
            let is_fence = is_fence_line(again);
            let unmarked = again.trim_start_matches(is_emphasis);
            // The end of the repetition in the answer, the positions with this end, and whether there are
            // several ends.
            let (mut found, mut same, mut several) = (None, Vec::new(), false);
            for &from in &places {
                if is_fence && !self.so_far.get(from..).is_some_and(is_fence_line) {
                    continue;
                }
                let is_held = from >= self.shown_bytes && unmarked.len() < again.len();
                match self.agreement_from(from, again, is_over, &mut walker) {
                    Agreement::No if is_held => {
                        // Without its leading emphasis, the answer may repeat the held part.
                        several |= self.agreement_from(from, unmarked, is_over, &mut walker) != Agreement::No;
                    }
                    Agreement::Complete(length) if found.is_none_or(|found| found == length) => {
                        found = Some(length);
                        same.push(from);
                    }
                    Agreement::Complete(_) | Agreement::Unknown => several = true,
                    Agreement::Partial if !is_over => return SeamProof::Open,
                    Agreement::Partial | Agreement::No => {}
                }
                // Further positions cannot change the result.
                if several {
                    break;
                }
            }
            let Some(length) = found else {
                if several {
                    return SeamProof::Nothing;
                }
                continue;
            };
            let rest_at = start + length;
            if !several && same.iter().any(|from| self.is_repetition_certain(*from, answer, start, wrapped)) {
                return SeamProof::Proven { start, rest_at, wrapped };
            }
            if !wrapped || several {
                return SeamProof::Doubtful { rest_at };
            }
            // A repetition at a later line would be a second one.
            break;
        }
        if !is_over && answer.len() <= ANNOUNCEMENT_LIMIT_BYTES {
            SeamProof::Open
        } else {
            SeamProof::Nothing
        }
    }

    /// Whether the complete answer proves its seam.
    pub(crate) fn proves_position(&self, answer: &str) -> bool {
        matches!(self.proof(answer, true), SeamProof::Proven { .. })
    }

    /// Returns the positions of an answer at which a repetition may begin: its beginning, and the beginnings
    /// of its first lines. The flag is true if anything other than whitespace, ellipses or a fence precedes
    /// the position.
    fn repetition_starts(&self, answer: &str) -> Vec<(usize, bool)> {
        let mut found = Vec::new();
        let mut wrapped = false;
        // The content of the first fence is the actual answer, whatever precedes the fence. But within a code
        // block of the text, the fence may close that block.
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

    /// Whether an answer repeats words of the prompt.
    pub(crate) fn repeats_prompt(&self, answer: &str) -> bool {
        repeats_prompt(&self.words, self.so_far, answer)
    }

    /// Returns the position after the shown part in an answer that repeats it to its end and then differs
    /// from the held part. Returns `None` if there is no such position, or more than one.
    pub(crate) fn position_after_shown(&self, answer: &str) -> Option<usize> {
        let start = answer.len() - answer.trim_start().len();
        let again = answer.get(start..)?;
        let unmarked = again.trim_start_matches(|sign| is_emphasis(sign) || sign.is_whitespace());
        if unmarked.starts_with(self.held_text().trim_end()) {
            return None;
        }
        let mut found = None;
        let mut walker = TextComparer::new(self.comparison_tolerance(), answer);
        for from in self.repeatable_positions().filter(|from| *from < self.shown_bytes) {
            let shown = self.so_far.get(from..self.shown_bytes)?;
            let at = match walker.compare(shown.trim_end(), shown.len(), again) {
                Agreement::Complete(at) => Some(at),
                Agreement::Unknown => return None,
                Agreement::Partial | Agreement::No => None,
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

    /// Returns where a model was asked to continue by a prompt that shows the complete text. If the text ends
    /// in an unsettled token, this is unknown, and only the grammar determines where the answer continues.
    pub(crate) fn asked_from(&self) -> AskedFrom {
        let verdict = detect(self.so_far.as_bytes(), self.format).verdict;
        let settled = verdict.truncation().map_or(self.so_far.len(), |cut| cut.truncation_index);
        if settled == self.so_far.len() { AskedFrom::Token } else { AskedFrom::Unknown }
    }

    /// Returns the held part of the text, which was received but not shown.
    pub(crate) fn held_text(&self) -> &str {
        self.so_far.get(self.shown_bytes..).unwrap_or_default()
    }

    /// Returns the positions of the text at which a repetition may begin: each beginning of a word or symbol
    /// near the end, the start of the quotation, and the start of the text.
    fn repeatable_positions(&self) -> impl Iterator<Item = usize> + '_ {
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
        // The quotation begins within a word if the text has no other boundary.
        let quoted = (self.quoted_from < self.shown_bytes).then_some(self.quoted_from);
        let held = self.held_text();
        let last = match held.trim_start() {
            "" => self.so_far.trim_end().len(),
            begun => self.shown_bytes + held.len() - begun.len() + 1,
        };
        // If nothing is held, a repetition of a single character does not count.
        let signs_more = usize::from(held.trim().is_empty());
        let says_something = move |at: &usize| {
            let repeated = self.so_far.get(*at..).unwrap_or_default();
            repeated.chars().filter(|sign| !sign.is_whitespace()).nth(signs_more).is_some()
        };
        quoted.into_iter().chain(first).chain(begins).filter(move |at| *at < last).filter(says_something)
    }

    /// Returns how far an answer agrees with the text from position `from` on.
    fn agreement_from(
        &self,
        from: usize,
        answer: &str,
        is_over: bool,
        walker: &mut TextComparer,
    ) -> Agreement {
        let Some(expected) = self.so_far.get(from..) else { return Agreement::No };
        let core = expected.trim_end();
        let blank = expected.get(core.len()..).unwrap_or_default();
        let loose = self.shown_bytes.saturating_sub(from);
        let at = match walker.compare(core, loose, answer) {
            Agreement::Complete(at) => at,
            other => return other,
        };
        if blank.is_empty() {
            return Agreement::Complete(at);
        }
        let rest = answer.get(at..).unwrap_or_default();
        // In a string, a received raw line feed may be repeated as an escape.
        if self.comparison_tolerance() == ComparisonTolerance::Json
            && blank.contains(|character: char| character.is_control())
            && !self.is_between_tokens()
        {
            return match walker.compare_whitespace(blank, rest) {
                Agreement::Complete(length) => Agreement::Complete(at + length),
                other => other,
            };
        }
        let run = rest.get(..rest.len() - rest.trim_start().len()).unwrap_or_default();
        if run.len() == rest.len() && !is_over {
            return Agreement::Partial;
        }
        match run {
            // Whitespace between JSON tokens has no meaning.
            _ if self.is_between_tokens() => Agreement::Complete(at + run.len()),
            // The answer lacks whitespace that the text has, so it is not a repetition.
            "" if !rest.is_empty() => Agreement::No,
            _ if run.starts_with(blank) => Agreement::Complete(at + blank.len()),
            // The answer may add spaces at the end of a line.
            _ if run.starts_with(['\n', '\r']) && !blank.contains(['\n', '\r']) => Agreement::Complete(at),
            _ => Agreement::Complete(at + run.len()),
        }
    }

    /// Whether a match from position `from` on is too unlikely to be a coincidence.
    fn is_repetition_certain(&self, from: usize, answer: &str, start: usize, wrapped: bool) -> bool {
        let repeated = weight(self.so_far.get(from..).unwrap_or_default());
        let behind_space = answer.get(..start).is_some_and(|before| before.ends_with([' ', '\t']));
        // If the text also begins with the repeated part, the answer may be a new version of the text, so
        // more evidence is needed.
        let part = self.so_far.get(from..).unwrap_or_default().trim();
        // If the prompt showed the complete text, the answer may begin with a word that also precedes the
        // cut.
        let in_doubt = wrapped
            || self.so_far.trim_start().starts_with(part)
            || behind_space && from >= self.shown_bytes
            || self.held_text().trim().is_empty()
            || !self.so_far.ends_with(char::is_alphanumeric);
        repeated >= if in_doubt { MIN_PROOF_WEIGHT_IN_DOUBT } else { MIN_PROOF_WEIGHT }
    }

    /// Returns which differences the comparison must ignore.
    fn comparison_tolerance(&self) -> ComparisonTolerance {
        match self.format {
            Format::Json | Format::Jsonl => ComparisonTolerance::Json,
            Format::Tags => ComparisonTolerance::Exact,
            Format::Markdown | Format::Text | Format::Marker(_) | Format::Auto => ComparisonTolerance::Prose,
        }
    }

    fn is_between_tokens(&self) -> bool {
        matches!(self.format, Format::Json | Format::Jsonl) && {
            let mut detector = endmark_text::detect::Detector::new(self.format);
            detector.push(self.so_far.as_bytes());
            // If a raw line break is permitted here, the text does not end within a string. A space would
            // also be permitted in a string.
            detector.refuse_control_characters();
            detector.push(b"\n");
            !detector.is_malformed()
        }
    }
}

#[cfg(test)]
mod tests;
