//! Weighs the survivors in JSON, and decides whether the evidence is sufficient.
//!
//! Each survivor has a cost in bits. It measures how unlikely its kind of join is, how unlikely its
//! coincidences are, and how unusual its seam is for this text. A survivor that costs one bit less is twice
//! as likely.

pub(super) mod doubts;
pub(super) mod grammar;

use super::decision::{self, DecisionSign, SeamLead};
use super::joint::Joint;
use super::prompt_echo_and_remarks;
use super::register::SurroundingText;
use super::restart;
use super::seam::{AskedFrom, SeamStyle};
use super::survivor::Survivor;
use super::units::{Reading, Units};
use super::value_identity::identities;

use grammar::EXAMINED_CHARS;

/// Bonuses, in bits, for the requested join. Models follow a prompt less exactly than a prefill.
const REQUESTED_AT_CUT_BONUS: f64 = 3.0;
const REQUESTED_AT_TOKEN_BONUS: f64 = 1.5;

/// Penalty, in bits, for repeating a period of the text although the model knew where to continue.
const PERIOD_PENALTY_BITS: f64 = 10.0;

/// The value that the evidence supports.
pub(super) struct SupportedValue {
    /// The index of its likeliest survivor.
    pub(super) best: usize,
    /// The probability that it is correct, from 0 to 1.
    pub(super) confidence: f64,
    /// Number of other possible values.
    pub(super) alternatives: usize,
    /// Whether the continuation is more likely something else.
    pub(super) is_likelier_unrelated: bool,
    /// Whether likelihood cannot decide this case.
    pub(super) is_tie: bool,
    /// Whether it is undecided where the text after the seam ends.
    pub(super) is_open_at_end: bool,
    /// Cost of a wrong text, as a multiple of the cost of rejecting a correct seam.
    pub(super) cost: f64,
    /// The features from which the probability is computed.
    #[cfg(feature = "fit")]
    pub(super) row: [f64; decision::FEATURE_COUNT],
    /// The cost of each survivor, in bits.
    pub(super) costs: Vec<f64>,
    /// The cost, in bits, of the assumption that the continuation is something else.
    pub(super) nothing: f64,
}

impl SupportedValue {
    /// Whether the probability is sufficient, given the cost of a wrong text.
    pub(super) fn is_settled(&self) -> bool {
        decision::is_sufficient(self.confidence, self.cost) && !self.is_tie && !self.is_open_at_end
    }
}

/// Weighs all survivors. Returns `None` for an empty list.
pub(super) fn weigh(joint: &Joint<'_>, survivors: &[Survivor]) -> Option<SupportedValue> {
    let compared = grammar::Comparison::new(joint, survivors);
    let costs = costs(joint, &compared, survivors);
    let best = (0..survivors.len()).min_by(|left, right| costs[*left].total_cmp(&costs[*right]))?;
    let least = costs[best];
    let mut values: Vec<(u128, f64)> = Vec::new();
    let identities = identities(joint, survivors.iter().map(|survivor| &survivor.candidate));
    for (identity, cost) in identities.iter().zip(&costs) {
        match values.iter_mut().find(|(other, _)| other == identity) {
            Some((_, least)) => *least = least.min(*cost),
            None => values.push((*identity, *cost)),
        }
    }
    let nothing_bits = grammar::unexplained_cost(joint, &compared, survivors, &survivors[best]);
    let nothing = weight(nothing_bits);
    let others = values.iter().filter(|(identity, _)| *identity != identities[best]);
    let others = others.map(|(_, cost)| weight(*cost));
    let ahead =
        SeamLead::from_weights(weight(least), others.clone().sum(), others.fold(0.0, f64::max), nothing);
    let best = likeliest_candidate(survivors, &identities, best);
    let story = &survivors[best];
    let mut signs = decision::candidate_signs(joint, &story.candidate, story.has_dropped_remark);
    signs.extend(grammar::comparative_signs(joint, survivors, &identities, best));
    let probability = decision::probability(&signs, ahead);
    let is_tie = joint.has_lost_character
        || ahead.may_be_nothing()
        || doubts::drops_repeated_row(joint, story)
        || joint.in_text && signs.contains(&DecisionSign::MayBeAnew)
        || doubts::drops_unfinished_token(joint, story)
        || doubts::repeats_with_raw_line_ends(joint, story);
    let has = |sign| signs.contains(&sign);
    let may_be_meant = has(DecisionSign::GoesRound)
        || has(DecisionSign::OtherIsWholeBesideLittle)
        || has(DecisionSign::OtherIsWhole) && has(DecisionSign::Ellipsis) && joint.in_text
        || doubts::joins_digits(joint, story);
    let cost = if may_be_meant {
        decision::COST_OF_WRONG_ONCE_SENT
    } else if has(DecisionSign::CleanAtCut) && !has(DecisionSign::Neighbours) {
        decision::COST_OF_WRONG_AS_ASKED
    } else {
        decision::COST_OF_WRONG
    };
    Some(SupportedValue {
        best,
        confidence: if joint.has_lost_character { probability.min(0.5) } else { probability },
        alternatives: values.len() - 1,
        is_tie,
        is_open_at_end: false,
        cost,
        #[cfg(feature = "fit")]
        row: decision::feature_row(&signs, ahead),
        is_likelier_unrelated: nothing > weight(least),
        costs,
        nothing: nothing_bits,
    })
}

