//! Candidates that the grammar accepts: each is run on from the detector's saved state.

use std::collections::HashMap;

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::candidate::Candidate;
use super::joint::Joint;
use super::seam::{Merged, Seam, SeamStyle, beginning_of};
use super::{preamble, reasoning};

/// A candidate whose text is whole or a valid beginning.
#[derive(Debug)]
pub(super) struct Survivor {
    pub(super) candidate: Candidate,
    pub(super) standing: Standing,
    /// Whether a remark behind the end was left out.
    pub(super) left_out_remark: bool,
}

/// What the grammar says of a joined text, without the places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Whole,
    /// A valid beginning.
    Cut,
    /// Not asked: without a grammar no text is malformed, and no story weighs what it lacks.
    NotAsked,
}

impl Standing {
    pub(super) fn is_whole(self) -> bool {
        self == Self::Whole
    }
}

/// What becomes of a text: its standing, or the place in the continuation where the grammar rejects it; none where
/// that place is not in it.
type End = Result<Standing, Option<usize>>;

/// The candidates that the grammar accepts.
pub(super) fn verify(joint: &Joint<'_>, candidates: Vec<Candidate>) -> Vec<Survivor> {
    let mut runs = Runs::new(joint, &candidates);
    candidates.into_iter().filter_map(|candidate| survivor(&mut runs, candidate)).collect()
}

fn survivor(runs: &mut Runs<'_>, mut candidate: Candidate) -> Option<Survivor> {
    if candidate.start > candidate.end {
        return None;
    }
    let mut left_out_remark = false;
    let mut end = runs.end(&candidate);
    if let Some(before_remark) = end_before_remark(runs.joint, &candidate, end) {
        candidate.end = before_remark;
        left_out_remark = true;
        end = runs.end(&candidate);
    }
    let standing = end.ok()?;
    if left_out_remark && !standing.is_whole() {
        return None;
    }
    if left_out_remark && candidate.style == SeamStyle::Exact {
        candidate.style = SeamStyle::Remark;
    }
    Some(Survivor { candidate, standing, left_out_remark })
}

/// The runs of the detector through the continuation, from the saved state on. Where a run reaches a place in a state
/// in which another one stood there, both go on alike, and the rest is read once.
struct Runs<'a> {
    joint: &'a Joint<'a>,
    /// The places where candidates begin: runs may meet there.
    starts: Vec<usize>,
    /// Where a run came by, the end that it was to reach, in what state, and what became of it.
    known: HashMap<(usize, usize), Vec<(Detector, End)>>,
}

impl<'a> Runs<'a> {
    fn new(joint: &'a Joint<'a>, candidates: &[Candidate]) -> Self {
        let mut starts: Vec<usize> = candidates.iter().map(|candidate| candidate.start).collect();
        starts.sort_unstable();
        starts.dedup();
        Self { joint, starts, known: HashMap::new() }
    }

    /// What becomes of a candidate's text.
    fn end(&mut self, candidate: &Candidate) -> End {
        let part = self.joint.continuation.as_bytes();
        let mut detector = self.joint.state_at(candidate.keep);
        detector.push(candidate.glue.as_bytes());
        let mut passed = Vec::new();
        let mut at = candidate.start;
        let mut met = None;
        let next = self.starts.partition_point(|start| *start < candidate.start);
        for meeting in self.starts[next..].iter().copied().take_while(|start| *start <= candidate.end) {
            detector.push(&part[at..meeting]);
            at = meeting;
            if detector.is_malformed() {
                break;
            }
            let known = self.known.get(&(meeting, candidate.end));
            met = known
                .into_iter()
                .flatten()
                .find(|(other, _)| detector.goes_on_like(other))
                .map(|(_, end)| *end);
            if met.is_some() {
                break;
            }
            passed.push((meeting, detector.clone()));
        }
        let end = met.unwrap_or_else(|| {
            if !detector.is_malformed() {
                detector.push(&part[at..candidate.end]);
            }
            match detector.verdict() {
                Verdict::Whole => Ok(Standing::Whole),
                Verdict::Truncated(_) => Ok(Standing::Cut),
                Verdict::Malformed { index, .. } => {
                    let before = candidate.keep + candidate.glue.len();
                    Err(index.checked_sub(before).map(|length| candidate.start + length))
                }
            }
        });
        for (meeting, detector) in passed {
            self.known.entry((meeting, candidate.end)).or_default().push((detector, end));
        }
        end
    }
}

