//! A lease: the part of a budget in which one process may hold calls without asking the store.
//!
//! The store commits a lease before the process uses it, and counts it like a hold. So a killed process never holds
//! more than the store knows. The caller supplies the milliseconds of any monotonic clock.

use super::Account;

/// How long a lease is usable after the store confirmed it, because other processes may change the budget.
const SERVED_MS: u64 = 1_000;
/// Length of one of the two spans in which recent use is counted.
const SPAN_MS: u64 = 1_000;
/// A lease is at most the rest of the budget, divided by this number and by the number of processes that share it.
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
}

/// The lease of one budget, and the calls that are held in it.
///
/// A change consists of [`plan`](Self::plan), a commit of the store, and [`confirm`](Self::confirm), or
/// [`revert`](Self::revert) if the commit failed.
#[derive(Debug, Default)]
pub struct Lease {
    /// The most recent limit from the caller.
    limit: u64,
    /// The size of the lease in the store.
    committed: u64,
    /// The part of the lease that calls in progress hold, in the store.
    committed_in_use: u64,
    /// The currently usable amount. It is at most `committed`, and less while the lease is about to shrink.
    usable: u64,
    /// Highest possible cost of the calls in progress.
    in_use: u64,
    /// Cost of finished calls that the store does not know yet.
    settled: u64,
    /// The part of `settled` in the current transaction.
    flushing: u64,
    confirmed: Option<Confirmed>,
    planned: Option<(u64, u64, Confirmed)>,
    recent: Recent,
}

/// The state of the budget in the store, with its time.
#[derive(Debug, Clone, Copy)]
struct Confirmed {
    standing: Standing,
    at_ms: u64,
}

impl Lease {
    /// Returns the account before the hold, if a call that can cost `amount` may be held without asking the store.
    ///
    /// The store decides all other cases: refusals, warnings, and amounts near the limit.
    pub fn check(&self, now_ms: u64, limit: u64, amount: u64) -> Option<Account> {
        let Confirmed { standing, at_ms } = self.confirmed?;
        let account = self.account(&standing, self.settled);
        let is_served = now_ms < at_ms.saturating_add(SERVED_MS) && limit == self.limit && self.usable > 0;
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
    /// Returns the costs that neither the store nor its transaction has, and the holds of calls in progress. The store
    /// needs both for a decision about the same budget.
    pub fn recall(&mut self) -> (u64, u64) {
        self.usable = self.usable.min(self.in_use.saturating_add(self.settled));
        (self.settled - self.flushing, self.in_use)
    }

    /// Whether the store has a lease of the budget, or should have one.
    pub fn needs_plan(&mut self, now_ms: u64) -> bool {
        self.committed > 0 || self.flushing > 0 || self.recent.total(now_ms).calls >= MIN_CALLS
    }

    /// Plans the size of the lease after the next commit; 0 means no lease.
    ///
    /// Returns the size, and the part of it that calls in progress hold.
    pub fn plan(&mut self, now_ms: u64, standing: Standing) -> (u64, u64) {
        // `standing` already contains the costs in the transaction.
        let unwritten = self.settled - self.flushing;
        let account = self.account(&standing, unwritten);
        let covered = self.in_use.saturating_add(unwritten);
        let room = standing.account.left().saturating_sub(covered);
        let recent = self.recent.total(now_ms);
        let share = room / (SHARE * standing.other_owners.saturating_add(1));
        let target = share.min(recent.amount).min(recent.largest.saturating_mul(MAX_CALLS));
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
        self.planned = Some((amount, self.in_use, Confirmed { standing, at_ms: now_ms }));
        (amount, self.in_use)
    }

    /// Whether the store already has this lease: its size, and the part that calls in progress hold.
    pub fn is_in_store(&self, lease: (u64, u64)) -> bool {
        lease == (self.committed, self.committed_in_use)
    }

    /// Records that the plan and the costs are committed.
    pub fn confirm(&mut self) {
        self.settled -= self.flushing;
        self.flushing = 0;
        if let Some((amount, in_use, confirmed)) = self.planned.take() {
            (self.committed, self.usable, self.confirmed) = (amount, amount, Some(confirmed));
            self.committed_in_use = in_use;
        }
    }

    /// Records that the transaction failed, so the store is unchanged.
    pub fn revert(&mut self) {
        (self.flushing, self.planned, self.usable) = (0, None, self.committed);
    }

    /// Whether the store has an unused lease.
    pub fn is_unused(&mut self, now_ms: u64) -> bool {
        self.recent.total(now_ms).calls < MIN_CALLS
            && self.committed > self.in_use.saturating_add(self.settled)
    }

    /// Whether the lease has no state that must be kept.
    pub fn is_empty(&mut self, now_ms: u64) -> bool {
        self.committed == 0 && self.in_use == 0 && self.settled == 0 && self.recent.total(now_ms).calls == 0
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
struct Recent {
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

impl Recent {
    fn add(&mut self, now_ms: u64, amount: u64) {
        self.advance(now_ms);
        let Use { calls, amount: sum, largest } = self.now;
        self.now = Use { calls: calls + 1, amount: sum.saturating_add(amount), largest: largest.max(amount) };
    }

    fn total(&mut self, now_ms: u64) -> Use {
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
