//! Computes the evidence for and against a seam in JSON.

use endmark_text::Format;
use memchr::memmem;

use super::doubts::{may_be_neighbours, may_rewrite_token};
use crate::stitch::candidate::Candidate;
use crate::stitch::decision::DecisionSign;
use crate::stitch::joint::Joint;
use crate::stitch::prompt_echo_and_remarks;
use crate::stitch::register::{self, SurroundingText};
use crate::stitch::repetition::periodicity_cost;
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::sequence_likelihood::SequenceLikelihood;
use crate::stitch::survivor::Survivor;
use crate::stitch::units::{Reading, Units, character};

/// Number of characters that are examined on each side of the seam.
pub(super) const EXAMINED_CHARS: usize = 64;
/// Maximum distance, in bytes, between the starts of candidates that compete for the same seam.
const SAME_SEAM_BYTES: usize = 12;
/// Number of units of the first part, and of bytes of the continuation, that are examined.
const EXAMINED_UNITS: usize = 4_000;
const EXAMINED_BYTES_AFTER_SEAM: usize = 1_000;
/// Number of units that are examined after the last start of a survivor.
const UNITS_AFTER_SEAM: usize = 6;
/// Length, in bytes, above which a repetition is judged as a whole.
const LONG_REPETITION_BYTES: usize = 8_192;
/// Maximum number of units that are examined of a part that a survivor does not explain.
const MAX_UNEXPLAINED_UNITS: usize = 512;

