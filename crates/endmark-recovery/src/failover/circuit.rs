//! Decides whether to try an upstream that failed recently.

use std::time::Duration;

/// Consecutive failures after which an upstream is considered down. More than the attempts of one request, so that a
/// single request cannot cause it.
pub const FAILURES_BEFORE_OPEN: u32 = 4;

/// How to handle a request for an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Send it.
    Serve,
    /// Send it once, without a retry, to check whether the upstream works again.
    Probe,
    /// Use another upstream at once.
    Skip,
}

/// Tracks the failures of an upstream, so that not every request has to find out that it is down.
///
/// Used for an upstream with a fallback. An open circuit admits one request after each cooldown. The first success
/// closes it.
///
/// ```
/// use std::time::Duration;
/// use endmark_recovery::failover::{Admission, Circuit, FAILURES_BEFORE_OPEN};
/// let mut circuit = Circuit::new(Duration::from_secs(5));
/// let at = Duration::from_secs;
/// (0..FAILURES_BEFORE_OPEN).for_each(|_| circuit.note_failure(at(1)));
/// assert_eq!(circuit.admit(at(2)), Admission::Skip);
/// assert_eq!(circuit.admit(at(6)), Admission::Probe);
/// assert_eq!(circuit.admit(at(6)), Admission::Skip);
/// circuit.note_success();
/// assert_eq!(circuit.admit(at(6)), Admission::Serve);
/// ```
#[derive(Debug, Clone)]
pub struct Circuit {
    cooldown: Duration,
    failures: u32,
    /// When the next request may probe the upstream. `None` while the circuit is closed.
    probe_at: Option<Duration>,
}

impl Circuit {
    /// Creates a closed circuit that admits one request after each `cooldown` when it is open.
    pub fn new(cooldown: Duration) -> Self {
        Self { cooldown, failures: 0, probe_at: None }
    }

    /// Returns how to handle a request at the time `now` after the start.
    pub fn admit(&mut self, now: Duration) -> Admission {
        match self.probe_at {
            None => Admission::Serve,
            Some(at) if now < at => Admission::Skip,
            Some(_) => {
                // A probe without a result delays the next one by one cooldown, and not forever.
                self.probe_at = Some(now.saturating_add(self.cooldown));
                Admission::Probe
            }
        }
    }

    /// Records that the upstream answered.
    pub fn note_success(&mut self) {
        self.failures = 0;
        self.probe_at = None;
    }

    /// Records that the upstream was unreachable or could not answer any client.
    pub fn note_failure(&mut self, now: Duration) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES_BEFORE_OPEN {
            self.probe_at = Some(now.saturating_add(self.cooldown));
        }
    }

    /// Whether the upstream counts as down.
    pub fn is_open(&self) -> bool {
        self.probe_at.is_some()
    }
}
