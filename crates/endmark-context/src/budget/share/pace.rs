//! How often an instance reports to the database, in milliseconds.

/// How often an instance checks for changed keys and reports that it is alive.
pub const HEARTBEAT_MS: u64 = 400;
/// How long rows wait, so that several share a transaction.
pub const ROW_DELAY_MS: u64 = 150;
/// The same delay for a nearly exhausted budget, because other instances wait for returned shares.
pub const TIGHT_DELAY_MS: u64 = 40;
/// Minimum time between two transactions. A budget's row supports some hundred updates per second, from all instances.
pub const PAUSE_MS: u64 = 8;
/// Pause after a failure.
pub const RETRY_PAUSE_MS: u64 = 250;
/// Maximum rows of calls in one transaction that calls may wait for.
pub const MAX_ROWS: u32 = 512;
/// The same number while no call waits. Each report costs the journal two transactions, whatever it contains.
const MAX_QUIET_ROWS: u32 = 2_048;
/// The same number while calls wait for a share of a budget.
const MAX_ROWS_BESIDE_CALLS: u32 = 32;
/// How long rows wait for such calls.
const ROWS_PATIENCE_MS: u64 = 250;
/// Pause between two reports while rows are left and no call waits.
pub const BACKLOG_PAUSE_MS: u64 = 60;
/// Maximum changed budgets in one transaction.
pub const MAX_CHANGES: u32 = 256;
/// How long a call waits for other instances to return unused shares. The gateway waits slightly longer.
pub const RETURN_PATIENCE_MS: u64 = 1_200;
/// The same if the database has a free amount, because other calls of this instance took the share.
const RACE_PATIENCE_MS: u64 = 5_000;
/// Pause between two requests of a call that waits for other instances.
pub const RETURN_PAUSE_MS: u64 = 40;

/// Returns how many rows a transaction may have. `since_ms` is the time since the last one with at least [`MAX_ROWS`].
pub fn max_rows(has_waiting_calls: bool, since_ms: u64) -> u32 {
    match has_waiting_calls {
        false => MAX_QUIET_ROWS,
        true if since_ms < ROWS_PATIENCE_MS => MAX_ROWS_BESIDE_CALLS,
        true => MAX_ROWS,
    }
}

/// Returns how long a call waits for a share that does not suffice.
pub fn patience_ms(is_tight: bool) -> u64 {
    if is_tight { RETURN_PATIENCE_MS } else { RACE_PATIENCE_MS }
}
