//! Keeps the leases of this process, and the calls that are held in them. Holding a call in a lease needs
//! only a lock, not a transaction.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use endmark_context::budget::{Lease, Scope, StoredBudget, Unit};

use crate::budgets::{Claim, Hold, HoldOutcome};
use crate::calls::Call;
use crate::ledger::encoding::clip;

/// Maximum amount of a call that a lease can hold. The store handles larger calls and limits their amount.
const MAX_LEASED_AMOUNT: u64 = 1 << 46;

/// Interval between searches for unused leases.
const SWEEP_INTERVAL_MS: u64 = 1_000;

/// A budget in one window.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BudgetKey {
    pub(crate) scope: Scope,
    pub(crate) subject: String,
    pub(crate) window: String,
    pub(crate) unit: Unit,
}

impl BudgetKey {
    pub(crate) fn new(claim: &Claim) -> Self {
        let Claim { scope, subject, window, unit, .. } = claim;
        Self { scope: *scope, subject: subject.clone(), window: window.clone(), unit: *unit }
    }

    /// Returns the budget of a table row.
    pub(crate) fn from_columns(scope: &str, subject: String, window: String, unit: &str) -> Self {
        Self {
            // The tables contain no other values.
            scope: Scope::ALL.into_iter().find(|known| known.name() == scope).unwrap_or(Scope::All),
            subject,
            window,
            unit: Unit::from_name(unit),
        }
    }
}

/// The amount that a call holds in a lease.
#[derive(Debug, Clone)]
pub(crate) struct LeasedAmount {
    pub(crate) key: Arc<BudgetKey>,
    pub(crate) held: u64,
    /// The actual cost, set when the call ends.
    pub(crate) cost: u64,
}

/// A call in progress that is held in leases.
pub(crate) struct LeasedCall {
    pub(crate) request_id: String,
    pub(crate) call: u32,
    pub(crate) amounts: Vec<LeasedAmount>,
}

/// The leases of one open store.
pub(crate) struct Leases {
    origin: Instant,
    state: Mutex<LeaseState>,
}

#[derive(Default)]
struct LeaseState {
    leases: HashMap<Arc<BudgetKey>, LeaseEntry>,
    /// Held calls, by request id.
    calls: HashMap<String, Vec<LeasedCall>>,
    /// Leases that changed since they were last planned.
    touched_keys: Vec<Arc<BudgetKey>>,
    /// Leases that the current transaction plans, or whose costs it writes.
    planned_keys: Vec<Arc<BudgetKey>>,
    swept_ms: u64,
    /// The newest window of a rate limit.
    window: String,
}

#[derive(Default)]
struct LeaseEntry {
    lease: Lease,
    needs_plan: bool,
}

impl Leases {
    pub(crate) fn new() -> Self {
        Self { origin: Instant::now(), state: Mutex::default() }
    }

    /// Holds a call if the leases of all its budgets have enough left. Returns `None` if the store has to
    /// decide. Also returns whether to wake the writer, so that readers of the file see the hold.
    pub(crate) fn hold(&self, hold: &Hold) -> Option<(HoldOutcome, bool)> {
        let now_ms = self.now_ms();
        let mut state = self.lock();
        let LeaseState { leases, calls, touched_keys: touched, .. } = &mut *state;
        let is_held_twice = |calls: &Vec<LeasedCall>| calls.iter().any(|call| call.call == hold.call);
        if calls.get(&hold.request_id).is_some_and(is_held_twice) {
            return None;
        }
        let mut found = Vec::with_capacity(hold.claims.len());
        for claim in &hold.claims {
            let (key, entry) = leases.get_key_value(&BudgetKey::new(claim))?;
            // The store shortens a longer name, so the next start would charge a different budget.
            let is_usual =
                claim.amount <= MAX_LEASED_AMOUNT && clip(&claim.subject).len() == claim.subject.len();
            let account = entry.lease.check(now_ms, claim.limit, claim.amount).filter(|_| is_usual)?;
            found.push((claim, Arc::clone(key), account));
        }
        let outcome =
            HoldOutcome::fits(Vec::new(), found.iter().map(|(claim, _, account)| (*claim, *account)));
        let was_quiet = touched.is_empty();
        let mut amounts = Vec::with_capacity(found.len());
        for (claim, key, _) in found {
            if let Some(entry) = leases.get_mut(&key) {
                entry.lease.hold(now_ms, claim.amount);
                entry.touch(&key, touched);
            }
            amounts.push(LeasedAmount { key, held: claim.amount, cost: 0 });
        }
        let call = LeasedCall { request_id: hold.request_id.clone(), call: hold.call, amounts };
        calls.entry(hold.request_id.clone()).or_default().push(call);
        Some((outcome, was_quiet))
    }

