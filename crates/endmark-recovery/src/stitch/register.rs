//! Detects lines in which a model writes about the text: announcements of the rest, closing remarks, and
//! answers to something else.
//!
//! A line is scored by its word pieces, by the words that it shares with the text, and by its form and
//! position. The weights come from two logistic regressions in `bench/register`: one on the pieces of such
//! lines and of ordinary lines, the other on the form of lines in joined pairs.

use endmark_text::Format;
use memchr::memmem;

use super::fence;
use super::joint::{ContinuationMode, Joint};
use super::lines::last_line;

mod address;
mod pieces;

use address::Address;
use pieces::PieceSums;

/// Maximum length of a remark in bytes.
pub(super) const MAX_REMARK_BYTES: usize = 400;
/// Usual maximum length of a remark, in characters.
const MAX_REMARK_CHARS: usize = 100;
/// Minimum length, in characters, of a line whose words are sufficient evidence.
const MIN_EVIDENCE_CHARS: usize = 14;
/// Number of bytes on each side of a line that are searched for its words.
const SEARCHED_BYTES: usize = 6_000;
/// Minimum length, in characters, of words that are compared. Shorter words occur everywhere.
const MIN_WORD_CHARS: usize = 4;

/// Penalty, in bits, for an announcement that restates the beginning of the text in other words.
const RESTATEMENT_PENALTY: f64 = -8.0;
/// Penalty, in bits, for an announcement or remark that also occurs elsewhere in the text.
const REPEATED_REMARK_PENALTY: f64 = -10.0;

/// Minimum evidence, in bits, for a closing remark that neither addresses the reader nor mentions an answer.
/// It is also the evidence that is assumed for a line in a script that the text does not use.
const MIN_UNADDRESSED_BITS: f64 = 2.0;

/// The ways in which a model writes about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Register {
    /// The line announces that the rest follows.
    Announcing,
    /// The line states that the text is finished.
    ClosingRemark,
    /// The line refuses, or asks a question.
    Answering,
}

/// The text around the examined lines, in lower case.
#[derive(Debug)]
pub(super) struct SurroundingText {
    before: String,
    is_wide: bool,
    /// The beginning of the continuation.
    head: String,
    /// The end of the continuation, and the offset at which it begins.
    tail: String,
    tail_start: usize,
}

impl SurroundingText {
    pub(super) fn new(joint: &Joint<'_>) -> Self {
        let (initial, text) = (joint.initial, joint.continuation);
        let before = &initial[initial.ceil_char_boundary(initial.len().saturating_sub(SEARCHED_BYTES))..];
        let head = &text[..text.floor_char_boundary(SEARCHED_BYTES + 4 * MAX_REMARK_BYTES)];
        let tail_start =
            text.ceil_char_boundary(text.len().saturating_sub(SEARCHED_BYTES + 4 * MAX_REMARK_BYTES));
        Self {
            is_wide: has_unspaced_script(before),
            before: before.to_ascii_lowercase(),
            head: head.to_ascii_lowercase(),
            tail: text[tail_start..].to_ascii_lowercase(),
            tail_start,
        }
    }

    /// Returns the share of a line's longer words that occur before the seam or in `other`, from 0 to 1.
    /// Returns 0.5 if the line has no longer words.
    fn known_share(&self, line: &str, other: &str) -> f64 {
        known_word_share(line, [&self.before, other])
    }

    /// Whether a line occurs verbatim before the seam. Short lines never count.
    fn contains_line(&self, line: &str) -> bool {
        contains_line(line, [&self.before, ""])
    }

    /// Returns the text after this position of the continuation.
    fn text_after(&self, at: usize) -> &str {
        self.head.get(at..).unwrap_or_default()
    }

    /// Returns the text before this position of the continuation.
    fn text_before(&self, at: usize) -> &str {
        self.tail.get(..at.saturating_sub(self.tail_start)).unwrap_or_default()
    }
}

