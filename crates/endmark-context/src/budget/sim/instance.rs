//! A simulated gateway: its journal, its held calls, and its reports to the database.

use std::collections::BTreeSet;

use super::super::pace::{MAX_CHANGES, MAX_ROWS, max_rows};
use super::super::{Demands, Share, ShareReport, Tenure, WantedShare};

/// A call that has not been held in its budget yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) budget: usize,
    pub(super) held: u64,
    pub(super) cost: u64,
    pub(super) duration_us: u64,
    pub(super) arrival_us: u64,
    /// Whether the call has requested a share from the database.
    pub(super) has_asked: bool,
}

/// One budget in the journal.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JournaledBudget {
    pub(super) granted: u64,
    pub(super) spent: u64,
    pub(super) held: u64,
    /// The spending of other instances at the last report.
    pub(super) spent_elsewhere: u64,
}

impl JournaledBudget {
    pub(super) fn used_amount(&self) -> u64 {
        self.spent.saturating_add(self.held)
    }
}

/// The activity of an instance between two reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A report is in transit, or the instance pauses after it.
    Reporting,
    /// The instance has been waiting for something to report since this time, and checks again after each delay.
    Waiting { since_us: u64, delay_ms: u64 },
}

/// A report in transit.
#[derive(Debug)]
pub(super) struct ReportInFlight {
    pub(super) sent_ms: u64,
    pub(super) reports: Vec<(usize, ShareReport)>,
    /// The answers: the share, the spending of others, and whether the budget is tight.
    pub(super) answers: Vec<(Share, u64, bool)>,
    pub(super) rows: u64,
    pub(super) is_more: bool,
    pub(super) calls: Vec<Call>,
}

// Fields: the state of one simulated process; the world reads all of it.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) is_alive: bool,
    /// Number of kills, so that events from before a kill are recognised.
    pub(super) life: u32,
    /// Number of waits, so that outdated checks are recognised.
    pub(super) turn: u64,
    pub(super) work: Work,
    pub(super) tenure: Tenure,
    pub(super) is_failing: bool,
    pub(super) is_registered: bool,
    /// When the database stops counting the instance as alive.
    pub(super) expires_ms: u64,
    pub(super) budgets: Vec<JournaledBudget>,
    pub(super) demands: Demands<usize>,
    pub(super) changed: BTreeSet<usize>,
    /// Rows that the database does not have, and their number at the last check.
    pub(super) rows: u64,
    pub(super) rows_made: u64,
    pub(super) rows_seen: u64,
    /// The last report with as many rows as fit.
    rows_ms: u64,
    pub(super) in_progress: u64,
    pub(super) waiting: Vec<Call>,
    pub(super) flight: Option<ReportInFlight>,
}

impl Instance {
    pub(super) fn new(budgets: usize) -> Self {
        Self {
            is_alive: true,
            life: 0,
            turn: 0,
            work: Work::Reporting,
            tenure: Tenure::default(),
            is_failing: false,
            is_registered: false,
            expires_ms: 0,
            budgets: vec![JournaledBudget::default(); budgets],
            demands: Demands::default(),
            changed: BTreeSet::new(),
            rows: 0,
            rows_made: 0,
            rows_seen: 0,
            rows_ms: 0,
            in_progress: 0,
            waiting: Vec::new(),
            flight: None,
        }
    }

    /// Makes a call wait for a share of its budget.
    pub(super) fn ask(&mut self, now_ms: u64, limit: u64, call: Call) {
        self.demands.add(now_ms, call.budget, limit, call.held);
        self.waiting.push(Call { has_asked: true, ..call });
    }

    /// Discards earlier grants before a new registration, and reports every budget again.
    pub(super) fn register(&mut self) {
        for (index, budget) in self.budgets.iter_mut().enumerate() {
            if budget.granted > 0 || budget.spent > 0 {
                self.changed.insert(index);
            }
            budget.granted = 0;
        }
        (self.is_registered, self.is_failing) = (true, false);
    }

    /// Collects the reports. Returned amounts are first deducted from the journal.
    pub(super) fn prepare(&mut self, now_ms: u64) {
        let mut wanted = self.demands.take(now_ms, false);
        let changed: Vec<usize> = self.changed.iter().copied().take(MAX_CHANGES as usize).collect();
        let wanted_budgets: BTreeSet<usize> = wanted.iter().map(|(budget, _)| *budget).collect();
        let others = changed.iter().filter(|budget| !wanted_budgets.contains(budget));
        wanted.extend(others.map(|budget| (*budget, self.demands.with_report(budget))));
        let report = |(index, wanted): (usize, WantedShare)| {
            let budget = self.budgets.get_mut(index)?;
            let report = wanted.report(budget.granted, budget.spent, budget.used_amount());
            if wanted.leaves_calls(&report) {
                self.demands.keep(now_ms, index);
            }
            let is_due = wanted.is_due(report.granted < budget.granted);
            budget.granted = report.granted;
            (is_due || self.changed.contains(&index)).then_some((index, report))
        };
        let reports = wanted.into_iter().filter_map(report).collect();
        let most_rows = max_rows(!self.waiting.is_empty(), now_ms.saturating_sub(self.rows_ms));
        if most_rows >= MAX_ROWS {
            self.rows_ms = now_ms;
        }
        let rows = self.rows.min(most_rows.into());
        let is_more = rows >= most_rows.into() || changed.len() >= MAX_CHANGES as usize;
        let calls = std::mem::take(&mut self.waiting);
        self.flight =
            Some(ReportInFlight { sent_ms: now_ms, reports, answers: Vec::new(), rows, is_more, calls });
    }

    /// Applies the database's answer. Returns the waiting calls, and whether there is more to report.
    pub(super) fn apply(&mut self) -> (Vec<Call>, bool) {
        let Some(flight) = self.flight.take() else { return (Vec::new(), false) };
        for ((index, report), (share, elsewhere, is_tight)) in flight.reports.iter().zip(flight.answers) {
            let Some(budget) = self.budgets.get_mut(*index) else { continue };
            (budget.granted, budget.spent_elsewhere) = (share.granted, elsewhere);
            if budget.spent <= report.spent {
                self.changed.remove(index);
            }
            self.demands.note(index, is_tight, share.granted.saturating_sub(report.used));
        }
        self.rows -= flight.rows;
        self.tenure.confirm(flight.sent_ms);
        (flight.calls, flight.is_more)
    }

    /// Kills the instance. Its journal stays.
    pub(super) fn kill(&mut self) -> usize {
        let lost = self.waiting.len() + self.flight.take().map_or(0, |flight| flight.calls.len());
        self.waiting.clear();
        self.demands = Demands::default();
        (self.is_alive, self.is_registered) = (false, false);
        self.tenure.end();
        self.life += 1;
        lost
    }

    /// Restarts the instance. Calls that were in progress are charged their holds.
    pub(super) fn revive(&mut self) {
        for (index, budget) in self.budgets.iter_mut().enumerate() {
            if budget.held > 0 {
                self.changed.insert(index);
            }
            (budget.spent, budget.held) = (budget.used_amount(), 0);
        }
        let interrupted = std::mem::take(&mut self.in_progress);
        self.rows += interrupted;
        self.rows_made += interrupted;
        self.is_alive = true;
    }
}
