//! Joins an answer that provably continues at the cut, so that only its end is uncertain (PC-4).
//!
//! A model that has proved its seam followed the request, so the end of its answer is the end of the text.
//! Only two things are removed: text outside the answer's fence, and a remark to the reader after a text that
//! never addresses one.

use endmark_text::{Format, Verdict};

use super::candidate::Candidate;
use super::continuation_start::ContinuationStart;
use super::joint::{ContinuationMode, Joint};
use super::seam::{AskedFrom, MergeError, Merged, SeamStyle};
use super::{ReasoningSigns, fence, may_be_reasoning, no_seam, plain, rejection_reason, rows, survivor};

/// Joins a cut text with an answer that provably follows it. `before` is the text or fence before the rest in
/// the answer. That fence may be closed after the text, or a remark may follow, unless the answer itself is
/// cut (`is_cut`).
///
/// Returns the errors of [`merge_chunks`](super::merge_chunks). Returns [`MergeError::Ambiguous`] only for
/// signs of reasoning.
pub(crate) fn merge_proven(
    initial: &str,
    (before, rest): (&str, &str),
    format: &Format,
    is_cut: bool,
    known: ReasoningSigns,
) -> Result<Merged, MergeError> {
    let mode = if is_cut { ContinuationMode::Unfinished } else { ContinuationMode::Proven };
    let joint = Joint::with_reasoning_signs(initial, rest, format, AskedFrom::Cut, known).with_mode(mode);
    if joint.has_lost_character || matches!(joint.verdict, Verdict::Malformed { .. }) {
        return Err(no_seam(&joint, initial, rest, "the first part cannot be gone on with"));
    }
    let mut bare = unchanged_candidate(&joint);
    if joint.format == Format::Jsonl && !joint.in_text {
        // As in a stream, the text after the seam is not examined.
        let fit = rows::row_break_fix(&joint.state_at(bare.keep), joint.initial, joint.continuation, "");
        (bare.glue, bare.start) = (fit.glue, fit.removed_bytes);
    }
    let survivor = if joint.has_grammar() {
        survivor::verify(&joint, vec![bare]).pop()
    } else {
        let own = ContinuationStart { fence: fence::last_open_fence(before), ..ContinuationStart::UNCHANGED };
        Some(plain::into_survivor(Candidate { end: plain::end_at_cut(&joint, &own), ..bare }))
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

/// Returns the candidate that appends the rest unchanged.
fn unchanged_candidate(joint: &Joint<'_>) -> Candidate {
    Candidate {
        keep: joint.initial.len(),
        glue: "",
        start: 0,
        end: joint.continuation.len(),
        style: SeamStyle::Exact,
        cost: 0.0,
        text_start: 0,
        repeated_bytes: 0,
        is_clean: true,
        is_fenced: false,
        announcement_bits: 0.0,
    }
}
