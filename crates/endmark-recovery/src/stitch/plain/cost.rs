//! Computes the cost of a story in bits: how much less likely it makes the continuation than a separate text does.

use std::cell::OnceCell;

use memchr::memmem;

use super::elements;
use super::form::form;
use super::nesting::Nesting;
use crate::stitch::candidate::Candidate;
use crate::stitch::indent::Indents;
use crate::stitch::joint::Joint;
use crate::stitch::likeness::{Likeness, is_common};
use crate::stitch::repetition::periodicity_cost;
use crate::stitch::seam::AskedFrom;
use crate::stitch::units::{Reading, Units, content};

/// Number of characters after a seam that depend on the text before it.
pub(super) const REACH: usize = 8;
/// Characters before a seam that are examined.
const BEFORE: usize = 64;
/// Surprise in bits from which a repetition is not periodic.
const MIN_APERIODIC_BITS: f64 = 6.0;
/// The most that another period of a periodic text costs, in bits.
const MAX_PERIOD_BITS: f64 = 3.0;
const ROUNDS: usize = 3;
/// The longest word, in bytes.
const LONG_WORD: usize = 80;
/// The most that a coincidence counts, in bits.
const MAX_BITS: f64 = 80.0;

/// Maximum cost in bits of the first letters of an element's text, if other elements begin in the same way.
const MAX_BEGINNING_BITS: f64 = 4.0;

/// The data for weighing a story.
pub(super) struct Scale<'a> {
    joint: &'a Joint<'a>,
    likeness: &'a Likeness,
    indents: Indents,
    before: Vec<char>,
    nesting: Option<Nesting>,
    /// Whether the text of an element begins at the cut in the same way as that of other elements.
    begins_element: bool,
    stories: &'a [Candidate],
    likely_costs: OnceCell<Vec<f64>>,
}

impl<'a> Scale<'a> {
    pub(super) fn new(joint: &'a Joint<'a>, likeness: &'a Likeness, stories: &'a [Candidate]) -> Self {
        let mut before: Vec<char> = joint.initial.chars().rev().take(BEFORE).collect();
        before.reverse();
        let indents = Indents::from_sides(joint.initial, joint.continuation);
        let (nesting, begins_element) = (Nesting::from_joint(joint), elements::begin_at_cut(joint));
        let likely = OnceCell::new();
        Self { joint, likeness, indents, before, nesting, begins_element, stories, likely_costs: likely }
    }

    /// Returns how much less likely a story makes the continuation than a separate text does, in bits.
    pub(super) fn cost(&self, story: &Candidate) -> f64 {
        let seam = self.seam(story, story.start).min(self.coincidence(story)).min(self.seam_limit(story));
        let begins = self.begins_element
            && story.glue.is_empty()
            && !story.added_text(self.joint).starts_with(['<', ' ', '\t', '\n', '\r']);
        let seam = if begins { seam.min(MAX_BEGINNING_BITS) } else { seam }.max(self.same_lines(story));
        story.cost + seam - self.repeated_cost(story)
            + form(self.joint, &self.before, story)
            + self.nesting_penalty(story)
    }

    /// Returns how unlikely it is, in bits, that the second characters follow the first.
    fn bits(&self, before: &[char], after: &[char]) -> f64 {
        let codes = |text: &[char]| text.iter().copied().map(content).collect::<Vec<u32>>();
        self.likeness.bits(&codes(before), &codes(after))
    }

    /// Returns the penalty for tags that a story leaves badly nested.
    pub(super) fn nesting_penalty(&self, story: &Candidate) -> f64 {
        self.nesting.as_ref().map_or(0.0, |nesting| nesting.bits(self.joint, story))
    }

    /// Returns the maximum cost of the characters at a seam. If one side ends between words, any text can follow.
    fn seam_limit(&self, story: &Candidate) -> f64 {
        if !story.is_clean || self.joint.from != AskedFrom::Cut {
            return f64::INFINITY;
        }
        let part = story.added_text(self.joint);
        let ends = self.before.last().is_none_or(|last| !last.is_alphanumeric());
        let begins = !part.starts_with(char::is_alphanumeric) || part.starts_with(char::is_lowercase);
        if ends || begins { 9.0 } else { 12.0 }
    }

