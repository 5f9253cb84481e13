//! Budgets are held before a call and settled with its row. Concurrent calls never overdraw them.

use std::sync::Arc;

use endmark_context::Moment;
use endmark_context::budget::{Level, Period, Scope, Unit, Zone};
use endmark_store::{
    BudgetRow, CallSettled, CallStarted, Charge, Claim, Dimension, Hold, HoldOutcome, NoSecrets, Purpose,
    RaiseOutcome, Reader, RefusingBudget, Store, StoreLocation, TokenEstimate, Tokens,
};
use tokio::sync::Barrier;

use crate::leases::wait_until;
use crate::place::Place;

over_both_stores! {
    a_thousand_concurrent_calls_do_not_overdraw_a_budget,
    holds_alone_refuse_calls_but_close_no_session,
    a_session_is_closed_only_by_its_own_budget,
    a_hold_is_replaced_by_the_cost_before_the_next_hold,
    a_call_without_usage_costs_its_estimate,
    reported_usage_counts_and_missing_usage_is_estimated,
    holds_of_a_dead_process_are_spent,
    a_used_up_session_closes_once_and_reopens_when_raised,
    a_clock_set_back_over_midnight_counts_in_the_previous_day,
}

fn claim(scope: Scope, subject: &str, limit: u64, amount: u64) -> Claim {
    let window = if scope == Scope::Session { "ever" } else { "2026-11-24" };
    Claim {
        scope,
        subject: subject.to_owned(),
        window: window.to_owned(),
        unit: Unit::Tokens,
        limit,
        amount,
        closing_amount: amount,
    }
}

fn hold(request_id: &str, claims: Vec<Claim>) -> Hold {
    Hold { request_id: request_id.to_owned(), call: 1, claims, may_close: true }
}

pub(crate) fn call_started(request_id: &str) -> CallStarted {
    CallStarted {
        request_id: request_id.to_owned(),
        call: 1,
        purpose: Purpose::Reply,
        session: "s".to_owned(),
        credential: None,
        upstream: "local".to_owned(),
        format: "openai_chat".into(),
        model: "m".to_owned(),
        streamed: false,
        mode: "auto".into(),
        started_ms: 1_700_000_000_123,
        sent_bytes: 40,
        prompt_estimate: 10,
        charges: Vec::new(),
    }
}

fn call_settled(prompt: u64, output: u64) -> CallSettled {
    CallSettled {
        http_status: Some(200),
        ending: "clean".into(),
        tokens: Tokens { prompt: Some(prompt), output: Some(output), ..Tokens::default() },
        ..CallSettled::default()
    }
}

fn budget_row(location: &StoreLocation, scope: &str) -> BudgetRow {
    let rows = Reader::open(location).unwrap().budgets().unwrap();
    for row in &rows {
        assert_eq!((row.spent, row.held), row.recomputed, "{row:?}");
    }
    rows.into_iter().find(|row| row.scope == scope).unwrap()
}

