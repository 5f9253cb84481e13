//! Unstreamed replies: cut ones are completed, and all others are forwarded byte for byte.

use endmark_gateway::ResumeMode;
use endmark_recovery::OnAmbiguous;
use endmark_store::FinalStatus;
use serde_json::json;
use testkit::{
    Answer, ModelFormat, PrefillBehaviour, PromptBehaviour, ReceivedRequest, Script, ScriptedModel,
    chat_reply, chat_tool_reply,
};

use crate::support::wire_replies::{End, ReplyPart, Wire};
use crate::support::{Endmark, finish, request, text};

const STORY: &str = "The harbour was quiet that morning, and the gulls had not yet found the boats. \
Mira counted the nets twice, because her father had taught her to count everything twice.";

/// Returns the role of the last message in a request.
fn last_role(request: &ReceivedRequest) -> String {
    let messages = request.json()["messages"].as_array().cloned().unwrap_or_default();
    messages.last().and_then(|message| message["role"].as_str()).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_cut_text_is_continued_by_prefill_and_its_echo_is_stripped() {
    let endmark = Endmark::start_resuming(ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes)).await;
    let reply = endmark.ask(&request(7)).await;
    assert_eq!(reply.status, 200);
    assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), (STORY, "stop"));
    assert_eq!(reply.header("x-endmark-outcome"), Some("resumed"));
    assert_eq!(reply.header("x-endmark-attempts"), Some("1"));
    assert_eq!(reply.header("x-endmark-cut"), Some("limit"));
    // The limit is four times the client's, but at least 2,048.
    assert_eq!(reply.header("x-endmark-continuation-limit"), Some("2048"));
    let sent_request = endmark.upstream.requests()[1].json();
    let last = sent_request["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "assistant");
    assert!(STORY.starts_with(last["content"].as_str().unwrap()));
    assert_eq!(sent_request["max_tokens"], 2048);
}

#[tokio::test]
async fn usage_is_the_sum_over_all_calls() {
    let endmark = Endmark::start_resuming(ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes)).await;
    let reply = endmark.ask(&request(7)).await;
    let usage = reply.json()["usage"].clone();
    assert_eq!(usage["completion_tokens"], testkit::tokens(STORY).len());
    assert_eq!(
        usage["total_tokens"].as_u64().unwrap(),
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap()
    );
}

#[tokio::test]
async fn the_prefill_behaviour_of_an_upstream_is_remembered() {
    let model = ScriptedModel::new(r#"{"city": "Lyon", "rivers": ["Rhone", "Saone"]}"#)
        .prefill(PrefillBehaviour::Rejects);
    let endmark = Endmark::start_resuming(model).await;
    let mut body = request(5);
    body["response_format"] = json!({"type": "json_object"});
    for _ in 0..2 {
        let reply = endmark.ask(&body).await;
        assert_eq!(text(&reply), r#"{"city": "Lyon", "rivers": ["Rhone", "Saone"]}"#);
        assert_eq!(reply.header("x-endmark-attempts"), Some("1"), "a refused prefill is no attempt");
    }
    let last_roles: Vec<String> = endmark.upstream.requests().iter().map(last_role).collect();
    assert_eq!(last_roles, ["user", "assistant", "user", "user", "user"]);
}

/// A server that ignores the prefill repeats the same cut reply, which does not prove that it continues.
#[tokio::test]
async fn the_rest_is_requested_by_prompt_if_a_prefill_repeats_the_cut_reply() {
    let (begun, rest) = STORY.split_at(STORY.find("twice").unwrap());
    let whole = [begun.trim_end(), " ", rest].concat();
    let cut = || Answer::json(200, &chat_reply(begun, "length", (5, 5)));
    let script =
        Script::new().then(cut()).then(cut()).then(Answer::json(200, &chat_reply(&whole, "stop", (5, 5))));
    let endmark = Endmark::start_resuming(script).await;
    let reply = endmark.ask(&request(5)).await;
    assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), (STORY, "stop"));
    let last_roles: Vec<String> = endmark.upstream.requests().iter().map(last_role).collect();
    assert_eq!(last_roles, ["user", "assistant", "user"]);
    let question = endmark.upstream.requests()[2].json().to_string();
    assert!(question.contains("Your last reply was cut off"), "{question}");
}

