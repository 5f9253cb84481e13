//! Streamed replies are resumed in the same stream. Delivered text is never retracted, and a cut reply never
//! ends as whole.

use std::time::Duration;

use endmark_gateway::ResumeMode;
use endmark_store::FinalStatus;
use serde_json::json;
use testkit::{
    Answer, ChatFrames, Fault, PrefillBehaviour, PromptBehaviour, Script, ScriptedModel, chat_stream,
};

use crate::support::{Endmark, finish, read_stream, request, stream_request, text};

const STORY: &str = "The harbour was quiet that morning, and the gulls had not yet found the boats. \
Mira counted the nets twice, because her father had taught her to count everything twice.";

#[tokio::test]
async fn a_cut_stream_continues_in_the_same_stream() {
    let endmark = Endmark::start_resuming(ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes)).await;
    let reply = endmark.ask(&stream_request(7)).await;
    let read = read_stream(&reply);
    assert_eq!(read.text, STORY);
    assert_eq!((read.finish.as_deref(), read.is_done), (Some("stop"), true));
    let endmark_object = read.endmark.unwrap();
    assert_eq!(endmark_object["outcome"], "resumed");
    assert_eq!(endmark_object["attempts"], 1);
    assert_eq!(read.usage, None, "a client that did not ask for usage gets none");
    let ids: std::collections::BTreeSet<String> =
        reply.json_events().iter().map(|event| event["id"].to_string()).collect();
    assert_eq!(ids.len(), 1, "one stream, one id");
}

/// A model may omit a space after a hyphen, so an answer without one proves nothing. The gateway trusts it
/// only from a server that is known to continue at the cut.
#[tokio::test]
async fn a_streamed_continuation_need_not_echo_the_prefill() {
    let story = "Marie Curie was a Polish-French chemist and physicist, and taught in Paris.";
    let endmark =
        Endmark::start_resuming(ScriptedModel::new(story).prefill(PrefillBehaviour::EchoesWhole)).await;
    let at_hyphen = testkit::tokens(&story[..=story.find('-').unwrap()]).len() as u64;
    for max_tokens in [3, at_hyphen] {
        let reply = endmark.ask(&request(max_tokens)).await;
        assert_eq!((text(&reply).as_str(), finish(&reply).as_str()), (story, "stop"), "{max_tokens}");
        let read = read_stream(&endmark.ask(&stream_request(max_tokens)).await);
        assert_eq!((read.text.as_str(), read.finish.as_deref()), (story, Some("stop")), "{max_tokens}");
    }
}

/// An answer that can be joined in several ways proves nothing about the upstream.
#[tokio::test]
async fn an_ambiguous_answer_does_not_reveal_prefill_support() {
    let story = "Marie Curie was a Polish-French chemist and physicist, and taught in Paris.";
    let model = ScriptedModel::new(story).prefill(PrefillBehaviour::Continues);
    let endmark = Endmark::start_with(model, |settings| {
        settings.resume.mode = ResumeMode::On;
        settings.resume.max_attempts = 1;
    })
    .await;
    let at_hyphen = testkit::tokens(&story[..=story.find('-').unwrap()]).len() as u64;
    for (max_tokens, outcome) in [(at_hyphen, "exhausted"), (3, "resumed"), (at_hyphen, "resumed")] {
        let read = read_stream(&endmark.ask(&stream_request(max_tokens)).await);
        assert_eq!(read.endmark.unwrap()["outcome"], outcome, "{max_tokens}");
        assert!(story.starts_with(&read.text));
    }
    let sent_request = endmark.upstream.requests();
    assert!(sent_request.iter().skip(1).step_by(2).all(|sent_request| {
        let sent_request = sent_request.json();
        sent_request["messages"].as_array().unwrap().last().unwrap()["role"] == "assistant"
    }));
}

#[tokio::test]
async fn usage_in_a_stream_is_the_sum_over_all_calls() {
    let endmark = Endmark::start_resuming(ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes)).await;
    let mut body = stream_request(7);
    body["stream_options"] = json!({"include_usage": true});
    let read = read_stream(&endmark.ask(&body).await);
    assert_eq!(read.text, STORY);
    assert_eq!(read.usage.unwrap()["completion_tokens"], testkit::tokens(STORY).len());
}

#[tokio::test]
async fn missing_usage_is_not_invented() {
    let first = ChatFrames::new().text("The harbour ").cut();
    let rest = ChatFrames::new().text("was quiet.").finish("stop").done();
    let endmark =
        Endmark::start_resuming(Script::new().then(Answer::sse(first)).default_answer(Answer::sse(rest)))
            .await;
    let mut body = stream_request(500);
    body["stream_options"] = json!({"include_usage": true});
    let read = read_stream(&endmark.ask(&body).await);
    assert_eq!((read.text.as_str(), read.is_done), ("The harbour was quiet.", true));
    assert_eq!(read.usage, None);
}

