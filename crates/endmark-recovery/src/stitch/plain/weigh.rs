//! Weighs the candidates of a text without a grammar, and decides whether the evidence is sufficient.

use endmark_text::Format;

use super::cost::{CHARS_AFTER_SEAM, CostModel, may_join_words};
use super::unexplained::separate_text_cost;
use crate::stitch::candidate::Candidate;
use crate::stitch::decision::{self, DecisionSign, SeamLead};
use crate::stitch::evidence::{SupportedValue, weight};
use crate::stitch::joint::{ContinuationMode, Joint};
use crate::stitch::register::SurroundingText;
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::sequence_likelihood::SequenceLikelihood;
use crate::stitch::units::{Reading, Units};
use crate::stitch::{fence, quotation};

/// Minimum share of the evidence with which a clean continuation at the requested cut wins against a likelier
/// candidate.
const MIN_CLEAN_SHARE: f64 = 0.13;
/// Minimum share of the best end among all possible ends of its seam. Keeping a remark costs less than a
/// wrong seam.
const MIN_END_SHARE: f64 = 0.95;
/// Minimum cost of a seam, in bits, at which the continuation does not fit the text before it.
const MAX_UNLIKENESS_BITS: f64 = 6.0;
/// Minimum evidence, in bits, of an announcement, however well the text after it fits.
const MIN_ANNOUNCEMENT_BITS: f64 = -3.0;
/// Penalty, in bits, for removing a period of a periodic text.
const PERIOD_PENALTY_BITS: f64 = 400.0;
/// Number of characters before and after a seam that are read.
const CHARS_BEFORE_SEAM: usize = 10_000;
const MAX_UNITS_AFTER_SEAM: usize = 6_000;
/// Maximum length, in bytes, of text at the ends of a continuation that may not belong to the text.
const MAX_DOUBTFUL_BYTES: usize = 400;

/// Reads the text on both sides of the seam, except for the doubtful ends of the continuation, which would
/// support themselves.
pub(super) fn likeness(joint: &Joint<'_>) -> SequenceLikelihood {
    let text = joint.continuation;
    let line = text.trim_start().split('\n').next().unwrap_or_default();
    let blank = text.len() - text.trim_start().len();
    let behind = if line.starts_with(char::is_lowercase) {
        CHARS_AFTER_SEAM * 2
    } else {
        blank + line.len().min(MAX_DOUBTFUL_BYTES) + CHARS_AFTER_SEAM * 2
    };
    let body = &text[text.ceil_char_boundary(behind.min(text.len()))..];
    let kept = body.trim_end();
    let places = [kept.rfind("\n\n"), kept.rfind('\n')];
    let last = places.into_iter().flatten().find(|at| kept.len() - at <= MAX_DOUBTFUL_BYTES);
    let rest = Units::read_up_to(&body[..last.unwrap_or(body.len())], Reading::Plain, MAX_UNITS_AFTER_SEAM);
    let before = &joint.units_at(joint.initial.len()).codes;
    SequenceLikelihood::read(
        &before[before.len().saturating_sub(CHARS_BEFORE_SEAM)..],
        &rest.codes,
        Reading::Plain,
    )
}

