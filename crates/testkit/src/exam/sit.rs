//! Puts a candidate through one scenario.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::time::{sleep_until, timeout};

use super::call::{Called, call};
use super::checks::{Finding, Verdict, mark};
use super::{Failing, HEALTHY_MODEL, MODEL, Pace, Scenario};
use crate::PATIENCE;
use crate::upstream::{Received, Upstream};

/// What came of one scenario.
#[derive(Debug, Clone)]
pub struct Marks {
    /// The scenario's id.
    pub id: &'static str,
    /// The mark.
    pub verdict: Verdict,
    /// What was looked at.
    pub findings: Vec<Finding>,
    /// When the provider with the fault was tried, from the first request on.
    pub tries: Vec<Duration>,
    /// How often the other one was.
    pub fallback_tries: usize,
    /// How long the caller waited.
    pub took: Duration,
    /// What the caller was told where it got no answer.
    pub error: Option<String>,
}

/// Everything a scenario is judged by.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) called: Called,
    pub(super) tries: Vec<Duration>,
    pub(super) is_well_after: bool,
    pub(super) in_outage: usize,
    pub(super) served_in_outage: usize,
    pub(super) tries_in_outage: usize,
    /// From the end of the outage to the first try after it.
    pub(super) back_after: Option<Duration>,
}

/// Sends what the scenario asks for through the candidate, and judges what came of it.
///
/// `primary` and `fallback` are the providers that the candidate forwards to; the first has just been started.
pub async fn sit(
    scenario: &Scenario,
    candidate: SocketAddr,
    (primary, fallback): (&Upstream, &Upstream),
    pace: Pace,
) -> Marks {
    let began = Instant::now();
    let mut seen = Seen::default();
    if scenario.failing == Failing::Flaps {
        flapping(candidate, began, pace, &mut seen).await;
    } else {
        seen.called = called(candidate, MODEL).await;
    }
    let of_scenario = |request: &Received| request.json()["model"] == MODEL;
    let requests = primary.requests().into_iter().filter(of_scenario);
    seen.tries = requests.map(|request| request.at - began).collect();
    seen.tries_in_outage = seen.tries.iter().filter(|at| **at < pace.outage).count();
    seen.back_after = seen.tries.iter().find_map(|at| at.checked_sub(pace.outage));
    let fallback_tries = fallback.requests().len();
    seen.is_well_after = called(candidate, HEALTHY_MODEL).await.is_whole();
    let (verdict, findings) = mark(scenario, &seen);
    let Seen { called, tries, .. } = seen;
    let (took, error) = (called.took, called.error);
    Marks { id: scenario.id, verdict, findings, tries, fallback_tries, took, error }
}

/// One request after the other, through an outage and beyond it.
async fn flapping(candidate: SocketAddr, began: Instant, pace: Pace, seen: &mut Seen) {
    let mut worst: Option<Called> = None;
    for number in 0..pace.requests {
        let due = began + pace.between * u32::try_from(number).unwrap_or(u32::MAX);
        sleep_until(due.into()).await;
        let is_in_outage = began.elapsed() < pace.outage;
        let called = called(candidate, MODEL).await;
        seen.in_outage += usize::from(is_in_outage);
        seen.served_in_outage += usize::from(is_in_outage && called.is_whole());
        if worst.as_ref().is_none_or(Called::is_whole) {
            worst = Some(called);
        }
    }
    seen.called = worst.unwrap_or_default();
}

/// A call that hangs is a result, not a hang of the exam.
async fn called(candidate: SocketAddr, model: &str) -> Called {
    let hung = || Called { error: Some("hang".to_owned()), took: PATIENCE, ..Called::default() };
    timeout(PATIENCE, call(candidate, model)).await.unwrap_or_else(|_| hung())
}

impl fmt::Display for Marks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, verdict, took) = (self.id, self.verdict, self.took.as_secs_f64());
        let tries: Vec<String> = self.tries.iter().map(|at| format!("{:.2}", at.as_secs_f64())).collect();
        write!(
            formatter,
            "{id} {verdict:<8} {took:6.2} s  primary tried at [{}], fallback {} times",
            tries.join(", "),
            self.fallback_tries
        )?;
        for finding in self.findings.iter().filter(|finding| !finding.passed) {
            write!(formatter, "; not {:?}", finding.check)?;
        }
        match &self.error {
            Some(error) => write!(formatter, "; {error}"),
            None => Ok(()),
        }
    }
}
