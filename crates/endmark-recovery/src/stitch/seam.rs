//! The results of stitching: the seam, the merged text, and the errors (PC-4).

use endmark_text::Verdict;
use serde::{Serialize, Serializer};

/// The position at which the model was asked to continue (PC-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskedFrom {
    /// At the cut, by sending an unfinished message that the server continues.
    Cut,
    /// After the last valid token, by a resume prompt.
    Token,
    /// Unknown. Both positions are candidates.
    Unknown,
}

impl AskedFrom {
    /// Parses the name of a position. Returns `None` for an unknown name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "cut" => Some(Self::Cut),
            "token" => Some(Self::Token),
            "unknown" => Some(Self::Unknown),
            _ => None,
        }
    }

    /// Returns the name: `cut`, `token` or `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Token => "token",
            Self::Unknown => "unknown",
        }
    }
}

/// How a continuation was joined. If several parts were removed, the style names the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SeamStyle {
    /// Unchanged, at the cut.
    Exact,
    /// After the last settled token. The continuation contains the unfinished token again.
    Token,
    /// After the end of the first part, which the continuation repeats.
    Overlap,
    /// After a part that the continuation begins again: the document, or an open object, array or string.
    Restart,
    /// With whitespace added or removed.
    Whitespace,
    /// After an ellipsis.
    Ellipsis,
    /// Inside a code fence.
    Fence,
    /// Inside quotation marks that enclose the whole rest.
    Quotation,
    /// After an announcement or an apology.
    Preamble,
    /// Unchanged, but without a remark after the end of the text.
    Remark,
    /// At the cut, after reasoning at the beginning of the continuation.
    Reasoning,
    /// Instead of the last received word, which the continuation spells differently.
    Rewritten,
}

impl SeamStyle {
    /// Returns the name that JSON output and the log use.
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

/// The position where two parts were joined, and its probability (PC-4).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seam {
    /// Offset in the merged text at which the continuation starts, in bytes.
    pub at: usize,
    /// How the continuation was joined.
    pub style: SeamStyle,
    /// Number of bytes of both parts that the merged text does not contain.
    pub dropped_bytes: usize,
    /// The beginning of these bytes, at most 80 characters.
    pub dropped: String,
    /// The probability that this seam is correct, from 0 to 1.
    pub confidence: f64,
    /// Number of other plausible seams that give a different value.
    pub alternatives: usize,
}

impl Seam {
    /// Adds parts to the dropped text, before everything that the seam already dropped.
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
    /// The joined text.
    pub text: String,
    /// The seam between the parts.
    pub seam: Seam,
    /// The verdict on the joined text.
    pub verdict: Verdict,
}

/// Why two parts were not joined to a verified text (PC-4). Every variant contains all received text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// Several seams with different values are possible.
    #[error("the seam is ambiguous: {} may be right as well as the best one", other_seams(*.alternatives))]
    Ambiguous {
        /// The best candidate.
        best: Box<Merged>,
        /// Number of other plausible seams with a different value. If it is 0, only the best seam itself is
        /// uncertain.
        alternatives: usize,
    },
    /// The seam is certain, but the text is unfinished in its format. The next continuation can be joined to
    /// it.
    #[error("the continuation is itself cut: the seam is certain, but the text is unfinished")]
    StillTruncated {
        /// The joined text.
        merged: Box<Merged>,
    },
    /// The grammar rejects the text of every candidate.
    #[error("no seam gives a valid text: {reason}")]
    Malformed {
        /// All received text, in order.
        attempt: String,
        /// Length of the longest verified beginning of `attempt`, in bytes.
        verified_len: usize,
        /// The reason as text.
        reason: String,
    },
    /// The first part is already whole, but the continuation is more than whitespace or a closing fence. It
    /// may answer something else.
    #[error("there is nothing to join: {reason}")]
    NothingToJoin {
        /// All received text, in order.
        attempt: String,
        /// Length of the first part, in bytes.
        verified_len: usize,
        /// The reason as text.
        reason: String,
    },
    /// The continuation does not continue the first part.
    #[error("the continuation does not continue the first part: {reason}")]
    NoSeam {
        /// All received text, in order.
        attempt: String,
        /// Length of the longest verified beginning of `attempt`, in bytes.
        verified_len: usize,
        /// The reason as text.
        reason: String,
    },
}

impl MergeError {
    /// Returns the error code: `ambiguous`, `still_truncated`, `malformed`, `nothing_to_join` or `no_seam`.
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
