//! The results of a simulation.

use super::{LOG_BYTES_PER_ROW, ROW_BYTES, SimulationPlan};

const SECONDS_PER_DAY: u64 = 86_400;

/// The results of a simulation.
// Fields: a flat list of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimReport {
    /// Average database transactions per second.
    pub transactions_per_second: u64,
    /// Database transactions in the busiest second.
    pub peak_transactions_per_second: u64,
    /// Average number of call rows per transaction.
    pub rows_per_transaction: u64,
    /// Number of call rows per day.
    pub rows_per_day: u64,
    /// Bytes of these rows in the database per day, including indexes.
    pub table_bytes_per_day: u64,
    /// Bytes of the write-ahead log per day, for each standby server.
    pub log_bytes_per_day: u64,
    /// The largest number of rows that waited in the journals of all instances together.
    pub most_rows_waiting: u64,
    /// Number of calls that were made.
    pub calls: u64,
    /// Number of calls that waited for a share before they were made.
    pub waited: u64,
    /// Median wait of these calls in microseconds.
    pub wait_p50_us: u64,
    /// 99th percentile of the waits in microseconds.
    pub wait_p99_us: u64,
    /// The longest wait in microseconds.
    pub wait_max_us: u64,
    /// Number of calls that were refused because their budget was used up.
    pub refused_by_budget: u64,
    /// Number of calls that were refused because no instance or no database was available.
    pub refused_without_database: u64,
    /// Limit of each budget.
    pub limit: u64,
    /// The largest amount of a budget that was granted but not used, in thousandths of the limit.
    pub most_idle_per_mille: u64,
    /// The largest amount of a budget that killed instances kept from the others, in thousandths of the
    /// limit.
    pub most_silent_per_mille: u64,
    /// Total cost of all calls in all budgets.
    pub spent: u64,
    /// The largest amount by which the calls of a budget exceeded its limit.
    pub most_over: u64,
    /// The lowest use of a budget that refused calls, in thousandths of the limit. `None` if no budget
    /// refused one.
    pub least_used_per_mille: Option<u64>,
}

/// Counters that are updated while a simulation runs.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    pub(super) calls: u64,
    pub(super) waits_us: Vec<u32>,
    pub(super) refused_by_budget: u64,
    pub(super) refused_without_database: u64,
    pub(super) rows_written: u64,
    pub(super) most_rows_waiting: u64,
    pub(super) most_idle: u64,
    pub(super) most_silent: u64,
    /// Number of transactions in each second.
    pub(super) transactions: Vec<u64>,
    /// For each budget, whether it refused a call.
    pub(super) refusing: Vec<bool>,
}

impl Measurements {
    pub(super) fn record_transaction(&mut self, now_us: u64) {
        // Ignore transactions after the last request.
        let second = usize::try_from(now_us / 1_000_000).unwrap_or(usize::MAX);
        if let Some(count) = self.transactions.get_mut(second) {
            *count += 1;
        }
    }

    /// Returns the results. `spent` has the final cost of each budget.
    pub(super) fn report(&self, plan: &SimulationPlan, spent: &[u64]) -> SimReport {
        let mut waits = self.waits_us.clone();
        waits.sort_unstable();
        let at = |percent: usize| waits.get((waits.len() * percent / 100).min(waits.len().max(1) - 1));
        let wait = |percent| u64::from(at(percent).copied().unwrap_or(0));
        let limit = plan.limit();
        let per_mille = |amount: u64| {
            u64::try_from(u128::from(amount) * 1_000 / u128::from(limit.max(1))).unwrap_or(u64::MAX)
        };
        let refusing = spent.iter().zip(&self.refusing).filter(|(_, is_refusing)| **is_refusing);
        let transactions: u64 = self.transactions.iter().sum();
        let rows_per_day = plan.requests_per_second.saturating_mul(SECONDS_PER_DAY);
        SimReport {
            transactions_per_second: transactions.div_ceil(plan.seconds.max(1)),
            peak_transactions_per_second: self.transactions.iter().copied().max().unwrap_or(0),
            rows_per_transaction: self.rows_written / transactions.max(1),
            rows_per_day,
            table_bytes_per_day: rows_per_day.saturating_mul(ROW_BYTES),
            log_bytes_per_day: rows_per_day.saturating_mul(LOG_BYTES_PER_ROW),
            most_rows_waiting: self.most_rows_waiting,
            calls: self.calls,
            waited: waits.len() as u64,
            wait_p50_us: wait(50),
            wait_p99_us: wait(99),
            wait_max_us: wait(100),
            refused_by_budget: self.refused_by_budget,
            refused_without_database: self.refused_without_database,
            limit,
            most_idle_per_mille: per_mille(self.most_idle),
            most_silent_per_mille: per_mille(self.most_silent),
            spent: spent.iter().fold(0, |sum, spent| sum.saturating_add(*spent)),
            most_over: spent.iter().map(|spent| spent.saturating_sub(limit)).max().unwrap_or(0),
            least_used_per_mille: refusing.map(|(spent, _)| per_mille(*spent)).min(),
        }
    }
}
