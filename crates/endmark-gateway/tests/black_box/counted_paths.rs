//! Budgets on paths other than replies: calls are charged, free, or refused because their cost is unknown.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking, in their helpers too")]

use std::time::Duration;

use endmark_context::budget::{BudgetRule, Period, Scope, Unit};
use endmark_context::count::estimate_request;
use endmark_gateway::Settings;
use serde_json::{Value, json};
use testkit::{Answer, Reply, Request, Script};

use crate::support::{Endmark, request};

fn with_budget(limit: u64) -> impl FnOnce(&mut Settings) {
    move |settings| {
        settings.budget.assume_output_tokens = 50;
        settings.budget.rules =
            vec![BudgetRule { scope: Scope::All, unit: Unit::Tokens, period: Period::Day, limit }];
    }
}

async fn post(endmark: &Endmark, path: &str, body: &Value) -> Reply {
    Request::post(endmark.address, path).json(body).send().await.read().await
}

/// Returns the spent amount when no call holds a part of the budget.
async fn wait_for_settled_spending(endmark: &Endmark) -> u64 {
    for _ in 0..200 {
        let rows = endmark.store.reader().unwrap().budgets().unwrap();
        if let [row] = &rows[..]
            && row.held == 0
        {
            assert_eq!((row.spent, row.held), row.recomputed, "{row:?}");
            return row.spent;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it is never settled: {:?}", endmark.store.reader().unwrap().budgets());
}

#[tokio::test]
async fn other_services_are_charged_their_reported_usage() {
    let embedded = |usage: Value| Answer::json(200, &json!({"object": "list", "data": [], "usage": usage}));
    let text = |usage: Value| {
        let choices = json!([{"text": "x", "finish_reason": "stop"}]);
        Answer::json(200, &json!({"object": "text_completion", "choices": choices, "usage": usage}))
    };
    let chunk = |more: Value| format!("data: {more}\n\n");
    let stream = chunk(json!({"choices": [{"text": "x"}], "usage": null}))
        + &chunk(
            json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}),
        )
        + "data: [DONE]\n\n";
    let array = json!([{}, {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 6, "totalTokenCount": 11}}]);
    for (path, body, answer, word, tokens) in [
        (
            "/v1/embeddings",
            json!({"model": "m", "input": "a"}),
            embedded(json!({"prompt_tokens": 8, "total_tokens": 8})),
            "embeddings",
            8,
        ),
        (
            "/v1/rerank",
            json!({"model": "m", "query": "a", "documents": ["b"]}),
            embedded(json!({"total_tokens": 15})),
            "rerank",
            15,
        ),
        (
            "/v1/completions",
            json!({"model": "m", "prompt": "a", "max_tokens": 9}),
            text(json!({"prompt_tokens": 2, "completion_tokens": 9, "total_tokens": 11})),
            "completions",
            11,
        ),
        (
            "/v1/completions",
            json!({"model": "m", "prompt": "a", "stream": true, "stream_options": {"include_usage": true}}),
            Answer::new(200, "text/event-stream", stream),
            "completions",
            7,
        ),
        (
            "/v1beta/models/m:batchEmbedContents",
            json!({"requests": [{"model": "models/m", "content": {"parts": [{"text": "a"}]}}, {"content": {}}]}),
            Answer::json(200, &json!({"embeddings": [], "usageMetadata": {"promptTokenCount": 12}})),
            "embeddings",
            12,
        ),
        (
            "/v1beta/models/m:streamGenerateContent",
            json!({"contents": []}),
            Answer::json(200, &array),
            "gemini_array",
            11,
        ),
    ] {
        let endmark = Endmark::start_with(Script::new().default_answer(answer), with_budget(10_000)).await;
        let reply = post(&endmark, path, &body).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert_eq!(endmark.upstream.requests()[0].body, body.to_string().as_bytes(), "{path}");
        assert_eq!(wait_for_settled_spending(&endmark).await, tokens, "{path}");
        let calls = endmark.store.reader().unwrap().recent_calls(9).unwrap();
        let [call] = &calls[..] else { panic!("{path}: {calls:?}") };
        assert_eq!((&*call.format, &*call.model, call.http_status), (word, "m", Some(200)), "{path}");
    }
}

#[tokio::test]
async fn an_answer_without_usage_is_charged_by_estimate() {
    let vectors = Answer::json(200, &json!({"data": [{"embedding": vec![0.25; 1_000]}]}));
    let body = json!({"model": "m", "input": "some words"});
    let prompt = estimate_request(&body.to_string(), "m").unwrap().text;
    let endmark = Endmark::start_with(Script::new().default_answer(vectors), with_budget(10_000)).await;
    assert_eq!(post(&endmark, "/v1/embeddings", &body).await.status, 200);
    let charged = wait_for_settled_spending(&endmark).await;
    assert_eq!(charged, prompt, "a vector is no output");
    let failing = Script::new().default_answer(Answer::json(500, &json!({"error": {"message": "no"}})));
    let endmark = Endmark::start_with(failing, with_budget(10_000)).await;
    assert_eq!(post(&endmark, "/v1/embeddings", &body).await.status, 500);
    assert_eq!(wait_for_settled_spending(&endmark).await, 0);
}