#[tokio::test]
async fn a_whole_stream_is_byte_identical() {
    let frames = chat_stream(&["Yes", ", ", "it is."], "stop");
    let bytes: Vec<u8> = frames.concat().into_bytes();
    for split in [1, 7, 4_096] {
        let endmark =
            Endmark::start(Script::new().default_answer(Answer::sse(frames.clone()).split(split))).await;
        let reply = endmark.ask(&stream_request(100)).await;
        assert_eq!(reply.body, bytes);
    }
}

#[tokio::test]
async fn a_whole_stream_with_comments_and_usage_is_byte_identical() {
    let mut frames = vec![": ping\n\n".to_owned()];
    frames.extend(ChatFrames::new().text("Yes.").finish("stop").usage((3, 2)).done());
    let bytes: Vec<u8> = frames.concat().into_bytes();
    let endmark = Endmark::start(Script::new().default_answer(Answer::sse(frames))).await;
    let mut body = stream_request(100);
    body["stream_options"] = json!({"include_usage": true});
    assert_eq!(endmark.ask(&body).await.body, bytes);
}

#[tokio::test]
async fn a_dropped_stream_is_resumed() {
    for fault in [Fault::Close, Fault::Reset] {
        let model = ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes).fault(0, 1_500, fault);
        let endmark = Endmark::start(model).await;
        let read = read_stream(&endmark.ask(&stream_request(500)).await);
        assert_eq!(read.text, STORY, "{fault:?}");
        assert_eq!((read.finish.as_deref(), read.is_done), (Some("stop"), true), "{fault:?}");
        assert_eq!(read.endmark.unwrap()["cut"], "dropped");
        assert_eq!(endmark.log(1).await[0].final_status, FinalStatus::Resolved);
    }
}

#[tokio::test]
async fn a_stalled_stream_is_resumed() {
    let model = ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes).fault(0, 1_500, Fault::Stall);
    let endmark =
        Endmark::start_with(model, |settings| settings.limits.idle = Duration::from_millis(300)).await;
    let read = read_stream(&endmark.ask(&stream_request(500)).await);
    assert_eq!(read.text, STORY);
}

#[tokio::test]
async fn an_unrecoverable_broken_stream_ends_in_an_error_not_in_done() {
    let frames = ChatFrames::new().text("The harbour ").text("was").cut();
    let script = Script::new().then(Answer::sse(frames)).default_answer(Answer::error(
        401,
        "authentication_error",
        None,
        "no",
    ));
    let endmark = Endmark::start(script).await;
    let read = read_stream(&endmark.ask(&stream_request(500)).await);
    assert_eq!(read.text, "The harbour was");
    assert!(!read.is_done);
    assert_eq!(read.finish, None);
    let error = read.error.unwrap();
    assert_eq!(error["type"], "endmark_reply_cut");
    assert_eq!(endmark.log(1).await[0].final_status, FinalStatus::Exhausted);
}

#[tokio::test]
async fn a_stream_that_stays_cut_by_its_limit_ends_normally_and_is_disclosed() {
    let cut = chat_stream(&["The harbour ", "was"], "length");
    let script = Script::new().then(Answer::sse(cut)).default_answer(Answer::error(
        401,
        "authentication_error",
        None,
        "no",
    ));
    let endmark = Endmark::start_resuming(script).await;
    let read = read_stream(&endmark.ask(&stream_request(2)).await);
    assert_eq!(
        (read.text.as_str(), read.finish.as_deref(), read.is_done),
        ("The harbour was", Some("length"), true)
    );
    assert_eq!(read.endmark.unwrap()["outcome"], "exhausted");
}

#[tokio::test]
async fn auto_mode_passes_and_discloses_a_limited_text_stream() {
    let endmark = Endmark::start(ScriptedModel::new(STORY)).await;
    let read = read_stream(&endmark.ask(&stream_request(3)).await);
    assert_eq!((read.finish.as_deref(), read.is_done), (Some("length"), true));
    assert_eq!(read.endmark.unwrap()["outcome"], "cut");
    assert_eq!(endmark.calls(), 1);
}

