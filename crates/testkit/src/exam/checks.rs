//! The checks that supplement the check of the reply, and the exam's four marks.

use std::fmt;
use std::time::Duration;

use super::Scenario;
use super::scenario_run::Observations;

/// A property of a good candidate that is visible from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Check {
    /// The provider with the fault was tried at least this many times.
    TriesAtLeast(usize),
    /// The provider with the fault was tried at most this many times.
    TriesAtMost(usize),
    /// The provider with the fault was tried at most `at_most` times in the first seconds.
    TriesWithin {
        /// Seconds since the first try.
        seconds: f64,
        /// Maximum number of tries, including the first.
        at_most: usize,
    },
    /// The second try was at least this many seconds after the first.
    WaitsAtLeast(f64),
    /// The reply names this model.
    ReportedModel(&'static str),
    /// The reply reports its token usage.
    ReportsUsage,
    /// The error contains the provider's own reason.
    PassesOnReason,
    /// Every request during the outage of the provider was answered.
    ServedDuringOutage,
    /// The provider was used again within this many requests after its outage.
    UsedAgainWithin(usize),
    /// During its outage, the provider was tried at most once per request. The result is only reported, and
    /// does not affect the mark.
    OneTryPerRequest,
}

impl Check {
    /// Whether the failed check only prevents the best mark.
    fn is_advisory(self) -> bool {
        matches!(self, Self::TriesAtLeast(_) | Self::WaitsAtLeast(_) | Self::ReportsUsage)
    }

    /// Whether the check is only reported, as in the exam itself.
    fn is_informational(self) -> bool {
        matches!(self, Self::OneTryPerRequest)
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
            Self::WaitsAtLeast(seconds) => match seen.tries[..] {
                [first, second, ..] => second.saturating_sub(first) >= Duration::from_secs_f64(seconds),
                _ => false,
            },
            Self::ReportedModel(model) => seen.call_result.model == model,
            Self::ReportsUsage => seen.call_result.has_usage,
            Self::PassesOnReason => {
                let word = seen.format.filter_message();
                seen.call_result.error.as_ref().is_some_and(|error| error.contains(word))
            }
            Self::ServedDuringOutage => {
                seen.requests_during_outage > 0 && seen.requests_during_outage == seen.served_during_outage
            }
            Self::UsedAgainWithin(requests) => seen.used_again_after.is_some_and(|after| after <= requests),
            Self::OneTryPerRequest => seen.tries_during_outage <= seen.requests_during_outage,
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone)]
pub struct CheckResult {
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
    /// A complete reply, but a failed advisory check.
    Partial,
    /// No reply, but a clean error in time.
    CleanError,
    /// A cut reply that was presented as complete, a call that did not end, or a failed mandatory check.
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pass => "pass",
            Self::Partial => "partial",
            Self::CleanError => "safe",
            Self::Fail => "FAIL",
        })
    }
}

/// Makes all checks of the scenario. Returns the mark, and the result of each check.
pub(super) fn mark(scenario: &Scenario, seen: &Observations) -> (Verdict, Vec<CheckResult>) {
    let findings: Vec<CheckResult> = scenario
        .checks
        .iter()
        .map(|check| CheckResult { check: *check, is_passed: check.passes(seen) })
        .collect();
    let failed = |advisory: bool| {
        let counts = |finding: &&CheckResult| !finding.is_passed && !finding.check.is_informational();
        findings.iter().filter(counts).any(|finding| finding.check.is_advisory() == advisory)
    };
    let claims_success = seen.call_result.error.is_none();
    let verdict = match (claims_success, seen.call_result.is_whole()) {
        _ if failed(false) || !seen.works_afterwards || seen.call_result.has_timed_out => Verdict::Fail,
        (true, false) => Verdict::Fail,
        // The candidate got a reply in spite of the refusal.
        (true, true) if scenario.may_pass_on_refusal => Verdict::Partial,
        (false, _) if !scenario.may_pass_on_refusal => Verdict::CleanError,
        _ if failed(true) => Verdict::Partial,
        _ => Verdict::Pass,
    };
    (verdict, findings)
}
