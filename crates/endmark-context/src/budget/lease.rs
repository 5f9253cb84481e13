//! A lease: a part of a budget in which one process may hold calls without asking the store.
//!
//! The store commits a lease before the process uses it, and counts the lease like a hold. Therefore a killed
//! process never holds more than the store has recorded. The caller supplies milliseconds of any monotonic
//! clock.

use super::Account;

/// A lease may be used for this long after the store confirmed it. Other processes may change the budget
/// meanwhile.
const VALIDITY_MS: u64 = 1_000;
/// A lease of about the right size is planned again after this time. Planning reads the budget, which costs
/// as much as the rest of a call's hold. With one call per second, the lease stays usable.
const REPLAN_AFTER_MS: u64 = VALIDITY_MS / 2;
/// Recent use is counted in two time spans of this length.
const USE_SPAN_MS: u64 = 1_000;
/// A lease is at most the rest of the budget divided by this number and by the number of processes. A process
/// that uses an account alone leases all of it.
const LEASE_DIVISOR: u64 = 4;
/// A lease is at most this many times the largest recent call.
const MAX_MULTIPLE_OF_LARGEST_CALL: u64 = 2_000;
/// A budget with fewer recent calls than this gets no lease.
const MIN_RECENT_CALLS: u64 = 2;

/// A budget in the store, without the lease of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBudget {
    /// The account. The leases of other processes count as held.
    pub account: Account,
    /// The highest level that was reported, in percent.
    pub warned_percent: u8,
    /// Number of other processes with a lease.
    pub other_owners: u64,
    /// Whether only this process may hold calls in the account. The account is then a share that was granted
    /// to this instance.
    pub is_exclusive: bool,
}

/// The lease of one budget, and the calls that the process holds in it.
///
/// To change a lease, call [`plan`](Self::plan), commit to the store, and then call
/// [`confirm`](Self::confirm), or [`revert`](Self::revert) if the commit failed.
#[derive(Debug, Default)]
pub struct Lease {
    /// The budget's limit, as the caller stated it last.
    limit: u64,
    /// The size of the lease in the store, and the part of it that calls in progress hold.
    stored: (u64, u64),
    /// The size of the lease in the store, less the costs that the store has recorded since the last plan.
    /// Until the next plan, the store counts these costs twice.
    committed: u64,
    /// The amount that may be used now. It is at most `committed`, and less if the next commit makes the
    /// lease smaller.
    usable: u64,
    /// Whether the store took back the unused amount, or the budget changed, since the last plan.
    is_stale: bool,
    /// Highest possible cost of the calls in progress.
    in_use: u64,
    /// Cost of finished calls that the store has not recorded yet.
    settled: u64,
    /// The part of `settled` that the current transaction writes.
    flushing: u64,
    confirmed: Option<ConfirmedState>,
    planned: Option<(u64, u64, ConfirmedState)>,
    recent: RecentCalls,
}

/// The budget as the store confirmed it, with the time.
#[derive(Debug, Clone, Copy)]
struct ConfirmedState {
    budget: StoredBudget,
    at_ms: u64,
}

impl Lease {
    /// Returns the account before the hold, if a call that may cost `amount` can be held without asking the
    /// store.
    ///
    /// Returns `None` if the store must decide: for refusals, warnings, and amounts near the limit.
    pub fn check(&self, now_ms: u64, limit: u64, amount: u64) -> Option<Account> {
        let ConfirmedState { budget: standing, at_ms } = self.confirmed?;
        let account = self.account(&standing, self.settled);
        let is_served = now_ms < at_ms.saturating_add(VALIDITY_MS) && limit == self.limit && self.usable > 0;
        let is_reported = account.level().percent() <= standing.warned_percent;
        (is_served && is_reported && amount <= self.free() && account.admits(amount)).then_some(account)
    }

    /// Returns the budget's limit, as the caller stated it last.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Holds a call that [`check`](Self::check) admitted.
    pub fn hold(&mut self, now_ms: u64, amount: u64) {
        self.in_use = self.in_use.saturating_add(amount);
        self.recent.add(now_ms, amount);
    }

    /// Records a call that the store itself holds, in a budget with this limit.
    pub fn record_stored_hold(&mut self, now_ms: u64, limit: u64, amount: u64) {
        if limit != self.limit {
            (self.limit, self.confirmed) = (limit, None);
        }
        self.recent.add(now_ms, amount);
    }

    /// Replaces the hold of a finished call with its cost. The cost is 0 if the call was not made.
    pub fn settle(&mut self, held: u64, cost: u64) {
        self.in_use = self.in_use.saturating_sub(held);
        self.settled = self.settled.saturating_add(cost);
    }

    /// Records that the current transaction writes this cost of finished calls.
    pub fn flush(&mut self, cost: u64) {
        self.flushing = self.flushing.saturating_add(cost).min(self.settled);
    }

    /// Blocks the unused amount until the next plan is confirmed or reverted.
    ///
    /// Returns the costs that are neither in the store nor in the current transaction, and the holds of calls
    /// in progress. The store adds both to the budget before it decides.
    pub fn recall(&mut self) -> (u64, u64) {
        self.usable = self.usable.min(self.in_use.saturating_add(self.settled));
        self.is_stale = true;
        self.uncommitted()
    }

    /// Marks the lease to be planned in the next transaction, because its budget has changed.
    pub fn expire(&mut self) {
        self.is_stale = true;
    }

    /// Returns the same amounts as [`recall`](Self::recall), without blocking the unused amount.
    pub fn uncommitted(&self) -> (u64, u64) {
        (self.settled - self.flushing, self.in_use)
    }

