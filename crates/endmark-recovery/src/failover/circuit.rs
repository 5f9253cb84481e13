//! Whether an upstream that failed lately is tried at all.

use std::time::Duration;

/// Failures in a row after which an upstream is taken for down: more than the tries of one request, so that
/// no single request decides it.
pub const FAILURES_BEFORE_OPEN: u32 = 4;

/// What is to be done with a request for an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Send it.
    Serve,
    /// Send it once, to see whether the upstream is back: without a second try.
    Probe,
    /// Let another upstream answer it at once.
    Skip,
}

/// Remembers how an upstream fared, so that not every request has to find out anew that it is down.
///
/// Meant for an upstream that another can stand in for. Open, it lets one request through after each cooldown;
/// the first that succeeds closes it.
///
/// ```
/// use std::time::Duration;
/// use endmark_recovery::failover::{Admission, Circuit, FAILURES_BEFORE_OPEN};
/// let mut circuit = Circuit::new(Duration::from_secs(5));
/// let at = Duration::from_secs;
/// (0..FAILURES_BEFORE_OPEN).for_each(|_| circuit.failed(at(1)));
/// assert_eq!(circuit.admit(at(2)), Admission::Skip);
/// assert_eq!(circuit.admit(at(6)), Admission::Probe);
/// assert_eq!(circuit.admit(at(6)), Admission::Skip);
/// circuit.succeeded();
/// assert_eq!(circuit.admit(at(6)), Admission::Serve);
/// ```
#[derive(Debug, Clone)]
pub struct Circuit {
    cooldown: Duration,
    failures: u32,
    /// When the next request may probe; none while closed.
    probe_at: Option<Duration>,
}

impl Circuit {
    /// A closed circuit that lets one request through after each `cooldown` when it is open.
    pub fn new(cooldown: Duration) -> Self {
        Self { cooldown, failures: 0, probe_at: None }
    }

    /// What is to be done with a request, `now` after the start.
    pub fn admit(&mut self, now: Duration) -> Admission {
        match self.probe_at {
            None => Admission::Serve,
            Some(at) if now < at => Admission::Skip,
            Some(_) => {
                // A probe of which nothing is heard again holds up the next one for a cooldown, not for ever.
                self.probe_at = Some(now.saturating_add(self.cooldown));
                Admission::Probe
            }
        }
    }

    /// The upstream answered.
    pub fn succeeded(&mut self) {
        self.failures = 0;
        self.probe_at = None;
    }

    /// The upstream was not there, or not able to answer anybody.
    pub fn failed(&mut self, now: Duration) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES_BEFORE_OPEN {
            self.probe_at = Some(now.saturating_add(self.cooldown));
        }
    }

    /// Whether the upstream is taken for down.
    pub fn is_open(&self) -> bool {
        self.probe_at.is_some()
    }
}