/// Returns the share of a line's longer words that occur in one of these texts, from 0 to 1. Returns 0.5 if
/// the line has no longer words.
fn known_word_share(line: &str, texts: [&str; 2]) -> f64 {
    let line = line.to_ascii_lowercase();
    let words = line.split(|character: char| !character.is_alphanumeric());
    let mut words: Vec<&str> = words
        .filter(|word| word.chars().count() >= MIN_WORD_CHARS && !word.contains(pieces::is_unspaced_letter))
        .collect();
    words.sort_unstable();
    words.dedup();
    if words.is_empty() {
        return 0.5;
    }
    let occurs =
        |word: &&&str| texts.iter().any(|text| memmem::find(text.as_bytes(), word.as_bytes()).is_some());
    let known = words.iter().filter(occurs).count();
    let share = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    share(known) / share(words.len())
}

/// Whether a line occurs verbatim in one of these texts. Short lines never count.
fn contains_line(line: &str, texts: [&str; 2]) -> bool {
    let line = line.to_ascii_lowercase();
    line.len() >= MIN_EVIDENCE_CHARS
        && texts.iter().any(|text| memmem::find(text.as_bytes(), line.as_bytes()).is_some())
}

/// Returns the log odds that the pieces of a line belong to this register and not to an ordinary text.
fn score(register: Register, sums: &PieceSums) -> f64 {
    let bias = match register {
        Register::Announcing => -0.9132,
        Register::ClosingRemark => -0.8534,
        Register::Answering => -1.5564,
    };
    if sums.is_empty() { 0.0 } else { bias + sums.share(register) }
}

/// Returns the evidence, in bits, that a line announces the rest and does not belong to the text. The line
/// ends at `end` in the continuation. `behind` is the text after it, including the line end. It is empty if
/// the announcement ends in mid-line.
pub(super) fn announcement_bits(
    joint: &Joint<'_>,
    around: &SurroundingText,
    line: &str,
    end: usize,
    behind: &str,
) -> f64 {
    let text = line.trim();
    if text.is_empty() || text.len() > MAX_REMARK_BYTES || closes_emphasis(joint.initial, text) {
        return f64::NEG_INFINITY;
    }
    let sums = PieceSums::from_line(text);
    let core = text.trim_end_matches(['*', '_', ' ']);
    let begins_low = text.starts_with(char::is_lowercase);
    let in_word = joint.initial.ends_with(|character: char| character.is_alphanumeric() || character == '_');
    let paragraph =
        joint.initial.is_empty() || joint.initial.ends_with("\n\n") || joint.initial.ends_with("\n\r\n");
    let below = behind.trim_start_matches(['\r', ' ']);
    let alone = below.starts_with("\n\n") || below.starts_with("\n\r\n");
    let begins_with_sign =
        !text.starts_with(|character: char| character.is_alphanumeric() || character == '#');
    let length = text.chars().count();
    let next = below.trim_start_matches(['\r', '\n']);
    -2.27
        + 2.13 * score(Register::Announcing, &sums)
        - 1.16 * score(Register::Answering, &sums)
        - 3.86 * around.known_share(text, around.text_after(end))
        + weight(core.ends_with([':', '：']), 5.21)
        + weight(ends_sentence(core), -0.68)
        + weight(is_bracketed(text), 2.67)
        + weight(text.starts_with('#'), 1.81)
        + weight(alone, 1.09)
        + weight(below.starts_with('\n') && fence::opening_line_end(below).is_some(), 3.58)
        + weight(in_word, if begins_low { -1.9 } else { 0.28 })
        + weight(paragraph, 0.1)
        + weight(begins_low, -5.26)
        + weight(begins_with_sign && !is_bracketed(text), -3.06)
        + weight(length > MAX_REMARK_CHARS, -0.36)
        // One or two words with a colon are as often a heading or a field name.
        + weight(length < MIN_EVIDENCE_CHARS && !alone && !is_bracketed(text), -1.32)
        + weight(has_unspaced_script(text) != around.is_wide, 1.26)
        + weight(joint.initial.ends_with('\n'), -0.73)
        + weight(text.contains(is_code_character), -1.41)
        + weight(["---\n", "***\n", "___\n"].iter().any(|rule| next.starts_with(rule)), 1.79)
        + weight(restates_beginning(joint.initial, text), RESTATEMENT_PENALTY)
        + weight(around.contains_line(text), REPEATED_REMARK_PENALTY)
}

/// Returns the emphasis and code markers that are open at the cut, in its line.
fn open_emphasis(initial: &str) -> impl Iterator<Item = &'static str> {
    let cut_line = initial.rsplit('\n').next().unwrap_or_default();
    let cut_line = cut_line.rsplit("\\n").next().unwrap_or_default();
    ["**", "__", "`"].into_iter().filter(|signs| cut_line.matches(signs).count() % 2 == 1)
}

