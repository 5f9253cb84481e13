//! Computes the cost of a candidate in bits: how much less likely it makes the continuation than a separate
//! text does.

use std::cell::OnceCell;

use memchr::memmem;

use super::elements;
use super::form::form_penalty;
use super::nesting::TagNesting;
use crate::stitch::candidate::Candidate;
use crate::stitch::indent::IndentStatistics;
use crate::stitch::joint::Joint;
use crate::stitch::repetition::periodicity_cost;
use crate::stitch::seam::AskedFrom;
use crate::stitch::sequence_likelihood::{SequenceLikelihood, is_common};
use crate::stitch::units::{Reading, Units, content_unit};

/// Number of characters after a seam that depend on the text before it.
pub(super) const CHARS_AFTER_SEAM: usize = 8;
/// Number of characters before a seam that are examined.
const CHARS_BEFORE_SEAM: usize = 64;
/// Minimum surprise, in bits, of a repetition that is not periodic.
const MIN_APERIODIC_BITS: f64 = 6.0;
/// Maximum cost, in bits, of another period of a periodic text.
const MAX_PERIOD_BITS: f64 = 3.0;
const MIN_PERIODS: usize = 3;
/// Maximum length of a word, in bytes.
const MAX_WORD_BYTES: usize = 80;
/// Maximum cost of a coincidence, in bits.
const MAX_COINCIDENCE_BITS: f64 = 80.0;

/// Maximum cost, in bits, of the first letters of an element's text, if other elements begin in the same way.
const MAX_BEGINNING_BITS: f64 = 4.0;

/// The data for computing the costs of candidates.
pub(super) struct CostModel<'a> {
    joint: &'a Joint<'a>,
    likeness: &'a SequenceLikelihood,
    indents: IndentStatistics,
    before: Vec<char>,
    nesting: Option<TagNesting>,
    /// Whether the text of an element begins at the cut, in the same way as in other elements.
    begins_element: bool,
    candidates: &'a [Candidate],
    likely_costs: OnceCell<Vec<f64>>,
}

impl<'a> CostModel<'a> {
    pub(super) fn new(
        joint: &'a Joint<'a>,
        likeness: &'a SequenceLikelihood,
        stories: &'a [Candidate],
    ) -> Self {
        let mut before: Vec<char> = joint.initial.chars().rev().take(CHARS_BEFORE_SEAM).collect();
        before.reverse();
        let indents = IndentStatistics::from_sides(joint.initial, joint.continuation);
        let (nesting, begins_element) = (TagNesting::from_joint(joint), elements::text_begins_at_cut(joint));
        let likely = OnceCell::new();
        Self {
            joint,
            likeness,
            indents,
            before,
            nesting,
            begins_element,
            candidates: stories,
            likely_costs: likely,
        }
    }

    /// Returns how much less likely a candidate makes the continuation than a separate text does, in bits.
    pub(super) fn cost(&self, candidate: &Candidate) -> f64 {
        let seam = self
            .seam(candidate, candidate.start)
            .min(self.coincidence(candidate))
            .min(self.seam_limit(candidate));
        let begins = self.begins_element
            && candidate.glue.is_empty()
            && !candidate.added_text(self.joint).starts_with(['<', ' ', '\t', '\n', '\r']);
        let seam = if begins { seam.min(MAX_BEGINNING_BITS) } else { seam }
            .max(self.duplicate_lines_cost(candidate));
        candidate.cost + seam - self.repeated_cost(candidate)
            + form_penalty(self.joint, &self.before, candidate)
            + self.nesting_penalty(candidate)
    }

    /// Returns how unlikely it is, in bits, that `after` follows `before`.
    fn bits(&self, before: &[char], after: &[char]) -> f64 {
        let codes = |text: &[char]| text.iter().copied().map(content_unit).collect::<Vec<u32>>();
        self.likeness.bits(&codes(before), &codes(after))
    }

    /// Returns the penalty for incorrectly nested tags at the seam of a candidate.
    pub(super) fn nesting_penalty(&self, candidate: &Candidate) -> f64 {
        self.nesting.as_ref().map_or(0.0, |nesting| nesting.bits(self.joint, candidate))
    }

    /// Returns the maximum cost of the characters at a seam. It is lower if one side ends between words,
    /// because any word can follow there.
    fn seam_limit(&self, candidate: &Candidate) -> f64 {
        if !candidate.is_clean || self.joint.from != AskedFrom::Cut {
            return f64::INFINITY;
        }
        let part = candidate.added_text(self.joint);
        let ends = self.before.last().is_none_or(|last| !last.is_alphanumeric());
        let begins = !part.starts_with(char::is_alphanumeric) || part.starts_with(char::is_lowercase);
        if ends || begins { 9.0 } else { 12.0 }
    }

