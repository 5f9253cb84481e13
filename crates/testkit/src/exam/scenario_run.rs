//! Runs one scenario for a candidate.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::call::{CallResult, call};
use super::checks::{Finding, Verdict, mark};
use super::format::Format;
use super::{Failing, HEALTHY_MODEL, MODEL, Pace, RESTORE_MODEL, Scenario};
use crate::TEST_TIMEOUT;
use crate::upstream::{Received, Upstream};

/// Result of one scenario.
#[derive(Debug, Clone)]
pub struct Marks {
    /// The format of the run.
    pub format: Format,
    /// The scenario's id.
    pub id: &'static str,
    /// The mark.
    pub verdict: Verdict,
    /// Results of the checks.
    pub findings: Vec<Finding>,
    /// When the provider with the fault was tried, measured from the first request.
    pub tries: Vec<Duration>,
    /// Number of tries of the fallback provider.
    pub fallback_tries: usize,
    /// How long the caller waited.
    pub took: Duration,
    /// The error that the caller received instead of a reply.
    pub error: Option<String>,
}

/// The observations by which a scenario is judged.
#[derive(Debug)]
pub(super) struct Observations {
    pub(super) format: Format,
    pub(super) call_result: CallResult,
    pub(super) tries: Vec<Duration>,
    pub(super) recovers: bool,
    pub(super) in_outage: usize,
    pub(super) served_during_outage: usize,
    pub(super) tries_in_outage: usize,
    /// The number of requests after the outage until the provider was tried again.
    pub(super) back_after: Option<usize>,
}

impl Observations {
    /// Returns empty observations.
    fn new(format: Format) -> Self {
        Self {
            format,
            call_result: CallResult::default(),
            tries: Vec::new(),
            recovers: false,
            in_outage: 0,
            served_during_outage: 0,
            tries_in_outage: 0,
            back_after: None,
        }
    }
}

/// Sends the scenario's requests through the candidate, and judges the result.
///
/// `primary` and `fallback` are the providers that the candidate forwards to. `primary` has just been started.
pub async fn sit(
    scenario: &Scenario,
    format: Format,
    candidate: SocketAddr,
    (primary, fallback): (&Upstream, &Upstream),
    pace: Pace,
) -> Marks {
    let began = Instant::now();
    let mut seen = Observations::new(format);
    if scenario.failing == Failing::Flaps {
        send_while_flapping(format, candidate, primary, pace, &mut seen).await;
    } else {
        seen.call_result = call_with_timeout(format, candidate, MODEL).await;
    }
    seen.tries = tries(format, primary).into_iter().map(|at| at - began).collect();
    let fallback_tries = fallback.requests().len();
    seen.recovers = call_with_timeout(format, candidate, HEALTHY_MODEL).await.is_whole();
    let (verdict, findings) = mark(scenario, &seen);
    let Observations { call_result: called, tries, .. } = seen;
    let (took, error) = (called.took, called.error);
    Marks { format, id: scenario.id, verdict, findings, tries, fallback_tries, took, error }
}

/// Returns when a provider was tried for the scenario.
fn tries(format: Format, provider: &Upstream) -> Vec<Instant> {
    let of_scenario = |request: &Received| format.model(request) == MODEL;
    provider.requests().into_iter().filter(of_scenario).map(|request| request.received_at).collect()
}

/// Sends requests one after another: first while the provider is down, then until it is used again.
async fn send_while_flapping(
    format: Format,
    candidate: SocketAddr,
    provider: &Upstream,
    pace: Pace,
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
    for _ in 0..pace.outage {
        seen.in_outage += 1;
        seen.served_during_outage += usize::from(note(call_with_timeout(format, candidate, MODEL).await));
        sleep(pace.between).await;
    }
    seen.tries_in_outage = tries(format, provider).len();
    call_with_timeout(format, provider.address(), RESTORE_MODEL).await;
    for number in 1..=pace.after {
        note(call_with_timeout(format, candidate, MODEL).await);
        if tries(format, provider).len() > seen.tries_in_outage {
            seen.back_after = Some(number);
            break;
        }
        sleep(pace.between).await;
    }
    seen.call_result = worst.unwrap_or_default();
}

/// Makes a call with a time limit, because a hanging call is a result and must not stop the exam.
async fn call_with_timeout(format: Format, candidate: SocketAddr, model: &str) -> CallResult {
    let hung = || CallResult {
        error: Some("hang".to_owned()),
        took: TEST_TIMEOUT,
        did_hang: true,
        ..CallResult::default()
    };
    timeout(TEST_TIMEOUT, call(format, candidate, model)).await.unwrap_or_else(|_| hung())
}

impl fmt::Display for Marks {
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
