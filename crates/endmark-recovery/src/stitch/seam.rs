//! What stitching answers with: the seam, the merged text, and the reasons not to merge (PC-4).

use endmark_text::Verdict;
use serde::{Serialize, Serializer};

/// Where the model was asked to go on (PC-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskedFrom {
    /// At the cut itself: an unfinished message that the provider continues.
    Cut,
    /// After the last valid token: what a resume prompt asks for.
    Token,
    /// Not known; both are candidates.
    Unknown,
}

impl AskedFrom {
    /// Reads the literal name; none for any other word.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "cut" => Some(Self::Cut),
            "token" => Some(Self::Token),
            "unknown" => Some(Self::Unknown),
            _ => None,
        }
    }

    /// The literal name: `cut`, `token` or `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Token => "token",
            Self::Unknown => "unknown",
        }
    }
}

/// How a continuation was joined. Where several things were undone, the outermost names the seam.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SeamStyle {
    /// At the cut, as it stands.
    Exact,
    /// After the last settled token, whose unfinished successor the continuation wrote anew.
    Token,
    /// After the end of the first part, which the continuation repeats.
    Overlap,
    /// The continuation begins the document, or an open object, array or string, anew.
    Restart,
    /// After whitespace that was added, or with whitespace that was lost.
    Whitespace,
    /// After dots of omission.
    Ellipsis,
    /// Inside a code fence.
    Fence,
    /// Inside quotation marks around all of it.
    Quotation,
    /// After an announcement or an apology.
    Preamble,
    /// As it stands, without the remark that follows the end of the document.
    Remark,
    /// At the cut, without the reasoning that the continuation begins with.
    Reasoning,
    /// In the place of the last word that came, which the continuation writes otherwise.
    Rewritten,
}

impl SeamStyle {
    /// The literal name, as in answers and in the log.
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

/// Where a continuation was joined, and how sure that is (PC-4).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seam {
    /// Byte offset in the merged text where the continuation's part begins.
    pub at: usize,
    /// How it was joined.
    pub style: SeamStyle,
    /// Bytes of both sides that are not in the merged text.
    pub dropped_bytes: usize,
    /// The beginning of those bytes, at most 80 characters.
    pub dropped: String,
    /// The share of the evidence that speaks for this seam, 0 to 1.
    pub confidence: f64,
    /// Other seams that survived and give a different value.
    pub alternatives: usize,
}

impl Seam {
    /// The same where these parts are not in the merged text either, which came before all that it dropped.
    pub(crate) fn with_dropped(self, parts: &[&str]) -> Self {
        Self {
            dropped_bytes: self.dropped_bytes + parts.iter().map(|part| part.len()).sum::<usize>(),
            dropped: beginning_of(parts.iter().copied().chain([self.dropped.as_str()])),
            ..self
        }
    }
}

/// The beginning of all that these parts of a text say, as [`Seam::dropped`] has it.
pub(crate) fn beginning_of<'t>(parts: impl IntoIterator<Item = &'t str>) -> String {
    const MAX_CHARS: usize = 80;
    parts.into_iter().flat_map(str::chars).take(MAX_CHARS).collect()
}

/// Two parts joined to one text (PC-4).
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The text.
    pub text: String,
    /// Where and how it was joined.
    pub seam: Seam,
    /// What detection says of the text.
    pub verdict: Verdict,
}

/// Why two parts were not joined to a verified text (PC-4). Nothing received is lost with it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// Several seams are plausible and give different values.
    #[error("the seam is ambiguous: {} could be right as well as the best", other_seams(*.alternatives))]
    Ambiguous {
        /// The best candidate.
        best: Box<Merged>,
        /// Other plausible seams with a different value; 0: only that the best one is itself in doubt.
        alternatives: usize,
    },
    /// Joined at a settled seam, but the grammar says that the text is not at its end yet: the next
    /// continuation goes on from the merged text.
    #[error("the continuation is itself cut: the seam is settled, the text is not at its end")]
    StillTruncated {
        /// The joined text.
        merged: Box<Merged>,
    },
    /// No seam gives a text that the grammar accepts.
    #[error("no seam gives a valid text: {reason}")]
    Malformed {
        /// Everything received, one part after the other.
        attempt: String,
        /// The length in bytes of the longest beginning of the attempt that is verified.
        verified_len: usize,
        /// What is wrong.
        reason: String,
    },
    /// The first part is whole already, and the continuation is more than white space or a closing fence: it may be an answer to
    /// something else.
    #[error("there is nothing to join: {reason}")]
    NothingToJoin {
        /// Everything received, one part after the other.
        attempt: String,
        /// The length in bytes of the first part.
        verified_len: usize,
        /// What is wrong.
        reason: String,
    },
    /// The continuation does not go on from the first part.
    #[error("the continuation does not go on from the first part: {reason}")]
    NoSeam {
        /// Everything received, one part after the other.
        attempt: String,
        /// The length in bytes of the longest beginning of the attempt that is verified.
        verified_len: usize,
        /// What is wrong.
        reason: String,
    },
}

impl MergeError {
    /// The literal code: `ambiguous`, `still_truncated`, `malformed`, `nothing_to_join` or `no_seam`.
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