/// The data for comparing the survivors of one joint.
pub(super) struct Comparison<'a> {
    joint: &'a Joint<'a>,
    likeness: SequenceLikelihood,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(joint: &'a Joint<'a>, survivors: &[Survivor]) -> Self {
        // After the last start of a survivor, all survivors have the same text.
        let last = survivors.iter().map(|survivor| survivor.candidate.start).max().unwrap_or(0);
        let rest = prompt_echo_and_remarks::beginning(&joint.continuation[last..], EXAMINED_BYTES_AFTER_SEAM);
        let rest = Units::read(rest, reading_at_cut(joint));
        let behind = rest.codes.get(UNITS_AFTER_SEAM..).unwrap_or_default();
        let likeness =
            SequenceLikelihood::read(last_units(&joint.settled_units), behind, reading_at_cut(joint));
        Self { joint, likeness }
    }

    /// Returns how unlikely the text of a survivor is at its seam, in bits.
    pub(super) fn cost(&self, survivor: &Survivor, survivors: &[Survivor]) -> f64 {
        let (unexplained, seam) = self.unexplained_and_seam(survivor, survivors);
        unexplained + seam
    }

    /// Returns how unlikely it is, in bits, that an unrelated text begins with the part that a survivor
    /// removes as a repetition.
    fn coincidence(&self, survivor: &Survivor) -> f64 {
        let own = &survivor.candidate;
        let repeated = &self.joint.initial[own.keep - own.repeated_bytes..own.keep];
        let repeated = &repeated[repeated.ceil_char_boundary(repeated.len().saturating_sub(200))..];
        let codes = self.joint.units_at(own.keep);
        let length = repeated.chars().count().min(codes.len());
        let (before, again) = codes.codes.split_at(codes.len() - length);
        let mut places = memmem::find_iter(&self.joint.initial.as_bytes()[..own.keep], repeated.as_bytes());
        // A part that occurs only once is better explained by repetition than by the statistics of the text.
        let repeated_bytes = if places.nth(1).is_none() { again.len() } else { 0 };
        let repeated_bytes = 1.5 * f64::from(u32::try_from(repeated_bytes).unwrap_or(u32::MAX));
        self.likeness.bits(before, again).max(repeated_bytes).min(30.0)
    }

    /// Returns two costs, in bits: that new text equals the part that other survivors remove as a repetition,
    /// and that this part is followed by the rest.
    fn unexplained_and_seam(&self, survivor: &Survivor, survivors: &[Survivor]) -> (f64, f64) {
        let own = &survivor.candidate;
        let repeated = longest_repetition(survivor, survivors);
        if repeated > LONG_REPETITION_BYTES {
            let surprise = self.joint.repetition_cost(own.keep, repeated);
            return (surprise, 0.0);
        }
        let part = self.seam_units(survivor, survivors);
        let SeamUnits { before, unexplained, rest } = &part;
        let length = f64::from(u32::try_from(unexplained.len()).unwrap_or(u32::MAX));
        let looked_at = &unexplained[..unexplained.len().min(MAX_UNEXPLAINED_UNITS)];
        // For a part that is too long to be a coincidence, the cost per unit is limited.
        let mut surprise = self.likeness.bits(before, looked_at).min(14.0 + length / 8.0);
        if repeated > 0 {
            surprise = surprise.min(self.periodicity_cost(survivor, survivors, &part));
        }
        let rest = &rest[..rest.len().min(UNITS_AFTER_SEAM)];
        let context = [&before[before.len().saturating_sub(EXAMINED_CHARS)..], unexplained].concat();
        // Unusual text is unusual everywhere. Only the difference that the text before it makes is evidence
        // about the seam.
        let joined = self.likeness.bits(&context, rest) - self.likeness.bits(&[], rest);
        (surprise, joined.clamp(-6.0, 12.0))
    }

    /// Returns the units before the seam of a survivor, the units that other survivors remove, and the rest.
    fn seam_units(&self, survivor: &Survivor, survivors: &[Survivor]) -> SeamUnits {
        let joint = self.joint;
        let own = &survivor.candidate;
        // An incomplete escape is not yet a unit, so it is read together with the rest of the escape.
        let half =
            if joint.in_text { &joint.initial[joint.settled_bytes.min(own.keep)..own.keep] } else { "" };
        let before = if joint.in_text {
            last_units(&joint.settled_units)
        } else {
            last_units(joint.units_at(own.keep))
        };
        let shared_end = shared_end(survivor, survivors).max(skip_number(joint, own.start));
        let reach = shared_end - own.start;
        let text =
            prompt_echo_and_remarks::beginning(&joint.continuation[own.start..], reach + reach.max(64) * 2);
        let text = [half, own.glue, text].concat();
        let units = Units::read(&text, reading_at_cut(joint));
        let boundary = half.len() + own.glue.len() + reach;
        // The ends are sorted, so a binary search finds the number of units before the boundary.
        let (mut count, mut above) = (0, units.len() + 1);
        while count + 1 < above {
            let middle = usize::midpoint(count, above);
            if units.units_end(middle) <= boundary { count = middle } else { above = middle }
        }
        let (unexplained, rest) = units.codes.split_at(count);
        // The first digits of a number do not predict its next digits.
        let digits = unexplained.iter().take_while(|code| continues_number(joint, **code)).count();
        SeamUnits {
            before: [before, &unexplained[..digits]].concat(),
            unexplained: unexplained[digits..].to_vec(),
            rest: rest.to_vec(),
        }
    }

    /// Returns how unlikely it is, in bits, that a periodic text continues with the part that other survivors
    /// remove as a repetition.
    fn periodicity_cost(&self, survivor: &Survivor, survivors: &[Survivor], part: &SeamUnits) -> f64 {
        let own = &survivor.candidate;
        let all = [part.unexplained.as_slice(), &part.rest].concat();
        let mut lags: Vec<usize> = survivors
            .iter()
            .map(|other| &other.candidate)
            .filter(|other| {
                other.text_start == own.text_start
                    && other.start > own.start
                    && other.repeated_bytes > own.repeated_bytes
            })
            .map(|other| {
                Units::read(&self.joint.continuation[own.start..other.start], reading_at_cut(self.joint))
                    .len()
            })
            .collect();
        lags.sort_unstable();
        lags.dedup();
        let mut least = f64::INFINITY;
        for lag in lags {
            let after = all.get(lag..).unwrap_or_default();
            let (bits, ahead) = periodicity_cost(&part.before, lag, after);
            let compared_bytes = (lag + ahead).min(part.unexplained.len());
            let more = &part.unexplained[compared_bytes..];
            let more = &more[..more.len().min(MAX_UNEXPLAINED_UNITS)];
            let context = &all[compared_bytes.saturating_sub(EXAMINED_CHARS)..compared_bytes];
            least = least.min(bits + self.likeness.bits(context, more));
        }
        least
    }
}