/// Converts a cost in bits to a weight: the likelihood 2^-cost.
pub(super) fn weight(cost: f64) -> f64 {
    (-cost.clamp(-500.0, 500.0)).exp2()
}

/// Returns the likeliest candidate among the survivors with the best value. Its style is reported for the
/// seam.
fn likeliest_candidate(survivors: &[Survivor], identities: &[u128], best: usize) -> usize {
    let same = (0..survivors.len()).filter(|index| identities[*index] == identities[best]);
    same.min_by(|left, right| survivors[*left].candidate.cost.total_cmp(&survivors[*right].candidate.cost))
        .unwrap_or(best)
}

/// Returns the cost of each survivor, in bits.
fn costs(joint: &Joint<'_>, compared: &grammar::Comparison<'_>, survivors: &[Survivor]) -> Vec<f64> {
    let before: Vec<char> = {
        let units = &joint.settled_units;
        units.chars(units.len().saturating_sub(EXAMINED_CHARS)..units.len()).collect()
    };
    let around = joint.in_text.then(|| SurroundingText::new(joint));
    let beginning_anew = if begins_other_document(joint) { 24.0 } else { 0.0 };
    survivors
        .iter()
        .map(|survivor| {
            let candidate = &survivor.candidate;
            let mut cost = candidate.cost + compared.cost(survivor, survivors);
            if candidate.is_as_requested(joint) {
                cost -= if joint.from == AskedFrom::Cut {
                    REQUESTED_AT_CUT_BONUS
                } else {
                    REQUESTED_AT_TOKEN_BONUS
                };
            }
            if candidate.text_start == 0 && candidate.repeated_bytes < joint.initial.len() {
                cost += beginning_anew;
            }
            if let Some(around) = &around
                && candidate.repeated_bytes == 0
                && (candidate.start == 0 || candidate.style == SeamStyle::Preamble)
            {
                cost += grammar::separate_answer_evidence(joint, around, &before, candidate.start);
            }
            if survivor.has_dropped_remark {
                cost += 1.0;
            }
            if grammar::repeats_rows_needlessly(joint, survivor, survivors) {
                cost += PERIOD_PENALTY_BITS;
            }
            cost + grammar::unfinished_cost(survivor, survivors)
        })
        .collect()
}

/// Whether the continuation begins a whole document that differs from that of the first part.
fn begins_other_document(joint: &Joint<'_>) -> bool {
    let most = joint.initial.len().saturating_mul(2).min(8_000);
    let again = Units::read(prompt_echo_and_remarks::beginning(joint.continuation, most), Reading::Structure);
    restart::diverges_from_start(&joint.settled_units, &again)
}
