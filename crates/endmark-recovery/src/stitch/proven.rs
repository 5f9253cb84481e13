//! Joins an answer that provably continues at the cut. The seam is known, and only the end is unknown (PC-4).
//!
//! A model that proved the seam followed the request, so the end of the answer is the end of the text. Only two
//! things are removed: text outside a fence of the answer, and a remark to the reader after a text that never
//! addresses one.

use endmark_text::{Format, Verdict};

use super::candidate::Candidate;
use super::joint::{ContinuationMode, Joint};
use super::opening::Opening;
use super::seam::{AskedFrom, MergeError, Merged, SeamStyle};
use super::{ReasoningSigns, fence, may_be_reasoning, no_seam, plain, rejection_reason, rows, survivor};

/// Joins a cut text with an answer that provably follows it. `before` is the text or fence at the beginning of the
/// answer. After the end of the text that fence may be closed, or a remark may follow, unless the answer `is_cut`
/// itself.
///
/// # Errors
/// As [`merge_chunks`](super::merge_chunks). [`MergeError::Ambiguous`] only for signs of reasoning.
pub(crate) fn merge_proven(
    initial: &str,
    (before, rest): (&str, &str),
    format: &Format,
    is_cut: bool,
    known: ReasoningSigns,
) -> Result<Merged, MergeError> {
    let mode = if is_cut { ContinuationMode::Unfinished } else { ContinuationMode::Proven };
    let joint = Joint::with_reasoning_signs(initial, rest, format, AskedFrom::Cut, known).with_mode(mode);
    if joint.lost_character || matches!(joint.verdict, Verdict::Malformed { .. }) {
        return Err(no_seam(&joint, initial, rest, "the first part cannot be gone on with"));
    }
    let mut bare = unchanged_candidate(&joint);
    if joint.format == Format::Jsonl && !joint.in_text {
        // As in a stream, the text after the seam is not examined.
        let fit = rows::fit(&joint.state_at(bare.keep), joint.initial, joint.continuation, "");
        (bare.glue, bare.start) = (fit.glue, fit.skipped);
    }
    let survivor = if joint.has_grammar() {
        survivor::verify(&joint, vec![bare]).pop()
    } else {
        let own = Opening { fence: fence::last_open_fence(before), ..Opening::BARE };
        Some(plain::survivor(Candidate { end: plain::end_at_cut(&joint, &own), ..bare }))
    };
    let Some(survivor) = survivor else { return Err(rejection_reason(&joint, initial, rest)) };
    let merged = survivor::into_merged(&joint, &survivor, 1.0, 0);
    if may_be_reasoning(&joint, &survivor) {
        return Err(MergeError::Ambiguous { best: Box::new(merged), alternatives: 0 });
    }
    match merged.verdict {
        Verdict::Truncated(_) if joint.format != Format::Text => {
            Err(MergeError::StillTruncated { merged: Box::new(merged) })
        }
        _ => Ok(merged),
    }
}

/// Returns the candidate that adds the rest unchanged.
fn unchanged_candidate(joint: &Joint<'_>) -> Candidate {
    Candidate {
        keep: joint.initial.len(),
        glue: "",
        start: 0,
        end: joint.continuation.len(),
        style: SeamStyle::Exact,
        cost: 0.0,
        opening: 0,
        repeated: 0,
        is_clean: true,
        fenced: false,
        announced: 0.0,
    }
}
