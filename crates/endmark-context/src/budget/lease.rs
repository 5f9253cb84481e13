//! A lease: the part of a budget in which one process may hold calls without asking the store.
//!
//! The store commits a lease before the process uses it, and counts it like a hold. So a killed process never holds
//! more than the store knows. The caller supplies the milliseconds of any monotonic clock.

use super::Account;

/// How long a lease is usable after the store confirmed it, because other processes may change the budget.
const VALIDITY_MS: u64 = 1_000;
/// How long a lease of about the right size is used before it is planned again. Planning reads the budget, which
/// costs as much as the rest of a call's hold. One call each second keeps the lease usable.
const FRESH_MS: u64 = VALIDITY_MS / 2;
/// Length of one of the two spans in which recent use is counted.
const SPAN_MS: u64 = 1_000;
/// A lease is at most this fraction of the rest of the budget, divided by the number of processes that share it. An
/// exclusive account is leased in full.
const SHARE: u64 = 4;
/// A lease is at most this many times the largest recent call.
const MAX_CALLS: u64 = 2_000;
/// A budget with fewer recent calls has no lease.
const MIN_CALLS: u64 = 2;

/// The state of a budget in the store, without the lease of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The account. The leases of other processes count as held.
    pub account: Account,
    /// The highest level that was reported, in percent.
    pub warned_percent: u8,
    /// Number of other processes with a lease.
    pub other_owners: u64,
    /// Whether this process alone may hold calls in the account, which is then a share that was granted to it.
    pub is_exclusive: bool,
}

/// The lease of one budget, and the calls that are held in it.
///
/// A change consists of [`plan`](Self::plan), a commit of the store, and [`confirm`](Self::confirm), or
/// [`revert`](Self::revert) if the commit failed.
#[derive(Debug, Default)]
pub struct Lease {
    /// The most recent limit from the caller.
    limit: u64,
    /// The amount in the store, and the part of it that calls in progress hold.
    stored: (u64, u64),
    /// The amount in the store without the costs that the store has since: these count twice there, until the next plan.
    committed: u64,
    /// The amount that may be used now. It never exceeds `committed`, and is less while the lease is about to shrink.
    usable: u64,
    /// Whether the unused amount was taken back, or the budget has changed, since the last plan.
    is_stale: bool,
    /// Highest possible cost of the calls in progress.
    in_use: u64,
    /// Cost of finished calls that the store does not know yet.
    settled: u64,
    /// The part of `settled` in the current transaction.
    flushing: u64,
    confirmed: Option<ConfirmedState>,
    planned: Option<(u64, u64, ConfirmedState)>,
    recent: RecentCalls,
}

/// The state of the budget in the store, with its time.
#[derive(Debug, Clone, Copy)]
struct ConfirmedState {
    state: Standing,
    at_ms: u64,
}

impl Lease {
    /// Returns the account before the hold, if a call that can cost `amount` may be held without asking the store.
    ///
    /// The store decides all other cases: refusals, warnings, and amounts near the limit.
    pub fn check(&self, now_ms: u64, limit: u64, amount: u64) -> Option<Account> {
        let ConfirmedState { state: standing, at_ms } = self.confirmed?;
        let account = self.account(&standing, self.settled);
        let is_served = now_ms < at_ms.saturating_add(VALIDITY_MS) && limit == self.limit && self.usable > 0;
        let is_reported = account.level().percent() <= standing.warned_percent;
        (is_served && is_reported && amount <= self.free() && account.admits(amount)).then_some(account)
    }

    /// Returns the most recent limit from the caller.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Holds a call that [`check`](Self::check) admitted.
    pub fn hold(&mut self, now_ms: u64, amount: u64) {
        self.in_use = self.in_use.saturating_add(amount);
        self.recent.add(now_ms, amount);
    }

    /// Records a call that the store holds, for a budget with this limit.
    pub fn note(&mut self, now_ms: u64, limit: u64, amount: u64) {
        if limit != self.limit {
            (self.limit, self.confirmed) = (limit, None);
        }
        self.recent.add(now_ms, amount);
    }

    /// Replaces the hold of a call with its cost. The cost is 0 for a call that was not made.
    pub fn settle(&mut self, held: u64, cost: u64) {
        self.in_use = self.in_use.saturating_sub(held);
        self.settled = self.settled.saturating_add(cost);
    }

    /// Records that the current transaction writes this cost of settled calls.
    pub fn flush(&mut self, cost: u64) {
        self.flushing = self.flushing.saturating_add(cost).min(self.settled);
    }

    /// Makes the unused amount unusable until the next plan is confirmed or reverted.
    ///
    /// Returns the costs that neither the store nor its transaction contains, and the holds of calls in progress. The
    /// store needs both to decide about the same budget.
    pub fn recall(&mut self) -> (u64, u64) {
        self.usable = self.usable.min(self.in_use.saturating_add(self.settled));
        self.is_stale = true;
        self.uncommitted()
    }

    /// Has the next transaction plan the lease, because its budget has changed.
    pub fn expire(&mut self) {
        self.is_stale = true;
    }

    /// Returns the same amounts as [`recall`](Self::recall) without changing the unused amount.
    pub fn uncommitted(&self) -> (u64, u64) {
        (self.settled - self.flushing, self.in_use)
    }