/// Weighs all candidates. Returns `None` for an empty list.
pub(super) fn weigh(
    joint: &Joint<'_>,
    likeness: &SequenceLikelihood,
    around: &SurroundingText,
    stories: &[Candidate],
) -> Option<SupportedValue> {
    let (costs, continues, nesting) = {
        let scale = CostModel::new(joint, likeness, stories);
        let continues = |story: &Candidate| {
            story.repeated_bytes == 0 && scale.seam(story, story.start) < MAX_UNLIKENESS_BITS
        };
        let (costs, continues): (Vec<f64>, Vec<bool>) =
            stories.iter().map(|story| (scale.cost(story), continues(story))).unzip();
        (costs, continues, stories.iter().map(|story| scale.nesting_penalty(story)).collect::<Vec<f64>>())
    };
    let rounds: Vec<bool> = stories.iter().map(|story| joint.is_periodic(story.repeated_bytes)).collect();
    let costs = with_period_penalties(joint, stories, &rounds, &continues, costs);
    let best = (0..stories.len()).min_by(|left, right| costs[*left].total_cmp(&costs[*right]))?;
    let mut values: Vec<(usize, f64)> = Vec::new();
    for (index, cost) in costs.iter().enumerate() {
        let weight = weight(*cost);
        match values.iter_mut().find(|(other, _)| has_same_text(joint, &stories[*other], &stories[index])) {
            Some((_, sum)) => *sum += weight,
            None => values.push((index, weight)),
        }
    }
    let nothing_bits = separate_text_cost(joint, around, &stories[best], costs[best]);
    let nothing = weight(nothing_bits);
    let total = values.iter().map(|(_, weight)| weight).sum::<f64>() + nothing;
    let weight_of = |index: usize| {
        let same = values.iter().find(|(other, _)| has_same_text(joint, &stories[*other], &stories[index]));
        same.map_or(0.0, |(_, weight)| *weight)
    };
    let asked = stories.iter().position(|story| story.is_clean).filter(|_| joint.from == AskedFrom::Cut);
    // If it was requested, a clean continuation wins ties.
    let best = asked
        .filter(|clean| weight_of(*clean) >= min_clean_share(&stories[best]) * total && nothing < total / 2.0)
        .unwrap_or(best);
    let own = weight_of(best);
    let is_same_seam = |(other, _): &&(usize, f64)| has_same_seam(joint, &stories[*other], &stories[best]);
    let seam: f64 = values.iter().filter(is_same_seam).map(|(_, weight)| weight).sum();
    let ahead = seam_lead(joint, stories, &values, (best, seam), nothing);
    let candidate = &stories[best];
    let signs =
        decision::candidate_signs(joint, candidate, candidate.end < joint.continuation.trim_end().len());
    let may_go_round = may_be_periodic(joint, stories, &rounds, best, continues[best]);
    let probability = decision::probability(&signs, ahead);
    // If a clean join would nest tags incorrectly, it was not intended.
    let is_broken = asked.is_some_and(|clean| nesting[clean] > nesting[best]);
    let is_tie = joint.has_lost_character
        || ahead.may_be_nothing()
        || rounds[best]
        || candidate.style == SeamStyle::Preamble && candidate.announcement_bits < MIN_ANNOUNCEMENT_BITS
        || may_go_round
        || !is_broken && removes_few_words(joint, candidate)
        || is_guessed(joint, candidate);
    let cost = match candidate.is_clean && joint.from == AskedFrom::Cut {
        true => decision::COST_OF_WRONG_AS_ASKED,
        false if may_be_own_block(joint, candidate) || signs.contains(&DecisionSign::Spaced) => {
            decision::COST_OF_WRONG_ONCE_SENT
        }
        false => decision::COST_OF_WRONG,
    };
    Some(SupportedValue {
        best,
        confidence: if joint.has_lost_character { probability.min(0.5) } else { probability },
        alternatives: values.len() - 1,
        is_likelier_unrelated: nothing > own,
        is_tie,
        is_open_at_end: own < MIN_END_SHARE * seam,
        cost,
        #[cfg(feature = "fit")]
        row: decision::feature_row(&signs, ahead),
        costs,
        nothing: nothing_bits,
    })
}

/// Returns the costs of all candidates, with a penalty for removing a period of the text.
fn with_period_penalties(
    joint: &Joint<'_>,
    stories: &[Candidate],
    rounds: &[bool],
    continues: &[bool],
    costs: Vec<f64>,
) -> Vec<f64> {
    // A model that knows where to continue is not assumed to repeat a period.
    let is_prompted = |candidate: &Candidate| match joint.from {
        AskedFrom::Cut => true,
        AskedFrom::Token => candidate.repeated_bytes < joint.initial.len(),
        AskedFrom::Unknown => false,
    };
    // This is least likely if a clean continuation fits at the requested cut. Then whitespace was not added
    // before the repetition either.
    let is_clean = joint.from == AskedFrom::Cut
        && stories.iter().zip(rounds).any(|(story, round)| *round && repeats_enough(joint, story))
        && stories.iter().zip(continues).any(|(story, continues)| story.is_clean && *continues);
    let excluded = |candidate: &Candidate| {
        // A repetition of the whole text is not a period of it.
        is_clean
            && candidate.start > 0
            && candidate.repeated_bytes < joint.initial.len()
            && joint.continuation[..candidate.text_start].trim().is_empty()
    };
    (stories.iter().zip(rounds).zip(costs))
        .map(
            |((story, round), cost)| {
                if *round && is_prompted(story) || excluded(story) {
                    cost + PERIOD_PENALTY_BITS
                } else {
                    cost
                }
            },
        )
        .collect()
}