#[tokio::test]
async fn a_cut_streamed_tool_call_is_completed_in_place() {
    let arguments = r#"{"path": "sea.txt", "content": "The harbour was quiet that morning."}"#;
    let model = ScriptedModel::new(arguments).calls("write_file").prefill(PrefillBehaviour::Rejects);
    let endmark = Endmark::start_resuming(model).await;
    let mut body = stream_request(9);
    body["tools"] =
        json!([{"type": "function", "function": {"name": "write_file", "parameters": {"type": "object"}}}]);
    let read = read_stream(&endmark.ask(&body).await);
    assert_eq!((read.tool.as_str(), read.arguments.as_str()), ("write_file", arguments));
    assert_eq!((read.finish.as_deref(), read.is_done), (Some("tool_calls"), true));
}

#[tokio::test]
async fn held_tool_calls_arrive_whole_or_not_at_all() {
    let arguments = r#"{"path": "sea.txt", "content": "The harbour was quiet that morning."}"#;
    for limit in [9, 500] {
        let model = ScriptedModel::new(arguments).calls("write_file").prefill(PrefillBehaviour::Rejects);
        let endmark = Endmark::start_with(model, |settings| {
            settings.resume.mode = ResumeMode::On;
            settings.tools.hold = true;
        })
        .await;
        let mut body = stream_request(limit);
        body["tools"] = json!([{"type": "function", "function": {"name": "write_file", "parameters": {"type": "object"}}}]);
        let read = read_stream(&endmark.ask(&body).await);
        assert_eq!((read.tool.as_str(), read.arguments.as_str()), ("write_file", arguments), "{limit}");
        assert_eq!((read.finish.as_deref(), read.is_done), (Some("tool_calls"), true));
    }
}

#[tokio::test]
async fn streamed_json_is_continued_in_a_user_turn_and_unwrapped() {
    let document = r#"{"title": "Harbour", "tags": ["gulls", "nets", "boats"], "count": 42}"#;
    for prompted in [
        PromptBehaviour::Exact,
        PromptBehaviour::Fenced("json"),
        PromptBehaviour::Preamble("Here is the rest:"),
        PromptBehaviour::Restarts,
    ] {
        let model =
            ScriptedModel::new(document).prefill(PrefillBehaviour::Rejects).with_prompt_behaviour(prompted);
        let endmark = Endmark::start_resuming(model).await;
        let mut body = stream_request(9);
        body["response_format"] = json!({"type": "json_object"});
        let read = read_stream(&endmark.ask(&body).await);
        assert_eq!(read.text, document, "{prompted:?}");
        assert_eq!((read.finish.as_deref(), read.is_done), (Some("stop"), true), "{prompted:?}");
    }
}

#[tokio::test]
async fn text_after_a_certain_seam_is_forwarded_as_it_arrives() {
    let first = r#"{"title": "The harbour", "text": "The harbour was quiet that morning, and the gulls"#;
    let second = r#" and the gulls had not yet found the boats. Mira counted the nets twice, because her father had taught her to count everything twice, and then once more.", "mood": "calm", "weather": "fog until noon, then a light wind from the west"}"#;
    let mut words = vec!["Sure, here is the rest:\n\n".to_owned()];
    words.extend(second.split_inclusive(' ').map(str::to_owned));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let frames = chat_stream(&words, "stop");
    // The continuation pauses before its last words.
    let most = frames.iter().take(frames.len() - 6).map(String::len).sum();
    let rest = Answer::sse(frames).stall_after(most);
    for prefill in [endmark_gateway::Prefill::Auto, endmark_gateway::Prefill::Never] {
        let cut = Answer::sse(chat_stream(&[first], "length"));
        let script = Script::new().then(cut).default_answer(rest.clone());
        let endmark = Endmark::start_with(script, |settings| {
            settings.resume.mode = ResumeMode::On;
            settings.limits.heartbeat = Duration::from_millis(50);
            settings.upstreams[0].prefill = prefill;
        })
        .await;
        let mut body = stream_request(30);
        body["response_format"] = json!({"type": "json_object"});
        let mut open = endmark.chat(&body).send().await;
        let came = tokio::time::timeout(Duration::from_secs(20), async {
            let mut came = String::new();
            while !came.contains("calm") {
                came.push_str(&open.next_frame().await.unwrap().expect("the stream ended"));
            }
            came
        });
        let came = came.await.expect("nothing flows while the continuation comes");
        let text: String = came
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok())
            .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
            .collect();
        let whole = format!("{first}{}", second.strip_prefix(" and the gulls").unwrap());
        assert!(whole.starts_with(&text), "{text}");
        open.reset();
    }
}