    /// Returns the evidence of the characters after the seam: against following the first part, and for following the
    /// text before them in the continuation.
    pub(super) fn seam(&self, story: &Candidate, start: usize) -> f64 {
        let part = &self.joint.continuation[start..story.end.max(start)];
        if let Some(bits) = self.indentation_seam(story.glue, start, part) {
            return bits;
        }
        let rest: Vec<char> = part.chars().take(REACH).collect();
        let mut joined = self.before.clone();
        let glue: Vec<char> = story.glue.chars().collect();
        let mut bits = self.bits(&joined, &glue);
        joined.extend(&glue);
        bits += self.bits(&joined, &rest);
        bits - self.bits(&self.preceding_characters(start), &rest)
    }

    /// Returns the same as `seam` within the indentation of a line, which does not depend on single characters.
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
        let rest: Vec<char> = part.chars().take(part.len() - text.len() + REACH).collect();
        let shown: Vec<char> = text.chars().take(REACH).collect();
        let mut joined: Vec<char> = initial[..line_start].chars().rev().take(BEFORE).collect();
        joined.reverse();
        // The indentation of a line is judged only once.
        let mut as_before: Vec<char> = joined.clone();
        joined.extend(indent.chars());
        as_before.extend(line_before.chars().take_while(|sign| matches!(sign, ' ' | '\t')));
        let text_bits = self.bits(&joined, &shown).min(self.bits(&as_before, &shown));
        let bits = self.indents.bits(line_before, &indent, text) + text_bits;
        Some(bits - self.bits(&self.preceding_characters(start), &rest))
    }

    /// Returns the characters before a position of the continuation. At its beginning, returns a paragraph end.
    fn preceding_characters(&self, at: usize) -> Vec<char> {
        let mut found: Vec<char> = self.joint.continuation[..at].chars().rev().take(REACH).collect();
        if found.len() < REACH {
            found.extend(['\n', '\n', '.']);
        }
        found.reverse();
        found
    }

    /// Returns the cost of the repeated part as separate text.
    fn repeated_cost(&self, story: &Candidate) -> f64 {
        self.own_bits(story.opening, story.start)
    }

    /// Returns the cost of a part of the continuation as separate text.
    fn own_bits(&self, start: usize, end: usize) -> f64 {
        let part: Vec<char> = self.joint.continuation[start..end].chars().take(400).collect();
        self.bits(&self.preceding_characters(start), &part).min(MAX_BITS)
    }

    /// Returns the cost of the seam if a longer repeated part, which another story explains, is a coincidence. That
    /// is likelier in a text that repeats itself.
    fn coincidence(&self, story: &Candidate) -> f64 {
        let initial = self.joint.initial;
        let explains = |other: &&Candidate| {
            other.opening == story.opening
                && other.repeated > story.repeated + REACH
                && story.glue.is_empty()
                // Indentation is judged by the lines around it.
                && !initial[initial.len() - other.repeated..].trim().is_empty()
        };
        let others = || self.stories.iter().zip(self.likely_costs()).filter(|(other, _)| explains(other));
        let longest = others().max_by_key(|(other, _)| other.repeated);
        let likeliest = others().min_by(|(_, left), (_, right)| left.total_cmp(right));
        let chance = |other: &Candidate| {
            let as_own = self.own_bits(story.start, other.start.max(story.start));
            let length = other.repeated - story.repeated;
            let surprise = self.surprise(length).min(self.periodicity_cost(length, other.start));
            surprise - as_own + self.seam(story, other.start)
        };
        let both = [longest, likeliest].into_iter().flatten().map(|(other, _)| chance(other));
        both.fold(f64::INFINITY, f64::min)
    }

    /// Returns the minimum cost of the seam for a story in which whole lines occur twice in a row, if the text never
    /// has that.
    fn same_lines(&self, story: &Candidate) -> f64 {
        let explains = |other: &&Candidate| {
            other.opening == story.opening
                && other.repeated > 0
                && story.repeated == 0
                && story.glue.is_empty()
        };
        let others = self.stories.iter().filter(explains);
        let bits_of = others.filter_map(|other| {
            let rest = &self.joint.continuation[other.start..story.end.max(other.start)];
            let surprise = repeated_lines_cost(self.joint.initial, rest, other.repeated)?;
            Some(surprise - self.own_bits(story.start, other.start) + self.seam(story, other.start))
        });
        bits_of.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the cost of each story if no repetition is a coincidence.
    fn likely_costs(&self) -> &[f64] {
        self.likely_costs.get_or_init(|| {
            let cost = |story: &Candidate| match story.repeated {
                0 => f64::INFINITY,
                _ => story.cost + self.seam(story, story.start) - self.repeated_cost(story),
            };
            self.stories.iter().map(cost).collect()
        })
    }

    /// Returns how unlikely it is, in bits, that the text repeats its last `length` bytes and then continues with the
    /// text at this position of the continuation.
    fn periodicity_cost(&self, length: usize, start: usize) -> f64 {
        let codes = &self.joint.units_at(self.joint.initial.len()).codes;
        let initial = self.joint.initial;
        let lag = initial[initial.floor_char_boundary(initial.len() - length)..].chars().count();
        let rest = &self.joint.continuation[start..];
        let after = Units::read(&rest[..rest.floor_char_boundary(length * 2)], Reading::Plain);
        let bits = periodicity_cost(codes, lag, &after.codes).0;
        // A text that is not periodic would have to become periodic here.
        if bits < MIN_APERIODIC_BITS { bits } else { f64::INFINITY }
    }

    /// Returns how unlikely it is, in bits, that the text continues by repeating its last `length` bytes.
    fn surprise(&self, length: usize) -> f64 {
        let text = self.joint.initial;
        let surprise = self.joint.repetition_cost(text.len(), length);
        if surprise < 6.0 {
            // The text has done so before.
            return surprise;
        }
        if self.joint.final_period(length) * ROUNDS <= length {
            return surprise.min(MAX_PERIOD_BITS);
        }
        let bytes = f64::from(u32::try_from(length).unwrap_or(u32::MAX));
        surprise.max((10.0 + 0.7 * bytes).min(40.0))
    }
}