/// Returns the lead of a candidate over its rivals.
fn seam_lead(
    joint: &Joint<'_>,
    stories: &[Candidate],
    values: &[(usize, f64)],
    (best, own): (usize, f64),
    nothing: f64,
) -> SeamLead {
    // A clean continuation at the requested cut wins against whitespace, and against less likely repetitions
    // and quotations.
    let is_asked = stories[best].is_clean && joint.from == AskedFrom::Cut;
    let last_line = joint.initial.rsplit('\n').next().unwrap_or_default();
    let in_indentation = !last_line.is_empty() && last_line.trim().is_empty();
    let is_rival = |(other, weight): &&(usize, f64)| {
        let yields = is_asked
            && match stories[*other].style {
                // In an indentation, the neighbouring lines show how much whitespace is needed.
                SeamStyle::Whitespace => !in_indentation,
                SeamStyle::Overlap | SeamStyle::Quotation | SeamStyle::Restart => *weight <= own,
                _ => false,
            };
        !yields && !has_same_seam(joint, &stories[*other], &stories[best])
    };
    let others = values.iter().filter(is_rival).map(|(_, weight)| *weight);
    SeamLead::from_weights(own, others.clone().sum(), others.fold(0.0, f64::max), nothing)
}

/// Whether another candidate removes more or fewer periods of the text. Their number is unknown, unless the
/// requested position is known and the continuation fits there.
fn may_be_periodic(
    joint: &Joint<'_>,
    stories: &[Candidate],
    rounds: &[bool],
    best: usize,
    continues: bool,
) -> bool {
    let own = &stories[best];
    let rival = |candidate: &Candidate| {
        candidate.text_start == own.text_start
            && candidate.repeated_bytes != own.repeated_bytes
            && repeats_enough(joint, candidate)
    };
    let has_rivals = || stories.iter().zip(rounds).any(|(story, round)| *round && rival(story));
    // A model that wraps its answer in a fence may begin the text or its code block again.
    let begins_anew = own.is_fenced && (joint.fence_is_open || joint.is_periodic(joint.initial.len()));
    let asked = match joint.from {
        AskedFrom::Unknown => false,
        // If the continuation does not fit unchanged, the model did not follow the request.
        AskedFrom::Cut | AskedFrom::Token => continues && !begins_anew,
    };
    own.repeated_bytes < joint.initial.len() && !asked && has_rivals()
}

/// Whether a candidate removes only line ends as a repetition. A blank line may belong to the text.
fn repeats_line_end(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    let repeated = &joint.initial[joint.initial.len() - candidate.repeated_bytes..];
    !repeated.is_empty() && repeated.trim_matches(['\r', '\n']).is_empty()
}