/// Returns the position in the continuation after which all nearby survivors have the same text.
fn shared_end(survivor: &Survivor, survivors: &[Survivor]) -> usize {
    let own = &survivor.candidate;
    let rivals = survivors
        .iter()
        .map(|other| &other.candidate)
        .filter(|other| other.text_start.abs_diff(own.text_start) <= SAME_SEAM_BYTES);
    rivals.map(|other| other.start).max().unwrap_or(own.start)
}

/// Returns how many more bytes of the first part another survivor removes as a repetition.
fn longest_repetition(survivor: &Survivor, survivors: &[Survivor]) -> usize {
    let own = &survivor.candidate;
    let longest = survivors
        .iter()
        .filter(|other| other.candidate.text_start == own.text_start && other.candidate.keep == own.keep)
        .map(|other| other.candidate.repeated_bytes)
        .max()
        .unwrap_or(0);
    longest.saturating_sub(own.repeated_bytes)
}

/// Returns the last units of a text, at most [`EXAMINED_UNITS`].
fn last_units<'u>(units: &'u Units<'_>) -> &'u [u32] {
    &units.codes[units.codes.len().saturating_sub(EXAMINED_UNITS)..]
}

/// The units around the seam of a survivor.
struct SeamUnits {
    before: Vec<u32>,
    unexplained: Vec<u32>,
    rest: Vec<u32>,
}

/// Whether a character occurs in JSON numbers.
pub(super) fn is_number_character(character: char) -> bool {
    character.is_ascii_digit() || matches!(character, '-' | '+' | '.' | 'e' | 'E')
}

/// Whether a unit continues the number at the cut.
fn continues_number(joint: &Joint<'_>, code: u32) -> bool {
    let unsettled = &joint.initial[joint.settled_bytes..];
    !joint.in_text && unsettled.starts_with(is_number_character) && is_number_character(character(code))
}

/// Returns the position in the continuation after the digits that continue a number.
fn skip_number(joint: &Joint<'_>, start: usize) -> usize {
    let rest = &joint.continuation[start..];
    start + rest.find(|character: char| !continues_number(joint, u32::from(character))).unwrap_or(rest.len())
}

/// Returns how the continuation must be read after the end of the first part.
fn reading_at_cut(joint: &Joint<'_>) -> Reading {
    if joint.in_text { Reading::Content } else { Reading::Structure }
}

/// Cost, in bits, of a text that is valid but unfinished.
pub(in crate::stitch) const UNFINISHED_COST: f64 = 5.0;
/// The same cost if another survivor gives a whole text.
const UNFINISHED_WITH_RIVAL_COST: f64 = 10.0;
/// Maximum length of a small difference, in bytes.
const MAX_SMALL_DIFFERENCE_BYTES: usize = 16;
/// Cost, in bits, of an announcement before a text that does not continue the first part.
const ANNOUNCEMENT_BITS: f64 = 5.0;
/// Returns how unlikely it is, in bits, that the continuation is unrelated. An unrelated text hardly ever
/// ends the document exactly, or begins with the last received words. Text that even the best survivor does
/// not explain counts here, too.
pub(super) fn unexplained_cost(
    joint: &Joint<'_>,
    compared: &Comparison<'_>,
    survivors: &[Survivor],
    best: &Survivor,
) -> f64 {
    let unlikely = match joint.in_text {
        false if best.grammar_state.is_whole() => 18.0,
        false => 14.0,
        // A wrapper around text that ends exactly at the end of the document is intended.
        true if best.grammar_state.is_whole() && best.candidate.is_fenced => 24.0,
        true if best.grammar_state.is_whole() => 20.0,
        true => 11.0,
    };
    // The continuation may be a new set of rows, because every row of JSON Lines is a document.
    let another = joint.format == Format::Jsonl
        && best.candidate.repeated_bytes < joint.initial.len()
        && joint.continuation[best.candidate.text_start..].trim_start().starts_with(['{', '['])
        && first_key(&joint.continuation[best.candidate.text_start..]) != first_key(joint.initial);
    let unlikely = if another && best.candidate.start > best.candidate.text_start { 4.0 } else { unlikely };
    let words = if best.candidate.style == SeamStyle::Preamble { ANNOUNCEMENT_BITS } else { 0.0 };
    let (unexplained, _) = compared.unexplained_and_seam(best, survivors);
    unlikely + words + unexplained.max(0.0) + compared.coincidence(best)
}

