//! Computes the probability that a seam is right (PC-4). One model and one threshold serve texts with and without a
//! grammar, chains and streams. The inputs are the signs of the likeliest story and its lead over the alternatives,
//! in bits. `cargo xtask fit` writes the weights to `weights.rs`. They come from a logistic regression on the cases
//! of `bench/recovery` in the half `fit`. A case with a wrong result becomes a row of the next fit. Cases that no
//! likelihood can decide are rejected: by `doubts` in a text with a grammar, and by `plain::weigh` in one without.

mod weights;

use endmark_text::Format;

use super::candidate::Candidate;
use super::ellipsis;
use super::joint::Joint;
use super::seam::{AskedFrom, SeamStyle};

use weights::WEIGHTS;

/// Cost of a silently wrong text, in refusals.
pub(super) const COST_OF_WRONG: f64 = 15.0;
/// The cost for a clean continuation at the requested cut. Nearly all continuations are of this kind, so rejecting
/// them costs more.
pub(super) const COST_OF_WRONG_AS_ASKED: f64 = 3.0;
/// The cost for text that a reader receives before the rest has arrived, and for text that may be the model's own.
pub(super) const COST_OF_WRONG_ONCE_SENT: f64 = 150.0;
/// Minimum lead, in bits, over the possibility that the continuation is something else.
const MIN_LEAD_OVER_NOTHING: f64 = 2.5;
/// Weights are stored in this fraction of the log odds.
const UNIT: f64 = 1024.0;
/// The likelihood has a separate weight up to each of these bits. Beyond the last one, more lead adds no certainty.
const KNOTS: [f64; 3] = [4.0, 9.0, 30.0];
/// An overlap up to this size is one or two letters.
pub(super) const MAX_TRIVIAL_OVERLAP_BYTES: usize = 4;
/// An overlap up to this size is one or two words.
pub(super) const MAX_SMALL_OVERLAP_BYTES: usize = 20;

