//! Decides whether to try an upstream that failed recently.

use std::time::Duration;

/// Number of consecutive failures after which an upstream counts as down. One request makes fewer attempts,
/// so it cannot open the circuit alone.
pub const FAILURES_BEFORE_OPEN: u32 = 4;

/// How to handle a request for an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Send the request.
    Serve,
    /// Send it without retries, to check whether the upstream has recovered.
    Probe,
    /// Use another upstream immediately.
    Skip,
}

/// Tracks the failures of an upstream, so that requests do not wait for an upstream that is down.
///
/// It is used for upstreams with a fallback. An open circuit admits one request after each cooldown. The
/// first success closes it.
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
    /// Creates a closed circuit. When open, it admits one request after each `cooldown`.
    pub fn new(cooldown: Duration) -> Self {
        Self { cooldown, failures: 0, probe_at: None }
    }

    /// Returns how to handle a request at the time `now`, measured from the start of the driver.
    pub fn admit(&mut self, now: Duration) -> Admission {
        match self.probe_at {
            None => Admission::Serve,
            Some(at) if now < at => Admission::Skip,
            Some(_) => {
                // Without a result from this probe, the next one may follow after another cooldown.
                self.probe_at = Some(now.saturating_add(self.cooldown));
                Admission::Probe
            }
        }
    }

    /// Records a response from the upstream.
    pub fn note_success(&mut self) {
        self.failures = 0;
        self.probe_at = None;
    }

    /// Records that the upstream was unreachable, or failed for a reason that affects every client.
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