    /// Returns the cost, in bits, of the characters after the seam: the cost after the first part, minus the
    /// cost after the text before them in the continuation.
    pub(super) fn seam(&self, candidate: &Candidate, start: usize) -> f64 {
        let part = &self.joint.continuation[start..candidate.end.max(start)];
        if let Some(bits) = self.indentation_seam(candidate.glue, start, part) {
            return bits;
        }
        let rest: Vec<char> = part.chars().take(CHARS_AFTER_SEAM).collect();
        let mut joined = self.before.clone();
        let glue: Vec<char> = candidate.glue.chars().collect();
        let mut bits = self.bits(&joined, &glue);
        joined.extend(&glue);
        bits += self.bits(&joined, &rest);
        bits - self.bits(&self.preceding_characters(start), &rest)
    }

    /// Computes `seam` in the indentation of a line, which does not depend on single characters. Returns
    /// `None` elsewhere.
    fn indentation_seam(&self, glue: &str, start: usize, part: &str) -> Option<f64> {
        let initial = self.joint.initial;
        let line_start = initial.rfind('\n')? + 1;
        let text = part.trim_start_matches([' ', '\t']);
        let indent = [&initial[line_start..], glue, &part[..part.len() - text.len()]].concat();
        if !indent.chars().all(|sign| matches!(sign, ' ' | '\t'))
            || text.starts_with(['\n', '\r'])
            || text.is_empty()
        {
            return None;
        }
        let line_before = initial[..line_start].lines().rev().find(|line| !line.trim().is_empty())?;
        let rest: Vec<char> = part.chars().take(part.len() - text.len() + CHARS_AFTER_SEAM).collect();
        let shown: Vec<char> = text.chars().take(CHARS_AFTER_SEAM).collect();
        let mut joined: Vec<char> = initial[..line_start].chars().rev().take(CHARS_BEFORE_SEAM).collect();
        joined.reverse();
        // Do not count the indentation twice.
        let mut as_before: Vec<char> = joined.clone();
        joined.extend(indent.chars());
        as_before.extend(line_before.chars().take_while(|sign| matches!(sign, ' ' | '\t')));
        let text_bits = self.bits(&joined, &shown).min(self.bits(&as_before, &shown));
        let bits = self.indents.bits(line_before, &indent, text) + text_bits;
        Some(bits - self.bits(&self.preceding_characters(start), &rest))
    }

    /// Returns the characters before a position of the continuation. Before its beginning, the end of a
    /// paragraph is assumed.
    fn preceding_characters(&self, at: usize) -> Vec<char> {
        let mut found: Vec<char> =
            self.joint.continuation[..at].chars().rev().take(CHARS_AFTER_SEAM).collect();
        if found.len() < CHARS_AFTER_SEAM {
            found.extend(['\n', '\n', '.']);
        }
        found.reverse();
        found
    }

    /// Returns the cost of the repeated part as separate text.
    fn repeated_cost(&self, candidate: &Candidate) -> f64 {
        self.own_bits(candidate.text_start, candidate.start)
    }

    /// Returns the cost of a part of the continuation as separate text.
    fn own_bits(&self, start: usize, end: usize) -> f64 {
        let part: Vec<char> = self.joint.continuation[start..end].chars().take(400).collect();
        self.bits(&self.preceding_characters(start), &part).min(MAX_COINCIDENCE_BITS)
    }

    /// Returns the cost of the seam if a longer repetition, which another candidate removes, is a
    /// coincidence. Coincidences are likelier in a text that repeats itself.
    fn coincidence(&self, candidate: &Candidate) -> f64 {
        let initial = self.joint.initial;
        let explains = |other: &&Candidate| {
            other.text_start == candidate.text_start
                && other.repeated_bytes > candidate.repeated_bytes + CHARS_AFTER_SEAM
                && candidate.glue.is_empty()
                // The lines around it determine the cost of an indentation.
                && !initial[initial.len() - other.repeated_bytes..].trim().is_empty()
        };
        let others =
            || self.candidates.iter().zip(self.repetition_costs()).filter(|(other, _)| explains(other));
        let longest = others().max_by_key(|(other, _)| other.repeated_bytes);
        let likeliest = others().min_by(|(_, left), (_, right)| left.total_cmp(right));
        let chance = |other: &Candidate| {
            let as_own = self.own_bits(candidate.start, other.start.max(candidate.start));
            let length = other.repeated_bytes - candidate.repeated_bytes;
            let surprise = self.surprise(length).min(self.periodicity_cost(length, other.start));
            surprise - as_own + self.seam(candidate, other.start)
        };
        let both = [longest, likeliest].into_iter().flatten().map(|(other, _)| chance(other));
        both.fold(f64::INFINITY, f64::min)
    }

