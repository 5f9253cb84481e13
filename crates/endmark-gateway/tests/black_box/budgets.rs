//! Budgets are held before a call, settled by the reported usage, and never overdrawn. (CX-7)
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking, in their helpers too")]

use std::sync::Arc;
use std::time::Duration;

use endmark_context::budget::{BudgetRule, Period, Scope, Unit};
use endmark_context::count::estimate_request;
use endmark_context::{Model, Models, Prices, Rates};
use endmark_gateway::{BudgetSettings, ResumeMode, Secret, Settings};
use endmark_store::{BudgetRow, RaiseOutcome};
use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Reply, Request, Script, ScriptedModel, Upstream, chat_reply};
use tokio::sync::Barrier;

use crate::support::over_postgresql::is_over_postgresql;
use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, request, text};

/// Tokens that the scripted upstream bills for each call.
const BILLED_TOKENS_PER_CALL: u64 = 30;

fn good_answer() -> Answer {
    Answer::json(200, &chat_reply("Yes.", "stop", (20, BILLED_TOKENS_PER_CALL - 20)))
}

/// Returns the amount that the first call of a session holds: its prompt with a margin, and its limit.
fn first_hold_tokens(request: &Value) -> u64 {
    let prompt = estimate_request(&request.to_string(), "scripted").unwrap().text;
    10 + (prompt * 11).div_ceil(10) + prompt
}

fn rule(scope: Scope, unit: Unit, limit: u64) -> BudgetRule {
    let period = if scope == Scope::Session { Period::Ever } else { Period::Day };
    BudgetRule { scope, unit, period, limit }
}

fn with_rules(rules: Vec<BudgetRule>) -> impl FnOnce(&mut Settings) {
    move |settings| {
        settings.budget = BudgetSettings { rules, assume_output_tokens: 10, ..BudgetSettings::default() };
    }
}

/// Returns the number of concurrent requests. With PostgreSQL, a request that does not fit asks for other
/// instances' shares several times, and a busy machine may not answer 1,000 requests in time.
fn concurrent_request_count() -> usize {
    if is_over_postgresql() { 200 } else { 1_000 }
}

/// Returns the state of a budget when no call holds a part of it.
async fn wait_for_settled_budget(endmark: &Endmark, scope: &str) -> BudgetRow {
    wait_for_spending(endmark, scope, 0).await
}

