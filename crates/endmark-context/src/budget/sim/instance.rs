//! A simulated gateway: its journal, the calls that it holds, and its reports to the database.

use std::collections::BTreeSet;

use super::super::pace::{MAX_CHANGES, MAX_ROWS, max_rows};
use super::super::{Demands, Share, ShareReport, Tenure, WantedShare};

/// A call that its budget has not admitted yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedCall {
    pub(super) budget: usize,
    pub(super) held: u64,
    pub(super) cost: u64,
    pub(super) duration_us: u64,
    pub(super) arrival_us: u64,
    /// Whether the instance has requested a share for the call.
    pub(super) has_requested_share: bool,
}

/// One budget in the journal.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JournaledBudget {
    pub(super) granted: u64,
    pub(super) spent: u64,
    pub(super) held: u64,
    /// The amount that other instances had spent at the last report.
    pub(super) spent_elsewhere: u64,
}

impl JournaledBudget {
    pub(super) fn used_amount(&self) -> u64 {
        self.spent.saturating_add(self.held)
    }
}

/// What the reporting task of an instance is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportPhase {
    /// A report is in transit, or the instance pauses after it.
    Reporting,
    /// The instance has had nothing to report since `since_us`. It checks again after each delay.
    Waiting { since_us: u64, delay_ms: u64 },
}

/// A report in transit.
#[derive(Debug)]
pub(super) struct ReportInFlight {
    pub(super) sent_ms: u64,
    pub(super) reports: Vec<(usize, ShareReport)>,
    /// The database's answers: the share, the spending of the other instances, and whether the budget is
    /// tight.
    pub(super) answers: Vec<(Share, u64, bool)>,
    pub(super) rows: u64,
    pub(super) has_more: bool,
    pub(super) calls: Vec<SimulatedCall>,
}

// Fields: the state of one simulated process; the simulation reads all of it.
#[derive(Debug)]
pub(super) struct SimulatedInstance {
    pub(super) is_alive: bool,
    /// Number of times that the instance was killed. It identifies events from before the last kill.
    pub(super) kill_count: u32,
    /// Number of waits for something to report. It identifies checks from earlier waits.
    pub(super) wait_count: u64,
    pub(super) work: ReportPhase,
    pub(super) tenure: Tenure,
    pub(super) is_failing: bool,
    pub(super) is_registered: bool,
    /// When the database stops counting the instance as alive.
    pub(super) expires_ms: u64,
    pub(super) budgets: Vec<JournaledBudget>,
    pub(super) demands: Demands<usize>,
    pub(super) changed: BTreeSet<usize>,
    /// Rows that are not in the database yet.
    pub(super) rows: u64,
    pub(super) rows_made: u64,
    pub(super) rows_made_at_check: u64,
    /// Time of the last report that allowed the maximum number of rows.
    last_full_report_ms: u64,
    pub(super) in_progress: u64,
    pub(super) waiting: Vec<SimulatedCall>,
    pub(super) flight: Option<ReportInFlight>,
}

impl SimulatedInstance {
    pub(super) fn new(budgets: usize) -> Self {
        Self {
            is_alive: true,
            kill_count: 0,
            wait_count: 0,
            work: ReportPhase::Reporting,
            tenure: Tenure::default(),
            is_failing: false,
            is_registered: false,
            expires_ms: 0,
            budgets: vec![JournaledBudget::default(); budgets],
            demands: Demands::default(),
            changed: BTreeSet::new(),
            rows: 0,
            rows_made: 0,
            rows_made_at_check: 0,
            last_full_report_ms: 0,
            in_progress: 0,
            waiting: Vec::new(),
            flight: None,
        }
    }

    /// Requests a share of the budget for a call, and makes the call wait.
    pub(super) fn request_share(&mut self, now_ms: u64, limit: u64, call: SimulatedCall) {
        self.demands.add(now_ms, call.budget, limit, call.held);
        self.waiting.push(SimulatedCall { has_requested_share: true, ..call });
    }

    /// Discards all grants, and marks every used budget to be reported. Called before the instance registers
    /// again.
    pub(super) fn register(&mut self) {
        for (index, budget) in self.budgets.iter_mut().enumerate() {
            if budget.granted > 0 || budget.spent > 0 {
                self.changed.insert(index);
            }
            budget.granted = 0;
        }
        (self.is_registered, self.is_failing) = (true, false);
    }

    /// Builds the next report. Amounts that the instance returns are first deducted from its journal.
    pub(super) fn prepare_report(&mut self, now_ms: u64) {
        let mut wanted = self.demands.take_due(now_ms, false);
        let changed: Vec<usize> = self.changed.iter().copied().take(MAX_CHANGES as usize).collect();
        let wanted_budgets: BTreeSet<usize> = wanted.iter().map(|(budget, _)| *budget).collect();
        let others = changed.iter().filter(|budget| !wanted_budgets.contains(budget));
        wanted.extend(others.map(|budget| (*budget, self.demands.refill_request(budget))));
        let report = |(index, wanted): (usize, WantedShare)| {
            let budget = self.budgets.get_mut(index)?;
            let report = wanted.report(budget.granted, budget.spent, budget.used_amount());
            if wanted.has_calls_in_progress(&report) {
                self.demands.keep_budget(now_ms, index);
            }
            let is_due = wanted.is_due(report.granted < budget.granted);
            budget.granted = report.granted;
            (is_due || self.changed.contains(&index)).then_some((index, report))
        };
        let reports = wanted.into_iter().filter_map(report).collect();
        let most_rows = max_rows(!self.waiting.is_empty(), now_ms.saturating_sub(self.last_full_report_ms));
        if most_rows >= MAX_ROWS {
            self.last_full_report_ms = now_ms;
        }
        let rows = self.rows.min(most_rows.into());
        let is_more = rows >= most_rows.into() || changed.len() >= MAX_CHANGES as usize;
        let calls = std::mem::take(&mut self.waiting);
        self.flight = Some(ReportInFlight {
            sent_ms: now_ms,
            reports,
            answers: Vec::new(),
            rows,
            has_more: is_more,
            calls,
        });
    }

    /// Applies the database's answer. Returns the waiting calls, and whether there is more to report.
    pub(super) fn apply_answer(&mut self) -> (Vec<SimulatedCall>, bool) {
        let Some(flight) = self.flight.take() else { return (Vec::new(), false) };
        for ((index, report), (share, elsewhere, is_tight)) in flight.reports.iter().zip(flight.answers) {
            let Some(budget) = self.budgets.get_mut(*index) else { continue };
            (budget.granted, budget.spent_elsewhere) = (share.granted, elsewhere);
            if budget.spent <= report.spent {
                self.changed.remove(index);
            }
            self.demands.record_answer(index, is_tight, share.granted.saturating_sub(report.used));
        }
        self.rows -= flight.rows;
        self.tenure.confirm(flight.sent_ms);
        (flight.calls, flight.has_more)
    }

    /// Kills the instance; its journal is kept. Returns the number of waiting calls that are lost.
    pub(super) fn kill(&mut self) -> usize {
        let lost = self.waiting.len() + self.flight.take().map_or(0, |flight| flight.calls.len());
        self.waiting.clear();
        self.demands = Demands::default();
        (self.is_alive, self.is_registered) = (false, false);
        self.tenure.end();
        self.kill_count += 1;
        lost
    }

    /// Restarts the instance. Calls that were in progress at the kill cost their full holds.
    pub(super) fn restart(&mut self) {
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