    /// Returns the minimum cost of the seam if whole lines would occur twice in a row, although this never
    /// happens elsewhere in the text.
    fn duplicate_lines_cost(&self, story: &Candidate) -> f64 {
        let explains = |other: &&Candidate| {
            other.text_start == story.text_start
                && other.repeated_bytes > 0
                && story.repeated_bytes == 0
                && story.glue.is_empty()
        };
        let others = self.candidates.iter().filter(explains);
        let bits_of = others.filter_map(|other| {
            let rest = &self.joint.continuation[other.start..story.end.max(other.start)];
            let surprise = repeated_lines_cost(self.joint.initial, rest, other.repeated_bytes)?;
            Some(surprise - self.own_bits(story.start, other.start) + self.seam(story, other.start))
        });
        bits_of.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the cost of each candidate, assuming that no repetition is a coincidence.
    fn repetition_costs(&self) -> &[f64] {
        self.likely_costs.get_or_init(|| {
            let cost = |story: &Candidate| match story.repeated_bytes {
                0 => f64::INFINITY,
                _ => story.cost + self.seam(story, story.start) - self.repeated_cost(story),
            };
            self.candidates.iter().map(cost).collect()
        })
    }

    /// Returns how unlikely it is, in bits, that the text repeats its last `length` bytes and then continues
    /// with the text at `start` of the continuation.
    fn periodicity_cost(&self, length: usize, start: usize) -> f64 {
        let codes = &self.joint.units_at(self.joint.initial.len()).codes;
        let initial = self.joint.initial;
        let lag = initial[initial.floor_char_boundary(initial.len() - length)..].chars().count();
        let rest = &self.joint.continuation[start..];
        let after = Units::read(&rest[..rest.floor_char_boundary(length * 2)], Reading::Plain);
        let bits = periodicity_cost(codes, lag, &after.codes).0;
        // If the text was not periodic before, it is unlikely to become periodic here.
        if bits < MIN_APERIODIC_BITS { bits } else { f64::INFINITY }
    }

    /// Returns how unlikely it is, in bits, that the text continues by repeating its last `length` bytes.
    fn surprise(&self, length: usize) -> f64 {
        let text = self.joint.initial;
        let surprise = self.joint.repetition_cost(text.len(), length);
        if surprise < 6.0 {
            // The text has repeated itself in this way before.
            return surprise;
        }
        if self.joint.final_period(length) * MIN_PERIODS <= length {
            return surprise.min(MAX_PERIOD_BITS);
        }
        let bytes = f64::from(u32::try_from(length).unwrap_or(u32::MAX));
        surprise.max((10.0 + 0.7 * bytes).min(40.0))
    }
}

/// Whether a candidate joins two known words into an unknown one. Then a space may have been lost. Words of
/// the text and common words are known.
pub(super) fn may_join_words(joint: &Joint<'_>, story: &Candidate) -> bool {
    let (initial, rest) = (joint.initial, story.added_text(joint));
    let (left, right) = (last_word(initial), first_word(rest));
    let is_word = |word: &str| word.len() <= MAX_WORD_BYTES && word.chars().nth(1).is_some();
    if !story.glue.is_empty() || story.repeated_bytes > 0 || !is_word(left) || !is_word(right) {
        return false;
    }
    let before = &initial[..initial.len() - left.len()];
    let after = &rest[right.len()..];
    let known = |word: &str| has_word(before, word) || has_word(after, word) || is_common(word);
    let is_shouted = left.chars().all(char::is_uppercase) && right.chars().all(char::is_lowercase);
    known(left) && (known(right) || is_shouted) && !known(&[left, right].concat())
}

/// Returns the letters at the end of a text.
fn last_word(text: &str) -> &str {
    &text[text.trim_end_matches(char::is_alphabetic).len()..]
}

fn first_word(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(char::is_alphabetic).len()]
}

/// Whether a word occurs in a text as a whole word.
fn has_word(text: &str, word: &str) -> bool {
    let ends = |sign: Option<char>| sign.is_none_or(|sign| !sign.is_alphabetic());
    memmem::find_iter(text.as_bytes(), word)
        .any(|at| ends(text[..at].chars().next_back()) && ends(text[at + word.len()..].chars().next()))
}

/// Returns how unlikely it is, in bits, that a text repeats its last lines, of `length` bytes, before it
/// continues with `rest`. Returns `None` if the text repeats as many lines elsewhere, or if these lines have
/// little content.
fn repeated_lines_cost(text: &str, rest: &str, length: usize) -> Option<f64> {
    const MIN_REPEATED_BYTES: usize = 20;
    const MAX_LINES: usize = 8;
    const EXAMINED_LINES: usize = 200;
    const NEVER_REPEATED_BITS: f64 = 12.0;
    let repeated = &text[text.floor_char_boundary(text.len() - length)..];
    let count = repeated.matches('\n').take(MAX_LINES + 1).count();
    if repeated.trim().len() < MIN_REPEATED_BYTES || count == 0 || count > MAX_LINES {
        return None;
    }
    let (whole, begun) = text.rsplit_once('\n')?;
    let (goes_on, below) = rest.split_once('\n').unwrap_or((rest, ""));
    let at_seam = [begun, goes_on].concat();
    let mut lines: Vec<&str> = whole.lines().rev().take(EXAMINED_LINES).collect();
    lines.reverse();
    lines.push(&at_seam);
    lines.extend(below.lines().take(EXAMINED_LINES));
    let says_something = |lines: &[&str]| lines.iter().any(|line| line.trim().len() > 2);
    let is_twice = |lines: &[&str]| lines[..count] == lines[count..] && says_something(lines);
    let pairs = || lines.windows(count * 2);
    let checked = f64::from(u32::try_from(pairs().count()).unwrap_or(u32::MAX));
    (!pairs().any(is_twice)).then(|| NEVER_REPEATED_BITS + (checked + 1.0).log2())
}