/// Most server errors show nothing about later requests, but llama.cpp rejects a prefill with status 500.
#[tokio::test]
async fn a_server_error_is_remembered_only_if_it_names_the_prefill() {
    let document = r#"{"city": "Lyon", "rivers": ["Rhone", "Saone"]}"#;
    let (begun, rest) = document.split_at(17);
    for (message, second) in [
        ("internal error", "assistant"),
        ("Assistant response prefill is incompatible with enable_thinking.", "user"),
    ] {
        let cut = || Answer::json(200, &chat_reply(begun, "length", (5, 5)));
        let whole = || Answer::json(200, &chat_reply(rest, "stop", (5, 5)));
        let failed = Answer::error(500, "server_error", None, message);
        let script = Script::new().then(cut()).then(failed).then(whole()).then(cut()).default_answer(whole());
        let endmark = Endmark::start_resuming(script).await;
        let mut body = request(5);
        body["response_format"] = json!({"type": "json_object"});
        for _ in 0..2 {
            assert_eq!(text(&endmark.ask(&body).await), document, "{message}");
        }
        let roles: Vec<String> = endmark.upstream.requests().iter().map(last_role).collect();
        assert_eq!(roles, ["user", "assistant", "user", "user", second], "{message}");
    }
}

#[tokio::test]
async fn json_is_continued_in_a_user_turn_despite_any_wrapping() {
    let document = r#"{"title": "Harbour", "tags": ["gulls", "nets", "boats"], "count": 42}"#;
    for prompted in [
        PromptBehaviour::Exact,
        PromptBehaviour::FromToken,
        PromptBehaviour::Fenced("json"),
        PromptBehaviour::Preamble("Sure, here is the rest:"),
        PromptBehaviour::Restarts,
    ] {
        let model =
            ScriptedModel::new(document).prefill(PrefillBehaviour::Rejects).with_prompt_behaviour(prompted);
        let endmark = Endmark::start_resuming(model).await;
        let mut body = request(9);
        body["response_format"] = json!({"type": "json_object"});
        let reply = endmark.ask(&body).await;
        let value: serde_json::Value = serde_json::from_str(&text(&reply)).unwrap_or_default();
        assert_eq!(value, serde_json::from_str::<serde_json::Value>(document).unwrap(), "{prompted:?}");
        assert_eq!(reply.header("x-endmark-outcome"), Some("resumed"), "{prompted:?}");
    }
}

#[tokio::test]
async fn a_prompt_contains_the_last_token_and_the_exact_instruction() {
    let document = r#"{"title": "Harbour", "tags": ["gulls", "nets"]}"#;
    let endmark =
        Endmark::start_resuming(ScriptedModel::new(document).prefill(PrefillBehaviour::Rejects)).await;
    let mut body = request(5);
    body["response_format"] = json!({"type": "json_object"});
    let first = testkit::tokens(document)[..5].concat();
    endmark.ask(&body).await;
    let sent_request = endmark.upstream.requests()[2].json();
    let messages = sent_request["messages"].as_array().unwrap();
    let [.., shown, prompt] = messages.as_slice() else { panic!("{sent_request}") };
    assert_eq!((&shown["role"], &shown["content"]), (&json!("assistant"), &json!(first)));
    let prompt = prompt["content"].as_str().unwrap();
    assert!(prompt.contains(
        "Continue the JSON payload from the last valid token. Output ONLY the remaining JSON. \
         Do not repeat any content before the last valid token."
    ));
    assert!(!prompt.contains(&first), "never the whole first part: {prompt}");
    assert_eq!(sent_request.get("response_format"), None);
}

#[tokio::test]
async fn a_cut_tool_call_is_completed_and_never_delivered_in_part() {
    let arguments = r#"{"path": "sea.txt", "content": "The harbour was quiet that morning."}"#;
    let model = ScriptedModel::new(arguments).calls("write_file").prefill(PrefillBehaviour::Rejects);
    let endmark = Endmark::start_resuming(model).await;
    let mut body = request(9);
    body["tools"] =
        json!([{"type": "function", "function": {"name": "write_file", "parameters": {"type": "object"}}}]);
    let reply = endmark.ask(&body).await;
    let call = reply.json()["choices"][0]["message"]["tool_calls"][0].clone();
    assert_eq!(call["function"]["arguments"], arguments);
    assert_eq!(call["id"], "call_scripted");
    assert_eq!(finish(&reply), "tool_calls");
}

