//! How much of one budget an instance should have available, and when it asks the database for it.

use super::ShareReport;

/// A share that was not used for this long is returned: soon enough for a call that waits for it (`RETURN_PATIENCE_MS`),
/// with the time to the next heartbeat.
const UNUSED_MS: u64 = 700;
/// Requests that follow each other faster ask for twice as much ahead.
const HURRY_MS: u64 = 1_000;
/// Requests that follow each other more slowly ask for half as much. In between a share lasts for seconds, as it should.
const LEISURE_MS: u64 = 4_000;

/// What the calls of one instance need of one budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    wanted: WantedShare,
    asked_ms: u64,
    used_ms: u64,
    is_tight: bool,
}

/// A request for a share. Its default only reports costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WantedShare {
    /// The limit of the budget; 0 if no call has asked yet.
    pub limit: u64,
    /// The smallest amount that a call waits for; 0 if no call waits.
    pub least: u64,
    /// The amount that all waiting calls need.
    pub waiting: u64,
    /// The amount that is probably needed soon, in addition to the waiting calls.
    pub ahead: u64,
    /// Whether the unused part of the share is returned.
    pub returns: bool,
}

impl Demand {
    /// The demand for a share of which a part is unused, and that no call used lately. Its next report returns that
    /// part.
    pub fn leftover(is_tight: bool) -> Self {
        Self { is_tight, ..Self::default() }
    }

    /// The demand for a share of which calls in progress need all. A later report returns what they leave.
    pub fn in_progress(now_ms: u64) -> Self {
        Self { used_ms: now_ms, ..Self::default() }
    }

    /// Notes a call that waits for this amount.
    pub fn add(&mut self, now_ms: u64, limit: u64, amount: u64) {
        // A call that costs nothing needs a share, too: without one this instance does not know what others spent.
        let amount = amount.max(1);
        let wanted = &mut self.wanted;
        wanted.limit = limit;
        wanted.least = if wanted.least == 0 { amount } else { wanted.least.min(amount) };
        wanted.waiting = wanted.waiting.saturating_add(amount);
        self.used_ms = now_ms;
    }

    /// Notes a call that was held within the share.
    pub fn note_use(&mut self, now_ms: u64) {
        self.used_ms = now_ms;
    }

    /// Notes whether the database reported the budget as tight.
    pub fn note_tight(&mut self, is_tight: bool) {
        self.is_tight = is_tight;
    }

    /// Whether other instances wait for what is not in use here.
    pub fn is_tight(&self) -> bool {
        self.is_tight
    }

    /// Returns the share to request now, and whether the demand still has to be kept.
    ///
    /// ```
    /// use endmark_context::budget::Demand;
    /// let mut demand = Demand::default();
    /// demand.add(0, 1_000, 30);
    /// let (wanted, is_kept) = demand.take(5, false);
    /// assert_eq!((wanted.unwrap().waiting, is_kept), (30, true));
    /// assert_eq!(demand.take(6, false), (None, true));
    /// let (wanted, is_kept) = demand.take(3_000, false);
    /// assert!(wanted.unwrap().returns && !is_kept);
    /// ```
    pub fn take(&mut self, now_ms: u64, is_closing: bool) -> (Option<WantedShare>, bool) {
        let is_unused = is_closing || now_ms.saturating_sub(self.used_ms) >= UNUSED_MS;
        let is_asked = self.wanted.least > 0;
        if is_asked {
            let most = self.wanted.ahead.max(self.wanted.waiting).saturating_mul(2);
            self.wanted.ahead = match now_ms.saturating_sub(self.asked_ms) {
                _ if self.is_tight => 0,
                ..HURRY_MS => most,
                HURRY_MS..LEISURE_MS => self.wanted.ahead,
                LEISURE_MS.. => self.wanted.ahead / 2,
            };
            self.asked_ms = now_ms;
        }
        let is_due = is_asked || is_unused || self.is_tight;
        let due = is_due.then_some(WantedShare { returns: is_unused || self.is_tight, ..self.wanted });
        (self.wanted.least, self.wanted.waiting) = (0, 0);
        (due, is_asked || !is_unused)
    }
}

impl WantedShare {
    /// Whether it only returns what is left of a share, and says nothing to the database if nothing is left.
    pub fn only_returns(&self) -> bool {
        self.returns && self.limit == 0
    }

    /// Returns the report to the database. The journal lowers its share to the reported one first.
    pub fn report(&self, granted: u64, spent: u64, used: u64) -> ShareReport {
        let granted = if self.returns { granted.min(used) } else { granted };
        let Self { limit, least, waiting, ahead, .. } = *self;
        ShareReport { limit, granted, spent, used, least, waiting, ahead }
    }
}