#[tokio::test]
async fn a_stream_cut_before_its_first_character_is_requested_again() {
    let nothing = ChatFrames::new().finish("length").done();
    let call = ChatFrames::new()
        .tool_call(0, "call_1", "write_file")
        .arguments(0, "{\"path\": ")
        .arguments(0, "\"sea.txt\"}")
        .finish("tool_calls")
        .done();
    let endmark =
        Endmark::start_resuming(Script::new().then(Answer::sse(nothing)).default_answer(Answer::sse(call)))
            .await;
    let mut body = stream_request(3);
    body["tools"] = json!([{"type": "function", "function": {"name": "write_file"}}]);
    let read = read_stream(&endmark.ask(&body).await);
    assert_eq!((read.tool.as_str(), read.arguments.as_str()), ("write_file", "{\"path\": \"sea.txt\"}"));
    assert_eq!((read.finish.as_deref(), read.is_done), (Some("tool_calls"), true));
}

#[tokio::test]
async fn a_stream_lost_before_its_first_character_is_resent_unchanged() {
    for nothing in [ChatFrames::new().cut(), vec![": ping\n\n".to_owned()], Vec::new()] {
        let whole = Answer::sse(chat_stream(&["It is", " quiet."], "stop"));
        let endmark = Endmark::start(Script::new().then(Answer::sse(nothing)).default_answer(whole)).await;
        let reply = endmark.ask(&stream_request(50)).await;
        let read = read_stream(&reply);
        assert_eq!((read.text.as_str(), read.finish.as_deref()), ("It is quiet.", Some("stop")));
        // A stream that was lost after its first event is a cut reply. If it was lost earlier, the request is
        // retried.
        match read.endmark {
            Some(told) => assert_eq!((&told["outcome"], &told["attempts"]), (&json!("resumed"), &json!(1))),
            None => assert_eq!(reply.header("x-endmark-retries"), Some("1")),
        }
        let sent = endmark.upstream.requests();
        assert_eq!(sent[0].body, sent[1].body);
    }
}