#[tokio::test]
async fn an_uncompletable_tool_call_has_finish_reason_length() {
    let half = chat_tool_reply(&[("call_1", "write_file", r#"{"path": "sea.t"#)], "tool_calls", (9, 9));
    let nothing = chat_reply("", "stop", (9, 1));
    let script = Script::new().then(Answer::json(200, &half)).default_answer(Answer::json(200, &nothing));
    let endmark = Endmark::start(script).await;
    let mut body = request(500);
    body["tools"] = json!([{"type": "function", "function": {"name": "write_file"}}]);
    let reply = endmark.ask(&body).await;
    assert_eq!(finish(&reply), "length");
    assert_eq!(reply.header("x-endmark-outcome"), Some("exhausted"));
    assert_eq!(endmark.log(1).await[0].final_status, FinalStatus::Exhausted);
}

#[tokio::test]
async fn auto_mode_respects_the_clients_limit_on_plain_text() {
    let endmark = Endmark::start(ScriptedModel::new(STORY)).await;
    let reply = endmark.ask(&request(1)).await;
    assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), ("The", "length"));
    assert_eq!(reply.header("x-endmark-outcome"), Some("cut"));
    assert_eq!(reply.header("x-endmark-attempts"), Some("0"));
    assert_eq!(endmark.calls(), 1);
}

#[tokio::test]
async fn auto_mode_recovers_from_a_limit_that_the_client_did_not_set() {
    let model = ScriptedModel::new(STORY).own_limit(20).prefill(PrefillBehaviour::Continues);
    let endmark = Endmark::start(model).await;
    let body = json!({"model": "scripted", "messages": [{"role": "user", "content": "Tell."}]});
    let reply = endmark.ask(&body).await;
    assert!(STORY.starts_with(&text(&reply)), "{}", text(&reply));
    assert!(text(&reply).len() > 60);
}

#[tokio::test]
async fn warn_mode_discloses_the_cut_without_recovery() {
    let endmark =
        Endmark::start_with(ScriptedModel::new(STORY), |settings| settings.resume.mode = ResumeMode::Warn)
            .await;
    let body =
        json!({"model": "scripted", "max_tokens": 3, "messages": [{"role": "user", "content": "Tell."}]});
    let reply = endmark.ask(&body).await;
    assert_eq!(finish(&reply), "length");
    assert_eq!(reply.header("x-endmark-outcome"), Some("cut"));
    assert_eq!(endmark.calls(), 1);
}

#[tokio::test]
async fn safety_stops_refusals_and_client_stops_are_never_resumed() {
    let filtered = chat_reply("I could", "content_filter", (3, 2));
    let mut refused = chat_reply("", "length", (3, 2));
    refused["choices"][0]["message"]["refusal"] = json!("I will not");
    let stopped = chat_reply("one, two", "stop", (3, 4));
    for (answer, extra) in
        [(filtered, json!({})), (refused, json!({})), (stopped, json!({"stop": ["three"]}))]
    {
        let bytes = serde_json::to_vec(&answer).unwrap();
        let endmark = Endmark::start_resuming(Script::new().default_answer(Answer::json(200, &answer))).await;
        let mut body = request(4);
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let reply = endmark.ask(&body).await;
        assert_eq!(reply.body, bytes);
        assert_eq!(endmark.calls(), 1, "{answer}");
    }
}

#[tokio::test]
async fn a_whole_reply_is_byte_identical() {
    let body = b"{ \"choices\" : [ {\"index\":0, \"message\":{\"content\":\"Yes.\", \"x\":1.50}, \"finish_reason\":\"stop\"} ], \"zeta\":1e2,\"a\":null }";
    let endmark =
        Endmark::start(Script::new().default_answer(Answer::new(200, "application/json", &body[..]))).await;
    let reply = endmark.ask(&request(500)).await;
    assert_eq!(reply.body, body);
    assert_eq!(reply.header("x-endmark-outcome"), None);
    assert_eq!(endmark.upstream.requests()[0].body, serde_json::to_vec(&request(500)).unwrap());
}

#[tokio::test]
async fn a_grammatically_whole_text_with_reason_length_is_not_resumed() {
    let endmark = Endmark::start(
        Script::new().default_answer(Answer::json(200, &chat_reply("{\"a\":1}", "length", (3, 5)))),
    )
    .await;
    let mut body = request(5);
    body["response_format"] = json!({"type": "json_object"});
    let reply = endmark.ask(&body).await;
    assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), ("{\"a\":1}", "stop"));
    assert_eq!(endmark.calls(), 1);
}

