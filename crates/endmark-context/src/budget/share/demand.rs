//! Decides how much of each budget an instance requests from the database, and when.

use std::collections::BTreeMap;

use super::ShareReport;

/// An instance returns a share after it was unused for this long. A call that waits for the returned amount
/// (`MAX_RETURN_WAIT_MS`) still gets it after the next heartbeat.
const UNUSED_MS: u64 = 700;
/// If two requests for a share are less than this apart, the expected amount grows eightfold. Even then, it
/// is less than the use of one second.
const RUSH_MS: u64 = 100;
/// If they are less than this apart, the expected amount doubles.
const FAST_DEMAND_MS: u64 = 1_000;
/// If they are further apart than this, the expected amount is halved; otherwise, it is unchanged. Every
/// report fills the share up to the expected amount, so calls wait only if the share is used up between two
/// reports.
const SLOW_DEMAND_MS: u64 = 4_000;

/// The amounts of each budget that the calls of one instance need.
#[derive(Debug)]
pub struct Demands<K>(BTreeMap<K, Demand>);

/// The demand for one budget.
#[derive(Debug, Default)]
struct Demand {
    wanted: WantedShare,
    requested_ms: u64,
    used_ms: u64,
    is_tight: bool,
}

/// A request for a share. The default requests nothing, and only reports costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WantedShare {
    /// Limit of the budget. 0 if no call has requested it yet.
    pub limit: u64,
    /// The smallest amount that a waiting call needs. 0 if no call waits.
    pub smallest_call: u64,
    /// The amount that all waiting calls need.
    pub waiting: u64,
    /// The amount that will probably be needed soon, in addition to the waiting calls.
    pub expected: u64,
    /// Whether the instance returns the unused part of its share.
    pub returns_unused: bool,
}

impl<K: Ord + Clone> Demands<K> {
    /// Records a call that waits for this amount of a budget.
    pub fn add(&mut self, now_ms: u64, key: K, limit: u64, amount: u64) {
        self.0.entry(key).or_default().add(now_ms, limit, amount);
    }