/// Returns the beginning of the first row of JSON Lines, up to its first key.
fn first_key(rows: &str) -> Option<String> {
    let (key, _) = rows.lines().next()?.split_once(':')?;
    Some(key.split_whitespace().collect())
}

/// Returns the cost, in bits, of a survivor with an unfinished text.
pub(super) fn unfinished_cost(survivor: &Survivor, survivors: &[Survivor]) -> f64 {
    match survivors.iter().any(|other| other.grammar_state.is_whole()) {
        _ if survivor.grammar_state.is_whole() => 0.0,
        true => UNFINISHED_WITH_RIVAL_COST,
        false => UNFINISHED_COST,
    }
}

/// Whether a survivor removes a repetition of the last rows, although the model knew where to continue and
/// the continuation fits there unchanged.
pub(super) fn repeats_rows_needlessly(
    joint: &Joint<'_>,
    survivor: &Survivor,
    survivors: &[Survivor],
) -> bool {
    let own = &survivor.candidate;
    let fits = |other: &Survivor| {
        let candidate = &other.candidate;
        candidate.text_start == own.text_start
            && candidate.start == own.text_start
            && candidate.glue.is_empty()
            && (other.grammar_state.is_whole() || !survivor.grammar_state.is_whole())
    };
    // The repeated part may be shorter than the period. At the beginning of a document, fewer rows are
    // available.
    let rows = (own.repeated_bytes * 4).min(own.repeated_bytes.max(joint.initial.len() / 2));
    joint.from != AskedFrom::Unknown
        && !joint.in_text
        && own.repeated_bytes > 0
        && own.repeated_bytes < joint.initial.len()
        && joint.final_period(rows) * 2 <= rows
        && survivors.iter().any(fits)
}

/// Returns the signs of a survivor that depend on its rivals.
pub(super) fn comparative_signs(
    joint: &Joint<'_>,
    survivors: &[Survivor],
    identities: &[u128],
    best: usize,
) -> impl Iterator<Item = DecisionSign> + use<> {
    let own = &survivors[best].candidate;
    let other_is_whole = survivors.iter().zip(identities).any(|(other, identity)| {
        let rival = &other.candidate;
        let is_clean =
            rival.keep == joint.initial.len() && rival.start == rival.text_start && rival.glue.is_empty();
        is_clean && other.grammar_state.is_whole() && *identity != identities[best]
    });
    let writes_anew = own.keep < joint.initial.len() && joint.in_text;
    let changes = own.start > own.text_start || !own.glue.is_empty() || own.style == SeamStyle::Whitespace;
    let is_little = other_is_whole && repeats_little(joint, own) && (changes || writes_anew);
    let is_twice = own.repeated_bytes > 0 || own.style == SeamStyle::Ellipsis;
    // Whether the number of equal rows is unknown.
    let goes_round = || {
        joint.from == AskedFrom::Unknown
            && !joint.in_text
            && survivors.iter().any(|other| {
                let rival = &other.candidate;
                other.grammar_state.is_whole()
                    && rival.text_start == own.text_start
                    && rival.repeated_bytes != own.repeated_bytes
                    && joint.is_periodic(rival.repeated_bytes.max(own.repeated_bytes))
            })
    };
    let signs = [
        (DecisionSign::GoesRound, goes_round()),
        (DecisionSign::OtherIsWhole, other_is_whole),
        (DecisionSign::OtherIsWholeBesideLittle, is_little),
        (DecisionSign::OtherIsWholeBesideTwice, is_little && is_twice),
        (DecisionSign::MayBeAnew, may_rewrite_token(joint, survivors, &survivors[best])),
        (DecisionSign::Neighbours, survivors.iter().any(|survivor| may_be_neighbours(joint, survivor))),
        (DecisionSign::Alone, identities.iter().all(|identity| *identity == identities[best])),
    ];
    signs.into_iter().filter(|(_, holds)| *holds).map(|(sign, _)| sign)
}

