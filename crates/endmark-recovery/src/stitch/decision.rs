//! How probable it is that a seam is right: one model for texts with and without grammar, for chains and for streams, and one
//! threshold (PC-4).
//!
//! What is known of the likeliest story is its signs, and by how many bits it is likelier than all else. Each has a weight in
//! `weights.rs`, which `cargo xtask fit` writes: those of a logistic regression on the cases of `bench/recovery` that are in the
//! half `fit`. A case that comes out wrong is a row for the next fit. What no likelihood may settle is not weighed but refused:
//! `doubts` of a text with a grammar, `plain::weigh` of one without.

mod weights;

use endmark_text::Format;

use super::candidate::Candidate;
use super::ellipsis;
use super::joint::Joint;
use super::seam::{AskedFrom, SeamStyle};

use weights::WEIGHTS;

/// A text that is silently wrong costs as much as so many refusals.
pub(super) const COST_OF_WRONG: f64 = 15.0;
/// The same of the clean continuation that was asked for at the cut, which nearly all are: to refuse that costs more.
pub(super) const COST_OF_WRONG_AS_ASKED: f64 = 3.0;
/// The same of what flows on to a reader before the rest has come, and of what may as well be the text's own.
pub(super) const COST_OF_WRONG_FOR_GOOD: f64 = 150.0;
/// What is no more than so many bits likelier than that the continuation is something else is not settled.
const IN_DOUBT: f64 = 2.5;
/// A weight is in units of so small a part of the logarithm of the odds.
const UNIT: f64 = 1024.0;
/// Up to each of these bits likelihood has a weight of its own, and beyond it another one: far ahead is no surer than ahead.
const KNOTS: [f64; 3] = [4.0, 9.0, 30.0];
/// So few bytes are a letter or two.
pub(super) const HAIR: usize = 4;
/// So few bytes are a word or two.
pub(super) const SLIGHT: usize = 20;

