//! A call that was abandoned before the first byte of its answer may be billed, so its prompt counts. A call that was
//! never sent, or that its provider failed to answer, costs nothing. (CX-6, CX-7)
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking, in their helpers too")]

use std::time::Duration;

use endmark_context::budget::{BudgetRule, Period, Scope, Unit};
use endmark_context::count::estimate_request;
use endmark_gateway::{BudgetSettings, Settings};
use endmark_store::{BudgetRow, UsageRow};
use serde_json::json;
use testkit::{Answer, Fault, Request, Script};
use tokio::net::TcpListener;

use crate::support::Endmark;
use crate::support::wire_replies::Wire;

/// Enough for a few abandoned calls. Each holds about 8,300 tokens, but is charged an estimate of less than
/// 100.
const SESSION_BUDGET_TOKENS: u64 = 8_500;

fn set_session_budget(settings: &mut Settings) {
    let rule = BudgetRule {
        scope: Scope::Session,
        unit: Unit::Tokens,
        period: Period::Ever,
        limit: SESSION_BUDGET_TOKENS,
    };
    settings.budget =
        BudgetSettings { rules: vec![rule], assume_output_tokens: 10, ..BudgetSettings::default() };
}

/// Sends a request, and disconnects after the upstream has received it.
async fn send_and_disconnect(endmark: &Endmark, request: Request) {
    let before = endmark.calls();
    let asking = tokio::spawn(async move { request.send().await.read().await.text() });
    while endmark.calls() == before {
        assert!(!asking.is_finished(), "it is not sent: {:?}", asking.await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    asking.abort();
}

/// Returns the calls and the session's budget when at least `calls` calls have a row and nothing is held.
async fn wait_for_settled_calls(endmark: &Endmark, calls: usize) -> (Vec<UsageRow>, BudgetRow) {
    for _ in 0..400 {
        let reader = endmark.store.reader().unwrap();
        let rows = reader.recent_calls(100).unwrap();
        let budget = reader.budgets().unwrap().into_iter().find(|row| row.held == 0);
        if let Some(budget) = budget.filter(|_| rows.len() >= calls) {
            assert_eq!((budget.spent, budget.held), budget.recomputed, "{budget:?}");
            return (rows, budget);
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never settled: {:?}", endmark.store.reader().unwrap().budgets());
}

#[tokio::test]
async fn clients_that_leave_early_use_up_their_budget() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let silent = Script::new().default_answer(Answer::without_status(Fault::Stall));
        let endmark = Endmark::start_with(silent, set_session_budget).await;
        let body = wire.request(stream);
        let prepared_request = || Request::post(endmark.address, wire.path(stream)).json(&body);
        let what = format!("{wire:?} {stream}");
        let (mut rows, mut budget, mut left) = (Vec::new(), None::<BudgetRow>, 0);
        while !budget.as_ref().is_some_and(|budget| budget.is_closed) {
            assert!(left < 9, "{what}: it is never used up: {rows:?}");
            send_and_disconnect(&endmark, prepared_request()).await;
            left += 1;
            let settled = wait_for_settled_calls(&endmark, left).await;
            (rows, budget) = (settled.0, Some(settled.1));
        }
        let refused = prepared_request().send().await.read().await;
        assert_eq!(refused.status, 402, "{what}: {}", refused.text());
        let estimated: u64 = rows.iter().filter_map(|row| row.estimate).map(|estimate| estimate.prompt).sum();
        assert_eq!(refused.json()["endmark"]["spent"], estimated, "{what}");
        for row in rows {
            assert_eq!(row.http_status, None, "{what}: {row:?}");
            assert_eq!(row.estimate.map(|estimate| estimate.output), Some(0), "{what}: {row:?}");
            assert_eq!((row.ending.as_str(), row.tokens.prompt), ("cancelled", None), "{what}");
        }
    }
}

#[tokio::test]
async fn a_stream_abandoned_before_its_first_event_costs_its_prompt() {
    let endmark = Endmark::start_with(
        Script::new().default_answer(Answer::sse(Vec::<String>::new()).stall_after(0)),
        set_session_budget,
    )
    .await;
    let body = Wire::Chat.request(true);
    send_and_disconnect(&endmark, endmark.chat(&body)).await;
    let (_, budget) = wait_for_settled_calls(&endmark, 1).await;
    assert_eq!(budget.spent, estimate_request(&body.to_string(), "m").unwrap().text);
}

#[tokio::test]
async fn an_abandoned_upstream_call_costs_its_prompt() {
    let silent = Script::new().default_answer(Answer::without_status(Fault::Stall));
    let endmark = Endmark::start_with(silent, |settings| {
        set_session_budget(settings);
        settings.limits.first_byte = Duration::from_millis(200);
        settings.retry.max_retries = 0;
    })
    .await;
    let body = Wire::Chat.request(false);
    assert_eq!(endmark.ask(&body).await.status, 504);
    let (rows, budget) = wait_for_settled_calls(&endmark, 1).await;
    assert_eq!(rows[0].ending, "stalled");
    assert_eq!(budget.spent, estimate_request(&body.to_string(), "m").unwrap().text);
}

#[tokio::test]
async fn unsent_calls_and_provider_failures_cost_nothing() {
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for at in [Some(closed), None, Some(deaf.local_addr().unwrap())] {
        let failing = Script::new().default_answer(Answer::without_status(Fault::Reset));
        let endmark = Endmark::start_with(failing, |settings| {
            set_session_budget(settings);
            settings.budget.rules[0].limit = 100_000_000;
            settings.retry.max_retries = 0;
            if let Some(at) = at {
                let base_url = format!("http://{at}/v1").parse().unwrap();
                settings.upstreams[0] = endmark_gateway::Upstream::new("scripted", base_url);
            }
        })
        .await;
        let mut body = Wire::Chat.request(false);
        if at == deaf.local_addr().ok() {
            // The body exceeds what the system buffers for a connection whose reader does not read.
            body["metadata"]["note"] = json!("word ".repeat(2 << 20));
            let asking = tokio::spawn(endmark.ask_later(&body));
            let _taken = deaf.accept().await.unwrap();
            tokio::time::sleep(Duration::from_millis(500)).await;
            asking.abort();
        } else {
            assert_eq!(endmark.ask(&body).await.status, 502);
        }
        let (rows, budget) = wait_for_settled_calls(&endmark, 1).await;
        assert_eq!((rows[0].http_status, rows[0].estimate, budget.spent), (None, None, 0), "{rows:?}");
    }
}

over_postgresql! {
    "abandoned_calls.rs":
    clients_that_leave_early_use_up_their_budget,
    a_stream_abandoned_before_its_first_event_costs_its_prompt,
    an_abandoned_upstream_call_costs_its_prompt,
    unsent_calls_and_provider_failures_cost_nothing,
    ;
    alone:
}