#[tokio::test]
async fn every_prompt_and_choice_of_a_completion_is_held() {
    let endmark =
        Endmark::start_with(Script::new().default_answer(Answer::json(200, &json!({}))), with_budget(1_000))
            .await;
    for more in [
        json!({"max_tokens": 2_000}),
        json!({"max_tokens": 1, "n_predict": 2_000}),
        json!({"max_tokens": 100, "n": 10}),
        json!({"max_tokens": 100, "best_of": 10}),
        json!({"max_tokens": 100, "prompt": vec!["a"; 10]}),
        json!({"prompt": vec!["a"; 20]}),
    ] {
        let mut body = json!({"model": "m", "prompt": "a"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = post(&endmark, "/v1/completions", &body).await;
        assert_eq!(refused.status, 402, "{body}: {}", refused.text());
    }
    // If a request has two limits, the larger one counts, for replies as well.
    let mut chat = request(1);
    chat["max_completion_tokens"] = json!(2_000);
    assert_eq!(endmark.ask(&chat).await.status, 402);
    (chat["max_tokens"], chat["max_completion_tokens"]) = (json!(2_000), json!(1));
    assert_eq!(endmark.ask(&chat).await.status, 402);
    assert_eq!(endmark.calls(), 0);
}

#[tokio::test]
async fn an_exhausted_budget_refuses_only_paths_that_cost() {
    let answer = Answer::json(200, &json!({"usage": {"prompt_tokens": 100, "total_tokens": 100}}));
    let endmark = Endmark::start_with(Script::new().default_answer(answer), with_budget(100)).await;
    let body = json!({"model": "m", "input": "a"});
    assert_eq!(post(&endmark, "/v1/embeddings", &body).await.status, 200);
    assert_eq!(wait_for_settled_spending(&endmark).await, 100);
    let calls = endmark.calls();
    for path in ["/v1/embeddings", "/v1/completions", "/v2/rerank", "/v1/responses/compact"] {
        let refused = post(&endmark, path, &body).await;
        assert_eq!(refused.status, 402, "{path}: {}", refused.text());
        assert_eq!(refused.json()["error"]["type"], "endmark_budget", "{path}");
    }
    for (path, suggestion) in [
        ("/chat/completions", Some("/v1/chat/completions")),
        ("/completions", Some("/v1/completions")),
        ("/completion", None),
        ("/api/generate", None),
        ("/v1/images/generations", None),
        ("/v1/audio/speech", None),
        ("/v1/batches", None),
        ("/v1/realtime/client_secrets", None),
        ("/v1/unheard/of", None),
    ] {
        let refused = post(&endmark, path, &body).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        assert_eq!(refused.json()["error"]["type"], "endmark_path_not_counted", "{path}");
        assert!(refused.text().contains("unknown_paths"), "{path}: {}", refused.text());
        let hint = suggestion.map(|suggestion| format!("did you mean {suggestion}?"));
        assert!(hint.is_none_or(|hint| refused.text().contains(&hint)), "{path}: {}", refused.text());
    }
    assert_eq!(endmark.calls(), calls);
    for path in ["/v1/files", "/v1/moderations", "/v1/messages/count_tokens", "/v1/responses/r/cancel"] {
        assert_eq!(post(&endmark, path, &body).await.status, 200, "{path}");
    }
    let got = Request::get(endmark.address, "/v1/unheard/of").send().await.read().await;
    assert_eq!(got.status, 200, "reading makes no model work");
}

#[tokio::test]
async fn uncounted_paths_pass_only_if_the_settings_allow_it() {
    let endmark =
        Endmark::start_with(Script::new().default_answer(Answer::json(200, &json!({}))), |settings| {
            with_budget(100)(settings);
            settings.budget.passes_unknown_paths = true;
        })
        .await;
    let body = json!({"model": "m"});
    for path in ["/completion", "/v1/unheard/of", "/v1/images/generations"] {
        assert_eq!(post(&endmark, path, &body).await.status, 200, "{path}");
    }
    assert_eq!(post(&endmark, "/v1/completions;x", &body).await.status, 400, "it is judged all the same");
    let metrics = Request::get(endmark.address, "/endmark/metrics").send().await.read().await.text();
    for series in ["{kind=\"unknown\"} 2", "{kind=\"images\"} 1"] {
        assert!(metrics.contains(&format!("endmark_uncounted_requests_total{series}")), "{metrics}");
    }
}

over_postgresql! {
    "counted_paths.rs":
    other_services_are_charged_their_reported_usage,
    an_answer_without_usage_is_charged_by_estimate,
    every_prompt_and_choice_of_a_completion_is_held,
    an_exhausted_budget_refuses_only_paths_that_cost,
    uncounted_paths_pass_only_if_the_settings_allow_it,
    ;
    alone:
}
