//! Weighs the stories of a text without grammar, and decides whether the evidence suffices.

use endmark_text::Format;

use super::cost::{REACH, Scale, may_glue};
use super::unexplained::separate_text_cost;
use crate::stitch::candidate::Candidate;
use crate::stitch::decision::{self, DecisionSign, SeamLead};
use crate::stitch::evidence::{SupportedValue, weight};
use crate::stitch::joint::{ContinuationMode, Joint};
use crate::stitch::likeness::Likeness;
use crate::stitch::register::SurroundingText;
use crate::stitch::seam::{AskedFrom, SeamStyle};
use crate::stitch::units::{Reading, Units};
use crate::stitch::{fence, quotation};

/// The share with which a clean continuation at the requested position wins against a likelier story.
const MIN_CLEAN_SHARE: f64 = 0.13;
/// The minimum share of the likeliest end among all ends of its seam. Keeping a remark costs less than a wrong seam.
const MIN_END_SHARE: f64 = 0.95;
/// A continuation does not continue the text if it is this unlike the text, in bits.
const MAX_UNLIKENESS_BITS: f64 = 6.0;
/// Evidence in bits below which a line is not an announcement, however well the text continues after it.
const NO_ANNOUNCEMENT: f64 = -3.0;
/// Penalty, in bits, for a repeated period of a periodic text.
const PERIOD_PENALTY: f64 = 400.0;
/// Characters before and after a seam that are read.
const CHARS_BEFORE_SEAM: usize = 10_000;
const CHARS_AFTER_SEAM: usize = 6_000;
/// Maximum length of the text around a continuation that may not belong to it, in bytes.
const MAX_DOUBTFUL_BYTES: usize = 400;

/// Reads the text on both sides of the seam, without the part in question, which would support itself.
pub(super) fn likeness(joint: &Joint<'_>) -> Likeness {
    let text = joint.continuation;
    let line = text.trim_start().split('\n').next().unwrap_or_default();
    let blank = text.len() - text.trim_start().len();
    let behind = if line.starts_with(char::is_lowercase) {
        REACH * 2
    } else {
        blank + line.len().min(MAX_DOUBTFUL_BYTES) + REACH * 2
    };
    let body = &text[text.ceil_char_boundary(behind.min(text.len()))..];
    let kept = body.trim_end();
    let places = [kept.rfind("\n\n"), kept.rfind('\n')];
    let last = places.into_iter().flatten().find(|at| kept.len() - at <= MAX_DOUBTFUL_BYTES);
    let rest = Units::read_up_to(&body[..last.unwrap_or(body.len())], Reading::Plain, CHARS_AFTER_SEAM);
    let before = &joint.units_at(joint.initial.len()).codes;
    Likeness::read(&before[before.len().saturating_sub(CHARS_BEFORE_SEAM)..], &rest.codes, Reading::Plain)
}