#[tokio::test]
async fn a_false_stop_is_detected_by_the_token_count() {
    let lie = chat_reply("The harbour was", "stop", (3, 4));
    let rest = chat_reply("The harbour was quiet.", "stop", (8, 3));
    let endmark = Endmark::start_resuming(
        Script::new().then(Answer::json(200, &lie)).default_answer(Answer::json(200, &rest)),
    )
    .await;
    let reply = endmark.ask(&request(4)).await;
    assert_eq!(text(&reply), "The harbour was quiet.");
}

#[tokio::test]
async fn a_suspected_false_stop_is_whole_after_an_empty_continuation() {
    let exactly = chat_reply("The harbour was quiet.", "stop", (3, 6));
    let nothing_more = chat_reply("The harbour was quiet.", "stop", (9, 1));
    let script =
        Script::new().then(Answer::json(200, &exactly)).default_answer(Answer::json(200, &nothing_more));
    let endmark = Endmark::start_resuming(script).await;
    let reply = endmark.ask(&request(6)).await;
    assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), ("The harbour was quiet.", "stop"));
    assert_eq!(reply.header("x-endmark-outcome"), Some("resumed"));
}

#[tokio::test]
async fn a_call_that_the_model_began_as_text_is_returned_as_a_call() {
    let leaked = chat_reply("<tool_call>\n{\"name\"", "length", (3, 6));
    let call = chat_tool_reply(&[("call_1", "write_file", r#"{"path": "sea.txt"}"#)], "tool_calls", (9, 9));
    let script = Script::new().then(Answer::json(200, &leaked)).default_answer(Answer::json(200, &call));
    let endmark = Endmark::start_resuming(script).await;
    let mut body = request(6);
    body["tools"] = json!([{"type": "function", "function": {"name": "write_file"}}]);
    let reply = endmark.ask(&body).await;
    let message = reply.json()["choices"][0]["message"].clone();
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"path": "sea.txt"}"#);
    assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), ("", "tool_calls"));
}

#[tokio::test]
async fn a_repeated_call_replaces_the_undelivered_cut_one() {
    let cut = chat_tool_reply(
        &[("call_1", "write_file", r#"{"path": "sea.txt", "content": "The h"#)],
        "length",
        (3, 6),
    );
    let repeated = chat_tool_reply(
        &[("call_2", "write_file", r#"{"path": "sea.txt", "content": "A harbour."}"#)],
        "tool_calls",
        (9, 9),
    );
    let script = Script::new().then(Answer::json(200, &cut)).default_answer(Answer::json(200, &repeated));
    let endmark = Endmark::start(script).await;
    let mut body = request(6);
    body["tools"] = json!([{"type": "function", "function": {"name": "write_file"}}]);
    let reply = endmark.ask(&body).await;
    let call = reply.json()["choices"][0]["message"]["tool_calls"][0].clone();
    assert_eq!(call["function"]["arguments"], r#"{"path": "sea.txt", "content": "A harbour."}"#);
    assert_eq!(finish(&reply), "tool_calls");
}

#[tokio::test]
async fn a_reply_of_only_reasoning_is_requested_again_with_more_tokens() {
    let model = ScriptedModel::new("It is 42.")
        .reasoning("Let me think about that for a good long while, twice over.");
    let endmark = Endmark::start_resuming(model).await;
    let reply = endmark.ask(&request(5)).await;
    assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), ("It is 42.", "stop"));
    assert_eq!(reply.header("x-endmark-cut"), Some("empty"));
}

#[tokio::test]
async fn a_reply_that_violates_its_schema_is_corrected() {
    let wrong = chat_reply(r#"{"age": "four"}"#, "stop", (3, 5));
    let right = chat_reply("```json\n{\"age\": 4}\n```", "stop", (3, 5));
    let endmark = Endmark::start(
        Script::new().then(Answer::json(200, &wrong)).default_answer(Answer::json(200, &right)),
    )
    .await;
    let mut body = request(500);
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "age", "schema":
        {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}}});
    let reply = endmark.ask(&body).await;
    assert_eq!(text(&reply), "{\"age\": 4}");
    assert_eq!(reply.header("x-endmark-outcome"), Some("corrected"));
    assert_eq!(reply.header("x-endmark-attempts"), Some("0"), "a correction resumes nothing");
    let sent_request = endmark.upstream.requests()[1].json();
    let prompt =
        sent_request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(prompt.contains("integer"), "{prompt}");
}

/// PC-6: a correction fixes the form only, so complete values that the schema allows are kept.
#[tokio::test]
async fn a_correction_keeps_received_values_unless_configured() {
    let received = r#"{"id": "A7", "age": "four"}"#;
    let (kept, changed) = (r#"{"id": "A7", "age": 4}"#, r#"{"id": "B9", "age": 4}"#);
    for (correction, may_change, delivered, outcome) in [
        (kept, false, kept, "corrected"),
        (changed, false, received, "whole"),
        (r#"{"age": 4}"#, false, received, "whole"),
        (changed, true, changed, "corrected"),
    ] {
        let script = Script::new()
            .then(Answer::json(200, &chat_reply(received, "stop", (3, 5))))
            .default_answer(Answer::json(200, &chat_reply(correction, "stop", (3, 5))));
        let endmark = Endmark::start_with(script, |settings| settings.correct.may_change = may_change).await;
        let mut body = request(500);
        body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "age", "schema":
            {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}}});
        let reply = endmark.ask(&body).await;
        assert_eq!(text(&reply), delivered, "{correction}");
        assert_eq!(reply.header("x-endmark-outcome"), Some(outcome), "{correction}");
    }
}