/// Where the document ends in the continuation, if only a remark follows.
fn end_before_remark(joint: &Joint<'_>, candidate: &Candidate, end: End) -> Option<usize> {
    let rejected = end.err()??;
    // The remark's own white space belongs to it, so that it can be told from a broken document.
    let body = joint.continuation.get(candidate.start..rejected)?;
    let body = if joint.format == Format::Jsonl { before_bracketed(joint, body, rejected) } else { body };
    let end = candidate.start + body.trim_end().len();
    let rest = joint.continuation.get(end..candidate.end)?;
    // What has rows in it is no remark about rows.
    let has_rows = joint.format == Format::Jsonl
        && rest
            .lines()
            .map(str::trim)
            .any(|line| line.starts_with(['{', '[']) && preamble::begins_json(line));
    let said = reasoning::behind(rest, joint.known);
    let is_remark = said.trim().is_empty() || preamble::is_remark(said);
    (end < candidate.end && is_remark && !has_rows).then_some(end)
}

/// What stands before the line in which a text is rejected, where that line looks like the beginning of a row and is none:
/// `[End of output]`, `---`.
fn before_bracketed<'t>(joint: &'t Joint<'_>, body: &'t str, rejected: usize) -> &'t str {
    let Some((before, begun)) = body.rsplit_once('\n').filter(|(_, begun)| !begun.trim().is_empty()) else {
        return body;
    };
    let rest = joint.continuation.get(rejected - begun.len()..).unwrap_or_default();
    let line = rest.lines().next().unwrap_or_default().trim();
    let words = line.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    let is_words = |words: &str| {
        words.starts_with(|sign: char| sign.is_alphabetic() || sign == '/')
            && !words.contains(['"', ',', '[', '{'])
    };
    let is_rule = line.len() >= 3 && line.bytes().all(|byte| byte == b'-');
    if words.is_some_and(is_words) || is_rule { before } else { body }
}

/// The parts of the joined text of a candidate.
pub(super) fn parts<'a>(joint: &Joint<'a>, candidate: &Candidate) -> [&'a str; 3] {
    [&joint.initial[..candidate.keep], candidate.glue, candidate.added(joint)]
}

/// The detector behind the joined text of a candidate.
fn detector(joint: &Joint<'_>, candidate: &Candidate) -> Detector {
    let mut detector = joint.state_at(candidate.keep);
    detector.push(candidate.glue.as_bytes());
    detector.push(candidate.added(joint).as_bytes());
    detector
}

/// Whether the joined text of a candidate is whole.
pub(super) fn is_whole(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    // Both parts are sound text, and so is what is joined of them.
    joint.format == Format::Text || detector(joint, candidate).is_whole()
}

/// The seam of a candidate.
pub(super) fn seam(joint: &Joint<'_>, candidate: &Candidate, confidence: f64, alternatives: usize) -> Seam {
    let used = candidate.keep + candidate.end - candidate.start;
    let received = joint.initial.len() + joint.continuation.len() + joint.dropped;
    let style = match candidate.style {
        SeamStyle::Exact if !joint.reasoning.is_empty() => SeamStyle::Reasoning,
        style => style,
    };
    let seam = Seam {
        at: candidate.keep + candidate.glue.len(),
        style,
        dropped_bytes: received - used,
        dropped: beginning_of([
            &joint.initial[candidate.keep..],
            &joint.continuation[..candidate.start],
            &joint.continuation[candidate.end..],
        ]),
        confidence,
        alternatives,
    };
    seam.with_dropped(&[joint.reasoning])
}

/// The merged text of a survivor with its seam.
pub(super) fn merged(joint: &Joint<'_>, survivor: &Survivor, confidence: f64, alternatives: usize) -> Merged {
    let candidate = &survivor.candidate;
    Merged {
        text: parts(joint, candidate).concat(),
        seam: seam(joint, candidate, confidence, alternatives),
        verdict: match joint.format {
            Format::Text => Verdict::Whole,
            _ => detector(joint, candidate).verdict(),
        },
    }
}