/// Weighs all stories. Returns `None` without stories.
pub(super) fn weigh(
    joint: &Joint<'_>,
    likeness: &Likeness,
    around: &SurroundingText,
    stories: &[Candidate],
) -> Option<SupportedValue> {
    let (costs, continues, nesting) = {
        let scale = Scale::new(joint, likeness, stories);
        let continues =
            |story: &Candidate| story.repeated == 0 && scale.seam(story, story.start) < MAX_UNLIKENESS_BITS;
        let (costs, continues): (Vec<f64>, Vec<bool>) =
            stories.iter().map(|story| (scale.cost(story), continues(story))).unzip();
        (costs, continues, stories.iter().map(|story| scale.nesting_penalty(story)).collect::<Vec<f64>>())
    };
    let rounds: Vec<bool> = stories.iter().map(|story| joint.is_periodic(story.repeated)).collect();
    let costs = with_rounds(joint, stories, &rounds, &continues, costs);
    let best = (0..stories.len()).min_by(|left, right| costs[*left].total_cmp(&costs[*right]))?;
    let mut values: Vec<(usize, f64)> = Vec::new();
    for (index, cost) in costs.iter().enumerate() {
        let weight = weight(*cost);
        match values.iter_mut().find(|(other, _)| same(joint, &stories[*other], &stories[index])) {
            Some((_, sum)) => *sum += weight,
            None => values.push((index, weight)),
        }
    }
    let nothing_bits = separate_text_cost(joint, around, &stories[best], costs[best]);
    let nothing = weight(nothing_bits);
    let total = values.iter().map(|(_, weight)| weight).sum::<f64>() + nothing;
    let weight_of = |index: usize| {
        let same = values.iter().find(|(other, _)| same(joint, &stories[*other], &stories[index]));
        same.map_or(0.0, |(_, weight)| *weight)
    };
    let asked = stories.iter().position(|story| story.is_clean).filter(|_| joint.from == AskedFrom::Cut);
    // A clean continuation wins ties if it was requested.
    let best = asked
        .filter(|clean| weight_of(*clean) >= least_share(&stories[best]) * total && nothing < total / 2.0)
        .unwrap_or(best);
    let own = weight_of(best);
    let is_same_seam = |(other, _): &&(usize, f64)| same_seam(joint, &stories[*other], &stories[best]);
    let seam: f64 = values.iter().filter(is_same_seam).map(|(_, weight)| weight).sum();
    let ahead = seam_lead(joint, stories, &values, (best, seam), nothing);
    let story = &stories[best];
    let signs = decision::story_signs(joint, story, story.end < joint.continuation.trim_end().len());
    let may_go_round = may_be_periodic(joint, stories, &rounds, best, continues[best]);
    let probability = decision::probability(&signs, ahead);
    // A text whose tags would be badly nested if joined unchanged was not intended that way.
    let is_broken = asked.is_some_and(|clean| nesting[clean] > nesting[best]);
    let is_tie = joint.lost_character
        || ahead.may_be_nothing()
        || rounds[best]
        || story.style == SeamStyle::Preamble && story.announced < NO_ANNOUNCEMENT
        || may_go_round
        || !is_broken && shortens_slightly(joint, story)
        || is_guessed(joint, story);
    let cost = match story.is_clean && joint.from == AskedFrom::Cut {
        true => decision::COST_OF_WRONG_AS_ASKED,
        false if may_be_its_block(joint, story) || signs.contains(&DecisionSign::Spaced) => {
            decision::COST_OF_WRONG_ONCE_SENT
        }
        false => decision::COST_OF_WRONG,
    };
    Some(SupportedValue {
        best,
        confidence: if joint.lost_character { probability.min(0.5) } else { probability },
        alternatives: values.len() - 1,
        something_else: nothing > own,
        is_tie,
        is_open_at_end: own < MIN_END_SHARE * seam,
        cost,
        #[cfg(feature = "fit")]
        row: decision::row(&signs, ahead),
        costs,
        nothing: nothing_bits,
    })
}

/// Returns the costs of all stories, with a penalty for those that repeat a period of the text.
fn with_rounds(
    joint: &Joint<'_>,
    stories: &[Candidate],
    rounds: &[bool],
    continues: &[bool],
    costs: Vec<f64>,
) -> Vec<f64> {
    // A model that knows where to continue is not assumed to repeat a period.
    let is_prompted = |story: &Candidate| match joint.from {
        AskedFrom::Cut => true,
        AskedFrom::Token => story.repeated < joint.initial.len(),
        AskedFrom::Unknown => false,
    };
    // This is least likely at the cut, where the text continues as before. White space was not added there either.
    let is_clean = joint.from == AskedFrom::Cut
        && stories.iter().zip(rounds).any(|(story, round)| *round && repeats_enough(joint, story))
        && stories.iter().zip(continues).any(|(story, continues)| story.is_clean && *continues);
    let excluded = |story: &Candidate| {
        // A repetition of the whole text is not a period of it.
        is_clean
            && story.start > 0
            && story.repeated < joint.initial.len()
            && joint.continuation[..story.opening].trim().is_empty()
    };
    (stories.iter().zip(rounds).zip(costs))
        .map(
            |((story, round), cost)| {
                if *round && is_prompted(story) || excluded(story) { cost + PERIOD_PENALTY } else { cost }
            },
        )
        .collect()
}

