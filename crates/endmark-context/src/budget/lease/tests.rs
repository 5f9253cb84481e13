use proptest::prelude::*;

use super::{Lease, REPLAN_AFTER_MS, StoredBudget, VALIDITY_MS};
use crate::budget::Account;

const LIMIT: u64 = 10_000;

fn standing_with(spent: u64, held: u64) -> StoredBudget {
    StoredBudget {
        account: Account { limit: LIMIT, spent, held, ..Account::default() },
        warned_percent: 0,
        other_owners: 0,
        is_exclusive: false,
    }
}

/// Returns a lease after two finished calls. The store held 10 for each of them.
fn lease_after_two_calls() -> Lease {
    let mut lease = Lease::default();
    lease.record_stored_hold(0, LIMIT, 10);
    lease.record_stored_hold(0, LIMIT, 10);
    assert_eq!(lease.plan(0, standing_with(20, 0)), (20, 0));
    lease.confirm();
    lease
}

#[test]
fn a_lease_covers_recent_use_up_to_a_quarter_of_the_remaining_budget() {
    let mut lease = Lease::default();
    lease.record_stored_hold(0, LIMIT, 10);
    assert!(!lease.needs_plan(0), "one call is not enough");
    lease.record_stored_hold(5, LIMIT, 30);
    assert_eq!(lease.plan(5, standing_with(0, 0)), (40, 0));
    assert_eq!(lease.plan(5, standing_with(LIMIT - 130, 10)).0, 0, "a quarter of the room is no whole call");
    assert_eq!(
        lease.plan(5, standing_with(LIMIT - 130, 0)).0,
        0,
        "the level of 95 percent is not reported yet"
    );
    let warned = StoredBudget { warned_percent: 95, ..standing_with(LIMIT - 130, 0) };
    assert_eq!(lease.plan(5, warned).0, 32);
    assert_eq!(lease.plan(5, StoredBudget { other_owners: 1, ..warned }).0, 0);
    assert_eq!(
        lease.plan(5, StoredBudget { is_exclusive: true, ..standing_with(LIMIT - 35, 0) }).0,
        0,
        "not reported yet"
    );
    let exclusive = StoredBudget { is_exclusive: true, warned_percent: 95, ..standing_with(LIMIT - 35, 0) };
    assert_eq!(lease.plan(5, exclusive).0, 35, "no other process waits for the room");
    assert_eq!(lease.plan(2_500, warned).0, 0, "it was not used lately");
}

#[test]
fn the_store_decides_if_a_lease_is_insufficient() {
    let lease = lease_after_two_calls();
    assert_eq!(lease.check(1, LIMIT, 20).map(|account| account.remaining()), Some(LIMIT - 20));
    assert_eq!(lease.check(1, LIMIT, 21), None, "more than is leased");
    assert_eq!(lease.check(1, LIMIT - 1, 20), None, "the limit has changed");
    assert_eq!(lease.check(VALIDITY_MS, LIMIT, 20), None, "others may have changed the budget");
    let mut used = lease_after_two_calls();
    used.hold(1, 15);
    assert_eq!(used.check(1, LIMIT, 6), None);
    used.settle(15, LIMIT * 8 / 10);
    assert_eq!(used.check(1, LIMIT, 0), None, "80 percent are spent, and no client was warned");
    let mut closed = lease_after_two_calls();
    let mut account = standing_with(20, 0).account;
    account.is_closed = true;
    closed.plan(1, StoredBudget { account, ..standing_with(20, 0) });
    assert_eq!(closed.check(1, LIMIT, 0), None);
}

#[test]
fn a_lease_shrinks_before_the_commit_and_grows_after_it() {
    let mut lease = lease_after_two_calls();
    lease.hold(1, 10);
    assert_eq!(lease.recall(), (0, 10));
    assert_eq!(lease.check(1, LIMIT, 1), None, "the store decides at the moment");
    lease.revert();
    assert!(lease.check(1, LIMIT, 10).is_some());
    lease.record_stored_hold(1, LIMIT, 20);
    lease.settle(10, 4);
    lease.flush(4);
    assert_eq!(lease.plan(2, standing_with(24, 0)), (50, 0));
    assert!(lease.check(2, LIMIT, 17).is_none(), "16 of the committed 20");
    lease.confirm();
    assert!(lease.check(2, LIMIT, 50).is_some());
}

