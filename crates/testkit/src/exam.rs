//! The public failover exam: sixteen failures of a provider, and what a good gateway should do in each case.
//!
//! It was rebuilt from the published descriptions of [Failover
//! Bench](https://github.com/failoverbench/failoverbench) (methodology 0.1), with our own text, waits and
//! code. Where the descriptions leave a choice, this exam is stricter: the fallback provider accepts only its
//! own model and key, the caller accepts only events that are JSON, and in S14 the provider that broke off
//! stays down.
//!
//! The exam runs in four wire formats. The published exam describes Chat Completions. In the other formats,
//! providers use their own errors, events and last events.
//!
//! A candidate is any address that accepts the format, forwards requests to the [`Provider`] with the fault,
//! and may fall back to a healthy provider. It is judged by the replies that its caller receives, and by the
//! requests that its providers receive.

mod call;
mod checks;
mod format;
mod frames;
mod provider;
mod scenario_run;

use std::time::Duration;

pub use checks::{Check, CheckResult, Verdict};
pub use format::ExamFormat;
pub use provider::Provider;
pub use scenario_run::{ScenarioResult, run_scenario};

/// The model that the caller requests.
pub const PRIMARY_MODEL: &str = "exam-primary";
/// The only model of the fallback provider.
pub const FALLBACK_MODEL: &str = "exam-fallback";
/// A model that always answers, to check whether the candidate still works after a fault.
pub const HEALTHY_MODEL: &str = "exam-healthy";
/// A request for this model ends the outage of a provider.
const RESTORE_MODEL: &str = "exam-well-again";
/// The only key that the fallback provider accepts.
pub const FALLBACK_KEY: &str = "key-of-the-fallback";

/// The text of every complete reply. It has sixty words, so that a cut reply never looks complete.
pub const REPLY_TEXT: &str = "A gateway is judged on the worst day of the provider behind it. When streams \
stop in the middle of a word, when errors arrive dressed as answers, and when nothing arrives at all, \
somebody has to notice, decide, and finish the work honestly. Whoever only forwards bytes forwards every \
broken promise as well, and then calls that success too.";

/// Number of words after which a stream breaks off (S08, S14).
const WORDS_BEFORE_CUT: usize = 40;
/// Number of words after which a stream stalls (S09).
const WORDS_BEFORE_STALL: usize = 20;
/// Number of words before the event that is not JSON (S10).
const WORDS_BEFORE_GARBAGE: usize = 10;

/// Durations of the faults. The published waits are up to a minute long; these are shorter, but have the same
/// order and proportions.
#[derive(Debug, Clone, Copy)]
pub struct FaultTiming {
    /// S01: `Retry-After` in seconds.
    pub retry_after: u32,
    /// S07: time between the head and the first token.
    pub first_token_delay: Duration,
    /// S15: number of requests during which the provider is down.
    pub outage_requests: usize,
    /// S15: maximum number of requests after the outage before the provider is used again.
    pub max_requests_after_outage: usize,
    /// S15: pause between two requests.
    pub pause_between_requests: Duration,
}

impl FaultTiming {
    /// Short waits where the candidate has to wait, and long waits where it should not wait.
    pub const SHORT_WAITS: Self = Self {
        retry_after: 1,
        first_token_delay: Duration::from_secs(20),
        outage_requests: 6,
        max_requests_after_outage: 10,
        pause_between_requests: Duration::from_millis(500),
    };
}

/// The fault of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderFault {
    /// 429 with `Retry-After`, once.
    RateLimitedOnce,
    /// 429 without `Retry-After`, always.
    RateLimited,
    /// 500, once.
    ErrorOnce,
    /// 503, always.
    Overloaded,
    /// A reset before the head, once.
    ResetOnce,
    /// The request is read, but never answered.
    Silent,
    /// The head is sent at once, but the first token arrives late.
    SlowStart,
    /// The stream breaks off, but the provider answers the next request normally.
    Cut,
    /// The stream breaks off, and the provider stays down.
    CutAlways,
    /// The stream stalls, but its connection stays open.
    Stall,
    /// One event of the stream is not JSON.
    Garbage,
    /// The stream is complete except for its last item: `[DONE]`, `message_stop`, or the end of the body in
    /// the other formats.
    WithoutDone,
    /// 400: the request is longer than the model's context window.
    TooLong,
    /// 400: the provider's filter rejects the request. Gemini answers 200 with only the reason.
    Filtered,
    /// 503 until a request for `RESTORE_MODEL` ends the outage.
    Outage,
    /// No fault.
    NoFault,
}

/// One scenario of the exam.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The exam's own id of the scenario.
    pub id: &'static str,
    /// The fault.
    pub failing: ProviderFault,
    /// Whether passing on the provider's refusal is the best possible result.
    pub may_pass_on_refusal: bool,
    /// Whether the fallback provider refuses to continue an unfinished message.
    pub fallback_rejects_prefill: bool,
    /// Checks that are made in addition to the check of the reply.
    pub checks: &'static [Check],
}

const fn scenario(id: &'static str, failing: ProviderFault, checks: &'static [Check]) -> Scenario {
    Scenario { id, failing, may_pass_on_refusal: false, fallback_rejects_prefill: false, checks }
}

/// The sixteen scenarios, in the exam's order.
pub const SCENARIOS: [Scenario; 16] = [
    scenario(
        "S01",
        ProviderFault::RateLimitedOnce,
        &[Check::TriesAtLeast(2), Check::WaitsAtLeast(0.9), Check::TriesWithin { seconds: 0.75, at_most: 2 }],
    ),
    scenario(
        "S02",
        ProviderFault::RateLimited,
        &[Check::TriesWithin { seconds: 3.0, at_most: 4 }, Check::TriesAtMost(6)],
    ),
    scenario("S03", ProviderFault::ErrorOnce, &[Check::TriesAtLeast(2)]),
    scenario("S04", ProviderFault::Overloaded, &[Check::TriesAtMost(6)]),
    scenario("S05", ProviderFault::ResetOnce, &[]),
    scenario("S06", ProviderFault::Silent, &[Check::TriesAtMost(1)]),
    // The candidate should not wait for the first token, but use the fallback provider.
    scenario("S07", ProviderFault::SlowStart, &[Check::ReportedModel(FALLBACK_MODEL)]),
    scenario("S08", ProviderFault::Cut, &[]),
    scenario("S09", ProviderFault::Stall, &[]),
    scenario("S10", ProviderFault::Garbage, &[]),
    scenario("S11", ProviderFault::WithoutDone, &[Check::ReportsUsage]),
    scenario("S12", ProviderFault::TooLong, &[Check::TriesAtLeast(1), Check::TriesAtMost(1)]),
    Scenario {
        may_pass_on_refusal: true,
        ..scenario("S13", ProviderFault::Filtered, &[Check::TriesAtMost(1), Check::PassesOnReason])
    },
    Scenario { fallback_rejects_prefill: true, ..scenario("S14", ProviderFault::CutAlways, &[]) },
    scenario(
        "S15",
        ProviderFault::Outage,
        &[Check::ServedDuringOutage, Check::UsedAgainWithin(6), Check::OneTryPerRequest],
    ),
    scenario(
        "S16",
        ProviderFault::Overloaded,
        &[Check::ReportedModel(FALLBACK_MODEL), Check::ReportsUsage, Check::TriesAtMost(6)],
    ),
];
