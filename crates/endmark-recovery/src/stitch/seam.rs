//! The results of stitching: the seam, the merged text, and the reasons not to merge (PC-4).

use endmark_text::Verdict;
use serde::{Serialize, Serializer};

/// The position at which the model was asked to continue (PC-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskedFrom {
    /// At the cut, by an unfinished message that the provider continues.
    Cut,
    /// After the last valid token, by a resume prompt.
    Token,
    /// Unknown. Both positions are candidates.
    Unknown,
}

impl AskedFrom {
    /// Parses the literal name. Returns `None` for other words.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "cut" => Some(Self::Cut),
            "token" => Some(Self::Token),
            "unknown" => Some(Self::Unknown),
            _ => None,
        }
    }

    /// Returns the literal name: `cut`, `token` or `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Token => "token",
            Self::Unknown => "unknown",
        }
    }
}

/// How a continuation was joined. If several parts were removed, the outermost one determines the style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SeamStyle {
    /// At the cut, unchanged.
    Exact,
    /// After the last settled token. The continuation repeated the unfinished token.
    Token,
    /// After the end of the first part, which the continuation repeats.
    Overlap,
    /// The continuation begins the document again, or an open object, array or string.
    Restart,
    /// With white space added or removed.
    Whitespace,
    /// After dots of omission.
    Ellipsis,
    /// Inside a code fence.
    Fence,
    /// Inside quotation marks around all of it.
    Quotation,
    /// After an announcement or an apology.
    Preamble,
    /// Unchanged, without a remark after the end of the document.
    Remark,
    /// At the cut, without the reasoning that the continuation begins with.
    Reasoning,
    /// Replacing the last received word, which the continuation writes differently.
    Rewritten,
}

impl SeamStyle {
    /// Returns the literal name, as in answers and in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Token => "token",
            Self::Overlap => "overlap",
            Self::Restart => "restart",
            Self::Whitespace => "whitespace",
            Self::Ellipsis => "ellipsis",
            Self::Fence => "fence",
            Self::Quotation => "quotation",
            Self::Preamble => "preamble",
            Self::Remark => "remark",
            Self::Reasoning => "reasoning",
            Self::Rewritten => "rewritten",
        }
    }
}

impl Serialize for SeamStyle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The position of a join, and its probability (PC-4).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seam {
    /// Start of the continuation in the merged text, in bytes.
    pub at: usize,
    /// How it was joined.
    pub style: SeamStyle,
    /// Number of bytes of both parts that are not in the merged text.
    pub dropped_bytes: usize,
    /// The beginning of those bytes, at most 80 characters.
    pub dropped: String,
    /// The share of the evidence for this seam, from 0 to 1.
    pub confidence: f64,
    /// Number of other accepted seams that give a different value.
    pub alternatives: usize,
}

impl Seam {
    /// Adds parts to the dropped text, before everything that the seam dropped.
    pub(crate) fn prepend_dropped(self, parts: &[&str]) -> Self {
        Self {
            dropped_bytes: self.dropped_bytes + parts.iter().map(|part| part.len()).sum::<usize>(),
            dropped: dropped_beginning(parts.iter().copied().chain([self.dropped.as_str()])),
            ..self
        }
    }
}

/// Returns the beginning of these parts, in the form of [`Seam::dropped`].
pub(crate) fn dropped_beginning<'t>(parts: impl IntoIterator<Item = &'t str>) -> String {
    const MAX_CHARS: usize = 80;
    parts.into_iter().flat_map(str::chars).take(MAX_CHARS).collect()
}

/// Two parts joined to one text (PC-4).
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The text.
    pub text: String,
    /// The seam.
    pub seam: Seam,
    /// The verdict on the text.
    pub verdict: Verdict,
}

/// The reason why two parts were not joined to a verified text (PC-4). It contains all received text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// Several seams with different values are possible.
    #[error("the seam is ambiguous: {} may be right as well as the best one", other_seams(*.alternatives))]
    Ambiguous {
        /// The best candidate.
        best: Box<Merged>,
        /// The number of other plausible seams with a different value. With 0, only the best seam itself is in doubt.
        alternatives: usize,
    },
    /// The seam is certain, but the text is unfinished by its grammar. The next continuation continues the merged text.
    #[error("the continuation is itself cut: the seam is certain, but the text is unfinished")]
    StillTruncated {
        /// The joined text.
        merged: Box<Merged>,
    },
    /// The grammar accepts the text of no seam.
    #[error("no seam gives a valid text: {reason}")]
    Malformed {
        /// All received text, in order.
        attempt: String,
        /// The length in bytes of the longest verified beginning of the attempt.
        verified_len: usize,
        /// The reason.
        reason: String,
    },
    /// The first part is already whole, and the continuation is more than white space or a closing fence. It may
    /// answer something else.
    #[error("there is nothing to join: {reason}")]
    NothingToJoin {
        /// All received text, in order.
        attempt: String,
        /// The length in bytes of the first part.
        verified_len: usize,
        /// The reason.
        reason: String,
    },
    /// The continuation does not continue the first part.
    #[error("the continuation does not continue the first part: {reason}")]
    NoSeam {
        /// All received text, in order.
        attempt: String,
        /// The length in bytes of the longest verified beginning of the attempt.
        verified_len: usize,
        /// The reason.
        reason: String,
    },
}

impl MergeError {
    /// Returns the literal code: `ambiguous`, `still_truncated`, `malformed`, `nothing_to_join` or `no_seam`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Ambiguous { .. } => "ambiguous",
            Self::StillTruncated { .. } => "still_truncated",
            Self::Malformed { .. } => "malformed",
            Self::NothingToJoin { .. } => "nothing_to_join",
            Self::NoSeam { .. } => "no_seam",
        }
    }
}

fn other_seams(alternatives: usize) -> String {
    match alternatives {
        0 => "something else".to_owned(),
        1 => "another seam".to_owned(),
        several => format!("{several} other seams"),
    }
}
