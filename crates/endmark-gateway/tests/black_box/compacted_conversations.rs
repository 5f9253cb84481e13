//! Conversations that became too long and are condensed before they are sent upstream (CX-1 to CX-3).
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, Reply, Request, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

const TASK: &str = "Book order A-1 to the ledger, and never touch account 9000.";

pub(super) fn turns_field(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat | Wire::Other(ModelFormat::Messages) => "messages",
        Wire::Other(ModelFormat::Responses) => "input",
        Wire::Other(ModelFormat::Gemini) => "contents",
    }
}

fn message(wire: Wire, is_user: bool, text: &str) -> Value {
    match (wire, is_user) {
        (Wire::Other(ModelFormat::Gemini), true) => json!({"role": "user", "parts": [{"text": text}]}),
        (Wire::Other(ModelFormat::Gemini), false) => json!({"role": "model", "parts": [{"text": text}]}),
        (Wire::Other(ModelFormat::Messages), true) => {
            json!({"role": "user", "content": [{"type": "text", "text": text}]})
        }
        (_, true) => json!({"role": "user", "content": text}),
        (_, false) => json!({"role": "assistant", "content": text}),
    }
}

/// Returns a conversation with `rounds` rounds that ends with a user turn.
pub(super) fn conversation(wire: Wire, rounds: usize) -> Value {
    let mut turns = vec![message(wire, true, TASK)];
    for round in 0..rounds {
        let words = format!("Order A-{round} was looked at in detail, and its amount of {round}17 agrees. ")
            .repeat(12);
        turns.push(message(wire, false, &words));
        turns.push(message(wire, true, &format!("Go on with step {round} of the list")));
    }
    // Clients move the cache marker to the newest turn.
    if wire == Wire::Other(ModelFormat::Messages) {
        turns.last_mut().unwrap()["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    }
    let mut body = wire.request(false);
    body[turns_field(wire)] = json!(turns);
    body
}

pub(super) fn turns(wire: Wire, body: &[u8]) -> Vec<Value> {
    let body: Value = serde_json::from_slice(body).unwrap();
    body[turns_field(wire)].as_array().unwrap().clone()
}

pub(super) async fn ask(
    address: std::net::SocketAddr,
    wire: Wire,
    compact: Option<&str>,
    body: &Value,
) -> Reply {
    let mut request = Request::post(address, wire.path(false)).header("authorization", "Bearer key");
    if let Some(compact) = compact {
        request = request.header("x-endmark-compact", compact);
    }
    request.json(body).send().await.read().await
}

pub(super) async fn start_condensing(wire: Wire, script: Script) -> Endmark {
    let answer = wire.answer(&[ReplyPart::Text("I see.")], End::Turn, false);
    Endmark::start_with(script.default_answer(answer), |settings| {
        settings.compact.window.trigger_tokens = 6_000;
        settings.compact.window.budget_tokens = 8_000;
    })
    .await
}

/// Returns the error with which a provider rejects a request as too long.
fn length_refusal(wire: Wire) -> Answer {
    let body = match wire {
        Wire::Chat | Wire::Other(ModelFormat::Responses) => json!({"error": {
            "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 12345 tokens.",
            "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}),
        Wire::Other(ModelFormat::Messages) => json!({"type": "error", "error": {
            "type": "invalid_request_error", "message": "prompt is too long: 12345 tokens > 8192 maximum"}}),
        Wire::Other(ModelFormat::Gemini) => json!({"error": {"code": 400, "status": "INVALID_ARGUMENT",
            "message": "The input token count (12345) exceeds the maximum number of tokens allowed (8192)."}}),
    };
    Answer::json(400, &body)
}

#[tokio::test]
async fn a_long_history_is_condensed_to_the_task_and_newest_turns() {
    for wire in Wire::ALL {
        let endmark = start_condensing(wire, Script::new()).await;
        let long = conversation(wire, 60);
        let reply = ask(endmark.address, wire, Some("on"), &long).await;
        assert_eq!(reply.status, 200, "{wire:?}");
        let disclosed = reply.header("x-endmark-compacted").unwrap();
        assert!(disclosed.starts_with("window; before="), "{wire:?}: {disclosed}");
        let metrics = Request::get(endmark.address, "/endmark/metrics").send().await.read().await.text();
        let counted = r#"endmark_compacted_requests_total{upstream="scripted",mode="window"} 1"#;
        assert!(metrics.contains(counted), "{metrics}");
        let received = endmark.upstream.requests().remove(0).body;
        assert!(received.len() < long.to_string().len() / 2, "{wire:?}: {}", received.len());
        let (before, after) = (turns(wire, long.to_string().as_bytes()), turns(wire, &received));
        assert!(after.len() < before.len(), "{wire:?}");
        assert_eq!(after[0], before[0], "{wire:?}");
        assert_eq!(after.last(), before.last(), "{wire:?}");
        // The summary names the condensed items.
        assert!(String::from_utf8_lossy(&received).contains("A-7"), "{wire:?}");
        // The handle returns the complete request.
        let (_, handle) = disclosed.split_once("handle=").unwrap();
        let reader = endmark.store.reader().unwrap();
        let handle = endmark_store::Handle::parse(handle).unwrap();
        let kept = reader.client_output(&handle).unwrap().read(0..u64::MAX).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), long, "{wire:?}");
    }
}

#[tokio::test]
async fn the_condensed_prefix_is_stable_across_restarts() {
    for wire in Wire::ALL {
        let endmark = start_condensing(wire, Script::new()).await;
        ask(endmark.address, wire, Some("on"), &conversation(wire, 40)).await;
        ask(endmark.address, wire, Some("on"), &conversation(wire, 42)).await;
        let restarted = endmark.restart(|settings| {
            settings.compact.window.trigger_tokens = 6_000;
            settings.compact.window.budget_tokens = 8_000;
        });
        let reply = ask(restarted.address, wire, Some("on"), &conversation(wire, 43)).await;
        assert!(reply.header("x-endmark-compacted").is_some(), "{wire:?}");
        let received: Vec<Vec<u8>> =
            endmark.upstream.requests().into_iter().map(|received| received.body).collect();
        let first = turns(wire, &received[0]);
        for later in &received[1..] {
            let later = turns(wire, later);
            // The marker was on the newest turn of the first conversation, and has moved.
            let same = first.len() - 1;
            assert_eq!(later[..same], first[..same], "{wire:?}");
            assert!(later.len() > first.len(), "{wire:?}");
        }
        let shared = received[0].iter().zip(&received[1]).take_while(|(one, other)| one == other).count();
        assert!(shared * 10 > received[0].len() * 8, "{wire:?}: {shared} of {}", received[0].len());
    }
}

#[tokio::test]
async fn a_growing_conversation_is_condensed_again_and_keeps_early_facts() {
    for wire in Wire::ALL {
        let endmark = start_condensing(wire, Script::new()).await;
        for rounds in [40, 60, 80, 100, 120] {
            let long = conversation(wire, rounds);
            let reply = ask(endmark.address, wire, Some("on"), &long).await;
            assert!(reply.header("x-endmark-compacted").is_some(), "{wire:?} {rounds}");
            let received = endmark.upstream.requests().pop().unwrap().body;
            assert!(received.len() < 50_000, "{wire:?} {rounds}: {}", received.len());
            let after = turns(wire, &received);
            assert_eq!(after[0], turns(wire, long.to_string().as_bytes())[0], "{wire:?} {rounds}");
            let summaries = after.iter().filter(|turn| turn.to_string().contains("condensed"));
            assert!(summaries.count() <= 1, "{wire:?} {rounds}");
        }
    }
}

#[tokio::test]
async fn a_request_below_the_threshold_is_unchanged() {
    for wire in Wire::ALL {
        let endmark = start_condensing(wire, Script::new()).await;
        let long = conversation(wire, 60);
        ask(endmark.address, wire, None, &long).await;
        assert_eq!(endmark.upstream.requests()[0].json(), long, "{wire:?}");
        let braked = endmark.restart(|settings| settings.compact.emergency.trigger_tokens = 6_000);
        let reply = ask(braked.address, wire, None, &long).await;
        let disclosed = reply.header("x-endmark-compacted").unwrap();
        assert!(disclosed.starts_with("emergency; before="), "{wire:?}: {disclosed}");
        let reply = ask(braked.address, wire, Some("off"), &long).await;
        assert_eq!(reply.header("x-endmark-compacted"), None, "{wire:?}");
        let received = endmark.upstream.requests();
        assert!(received[1].body.len() < received[0].body.len() / 2, "{wire:?}");
        assert_eq!(received[2].body, received[0].body, "{wire:?}");
    }
}

#[tokio::test]
async fn a_smaller_model_window_lowers_the_threshold() {
    let endmark = start_condensing(Wire::Chat, Script::new()).await;
    let mut long = conversation(Wire::Chat, 60);
    // The model's window of 8,192 tokens is far below the configured trigger.
    long["model"] = json!("gpt-4");
    long["max_tokens"] = json!(1_000);
    let reply = ask(endmark.address, Wire::Chat, None, &long).await;
    assert!(reply.header("x-endmark-compacted").is_some_and(|header| header.starts_with("emergency")));
    assert!(endmark.upstream.requests()[0].body.len() < long.to_string().len() / 2);
}

#[tokio::test]
async fn a_request_refused_for_length_is_condensed_and_repeated() {
    for wire in Wire::ALL {
        let endmark = start_condensing(wire, Script::new().then(length_refusal(wire))).await;
        let long = conversation(wire, 60);
        let reply = ask(endmark.address, wire, None, &long).await;
        assert_eq!(reply.status, 200, "{wire:?}: {}", reply.text());
        let disclosed = reply.header("x-endmark-compacted").unwrap();
        assert!(disclosed.starts_with("emergency; before="), "{wire:?}: {disclosed}");
        let received = endmark.upstream.requests();
        assert_eq!(received.len(), 2, "{wire:?}");
        assert!(received[1].body.len() < received[0].body.len() * 7 / 10, "{wire:?}");
        let after = turns(wire, &received[1].body);
        assert_eq!(after[0], turns(wire, &received[0].body)[0], "{wire:?}");
        // The next request is condensed in advance, and not refused.
        let longer = conversation(wire, 61);
        ask(endmark.address, wire, None, &longer).await;
        let received = endmark.upstream.requests();
        assert_eq!(received.len(), 3, "{wire:?}");
        assert_eq!(turns(wire, &received[2].body)[..after.len() - 1], after[..after.len() - 1], "{wire:?}");
    }
}

#[tokio::test]
async fn a_second_refusal_for_length_passes_unchanged() {
    for wire in Wire::ALL {
        let endmark =
            start_condensing(wire, Script::new().then(length_refusal(wire)).then(length_refusal(wire))).await;
        let reply = ask(endmark.address, wire, None, &conversation(wire, 60)).await;
        assert_eq!(
            (reply.status, reply.body.as_slice()),
            (400, length_refusal(wire).body().as_slice()),
            "{wire:?}"
        );
        assert_eq!(endmark.calls(), 2, "{wire:?}");
        // If condensing is off or changes nothing, the request is not repeated.
        let endmark =
            start_condensing(wire, Script::new().then(length_refusal(wire)).then(length_refusal(wire))).await;
        ask(endmark.address, wire, Some("off"), &conversation(wire, 60)).await;
        ask(endmark.address, wire, None, &conversation(wire, 0)).await;
        assert_eq!(endmark.calls(), 2, "{wire:?}");
    }
}

#[tokio::test]
async fn conversations_managed_by_the_provider_are_not_condensed() {
    for (wire, name, value) in [
        (Wire::Other(ModelFormat::Responses), "previous_response_id", json!("resp_0")),
        (Wire::Other(ModelFormat::Responses), "truncation", json!("auto")),
        (Wire::Other(ModelFormat::Messages), "context_management", json!({"edits": []})),
        (Wire::Other(ModelFormat::Gemini), "cachedContent", json!("cachedContents/1")),
    ] {
        let endmark = start_condensing(wire, Script::new()).await;
        let mut long = conversation(wire, 60);
        long[name] = value;
        let reply = ask(endmark.address, wire, Some("on"), &long).await;
        assert_eq!(reply.header("x-endmark-compacted"), None, "{name}");
        assert_eq!(endmark.upstream.requests()[0].json(), long, "{name}");
    }
}

#[tokio::test]
async fn a_summary_of_another_client_is_never_used() {
    let endmark = start_condensing(Wire::Chat, Script::new()).await;
    let long = conversation(Wire::Chat, 60);
    ask(endmark.address, Wire::Chat, Some("on"), &long).await;
    let (wire, path) = (Wire::Chat, Wire::Chat.path(false));
    let other = Request::post(endmark.address, path).header("authorization", "Bearer another");
    let reply = other.json(&long).send().await.read().await;
    assert_eq!(reply.header("x-endmark-compacted"), None);
    assert_eq!(endmark.upstream.requests()[1].json(), long);
    let reply = ask(endmark.address, wire, Some("perhaps"), &long).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("use on or off"), "{}", reply.text());
}

/// Almost the whole conversation is a message that must stay.
#[tokio::test]
async fn three_attempts_without_progress_pause_condensing() {
    for wire in Wire::ALL {
        let endmark = start_condensing(wire, Script::new()).await;
        let long = |rounds: usize, task: &str| {
            let mut body = conversation(wire, rounds);
            body[turns_field(wire)][0] = message(wire, true, &task.repeat(1_000));
            body
        };
        let task = "Never touch any of the accounts 9000 to 9999. ";
        let compacted = async |body: &Value| {
            let reply = ask(endmark.address, wire, Some("on"), body).await;
            assert_eq!(reply.status, 200, "{wire:?}");
            reply.header("x-endmark-compacted").map(str::to_owned)
        };
        let stopped = Some("none; stopped=too_little_gain".to_owned());
        assert_eq!(compacted(&long(1, task)).await, None, "{wire:?}");
        assert_eq!(compacted(&long(1, task)).await, None, "{wire:?}");
        assert_eq!(compacted(&long(1, task)).await, stopped, "{wire:?}");
        assert_eq!(compacted(&long(2, task)).await, stopped, "{wire:?}");
        assert_eq!(endmark.upstream.requests().pop().unwrap().json(), long(2, task), "{wire:?}");
        // Another conversation of the same client is not affected.
        assert_eq!(
            compacted(&long(1, "Touch all of the accounts 9000 to 9999 with care. ")).await,
            None,
            "{wire:?}"
        );
        let grown = compacted(&long(60, task)).await.unwrap();
        assert!(grown.starts_with("window; before=") && !grown.contains("stopped"), "{wire:?}: {grown}");
    }
}