    /// Records the cost of a finished call. The result is empty if the call is not held in leases.
    pub(crate) fn settle(&self, over: &Call) -> Vec<LeasedAmount> {
        self.remove_call(&over.started.request_id, over.started.call, |amount| {
            over.cost(amount.key.unit.name(), amount.held).min(MAX_LEASED_AMOUNT)
        })
        .unwrap_or_default()
    }

    /// Releases a call that did not start. Returns whether it was held in leases.
    pub(crate) fn release(&self, request_id: &str, call: u32) -> bool {
        self.remove_call(request_id, call, |_| 0).is_some()
    }

    fn remove_call(
        &self,
        request_id: &str,
        call: u32,
        cost: impl Fn(&LeasedAmount) -> u64,
    ) -> Option<Vec<LeasedAmount>> {
        let mut state = self.lock();
        let LeaseState { leases, calls, touched_keys: touched, .. } = &mut *state;
        let of_request = calls.get_mut(request_id)?;
        let at = of_request.iter().position(|known| known.call == call)?;
        let mut amounts = of_request.swap_remove(at).amounts;
        if of_request.is_empty() {
            calls.remove(request_id);
        }
        for amount in &mut amounts {
            amount.cost = cost(amount);
            if let Some(entry) = leases.get_mut(&amount.key) {
                entry.lease.settle(amount.held, amount.cost);
                entry.touch(&amount.key, touched);
            }
        }
        Some(amounts)
    }

    /// Reclaims the free part of a lease, so that the store can decide. Returns the costs that were not yet written,
    /// and the amount that calls in progress hold.
    pub(crate) fn recall(&self, claim: &Claim) -> (u64, u64) {
        self.recall_key(&BudgetKey::new(claim))
    }

    /// Reclaims the free part of all leases.
    pub(crate) fn recall_all(&self) {
        let keys: Vec<_> = self.lock().leases.keys().cloned().collect();
        for key in keys {
            self.recall_key(&key);
        }
    }

    /// Does the same as [`Self::recall`] for a budget key.
    pub(crate) fn recall_key(&self, key: &BudgetKey) -> (u64, u64) {
        let mut state = self.lock();
        let LeaseState { leases, touched_keys: touched, .. } = &mut *state;
        let Some((key, _)) = leases.get_key_value(key) else { return (0, 0) };
        let key = Arc::clone(key);
        leases.get_mut(&key).map_or((0, 0), |entry| {
            entry.touch(&key, touched);
            entry.lease.recall()
        })
    }

    /// Returns the same amounts as [`Self::recall_key`], but does not change the lease.
    pub(crate) fn uncommitted(&self, key: &BudgetKey) -> (u64, u64) {
        self.lock().leases.get(key).map_or((0, 0), |entry| entry.lease.uncommitted())
    }

    /// Schedules a lease for planning in the current transaction, because its budget has changed.
    pub(crate) fn schedule_plan(&self, key: &BudgetKey) {
        let mut state = self.lock();
        let LeaseState { leases, touched_keys: touched, .. } = &mut *state;
        let Some((key, _)) = leases.get_key_value(key) else { return };
        let key = Arc::clone(key);
        if let Some(entry) = leases.get_mut(&key) {
            entry.lease.expire();
            entry.touch(&key, touched);
        }
    }

    /// Counts a call that the store holds. If a budget holds many calls, it gets a lease.
    pub(crate) fn count_hold(&self, claim: &Claim, amount: u64) {
        let now_ms = self.now_ms();
        let mut state = self.lock();
        let LeaseState { leases, touched_keys: touched, .. } = &mut *state;
        let key = Arc::new(BudgetKey::new(claim));
        let entry = leases.entry(Arc::clone(&key)).or_default();
        entry.lease.record_stored_hold(now_ms, claim.limit, amount);
        entry.touch(&key, touched);
    }