/// Runs with SQLite alone, because it opens copies of the files of a living process.
#[tokio::test]
async fn a_call_without_a_hold_is_charged_once_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    let store = Store::open(&location).unwrap();
    let recorder = store.recorder(NoSecrets);
    let charge = |scope, unit| Charge { scope, unit, window: "2023-11-14".to_owned(), held: 50 };
    let charges = vec![charge(Scope::All, Unit::Tokens), charge(Scope::All, Unit::NanoUsd)];
    let call = |request_id: &str| CallStarted { charges: charges.clone(), ..call_started(request_id) };
    // One call was held, one was not, and one was killed with its gateway.
    let claims = vec![Claim { window: "2023-11-14".to_owned(), ..claim(Scope::All, "", 1_000, 50) }];
    recorder.hold(hold("em_held", claims)).await.unwrap();
    for request_id in ["em_held", "em_late"] {
        let cost = CallSettled { nano_usd: Some(7), ..call_settled(6, 40_000) };
        recorder.open_call(call(request_id)).await.settle(cost);
    }
    // The provider reported only the prompt, so the output tokens are estimated from the text. The cost in
    // dollars is unknown, so the held amount is charged.
    let tokens = Tokens { prompt: Some(6), ..Tokens::default() };
    let estimate = Some(TokenEstimate { prompt: 6, output: 10 });
    let part = CallSettled { tokens, estimate, nano_usd: None, ..call_settled(6, 0) };
    recorder.open_call(call("em_part")).await.settle(part);
    let open = recorder.open_call(call("em_killed")).await;
    // A copy of the files without their locks, as the next start would find them after a kill of this
    // process.
    let left = tempfile::tempdir().unwrap();
    let killed = StoreLocation::sqlite(left.path().join("a.db"));
    for _ in 0..400 {
        let is_written = |reader: Reader| reader.recent_calls(9).unwrap().len() == 3;
        if Reader::open(&location).is_ok_and(is_written) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), left.path().join(entry.file_name())).unwrap();
    }
    for _ in 0..2 {
        drop(Store::open(&killed).unwrap());
        let rows = Reader::open(&killed).unwrap().budgets().unwrap();
        let spent =
            |unit| rows.iter().find(|row| row.unit == unit).map(|row| (row.spent, row.held, row.recomputed));
        assert_eq!(
            spent("tokens"),
            Some((80_078, 0, (80_078, 0))),
            "the killed one for what it may have cost"
        );
        assert_eq!(spent("nano_usd"), Some((114, 0, (114, 0))));
    }
    let difference = || {
        let reader = Reader::open(&killed).unwrap();
        let of = |unit| reader.budget_difference(Scope::All, unit, &Zone::default()).unwrap();
        [of(Unit::Tokens), of(Unit::NanoUsd)]
            .map(|found| found.map(|found| (found.window, found.uncharged_calls, found.wrong_calls)))
    };
    assert_eq!(difference(), [None, None]);
    let connection = rusqlite::Connection::open(killed.path()).unwrap();
    let execute = |sql: &str| connection.execute(sql, []).unwrap();
    execute("UPDATE budget_entries SET spent = 50 WHERE request_id = 'em_late' AND unit = 'tokens'");
    execute("DELETE FROM budget_entries WHERE request_id = 'em_killed' AND unit = 'nano_usd'");
    let window = || "2023-11-14".to_owned();
    assert_eq!(difference(), [Some((window(), 0, 1)), Some((window(), 1, 0))]);
    drop(open);
    store.close().await;
}