    /// Whether calls used this budget recently. If so, the instance has a share of it.
    pub fn has_recent_use(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Records that a call was held within the share.
    pub fn record_use(&mut self, now_ms: u64, key: &K) {
        if let Some(demand) = self.0.get_mut(key) {
            demand.used_ms = now_ms;
        }
    }

    /// Returns the requests to send now. An instance that is shutting down returns its unused amounts.
    ///
    /// ```
    /// use endmark_context::budget::Demands;
    /// let mut demands = Demands::default();
    /// demands.add(0, "a", 1_000, 30);
    /// let wanted = demands.take_due(5, false);
    /// assert_eq!((wanted.len(), wanted[0].1.waiting), (1, 30));
    /// assert_eq!(demands.take_due(6, false), []);
    /// assert!(demands.take_due(3_000, false)[0].1.returns_unused);
    /// assert_eq!(demands.take_due(9_000, false), []);
    /// ```
    pub fn take_due(&mut self, now_ms: u64, is_closing: bool) -> Vec<(K, WantedShare)> {
        let mut due = Vec::new();
        self.0.retain(|key, demand| {
            let (wanted, is_kept) = demand.take(now_ms, is_closing);
            due.extend(wanted.map(|wanted| (key.clone(), wanted)));
            is_kept
        });
        due
    }

    /// Keeps a budget whose unused share is returned while calls in progress still use the rest
    /// ([`has_calls_in_progress`](WantedShare::has_calls_in_progress)). A later report returns what these
    /// calls do not need.
    pub fn keep_budget(&mut self, now_ms: u64, key: K) {
        self.0.entry(key).or_insert(Demand { used_ms: now_ms, ..Demand::default() });
    }

    /// Records the database's answer: whether the budget is tight, and how much of the grant is unused.
    pub fn record_answer(&mut self, key: &K, is_tight: bool, unused: u64) {
        if let Some(demand) = self.0.get_mut(key) {
            demand.is_tight = is_tight;
        } else if unused > 0 {
            // No call has used the share recently, so the next report returns it.
            self.0.insert(key.clone(), Demand { is_tight, ..Demand::default() });
        }
    }

    /// Returns the request to add to a report of costs while no call waits. It refills a share before the
    /// share is used up.
    ///
    /// ```
    /// use endmark_context::budget::Demands;
    /// let mut demands = Demands::default();
    /// for now_ms in [4_000, 4_500] {
    ///     demands.add(now_ms, "a", 1_000, 30);
    ///     demands.take_due(now_ms, false);
    /// }
    /// assert_eq!((demands.refill_request(&"a").smallest_call, demands.refill_request(&"a").expected), (0, 60));
    /// assert_eq!(demands.refill_request(&"b").expected, 0);
    /// ```
    pub fn refill_request(&self, key: &K) -> WantedShare {
        let in_use = self.0.get(key).filter(|demand| !demand.is_tight);
        let wanted = in_use.map(|demand| demand.wanted).unwrap_or_default();
        WantedShare { smallest_call: 0, waiting: 0, returns_unused: false, ..wanted }
    }

    /// Whether other instances wait for unused amounts of this budget.
    pub fn is_tight(&self, key: &K) -> bool {
        self.0.get(key).is_some_and(|demand| demand.is_tight)
    }

    /// Whether any budget is tight.
    pub fn has_tight_budget(&self) -> bool {
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
        // A call without cost also needs a share, because an instance without a share does not know what the
        // other instances have spent.
        let amount = amount.max(1);
        let wanted = &mut self.wanted;
        wanted.limit = limit;
        wanted.smallest_call =
            if wanted.smallest_call == 0 { amount } else { wanted.smallest_call.min(amount) };
        wanted.waiting = wanted.waiting.saturating_add(amount);
        self.used_ms = now_ms;
    }

    /// Returns the request to send now, and whether the demand must be kept.
    fn take(&mut self, now_ms: u64, is_closing: bool) -> (Option<WantedShare>, bool) {
        let is_unused = is_closing || now_ms.saturating_sub(self.used_ms) >= UNUSED_MS;
        let is_asked = self.wanted.smallest_call > 0;
        if is_asked {
            let most = self.wanted.expected.max(self.wanted.waiting);
            self.wanted.expected = match now_ms.saturating_sub(self.requested_ms) {
                _ if self.is_tight => 0,
                ..RUSH_MS => most.saturating_mul(8),
                RUSH_MS..FAST_DEMAND_MS => most.saturating_mul(2),
                FAST_DEMAND_MS..SLOW_DEMAND_MS => self.wanted.expected,
                SLOW_DEMAND_MS.. => self.wanted.expected / 2,
            };
            self.requested_ms = now_ms;
        }
        let is_due = is_asked || is_unused || self.is_tight;
        let due = is_due.then_some(WantedShare { returns_unused: is_unused || self.is_tight, ..self.wanted });
        (self.wanted.smallest_call, self.wanted.waiting) = (0, 0);
        (due, is_asked || !is_unused)
    }
}

impl WantedShare {
    /// Returns the report to the database. The caller must first lower the share in the journal to the
    /// reported grant.
    pub fn report(&self, granted: u64, spent: u64, used: u64) -> ShareReport {
        let granted = if self.returns_unused { granted.min(used) } else { granted };
        let Self { limit, smallest_call: least, waiting, .. } = *self;
        // A returned amount is requested again only if a call waits for it.
        let ahead = if self.returns_unused && least == 0 { 0 } else { self.expected };
        ShareReport { limit, granted, spent, used, smallest_call: least, waiting, expected: ahead }
    }

    /// Whether the report must be sent even if no cost has changed. A report that only returns an amount is
    /// sent if it lowers the share.
    pub fn is_due(&self, is_lowered: bool) -> bool {
        let only_returns = self.returns_unused && self.limit == 0;
        is_lowered || !only_returns
    }

    /// Whether the unused part of a share is returned while calls in progress still use the rest.
    pub fn has_calls_in_progress(&self, report: &ShareReport) -> bool {
        self.returns_unused && self.smallest_call == 0 && report.used > report.spent
    }
}