macro_rules! signs {
    ($($(#[$reason:meta])* $sign:ident,)*) => {
        /// What speaks for or against the likeliest story, apart from how likely it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Sign {
            $($(#[$reason])* $sign,)*
        }

        /// All signs, in the order of their weights.
        const SIGNS: &[Sign] = &[$(Sign::$sign,)*];
    };
}

signs! {
    /// Every seam has it.
    Any,
    /// A grammar has accepted the text, so that likelihood says more.
    Grammar,
    /// The cut goes through a string.
    InString,
    /// It is the clean continuation that was asked for at the cut.
    CleanAtCut,
    /// The same behind the last settled token.
    CleanBehindToken,
    /// It is a clean continuation of nobody knows where.
    CleanFromUnknown,
    /// The end of the first part is said again.
    Overlap,
    /// What is said again is a letter or two, which stand everywhere.
    Hair,
    /// What is said again is a word or two.
    Slight,
    /// The text, or a part of it, is begun anew.
    Restart,
    /// White space is left out or added.
    Whitespace,
    /// White space is added, of which the text does not say what it was.
    Glued,
    /// Dots are left out.
    Ellipsis,
    /// White space stands behind dots, or more than one blank line behind an announcement: how much of it is the text's own
    /// nothing tells.
    Spaced,
    /// Dots stay in a clean continuation that was not asked for at the cut, where they say that something is left out.
    DotsKept,
    /// A fence around the text is left out, which is there for nothing else.
    Fence,
    /// The same behind an announcement.
    Fenced,
    /// An announcement is left out, which may be of the text.
    Preamble,
    /// A remark is left out.
    Remark,
    /// What a string had of an escape is written anew.
    EscapeAnew,
    /// A number or a literal that the cut went through is written anew, or left out.
    TokenAnew,
    /// Another story is whole as it stands, without what this one leaves out.
    OtherIsWhole,
    /// The same, and this one leaves out or adds hardly anything.
    OtherIsWholeBesideLittle,
    /// The same, and what it leaves out is said twice, or dots.
    OtherIsWholeBesideTwice,
    /// A number or an escape goes on or is written anew: both are whole.
    MayBeAnew,
    /// A few words stand before and behind the cut: two equal neighbours, or one said twice.
    Neighbours,
    /// No other value has a story.
    Alone,
    /// In tags the letters at a seam say less.
    Tags,
    /// How often the text was to say what it goes round with is open.
    GoesRound,
}

/// By how many bits a value is likelier than what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ahead {
    /// Than all else together.
    pub(super) all: f64,
    /// Than the likeliest other value.
    pub(super) rival: f64,
    /// Than that the continuation is something else.
    pub(super) nothing: f64,
}

impl Ahead {
    /// Of a value of this weight, where others weigh so much together and the heaviest of them so much.
    pub(super) fn of(weight: f64, others: f64, rival: f64, nothing: f64) -> Self {
        let most = KNOTS[KNOTS.len() - 1];
        let ahead = |other: f64| {
            let bits = if other > 0.0 { (weight / other).log2() } else { most };
            if bits.is_nan() { -most } else { bits.clamp(-most, most) }
        };
        Self { all: ahead(others + nothing), rival: ahead(rival), nothing: ahead(nothing) }
    }

    /// Whether the continuation may well be something else altogether.
    pub(super) fn may_be_nothing(self) -> bool {
        self.nothing <= IN_DOUBT
    }
}

/// The kinds of likelihood, each in both kinds of texts, by the knots it is cut at.
const LIKELIHOODS: usize = 2 * 3 * KNOTS.len();
/// So many weights there are.
pub(super) const COUNT: usize = SIGNS.len() + LIKELIHOODS;

/// What a seam is judged by, in the order of the weights.
pub(super) fn row(signs: &[Sign], ahead: Ahead) -> [f64; COUNT] {
    let mut row = [0.0; COUNT];
    for sign in signs {
        row[*sign as usize] = 1.0;
    }
    let first = if signs.contains(&Sign::Grammar) { SIGNS.len() } else { COUNT - LIKELIHOODS / 2 };
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

/// How probable it is that the seam of a story with these signs is right, 0 to 1.
pub(super) fn probability(signs: &[Sign], ahead: Ahead) -> f64 {
    let odds: f64 =
        row(signs, ahead).iter().zip(WEIGHTS).map(|(value, (_, weight))| value * f64::from(weight)).sum();
    1.0 / (1.0 + (-odds / UNIT).exp())
}

/// Whether a probability settles a seam that costs so much if it is wrong.
pub(super) fn settles(probability: f64, cost: f64) -> bool {
    (1.0 - probability) * cost <= probability
}

/// Whether the white space behind what a story leaves out may be of the text or of what is left out: all behind dots, more than
/// a blank line behind an announcement.
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

/// The signs that a story has by itself, whatever its rivals.
pub(super) fn signs_of(joint: &Joint<'_>, story: &Candidate, left_out: bool) -> Vec<Sign> {
    let asked = |from: AskedFrom| story.is_clean && joint.from == from;
    let style = |style: SeamStyle| story.style == style;
    let dots_kept =
        || story.is_clean && joint.from != AskedFrom::Cut && ellipsis::after(joint.continuation).is_some();
    let is_slight = (1..SLIGHT).contains(&story.repeated);
    let signs = [
        (Sign::Any, true),
        (Sign::Grammar, joint.has_grammar()),
        (Sign::InString, joint.has_grammar() && joint.in_text),
        (Sign::CleanAtCut, asked(AskedFrom::Cut) && story.keep == joint.initial.len()),
        (Sign::CleanBehindToken, asked(AskedFrom::Token) && story.keep == joint.settled),
        (Sign::CleanFromUnknown, asked(AskedFrom::Unknown)),
        (Sign::Overlap, style(SeamStyle::Overlap)),
        (Sign::Hair, (1..HAIR).contains(&story.repeated)),
        (Sign::Slight, (HAIR..SLIGHT).contains(&story.repeated)),
        (Sign::Restart, style(SeamStyle::Restart)),
        (Sign::Whitespace, style(SeamStyle::Whitespace)),
        (Sign::Glued, !story.glue.is_empty()),
        (Sign::Ellipsis, style(SeamStyle::Ellipsis)),
        (Sign::Spaced, is_spaced(joint, story)),
        (Sign::DotsKept, dots_kept()),
        (Sign::Fence, style(SeamStyle::Fence) && !is_slight),
        (Sign::Fenced, story.fenced && !is_slight),
        (Sign::Preamble, style(SeamStyle::Preamble)),
        (Sign::Remark, left_out),
        (Sign::EscapeAnew, story.keep < joint.initial.len() && joint.in_text),
        (Sign::TokenAnew, story.keep < joint.initial.len() && !joint.in_text),
        (Sign::Tags, joint.format == Format::Tags),
    ];
    signs.into_iter().filter(|(_, holds)| *holds).map(|(sign, _)| sign).collect()
}

/// The names of the weights, in their order.
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
    fn the_weights_are_those_of_the_signs() {
        let names = names();
        assert!(SIGNS.iter().enumerate().all(|(at, sign)| *sign as usize == at));
        assert_eq!(WEIGHTS.map(|(name, _)| name), names.as_slice(), "run `cargo xtask fit`");
    }

    #[test]
    fn the_likelier_a_seam_is_the_more_probable() {
        let at = |bits: f64| {
            let ahead = Ahead { all: bits, rival: bits, nothing: bits };
            probability(&[Sign::Any, Sign::Grammar, Sign::CleanFromUnknown], ahead)
        };
        assert!(at(0.0) < at(4.0) && at(4.0) < at(12.0));
        assert!(settles(at(14.0), COST_OF_WRONG) && !settles(at(1.0), COST_OF_WRONG));
    }

    #[test]
    fn a_row_sums_up_to_the_bits() {
        for bits in [0.0, 3.0, 11.5, 30.0] {
            let row = row(&[Sign::Any], Ahead { all: bits, rival: 0.0, nothing: 0.0 });
            assert!((row.iter().sum::<f64>() - bits - 1.0).abs() < 1e-9, "{bits}");
        }
        assert!((Ahead::of(0.0, 0.0, 0.0, 0.0).all - 30.0).abs() < 1e-9);
    }
}
