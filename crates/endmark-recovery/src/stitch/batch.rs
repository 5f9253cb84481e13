//! Joins several consecutive continuations, for `endmark stitch` (PC-4, PC-5).

use endmark_text::Format;

use super::chain::{self, ChainResult};
use super::{AskedFrom, MergeError, Seam, merge_chunks};

/// The outcome of joining all parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The text is whole and certain.
    Whole,
    /// The text is the best of several candidates.
    Ambiguous,
    /// The text is the longest verified beginning.
    Error,
}

impl Outcome {
    /// Returns the name that JSON output uses: `whole`, `ambiguous` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Ambiguous => "ambiguous",
            Self::Error => "error",
        }
    }
}

/// Why the parts do not form a whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StitchError {
    /// `ambiguous`, `still_truncated`, `malformed`, `nothing_to_join` or `no_seam`.
    pub code: &'static str,
    /// The reason as text.
    pub message: String,
}

/// The result of joining all parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Stitched {
    /// The outcome for all parts together.
    pub outcome: Outcome,
    /// The whole text, the best candidate, or the longest verified beginning, depending on the outcome.
    pub text: String,
    /// One seam for each joined continuation, in order.
    pub seams: Vec<Seam>,
    /// Why the text is not whole. `None` if it is.
    pub error: Option<StitchError>,
}

/// Joins a first part and its continuations in order (PC-4). A later continuation may resolve the ambiguity
/// of an earlier one. If it does not, joining stops at the ambiguous seam, because everything after it would
/// depend on a guess.
///
/// ```
/// use endmark_recovery::stitch::{AskedFrom, Outcome, stitch};
/// use endmark_text::Format;
/// let parts = ["{\"a\": [1, 2", ", 3, ", "4]}"].map(String::from);
/// let stitched = stitch(&parts, &Format::Json, AskedFrom::Cut);
/// assert_eq!(stitched.outcome, Outcome::Whole);
/// assert_eq!(stitched.text, "{\"a\": [1, 2, 3, 4]}");
/// ```
pub fn stitch(chunks: &[String], format: &Format, from: AskedFrom) -> Stitched {
    match chunks.split_first() {
        Some((first, rest)) if rest.len() > 1 => {
            match chain::join_chain(first, rest, format, from).and_then(chain_outcome) {
                Some(stitched) => stitched,
                None => stitch_one_by_one(chunks, format, from),
            }
        }
        Some(_) | None => stitch_one_by_one(chunks, format, from),
    }
}

/// Returns the result of weighing all continuations together. Returns `None` if it is not certain and they
/// must be joined one by one to find the reason.
fn chain_outcome(chained: ChainResult) -> Option<Stitched> {
    if !chained.is_whole {
        return None;
    }
    let (outcome, error) = if chained.is_settled {
        (Outcome::Whole, None)
    } else {
        let message = "several ways to join the continuations are plausible".to_owned();
        (Outcome::Ambiguous, Some(StitchError { code: "ambiguous", message }))
    };
    Some(Stitched { outcome, text: chained.text, seams: chained.seams, error })
}

/// Joins the continuations one by one, as far as possible.
fn stitch_one_by_one(chunks: &[String], format: &Format, from: AskedFrom) -> Stitched {
    let mut text = chunks.first().cloned().unwrap_or_default();
    let mut seams = Vec::new();
    let mut verdict = None;
    for (index, continuation) in chunks.iter().enumerate().skip(1) {
        let is_last = index + 1 == chunks.len();
        let error = match merge_chunks(&text, continuation, format, from) {
            Ok(merged) => {
                text = merged.text;
                seams.push(merged.seam);
                verdict = Some(merged.verdict);
                continue;
            }
            Err(MergeError::StillTruncated { merged }) if !is_last => {
                text = merged.text;
                seams.push(merged.seam);
                verdict = Some(merged.verdict);
                continue;
            }
            Err(error) => error,
        };
        return failed_stitch(text, seams, error);
    }
    let verdict = verdict.unwrap_or_else(|| endmark_text::detect::detect(text.as_bytes(), format).verdict);
    let error = match &verdict {
        endmark_text::Verdict::Whole => None,
        // Text without a grammar has no defined end, so it never counts as unfinished.
        endmark_text::Verdict::Truncated(_) if *format == Format::Text => None,
        endmark_text::Verdict::Truncated(_) => {
            Some(StitchError { code: "still_truncated", message: "the text is not at its end".to_owned() })
        }
        endmark_text::Verdict::Malformed { index, reason } => {
            text.truncate(text.floor_char_boundary(*index));
            Some(StitchError { code: "malformed", message: format!("malformed at byte {index}: {reason}") })
        }
    };
    let outcome = if error.is_none() { Outcome::Whole } else { Outcome::Error };
    Stitched { outcome, text, seams, error }
}

fn failed_stitch(so_far: String, mut seams: Vec<Seam>, error: MergeError) -> Stitched {
    let reported = StitchError { code: error.code(), message: error.to_string() };
    let (outcome, text) = match error {
        MergeError::Ambiguous { best, .. } => {
            seams.push(best.seam.clone());
            (Outcome::Ambiguous, best.text)
        }
        MergeError::StillTruncated { merged } => {
            seams.push(merged.seam);
            (Outcome::Error, merged.text)
        }
        MergeError::Malformed { verified_len, .. }
        | MergeError::NothingToJoin { verified_len, .. }
        | MergeError::NoSeam { verified_len, .. } => {
            let mut text = so_far;
            text.truncate(text.floor_char_boundary(verified_len));
            (Outcome::Error, text)
        }
    };
    Stitched { outcome, text, seams, error: Some(reported) }
}