    /// Whether the lease in the store should change, or the budget should be read again.
    pub fn needs_plan(&mut self, now_ms: u64) -> bool {
        let recent = self.recent.total_use(now_ms);
        if self.stored.0 == 0 {
            return recent.calls >= MIN_CALLS;
        }
        let is_fresh =
            self.confirmed.is_some_and(|confirmed| now_ms < confirmed.at_ms.saturating_add(FRESH_MS));
        let is_large = self.free() >= recent.largest.max(recent.target() / 2);
        let is_used = recent.calls >= MIN_CALLS && self.in_use == self.stored.1;
        !is_fresh || !is_large || !is_used || self.is_stale
    }

    /// Whether the current transaction writes costs of the lease.
    pub fn is_flushing(&self) -> bool {
        self.flushing > 0
    }

    /// Plans the size of the lease after the next commit; 0 means no lease.
    ///
    /// Returns the size, and the part of it that calls in progress hold.
    pub fn plan(&mut self, now_ms: u64, standing: Standing) -> (u64, u64) {
        // `standing` already contains the costs in the transaction.
        let unwritten = self.settled - self.flushing;
        let account = self.account(&standing, unwritten);
        let covered = self.in_use.saturating_add(unwritten);
        let room = standing.account.remaining().saturating_sub(covered);
        let recent = self.recent.total_use(now_ms);
        let parts = if standing.is_exclusive { 1 } else { SHARE * standing.other_owners.saturating_add(1) };
        let share = room / parts;
        let target = share.min(recent.target());
        let is_exact = account.is_closed
            || account.level().percent() > standing.warned_percent
            || recent.calls < MIN_CALLS
            || target < recent.largest;
        let free = self.committed.saturating_sub(covered);
        // A lease of about the right size need not be written again.
        let is_near = free >= recent.largest.max(target / 2) && free <= share.min(target.saturating_mul(2));
        let free = if is_near { free } else { target };
        let amount = covered.saturating_add(if is_exact { 0 } else { free });
        self.usable = self.committed.min(amount);
        self.is_stale = false;
        self.planned = Some((amount, self.in_use, ConfirmedState { state: standing, at_ms: now_ms }));
        (amount, self.in_use)
    }

    /// Whether the store already has this lease: its size, and the part that calls in progress hold.
    pub fn is_in_store(&self, lease: (u64, u64)) -> bool {
        lease == self.stored
    }

    /// Records that the costs, and the plan if there was one, are committed.
    pub fn confirm(&mut self) {
        let flushed = std::mem::take(&mut self.flushing);
        self.settled -= flushed;
        if let Some((amount, in_use, confirmed)) = self.planned.take() {
            (self.committed, self.usable, self.confirmed) = (amount, amount, Some(confirmed));
            self.stored = (amount, in_use);
            return;
        }
        self.committed = self.committed.saturating_sub(flushed);
        self.usable = self.usable.saturating_sub(flushed);
        if let Some(ConfirmedState { state: standing, .. }) = &mut self.confirmed {
            standing.account.spent = standing.account.spent.saturating_add(flushed);
        }
    }

    /// Records that the transaction failed, so the store is unchanged.
    pub fn revert(&mut self) {
        (self.flushing, self.planned, self.usable, self.is_stale) = (0, None, self.committed, false);
    }

    /// Whether the store has an unused lease.
    pub fn is_unused(&mut self, now_ms: u64) -> bool {
        self.recent.total_use(now_ms).calls < MIN_CALLS
            && self.stored.0 > self.in_use.saturating_add(self.settled)
    }

    /// Whether the lease has no state that must be kept.
    pub fn is_empty(&mut self, now_ms: u64) -> bool {
        self.stored.0 == 0
            && self.in_use == 0
            && self.settled == 0
            && self.recent.total_use(now_ms).calls == 0
    }

    fn free(&self) -> u64 {
        self.usable.saturating_sub(self.in_use).saturating_sub(self.settled)
    }

    /// Returns the account including the amounts that the store does not know.
    fn account(&self, standing: &Standing, unwritten: u64) -> Account {
        let account = standing.account;
        Account {
            spent: account.spent.saturating_add(unwritten),
            held: account.held.saturating_add(self.in_use),
            ..account
        }
    }
}

/// Recent calls: those of the last one to two spans.
#[derive(Debug, Default)]
struct RecentCalls {
    since_ms: u64,
    before: Use,
    now: Use,
}

#[derive(Debug, Default, Clone, Copy)]
struct Use {
    calls: u64,
    amount: u64,
    largest: u64,
}

impl Use {
    /// Returns the amount that a lease should have if there is room for it.
    fn target(&self) -> u64 {
        self.amount.min(self.largest.saturating_mul(MAX_CALLS))
    }
}

impl RecentCalls {
    fn add(&mut self, now_ms: u64, amount: u64) {
        self.advance(now_ms);
        let Use { calls, amount: sum, largest } = self.now;
        self.now = Use { calls: calls + 1, amount: sum.saturating_add(amount), largest: largest.max(amount) };
    }

    fn total_use(&mut self, now_ms: u64) -> Use {
        self.advance(now_ms);
        let (one, other) = (self.before, self.now);
        Use {
            calls: one.calls + other.calls,
            amount: one.amount.saturating_add(other.amount),
            largest: one.largest.max(other.largest),
        }
    }

    fn advance(&mut self, now_ms: u64) {
        match now_ms.saturating_sub(self.since_ms) / SPAN_MS {
            0 => {}
            1 => (self.before, self.now, self.since_ms) = (self.now, Use::default(), self.since_ms + SPAN_MS),
            _ => *self = Self { since_ms: now_ms, ..Self::default() },
        }
    }
}

#[cfg(test)]
mod tests;
