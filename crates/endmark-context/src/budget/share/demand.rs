//! The amount of each budget that an instance should have available, and when it requests it from the database.

use std::collections::BTreeMap;

use super::ShareReport;

/// A share that is unused for this long is returned. Together with the time to the next heartbeat, this is soon enough
/// for a call that waits for it (`RETURN_PATIENCE_MS`).
const UNUSED_MS: u64 = 700;
/// If requests follow each other within this time, eight times as much is requested in advance. That is still less
/// than the use of a second.
const RUSH_MS: u64 = 100;
/// If requests follow each other within this time, twice as much is requested in advance.
const FAST_DEMAND_MS: u64 = 1_000;
/// If requests follow each other more slowly than this, half as much is requested in advance. In between the amount
/// is right: each report fills the share up to it. Calls wait only if the share is exhausted between two reports.
const SLOW_DEMAND_MS: u64 = 4_000;

/// The demand of one instance's calls for each budget.
#[derive(Debug)]
pub struct Demands<K>(BTreeMap<K, Demand>);

/// The demand for one budget.
#[derive(Debug, Default)]
struct Demand {
    wanted: WantedShare,
    asked_ms: u64,
    used_ms: u64,
    is_tight: bool,
}

/// A request for a share. Its default only reports costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WantedShare {
    /// The limit of the budget; 0 if no call has requested it yet.
    pub limit: u64,
    /// The smallest amount that a waiting call needs; 0 if no call waits.
    pub least: u64,
    /// The amount that all waiting calls need.
    pub waiting: u64,
    /// The amount that is probably needed soon, in addition to the waiting calls.
    pub ahead: u64,
    /// Whether the unused part of the share is returned.
    pub returns: bool,
}

impl<K: Ord + Clone> Demands<K> {
    /// Records a call that waits for this amount of a budget.
    pub fn add(&mut self, now_ms: u64, key: K, limit: u64, amount: u64) {
        self.0.entry(key).or_default().add(now_ms, limit, amount);
    }

    /// Whether calls used this budget recently, so that the instance has a share of it.
    pub fn is_known(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Records a call that was held within the share.
    pub fn note_use(&mut self, now_ms: u64, key: &K) {
        if let Some(demand) = self.0.get_mut(key) {
            demand.used_ms = now_ms;
        }
    }

    /// Returns the shares to request now. A closing instance returns its unused amounts.
    ///
    /// ```
    /// use endmark_context::budget::Demands;
    /// let mut demands = Demands::default();
    /// demands.add(0, "a", 1_000, 30);
    /// let wanted = demands.take(5, false);
    /// assert_eq!((wanted.len(), wanted[0].1.waiting), (1, 30));
    /// assert_eq!(demands.take(6, false), []);
    /// assert!(demands.take(3_000, false)[0].1.returns);
    /// assert_eq!(demands.take(9_000, false), []);
    /// ```
    pub fn take(&mut self, now_ms: u64, is_closing: bool) -> Vec<(K, WantedShare)> {
        let mut due = Vec::new();
        self.0.retain(|key, demand| {
            let (wanted, is_kept) = demand.take(now_ms, is_closing);
            due.extend(wanted.map(|wanted| (key.clone(), wanted)));
            is_kept
        });
        due
    }

    /// Records a budget whose remaining share is used by calls in progress
    /// ([`leaves_calls`](WantedShare::leaves_calls)). A later report returns what these calls leave.
    pub fn keep(&mut self, now_ms: u64, key: K) {
        self.0.entry(key).or_insert(Demand { used_ms: now_ms, ..Demand::default() });
    }

    /// Records the database's answer: whether the budget is tight, and how much of the grant is unused.
    pub fn note(&mut self, key: &K, is_tight: bool, unused: u64) {
        if let Some(demand) = self.0.get_mut(key) {
            demand.is_tight = is_tight;
        } else if unused > 0 {
            // No call has used the share recently, so the next report returns it.
            self.0.insert(key.clone(), Demand { is_tight, ..Demand::default() });
        }
    }

    /// Returns the request for a share that accompanies a report of costs although no call waits. It refills a share
    /// in use before it is exhausted.
    ///
    /// ```
    /// use endmark_context::budget::Demands;
    /// let mut demands = Demands::default();
    /// for now_ms in [4_000, 4_500] {
    ///     demands.add(now_ms, "a", 1_000, 30);
    ///     demands.take(now_ms, false);
    /// }
    /// assert_eq!((demands.with_report(&"a").least, demands.with_report(&"a").ahead), (0, 60));
    /// assert_eq!(demands.with_report(&"b").ahead, 0);
    /// ```
    pub fn with_report(&self, key: &K) -> WantedShare {
        let in_use = self.0.get(key).filter(|demand| !demand.is_tight);
        let wanted = in_use.map(|demand| demand.wanted).unwrap_or_default();
        WantedShare { least: 0, waiting: 0, returns: false, ..wanted }
    }

    /// Whether other instances wait for unused amounts of this budget.
    pub fn is_tight(&self, key: &K) -> bool {
        self.0.get(key).is_some_and(|demand| demand.is_tight)
    }

    /// Whether any budget is tight.
    pub fn has_tight(&self) -> bool {
        self.0.values().any(|demand| demand.is_tight)
    }
}

impl<K> Default for Demands<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl Demand {
    fn add(&mut self, now_ms: u64, limit: u64, amount: u64) {
        // A call without cost also needs a share. Without one, this instance does not know the spending of the
        // others.
        let amount = amount.max(1);
        let wanted = &mut self.wanted;
        wanted.limit = limit;
        wanted.least = if wanted.least == 0 { amount } else { wanted.least.min(amount) };
        wanted.waiting = wanted.waiting.saturating_add(amount);
        self.used_ms = now_ms;
    }

    /// Returns the share to request now, and whether the demand must be kept.
    fn take(&mut self, now_ms: u64, is_closing: bool) -> (Option<WantedShare>, bool) {
        let is_unused = is_closing || now_ms.saturating_sub(self.used_ms) >= UNUSED_MS;
        let is_asked = self.wanted.least > 0;
        if is_asked {
            let most = self.wanted.ahead.max(self.wanted.waiting);
            self.wanted.ahead = match now_ms.saturating_sub(self.asked_ms) {
                _ if self.is_tight => 0,
                ..RUSH_MS => most.saturating_mul(8),
                RUSH_MS..FAST_DEMAND_MS => most.saturating_mul(2),
                FAST_DEMAND_MS..SLOW_DEMAND_MS => self.wanted.ahead,
                SLOW_DEMAND_MS.. => self.wanted.ahead / 2,
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
    /// Returns the report to the database. The journal first lowers its share to the reported one.
    pub fn report(&self, granted: u64, spent: u64, used: u64) -> ShareReport {
        let granted = if self.returns { granted.min(used) } else { granted };
        let Self { limit, least, waiting, .. } = *self;
        // A returned amount is requested again only if a call waits.
        let ahead = if self.returns && least == 0 { 0 } else { self.ahead };
        ShareReport { limit, granted, spent, used, least, waiting, ahead }
    }

    /// Whether the report must be sent even if no cost changed. A report that only returns an amount is sent if it
    /// lowers the share.
    pub fn is_due(&self, is_lowered: bool) -> bool {
        let only_returns = self.returns && self.limit == 0;
        is_lowered || !only_returns
    }

    /// Whether calls in progress use a share whose rest is returned.
    pub fn leaves_calls(&self, report: &ShareReport) -> bool {
        self.returns && self.least == 0 && report.used > report.spent
    }
}