/// Whether a line closes emphasis or code that is open at the cut. Such a line belongs to the text.
pub(super) fn closes_emphasis(initial: &str, line: &str) -> bool {
    open_emphasis(initial).any(|signs| line.matches(signs).count() % 2 == 1)
}

/// Whether a text ends with a marker that opens emphasis or code. No whitespace follows such a marker.
pub(super) fn opens_emphasis(initial: &str) -> bool {
    open_emphasis(initial).any(|signs| initial.ends_with(signs))
}

/// Whether a line restates the beginning of the first part in similar words, and is itself an announcement.
/// Then it begins another version of the text, and not the rest.
fn restates_beginning(initial: &str, line: &str) -> bool {
    const MIN_SHARED_WORDS: usize = 4;
    let first = initial.trim_start().lines().next().unwrap_or_default().trim_end();
    if first.len() > MAX_REMARK_BYTES {
        return false;
    }
    let both_announce = first.ends_with([':', '：']) && line.ends_with([':', '：']);
    let words = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        let words = lower.split(|character: char| !character.is_alphanumeric());
        words.filter(|word| word.chars().count() >= MIN_WORD_CHARS).map(str::to_owned).collect()
    };
    let (said, known) = (words(line), words(first));
    let shared = said.iter().filter(|word| known.contains(word)).count();
    let most = if both_announce { said.len() / 2 } else { said.len() * 3 / 4 };
    shared >= MIN_SHARED_WORDS && shared > most
}

/// Returns the evidence, in bits, that the words of a line are an announcement. Unlike a score, it grows with
/// the length of the line.
pub(super) fn likelier_announcing(line: &str) -> f64 {
    PieceSums::from_line(line).weight(Register::Announcing) / 8.0
}

/// Returns the evidence, in bits, that the last lines of a continuation address the reader and do not belong
/// to the text. `before` is the text before them in the continuation. A negative result means that they are
/// kept, because losing words of the text is worse than keeping a remark.
pub(super) fn closing_remark_evidence(
    joint: &Joint<'_>,
    around: &SurroundingText,
    before: &str,
    part: &str,
) -> f64 {
    let text = part.trim();
    let texts = [around.before.as_str(), around.text_before(before.trim_end().len())];
    let bits = closing_remark_score(joint, around, before, part);
    if bits == f64::NEG_INFINITY {
        return bits;
    }
    if joint.mode == ContinuationMode::Proven {
        let is_said_to_reader = address::contains_word_for(Address::Reader, text)
            && score(Register::ClosingRemark, &PieceSums::from_line(text)) > 0.0;
        return if is_said_to_reader {
            bits.min(address::document_evidence([joint.initial, before]))
        } else {
            f64::NEG_INFINITY
        };
    }
    let last = last_line(before);
    let behind_code = last.ends_with([']', '>', '~']) || last.contains(is_code_character);
    let bits = match (
        address::contains_word_for(Address::Answer, text),
        address::contains_word_for(Address::Reader, text),
    ) {
        (true, _) => bits,
        // Any line may address the reader, especially in a text that addresses its reader itself. Code does
        // not.
        (false, true) if score(Register::ClosingRemark, &PieceSums::from_line(text)) <= 0.0 => {
            f64::NEG_INFINITY
        }
        (false, true) if behind_code => bits,
        (false, true) => bits.min(address::document_evidence([joint.initial, before])),
        (false, false) if bits < MIN_UNADDRESSED_BITS => f64::NEG_INFINITY,
        (false, false) => MIN_UNADDRESSED_BITS,
    };
    if is_foreign(text, texts) { bits.max(MIN_UNADDRESSED_BITS) } else { bits }
}

/// Whether lines address the reader about the answer. It also detects them in a text that addresses its
/// reader.
pub(super) fn addresses_reader_at_end(
    joint: &Joint<'_>,
    around: &SurroundingText,
    before: &str,
    part: &str,
) -> bool {
    let text = part.trim();
    let is_addressed = address::contains_word_for(Address::Reader, text)
        || address::contains_word_for(Address::Answer, text);
    is_addressed
        && score(Register::ClosingRemark, &PieceSums::from_line(text)) > 0.0
        && closing_remark_score(joint, around, before, part) >= 0.0
}

