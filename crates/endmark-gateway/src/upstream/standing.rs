//! How each upstream fares: what its requests leave for further tries, and whether it is taken for down.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use endmark_recovery::failover::{Admission, Circuit, RetryBudget};

use crate::settings::Settings;

/// What is remembered of the upstreams while the gateway runs.
pub(crate) struct Standing {
    began: Instant,
    of: BTreeMap<String, Mutex<State>>,
}

struct State {
    budget: RetryBudget,
    circuit: Circuit,
}

impl Standing {
    /// Of every upstream nothing is known yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        let retry = &settings.retry;
        let state = || State {
            budget: RetryBudget::new(retry.budget_percent, retry.budget_per_second),
            circuit: Circuit::new(retry.cooldown),
        };
        let of = settings.upstreams.iter().map(|upstream| (upstream.name.clone(), Mutex::new(state())));
        Self { began: Instant::now(), of: of.collect() }
    }

    /// Counts a request, which is what further tries are a share of.
    pub(crate) fn request(&self, upstream: &str) {
        self.with(upstream, (), |state, now| state.budget.request(now));
    }

    /// Counts a request that its client sends again: it is a further try itself.
    pub(crate) fn retried(&self, upstream: &str) {
        self.with(upstream, (), |state, now| state.budget.retried(now));
    }

    /// Takes one further try out of the upstream's budget; false where there is none left.
    pub(crate) fn may_retry(&self, upstream: &str) -> bool {
        self.with(upstream, false, |state, now| state.budget.try_retry(now))
    }

    /// Whether the upstream is to be tried where another can stand in for it.
    pub(crate) fn admit(&self, upstream: &str) -> Admission {
        self.with(upstream, Admission::Serve, |state, now| state.circuit.admit(now))
    }

    /// Whether the upstream is taken for down.
    pub(crate) fn is_down(&self, upstream: &str) -> bool {
        self.with(upstream, false, |state, _| state.circuit.is_open())
    }

    /// The upstream answered.
    pub(crate) fn succeeded(&self, upstream: &str) {
        self.with(upstream, (), |state, _| state.circuit.succeeded());
    }

    /// The upstream was not there, or not able to answer anybody.
    pub(crate) fn failed(&self, upstream: &str) {
        self.with(upstream, (), |state, now| state.circuit.failed(now));
    }

    fn with<T>(&self, upstream: &str, unknown: T, act: impl FnOnce(&mut State, Duration) -> T) -> T {
        let Some(state) = self.of.get(upstream) else { return unknown };
        // Both are whole after every single operation, so a panic elsewhere cannot have spoilt them.
        let mut state: MutexGuard<'_, State> = state.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut state, self.began.elapsed())
    }
}

/// A number that nobody can foresee, evenly spread: those who failed together do not come back together.
pub(crate) fn random() -> u32 {
    let noise = RandomState::new().build_hasher().finish();
    // The upper half is as good as the lower.
    u32::try_from(noise >> 32).unwrap_or(u32::MAX)
}