/// Whether a story joins two words to an unknown one, although both are words of the text or of general texts. In
/// that case a space may have been lost.
pub(super) fn may_glue(joint: &Joint<'_>, story: &Candidate) -> bool {
    let (initial, rest) = (joint.initial, story.added_text(joint));
    let (left, right) = (last_word(initial), first_word(rest));
    let is_word = |word: &str| word.len() <= LONG_WORD && word.chars().nth(1).is_some();
    if !story.glue.is_empty() || story.repeated > 0 || !is_word(left) || !is_word(right) {
        return false;
    }
    let before = &initial[..initial.len() - left.len()];
    let after = &rest[right.len()..];
    let known = |word: &str| has_word(before, word) || has_word(after, word) || is_common(word);
    let is_shouted = left.chars().all(char::is_uppercase) && right.chars().all(char::is_lowercase);
    known(left) && (known(right) || is_shouted) && !known(&[left, right].concat())
}

/// Returns the last letters of a text and the first letters of another.
fn last_word(text: &str) -> &str {
    &text[text.trim_end_matches(char::is_alphabetic).len()..]
}

fn first_word(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(char::is_alphabetic).len()]
}

/// Whether a word occurs in a text by itself.
fn has_word(text: &str, word: &str) -> bool {
    let ends = |sign: Option<char>| sign.is_none_or(|sign| !sign.is_alphabetic());
    memmem::find_iter(text.as_bytes(), word)
        .any(|at| ends(text[..at].chars().next_back()) && ends(text[at + word.len()..].chars().next()))
}

/// Returns how unlikely it is, in bits, that a text repeats its last lines of `length` bytes before it continues with
/// `rest`. Returns `None` if the text repeats as many lines elsewhere, or if these lines have little content.
fn repeated_lines_cost(text: &str, rest: &str, length: usize) -> Option<f64> {
    const LEAST: usize = 20;
    const MAX_LINES: usize = 8;
    const REACH: usize = 200;
    const NEVER: f64 = 12.0;
    let repeated = &text[text.floor_char_boundary(text.len() - length)..];
    let count = repeated.matches('\n').take(MAX_LINES + 1).count();
    if repeated.trim().len() < LEAST || count == 0 || count > MAX_LINES {
        return None;
    }
    let (whole, begun) = text.rsplit_once('\n')?;
    let (goes_on, below) = rest.split_once('\n').unwrap_or((rest, ""));
    let at_seam = [begun, goes_on].concat();
    let mut lines: Vec<&str> = whole.lines().rev().take(REACH).collect();
    lines.reverse();
    lines.push(&at_seam);
    lines.extend(below.lines().take(REACH));
    let says_something = |lines: &[&str]| lines.iter().any(|line| line.trim().len() > 2);
    let is_twice = |lines: &[&str]| lines[..count] == lines[count..] && says_something(lines);
    let pairs = || lines.windows(count * 2);
    let checked = f64::from(u32::try_from(pairs().count()).unwrap_or(u32::MAX));
    (!pairs().any(is_twice)).then(|| NEVER + (checked + 1.0).log2())
}
