//! Budgets for several instances: each instance spends from a share that the common database has granted.
//!
//! Three rules keep the sum of all instances within the limit, even if messages are lost. The database grants a share
//! before the instance uses it. The instance lowers its share in its own journal before it reports the lower share to
//! the database. Every report has absolute numbers, so a repeated report changes nothing.

mod demand;
pub mod pace;

pub use demand::{Demands, WantedShare};

/// An advance grant is at most the free amount, divided by this number and by the number of instances.
const ADVANCE_DIVISOR: u64 = 4;
/// A budget is tight if less than its limit divided by this number is free. Instances then return unused amounts.
const TIGHT_PART: u64 = 50;

/// How long the database counts an instance as alive after its last report, in milliseconds.
pub const TENURE_MS: u64 = 60_000;
/// How much earlier the instance itself stops, because clocks run at different speeds.
const TENURE_MARGIN_MS: u64 = 5_000;

/// State of a budget in the common database, over all instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pool {
    /// Cost of finished calls.
    pub spent: u64,
    /// The amount that all shares may spend, or have spent if that is more.
    pub committed: u64,
    /// Whether instances should return unused amounts, because little is free or the last request did not fit.
    pub is_tight: bool,
}

/// The share of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// The total amount that the instance may spend.
    pub granted: u64,
    /// Cost of its finished calls.
    pub spent: u64,
}

/// An instance's report about its share, with a request for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShareReport {
    /// The limit of the budget in the instance's configuration. 0 if the instance only reports costs.
    pub limit: u64,
    /// The total amount that the instance may still spend: the granted amount, or less if it returns some.
    pub granted: u64,
    /// Cost of the instance's finished calls.
    pub spent: u64,
    /// Cost of finished calls plus the holds of calls in progress.
    pub used: u64,
    /// The smallest amount that a waiting call needs. 0 if no call waits.
    pub least: u64,
    /// The amount that all waiting calls need.
    pub waiting: u64,
    /// The amount that it probably needs soon, in addition to the waiting calls. Without waiting calls, the share is
    /// filled up to it.
    pub ahead: u64,
}

impl Share {
    /// Returns the part of the limit that the share occupies.
    pub fn committed(&self) -> u64 {
        self.granted.max(self.spent)
    }
}

impl Pool {
    /// Applies a report, and grants free amounts. The caller holds the lock of the budget's row.
    ///
    /// ```
    /// use endmark_context::budget::{Pool, Share, ShareReport};
    /// let (mut pool, mut share) = (Pool::default(), Share::default());
    /// pool.exchange(&mut share, &ShareReport { limit: 100, least: 30, waiting: 30, ..ShareReport::default() }, 2);
    /// assert_eq!((share.granted, pool.committed), (30, 30));
    /// ```
    pub fn exchange(&mut self, share: &mut Share, report: &ShareReport, instances: u64) {
        let others = self.committed.saturating_sub(share.committed());
        let spent = share.spent.max(report.spent);
        // Holds of calls in progress still count, even if a call cost more than it held.
        let used = report.used.max(spent);
        let available = report.limit.saturating_sub(others);
        // An instance that reconnects reports no grant, but its calls in progress continue within the earlier one. An
        // instance may also return after it was forfeited, with an amount that was freed since.
        let mut granted = report.granted.max(used).min(share.granted);
        let is_asked = report.least > 0;
        let fits = used.saturating_add(report.least) <= available;
        let is_filled_up = !is_asked && !self.is_tight && report.ahead > 0;
        if fits && (is_asked || is_filled_up) {
            let waiting = used.saturating_add(report.waiting).min(available);
            let part = available.saturating_sub(waiting) / (ADVANCE_DIVISOR * instances.max(1));
            granted = granted.max(waiting.saturating_add(report.ahead.min(part)));
        }
        self.spent = self.spent.saturating_sub(share.spent).saturating_add(spent);
        *share = Share { granted, spent };
        self.committed = others.saturating_add(share.committed());
        let free = report.limit.saturating_sub(self.committed);
        if report.limit > 0 {
            let is_short = if is_asked { !fits } else { self.is_tight };
            self.is_tight = is_short || free < report.limit / TIGHT_PART;
        }
    }
}

/// How long an instance may hold calls in its shares without an answer from the database.
///
/// The caller supplies the milliseconds of a monotonic clock that also advances while the machine is suspended or the
/// process is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tenure {
    until_ms: Option<u64>,
}

impl Tenure {
    /// Records that the database confirmed a report that was sent at this moment.
    ///
    /// The time starts when the report is sent, so transmission time is included.
    pub fn confirm(&mut self, sent_ms: u64) {
        self.until_ms = Some(sent_ms.saturating_add(TENURE_MS - TENURE_MARGIN_MS));
    }

    /// Records that the database no longer counts this instance as alive.
    pub fn end(&mut self) {
        self.until_ms = None;
    }

    /// Whether calls may be held.
    pub fn is_valid(&self, now_ms: u64) -> bool {
        self.until_ms.is_some_and(|until_ms| now_ms < until_ms)
    }
}

#[cfg(test)]
mod tests;
