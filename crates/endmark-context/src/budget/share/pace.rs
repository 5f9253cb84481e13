//! The delays and limits of an instance's reports to the database, in milliseconds.

/// How often an instance reports that it is alive, and checks for changed keys.
pub const HEARTBEAT_MS: u64 = 400;
/// How long new rows wait, so that one transaction writes several.
pub const ROW_DELAY_MS: u64 = 150;
/// The same delay while a budget is tight, because other instances wait for returned shares.
pub const TIGHT_DELAY_MS: u64 = 40;
/// Minimum time between two transactions. All instances together can update a budget's row only a few hundred
/// times per second.
pub const MIN_TRANSACTION_INTERVAL_MS: u64 = 8;
/// Pause after a failed report.
pub const RETRY_PAUSE_MS: u64 = 250;
/// Maximum rows in a transaction if calls wait for it.
pub const MAX_ROWS: u32 = 512;
/// Maximum rows in a transaction if no call waits. Each report costs the journal two transactions, regardless
/// of its size.
const MAX_ROWS_WITHOUT_CALLS: u32 = 2_048;
/// Maximum rows in a transaction if calls wait for a share of a budget.
const MAX_ROWS_WITH_CALLS: u32 = 32;
/// After this time, a transaction writes [`MAX_ROWS`] rows even if calls wait for a share.
const MAX_ROW_DELAY_MS: u64 = 250;
/// Pause between two reports if rows are left and no call waits.
pub const BACKLOG_PAUSE_MS: u64 = 60;
/// Maximum budgets with changes in one transaction.
pub const MAX_CHANGES: u32 = 256;
/// How long a call waits until other instances return unused shares. The gateway itself waits slightly
/// longer.
pub const MAX_RETURN_WAIT_MS: u64 = 1_200;
/// How long a call waits if the database has a free amount but other calls of this instance took it.
const MAX_RACE_WAIT_MS: u64 = 5_000;
/// A call that waits for other instances repeats its request after this pause.
pub const RETURN_RETRY_PAUSE_MS: u64 = 40;

/// Returns the maximum rows in a transaction. `since_ms` is the time since the last transaction that allowed
/// [`MAX_ROWS`].
pub fn max_rows(has_waiting_calls: bool, since_ms: u64) -> u32 {
    match has_waiting_calls {
        false => MAX_ROWS_WITHOUT_CALLS,
        true if since_ms < MAX_ROW_DELAY_MS => MAX_ROWS_WITH_CALLS,
        true => MAX_ROWS,
    }
}

/// Returns how long a call waits if its instance's share does not suffice.
pub fn max_share_wait_ms(is_tight: bool) -> u64 {
    if is_tight { MAX_RETURN_WAIT_MS } else { MAX_RACE_WAIT_MS }
}
