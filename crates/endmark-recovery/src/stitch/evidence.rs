//! Evidence in JSON: what speaks for and against each survivor, and when that is enough.
//!
//! Every survivor has a cost in bits: how unlikely its story is beforehand, how unlikely what it takes for a
//! coincidence is, and how unlike the rest of the text its seam looks. Costs become shares: a survivor that
//! costs one bit less is twice as likely.

mod doubts;
pub(super) mod grammar;
mod looks;

use super::identity::identities;
use super::joint::Joint;
use super::preamble;
use super::restart;
use super::seam::{AskedFrom, SeamStyle};
use super::settled;
use super::survivor::Survivor;
use super::units::{Reading, Units};

use looks::NEAR;

/// What the story that was asked for is worth, in bits. A prompt is followed less exactly than a prefill.
const ASKED_AT_CUT: f64 = 3.0;
const ASKED_AT_TOKEN: f64 = 1.5;

/// What speaks against it that who was told where to go on says once more what the text goes round with, in bits.
const ROUND: f64 = 10.0;

/// The value that the evidence speaks for.
pub(super) struct Weighed {
    /// The index of its likeliest survivor.
    pub(super) best: usize,
    /// Its share of the evidence, 0 to 1.
    pub(super) confidence: f64,
    /// Other values.
    pub(super) alternatives: usize,
    /// Whether that settles it.
    pub(super) settled: bool,
    /// Whether it is likelier that the continuation is something else altogether.
    pub(super) something_else: bool,
    /// What each survivor costs, in bits.
    pub(super) costs: Vec<f64>,
    /// What it costs to take the continuation for something else, in bits.
    pub(super) nothing: f64,
}

/// Weighs all survivors; none where there is none.
pub(super) fn weigh(joint: &Joint<'_>, survivors: &[Survivor]) -> Option<Weighed> {
    let compared = grammar::Compared::new(joint, survivors);
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
    let nothing_bits = grammar::something_else(joint, &compared, survivors, &survivors[best]);
    let nothing = weight(nothing_bits);
    let total: f64 = values.iter().map(|(_, cost)| weight(*cost)).sum::<f64>() + nothing;
    let share = weight(least) / total;
    // The rivals of what was asked for are told one by one: a text that goes round has many of them.
    let rival = values.iter().filter(|(identity, _)| *identity != identities[best]);
    let rival = rival.map(|(_, cost)| weight(*cost)).fold(nothing, f64::max);
    let share_against_one = weight(least) / (weight(least) + rival);
    let best = likeliest_story(survivors, &identities, best);
    let as_asked = survivors[best].candidate.is_asked(joint) && joint.from == AskedFrom::Cut;
    let shortened = doubts::shortens_what_is_whole(joint, survivors, &survivors[best])
        || doubts::says_one_more_round(joint, &survivors[best])
        || joint.in_text
            && doubts::may_be_anew(joint, survivors, &survivors[best])
            && doubts::has_backslash(joint)
        || doubts::contradicts_what_was_begun(joint, &survivors[best])
        || doubts::forgets_escapes(joint, &survivors[best]);
    let neighbours = doubts::may_be_neighbours(joint, survivors);
    let needed = if as_asked && !neighbours { settled::AS_ASKED } else { settled::LIKELY };
    let needed = grammar::needed(joint, survivors, &identities, best, needed);
    let is_announced = survivors[best].candidate.style == SeamStyle::Preamble;
    let needed = if values.len() == 1 && survivors[best].standing.is_whole() && !is_announced {
        needed.min(1.0 - settled::IN_DOUBT)
    } else {
        needed
    };
    let reached = if as_asked { share_against_one } else { share };
    Some(Weighed {
        best,
        confidence: if joint.lost_character { share.min(0.5) } else { share },
        alternatives: values.len() - 1,
        settled: reached >= needed
            && nothing <= settled::IN_DOUBT * total
            && !joint.lost_character
            && !shortened,
        something_else: nothing > weight(least),
        costs,
        nothing: nothing_bits,
    })
}

/// How much something weighs that costs so many bits.
pub(super) fn weight(cost: f64) -> f64 {
    (-cost.clamp(-500.0, 500.0)).exp2()
}

/// Of the survivors with the same value, the one whose story is likeliest: it names the seam.
fn likeliest_story(survivors: &[Survivor], identities: &[u128], best: usize) -> usize {
    let same = (0..survivors.len()).filter(|index| identities[*index] == identities[best]);
    same.min_by(|left, right| survivors[*left].candidate.cost.total_cmp(&survivors[*right].candidate.cost))
        .unwrap_or(best)
}

/// What each survivor costs, in bits.
fn costs(joint: &Joint<'_>, compared: &grammar::Compared<'_>, survivors: &[Survivor]) -> Vec<f64> {
    let before: Vec<char> = {
        let units = &joint.settled_units;
        units.chars(units.len().saturating_sub(NEAR)..units.len()).collect()
    };
    let beginning_anew = if begins_anew(joint) { 24.0 } else { 0.0 };
    survivors
        .iter()
        .map(|survivor| {
            let candidate = &survivor.candidate;
            let mut cost = candidate.cost + compared.cost(survivor, survivors);
            if candidate.is_asked(joint) {
                cost -= if joint.from == AskedFrom::Cut { ASKED_AT_CUT } else { ASKED_AT_TOKEN };
            }
            if candidate.opening == 0 && candidate.repeated < joint.initial.len() {
                cost += beginning_anew;
            }
            if candidate.repeated == 0 && candidate.start == 0 {
                cost += grammar::signs_of_a_new_turn(joint, survivor, &before);
            }
            if survivor.left_out_remark {
                cost += 1.0;
            }
            if grammar::says_told_round(joint, survivor, survivors) {
                cost += ROUND;
            }
            cost + grammar::form(survivor, survivors)
        })
        .collect()
}

/// Whether the continuation begins the whole document anew, and another one than the first part is of.
fn begins_anew(joint: &Joint<'_>) -> bool {
    let most = joint.initial.len().saturating_mul(2).min(8_000);
    let again = Units::read(preamble::head(joint.continuation, most), Reading::Structure);
    restart::diverges_from_start(&joint.settled_units, &again)
}