#[tokio::test]
async fn each_choice_is_judged_and_resumed_separately() {
    let frames = ChatFrames::new()
        .choice(0)
        .text("A whole one.")
        .choice(1)
        .text("The harbour ")
        .text("was")
        .choice(0)
        .finish("stop")
        .choice(1)
        .finish("length")
        .done();
    let rest = chat_stream(&["The harbour was", " quiet."], "stop");
    let endmark =
        Endmark::start_resuming(Script::new().then(Answer::sse(frames)).default_answer(Answer::sse(rest)))
            .await;
    let mut body = stream_request(4);
    body["n"] = json!(2);
    let reply = endmark.ask(&body).await;
    let text = |index: u64| -> String {
        reply
            .json_events()
            .iter()
            .flat_map(|event| event["choices"].as_array().cloned().unwrap_or_default())
            .filter(|choice| choice["index"] == index)
            .map(|choice| choice["delta"]["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!((text(0).as_str(), text(1).as_str()), ("A whole one.", "The harbour was quiet."));
    let sent_request = endmark.upstream.requests()[1].json();
    assert_eq!(sent_request.get("n"), None);
}

#[tokio::test]
async fn a_waiting_client_gets_heartbeats() {
    let cut = chat_stream(&["The harbour ", "was"], "length");
    let rest =
        Answer::sse(chat_stream(&["The harbour was", " quiet."], "stop")).wait(Duration::from_millis(700));
    let endmark =
        Endmark::start_with(Script::new().then(Answer::sse(cut)).default_answer(rest), |settings| {
            settings.resume.mode = ResumeMode::On;
            settings.limits.heartbeat = Duration::from_millis(100);
        })
        .await;
    let reply = endmark.ask(&stream_request(2)).await;
    assert_eq!(read_stream(&reply).text, "The harbour was quiet.");
    assert!(reply.text().contains("\n: "), "{}", reply.text());
}

#[tokio::test]
async fn a_client_that_leaves_during_a_resume_is_logged() {
    let cut = chat_stream(&["The harbour ", "was"], "length");
    let rest = Answer::sse(chat_stream(&[" quiet."], "stop")).wait(Duration::from_secs(20));
    let endmark =
        Endmark::start_with(Script::new().then(Answer::sse(cut)).default_answer(rest), |settings| {
            settings.resume.mode = ResumeMode::On;
            settings.limits.heartbeat = Duration::from_millis(50);
        })
        .await;
    let mut open = endmark.chat(&stream_request(2)).send().await;
    open.next_frame().await.unwrap();
    endmark.upstream.wait_for_requests(2).await;
    open.reset();
    let row = endmark.log(1).await.remove(0);
    assert_eq!(row.final_status, FinalStatus::Exhausted);
}

#[tokio::test]
async fn recovery_waits_for_a_restarting_upstream() {
    let model = || ScriptedModel::new(STORY).prefill(PrefillBehaviour::Echoes);
    let mut endmark = Endmark::start(model().fault(0, 1_500, Fault::Stall)).await;
    let address = endmark.upstream.address();
    let open = endmark.chat(&stream_request(500)).send().await;
    endmark.upstream.wait_for_requests(1).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let dead = std::mem::replace(&mut endmark.upstream, testkit::Upstream::start(Script::new()).await);
    dead.stop().await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let _back = testkit::Upstream::start_at(address, model()).await;
    assert_eq!(read_stream(&open.read().await).text, STORY);
}

#[tokio::test]
async fn an_unreadable_event_passes_and_does_not_end_the_stream() {
    let frames = ChatFrames::new().text("a").raw("data: ping\n\n").text("b").finish("stop").done();
    let bytes = frames.concat().into_bytes();
    let endmark = Endmark::start(Script::new().default_answer(Answer::sse(frames))).await;
    assert_eq!(endmark.ask(&stream_request(50)).await.body, bytes);
}

#[tokio::test]
async fn an_upstream_error_passes_with_the_recovery_disclosure() {
    let mut frames = ChatFrames::new().text("The harbour ").cut();
    frames.push(testkit::error_event("the model is overloaded"));
    let script = Script::new().then(Answer::sse(frames)).default_answer(Answer::error(
        401,
        "authentication_error",
        None,
        "no",
    ));
    let endmark = Endmark::start(script).await;
    let read = read_stream(&endmark.ask(&stream_request(50)).await);
    assert!(!read.is_done);
    assert!(read.error.unwrap()["message"].as_str().unwrap().contains("overloaded"));
    assert_eq!(read.endmark.unwrap()["outcome"], "exhausted");
}

#[tokio::test]
async fn a_cut_refusal_is_never_resumed() {
    let frames = ChatFrames::new().refusal("I will ").refusal("not").cut();
    let endmark = Endmark::start_resuming(Script::new().default_answer(Answer::sse(frames))).await;
    let read = read_stream(&endmark.ask(&stream_request(50)).await);
    assert!(!read.is_done);
    assert_eq!(endmark.calls(), 1);
}

#[tokio::test]
async fn held_calls_of_an_unknown_kind_are_delivered() {
    let custom = json!({"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}]});
    let frames = ChatFrames::new().delta(&custom).cut();
    let endmark = Endmark::start_with(Script::new().default_answer(Answer::sse(frames)), |settings| {
        settings.tools.hold = true;
    })
    .await;
    let reply = endmark.ask(&stream_request(50)).await;
    assert!(reply.text().contains("shell"), "{}", reply.text());
    assert!(read_stream(&reply).error.is_some());
}

/// The last event may contain text and further fields. The fields are sent again after the continuation.
#[tokio::test]
async fn extra_fields_of_a_last_event_with_text_are_kept() {
    let last = r#"{"id":"c","x_root": {"a":1.0},"choices":[{"index":0,"x_choice":true,"logprobs":{"content":[]},"delta":{"content":" was","x_delta":1e2},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}"#;
    let first = ChatFrames::new().text("The harbour").raw(&format!("data: {last}\n\n")).done();
    let rest = Answer::sse(ChatFrames::new().text(" quiet.").finish("stop").usage((9, 2)).done());
    let endmark = Endmark::start_resuming(Script::new().then(Answer::sse(first)).default_answer(rest)).await;
    let mut body = stream_request(7);
    body["stream_options"] = json!({"include_usage": true});
    let reply = endmark.ask(&body).await;
    let read = read_stream(&reply);
    assert_eq!((read.text.as_str(), read.finish.as_deref()), ("The harbour was quiet.", Some("stop")));
    let counted: Vec<u64> =
        reply.json_events().iter().filter_map(|event| event["usage"]["completion_tokens"].as_u64()).collect();
    assert_eq!(counted, [9], "the sum, and once: {}", reply.text());
    assert_eq!((read.is_done, &read.endmark.unwrap()["outcome"]), (true, &json!("resumed")));
    let end = reply.json_events().into_iter().find(|event| event["choices"][0]["finish_reason"].is_string());
    let end = end.unwrap();
    let choice = json!({"index": 0, "x_choice": true, "delta": {"x_delta": 100.0}, "finish_reason": "stop"});
    assert_eq!((&end["x_root"], &end["choices"]), (&json!({"a": 1.0}), &json!([choice])), "{}", reply.text());
}
