//! What joining two pieces of a text gives: the merged text and its seam, or why there is none (PC-4).

use crate::Verdict;

/// Where the model was asked to go on (PC-4).
///
/// `[1, 2` and the answer `3]` make `[1, 23]` from the cut, and `[1, 3]` from the last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskedFrom {
    /// At the cut: the model continues an unfinished message.
    Cut,
    /// After the last valid token: a prompt asked for the rest.
    Token,
    /// It is not known; both are candidates.
    Unknown,
}

impl AskedFrom {
    /// The literal name, as in commands and the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Token => "token",
            Self::Unknown => "unknown",
        }
    }
}

/// Where and how a continuation was joined (PC-4).
#[derive(Debug, Clone, PartialEq)]
pub struct Seam {
    /// Byte offset in the merged text where the continuation's part begins.
    pub at: usize,
    /// What the continuation looked like there.
    pub style: SeamStyle,
    /// Bytes left out on both sides: what was repeated, a fence, a preamble.
    pub dropped_bytes: usize,
    /// How sure the seam is, from 0 to 1.
    pub confidence: f64,
    /// Other seams that survived and give a different value.
    pub alternatives: usize,
}

/// How a continuation began, as seen from the text before it (PC-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SeamStyle {
    /// It went on exactly at the cut.
    Exact,
    /// It went on after the last valid token.
    Token,
    /// It repeated the end of the text before it.
    Overlap,
    /// It was wrapped in a code fence.
    Fence,
    /// It began with a remark of its own.
    Preamble,
    /// It began with an ellipsis.
    Ellipsis,
    /// It began again: the open string, an object, or the whole text.
    Restart,
    /// The whitespace at the seam was lost or doubled.
    Whitespace,
}

impl SeamStyle {
    /// The literal name, as in the log and the answers of `stitch`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Token => "token",
            Self::Overlap => "overlap",
            Self::Fence => "fence",
            Self::Preamble => "preamble",
            Self::Ellipsis => "ellipsis",
            Self::Restart => "restart",
            Self::Whitespace => "whitespace",
        }
    }
}

/// Two pieces joined at a settled seam (PC-4).
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The joined text.
    pub text: String,
    /// Where and how it was joined.
    pub seam: Seam,
    /// The verdict on the joined text.
    pub verdict: Verdict,
}

/// Why two pieces could not be joined into a whole text (PC-4).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// More than one seam is plausible, and they give different values.
    #[error("{alternatives} other seams are as plausible and give different values")]
    Ambiguous {
        /// The best candidate.
        best: Box<Merged>,
        /// How many others there are.
        alternatives: usize,
    },
    /// The seam is settled, and the text is not at its end yet: the next continuation goes on from it.
    #[error("joined, and the text is still not at its end")]
    StillTruncated {
        /// What was joined so far.
        merged: Box<Merged>,
    },
    /// Joined at the best seam, the text is not valid.
    #[error("joined at the best seam, the text is not valid: {reason}")]
    Malformed {
        /// The merged attempt.
        attempt: String,
        /// The first bytes of the attempt that are verified.
        verified_len: usize,
        /// What is wrong: a lowercase fragment.
        reason: String,
    },
    /// The continuation fits nowhere.
    #[error("the continuation fits nowhere: {reason}")]
    NoSeam {
        /// The merged attempt.
        attempt: String,
        /// The first bytes of the attempt that are verified.
        verified_len: usize,
        /// Why not: a lowercase fragment.
        reason: String,
    },
}