/// Returns how far a story is ahead of its rivals.
fn seam_lead(
    joint: &Joint<'_>,
    stories: &[Candidate],
    values: &[(usize, f64)],
    (best, own): (usize, f64),
    nothing: f64,
) -> SeamLead {
    // A clean continuation at the requested position beats white space and, if likelier, repetitions and quotations.
    let is_asked = stories[best].is_clean && joint.from == AskedFrom::Cut;
    let last_line = joint.initial.rsplit('\n').next().unwrap_or_default();
    let in_indentation = !last_line.is_empty() && last_line.trim().is_empty();
    let is_rival = |(other, weight): &&(usize, f64)| {
        let yields = is_asked
            && match stories[*other].style {
                // The neighbouring lines show how far a line is indented.
                SeamStyle::Whitespace => !in_indentation,
                SeamStyle::Overlap | SeamStyle::Quotation | SeamStyle::Restart => *weight <= own,
                _ => false,
            };
        !yields && !same_seam(joint, &stories[*other], &stories[best])
    };
    let others = values.iter().filter(is_rival).map(|(_, weight)| *weight);
    SeamLead::from_weights(own, others.clone().sum(), others.fold(0.0, f64::max), nothing)
}

/// Whether another story removes more or fewer periods of the text. Unless a clean continuation was requested, their
/// number is unknown.
fn may_be_periodic(
    joint: &Joint<'_>,
    stories: &[Candidate],
    rounds: &[bool],
    best: usize,
    continues: bool,
) -> bool {
    let own = &stories[best];
    let rival = |story: &Candidate| {
        story.opening == own.opening && story.repeated != own.repeated && repeats_enough(joint, story)
    };
    let has_rivals = || stories.iter().zip(rounds).any(|(story, round)| *round && rival(story));
    // A model that wraps its answer may begin the text or its block again.
    let begins_anew = own.fenced && (joint.fence_is_open || joint.is_periodic(joint.initial.len()));
    let asked = match joint.from {
        AskedFrom::Unknown => false,
        // If the text does not continue unchanged, the model did not follow the requested position.
        AskedFrom::Cut | AskedFrom::Token => continues && !begins_anew,
    };
    own.repeated < joint.initial.len() && !asked && has_rivals()
}

/// Whether a story removes only line ends as a repetition. A blank line may belong to the text.
fn repeats_line_end(joint: &Joint<'_>, story: &Candidate) -> bool {
    let repeated = &joint.initial[joint.initial.len() - story.repeated..];
    !repeated.is_empty() && repeated.trim_matches(['\r', '\n']).is_empty()
}