async fn a_thousand_concurrent_calls_do_not_overdraw_a_budget(place: &Place) {
    let (location, store) = place.open();
    let barrier = Arc::new(Barrier::new(1_000));
    let tasks: Vec<_> = (0..1_000)
        .map(|number| {
            let (recorder, barrier) = (store.recorder(NoSecrets), Arc::clone(&barrier));
            tokio::spawn(async move {
                barrier.wait().await;
                let request_id = format!("em_{number}");
                let claims = vec![
                    claim(Scope::Session, "s", 300, 10),
                    claim(Scope::Model, if number % 2 == 0 { "a" } else { "b" }, 100_000, 10),
                    claim(Scope::All, "", 100_000, 10),
                ];
                let held = recorder.hold(hold(&request_id, claims)).await.unwrap();
                match held {
                    HoldOutcome::Fits { .. } => {
                        recorder.open_call(call_started(&request_id)).await.settle(call_settled(6, 4));
                        "fits"
                    }
                    HoldOutcome::Closing => {
                        recorder.open_call(call_started(&request_id)).await.settle(call_settled(6, 4));
                        "closing"
                    }
                    HoldOutcome::Exhausted(RefusingBudget { claim, account }) => {
                        assert_eq!(claim.scope, Scope::Session);
                        if account.may_admit(claim.amount) { "refused for now" } else { "refused" }
                    }
                }
            })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    let count = |word: &str| outcomes.iter().filter(|outcome| **outcome == word).count();
    let (closing, refused) = (count("closing"), count("refused"));
    assert_eq!(count("fits"), 30);
    assert_eq!(closing + refused + count("refused for now"), 970);
    assert!(closing <= 1, "one closing call, and no more: {closing}");
    assert!(closing == 1 || refused == 0, "only spent tokens close a session, and refuse permanently");
    // All calls are settled. If no call closed the session, the next one does.
    let recorder = store.recorder(NoSecrets);
    let after =
        |number| hold(number, vec![claim(Scope::Session, "s", 300, 10), claim(Scope::All, "", 100_000, 10)]);
    if closing == 0 {
        assert_eq!(recorder.hold(after("em_last")).await.unwrap(), HoldOutcome::Closing);
        recorder.open_call(call_started("em_last")).await.settle(call_settled(6, 4));
    }
    let refused = recorder.hold(after("em_after")).await.unwrap();
    assert!(matches!(refused, HoldOutcome::Exhausted(used_up) if used_up.account.is_closed));
    store.close().await;
    let session = budget_row(&location, "session");
    assert_eq!((session.spent, session.held, session.is_closed), (310, 0, true));
    assert_eq!(budget_row(&location, "all").spent, 310);
    let models = Reader::open(&location).unwrap().budgets().unwrap();
    let models: u64 = models.iter().filter(|row| row.scope == "model").map(|row| row.spent).sum();
    assert_eq!(models, 300 + 10 * closing as u64, "what is refused by one budget is held in no other");
}

/// Concurrent calls that hold large amounts leave little of the budget. Only the amounts that they finally
/// spent count.
async fn holds_alone_refuse_calls_but_close_no_session(place: &Place) {
    let (_, store) = place.open();
    for scope in Scope::ALL {
        let recorder = store.recorder(NoSecrets);
        let id_of = |id: &str| format!("{id}_{}", scope.name());
        let ask = async |id: &str, amount| {
            let of_scope = Claim { closing_amount: 1_000, ..claim(scope, "s", 60_000, amount) };
            recorder.hold(hold(&id_of(id), vec![of_scope])).await.unwrap()
        };
        for id in ["em_1", "em_2", "em_3"] {
            assert!(matches!(ask(id, 20_000).await, HoldOutcome::Fits { .. }), "{scope:?} {id}");
        }
        let HoldOutcome::Exhausted(RefusingBudget { claim, account }) = ask("em_4", 20_000).await else {
            panic!("{scope:?}")
        };
        assert!(account.may_admit(claim.amount) && !account.is_closed, "{scope:?}: {account:?}");
        for id in ["em_1", "em_2", "em_3"] {
            recorder.open_call(call_started(&id_of(id))).await.settle(call_settled(900, 100));
        }
        assert!(
            matches!(ask("em_5", 20_000).await, HoldOutcome::Fits { .. }),
            "{scope:?}: they came to 3,000"
        );
        // The spent amounts alone leave no room. A session gets its closing call even if other calls are
        // held; other scopes get none.
        let last = ask("em_6", 57_001).await;
        match scope {
            Scope::Session => assert_eq!(last, HoldOutcome::Closing),
            _ => assert!(
                matches!(&last, HoldOutcome::Exhausted(used) if !used.account.may_admit(used.claim.amount)),
                "{scope:?}: {last:?}"
            ),
        }
    }
    store.close().await;
}

/// An exhausted daily budget does not end a session.
async fn a_session_is_closed_only_by_its_own_budget(place: &Place) {
    let (_, store) = place.open();
    let recorder = store.recorder(NoSecrets);
    let claims = |day| {
        let of = |scope, limit| Claim { closing_amount: 10, ..claim(scope, "s", limit, 90) };
        vec![of(Scope::Session, 1_000), of(Scope::All, day)]
    };
    let held = recorder.hold(hold("em_1", claims(50))).await.unwrap();
    assert!(
        matches!(&held, HoldOutcome::Exhausted(used_up) if used_up.claim.scope == Scope::All),
        "{held:?}"
    );
    assert!(matches!(recorder.hold(hold("em_2", claims(100))).await.unwrap(), HoldOutcome::Fits { .. }));
    store.close().await;
}

async fn a_hold_is_replaced_by_the_cost_before_the_next_hold(place: &Place) {
    let (location, store) = place.open();
    let recorder = store.recorder(NoSecrets);
    for number in 0..9 {
        let request_id = format!("em_{number}");
        let held = recorder.hold(hold(&request_id, vec![claim(Scope::All, "", 100, 90)])).await.unwrap();
        assert!(matches!(held, HoldOutcome::Fits { .. }), "{number}: {held:?}");
        recorder.open_call(call_started(&request_id)).await.settle(call_settled(1, 0));
    }
    let held = recorder.hold(hold("em_late", vec![claim(Scope::All, "", 100, 92)])).await.unwrap();
    let HoldOutcome::Exhausted(used_up) = held else { panic!("{held:?}") };
    // An instance counts the part of the budget that it was not granted as held.
    assert!(used_up.account.spent == 9 && (used_up.account.held == 0 || place.is_shared()), "{used_up:?}");
    // Releasing a hold restores the budget completely.
    recorder.hold(hold("em_unmade", vec![claim(Scope::All, "", 100, 90)])).await.unwrap();
    recorder.release("em_unmade", 1, false).await.unwrap();
    store.close().await;
    assert_eq!((budget_row(&location, "all").spent, budget_row(&location, "all").held), (9, 0));
}

/// If a client disconnects or a provider reports no usage, an estimate is recorded, so that the call is not
/// free. If the estimate has no price, the call costs its held amount.
async fn a_call_without_usage_costs_its_estimate(place: &Place) {
    let (location, store) = place.open();
    let recorder = store.recorder(NoSecrets);
    let dollars = Claim { unit: Unit::NanoUsd, ..claim(Scope::All, "", 1_000, 90) };
    for (request_id, nano_usd, spent) in
        [("em_1", Some(30), 30), ("em_2", Some(500), 530), ("em_3", None, 620)]
    {
        recorder.hold(hold(request_id, vec![dollars.clone()])).await.unwrap();
        let tokens = Tokens::default();
        let estimate = Some(TokenEstimate { prompt: 10, output: 2 });
        let unreported = CallSettled { tokens, nano_usd, estimate, ..call_settled(0, 0) };
        recorder.open_call(call_started(request_id)).await.settle(unreported);
        // A later hold sees all finished calls, even if a lease admits it before the store has their rows.
        let held = recorder.hold(hold("em_look", vec![dollars.clone()])).await.unwrap();
        assert!(matches!(held, HoldOutcome::Fits { .. }), "{held:?}");
        recorder.release("em_look", 1, false).await.unwrap();
        wait_until(request_id, || budget_row(&location, "all").spent == spent).await;
    }
    store.close().await;
}

/// A stream that broke off may have reported only its prompt tokens.
async fn reported_usage_counts_and_missing_usage_is_estimated(place: &Place) {
    let (location, store) = place.open();
    let recorder = store.recorder(NoSecrets);
    recorder.hold(hold("em_1", vec![claim(Scope::All, "", 1_000, 90)])).await.unwrap();
    let tokens = Tokens { prompt: Some(50), ..Tokens::default() };
    let estimate = Some(TokenEstimate { prompt: 50, output: 20 });
    let broken = CallSettled { tokens, estimate, ..call_settled(0, 0) };
    recorder.open_call(call_started("em_1")).await.settle(broken);
    store.close().await;
    assert_eq!(budget_row(&location, "all").spent, 70);
    let rows = endmark_store::Reader::open(&location).unwrap().recent_calls(9).unwrap();
    let (_, sums) = endmark_store::classify(&rows[0]);
    assert_eq!((sums.prompt, sums.completion, sums.estimated), (50, 20, 1));
}

async fn holds_of_a_dead_process_are_spent(place: &Place) {
    let (location, store) = place.open();
    let recorder = store.recorder(NoSecrets);
    recorder.hold(hold("em_1", vec![claim(Scope::Session, "s", 100, 40)])).await.unwrap();
    assert_eq!((budget_row(&location, "session").spent, budget_row(&location, "session").held), (0, 40));
    store.close().await;
    let store = Store::open(&location).unwrap();
    assert_eq!((budget_row(&location, "session").spent, budget_row(&location, "session").held), (40, 0));
    store.close().await;
}

async fn a_used_up_session_closes_once_and_reopens_when_raised(place: &Place) {
    let (_, store) = place.open();
    let recorder = store.recorder(NoSecrets);
    let ask = async |id: &str, amount: u64| {
        recorder.hold(hold(id, vec![claim(Scope::Session, "s", 100, amount)])).await.unwrap()
    };
    let HoldOutcome::Fits { warnings, least_left, .. } = ask("em_1", 80).await else { panic!("it fits") };
    assert!(warnings.is_empty(), "what is held is not spent: {warnings:?}");
    assert_eq!(least_left, Some((Scope::Session, Unit::Tokens, 100)));
    recorder.open_call(call_started("em_1")).await.settle(call_settled(80, 0));
    let HoldOutcome::Fits { warnings, .. } = ask("em_2", 5).await else { panic!("it fits") };
    assert_eq!(warnings.iter().map(|warning| warning.level).collect::<Vec<_>>(), [Level::High]);
    let HoldOutcome::Fits { warnings, .. } = ask("em_2_again", 1).await else { panic!("it fits") };
    assert!(warnings.is_empty(), "once a window: {warnings:?}");
    assert_eq!(ask("em_3", 21).await, HoldOutcome::Closing);
    assert!(matches!(ask("em_4", 1).await, HoldOutcome::Exhausted(used_up) if used_up.account.is_closed));
    assert_eq!(store.raise_budget("s", Unit::Tokens, 50).await, Ok(RaiseOutcome::Raised(50)));
    assert_eq!(store.raise_budget("another", Unit::Tokens, 50).await, Ok(RaiseOutcome::NoBudget));
    assert!(matches!(ask("em_5", 40).await, HoldOutcome::Fits { .. }));
    // If the closing call was never made, the session stays open.
    assert_eq!(ask("em_6", 71).await, HoldOutcome::Closing);
    recorder.release("em_6", 1, true).await.unwrap();
    assert!(matches!(ask("em_7", 1).await, HoldOutcome::Fits { .. }));
    // SQLite would turn a larger sum into a floating-point value.
    let most = (1 << 60) - 50;
    for by in [most + 1, u64::MAX] {
        assert_eq!(store.raise_budget("s", Unit::Tokens, by).await, Ok(RaiseOutcome::TooLarge(most)));
    }
    assert_eq!(store.raise_budget("s", Unit::Tokens, most).await, Ok(RaiseOutcome::Raised(1 << 60)));
    store.close().await;
}

/// The day of a call depends only on its timestamp. If the clock is set back to the previous day, the budget
/// of that day continues.
async fn a_clock_set_back_over_midnight_counts_in_the_previous_day(place: &Place) {
    let (location, store) = place.open();
    let recorder = store.recorder(NoSecrets);
    let (before, after) = ("2026-11-24 23:59:30", "2026-11-25 00:00:30");
    let ask = async |request_id: &str, at: &str| {
        let at = Moment::parse(at).unwrap();
        let window = Period::Day.window(at, &Zone::default());
        let of_day = Claim { window, ..claim(Scope::All, "", 100, 30) };
        let held = recorder.hold(hold(request_id, vec![of_day])).await.unwrap();
        if matches!(held, HoldOutcome::Fits { .. }) {
            let started_ms = at.unix_seconds() * 1_000;
            let open = recorder.open_call(CallStarted { started_ms, ..call_started(request_id) }).await;
            open.settle(call_settled(20, 10));
        }
        held
    };
    for (request_id, at) in [("em_1", before), ("em_2", before), ("em_3", after), ("em_4", before)] {
        let held = ask(request_id, at).await;
        assert!(matches!(held, HoldOutcome::Fits { .. }), "{request_id}: {held:?}");
    }
    // The previous day has spent 90 of its 100, the new day 30.
    let HoldOutcome::Exhausted(used_up) = ask("em_5", before).await else { panic!("it does not fit") };
    assert_eq!((used_up.claim.window.as_str(), used_up.account.spent), ("2026-11-24", 90));
    assert!(matches!(ask("em_6", after).await, HoldOutcome::Fits { .. }));
    store.close().await;

    let reader = Reader::open(&location).unwrap();
    let budgets = reader.budgets().unwrap();
    let windows: Vec<_> = budgets.iter().map(|row| (row.window.as_str(), row.spent, row.held)).collect();
    assert_eq!(windows, [("2026-11-25", 60, 0), ("2026-11-24", 90, 0)]);
    for row in &budgets {
        assert_eq!((row.spent, row.held), row.recomputed, "`endmark doctor` finds a difference: {row:?}");
        let mut ledger = 0;
        let day = |hour: &str| format!("{} {hour}", row.window);
        let add = |summed: &endmark_store::CountedCalls<'_>| {
            ledger += summed.sums.reported_prompt + summed.sums.reported_output;
        };
        reader.sums((Dimension::Nothing, None), &day("00:00:00"), &day("24:00:00"), add).unwrap();
        assert_eq!(ledger, row.spent, "{row:?}");
    }
}