/// Whether a candidate removes only a few bytes or letters as a repetition.
fn repeats_little(joint: &Joint<'_>, own: &Candidate) -> bool {
    const FEW_LETTERS: usize = 3;
    let again = &joint.initial[own.keep - own.repeated_bytes..own.keep];
    let has_few = || {
        let units = Units::read(again, reading_at_cut(joint));
        units.chars(0..units.len()).filter(|sign| sign.is_alphanumeric()).take(FEW_LETTERS).count()
            < FEW_LETTERS
    };
    again.len() < MAX_SMALL_DIFFERENCE_BYTES || again.len() < MAX_SMALL_DIFFERENCE_BYTES * 4 && has_few()
}

/// Returns the evidence, in bits, that the text at `start` of the continuation is a new answer and not part
/// of the open string.
pub(super) fn separate_answer_evidence(
    joint: &Joint<'_>,
    around: &SurroundingText,
    before: &[char],
    start: usize,
) -> f64 {
    let last = before.iter().rev().find(|sign| !sign.is_whitespace());
    let in_sentence =
        last.is_some_and(|sign| sign.is_alphanumeric() || matches!(sign, ',' | '(' | '\'' | '-'));
    // A continuation of a string contains the space before its first word. A new answer does not begin with a
    // space.
    let set_off = joint.continuation[start..].starts_with(char::is_whitespace);
    let answers = register::answer_evidence(joint, around, start);
    match if start == 0 { announcement_evidence(joint, around).max(answers) } else { answers } {
        bits if !set_off => (2.0 * bits - 4.0).clamp(0.0, 18.0),
        bits if in_sentence => (bits - 2.0).clamp(0.0, 7.0),
        bits => (bits - 4.0).clamp(0.0, 5.0),
    }
}

/// Returns the evidence, in bits, that the first sentence or line of a continuation is an announcement.
fn announcement_evidence(joint: &Joint<'_>, around: &SurroundingText) -> f64 {
    let start = joint.continuation.len() - joint.continuation.trim_start().len();
    let line = prompt_echo_and_remarks::beginning(&joint.continuation[start..], register::MAX_REMARK_BYTES);
    let line = line.lines().next().unwrap_or_default();
    let closes =
        |character: char| matches!(character, ':' | '.' | '!' | '\u{2026}' | '\u{2014}' | ']' | ')' | '*');
    let wide = |character: char| matches!(character, '\u{ff1a}' | '\u{3002}' | '\u{ff01}');
    let ends = line.char_indices().map(|(at, sign)| (at + sign.len_utf8(), sign));
    let ends = ends.filter(|(end, sign)| {
        wide(*sign) || closes(*sign) && (line[*end..].starts_with(' ') || *end == line.len())
    });
    let ends = ends.map(|(end, _)| end).take(3);
    let bits = ends.map(|end| register::announcement_bits(joint, around, &line[..end], start + end, ""));
    bits.fold(0.0, f64::max)
}
