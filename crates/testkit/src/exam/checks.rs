//! What is looked at besides the answer, and the exam's four marks.

use std::fmt;
use std::time::Duration;

use super::Scenario;
use super::sit::Seen;

/// Something that a good candidate does, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Check {
    /// The provider with the fault was tried at least so often.
    TriesAtLeast(usize),
    /// The provider with the fault was tried at most so often.
    TriesAtMost(usize),
    /// It was tried at most so often in the first seconds.
    TriesWithin {
        /// From the first try on.
        seconds: f64,
        /// The first try counts.
        at_most: usize,
    },
    /// The second try came so many seconds after the first, or later.
    WaitsFor(f64),
    /// The reply names this model.
    ReportedModel(&'static str),
    /// The reply counts its tokens.
    Usage,
    /// The error that came has the provider's own reason in it.
    Reason,
    /// Every request was answered while the provider was down.
    ServedDuringOutage,
    /// Once the provider was back, it was used again for one of so many requests.
    BackAfter(usize),
    /// While it was down, it was tried no more often than requests came. Told, and not marked.
    Probes,
}

impl Check {
    /// Whether missing it only costs the best mark.
    fn is_advisory(self) -> bool {
        matches!(self, Self::TriesAtLeast(_) | Self::WaitsFor(_) | Self::Usage)
    }

    /// Whether it is only told, as in the exam itself.
    fn is_told_only(self) -> bool {
        matches!(self, Self::Probes)
    }

    fn passes(self, seen: &Seen) -> bool {
        let within = |took: Duration, seconds: f64| took <= Duration::from_secs_f64(seconds);
        match self {
            Self::TriesAtLeast(count) => seen.tries.len() >= count,
            Self::TriesAtMost(count) => seen.tries.len() <= count,
            Self::TriesWithin { seconds, at_most } => {
                let first = seen.tries.first().copied().unwrap_or_default();
                seen.tries.iter().filter(|at| within(at.saturating_sub(first), seconds)).count() <= at_most
            }
            Self::WaitsFor(seconds) => match seen.tries[..] {
                [first, second, ..] => second.saturating_sub(first) >= Duration::from_secs_f64(seconds),
                _ => false,
            },
            Self::ReportedModel(model) => seen.called.model == model,
            Self::Usage => seen.called.has_usage,
            Self::Reason => {
                let word = seen.format.word_for_filtered();
                seen.called.error.as_ref().is_some_and(|error| error.contains(word))
            }
            Self::ServedDuringOutage => seen.in_outage > 0 && seen.in_outage == seen.served_in_outage,
            Self::BackAfter(requests) => seen.back_after.is_some_and(|after| after <= requests),
            Self::Probes => seen.tries_in_outage <= seen.in_outage,
        }
    }
}

/// What came of one check.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// Whether it was so.
    pub passed: bool,
}

/// The exam's marks, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The whole answer, and every check passed.
    Pass,
    /// The whole answer, and an advisory check failed.
    Partial,
    /// No answer, but a clean error in time.
    Safe,
    /// A cut answer passed as whole, a hang, or a check that must pass.
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pass => "pass",
            Self::Partial => "partial",
            Self::Safe => "safe",
            Self::Fail => "FAIL",
        })
    }
}

/// Looks at everything the scenario asks for.
pub(super) fn mark(scenario: &Scenario, seen: &Seen) -> (Verdict, Vec<Finding>) {
    let findings: Vec<Finding> =
        scenario.checks.iter().map(|check| Finding { check: *check, passed: check.passes(seen) }).collect();
    let failed = |advisory: bool| {
        let counts = |finding: &&Finding| !finding.passed && !finding.check.is_told_only();
        findings.iter().filter(counts).any(|finding| finding.check.is_advisory() == advisory)
    };
    let claims_success = seen.called.error.is_none();
    let verdict = match (claims_success, seen.called.is_whole()) {
        _ if failed(false) || !seen.is_well_after || seen.called.hung => Verdict::Fail,
        (true, false) => Verdict::Fail,
        // Answered by going round the refusal.
        (true, true) if scenario.is_refused => Verdict::Partial,
        (false, _) if !scenario.is_refused => Verdict::Safe,
        _ if failed(true) => Verdict::Partial,
        _ => Verdict::Pass,
    };
    (verdict, findings)
}