    /// Whether the next transaction should plan the lease again.
    pub fn needs_plan(&mut self, now_ms: u64) -> bool {
        let recent = self.recent.total_use(now_ms);
        if self.stored.0 == 0 {
            return recent.calls >= MIN_RECENT_CALLS;
        }
        let is_fresh =
            self.confirmed.is_some_and(|confirmed| now_ms < confirmed.at_ms.saturating_add(REPLAN_AFTER_MS));
        let is_large = self.free() >= recent.largest.max(recent.target() / 2);
        let is_used = recent.calls >= MIN_RECENT_CALLS && self.in_use == self.stored.1;
        !is_fresh || !is_large || !is_used || self.is_stale
    }

    /// Whether the current transaction writes costs of calls in the lease.
    pub fn is_flushing(&self) -> bool {
        self.flushing > 0
    }

    /// Plans the size of the lease after the next commit; 0 means no lease.
    ///
    /// Returns the size, and the part of it that calls in progress hold.
    pub fn plan(&mut self, now_ms: u64, standing: StoredBudget) -> (u64, u64) {
        // `standing` already includes the costs that the current transaction writes.
        let unwritten = self.settled - self.flushing;
        let account = self.account(&standing, unwritten);
        let covered = self.in_use.saturating_add(unwritten);
        let room = standing.account.remaining().saturating_sub(covered);
        let recent = self.recent.total_use(now_ms);
        let parts =
            if standing.is_exclusive { 1 } else { LEASE_DIVISOR * standing.other_owners.saturating_add(1) };
        let share = room / parts;
        let target = share.min(recent.target());
        let is_exact = account.is_closed
            || account.level().percent() > standing.warned_percent
            || recent.calls < MIN_RECENT_CALLS
            || target < recent.largest;
        let free = self.committed.saturating_sub(covered);
        // A lease of about the right size is not written again.
        let is_near = free >= recent.largest.max(target / 2) && free <= share.min(target.saturating_mul(2));
        let free = if is_near { free } else { target };
        let amount = covered.saturating_add(if is_exact { 0 } else { free });
        self.usable = self.committed.min(amount);
        self.is_stale = false;
        self.planned = Some((amount, self.in_use, ConfirmedState { budget: standing, at_ms: now_ms }));
        (amount, self.in_use)
    }

    /// Whether the store already contains this lease: its size, and the part that calls in progress hold.
    pub fn is_in_store(&self, lease: (u64, u64)) -> bool {
        lease == self.stored
    }

    /// Records that the transaction was committed, with its costs and the planned lease, if there is one.
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
        if let Some(ConfirmedState { budget: standing, .. }) = &mut self.confirmed {
            standing.account.spent = standing.account.spent.saturating_add(flushed);
        }
    }

    /// Records that the transaction failed, so the store is unchanged.
    pub fn revert(&mut self) {
        (self.flushing, self.planned, self.usable, self.is_stale) = (0, None, self.committed, false);
    }

    /// Whether the store contains a lease that no recent call needs.
    pub fn is_unused(&mut self, now_ms: u64) -> bool {
        self.recent.total_use(now_ms).calls < MIN_RECENT_CALLS
            && self.stored.0 > self.in_use.saturating_add(self.settled)
    }

    /// Whether the lease can be discarded, because it has no state that is still needed.
    pub fn is_empty(&mut self, now_ms: u64) -> bool {
        self.stored.0 == 0
            && self.in_use == 0
            && self.settled == 0
            && self.recent.total_use(now_ms).calls == 0
    }

    fn free(&self) -> u64 {
        self.usable.saturating_sub(self.in_use).saturating_sub(self.settled)
    }

    /// Returns the account, plus the amounts that the store has not recorded yet.
    fn account(&self, standing: &StoredBudget, unwritten: u64) -> Account {
        let account = standing.account;
        Account {
            spent: account.spent.saturating_add(unwritten),
            held: account.held.saturating_add(self.in_use),
            ..account
        }
    }
}

/// Use of the lease in the current and the previous time span.
#[derive(Debug, Default)]
struct RecentCalls {
    since_ms: u64,
    before: RecentUse,
    now: RecentUse,
}

#[derive(Debug, Default, Clone, Copy)]
struct RecentUse {
    calls: u64,
    amount: u64,
    largest: u64,
}

impl RecentUse {
    /// Returns the amount that a lease should have if there is room for it.
    fn target(&self) -> u64 {
        self.amount.min(self.largest.saturating_mul(MAX_MULTIPLE_OF_LARGEST_CALL))
    }
}

impl RecentCalls {
    fn add(&mut self, now_ms: u64, amount: u64) {
        self.advance(now_ms);
        let RecentUse { calls, amount: sum, largest } = self.now;
        self.now =
            RecentUse { calls: calls + 1, amount: sum.saturating_add(amount), largest: largest.max(amount) };
    }

    fn total_use(&mut self, now_ms: u64) -> RecentUse {
        self.advance(now_ms);
        let (one, other) = (self.before, self.now);
        RecentUse {
            calls: one.calls + other.calls,
            amount: one.amount.saturating_add(other.amount),
            largest: one.largest.max(other.largest),
        }
    }

    fn advance(&mut self, now_ms: u64) {
        match now_ms.saturating_sub(self.since_ms) / USE_SPAN_MS {
            0 => {}
            1 => {
                (self.before, self.now, self.since_ms) =
                    (self.now, RecentUse::default(), self.since_ms + USE_SPAN_MS);
            }
            _ => *self = Self { since_ms: now_ms, ..Self::default() },
        }
    }
}

#[cfg(test)]
mod tests;