    /// Whether this window of a rate limit is newer than all earlier ones.
    pub(crate) fn is_new_window(&self, window: &str) -> bool {
        let mut state = self.lock();
        let is_new = *window > *state.window;
        if is_new {
            window.clone_into(&mut state.window);
        }
        is_new
    }

    /// Records that the current transaction writes these costs.
    pub(crate) fn record_flush(&self, costs: &HashMap<Arc<BudgetKey>, u64>) {
        let mut state = self.lock();
        let LeaseState { leases, touched_keys: touched, .. } = &mut *state;
        for (key, cost) in costs {
            if let Some(entry) = leases.get_mut(key) {
                entry.lease.flush(*cost);
                entry.touch(key, touched);
            }
        }
    }

    /// Whether a lease has changed since it was written.
    pub(crate) fn has_touched(&self) -> bool {
        !self.lock().touched_keys.is_empty()
    }

    /// Returns the leases to be planned in this transaction, with the limits of their budgets.
    pub(crate) fn take_touched(&self) -> Vec<(Arc<BudgetKey>, u64)> {
        let now_ms = self.now_ms();
        let mut state = self.lock();
        let LeaseState { leases, touched_keys: touched, planned_keys: planned, .. } = &mut *state;
        let mut changed = Vec::with_capacity(touched.len());
        for key in touched.drain(..) {
            let Some(entry) = leases.get_mut(&key) else { continue };
            entry.needs_plan = false;
            let needs_plan = entry.lease.needs_plan(now_ms);
            if needs_plan || entry.lease.is_flushing() {
                planned.push(Arc::clone(&key));
            }
            if needs_plan {
                changed.push((key, entry.lease.limit()));
            }
        }
        changed
    }

    /// Plans the size of a lease. Returns its amount and the part that calls in progress hold, or `None` if
    /// the store already has both values.
    pub(crate) fn plan(&self, key: &BudgetKey, standing: StoredBudget) -> Option<(u64, u64)> {
        let now_ms = self.now_ms();
        let mut state = self.lock();
        let lease = &mut state.leases.get_mut(key)?.lease;
        Some(lease.plan(now_ms, standing)).filter(|planned| !lease.is_in_store(*planned))
    }

    /// Records that the current transaction ended.
    pub(crate) fn finish_transaction(&self, is_committed: bool) {
        let mut state = self.lock();
        let LeaseState { leases, touched_keys: touched, planned_keys: planned, .. } = &mut *state;
        for key in planned.drain(..) {
            let Some(entry) = leases.get_mut(&key) else { continue };
            if is_committed {
                entry.lease.confirm();
            } else {
                entry.touch(&key, touched);
            }
        }
        if !is_committed {
            for key in touched {
                if let Some(entry) = leases.get_mut(key) {
                    entry.lease.revert();
                }
            }
        }
    }

    /// Marks unused leases for return, and drops budgets without data.
    pub(crate) fn sweep(&self) {
        let now_ms = self.now_ms();
        let mut state = self.lock();
        let LeaseState { leases, touched_keys: touched, swept_ms, .. } = &mut *state;
        if now_ms < swept_ms.saturating_add(SWEEP_INTERVAL_MS) {
            return;
        }
        *swept_ms = now_ms;
        leases.retain(|key, entry| {
            if entry.lease.is_unused(now_ms) {
                entry.touch(key, touched);
            }
            entry.needs_plan || !entry.lease.is_empty(now_ms)
        });
    }

    /// Clears all leases after the store was recreated, because the new store has none. Calls in progress are charged
    /// when their rows are written.
    pub(crate) fn clear(&self) {
        *self.lock() = LeaseState::default();
    }

    /// Removes and returns the calls that are still in progress at shutdown.
    pub(crate) fn take_calls(&self) -> Vec<LeasedCall> {
        std::mem::take(&mut *self.lock()).calls.into_values().flatten().collect()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, LeaseState> {
        // The state is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseEntry {
    fn touch(&mut self, key: &Arc<BudgetKey>, touched: &mut Vec<Arc<BudgetKey>>) {
        if !std::mem::replace(&mut self.needs_plan, true) {
            touched.push(Arc::clone(key));
        }
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Leases").field("known", &self.lock().leases.len()).finish_non_exhaustive()
    }
}