/// Whether a text is two or more fence lines and nothing else.
fn has_fences_alone(text: &str) -> bool {
    let lines = fence::lines(text);
    lines > 1 && lines == text.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Whether a clean continuation that was not requested at the cut begins with a fence. The fence may be a wrapper or
/// part of the text, unless the text announces a block.
fn may_be_wrapped(joint: &Joint<'_>, story: &Candidate) -> bool {
    let line = joint.continuation.trim_start().lines().next().unwrap_or_default().trim_end();
    let begins = fence::opening(joint.continuation).is_some()
        && if joint.fence_is_open {
            // A fence that closes a block of the text is not longer than the fence that opened it.
            fence::rest_after_closing(line).is_none()
                || !joint.initial.contains(line)
                || has_fences_alone(joint.continuation)
        } else {
            !joint.announces_block()
        };
    story.is_clean && joint.from != AskedFrom::Cut && begins
}

/// Whether a fence after an announcement and a blank line of Markdown may belong to the text.
fn may_be_its_block(joint: &Joint<'_>, story: &Candidate) -> bool {
    let is_fenced = story.fenced && story.style == SeamStyle::Preamble;
    is_fenced && joint.format == Format::Markdown && joint.initial.ends_with("\n\n")
}

/// Whether a story keeps a first line in brackets that ends like a sentence. Such a line is a remark about the text,
/// and not code.
fn begins_with_aside(joint: &Joint<'_>, story: &Candidate) -> bool {
    let line = joint.continuation.lines().next().unwrap_or_default().trim();
    let inside = |open: char, close: char| line.strip_prefix(open)?.strip_suffix(close);
    let repeated_chars = inside('(', ')').or_else(|| inside('[', ']')).unwrap_or_default();
    let words = repeated_chars.trim_end_matches(['.', '\u{2026}', ':']);
    story.start == 0
        && words.len() < repeated_chars.len()
        && words.contains(char::is_alphabetic)
        && words.chars().all(|sign| sign.is_alphabetic() || matches!(sign, ' ' | ',' | '\''))
}

/// Whether a story's repeated part is more than a few signs.
fn repeats_enough(joint: &Joint<'_>, story: &Candidate) -> bool {
    let repeated_chars = || joint.initial[joint.initial.len() - story.repeated..].chars();
    repeated_chars().filter(|sign| sign.is_alphanumeric()).nth(2).is_some()
        || repeated_chars().filter(|sign| !sign.is_whitespace()).nth(7).is_some()
}

/// Whether a story removes a few words from a continuation at the requested position. Two equal neighbours are common.
fn shortens_slightly(joint: &Joint<'_>, story: &Candidate) -> bool {
    joint.from == AskedFrom::Cut && (1..decision::MAX_SMALL_OVERLAP_BYTES).contains(&story.repeated)
}

/// Returns the share with which a clean continuation at the requested position wins against a likelier story. A
/// remark, or white space within a word, is never a tie.
fn least_share(likelier: &Candidate) -> f64 {
    let is_shortened = likelier.repeated == 0 && likelier.start > 0 || likelier.style == SeamStyle::Remark;
    if is_shortened { 0.5 } else { MIN_CLEAN_SHARE }
}

/// Whether a story is a guess. It is one if it adds unproven white space where only a continued sentence needs it,
/// begins a quotation within a word, joins two words, or keeps a fence or words that may not belong to the text.
pub(super) fn is_guessed(joint: &Joint<'_>, story: &Candidate) -> bool {
    // A restart with different white space has it in the rest as well.
    let again = joint.continuation[story.opening..story.start].trim_start();
    let reflowed = story.repeated == joint.initial.len() && again != joint.initial.trim_start();
    let breaks_word = quotation::breaks_word(joint.initial, story.added_text(joint));
    story.glue.is_empty() && (reflowed || breaks_word)
        || may_be_wrapped(joint, story)
        || begins_with_aside(joint, story)
        || repeats_line_end(joint, story)
        || joint.mode != ContinuationMode::ByMessage && may_glue(joint, story)
}

/// Whether two stories have the same seam, so that one text begins with the other. The end of the text is not compared.
fn same_seam(joint: &Joint<'_>, left: &Candidate, right: &Candidate) -> bool {
    let (one, other) = (left.added_text(joint), right.added_text(joint));
    left.glue == right.glue && (one.starts_with(other) || other.starts_with(one)) || same(joint, left, right)
}

/// Whether two stories give the same text.
fn same(joint: &Joint<'_>, left: &Candidate, right: &Candidate) -> bool {
    let (one, other) = (left.added_text(joint), right.added_text(joint));
    if left.glue == right.glue {
        return one == other;
    }
    one.len() + left.glue.len() == other.len() + right.glue.len()
        && left.glue.chars().chain(one.chars()).eq(right.glue.chars().chain(other.chars()))
}