#[test]
fn a_lease_of_about_the_right_size_is_not_rewritten() {
    let mut lease = lease_after_two_calls();
    lease.hold(1, 10);
    lease.settle(10, 4);
    lease.flush(4);
    let planned = lease.plan(2, standing_with(24, 0));
    assert_eq!(planned, (20, 0), "30 were used lately");
    assert!(lease.is_in_store(planned));
    lease.confirm();
    assert!(lease.check(2, LIMIT, 20).is_some(), "the costs are in the store");
    lease.hold(2, 10);
    let planned = lease.plan(3, standing_with(24, 0));
    assert_eq!(planned, (50, 10));
    assert!(!lease.is_in_store(planned));
    lease.confirm();
    assert!(lease.is_in_store(planned));
    assert_eq!(lease.plan(3, standing_with(LIMIT - 60, 0)).0, 10, "a quarter of the room is less");
}

#[test]
fn a_fresh_lease_is_used_without_another_plan() {
    let mut lease = lease_after_two_calls();
    lease.hold(1, 5);
    assert!(lease.needs_plan(1), "readers of the store see the hold");
    lease.settle(5, 4);
    lease.flush(4);
    assert!(!lease.needs_plan(1));
    lease.confirm();
    assert_eq!(lease.check(1, LIMIT, 16).map(|account| account.spent), Some(24));
    assert_eq!(
        lease.check(1, LIMIT, 17),
        None,
        "the cost counts in the store, and the lease is as large there"
    );
    lease.flush(1);
    lease.revert();
    assert_eq!(lease.check(1, LIMIT, 17), None);
    assert!(lease.needs_plan(REPLAN_AFTER_MS));
    lease.recall();
    assert!(lease.needs_plan(1), "the rest is used again after the next plan");
    lease.plan(1, standing_with(24, 0));
    lease.confirm();
    lease.hold(2, 9);
    lease.settle(9, 9);
    assert!(lease.needs_plan(2), "less is free than half of the recent use");
}

#[derive(Debug, Clone)]
enum LeaseEvent {
    Hold(u64),
    /// A call in progress finishes and costs this percentage of its hold.
    Settle(usize, u64),
    /// A transaction writes costs, may hold one call in the store, and then commits or fails. Other calls are
    /// held in the lease before the plan and before the commit.
    Transaction {
        exact: Option<u64>,
        meanwhile: [u64; 2],
        commits: bool,
    },
    /// The process is killed and restarted.
    Kill,
    Wait(u64),
}

fn event() -> impl Strategy<Value = (usize, LeaseEvent)> {
    // Sometimes a call needs the whole remaining budget.
    let exact = prop_oneof![3 => 1..600_u64, 1 => Just(u64::MAX)];
    let event = prop_oneof![
        8 => (1..300_u64).prop_map(LeaseEvent::Hold),
        6 => (any::<usize>(), 0..=100_u64).prop_map(|(call, percent)| LeaseEvent::Settle(call, percent)),
        4 => (prop::option::of(exact), prop::array::uniform2(1..300_u64), prop::bool::weighted(0.8))
            .prop_map(|(exact, meanwhile, commits)| LeaseEvent::Transaction { exact, meanwhile, commits }),
        1 => Just(LeaseEvent::Kill),
        1 => (0..1_500_u64).prop_map(LeaseEvent::Wait),
    ];
    (0..3_usize, event)
}

#[derive(Default)]
struct Process {
    lease: Lease,
    /// The holds of calls in progress in the lease.
    calls: Vec<u64>,
    /// Costs of finished calls that are not written yet.
    costs: Vec<u64>,
    stored_holds: Vec<u64>,
}

impl Process {
    fn hold(&mut self, now: u64, amount: u64) {
        if self.lease.check(now, LIMIT, amount).is_some() {
            self.lease.hold(now, amount);
            self.calls.push(amount);
        }
    }
}