macro_rules! signs {
    ($($(#[$reason:meta])* $sign:ident,)*) => {
        /// Evidence for or against the likeliest story, in addition to its likelihood.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum DecisionSign {
            $($(#[$reason])* $sign,)*
        }

        /// All signs, in the order of their weights.
        const SIGNS: &[DecisionSign] = &[$(DecisionSign::$sign,)*];
    };
}

signs! {
    /// Every seam has this sign.
    Any,
    /// A grammar has accepted the text, so the likelihood is stronger evidence.
    Grammar,
    /// The cut is within a string.
    InString,
    /// It is a clean continuation at the requested cut.
    CleanAtCut,
    /// It is a clean continuation after the last settled token.
    CleanBehindToken,
    /// It is a clean continuation, and the requested position is unknown.
    CleanFromUnknown,
    /// The end of the first part is repeated.
    Overlap,
    /// Only one or two letters are repeated, which occur everywhere.
    Hair,
    /// Only one or two words are repeated.
    Slight,
    /// The text or a part of it begins again.
    Restart,
    /// White space is removed or added.
    Whitespace,
    /// White space is added that neither part contains.
    Glued,
    /// Dots are removed.
    Ellipsis,
    /// White space follows dots, or more than one blank line follows an announcement. It is unknown how much of it
    /// belongs to the text.
    Spaced,
    /// Dots stay in a clean continuation that was not requested at the cut. They indicate an omission.
    DotsKept,
    /// A fence around the text is removed, which serves no other purpose.
    Fence,
    /// A fence after an announcement is removed.
    Fenced,
    /// An announcement is removed that may belong to the text.
    Preamble,
    /// A remark is removed.
    Remark,
    /// An escape that the string had begun is written again.
    EscapeAnew,
    /// A number or a literal at the cut is written again, or removed.
    TokenAnew,
    /// Another story gives a whole text and keeps the part that this story removes.
    OtherIsWhole,
    /// As above, and this story removes or adds only a few bytes.
    OtherIsWholeBesideLittle,
    /// As above, and this story removes a repetition or dots.
    OtherIsWholeBesideTwice,
    /// A number or an escape is continued or written again, and both give a whole text.
    MayBeAnew,
    /// The same few words precede and follow the cut. They are either two equal neighbours or a repetition.
    Neighbours,
    /// No other value has a story.
    Alone,
    /// The text has tags, where the letters at a seam are weaker evidence.
    Tags,
    /// The text is periodic, and the number of its periods is unknown.
    GoesRound,
}

/// The lead of a value over its alternatives, in bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SeamLead {
    /// Over all others together.
    pub(super) all: f64,
    /// Over the likeliest other value.
    pub(super) rival: f64,
    /// Over the possibility that the continuation is something else.
    pub(super) nothing: f64,
}

impl SeamLead {
    /// Returns the lead of a value with this weight. `others` is the total weight of all others, and `rival` that of
    /// the heaviest one.
    pub(super) fn from_weights(weight: f64, others: f64, rival: f64, nothing: f64) -> Self {
        let most = KNOTS[KNOTS.len() - 1];
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

/// Likelihood features: three kinds in two kinds of texts, each split at the knots.
const LIKELIHOODS: usize = 2 * 3 * KNOTS.len();
/// The number of weights.
pub(super) const COUNT: usize = SIGNS.len() + LIKELIHOODS;

/// Returns the features of a seam, in the order of the weights.
pub(super) fn row(signs: &[DecisionSign], ahead: SeamLead) -> [f64; COUNT] {
    let mut row = [0.0; COUNT];
    for sign in signs {
        row[*sign as usize] = 1.0;
    }
    let first = if signs.contains(&DecisionSign::Grammar) { SIGNS.len() } else { COUNT - LIKELIHOODS / 2 };
    let kinds = [ahead.all, ahead.rival, ahead.nothing];
    for (kind, bits) in kinds.into_iter().enumerate() {
        let mut from = 0.0;
        for (knot, to) in KNOTS.into_iter().enumerate() {
            row[first + kind * KNOTS.len() + knot] = bits.clamp(from, to) - from;
            from = to;
        }
    }
    row
}

/// Returns the probability, from 0 to 1, that the seam of a story with these signs is right.
pub(super) fn probability(signs: &[DecisionSign], ahead: SeamLead) -> f64 {
    let odds: f64 =
        row(signs, ahead).iter().zip(WEIGHTS).map(|(value, (_, weight))| value * f64::from(weight)).sum();
    1.0 / (1.0 + (-odds / UNIT).exp())
}

/// Whether a probability suffices for a seam with this cost of being wrong.
pub(super) fn settles(probability: f64, cost: f64) -> bool {
    (1.0 - probability) * cost <= probability
}

/// Whether white space after the removed part may belong to the text: any white space after dots, or more than one
/// blank line after an announcement.
pub(super) fn is_spaced(joint: &Joint<'_>, story: &Candidate) -> bool {
    let ahead = joint.continuation[..story.opening].trim_end().len();
    let rest = &joint.continuation[ahead..];
    let space = &rest[..rest.len() - rest.trim_start().len()];
    story.repeated == 0
        && match story.style {
            SeamStyle::Ellipsis => !space.is_empty(),
            SeamStyle::Preamble => space.matches('\n').count() > 2,
            _ => false,
        }
}

/// Returns the signs of a story that do not depend on its rivals.
pub(super) fn story_signs(joint: &Joint<'_>, story: &Candidate, left_out: bool) -> Vec<DecisionSign> {
    let is_clean_from = |from: AskedFrom| story.is_clean && joint.from == from;
    let style = |style: SeamStyle| story.style == style;
    let dots_kept = || {
        story.is_clean
            && joint.from != AskedFrom::Cut
            && ellipsis::position_after(joint.continuation).is_some()
    };
    let is_slight = (1..MAX_SMALL_OVERLAP_BYTES).contains(&story.repeated);
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
        (DecisionSign::Hair, (1..MAX_TRIVIAL_OVERLAP_BYTES).contains(&story.repeated)),
        (
            DecisionSign::Slight,
            (MAX_TRIVIAL_OVERLAP_BYTES..MAX_SMALL_OVERLAP_BYTES).contains(&story.repeated),
        ),
        (DecisionSign::Restart, style(SeamStyle::Restart)),
        (DecisionSign::Whitespace, style(SeamStyle::Whitespace)),
        (DecisionSign::Glued, !story.glue.is_empty()),
        (DecisionSign::Ellipsis, style(SeamStyle::Ellipsis)),
        (DecisionSign::Spaced, is_spaced(joint, story)),
        (DecisionSign::DotsKept, dots_kept()),
        (DecisionSign::Fence, style(SeamStyle::Fence) && !is_slight),
        (DecisionSign::Fenced, story.fenced && !is_slight),
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
pub(super) fn names() -> Vec<String> {
    let signs = SIGNS.iter().map(|sign| format!("{sign:?}"));
    let kinds = ["Grammar", "Plain"].into_iter().flat_map(|text| {
        ["AheadOfAll", "AheadOfRival", "AheadOfNothing"].map(|kind| format!("{text}{kind}"))
    });
    signs.chain(kinds.flat_map(|kind| KNOTS.map(|knot| format!("{kind}To{knot}")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_are_listed_in_the_order_of_the_signs() {
        let names = names();
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
        assert!(settles(at(14.0), COST_OF_WRONG) && !settles(at(1.0), COST_OF_WRONG));
    }

    #[test]
    fn a_feature_row_sums_up_to_the_bits() {
        for bits in [0.0, 3.0, 11.5, 30.0] {
            let row = row(&[DecisionSign::Any], SeamLead { all: bits, rival: 0.0, nothing: 0.0 });
            assert!((row.iter().sum::<f64>() - bits - 1.0).abs() < 1e-9, "{bits}");
        }
        assert!((SeamLead::from_weights(0.0, 0.0, 0.0, 0.0).all - 30.0).abs() < 1e-9);
    }
}
