//! The measurements of a simulation.

use super::{LOG_BYTES_PER_ROW, Plan, ROW_BYTES};

const SECONDS_PER_DAY: u64 = 86_400;

/// The result of a simulation.
// Fields: a flat list of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimReport {
    /// Database transactions per second, on average.
    pub transactions_per_second: u64,
    /// Database transactions in the busiest second.
    pub peak_transactions_per_second: u64,
    /// Rows of calls per transaction, on average.
    pub rows_per_transaction: u64,
    /// Rows of calls per day.
    pub rows_per_day: u64,
    /// Bytes of these rows in the database, with their index.
    pub table_bytes_per_day: u64,
    /// Bytes of the write-ahead log per day, for each standby.
    pub log_bytes_per_day: u64,
    /// Maximum number of rows that waited in the journals of all instances.
    pub most_rows_waiting: u64,
    /// Calls that were made.
    pub calls: u64,
    /// Calls that waited for a share before they were made.
    pub waited: u64,
    /// Median of these waits in microseconds.
    pub wait_p50_us: u64,
    /// Their 99th percentile.
    pub wait_p99_us: u64,
    /// The longest wait.
    pub wait_max_us: u64,
    /// Calls that were refused because their budget was exhausted.
    pub refused_by_budget: u64,
    /// Calls that were refused because no instance or database was available.
    pub refused_without_database: u64,
    /// Limit of each budget.
    pub limit: u64,
    /// The largest granted but unused part of a budget, in thousandths of the limit.
    pub most_idle_per_mille: u64,
    /// The largest part of a budget that killed instances kept from others, in thousandths of the limit.
    pub most_silent_per_mille: u64,
    /// Cost of all calls, in all budgets.
    pub spent: u64,
    /// The largest amount by which a budget was exceeded.
    pub most_over: u64,
    /// The least used budget among those that refused calls, in thousandths of the limit. `None` if no budget did.
    pub least_used_per_mille: Option<u64>,
}

/// Counters of a running simulation.
#[derive(Debug, Default)]
pub(super) struct Measures {
    pub(super) calls: u64,
    pub(super) waits_us: Vec<u32>,
    pub(super) refused_by_budget: u64,
    pub(super) refused_without_database: u64,
    pub(super) rows_written: u64,
    pub(super) most_rows_waiting: u64,
    pub(super) most_idle: u64,
    pub(super) most_silent: u64,
    /// Transactions per second.
    pub(super) transactions: Vec<u64>,
    /// Budgets that refused a call.
    pub(super) refusing: Vec<bool>,
}

impl Measures {
    pub(super) fn record_transaction(&mut self, now_us: u64) {
        // Ignores events after the last request.
        let second = usize::try_from(now_us / 1_000_000).unwrap_or(usize::MAX);
        if let Some(count) = self.transactions.get_mut(second) {
            *count += 1;
        }
    }

    /// Returns the result, with the final cost of each budget.
    pub(super) fn report(&self, plan: &Plan, spent: &[u64]) -> SimReport {
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
