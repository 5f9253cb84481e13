//! Stories of budgets, calls, keys and leases. Each runs over SQLite alone, over PostgreSQL, and through PgBouncer.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

#[macro_use]
mod place;

mod budgets;
mod calls;
mod keys;
mod leases;

use place::Shared;

#[test]
fn over_postgresql() {
    all_over(Shared::start(false));
}

/// Two connections serve all clients of a database, so each transaction may be on another one.
#[test]
fn through_a_pooler_in_transaction_mode() {
    all_over(Shared::start(true));
}

fn all_over(shared: Option<Shared>) {
    let Some(shared) = shared else { return };
    for stories in [budgets::all_over, calls::all_over, keys::all_over, leases::all_over] {
        stories(&shared);
    }
}
