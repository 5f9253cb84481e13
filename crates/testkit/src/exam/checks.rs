//! The checks in addition to the reply, and the exam's four marks.

use std::fmt;
use std::time::Duration;

use super::Scenario;
use super::scenario_run::Observations;

/// A property of a good candidate that can be observed from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Check {
    /// The provider with the fault was tried at least this many times.
    TriesAtLeast(usize),
    /// The provider with the fault was tried at most this many times.
    TriesAtMost(usize),
    /// The provider with the fault was tried at most this many times in the first seconds.
    TriesWithin {
        /// Seconds since the first try.
        seconds: f64,
        /// Maximum number of tries, including the first.
        at_most: usize,
    },
    /// The second attempt was at least this many seconds after the first.
    WaitsFor(f64),
    /// The reply names this model.
    ReportedModel(&'static str),
    /// The reply reports its token usage.
    Usage,
    /// The error contains the provider's own reason.
    Reason,
    /// Every request was answered while the provider was down.
    ServedDuringOutage,
    /// After the provider had recovered, it was used again within this many requests.
    BackAfter(usize),
    /// While the provider was down, it was tried at most once per request. Only reported, without effect on the mark.
    Probes,
}

impl Check {
    /// Whether a failed check costs only the best mark.
    fn is_advisory(self) -> bool {
        matches!(self, Self::TriesAtLeast(_) | Self::WaitsFor(_) | Self::Usage)
    }

    /// Whether the check is only reported, as in the exam itself.
    fn is_informational(self) -> bool {
        matches!(self, Self::Probes)
    }

    fn passes(self, seen: &Observations) -> bool {
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
            Self::ReportedModel(model) => seen.call_result.model == model,
            Self::Usage => seen.call_result.has_usage,
            Self::Reason => {
                let word = seen.format.word_for_filtered();
                seen.call_result.error.as_ref().is_some_and(|error| error.contains(word))
            }
            Self::ServedDuringOutage => seen.in_outage > 0 && seen.in_outage == seen.served_during_outage,
            Self::BackAfter(requests) => seen.back_after.is_some_and(|after| after <= requests),
            Self::Probes => seen.tries_in_outage <= seen.in_outage,
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// Whether it passed.
    pub is_passed: bool,
}

/// The exam's marks, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// A complete reply, and all checks passed.
    Pass,
    /// A complete reply, but an advisory check failed.
    Partial,
    /// No reply, but a clean error in time.
    Safe,
    /// A cut reply presented as complete, a hang, or a failed mandatory check.
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

/// Runs all checks of the scenario, and returns the mark.
pub(super) fn mark(scenario: &Scenario, seen: &Observations) -> (Verdict, Vec<Finding>) {
    let findings: Vec<Finding> = scenario
        .checks
        .iter()
        .map(|check| Finding { check: *check, is_passed: check.passes(seen) })
        .collect();
    let failed = |advisory: bool| {
        let counts = |finding: &&Finding| !finding.is_passed && !finding.check.is_informational();
        findings.iter().filter(counts).any(|finding| finding.check.is_advisory() == advisory)
    };
    let claims_success = seen.call_result.error.is_none();
    let verdict = match (claims_success, seen.call_result.is_whole()) {
        _ if failed(false) || !seen.recovers || seen.call_result.did_hang => Verdict::Fail,
        (true, false) => Verdict::Fail,
        // The candidate circumvented the refusal.
        (true, true) if scenario.is_refused => Verdict::Partial,
        (false, _) if !scenario.is_refused => Verdict::Safe,
        _ if failed(true) => Verdict::Partial,
        _ => Verdict::Pass,
    };
    (verdict, findings)
}
