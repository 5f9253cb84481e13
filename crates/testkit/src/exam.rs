//! The public failover exam: sixteen failures of a provider, and what a good gateway should do in each case.
//!
//! Rebuilt from the published descriptions of [Failover Bench](https://github.com/failoverbench/failoverbench)
//! (methodology 0.1), with our own text, waits and code. Where it is free, the exam is stricter: the fallback provider
//! accepts only its own model and key, the caller accepts only events that are JSON, and in S14 the provider that
//! broke off stays down.
//!
//! The exam runs in four formats. The published exam describes Chat Completions; the other formats use their provider's
//! own errors, events and last event.
//!
//! A candidate is any address that accepts the format, forwards to a [`Provider`] with the fault, and may fall back to a
//! healthy one. It is judged by the replies to its caller and the requests to its providers.

mod call;
mod checks;
mod format;
mod frames;
mod provider;
mod scenario_run;

use std::time::Duration;

pub use checks::{Check, Finding, Verdict};
pub use format::Format;
pub use provider::Provider;
pub use scenario_run::{Marks, sit};

/// The model that the caller requests.
pub const MODEL: &str = "exam-primary";
/// The only model of the fallback provider.
pub const FALLBACK_MODEL: &str = "exam-fallback";
/// A model that always answers, to check whether the candidate still works after a fault.
pub const HEALTHY_MODEL: &str = "exam-healthy";
/// A request for this model restores a provider that is down.
const RESTORE_MODEL: &str = "exam-well-again";
/// The only key that the fallback provider accepts.
pub const FALLBACK_KEY: &str = "key-of-the-fallback";

/// The text of every complete reply. It has sixty words, so that a cut reply never looks complete.
pub const ANSWER: &str = "A gateway is judged on the worst day of the provider behind it. When streams \
stop in the middle of a word, when errors arrive dressed as answers, and when nothing arrives at all, \
somebody has to notice, decide, and finish the work honestly. Whoever only forwards bytes forwards every \
broken promise as well, and then calls that success too.";

/// Words after which a stream breaks off (S08, S14).
const WORDS_BEFORE_CUT: usize = 40;
/// Words after which a stream stalls (S09).
const WORDS_BEFORE_STALL: usize = 20;
/// Words before the event that is not JSON (S10).
const WORDS_BEFORE_GARBAGE: usize = 10;

/// Durations of the faults. The published waits are up to a minute; these keep their order and proportions.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// S01: `Retry-After` in seconds.
    pub retry_after: u32,
    /// S07: time from the head to the first token.
    pub slow: Duration,
    /// S15: number of requests for which the provider is down.
    pub outage: usize,
    /// S15: maximum number of requests until the provider is used again.
    pub after: usize,
    /// S15: pause between two requests.
    pub between: Duration,
}

impl Pace {
    /// Short waits where the candidate must wait, and long waits where it should not.
    pub const SHORT_WAITS: Self = Self {
        retry_after: 1,
        slow: Duration::from_secs(20),
        outage: 6,
        after: 10,
        between: Duration::from_millis(500),
    };
}

/// The fault of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
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
    /// The head is sent at once, but the first token late.
    SlowStart,
    /// The stream breaks off, and the next request finds the provider healthy.
    Cut,
    /// The stream breaks off, and the provider stays down.
    CutAlways,
    /// The stream stalls, but its connection stays open.
    Stalls,
    /// One event of the stream is not JSON.
    Garbage,
    /// The stream is complete except for its last item: `[DONE]`, `message_stop`, or else the end of the body.
    WithoutDone,
    /// 400: the request is longer than the model's window.
    TooLong,
    /// 400: rejected by the provider's filter. Gemini answers 200 with only the reason.
    Filtered,
    /// 503 until a request restores it.
    Flaps,
    /// No fault.
    Never,
}

/// One scenario of the exam.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The exam's own id.
    pub id: &'static str,
    /// The fault.
    pub failing: Failing,
    /// Whether the provider's own refusal is the best possible result.
    pub is_refused: bool,
    /// Whether the fallback provider refuses to continue an unfinished message.
    pub fallback_rejects_prefill: bool,
    /// Checks in addition to the reply.
    pub checks: &'static [Check],
}

const fn scenario(id: &'static str, failing: Failing, checks: &'static [Check]) -> Scenario {
    Scenario { id, failing, is_refused: false, fallback_rejects_prefill: false, checks }
}

/// The sixteen scenarios, in the exam's order.
pub const SCENARIOS: [Scenario; 16] = [
    scenario(
        "S01",
        Failing::RateLimitedOnce,
        &[Check::TriesAtLeast(2), Check::WaitsFor(0.9), Check::TriesWithin { seconds: 0.75, at_most: 2 }],
    ),
    scenario(
        "S02",
        Failing::RateLimited,
        &[Check::TriesWithin { seconds: 3.0, at_most: 4 }, Check::TriesAtMost(6)],
    ),
    scenario("S03", Failing::ErrorOnce, &[Check::TriesAtLeast(2)]),
    scenario("S04", Failing::Overloaded, &[Check::TriesAtMost(6)]),
    scenario("S05", Failing::ResetOnce, &[]),
    scenario("S06", Failing::Silent, &[Check::TriesAtMost(1)]),
    // The candidate should not wait for the first token, but use the fallback provider.
    scenario("S07", Failing::SlowStart, &[Check::ReportedModel(FALLBACK_MODEL)]),
    scenario("S08", Failing::Cut, &[]),
    scenario("S09", Failing::Stalls, &[]),
    scenario("S10", Failing::Garbage, &[]),
    scenario("S11", Failing::WithoutDone, &[Check::Usage]),
    scenario("S12", Failing::TooLong, &[Check::TriesAtLeast(1), Check::TriesAtMost(1)]),
    Scenario {
        is_refused: true,
        ..scenario("S13", Failing::Filtered, &[Check::TriesAtMost(1), Check::Reason])
    },
    Scenario { fallback_rejects_prefill: true, ..scenario("S14", Failing::CutAlways, &[]) },
    scenario("S15", Failing::Flaps, &[Check::ServedDuringOutage, Check::BackAfter(6), Check::Probes]),
    scenario(
        "S16",
        Failing::Overloaded,
        &[Check::ReportedModel(FALLBACK_MODEL), Check::Usage, Check::TriesAtMost(6)],
    ),
];
