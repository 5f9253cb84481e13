//! Checks that the scripted model behaves like the servers that it simulates.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use serde_json::{Value, json};
use testkit::{Fault, PrefillBehaviour, PromptBehaviour, Reply, Request, ScriptedModel, Upstream, tokens};

const TEXT: &str = "The quick brown fox jumps over the lazy dog.";
const JSON: &str = r#"{"name":"Ada","tags":["x","y"]}"#;

async fn ask(model: ScriptedModel, body: Value) -> Reply {
    let upstream = Upstream::start(model).await;
    Request::post(upstream.address(), "/v1/chat/completions").json(&body).send().await.read().await
}

/// Returns the text and the finish reason of a reply that is not a stream.
async fn reply_text(model: ScriptedModel, body: Value) -> (String, String) {
    let reply = ask(model, body).await.json();
    let choice = &reply["choices"][0];
    let text = choice["message"]["content"].as_str().unwrap().to_owned();
    (text, choice["finish_reason"].as_str().unwrap().to_owned())
}

fn first_request() -> Value {
    json!({ "messages": [{ "role": "user", "content": "Go." }] })
}

fn with_prefill(so_far: &str) -> Value {
    let assistant = json!({ "role": "assistant", "content": so_far });
    json!({ "messages": [{ "role": "user", "content": "Go." }, assistant] })
}

fn with_prompt(so_far: &str) -> Value {
    let mut body = with_prefill(so_far);
    let prompt = json!({ "role": "user", "content": "Go on." });
    body["messages"].as_array_mut().unwrap().push(prompt);
    body
}

#[test]
fn tokens_concatenate_to_the_text() {
    for text in ["", " ", TEXT, JSON, "  twice", "länge ∎🎉\n\tx", "a b c d"] {
        assert_eq!(tokens(text).concat(), text);
    }
    assert_eq!(tokens(TEXT)[..3], ["The", " quic", "k"]);
}

#[tokio::test]
async fn a_limit_cuts_the_reply_and_is_reported() {
    let whole = tokens(TEXT).len();
    for limit in 0..=whole + 1 {
        let mut body = first_request();
        body["max_tokens"] = json!(limit);
        body["max_completion_tokens"] = json!(1000);
        let reply = ask(ScriptedModel::new(TEXT), body).await.json();
        let choice = &reply["choices"][0];
        assert_eq!(choice["message"]["content"], tokens(TEXT)[..limit.min(whole)].concat());
        assert_eq!(choice["finish_reason"], if limit < whole { "length" } else { "stop" });
        assert_eq!(reply["usage"]["completion_tokens"], limit.min(whole));
        assert_eq!(reply["usage"]["prompt_tokens"], 2);
    }
    let (text, finish) = reply_text(ScriptedModel::new(TEXT).own_limit(1), first_request()).await;
    assert_eq!((text.as_str(), finish.as_str()), ("The", "length"));
}

#[tokio::test]
async fn a_prefill_is_continued_echoed_rejected_or_ignored() {
    let so_far = &TEXT[..12];
    let rest = &TEXT[12..];
    for (prefill, text) in [
        (PrefillBehaviour::Continues, rest),
        (PrefillBehaviour::Echoes, TEXT),
        (PrefillBehaviour::Restarts, TEXT),
    ] {
        let answer = reply_text(ScriptedModel::new(TEXT).prefill(prefill), with_prefill(so_far)).await;
        assert_eq!(answer, (text.to_owned(), "stop".to_owned()), "{prefill:?}");
    }
    let refused =
        ask(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Rejects), with_prefill(so_far)).await;
    assert_eq!((refused.status, &refused.json()["error"]["type"]), (400, &json!("invalid_request_error")));
    let foreign = reply_text(ScriptedModel::new(TEXT), with_prefill("The slow")).await;
    assert_eq!(foreign.0, TEXT, "words that are not its own are not continued");
}

#[tokio::test]
async fn a_repeated_prefill_costs_no_tokens() {
    let mut body = with_prefill("The quick");
    body["max_tokens"] = json!(2);
    let reply = ask(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes), body).await.json();
    assert_eq!(reply["choices"][0]["message"]["content"], "The quick brown fox"[..14].to_owned() + "n");
    assert_eq!(reply["usage"]["completion_tokens"], 2);
}