/// Returns the evidence, in bits, from words and form, that lines are a closing remark.
pub(super) fn closing_remark_score(
    joint: &Joint<'_>,
    around: &SurroundingText,
    before: &str,
    part: &str,
) -> f64 {
    let text = part.trim();
    if !text.contains(char::is_alphabetic) || text.len() > MAX_REMARK_BYTES || text.lines().count() > 3 {
        return f64::NEG_INFINITY;
    }
    let texts = [around.before.as_str(), around.text_before(before.trim_end().len())];
    let core = text.trim_end_matches(['*', '_', ' ']);
    let kept = before.trim_end();
    let breaks = before[kept.len()..].matches('\n').count();
    let last = last_line(kept);
    // A remark about a text with tags contains no tags itself, and follows a tag.
    let in_tags = joint.format == Format::Tags
        && (without_code(text).contains('<') || !last.ends_with(['>', '`', '~']) && !is_rule(last));
    if in_tags {
        return f64::NEG_INFINITY;
    }
    let widely = breaks > 2 && !kept.contains("\n\n\n") && !joint.initial.contains("\n\n\n");
    let begins_with_sign =
        !text.starts_with(|character: char| character.is_alphanumeric() || matches!(character, '¡' | '¿'));
    let is_wide_around = texts.into_iter().any(has_unspaced_script);
    let [to_reader, of_answer] =
        [Address::Reader, Address::Answer].map(|address| address::contains_word_for(address, text));
    let score = score(Register::ClosingRemark, &PieceSums::from_line(text));
    -2.41 + 0.78 * score - 0.42 * known_word_share(text, texts)
        + weight(to_reader, 2.43)
        + weight(of_answer, 1.86)
        + weight(ends_sentence(core), 2.06)
        + weight(core.ends_with([':', '：']), -2.06)
        + weight(is_bracketed(text), 5.55)
        + weight(breaks > 1, 0.55)
        + weight(widely, 3.78)
        + weight(text.starts_with(char::is_lowercase), -3.67)
        + weight(begins_with_sign && !is_bracketed(text), 2.43)
        // A semicolon also occurs in sentences.
        + weight(text.contains(|sign| sign != ';' && is_code_character(sign)), -5.0)
        + weight(has_unspaced_script(text) != is_wide_around, 1.77)
        + weight(last.ends_with(['}', ']', ';', '>', '|', ')', '`', '~']), 0.7)
        + weight(text.chars().count() > MAX_REMARK_CHARS, 0.02)
        + weight(text.contains('\n'), -1.12)
        + weight(is_rule(last), 3.41)
        + weight(contains_line(text, texts), REPEATED_REMARK_PENALTY)
}

/// Returns the evidence, in bits, that a continuation is a separate answer and does not continue the text.
pub(super) fn separate_answer_evidence(joint: &Joint<'_>, around: &SurroundingText) -> f64 {
    answer_evidence(joint, around, 0)
}

/// Returns the evidence of [`separate_answer_evidence`] for the first line after `start` in the continuation.
pub(super) fn answer_evidence(joint: &Joint<'_>, around: &SurroundingText, start: usize) -> f64 {
    let rest = &joint.continuation[start..];
    let line = rest.trim().lines().next().unwrap_or_default();
    let text = &line[..line.floor_char_boundary(MAX_REMARK_BYTES)];
    let end = start + rest.len() - rest.trim_start().len() + text.len();
    let sums = PieceSums::from_line(text);
    let bits = 1.25 + 0.57 * score(Register::Answering, &sums) + 0.28 * score(Register::Announcing, &sums)
        - 6.56 * around.known_share(text, around.text_after(end))
        + weight(text.ends_with(['?', '？']), 8.51)
        + weight(text.ends_with(['.', '!', '。', '！']), 6.86)
        + weight(text.ends_with(':'), -1.69)
        + weight(text.starts_with(char::is_lowercase), -7.27)
        + weight(text.chars().count() > MAX_REMARK_CHARS, -2.1)
        + weight(joint.initial.ends_with(char::is_alphanumeric), -0.07)
        + weight(has_unspaced_script(text) != around.is_wide, 4.99)
        + weight(text.contains(is_code_character), -5.0);
    // Half of the fitted pairs were answers, but in practice answers are rare.
    (bits - 1.5).clamp(-3.0, 16.0)
}

