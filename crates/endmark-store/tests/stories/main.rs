//! Tests of budgets, calls, keys and leases. Each one runs with SQLite alone, and with PostgreSQL.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too"
)]

#[macro_use]
mod place;

mod budgets;
mod calls;
mod keys;
mod leases;

use place::Shared;

/// Uses PgBouncer if it is installed. Its two connections serve all clients of a database, so consecutive
/// transactions of a client may use different connections.
#[test]
fn over_postgresql() {
    let Some(shared) = Shared::start() else { return };
    for stories in [budgets::all_over, calls::all_over, keys::all_over, leases::all_over] {
        stories(&shared);
    }
}
