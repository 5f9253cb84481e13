//! Runs a scenario for a candidate.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::call::{CallResult, call};
use super::checks::{CheckResult, Verdict, mark};
use super::format::ExamFormat;
use super::{FaultTiming, HEALTHY_MODEL, PRIMARY_MODEL, ProviderFault, RESTORE_MODEL, Scenario};
use crate::TEST_TIMEOUT;
use crate::upstream::{ReceivedRequest, Upstream};

/// Result of one scenario.
#[derive(Debug, Clone)]
pub struct ScenarioResult {
    /// The format of the run.
    pub format: ExamFormat,
    /// The scenario's id.
    pub id: &'static str,
    /// The mark.
    pub verdict: Verdict,
    /// Results of the checks.
    pub findings: Vec<CheckResult>,
    /// Times at which the provider with the fault was tried, since the first request.
    pub tries: Vec<Duration>,
    /// Number of times that the fallback provider was tried.
    pub fallback_tries: usize,
    /// How long the caller waited.
    pub took: Duration,
    /// The error that the caller received instead of a reply.
    pub error: Option<String>,
}

/// The observations by which a scenario is judged.
#[derive(Debug)]
pub(super) struct Observations {
    pub(super) format: ExamFormat,
    pub(super) call_result: CallResult,
    pub(super) tries: Vec<Duration>,
    pub(super) works_afterwards: bool,
    pub(super) requests_during_outage: usize,
    pub(super) served_during_outage: usize,
    pub(super) tries_during_outage: usize,
    /// Number of requests after the outage until the provider was tried again.
    pub(super) used_again_after: Option<usize>,
}

impl Observations {
    /// Returns empty observations.
    fn new(format: ExamFormat) -> Self {
        Self {
            format,
            call_result: CallResult::default(),
            tries: Vec::new(),
            works_afterwards: false,
            requests_during_outage: 0,
            served_during_outage: 0,
            tries_during_outage: 0,
            used_again_after: None,
        }
    }
}

/// Sends the scenario's requests through the candidate, and judges the result.
///
/// `primary` and `fallback` are the providers that the candidate forwards to. `primary` has just been started.
pub async fn run_scenario(
    scenario: &Scenario,
    format: ExamFormat,
    candidate: SocketAddr,
    (primary, fallback): (&Upstream, &Upstream),
    pace: FaultTiming,
) -> ScenarioResult {
    let began = Instant::now();
    let mut seen = Observations::new(format);
    if scenario.failing == ProviderFault::Outage {
        send_while_flapping(format, candidate, primary, pace, &mut seen).await;
    } else {
        seen.call_result = call_with_timeout(format, candidate, PRIMARY_MODEL).await;
    }
    seen.tries = try_times(format, primary).into_iter().map(|at| at - began).collect();
    let fallback_tries = fallback.requests().len();
    seen.works_afterwards = call_with_timeout(format, candidate, HEALTHY_MODEL).await.is_whole();
    let (verdict, findings) = mark(scenario, &seen);
    let Observations { call_result: called, tries, .. } = seen;
    let (took, error) = (called.duration, called.error);
    ScenarioResult { format, id: scenario.id, verdict, findings, tries, fallback_tries, took, error }
}

/// Returns the times at which a provider was tried in the scenario.
fn try_times(format: ExamFormat, provider: &Upstream) -> Vec<Instant> {
    let of_scenario = |request: &ReceivedRequest| format.model(request) == PRIMARY_MODEL;
    provider.requests().into_iter().filter(of_scenario).map(|request| request.received_at).collect()
}

/// Sends requests one after another during the provider's outage, and then until the provider is used again.
async fn send_while_flapping(
    format: ExamFormat,
    candidate: SocketAddr,
    provider: &Upstream,
    pace: FaultTiming,
    seen: &mut Observations,
) {
    let mut worst: Option<CallResult> = None;
    let mut note = |called: CallResult| {
        let is_whole = called.is_whole();
        if worst.as_ref().is_none_or(CallResult::is_whole) {
            worst = Some(called);
        }
        is_whole
    };
    for _ in 0..pace.outage_requests {
        seen.requests_during_outage += 1;
        seen.served_during_outage +=
            usize::from(note(call_with_timeout(format, candidate, PRIMARY_MODEL).await));
        sleep(pace.pause_between_requests).await;
    }
    seen.tries_during_outage = try_times(format, provider).len();
    call_with_timeout(format, provider.address(), RESTORE_MODEL).await;
    for number in 1..=pace.max_requests_after_outage {
        note(call_with_timeout(format, candidate, PRIMARY_MODEL).await);
        if try_times(format, provider).len() > seen.tries_during_outage {
            seen.used_again_after = Some(number);
            break;
        }
        sleep(pace.pause_between_requests).await;
    }
    seen.call_result = worst.unwrap_or_default();
}

/// Makes a call with a time limit. A call that does not end is a result, and must not stop the exam.
async fn call_with_timeout(format: ExamFormat, candidate: SocketAddr, model: &str) -> CallResult {
    let hung = || CallResult {
        error: Some("hang".to_owned()),
        duration: TEST_TIMEOUT,
        has_timed_out: true,
        ..CallResult::default()
    };
    timeout(TEST_TIMEOUT, call(format, candidate, model)).await.unwrap_or_else(|_| hung())
}

impl fmt::Display for ScenarioResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (format, id, verdict, took) =
            (self.format.name(), self.id, self.verdict, self.took.as_secs_f64());
        let tries: Vec<String> = self.tries.iter().map(|at| format!("{:.2}", at.as_secs_f64())).collect();
        write!(
            formatter,
            "{format:<18} {id} {verdict:<8} {took:6.2} s  primary tried at [{}], fallback {} times",
            tries.join(", "),
            self.fallback_tries
        )?;
        for finding in self.findings.iter().filter(|finding| !finding.is_passed) {
            write!(formatter, "; not {:?}", finding.check)?;
        }
        match &self.error {
            Some(error) => write!(formatter, "; {error}"),
            None => Ok(()),
        }
    }
}
