//! Stories of budgets, calls, keys and leases. Each runs over SQLite alone, and over PostgreSQL.
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

/// Through PgBouncer, if it is installed. Its two connections serve all clients of a database, so each transaction may
/// be on another one.
#[test]
fn over_postgresql() {
    let Some(shared) = Shared::start() else { return };
    for stories in [budgets::all_over, calls::all_over, keys::all_over, leases::all_over] {
        stories(&shared);
    }
}
