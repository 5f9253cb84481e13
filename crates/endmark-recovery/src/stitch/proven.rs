//! Joining what is proven to go on at the cut: where it is joined is known, and only its end is in question (PC-4).

use super::candidate::Candidate;
use super::evidence::Weighed;
use super::joint::{Asked, Joint};
use super::seam::{AskedFrom, MergeError, Merged, SeamStyle};
use super::survivor::{self, Survivor};
use super::{no_seam, plain, rejected, rows};
use crate::{Format, Verdict};

/// Joins a cut text with what is proven to follow it. Behind its end an answer in words may have a closing fence or a remark,
/// unless the answer `is_cut` itself.
///
/// # Errors
/// As [`merge_chunks`](super::merge_chunks); never [`MergeError::Ambiguous`].
pub(crate) fn merge_proven(
    initial: &str,
    rest: &str,
    format: &Format,
    is_cut: bool,
) -> Result<Merged, MergeError> {
    let asked = if is_cut { Asked::Shown } else { Asked::InWords };
    let joint = Joint::new(initial, rest, format, AskedFrom::Cut).asked(asked);
    if joint.lost_character || matches!(joint.verdict, Verdict::Malformed { .. }) {
        return Err(no_seam(&joint, initial, rest, "the first part cannot be gone on with"));
    }
    let mut bare = bare(&joint);
    if joint.format == Format::Jsonl && !joint.in_text {
        // As it flows: nothing behind the seam is looked at.
        let fit = rows::fit(&joint.state_at(bare.keep), joint.initial, joint.continuation, "");
        (bare.glue, bare.start) = (fit.glue, fit.skipped);
    }
    let survivor = if joint.has_grammar() {
        survivor::verify(&joint, vec![bare]).pop()
    } else {
        at_cut(&joint).or_else(|| survivor::verify(&joint, vec![bare]).pop())
    };
    let Some(survivor) = survivor else { return Err(rejected(&joint, initial, rest)) };
    let merged = survivor::merged(&joint, &survivor, 1.0, 0);
    match merged.verdict {
        Verdict::Truncated(_) if joint.format != Format::Text => {
            Err(MergeError::StillTruncated { merged: Box::new(merged) })
        }
        _ => Ok(merged),
    }
}

/// The rest as it stands.
fn bare(joint: &Joint<'_>) -> Candidate {
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

/// The likeliest of the stories that differ by where a text without grammar ends; none where that is not settled: then all
/// of it is the text's.
fn at_cut(joint: &Joint<'_>) -> Option<Survivor> {
    let (survivors, weighed): (Vec<Survivor>, Weighed) = plain::weighed(joint)?;
    let is_bare = |survivor: &Survivor| {
        let own = &survivor.candidate;
        own.start == 0 && own.repeated == 0 && own.glue.is_empty()
    };
    let costs = weighed.costs;
    let bare = survivors.into_iter().zip(costs).filter(|(survivor, _)| is_bare(survivor));
    bare.min_by(|(_, left), (_, right)| left.total_cmp(right)).map(|(survivor, _)| survivor)
}