#[tokio::test]
async fn extra_tokens_of_a_request_are_bounded() {
    let model = ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes);
    let endmark = Endmark::start_with(model, |settings| {
        settings.resume.mode = ResumeMode::On;
        settings.resume.max_extra_tokens = 5;
    })
    .await;
    let reply = endmark.ask(&request(5)).await;
    assert_eq!(finish(&reply), "length");
    assert!(STORY.starts_with(&text(&reply)));
    assert_eq!(endmark.upstream.requests()[1].json()["max_tokens"], 5);
    assert_eq!(endmark.calls(), 2);
}

#[tokio::test]
async fn every_cut_reply_has_one_row() {
    let endmark = Endmark::start_resuming(ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes)).await;
    let body = request(7);
    let reply = endmark
        .chat(&body)
        .header("x-endmark-task", "T-1")
        .header("x-endmark-turn", "3")
        .send()
        .await
        .read()
        .await;
    let log = endmark.log(1).await;
    assert_eq!(log.len(), 1);
    let first = testkit::tokens(STORY)[..7].concat();
    assert_eq!((log[0].task_id.as_str(), log[0].turn_number), ("T-1", 3));
    assert_eq!(log[0].initial_chunk_length, Some(i64::try_from(first.len()).unwrap()));
    assert_eq!(log[0].truncation_index, Some(i64::try_from(first.len()).unwrap()));
    assert_eq!((log[0].final_status, log[0].resume_attempts), (FinalStatus::Resolved, 1));
    let shown = endmark.store.show(reply.header("x-endmark-request").unwrap()).unwrap().unwrap();
    assert_eq!(shown.pieces.len(), 2);
}

#[tokio::test]
async fn a_reply_with_an_ambiguous_seam_stays_cut_unless_best_guess_is_configured() {
    for (on_ambiguous, outcome) in [(OnAmbiguous::Stop, "exhausted"), (OnAmbiguous::Best, "resumed")] {
        let cut = chat_reply("[1, 2", "length", (3, 4));
        let rest = chat_reply("3]", "stop", (3, 2));
        let script = Script::new().then(Answer::json(200, &cut)).default_answer(Answer::json(200, &rest));
        let endmark = Endmark::start_with(script, |settings| {
            settings.resume.mode = ResumeMode::On;
            settings.resume.on_ambiguous = on_ambiguous;
            settings.correct.max_attempts = 0;
        })
        .await;
        let mut body = request(4);
        body["response_format"] = json!({"type": "json_object"});
        let reply = endmark.ask(&body).await;
        assert_eq!(reply.header("x-endmark-outcome"), Some(outcome), "{}", text(&reply));
        if on_ambiguous == OnAmbiguous::Stop {
            assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), ("[1, 2", "length"));
        }
    }
}

#[tokio::test]
async fn full_disclosure_is_configurable() {
    let endmark =
        Endmark::start_with(ScriptedModel::new("Yes."), |settings| settings.disclose.always = true).await;
    let reply = endmark.ask(&request(50)).await;
    assert_eq!(reply.header("x-endmark-outcome"), Some("whole"));
    assert_eq!(reply.header("x-endmark-attempts"), Some("0"));
}

#[tokio::test]
async fn texts_are_stored_only_if_configured() {
    for keep_text in [false, true] {
        let endmark =
            Endmark::start_with(ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes), |settings| {
                settings.resume.mode = ResumeMode::On;
                settings.store_policy.keep_text = keep_text;
            })
            .await;
        let reply = endmark.ask(&request(7)).await;
        endmark.log(1).await;
        let shown = endmark.store.show(reply.header("x-endmark-request").unwrap()).unwrap().unwrap();
        assert!(shown.pieces.iter().all(|piece| piece.piece.text.is_some() == keep_text));
    }
}

