//! How sure a seam has to be before it is answered as settled: one ladder for texts with and without grammar, for chains and
//! for streams (PC-4).
//!
//! A share is the part of all evidence that speaks for one value. A text that is silently wrong costs more than a refusal, and the
//! more of the text a wrong seam would lose unseen, the surer it has to be. Each step was chosen on the half `fit` of the cases in
//! `bench/recovery`, and counted on the other.

/// The seam that was asked for at the cut, in a grammar: a clean continuation wins ties, and the grammar has accepted it.
pub(super) const AS_ASKED: f64 = 0.6;
/// A fence tells the seam: nothing of the text looks like one in that place, so that hardly anything is lost by it.
pub(super) const BY_FENCE: f64 = 0.9;
/// What a grammar accepts to its end, what was asked for in text without one, and what speaks about the answer: of such lines 98
/// of 100 are remarks, and one that is wrong leaves no word out.
pub(super) const LIKELY: f64 = 0.95;
/// The text begun anew, or a clean continuation that nobody is known to have asked for.
pub(super) const CLEAR: f64 = 0.97;
/// Text without grammar, words in front, dots: nothing but likelihood speaks for the seam.
pub(super) const SURE: f64 = 0.985;
/// So little is left out or added that it may be meant: white space, a word or two said twice.
pub(super) const SLIGHT: f64 = 0.998;
/// A letter or two, a word, a number that may be written anew: digits, doubled letters and doubled words are everywhere.
pub(super) const HAIR: f64 = 0.9997;

/// The share that something else altogether may have at a settled seam.
pub(super) const IN_DOUBT: f64 = 0.15;
/// The share with which a clean continuation that was asked for wins over a likelier one, in text without grammar.
pub(super) const TIED: f64 = 0.13;