/// Waits until at least this much of a budget is spent. A call under a lease is not in the row until the call
/// ends.
async fn wait_for_spending(endmark: &Endmark, scope: &str, spent: u64) -> BudgetRow {
    for _ in 0..200 {
        let rows = endmark.store.reader().unwrap().budgets().unwrap();
        if rows.iter().all(|row| row.held == 0)
            && let Some(row) = rows.into_iter().find(|row| row.scope == scope && row.spent >= spent)
        {
            assert_eq!((row.spent, row.held), row.recomputed, "{row:?}");
            return row;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it is never settled: {:?}", endmark.store.reader().unwrap().budgets());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_concurrent_requests_do_not_overdraw_a_session() {
    let requests = concurrent_request_count();
    // Room for 30 calls, each with its hold: the prompt and the output limit.
    let held = first_hold_tokens(&request(10));
    let limit = 30 * held;
    let slow = || Script::new().default_answer(good_answer().wait(Duration::from_millis(300)));
    let endmark = Endmark::start_with(slow(), |settings| {
        with_rules(vec![rule(Scope::Session, Unit::Tokens, limit)])(settings);
        settings.limits.requests = 2 * requests;
        settings.limits.connections = 2 * requests;
    })
    .await;
    let barrier = Arc::new(Barrier::new(requests));
    let tasks: Vec<_> = (0..requests)
        .map(|_| {
            let (barrier, prepared_request) = (Arc::clone(&barrier), endmark.ask_later(&request(10)));
            tokio::spawn(async move {
                barrier.wait().await;
                prepared_request.await
            })
        })
        .collect();
    let (mut served, mut closing, mut refused) = (0, 0, 0);
    let mut note = |reply: Reply| match reply.status {
        200 if reply.header("x-endmark-budget") == Some("closing") => closing += 1,
        200 => served += 1,
        // Other calls hold the rest of the budget but will cost less, so the client may retry.
        429 => {
            let body = reply.json();
            assert_eq!(
                (&body["error"]["type"], &body["endmark"]["limit"]),
                (&json!("endmark_budget_held"), &json!(limit))
            );
            assert_eq!(
                (reply.header("retry-after"), reply.header("x-should-retry")),
                (Some("5"), Some("true"))
            );
            assert!(reply.text().contains("other calls hold the rest"), "{}", reply.text());
        }
        402 => {
            assert_eq!(reply.json()["endmark"]["limit"], limit);
            refused += 1;
        }
        other => panic!("{other}: {}", reply.text()),
    };
    for task in tasks {
        note(task.await.unwrap());
    }
    wait_for_settled_budget(&endmark, "session").await;
    // Further calls spend the rest one by one. The first call that does not fit becomes the closing call.
    for _ in 0..=limit / BILLED_TOKENS_PER_CALL + 1 {
        note(endmark.ask(&request(10)).await);
    }
    assert_eq!(closing, 1, "one closing call, and no more");
    assert!(refused > 0, "after which all are refused");
    assert!(served >= 30, "what fits is served: {served}");
    let billed = endmark.calls() as u64 * BILLED_TOKENS_PER_CALL;
    assert_eq!(endmark.calls(), served + closing);
    assert!(billed <= limit + BILLED_TOKENS_PER_CALL, "{billed} billed of {limit}");
    let session = wait_for_settled_budget(&endmark, "session").await;
    assert_eq!(session.spent, billed, "the budget knows what was billed");
}

#[tokio::test]
async fn reported_usage_counts_and_a_refusal_describes_the_budget() {
    let endmark = Endmark::start_with(
        Script::new().default_answer(good_answer()),
        with_rules(vec![rule(Scope::All, Unit::Tokens, 300)]),
    )
    .await;
    let mut prepared_request = request(100);
    for calls in 1..=6 {
        prepared_request["user"] = json!(calls.to_string());
        let reply = endmark.ask(&prepared_request).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let left = reply.header("x-endmark-budget-remaining").unwrap();
        // The reported remainder still includes the amount held for this request.
        assert_eq!(left, format!("{} tokens of all", 300 - (calls - 1) * BILLED_TOKENS_PER_CALL));
        wait_for_spending(&endmark, "all", calls * BILLED_TOKENS_PER_CALL).await;
    }
    assert_eq!(wait_for_settled_budget(&endmark, "all").await.spent, 6 * BILLED_TOKENS_PER_CALL);
    let refused = endmark.ask(&request(200)).await;
    assert_eq!((refused.status, refused.header("x-should-retry")), (402, Some("false")));
    assert_eq!(refused.header("retry-after"), None);
    let body = refused.json();
    assert_eq!(body["error"]["type"], "endmark_budget");
    let details = &body["endmark"];
    assert_eq!(
        (&details["budget"], &details["spent"], &details["held"], &details["limit"], &details["unit"]),
        (&json!("all"), &json!(180), &json!(0), &json!(300), &json!("tokens"))
    );
    assert!(details["window"].as_str().unwrap().starts_with("20"), "{details}");
    assert!(details["resets_at"].as_u64().unwrap() > 1_700_000_000, "{details}");
    assert_eq!(endmark.calls(), 6, "nothing of it goes upstream");
    // A smaller call still fits, because a day is not closed.
    assert_eq!(endmark.ask(&request(10)).await.status, 200);
}

#[tokio::test]
async fn a_closing_call_has_no_tools_and_asks_for_a_summary() {
    for wire in Wire::ALL {
        let reply =
            wire.whole_reply(&[ReplyPart::Text("All that was found.")], wire.finish_reason(End::Turn));
        // The first call costs 4,005 tokens.
        let dear = reply.to_string().replace(":7", ":4000").replace(":12", ":4005");
        let dear: Value = serde_json::from_str(&dear).unwrap();
        let script = Script::new().then(Answer::json(200, &dear)).default_answer(Answer::json(200, &reply));
        let endmark =
            Endmark::start_with(script, with_rules(vec![rule(Scope::Session, Unit::Tokens, 9_000)])).await;
        // The next call may need more than is left, because its output limit is 8,192.
        let body = wire.request(false);
        let prepared_request = || Request::post(endmark.address, wire.path(false)).json(&body);
        let reply = prepared_request().send().await.read().await;
        assert_eq!((reply.status, reply.header("x-endmark-budget")), (200, None), "{wire:?}");
        let reply = prepared_request().send().await.read().await;
        assert_eq!((reply.status, reply.header("x-endmark-budget")), (200, Some("closing")), "{wire:?}");
        assert!(reply.text().contains("All that was found."), "{wire:?}: {}", reply.text());
        let sent = endmark.upstream.requests()[1].json();
        assert_eq!(sent.get("tools"), None, "{wire:?}");
        assert!(sent.to_string().contains("1024"), "{wire:?}: {sent}");
        let last = ["messages", "input", "contents"].iter().find_map(|name| sent[*name].as_array()?.last());
        assert!(last.unwrap().to_string().contains("Summarise your findings"), "{wire:?}: {sent}");
        let refused = prepared_request().send().await.read().await;
        assert_eq!(refused.status, 402, "{wire:?}: {}", refused.text());
        assert_eq!(refused.json()["endmark"]["budget"], "session", "{wire:?}");
        assert_eq!(endmark.calls(), 2);
        let session = wait_for_settled_budget(&endmark, "session").await;
        assert!(session.is_closed);
        // `endmark budget raise` lets the session continue.
        let raised = endmark.store.raise_budget(&session.subject, Unit::Tokens, 50_000).await;
        assert_eq!(raised, Ok(RaiseOutcome::Raised(50_000)));
        let reply = prepared_request().send().await.read().await;
        assert_eq!((reply.status, reply.header("x-endmark-budget")), (200, None), "{wire:?}");
        let rows = endmark.store.reader().unwrap().recent_calls(9).unwrap();
        assert!(rows.iter().any(|row| row.purpose == "closing"), "{wire:?}");
    }
}

/// The gateway sets the limit of the closing call, so the log must not call it the client's limit.
#[tokio::test]
async fn a_closing_call_at_its_limit_is_not_logged_as_the_clients_limit() {
    let cut = Answer::json(200, &chat_reply("All that was", "length", (20, 1_024)));
    let change = with_rules(vec![rule(Scope::Session, Unit::Tokens, 5_000)]);
    let spends = Answer::json(200, &chat_reply("A part.", "stop", (20, 4_990)));
    let endmark = Endmark::start_with(Script::new().then(spends).default_answer(cut), change).await;
    endmark.ask(&request(100)).await;
    wait_for_settled_budget(&endmark, "session").await;
    let reply = endmark.ask(&request(3_000)).await;
    assert_eq!(reply.header("x-endmark-budget"), Some("closing"));
    let log = endmark.log(1).await;
    assert_eq!(log[0].reason, endmark_store::REASON_CLOSING_LIMIT);
}

/// A failed closing call still closes the session. The client gets the error.
#[tokio::test]
async fn a_failed_closing_call_returns_its_own_error() {
    let error = json!({"error": {"message": "overloaded for now", "type": "server_error"}});
    let dear = Answer::json(200, &chat_reply("Yes.", "stop", (20, 180)));
    let script = Script::new().then(dear).default_answer(Answer::json(503, &error));
    let endmark = Endmark::start_with(script, |settings| {
        with_rules(vec![rule(Scope::Session, Unit::Tokens, 9_100)])(settings);
        settings.retry.max_retries = 2;
    })
    .await;
    assert_eq!(endmark.ask(&request(9_000)).await.status, 200);
    let reply = endmark.ask(&request(9_000)).await;
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.text().contains("overloaded for now"), "{}", reply.text());
    assert_eq!(endmark.calls(), 2);
    assert_eq!(endmark.ask(&request(9_000)).await.status, 402);
}

/// A request larger than the whole budget is refused with the spent amount, and the session stays open.
#[tokio::test]
async fn a_request_larger_than_the_budget_closes_no_session() {
    let change = with_rules(vec![rule(Scope::Session, Unit::Tokens, 5_000)]);
    let endmark = Endmark::start_with(Script::new().default_answer(good_answer()), change).await;
    for spent in [0, BILLED_TOKENS_PER_CALL] {
        let refused = endmark.ask(&request(6_000)).await;
        assert_eq!(refused.status, 402, "{}", refused.text());
        assert!(refused.text().contains("larger than the whole budget"), "{}", refused.text());
        assert_eq!(refused.json()["endmark"]["spent"], spent);
        assert_eq!(endmark.ask(&request(10)).await.status, 200);
        wait_for_settled_budget(&endmark, "session").await;
    }
}

/// A video URL has few bytes but many tokens. It must not affect the estimate for the text after it.
#[tokio::test]
async fn a_video_url_does_not_raise_the_text_estimate() {
    let gemini = Wire::Other(ModelFormat::Gemini);
    let mut reply = gemini.whole_reply(&[ReplyPart::Text("It is a harbour.")], "STOP");
    reply["usageMetadata"] =
        json!({"promptTokenCount": 20_000, "candidatesTokenCount": 50, "totalTokenCount": 20_050});
    let change = with_rules(vec![rule(Scope::Session, Unit::Tokens, 200_000)]);
    let endmark = Endmark::start_with(Script::new().default_answer(Answer::json(200, &reply)), change).await;
    let mut body = gemini.request(false);
    let video = json!({"fileData": {"mimeType": "video/mp4", "fileUri": "https://files/harbour"}});
    body["contents"][0]["parts"].as_array_mut().unwrap().push(video);
    let (first, _) = gemini.ask(&endmark, &body, false).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let found = json!({"role": "user", "parts": [{"text": "gulls ".repeat(33_000)}]});
    body["contents"].as_array_mut().unwrap().push(found);
    let (next, _) = gemini.ask(&endmark, &body, false).await;
    assert_eq!((next.status, next.header("x-endmark-budget")), (200, None), "{}", next.text());
}

#[tokio::test]
async fn a_budget_stops_recovery_and_the_cut_reply_stays() {
    let whole =
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen";
    let run = async |limit: u64| {
        let endmark = Endmark::start_with(ScriptedModel::new(whole), |settings| {
            with_rules(vec![rule(Scope::Session, Unit::Tokens, limit)])(settings);
            settings.resume.mode = ResumeMode::On;
        })
        .await;
        let reply = endmark.ask(&request(8)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        (text(&reply), endmark.calls())
    };
    let (resumed, calls) = run(100_000).await;
    assert_eq!(resumed, whole);
    assert!(calls > 1);
    let (cut, calls) = run(60).await;
    assert!(whole.starts_with(&cut) && cut.len() < whole.len(), "{cut}");
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn dollars_are_held_and_an_unpriced_model_is_refused() {
    let mut models = Models::builtin().clone();
    // One dollar per 1,000 tokens, for both input and output.
    let rates = Rates { input: Some(1_000_000_000_000), output: Some(1_000_000_000_000), ..Rates::default() };
    models.add("scripted", Model { prices: Prices::flat(rates), ..Model::default() });
    let models = Arc::new(models);
    let cents = |cents: u64| rule(Scope::Model, Unit::NanoUsd, cents * 10_000_000);
    let endmark = Endmark::start_with(Script::new().default_answer(good_answer()), |settings| {
        settings.models = Some(Arc::clone(&models));
        with_rules(vec![cents(10)])(settings);
    })
    .await;
    let reply = endmark.ask(&request(10)).await;
    assert_eq!((reply.status, reply.header("x-endmark-cost-usd")), (200, Some("0.030000000")));
    assert_eq!(wait_for_settled_budget(&endmark, "model").await.spent, 30_000_000);
    let refused = endmark.ask(&request(100)).await;
    assert_eq!(refused.status, 402);
    assert_eq!(refused.json()["endmark"]["unit"], "nano_usd");
    let mut other = request(10);
    other["model"] = json!("a-model-of-nobody");
    let refused = endmark.ask(&other).await;
    assert_eq!(refused.status, 402);
    assert!(refused.text().contains("has no price"), "{}", refused.text());

    let endmark = Endmark::start_with(Script::new().default_answer(good_answer()), |settings| {
        with_rules(vec![cents(10)])(settings);
        settings.budget.admits_unpriced = true;
    })
    .await;
    assert_eq!(endmark.ask(&other).await.status, 200);
}

#[tokio::test]
async fn failed_and_unsent_calls_cost_nothing() {
    let failing = Answer::error(400, "invalid_request_error", None, "no");
    let endmark = Endmark::start_with(
        Script::new().then(failing).default_answer(good_answer()),
        with_rules(vec![rule(Scope::Key, Unit::Tokens, 10_000)]),
    )
    .await;
    assert_eq!(endmark.ask(&request(10)).await.status, 400);
    assert_eq!(wait_for_settled_budget(&endmark, "key").await.spent, 0);
    assert_eq!(endmark.ask(&request(10)).await.status, 200);
    assert_eq!(wait_for_settled_budget(&endmark, "key").await.spent, BILLED_TOKENS_PER_CALL);
}

#[tokio::test]
async fn a_request_without_a_budget_has_no_hold_and_no_headers() {
    let endmark = Endmark::start(Script::new().default_answer(good_answer())).await;
    let reply = endmark.ask(&request(10)).await;
    assert_eq!(reply.status, 200);
    for name in ["x-endmark-budget", "x-endmark-budget-remaining", "x-endmark-cost-usd"] {
        assert_eq!(reply.header(name), None);
    }
    assert_eq!(endmark.store.reader().unwrap().budgets().unwrap(), Vec::new());
    let _: Value = reply.json();
}

#[tokio::test]
async fn a_nearly_used_budget_is_reported_once_in_every_channel() {
    let receiver = Upstream::start(Script::new().default_answer(Answer::json(200, &Value::Null))).await;
    let endmark = Endmark::start_with(Script::new().default_answer(good_answer()), |settings| {
        with_rules(vec![
            rule(Scope::Model, Unit::Tokens, 10 * BILLED_TOKENS_PER_CALL),
            rule(Scope::All, Unit::Tokens, 1_000),
        ])(settings);
        settings.budget.webhook = Some(format!("http://{}/hook", receiver.address()));
        settings.budget.webhook_secret = Some(Secret::new("shared".to_owned()));
    })
    .await;
    let headers = |reply: &Reply| reply.header("x-endmark-budget").map(str::to_owned);
    assert_eq!(headers(&endmark.ask(&request(250)).await), None, "what is held is not spent");
    for calls in 1..8 {
        assert_eq!(wait_for_settled_budget(&endmark, "model").await.spent, calls * BILLED_TOKENS_PER_CALL);
        assert_eq!(headers(&endmark.ask(&request(10)).await), None, "{calls}");
    }
    assert_eq!(wait_for_settled_budget(&endmark, "model").await.spent, 8 * BILLED_TOKENS_PER_CALL);
    assert_eq!(headers(&endmark.ask(&request(10)).await), Some("80%".to_owned()), "spent");
    assert_eq!(wait_for_settled_budget(&endmark, "model").await.spent, 9 * BILLED_TOKENS_PER_CALL);
    receiver.wait_for_requests(1).await;
    let came = receiver.requests();
    let event = came[0].json();
    let fields = ["event", "percent", "budget", "subject", "unit", "limit"].map(|name| event[name].clone());
    let expected = [
        json!("budget_warning"),
        json!(80),
        json!("model"),
        json!("scripted"),
        json!("tokens"),
        json!(10 * BILLED_TOKENS_PER_CALL),
    ];
    assert_eq!((came.len(), fields), (1, expected));
    assert!(came[0].header("x-endmark-signature").unwrap().starts_with("sha256="));
    let metrics = Request::get(endmark.address, "/endmark/metrics").send().await.read().await.text();
    assert!(metrics.contains(r#"endmark_budget_warnings_total{budget="model",percent="80"} 1"#), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_concurrent_requests_overdraw_no_shared_budget() {
    let requests = concurrent_request_count();
    let held = first_hold_tokens(&request(10));
    // Each model has room for 40 calls, the key for 60, and the day for 100.
    let rules = [(Scope::Model, 40), (Scope::Key, 60), (Scope::All, 100)];
    let limits = rules.map(|(scope, calls)| (scope, calls * held));
    let slow = Script::new().default_answer(good_answer().wait(Duration::from_millis(300)));
    let endmark = Endmark::start_with(slow, |settings| {
        with_rules(limits.map(|(scope, limit)| rule(scope, Unit::Tokens, limit)).to_vec())(settings);
        settings.limits.requests = 2 * requests;
        settings.limits.connections = 2 * requests;
    })
    .await;
    let barrier = Arc::new(Barrier::new(requests));
    let tasks: Vec<_> = (0..requests)
        .map(|number| {
            let mut body = request(10);
            body["model"] = json!(["scripted", "smaller"][number % 2]);
            let sent = Request::post(endmark.address, "/v1/chat/completions").json(&body);
            let sent = sent.header("authorization", &format!("Bearer key-{}", number % 3));
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move {
                barrier.wait().await;
                sent.send().await.read().await
            })
        })
        .collect();
    let mut served = 0;
    for task in tasks {
        match task.await.unwrap().status {
            200 => served += 1,
            other => assert!(matches!(other, 402 | 429), "{other}"),
        }
    }
    assert_eq!(endmark.calls(), served, "none is lost, and none made twice");
    assert!(served >= 40, "what fits is served: {served}");
    wait_for_settled_budget(&endmark, "all").await;
    let rows = endmark.store.reader().unwrap().budgets().unwrap();
    assert_eq!(rows.len(), 2 + 3 + 1, "{rows:?}");
    for row in rows {
        let (_, limit) = limits.iter().find(|(scope, _)| scope.name() == row.scope).unwrap();
        assert!(row.spent <= *limit, "{row:?} of {limit}");
        assert_eq!((row.spent, row.held), row.recomputed, "{row:?}");
    }
    assert_eq!(wait_for_settled_budget(&endmark, "all").await.spent, served as u64 * BILLED_TOKENS_PER_CALL);
}

over_postgresql! {
    "budgets.rs":
    a_thousand_concurrent_requests_do_not_overdraw_a_session,
    reported_usage_counts_and_a_refusal_describes_the_budget,
    a_closing_call_has_no_tools_and_asks_for_a_summary,
    a_closing_call_at_its_limit_is_not_logged_as_the_clients_limit,
    a_failed_closing_call_returns_its_own_error,
    a_request_larger_than_the_budget_closes_no_session,
    a_video_url_does_not_raise_the_text_estimate,
    a_budget_stops_recovery_and_the_cut_reply_stays,
    dollars_are_held_and_an_unpriced_model_is_refused,
    failed_and_unsent_calls_cost_nothing,
    a_request_without_a_budget_has_no_hold_and_no_headers,
    a_nearly_used_budget_is_reported_once_in_every_channel,
    a_thousand_concurrent_requests_overdraw_no_shared_budget,
    ;
    alone:
}