proptest! {
    #[test]
    fn processes_never_spend_more_than_a_shared_budget(
        events in prop::collection::vec(event(), 1..300),
    ) {
        let mut processes: [Process; 3] = Default::default();
        let (mut now, mut spent, mut total, mut leases) = (0, 0_u64, 0_u64, [0_u64; 3]);
        for (of, event) in events {
            let held_by_others = |processes: &[Process; 3], leases: &[u64; 3]| {
                let exact: u64 = processes.iter().flat_map(|process| &process.stored_holds).sum();
                exact + leases.iter().enumerate().filter(|(at, _)| *at != of).map(|(_, lease)| lease).sum::<u64>()
            };
            match event {
                LeaseEvent::Wait(ms) => now += ms,
                LeaseEvent::Hold(amount) => processes[of].hold(now, amount),
                LeaseEvent::Settle(call, percent) => {
                    let process = &mut processes[of];
                    if !process.calls.is_empty() {
                        let held = process.calls.swap_remove(call % process.calls.len());
                        let cost = held * percent / 100;
                        process.lease.settle(held, cost);
                        process.costs.push(cost);
                        total += cost;
                    }
                }
                LeaseEvent::Transaction { exact, meanwhile, commits } => {
                    let process = &mut processes[of];
                    // Calls that the store held have finished by now. Each costs a tenth of its hold.
                    let settled_cost = process.stored_holds.drain(..).sum::<u64>() / 10;
                    (spent, total) = (spent + settled_cost, total + settled_cost);
                    let costs: u64 = process.costs.iter().sum();
                    process.lease.flush(costs);
                    // The lease is recalled only if the store has to decide.
                    let (unwritten, in_use) = if exact.is_some() {
                        process.lease.recall()
                    } else {
                        (0, process.calls.iter().sum())
                    };
                    prop_assert_eq!(unwritten, 0);
                    let others = held_by_others(&processes, &leases);
                    let account =
                        Account { limit: LIMIT, spent: spent + costs, held: others + in_use, ..Account::default() };
                    let exact = exact.map(|amount| amount.min(account.remaining()));
                    let process = &mut processes[of];
                    if let Some(amount) = exact {
                        process.lease.record_stored_hold(now, LIMIT, amount);
                    }
                    process.hold(now, meanwhile[0]);
                    let standing = StoredBudget {
                        account: Account { held: others + exact.unwrap_or(0), ..account },
                        warned_percent: 95,
                        other_owners: 2,
                        is_exclusive: false,
                    };
                    let needs_plan = process.lease.needs_plan(now);
                    let amount = if needs_plan { process.lease.plan(now, standing).0 } else { leases[of] };
                    process.hold(now, meanwhile[1]);
                    if commits {
                        process.lease.confirm();
                        process.stored_holds.extend(exact);
                        process.costs.clear();
                        (spent, leases[of]) = (spent + costs, amount);
                    } else {
                        process.lease.revert();
                    }
                }
                LeaseEvent::Kill => {
                    // After a restart, the journal contains the costs of finished calls and the holds of the
                    // others.
                    let process = std::mem::take(&mut processes[of]);
                    let under_way: u64 = process.calls.iter().chain(&process.stored_holds).sum();
                    total += under_way;
                    spent += under_way + process.costs.iter().sum::<u64>();
                    leases[of] = 0;
                }
            }
            let exact: u64 = processes.iter().flat_map(|process| &process.stored_holds).sum();
            // The amount that the store counts twice until the next plan cannot be used by other calls.
            let leased: u64 = processes.iter().map(|process| process.lease.committed).sum();
            prop_assert!(spent + exact + leased <= LIMIT);
            for (process, stored) in processes.iter().zip(leases) {
                let (covered, committed): (u64, _) =
                    (process.calls.iter().chain(&process.costs).sum(), process.lease.committed);
                prop_assert!(covered <= committed && committed <= stored, "a hold is covered by a committed lease");
            }
            let unwritten: u64 = processes.iter().flat_map(|process| &process.costs).sum();
            prop_assert_eq!(spent + unwritten, total, "every call counts once");
        }
    }
}
