//! Finds the survivors: the candidates that the grammar accepts. Each check continues from the detector's
//! saved state.

use std::collections::HashMap;

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::candidate::Candidate;
use super::joint::Joint;
use super::seam::{Merged, Seam, SeamStyle, dropped_beginning};
use super::{prompt_echo_and_remarks, reasoning};

/// A candidate that gives a whole text or a valid beginning.
#[derive(Debug)]
pub(super) struct Survivor {
    pub(super) candidate: Candidate,
    pub(super) grammar_state: GrammarState,
    /// Whether a remark after the end was removed.
    pub(super) has_dropped_remark: bool,
}

/// The result of checking a joined text with the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrammarState {
    Whole,
    /// The text is a valid beginning.
    Cut,
    /// The text was not checked, because text without a grammar is never malformed.
    NotChecked,
}

impl GrammarState {
    pub(super) fn is_whole(self) -> bool {
        self == Self::Whole
    }
}

/// The state of a text, or the position in the continuation at which the grammar rejects it. The position is
/// `None` if the fault is elsewhere.
type CheckResult = Result<GrammarState, Option<usize>>;

/// Returns the candidates that the grammar accepts.
pub(super) fn verify(joint: &Joint<'_>, candidates: Vec<Candidate>) -> Vec<Survivor> {
    let mut runs = SurvivorRuns::new(joint, &candidates);
    candidates.into_iter().filter_map(|candidate| survivor(&mut runs, candidate)).collect()
}

fn survivor(runs: &mut SurvivorRuns<'_>, mut candidate: Candidate) -> Option<Survivor> {
    if candidate.start > candidate.end {
        return None;
    }
    let mut left_out_remark = false;
    let mut end = runs.check(&candidate);
    if let Some(before_remark) = end_before_remark(runs.joint, &candidate, end) {
        candidate.end = before_remark;
        left_out_remark = true;
        end = runs.check(&candidate);
    }
    let remaining_end = end.ok()?;
    if left_out_remark && !remaining_end.is_whole() {
        return None;
    }
    if left_out_remark && candidate.style == SeamStyle::Exact {
        candidate.style = SeamStyle::Remark;
    }
    Some(Survivor { candidate, grammar_state: remaining_end, has_dropped_remark: left_out_remark })
}

/// Runs the detector through the continuation for each candidate. If two runs reach the same position in the
/// same state, the rest is read only once.
struct SurvivorRuns<'a> {
    joint: &'a Joint<'a>,
    /// The positions at which candidates start, where runs may meet.
    starts: Vec<usize>,
    /// The detector states of earlier runs with their results, by position and end.
    cache: HashMap<(usize, usize), Vec<(Detector, CheckResult)>>,
}

impl<'a> SurvivorRuns<'a> {
    fn new(joint: &'a Joint<'a>, candidates: &[Candidate]) -> Self {
        let mut starts: Vec<usize> = candidates.iter().map(|candidate| candidate.start).collect();
        starts.sort_unstable();
        starts.dedup();
        Self { joint, starts, cache: HashMap::new() }
    }

    /// Returns the result for a candidate's text.
    fn check(&mut self, candidate: &Candidate) -> CheckResult {
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
            let known = self.cache.get(&(meeting, candidate.end));
            met = known
                .into_iter()
                .flatten()
                .find(|(other, _)| detector.behaves_like(other))
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
                Verdict::Whole => Ok(GrammarState::Whole),
                Verdict::Truncated(_) => Ok(GrammarState::Cut),
                Verdict::Malformed { index, .. } => {
                    let before = candidate.keep + candidate.glue.len();
                    Err(index.checked_sub(before).map(|length| candidate.start + length))
                }
            }
        });
        for (meeting, detector) in passed {
            self.cache.entry((meeting, candidate.end)).or_default().push((detector, end));
        }
        end
    }
}

