//! Budgets for several instances. Each instance spends from a share that the common database has granted.
//!
//! Three rules keep the total spending within the limit, even if messages are lost. The database grants a
//! share before the instance uses it. An instance lowers its share in its own journal before it reports the
//! lower share to the database. Every report contains absolute numbers, so a repeated report changes nothing.

mod demand;
pub mod pace;

pub use demand::{Demands, WantedShare};

/// The amount granted in advance is at most the free amount divided by this number and by the number of
/// instances.
const ADVANCE_DIVISOR: u64 = 4;
/// A budget is tight if less than its limit divided by this number is free. Instances then return the amounts
/// that they do not use.
const TIGHT_LIMIT_DIVISOR: u64 = 50;

/// The database counts an instance as alive for this long after its last report.
pub const TENURE_MS: u64 = 60_000;
/// The instance itself stops this much earlier, because clocks run at different speeds.
const TENURE_MARGIN_MS: u64 = 5_000;

/// State of a budget in the common database, for all instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pool {
    /// Cost of finished calls.
    pub spent: u64,
    /// The amount that all shares together may spend. If a share has spent more than its grant, its spending
    /// counts instead.
    pub committed: u64,
    /// Whether instances should return unused amounts, because little is free or the last request did not fit.
    pub is_tight: bool,
}

/// The part of a budget that is granted to one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// The total amount that the instance may spend in this window.
    pub granted: u64,
    /// Total cost of its finished calls.
    pub spent: u64,
}

/// A report of an instance about its share. It may request more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShareReport {
    /// Limit of the budget in the instance's configuration. 0 if the report only contains costs.
    pub limit: u64,
    /// The total amount that the instance may spend from now on: its grant, or less if it returns a part.
    pub granted: u64,
    /// Total cost of the instance's finished calls.
    pub spent: u64,
    /// Total cost of finished calls, plus the holds of calls in progress.
    pub used: u64,
    /// The smallest amount that a waiting call needs. 0 if no call waits.
    pub smallest_call: u64,
    /// The amount that all waiting calls need.
    pub waiting: u64,
    /// The amount that the instance will probably need soon, in addition to the waiting calls. If no call
    /// waits, the database grants up to this amount in addition.
    pub expected: u64,
}

impl Share {
    /// Returns the part of the limit that this share uses up.
    pub fn committed(&self) -> u64 {
        self.granted.max(self.spent)
    }
}

impl Pool {
    /// Applies a report, and grants free amounts. The caller must have locked the budget's row.
    ///
    /// ```
    /// use endmark_context::budget::{Pool, Share, ShareReport};
    /// let (mut pool, mut share) = (Pool::default(), Share::default());
    /// pool.exchange(&mut share, &ShareReport { limit: 100, smallest_call: 30, waiting: 30, ..ShareReport::default() }, 2);
    /// assert_eq!((share.granted, pool.committed), (30, 30));
    /// ```
    pub fn exchange(&mut self, share: &mut Share, report: &ShareReport, instances: u64) {
        let others = self.committed.saturating_sub(share.committed());
        let spent = share.spent.max(report.spent);
        // Holds of calls in progress also count if the costs already exceed the grant.
        let used = report.used.max(spent);
        let available = report.limit.saturating_sub(others);
        // An instance that reconnects reports no grant, but its calls in progress still use the earlier one.
        // An instance that was counted as dead may report an amount that was freed and granted to others in
        // the meantime.
        let mut granted = report.granted.max(used).min(share.granted);
        let is_asked = report.smallest_call > 0;
        let fits = used.saturating_add(report.smallest_call) <= available;
        let is_filled_up = !is_asked && !self.is_tight && report.expected > 0;
        if fits && (is_asked || is_filled_up) {
            let waiting = used.saturating_add(report.waiting).min(available);
            let part = available.saturating_sub(waiting) / (ADVANCE_DIVISOR * instances.max(1));
            granted = granted.max(waiting.saturating_add(report.expected.min(part)));
        }
        self.spent = self.spent.saturating_sub(share.spent).saturating_add(spent);
        *share = Share { granted, spent };
        self.committed = others.saturating_add(share.committed());
        let free = report.limit.saturating_sub(self.committed);
        if report.limit > 0 {
            let is_short = if is_asked { !fits } else { self.is_tight };
            self.is_tight = is_short || free < report.limit / TIGHT_LIMIT_DIVISOR;
        }
    }
}

/// The time during which an instance may hold calls in its shares although the database does not answer.
///
/// The caller supplies milliseconds of a monotonic clock. The clock must also advance while the machine is
/// suspended or the process is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tenure {
    until_ms: Option<u64>,
}

impl Tenure {
    /// Records that the database confirmed a report, which was sent at this moment.
    ///
    /// The tenure begins when the report is sent, because the transmission time is unknown.
    pub fn confirm(&mut self, sent_ms: u64) {
        self.until_ms = Some(sent_ms.saturating_add(TENURE_MS - TENURE_MARGIN_MS));
    }

    /// Records that the database no longer counts this instance as alive.
    pub fn end(&mut self) {
        self.until_ms = None;
    }

    /// Whether the instance may hold calls now.
    pub fn is_valid(&self, now_ms: u64) -> bool {
        self.until_ms.is_some_and(|until_ms| now_ms < until_ms)
    }
}

#[cfg(test)]
mod tests;
