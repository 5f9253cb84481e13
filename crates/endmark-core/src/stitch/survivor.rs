//! Candidates that the grammar accepts: each is run on from the detector's saved state.

use crate::{Format, Verdict};

use super::candidate::Candidate;
use super::joint::Joint;
use super::preamble;
use super::seam::{Merged, Seam, SeamStyle};

/// A candidate whose text is whole or a valid beginning.
#[derive(Debug)]
pub(super) struct Survivor {
    pub(super) candidate: Candidate,
    pub(super) verdict: Verdict,
    /// Whether a remark behind the end was left out.
    pub(super) left_out_remark: bool,
}

/// Runs a candidate on from the saved state; none where the grammar rejects it.
pub(super) fn verify(joint: &Joint<'_>, mut candidate: Candidate) -> Option<Survivor> {
    if candidate.start > candidate.end {
        return None;
    }
    let mut left_out_remark = false;
    let mut verdict = run(joint, &candidate);
    if let Some(end) = end_before_remark(joint, &candidate, &verdict) {
        candidate.end = end;
        left_out_remark = true;
        verdict = run(joint, &candidate);
    }
    if matches!(verdict, Verdict::Malformed { .. }) || left_out_remark && !verdict.is_whole() {
        return None;
    }
    if left_out_remark && candidate.style == SeamStyle::Exact {
        candidate.style = SeamStyle::Remark;
    }
    Some(Survivor { candidate, verdict, left_out_remark })
}

fn run(joint: &Joint<'_>, candidate: &Candidate) -> Verdict {
    let mut detector = joint.state_at(candidate.keep);
    detector.push(candidate.glue.as_bytes());
    detector.push(&joint.continuation.as_bytes()[candidate.start..candidate.end]);
    detector.verdict()
}

/// Where the document ends in the continuation, if only a remark follows.
fn end_before_remark(joint: &Joint<'_>, candidate: &Candidate, verdict: &Verdict) -> Option<usize> {
    let Verdict::Malformed { index, .. } = verdict else { return None };
    // The remark's own white space belongs to it, so that it can be told from a broken document.
    let offset = index.checked_sub(candidate.keep + candidate.glue.len())?;
    let body = joint.continuation.get(candidate.start..candidate.start + offset)?;
    let end = candidate.start + body.trim_end().len();
    let rest = joint.continuation.get(end..candidate.end)?;
    // What has rows in it is no remark about rows.
    let has_rows = joint.format == Format::Jsonl
        && rest.lines().any(|line| line.trim_start().starts_with('{') && line.trim_end().ends_with('}'));
    (end < candidate.end && preamble::is_remark(rest) && !has_rows).then_some(end)
}

/// The joined text of a candidate.
pub(super) fn text_of(joint: &Joint<'_>, candidate: &Candidate) -> String {
    let kept = &joint.initial[..candidate.keep];
    let part = &joint.continuation[candidate.start..candidate.end];
    let mut text = String::with_capacity(kept.len() + candidate.glue.len() + part.len());
    text.push_str(kept);
    text.push_str(candidate.glue);
    text.push_str(part);
    text
}

/// The merged text of a survivor with its seam.
pub(super) fn merged(joint: &Joint<'_>, survivor: &Survivor, confidence: f64, alternatives: usize) -> Merged {
    let candidate = &survivor.candidate;
    let used = candidate.keep + candidate.end - candidate.start;
    let received = joint.initial.len() + joint.continuation.len() + joint.dropped;
    Merged {
        text: text_of(joint, candidate),
        seam: Seam {
            at: candidate.keep + candidate.glue.len(),
            style: candidate.style,
            dropped_bytes: received - used,
            confidence,
            alternatives,
        },
        verdict: survivor.verdict.clone(),
    }
}