/// Returns the end of the document in the continuation, if only a remark follows it.
fn end_before_remark(joint: &Joint<'_>, candidate: &Candidate, end: CheckResult) -> Option<usize> {
    let rejected = end.err()??;
    // Whitespace before a remark belongs to it. It distinguishes a remark from a broken document.
    let body = joint.continuation.get(candidate.start..rejected)?;
    let body =
        if joint.format == Format::Jsonl { text_before_bracketed(joint, body, rejected) } else { body };
    let end = candidate.start + body.trim_end().len();
    let rest = joint.continuation.get(end..candidate.end)?;
    // Text that contains rows is not a remark.
    let has_rows = joint.format == Format::Jsonl
        && rest
            .lines()
            .map(str::trim)
            .any(|line| line.starts_with(['{', '[']) && prompt_echo_and_remarks::begins_json(line));
    let after_reasoning = reasoning::rest_after_reasoning(rest, joint.known_signs);
    let is_remark = after_reasoning.trim().is_empty() || prompt_echo_and_remarks::is_remark(after_reasoning);
    (end < candidate.end && is_remark && !has_rows).then_some(end)
}

/// Returns the text before the rejected line, if that line resembles the beginning of a row but is a remark:
/// `[End of output]`, `---`.
fn text_before_bracketed<'t>(joint: &'t Joint<'_>, body: &'t str, rejected: usize) -> &'t str {
    let Some((before, begun)) = body.rsplit_once('\n').filter(|(_, begun)| !begun.trim().is_empty()) else {
        return body;
    };
    let rest = joint.continuation.get(rejected - begun.len()..).unwrap_or_default();
    let line = rest.lines().next().unwrap_or_default().trim();
    let words = line.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    let is_words = |words: &str| {
        words.starts_with(|character: char| character.is_alphabetic() || character == '/')
            && !words.contains(['"', ',', '[', '{'])
    };
    let is_rule = line.len() >= 3 && line.bytes().all(|byte| byte == b'-');
    if words.is_some_and(is_words) || is_rule { before } else { body }
}

/// Returns the three parts of a candidate's text.
pub(super) fn parts<'a>(joint: &Joint<'a>, candidate: &Candidate) -> [&'a str; 3] {
    [&joint.initial[..candidate.keep], candidate.glue, candidate.added_text(joint)]
}

/// Returns the detector after a candidate's text.
fn detector(joint: &Joint<'_>, candidate: &Candidate) -> Detector {
    let mut detector = joint.state_at(candidate.keep);
    detector.push(candidate.glue.as_bytes());
    detector.push(candidate.added_text(joint).as_bytes());
    detector
}

/// Whether a candidate's text is whole.
pub(super) fn is_whole(joint: &Joint<'_>, candidate: &Candidate) -> bool {
    // Both parts are valid UTF-8, and so is their concatenation.
    joint.format == Format::Text || detector(joint, candidate).is_whole()
}

/// Returns the seam of a candidate.
pub(super) fn seam(joint: &Joint<'_>, candidate: &Candidate, confidence: f64, alternatives: usize) -> Seam {
    let used = candidate.keep + candidate.end - candidate.start;
    let received = joint.initial.len() + joint.continuation.len() + joint.dropped_bytes;
    let style = match candidate.style {
        SeamStyle::Exact if !joint.reasoning.is_empty() => SeamStyle::Reasoning,
        style => style,
    };
    let seam = Seam {
        at: candidate.keep + candidate.glue.len(),
        style,
        dropped_bytes: received - used,
        dropped: dropped_beginning([
            &joint.initial[candidate.keep..],
            &joint.continuation[..candidate.start],
            &joint.continuation[candidate.end..],
        ]),
        confidence,
        alternatives,
    };
    seam.prepend_dropped(&[joint.reasoning])
}

/// Returns the merged text of a survivor with its seam.
pub(super) fn into_merged(
    joint: &Joint<'_>,
    survivor: &Survivor,
    confidence: f64,
    alternatives: usize,
) -> Merged {
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