#[tokio::test]
async fn a_format_named_by_the_client_is_required() {
    let model = ScriptedModel::new("All boats are in. END").prefill(PrefillBehaviour::Echoes);
    let endmark = Endmark::start(model).await;
    let reply = endmark
        .chat(&request(3))
        .header("x-endmark-format", "marker")
        .header("x-endmark-marker", "END")
        .send()
        .await
        .read()
        .await;
    assert_eq!(text(&reply), "All boats are in. END");
    assert_eq!(reply.header("x-endmark-outcome"), Some("resumed"), "in auto, since a marker is missing");
}

#[tokio::test]
async fn a_configured_schema_is_found_by_its_name() {
    let wrong = chat_reply(r#"{"age": "four"}"#, "stop", (3, 5));
    let right = chat_reply(r#"{"age": 4}"#, "stop", (3, 5));
    let script = Script::new().then(Answer::json(200, &wrong)).default_answer(Answer::json(200, &right));
    let endmark = Endmark::start_with(script, |settings| {
        let schema = r#"{"type":"object","properties":{"age":{"type":"integer"}}}"#;
        settings.schemas.insert("age".to_owned(), schema.to_owned());
    })
    .await;
    let reply = endmark.chat(&request(50)).header("x-endmark-schema", "age").send().await.read().await;
    assert_eq!(text(&reply), r#"{"age": 4}"#);
}

#[tokio::test]
async fn a_rejected_limit_is_lowered_to_the_clients_own() {
    let model = ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes);
    let strict = move |received: &testkit::ReceivedRequest| {
        if received.json()["max_tokens"].as_u64() > Some(100) {
            return Answer::error(400, "invalid_request_error", None, "max_tokens is too large: at most 100");
        }
        testkit::Respond::respond(&model, received)
    };
    let endmark = Endmark::start_resuming(strict).await;
    let reply = endmark.ask(&request(30)).await;
    assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), (STORY, "stop"));
    let reply = endmark.ask(&request(30)).await;
    assert_eq!(text(&reply), STORY, "a refused limit says nothing about prefills");
}

#[tokio::test]
async fn an_unreadable_reply_still_passes() {
    let long = serde_json::to_vec(&chat_reply(&"x".repeat(5_000), "stop", (1, 1))).unwrap();
    let answers = [
        Answer::new(200, "application/json", long.clone()),
        Answer::new(200, "application/json", b"\x1f\x9d compressed".to_vec())
            .header("content-encoding", "compress"),
    ];
    for answer in answers {
        let bytes = answer.body();
        let endmark = Endmark::start_with(Script::new().default_answer(answer), |settings| {
            settings.limits.reply_bytes = 2_000;
        })
        .await;
        assert_eq!(endmark.ask(&request(50)).await.body, bytes);
    }
}

/// Log probabilities of the beginning would be mistaken for those of the whole reply.
#[tokio::test]
async fn a_resumed_reply_has_no_partial_log_probabilities() {
    let token = json!({"token": "The", "logprob": -0.1, "bytes": null, "top_logprobs": []});
    for wire in Wire::ALL {
        let mut first =
            wire.whole_reply(&[ReplyPart::Text("The harbour was")], wire.finish_reason(End::Limit));
        match wire {
            Wire::Chat => first["choices"][0]["logprobs"] = json!({"content": [token], "refusal": null}),
            Wire::Other(ModelFormat::Responses) => {
                first["output"][0]["content"][0]["logprobs"] = json!([token]);
            }
            Wire::Other(ModelFormat::Messages) => continue,
            Wire::Other(ModelFormat::Gemini) => {
                first["candidates"][0]["avgLogprobs"] = json!(-0.1);
                first["candidates"][0]["logprobsResult"] =
                    json!({"chosenCandidates": [{"token": "The", "logProbability": -0.1}]});
            }
        }
        let rest = wire.answer(&[ReplyPart::Text(" quiet.")], End::Turn, false);
        let endmark =
            Endmark::start_resuming(Script::new().then(Answer::json(200, &first)).default_answer(rest)).await;
        let (reply, heard) = wire.ask(&endmark, &wire.request(false), false).await;
        assert_eq!(heard.text, "The harbour was quiet.", "{}", reply.text());
        assert!(!reply.text().contains("-0.1"), "{}", reply.text());
    }
}