/// Whether a text consists only of two or more fence lines.
fn is_only_fences(text: &str) -> bool {
    let lines = fence::line_count(text);
    lines > 1 && lines == text.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Whether a clean continuation begins with a fence that may be a wrapper or part of the text. At the
/// requested cut, or if the text announces a block, the fence belongs to the text.
fn may_be_wrapped(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    let line = joint.continuation.trim_start().lines().next().unwrap_or_default().trim_end();
    let begins = fence::opening_line_end(joint.continuation).is_some()
        && if joint.fence_is_open {
            // The closing fence of a block in the text has the same length as its opening fence.
            fence::rest_after_closing(line).is_none()
                || !joint.initial.contains(line)
                || is_only_fences(joint.continuation)
        } else {
            !joint.announces_block()
        };
    candidate.is_clean && joint.from != AskedFrom::Cut && begins
}

/// Whether a fence after an announcement may belong to the text, because the Markdown text ends in a blank
/// line.
fn may_be_own_block(joint: &Joint<'_>, story: &Candidate) -> bool {
    let is_fenced = story.is_fenced && story.style == SeamStyle::Preamble;
    is_fenced && joint.format == Format::Markdown && joint.initial.ends_with("\n\n")
}

/// Whether a candidate keeps a first line that is a sentence in brackets. Such a line is a remark about the
/// text, and not code.
fn begins_with_bracketed_remark(joint: &Joint<'_>, story: &Candidate) -> bool {
    let line = joint.continuation.lines().next().unwrap_or_default().trim();
    let inside = |open: char, close: char| line.strip_prefix(open)?.strip_suffix(close);
    let repeated_chars = inside('(', ')').or_else(|| inside('[', ']')).unwrap_or_default();
    let words = repeated_chars.trim_end_matches(['.', '\u{2026}', ':']);
    story.start == 0
        && words.len() < repeated_chars.len()
        && words.contains(char::is_alphabetic)
        && words.chars().all(|sign| sign.is_alphabetic() || matches!(sign, ' ' | ',' | '\''))
}

/// Whether the repeated part of a candidate is more than a few characters.
fn repeats_enough(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    let repeated_chars = || joint.initial[joint.initial.len() - candidate.repeated_bytes..].chars();
    repeated_chars().filter(|sign| sign.is_alphanumeric()).nth(2).is_some()
        || repeated_chars().filter(|sign| !sign.is_whitespace()).nth(7).is_some()
}

/// Whether a candidate removes a few words although the cut was requested. Two equal neighbours are common.
fn removes_few_words(joint: &Joint<'_>, story: &Candidate) -> bool {
    joint.from == AskedFrom::Cut && (1..decision::MAX_SMALL_OVERLAP_BYTES).contains(&story.repeated_bytes)
}

/// Returns the minimum share with which a clean continuation at the requested cut wins against a likelier
/// candidate. It is a majority if that candidate removes a remark or text at the start.
fn min_clean_share(likelier: &Candidate) -> f64 {
    let is_shortened =
        likelier.repeated_bytes == 0 && likelier.start > 0 || likelier.style == SeamStyle::Remark;
    if is_shortened { 0.5 } else { MIN_CLEAN_SHARE }
}

/// Whether a candidate is a guess: a restart with different whitespace, a quotation within a word, two joined
/// words, or a fence, remark or line end that may not belong to the text.
pub(super) fn is_guessed(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    // After a restart with different whitespace, the rest has different whitespace, too.
    let again = joint.continuation[candidate.text_start..candidate.start].trim_start();
    let reflowed = candidate.repeated_bytes == joint.initial.len() && again != joint.initial.trim_start();
    let breaks_word = quotation::breaks_word(joint.initial, candidate.added_text(joint));
    candidate.glue.is_empty() && (reflowed || breaks_word)
        || may_be_wrapped(joint, candidate)
        || begins_with_bracketed_remark(joint, candidate)
        || repeats_line_end(joint, candidate)
        || joint.mode != ContinuationMode::ByMessage && may_join_words(joint, candidate)
}

/// Whether two candidates have the same seam: one of the texts begins with the other.
fn has_same_seam(joint: &Joint<'_>, left: &Candidate, right: &Candidate) -> bool {
    let (one, other) = (left.added_text(joint), right.added_text(joint));
    left.glue == right.glue && (one.starts_with(other) || other.starts_with(one))
        || has_same_text(joint, left, right)
}

/// Whether two candidates give the same text.
fn has_same_text(joint: &Joint<'_>, left: &Candidate, right: &Candidate) -> bool {
    let (one, other) = (left.added_text(joint), right.added_text(joint));
    if left.glue == right.glue {
        return one == other;
    }
    one.len() + left.glue.len() == other.len() + right.glue.len()
        && left.glue.chars().chain(one.chars()).eq(right.glue.chars().chain(other.chars()))
}
