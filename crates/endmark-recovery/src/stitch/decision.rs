//! Computes the probability that a seam is correct (PC-4). One model and one threshold serve all formats,
//! chains and streams.
//!
//! The inputs are the signs of the best candidate, and its lead over the alternatives in bits. `cargo xtask
//! fit` writes the weights to `weights.rs`: it runs a logistic regression on the half `fit` of the cases in
//! `bench/recovery`. Each wrong result should become a case for the next fit. Some cases cannot be decided by
//! likelihood. `doubts` rejects them in JSON, and `plain::weigh` in other text.

mod weights;

use endmark_text::Format;

use super::candidate::Candidate;
use super::ellipsis;
use super::joint::Joint;
use super::seam::{AskedFrom, SeamStyle};

use weights::WEIGHTS;

/// Cost of a silently wrong text. The unit is the cost of rejecting a correct seam.
pub(super) const COST_OF_WRONG: f64 = 15.0;
/// The same cost for a clean continuation at the requested cut. It is lower because nearly all continuations
/// are of this kind, so rejecting them costs more.
pub(super) const COST_OF_WRONG_AS_ASKED: f64 = 3.0;
/// The same cost for text that the client receives before the rest has arrived, and for removed text that may
/// be intended.
pub(super) const COST_OF_WRONG_ONCE_SENT: f64 = 150.0;
/// Minimum lead, in bits, over the possibility that the continuation is something else.
const MIN_LEAD_OVER_NOTHING: f64 = 2.5;
/// The unit of the stored weights is 1/1024 of the log odds.
const WEIGHT_UNIT: f64 = 1024.0;
/// The likelihood has a separate weight for each range up to these bits. Beyond the last one, a larger lead
/// adds no certainty.
const LEAD_KNOTS_BITS: [f64; 3] = [4.0, 9.0, 30.0];
/// Maximum length of an overlap that may be a coincidence: one or two letters.
pub(super) const MAX_TRIVIAL_OVERLAP_BYTES: usize = 4;
/// Maximum length of an overlap that may be intended: one or two words.
pub(super) const MAX_SMALL_OVERLAP_BYTES: usize = 20;

