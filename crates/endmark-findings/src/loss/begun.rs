//! Findings that have begun, and whether any other round speaks of them. (AR-5, AR-6)

use super::{New, is_stopped_in};
use crate::finding::Finding;
use crate::join::overlap;
use crate::location::{Location, Place};
use crate::transcript::{AgentResult, FindingState, ReadFinding, letters};

/// How many findings that have begun under a title may not have come at all: no round has that title, or that weakness at that
/// place, and later rounds have brought fewer that are new, and might be them in other words.
pub(super) fn begun_and_never_told(results: &[(&AgentResult, New)]) -> usize {
    let mut open = 0_usize;
    for (at, (result, new)) in results.iter().enumerate() {
        let of_others = || {
            let (earlier, later) = (&results[..at], &results[at + 1..]);
            let kept = earlier.iter().flat_map(|(result, _)| result.kept());
            kept.chain(later.iter().flat_map(|(result, _)| &result.findings))
        };
        let is_open = |half: &&ReadFinding| {
            let is_titled = !letters(&half.finding.title).is_empty();
            is_titled && !of_others().any(|again| is_again(half, again, is_stopped_in(result, half)))
        };
        let halves = result.findings.iter().filter(|read| read.state == FindingState::NeedsReaudit);
        open = open.saturating_sub(new.certain + new.doubtful) + halves.filter(is_open).count();
    }
    open
}

/// How many findings without source or sink are none of those that the other rounds have: these say another title, another
/// weakness and another file. However many new ones come, none of them is it.
pub(super) fn told_apart(results: &[(&AgentResult, New)]) -> usize {
    let of_result = |(at, (result, _)): (usize, &(&AgentResult, New))| {
        let (earlier, later) = (&results[..at], &results[at + 1..]);
        let is_apart = |half: &&ReadFinding| {
            let mut of_others = earlier.iter().chain(later).flat_map(|(result, _)| &result.findings);
            half.state == FindingState::NeedsReaudit
                && is_told(&half.finding)
                && of_others.all(|other| is_another(&half.finding, &other.finding))
        };
        result.findings.iter().filter(is_apart).count()
    };
    results.iter().enumerate().map(of_result).sum()
}

/// Whether title, weakness and place of a finding are there.
fn is_told(finding: &Finding) -> bool {
    !letters(&finding.title).is_empty() && !finding.cwe.is_empty() && !places(finding).is_empty()
}

/// Whether two findings have nothing in common by which they could be one.
fn is_another(one: &Finding, other: &Finding) -> bool {
    let (title, own) = (letters(&one.title), letters(&other.title));
    is_told(other)
        && !title.starts_with(&own)
        && !own.starts_with(&title)
        && !one.cwe.iter().any(|cwe| other.cwe.contains(cwe))
        && is_elsewhere(one, other)
}

/// Whether a finding is what an earlier round has begun with: under its title and not in another file, or at its place and
/// with its weakness.
pub(super) fn is_again(half: &ReadFinding, again: &ReadFinding, is_cut: bool) -> bool {
    let (half, again) = (&half.finding, &again.finding);
    let (begun, title) = (letters(&half.title), letters(&again.title));
    let is_title = !begun.is_empty() && (begun == title || is_cut && title.starts_with(&begun));
    let is_weakness = half.cwe.is_empty() || half.cwe.iter().any(|cwe| again.cwe.contains(cwe));
    is_title && !is_elsewhere(half, again) || is_weakness && overlap(places(half), places(again))
}

/// Whether both say where they are, and no file is the same: lines may have been counted anew, and folders left out.
fn is_elsewhere(one: &Finding, other: &Finding) -> bool {
    let (one, other) = (places(one), places(other));
    let is_same =
        |one: &Place, other: &Place| one.file.ends_with(&other.file) || other.file.ends_with(&one.file);
    !one.is_empty()
        && !other.is_empty()
        && !one.iter().any(|one| other.iter().any(|other| is_same(one, other)))
}

fn places(finding: &Finding) -> &[Place] {
    finding.location.as_ref().map(Location::places).unwrap_or_default()
}