/// Corrects a score that was fitted on samples with as many remarks as other lines. Most lines are not
/// remarks, so the distance of a score below `flat_below` is tripled.
pub(super) fn steepen(score: f64, flat_below: f64) -> f64 {
    const FACTOR: f64 = 3.0;
    score.min(flat_below - FACTOR * (flat_below - score))
}

/// Whether a character occurs in code more often than in sentences.
pub(super) fn is_code_character(character: char) -> bool {
    matches!(character, '{' | '}' | ';' | '=' | '<' | '\\' | '|' | '`' | '$')
}

/// Returns a text without its inline code.
pub(super) fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

/// Whether a line is a horizontal rule.
pub(super) fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && ['-', '*', '_', '=', '~'].iter().any(|sign| line.trim_matches(*sign).is_empty())
}

/// Whether a text contains a horizontal rule.
pub(super) fn has_rule(text: &str) -> bool {
    ["\n---", "\n***", "\n___"].iter().any(|rule| {
        memmem::find_iter(text.as_bytes(), rule)
            .any(|at| is_rule(text[at + 1..].lines().next().unwrap_or_default()))
    })
}

fn weight(holds: bool, bits: f64) -> f64 {
    if holds { bits } else { 0.0 }
}

fn ends_sentence(text: &str) -> bool {
    text.ends_with(['.', '!', '?', '…', '。', '！', '？', '।'])
}

/// Whether a line is in brackets or between emphasis markers.
fn is_bracketed(text: &str) -> bool {
    text.starts_with(['(', '[', '*', '_', '-', '（', '【'])
        && text.ends_with([')', ']', '*', '_', '-', '）', '】'])
}

/// Whether a line has letters of a script that these texts do not use, and shares no words with them.
fn is_foreign(line: &str, texts: [&str; 2]) -> bool {
    let occurs = |character: char| texts.iter().any(|text| text.contains(character));
    let letters = line.chars().filter(|sign| sign.is_alphabetic() && !sign.is_ascii());
    !has_unspaced_script(line)
        && letters.flat_map(char::to_lowercase).any(|sign| !occurs(sign))
        && known_word_share(line, texts) == 0.0
}

/// Whether a text has letters of a script without spaces between words.
fn has_unspaced_script(text: &str) -> bool {
    text.chars().any(|sign| u32::from(sign) >= 0x370 && sign.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stitch::AskedFrom;

    const TEXT: &str = "The harbour lay quiet in the grey morning, and the gulls had not yet found the boa";

    fn announcement_evidence(line: &str, behind: &str) -> f64 {
        let continuation = [line, behind].concat();
        let joint = Joint::new(TEXT, &continuation, &Format::Text, AskedFrom::Unknown);
        announcement_bits(&joint, &SurroundingText::new(&joint), line, line.len(), behind)
    }

    #[test]
    fn announcements_are_detected_in_any_language() {
        for line in [
            "Sure, I will go on with what is missing:",
            "Es folgt, was von der Antwort noch übrig ist:",
            "Voici donc le reste du document demandé :",
            "Вот остальная часть ответа:",
            "下面接着输出剩下的内容：",
        ] {
            assert!(announcement_evidence(line, "\n\nts that came in.") > 4.0, "{line}");
        }
    }

    #[test]
    fn lines_of_the_text_are_not_announcements() {
        for line in ["ts that came in with the tide.", "The gulls came back to the harbour.", "Boats: twelve"]
        {
            assert!(announcement_evidence(line, "\nMore of it.") < 0.0, "{line}");
        }
    }

    #[test]
    fn remarks_are_distinguished_from_lines_of_the_text() {
        let left = |part: &str| {
            let before = "ts that came in with the tide.\n\n";
            let continuation = [before, part].concat();
            let joint = Joint::new(TEXT, &continuation, &Format::Text, AskedFrom::Unknown);
            closing_remark_evidence(&joint, &SurroundingText::new(&joint), before, part)
        };
        assert!(left("The whole document is complete now.") > 4.0);
        assert!(left("Damit ist die Antwort vollständig.") > 4.0);
        assert!(left("the boats were counted twice in the morning") < 0.0);
        assert!(left("| harbour | boats |") < 0.0);
    }
}