#[tokio::test]
async fn a_request_flag_can_enable_prefill() {
    let model = || ScriptedModel::new(TEXT).prefill_flag("prefix");
    assert_eq!(reply_text(model(), with_prefill(&TEXT[..9])).await.0, TEXT);
    let mut body = with_prefill(&TEXT[..9]);
    body["messages"][1]["prefix"] = json!(true);
    assert_eq!(reply_text(model(), body).await.0, TEXT[9..]);
    let model = ScriptedModel::new(TEXT).prefill_flag("continue_final_message");
    let mut body = with_prefill(&TEXT[..9]);
    body["continue_final_message"] = json!(true);
    assert_eq!(reply_text(model, body).await.0, TEXT[9..]);
}

#[tokio::test]
async fn a_prompt_is_answered_in_the_chosen_style() {
    // The text is cut within `"Ada"`.
    let (so_far, rest) = JSON.split_at(10);
    for (style, text) in [
        (PromptBehaviour::Exact, rest.to_owned()),
        (PromptBehaviour::Repeats(2), so_far[so_far.len() - 2..].to_owned() + rest),
        (PromptBehaviour::Repeats(1000), JSON.to_owned()),
        (PromptBehaviour::FromToken, r#""Ada","tags":["x","y"]}"#.to_owned()),
        (PromptBehaviour::Fenced("json"), format!("```json\n{rest}\n```")),
        (PromptBehaviour::Preamble("Sure:"), format!("Sure:\n\n{rest}")),
        (PromptBehaviour::Restarts, JSON.to_owned()),
        (PromptBehaviour::Silent, String::new()),
    ] {
        for quoted in [so_far.to_owned(), format!("I called find with {so_far}")] {
            let answer =
                reply_text(ScriptedModel::new(JSON).with_prompt_behaviour(style), with_prompt(&quoted)).await;
            assert_eq!(answer, (text.clone(), "stop".to_owned()), "{style:?}");
        }
    }
}

#[tokio::test]
async fn a_tool_is_called_if_tools_are_offered() {
    let mut body = first_request();
    body["tools"] = json!([{ "type": "function", "function": { "name": "find" } }]);
    let reply = ask(ScriptedModel::new(JSON).calls("find"), body.clone()).await.json();
    let choice = &reply["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["tool_calls"][0]["function"], json!({ "name": "find", "arguments": JSON }));

    body["stream"] = json!(true);
    body["max_tokens"] = json!(5);
    let events = ask(ScriptedModel::new(JSON).calls("find"), body).await.json_events();
    let arguments: String = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str())
        .collect();
    assert_eq!(arguments, tokens(JSON)[..5].concat());
    assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], "length");
    assert_eq!(reply_text(ScriptedModel::new(JSON).calls("find"), first_request()).await.0, JSON);
}

#[tokio::test]
async fn a_stream_has_the_same_text_and_reports_usage_on_request() {
    let mut body = first_request();
    body["stream"] = json!(true);
    let reply = ask(ScriptedModel::new(TEXT).reasoning("Hm."), body.clone()).await;
    assert_eq!(reply.events().last().unwrap(), "[DONE]");
    let events = reply.json_events();
    let collect = |field: &str| -> String {
        events.iter().filter_map(|event| event["choices"][0]["delta"][field].as_str()).collect()
    };
    assert_eq!((collect("content").as_str(), collect("reasoning_content").as_str()), (TEXT, "Hm."));
    assert!(events.iter().all(|event| event.get("usage").is_none()));

    body["stream_options"] = json!({ "include_usage": true });
    let events = ask(ScriptedModel::new(TEXT), body).await.json_events();
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], tokens(TEXT).len());
}

#[tokio::test]
async fn reasoning_uses_up_the_limit() {
    let mut body = first_request();
    body["max_tokens"] = json!(3);
    let reply = ask(ScriptedModel::new(TEXT).reasoning("One two three four"), body).await.json();
    let choice = &reply["choices"][0];
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!(""), &json!("length")));
    assert_eq!(choice["message"]["reasoning_content"], "One two thre");
}

#[tokio::test]
async fn a_fault_affects_only_its_request() {
    let model = ScriptedModel::new(TEXT).fault(1, 5, Fault::Close);
    let upstream = Upstream::start(model).await;
    for complete in [true, false, true] {
        let request = Request::post(upstream.address(), "/v1/chat/completions").json(&first_request());
        assert_eq!(request.send().await.read().await.is_complete, complete);
    }
    let models = Request::get(upstream.address(), "/v1/models").send().await.read().await;
    assert_eq!(models.json()["data"][0]["id"], "scripted");
    let broken = Request::post(upstream.address(), "/v1/chat/completions").body("{").send().await;
    assert_eq!(broken.status, 400);
}
