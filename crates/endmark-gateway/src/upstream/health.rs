//! Tracks the health of each upstream: its retry budget, and whether it is considered down.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use endmark_recovery::failover::{Admission, Circuit, RetryBudget};

use crate::settings::Settings;

/// The state of all upstreams while the gateway runs.
pub(crate) struct UpstreamHealth {
    began: Instant,
    by_upstream: BTreeMap<String, Mutex<UpstreamState>>,
}

struct UpstreamState {
    budget: RetryBudget,
    circuit: Circuit,
}

impl UpstreamHealth {
    /// Creates the state of a new gateway, in which no upstream is down.
    pub(crate) fn new(settings: &Settings) -> Self {
        let retry = &settings.retry;
        let state = || UpstreamState {
            budget: RetryBudget::new(retry.budget_percent, retry.budget_per_second),
            circuit: Circuit::new(retry.cooldown),
        };
        let of = settings.upstreams.iter().map(|upstream| (upstream.name.clone(), Mutex::new(state())));
        Self { began: Instant::now(), by_upstream: of.collect() }
    }

    /// Counts a request. Retries are limited to a share of all requests.
    pub(crate) fn note_request(&self, upstream: &str) {
        self.with_state(upstream, (), |state, now| state.budget.note_request(now));
    }

    /// Counts a request that the client repeats, which is itself a retry.
    pub(crate) fn note_retry(&self, upstream: &str) {
        self.with_state(upstream, (), |state, now| state.budget.note_external_retry(now));
    }

    /// Takes one retry from the upstream's budget. Returns `false` if the budget is exhausted.
    pub(crate) fn may_retry(&self, upstream: &str) -> bool {
        self.with_state(upstream, false, |state, now| state.budget.try_retry(now))
    }

    /// Returns whether to try the upstream although there is a fallback.
    pub(crate) fn admit(&self, upstream: &str) -> Admission {
        self.with_state(upstream, Admission::Serve, |state, now| state.circuit.admit(now))
    }

    /// Whether the upstream counts as down.
    pub(crate) fn is_down(&self, upstream: &str) -> bool {
        self.with_state(upstream, false, |state, _| state.circuit.is_open())
    }

    /// Records that the upstream responded.
    pub(crate) fn note_success(&self, upstream: &str) {
        self.with_state(upstream, (), |state, _| state.circuit.note_success());
    }

    /// Records that the upstream was unreachable, or could not have answered any client.
    pub(crate) fn note_failure(&self, upstream: &str) {
        self.with_state(upstream, (), |state, now| state.circuit.note_failure(now));
    }

    fn with_state<T>(
        &self,
        upstream: &str,
        unknown: T,
        act: impl FnOnce(&mut UpstreamState, Duration) -> T,
    ) -> T {
        let Some(state) = self.by_upstream.get(upstream) else { return unknown };
        // Both values are consistent after each operation, so a panic elsewhere cannot have corrupted them.
        let mut state: MutexGuard<'_, UpstreamState> = state.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut state, self.began.elapsed())
    }
}

/// Returns an unpredictable, uniformly distributed number. It prevents clients that failed together from retrying
/// together.
pub(crate) fn random() -> u32 {
    let noise = RandomState::new().build_hasher().finish();
    // The upper half of the bits is as random as the lower half.
    u32::try_from(noise >> 32).unwrap_or(u32::MAX)
}