macro_rules! signs {
    ($($(#[$reason:meta])* $sign:ident,)*) => {
        /// A yes-or-no feature of the best candidate, in addition to its likelihood.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum DecisionSign {
            $($(#[$reason])* $sign,)*
        }

        /// All signs, in the order of their weights.
        const SIGNS: &[DecisionSign] = &[$(DecisionSign::$sign,)*];
    };
}

signs! {
    /// Always set, so that its weight is the bias.
    Any,
    /// A grammar has accepted the text, so the likelihood is stronger evidence.
    Grammar,
    /// The cut is in a string.
    InString,
    /// Nothing is removed or added, the model was asked to continue at the cut, and it did.
    CleanAtCut,
    /// Nothing is removed or added, the model was asked to continue after the last settled token, and it did.
    CleanBehindToken,
    /// Nothing is removed or added, and the requested position is unknown.
    CleanFromUnknown,
    /// The continuation repeats the end of the first part.
    Overlap,
    /// Only one or two letters are repeated. This often happens by chance.
    Hair,
    /// Only one or two words are repeated.
    Slight,
    /// The continuation begins the text or a part of it again.
    Restart,
    /// Whitespace is removed or added.
    Whitespace,
    /// Whitespace is added that neither part contains.
    Glued,
    /// An ellipsis is removed.
    Ellipsis,
    /// Whitespace follows an ellipsis, or more than one blank line follows an announcement. It is unknown how
    /// much of it belongs to the text.
    Spaced,
    /// An ellipsis is kept although the cut was not requested. It may indicate omitted text.
    DotsKept,
    /// A fence around the text is removed.
    Fence,
    /// A fence is removed that may follow an announcement.
    Fenced,
    /// An announcement is removed that may belong to the text.
    Preamble,
    /// A closing remark is removed.
    Remark,
    /// An escape at the cut is written again.
    EscapeAnew,
    /// A number or literal at the cut is written again or removed.
    TokenAnew,
    /// Another candidate gives a whole text and removes nothing.
    OtherIsWhole,
    /// In addition, this candidate removes or adds only a few bytes.
    OtherIsWholeBesideLittle,
    /// In addition, this candidate removes a repetition or an ellipsis.
    OtherIsWholeBesideTwice,
    /// A number or escape may be continued or written again, and both give a whole text.
    MayBeAnew,
    /// The same few words precede and follow the cut. They are equal neighbours or a repetition.
    Neighbours,
    /// All candidates give the same value.
    Alone,
    /// The text has tags. There, the letters at a seam are weaker evidence.
    Tags,
    /// The text is periodic, and the number of its periods is unknown.
    GoesRound,
}

/// The lead of a value over its alternatives, in bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SeamLead {
    /// The lead over all other values and the possibility of something else, together.
    pub(super) all: f64,
    /// The lead over the likeliest other value.
    pub(super) rival: f64,
    /// The lead over the possibility that the continuation is something else.
    pub(super) nothing: f64,
}

impl SeamLead {
    /// Computes the lead of a value with this weight. `others` is the total weight of all other values, and
    /// `rival` is the largest of them. `nothing` is the weight of the possibility that the continuation is
    /// something else.
    pub(super) fn from_weights(weight: f64, others: f64, rival: f64, nothing: f64) -> Self {
        let most = LEAD_KNOTS_BITS[LEAD_KNOTS_BITS.len() - 1];
        let ahead = |other: f64| {
            let bits = if other > 0.0 { (weight / other).log2() } else { most };
            if bits.is_nan() { -most } else { bits.clamp(-most, most) }
        };
        Self { all: ahead(others + nothing), rival: ahead(rival), nothing: ahead(nothing) }
    }

    /// Whether the continuation may be something else.
    pub(super) fn may_be_nothing(self) -> bool {
        self.nothing <= MIN_LEAD_OVER_NOTHING
    }
}

/// Number of likelihood features: three leads with and without a grammar, each split into the ranges of
/// [`LEAD_KNOTS_BITS`].
const LIKELIHOOD_FEATURES: usize = 2 * 3 * LEAD_KNOTS_BITS.len();
/// Number of all features and weights.
pub(super) const FEATURE_COUNT: usize = SIGNS.len() + LIKELIHOOD_FEATURES;

/// Returns the features of a seam, in the order of the weights.
pub(super) fn feature_row(signs: &[DecisionSign], ahead: SeamLead) -> [f64; FEATURE_COUNT] {
    let mut row = [0.0; FEATURE_COUNT];
    for sign in signs {
        row[*sign as usize] = 1.0;
    }
    let first = if signs.contains(&DecisionSign::Grammar) {
        SIGNS.len()
    } else {
        FEATURE_COUNT - LIKELIHOOD_FEATURES / 2
    };
    let kinds = [ahead.all, ahead.rival, ahead.nothing];
    for (kind, bits) in kinds.into_iter().enumerate() {
        let mut from = 0.0;
        for (knot, to) in LEAD_KNOTS_BITS.into_iter().enumerate() {
            row[first + kind * LEAD_KNOTS_BITS.len() + knot] = bits.clamp(from, to) - from;
            from = to;
        }
    }
    row
}

/// Returns the probability, from 0 to 1, that a seam with these signs and this lead is correct.
pub(super) fn probability(signs: &[DecisionSign], ahead: SeamLead) -> f64 {
    let odds: f64 = feature_row(signs, ahead)
        .iter()
        .zip(WEIGHTS)
        .map(|(value, (_, weight))| value * f64::from(weight))
        .sum();
    1.0 / (1.0 + (-odds / WEIGHT_UNIT).exp())
}

/// Whether a probability is sufficient for a seam, given the cost of a wrong text.
pub(super) fn is_sufficient(probability: f64, cost: f64) -> bool {
    (1.0 - probability) * cost <= probability
}

/// Whether whitespace after the removed part may belong to the text: any whitespace after an ellipsis, or
/// more than one blank line after an announcement.
pub(super) fn has_uncertain_whitespace(joint: &Joint<'_>, story: &Candidate) -> bool {
    let ahead = joint.continuation[..story.text_start].trim_end().len();
    let rest = &joint.continuation[ahead..];
    let space = &rest[..rest.len() - rest.trim_start().len()];
    story.repeated_bytes == 0
        && match story.style {
            SeamStyle::Ellipsis => !space.is_empty(),
            SeamStyle::Preamble => space.matches('\n').count() > 2,
            _ => false,
        }
}

/// Returns the signs of a candidate that do not depend on its rivals. `left_out` is whether its end is
/// removed.
pub(super) fn candidate_signs(joint: &Joint<'_>, story: &Candidate, left_out: bool) -> Vec<DecisionSign> {
    let is_clean_from = |from: AskedFrom| story.is_clean && joint.from == from;
    let style = |style: SeamStyle| story.style == style;
    let dots_kept = || {
        story.is_clean && joint.from != AskedFrom::Cut && ellipsis::end_position(joint.continuation).is_some()
    };
    let is_slight = (1..MAX_SMALL_OVERLAP_BYTES).contains(&story.repeated_bytes);
    let signs = [
        (DecisionSign::Any, true),
        (DecisionSign::Grammar, joint.has_grammar()),
        (DecisionSign::InString, joint.has_grammar() && joint.in_text),
        (DecisionSign::CleanAtCut, is_clean_from(AskedFrom::Cut) && story.keep == joint.initial.len()),
        (
            DecisionSign::CleanBehindToken,
            is_clean_from(AskedFrom::Token) && story.keep == joint.settled_bytes,
        ),
        (DecisionSign::CleanFromUnknown, is_clean_from(AskedFrom::Unknown)),
        (DecisionSign::Overlap, style(SeamStyle::Overlap)),
        (DecisionSign::Hair, (1..MAX_TRIVIAL_OVERLAP_BYTES).contains(&story.repeated_bytes)),
        (
            DecisionSign::Slight,
            (MAX_TRIVIAL_OVERLAP_BYTES..MAX_SMALL_OVERLAP_BYTES).contains(&story.repeated_bytes),
        ),
        (DecisionSign::Restart, style(SeamStyle::Restart)),
        (DecisionSign::Whitespace, style(SeamStyle::Whitespace)),
        (DecisionSign::Glued, !story.glue.is_empty()),
        (DecisionSign::Ellipsis, style(SeamStyle::Ellipsis)),
        (DecisionSign::Spaced, has_uncertain_whitespace(joint, story)),
        (DecisionSign::DotsKept, dots_kept()),
        (DecisionSign::Fence, style(SeamStyle::Fence) && !is_slight),
        (DecisionSign::Fenced, story.is_fenced && !is_slight),
        (DecisionSign::Preamble, style(SeamStyle::Preamble)),
        (DecisionSign::Remark, left_out),
        (DecisionSign::EscapeAnew, story.keep < joint.initial.len() && joint.in_text),
        (DecisionSign::TokenAnew, story.keep < joint.initial.len() && !joint.in_text),
        (DecisionSign::Tags, joint.format == Format::Tags),
    ];
    signs.into_iter().filter(|(_, holds)| *holds).map(|(sign, _)| sign).collect()
}

/// Returns the names of the weights, in their order.
#[cfg(any(test, feature = "fit"))]
pub(super) fn weight_names() -> Vec<String> {
    let signs = SIGNS.iter().map(|sign| format!("{sign:?}"));
    let kinds = ["Grammar", "Plain"].into_iter().flat_map(|text| {
        ["AheadOfAll", "AheadOfRival", "AheadOfNothing"].map(|kind| format!("{text}{kind}"))
    });
    signs.chain(kinds.flat_map(|kind| LEAD_KNOTS_BITS.map(|knot| format!("{kind}To{knot}")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_are_listed_in_the_order_of_the_signs() {
        let names = weight_names();
        assert!(SIGNS.iter().enumerate().all(|(at, sign)| *sign as usize == at));
        assert_eq!(WEIGHTS.map(|(name, _)| name), names.as_slice(), "run `cargo xtask fit`");
    }

    #[test]
    fn a_likelier_seam_gets_a_higher_probability() {
        let at = |bits: f64| {
            let ahead = SeamLead { all: bits, rival: bits, nothing: bits };
            probability(&[DecisionSign::Any, DecisionSign::Grammar, DecisionSign::CleanFromUnknown], ahead)
        };
        assert!(at(0.0) < at(4.0) && at(4.0) < at(12.0));
        assert!(is_sufficient(at(14.0), COST_OF_WRONG) && !is_sufficient(at(1.0), COST_OF_WRONG));
    }

    #[test]
    fn a_feature_row_sums_up_to_the_bits() {
        for bits in [0.0, 3.0, 11.5, 30.0] {
            let row = feature_row(&[DecisionSign::Any], SeamLead { all: bits, rival: 0.0, nothing: 0.0 });
            assert!((row.iter().sum::<f64>() - bits - 1.0).abs() < 1e-9, "{bits}");
        }
        assert!((SeamLead::from_weights(0.0, 0.0, 0.0, 0.0).all - 30.0).abs() < 1e-9);
    }
}
