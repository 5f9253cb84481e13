//! Budgets that several instances use: each spends from a share that the common database granted to it.
//!
//! Three rules keep the sum of all instances within the limit, whatever gets lost in between. The database grants a share
//! before the instance uses it. The instance lowers its share in its own journal before the database hears of it. Every report
//! has absolute numbers, so a repeated report changes nothing.

/// A share is at most this part of the free amount, divided by the number of instances.
const PART: u64 = 4;
/// A budget is tight if less than this part of its limit is free: instances return what they do not use.
const TIGHT_PART: u64 = 50;

/// How long the database counts an instance as alive after it heard of it, in milliseconds.
pub const TENURE_MS: u64 = 60_000;
/// How much earlier the instance itself stops: for clocks that run at different speeds.
const TENURE_MARGIN_MS: u64 = 5_000;

/// A budget as the common database has it, over all instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pool {
    /// What calls did cost.
    pub spent: u64,
    /// What all shares may spend, or have spent if that is more.
    pub committed: u64,
    /// Whether instances should return what they do not use.
    pub is_tight: bool,
}

/// The share of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// What it may spend in all.
    pub granted: u64,
    /// What its calls did cost.
    pub spent: u64,
}

/// What an instance reports of its share, and asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShareReport {
    /// The limit of the budget, as the instance is configured; 0 if it only reports costs.
    pub limit: u64,
    /// What it may still spend in all: no more than was granted, less if it returns some.
    pub granted: u64,
    /// What its calls did cost.
    pub spent: u64,
    /// The same, and what calls under way hold.
    pub used: u64,
    /// The smallest amount that a call waits for; 0 if no call waits.
    pub least: u64,
    /// What all waiting calls need.
    pub waiting: u64,
    /// What it is likely to need soon, beside the waiting calls.
    pub ahead: u64,
}

impl Share {
    /// What the share takes of the limit.
    pub fn committed(&self) -> u64 {
        self.granted.max(self.spent)
    }
}

impl Pool {
    /// Takes in a report, and grants what is free. The caller holds the lock of the budget's row.
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
        // What calls under way hold stays counted, even if a call came to more than it held.
        let used = report.used.max(spent);
        let available = report.limit.saturating_sub(others);
        // It may have been given up, and come back with what it had before.
        let mut granted = report.granted.min(share.granted);
        let is_asked = report.least > 0;
        let fits = used.saturating_add(report.least) <= available;
        if is_asked && fits {
            let waiting = used.saturating_add(report.waiting).min(available);
            let part = available.saturating_sub(waiting) / (PART * instances.max(1));
            granted = granted.max(waiting.saturating_add(report.ahead.min(part)));
        }
        self.spent = self.spent.saturating_sub(share.spent).saturating_add(spent);
        *share = Share { granted, spent };
        self.committed = others.saturating_add(share.committed());
        let free = report.limit.saturating_sub(self.committed);
        if report.limit > 0 {
            self.is_tight = (is_asked && !fits) || free < report.limit / TIGHT_PART;
        }
    }
}

/// For how long an instance may hold calls in its shares without hearing from the database.
///
/// The caller supplies milliseconds of a clock that never goes back and goes on while the machine is suspended or the process is
/// stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tenure {
    until_ms: Option<u64>,
}

impl Tenure {
    /// The database confirmed a report that was sent at this moment. The time on the way counts against the instance.
    pub fn confirm(&mut self, sent_ms: u64) {
        self.until_ms = Some(sent_ms.saturating_add(TENURE_MS - TENURE_MARGIN_MS));
    }

    /// The database counts this instance as gone.
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
