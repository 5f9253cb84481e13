//! `resume`: requests the rest from a model, and joins or refuses its reply.

use testkit::{Answer, PromptBehaviour, Script, ScriptedModel, Upstream};

use crate::run::{CommandOutput, TestFolder};

const JSON_DOCUMENT: &str = "{\"from\": \"Lisbon\", \"to\": \"Oslo\", \"nights\": 4}";

fn resume(upstream: impl testkit::Respond, text: &str, more: &[&str]) -> (CommandOutput, usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let upstream = Upstream::start(upstream).await;
        let place = TestFolder::new().with_file("cut", text).with_variable("THE_KEY", "sk-secret");
        let url = upstream.base_url();
        let arguments = [&["resume", "cut", "--base-url", &url, "--model", "m"], more].concat();
        let run = tokio::task::block_in_place(|| place.run(&arguments));
        (run, upstream.requests().len())
    })
}

#[test]
fn the_missing_part_is_requested_and_joined() {
    for prompted in [PromptBehaviour::FromToken, PromptBehaviour::Fenced("json"), PromptBehaviour::Restarts] {
        let (run, calls) = resume(
            ScriptedModel::new(JSON_DOCUMENT).with_prompt_behaviour(prompted),
            &JSON_DOCUMENT[..28],
            &[],
        );
        assert_eq!(
            (run.code, run.output.as_str(), calls),
            (0, JSON_DOCUMENT, 1),
            "{prompted:?}: {}",
            run.errors
        );
    }
}

#[test]
fn the_text_of_a_cut_saved_reply_is_continued() {
    let reply = |content: &str, finish: &str| {
        let message = serde_json::json!({"role": "assistant", "content": content});
        let choice = serde_json::json!({"index": 0, "finish_reason": finish, "message": message});
        serde_json::json!({"object": "chat.completion", "choices": [choice]}).to_string()
    };
    let model = || ScriptedModel::new(JSON_DOCUMENT).with_prompt_behaviour(PromptBehaviour::FromToken);
    let (run, calls) = resume(model(), &reply(&JSON_DOCUMENT[..28], "length"), &[]);
    assert_eq!((run.code, run.output.as_str(), calls), (0, JSON_DOCUMENT, 1), "{}", run.errors);
    // A reply with a normal finish reason is whole, and a filtered one is never continued.
    let (run, calls) = resume(model(), &reply("All is well", "stop"), &[]);
    assert_eq!((run.code, run.output.as_str(), calls), (0, "All is well", 0), "{}", run.errors);
    let (run, calls) = resume(model(), &reply("All is we", "content_filter"), &[]);
    assert_eq!((run.code, run.output.as_str(), calls), (2, "", 0), "{}", run.errors);
}

#[test]
fn a_whole_text_is_not_continued() {
    let (run, calls) = resume(ScriptedModel::new(JSON_DOCUMENT), JSON_DOCUMENT, &["--format", "json"]);
    assert_eq!((run.code, run.output.as_str(), calls), (0, JSON_DOCUMENT, 0));
}

#[test]
fn a_text_that_stays_cut_is_refused_with_all_received_text() {
    let (run, calls) = resume(
        ScriptedModel::new(JSON_DOCUMENT).with_prompt_behaviour(PromptBehaviour::Silent),
        &JSON_DOCUMENT[..28],
        &["--json"],
    );
    let envelope = run.envelope();
    assert_eq!((run.code, &envelope["error"]["code"]), (1, &serde_json::json!("exhausted")));
    assert!(envelope["data"]["text"].as_str().unwrap().starts_with(&JSON_DOCUMENT[..28]), "{}", run.output);
    assert!(calls >= 1);
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let place = TestFolder::new().with_file("cut", &JSON_DOCUMENT[..28]);
    let run = place.run(&["resume", "cut", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"]);
    assert_eq!((run.code, run.output.as_str()), (3, ""));
    assert!(run.errors.contains("127.0.0.1:9") && run.errors.contains("hint:"), "{}", run.errors);
    let (run, _) = resume(
        Script::new().then(Answer::unauthorized()).then(Answer::unauthorized()),
        &JSON_DOCUMENT[..28],
        &["--json"],
    );
    assert_eq!((run.code, run.envelope()["error"]["code"].as_str()), (3, Some("upstream")));
}

#[test]
fn a_key_is_sent_and_never_shown() {
    let (run, _) = resume(
        Script::new().then(Answer::unauthorized()),
        &JSON_DOCUMENT[..28],
        &["--api-key-env", "THE_KEY", "-vv"],
    );
    assert!(!format!("{}{}", run.output, run.errors).contains("sk-secret"));
    let place = TestFolder::new().with_file("cut", &JSON_DOCUMENT[..28]).with_file("empty", " \n");
    let base = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    let run = place.run(&[&["resume", "cut", "--api-key-env", "NO_SUCH"][..], &base].concat());
    assert_eq!(run.code, 2);
    assert!(run.errors.contains("`NO_SUCH` is not set"), "{}", run.errors);
    assert_eq!(place.run(&[&["resume", "empty"][..], &base].concat()).code, 2);
    assert_eq!(place.run(&["resume", "cut", "--base-url", "nowhere", "--model", "m"]).code, 2);
}

#[test]
fn malformed_text_is_refused_without_a_request() {
    let lines = "{\"a\": 1}\n{\"a\" 2}\n{\"a\": ";
    for (text, format, place) in
        [("}\n", "json", "at byte 0"), ("[1, 2}", "json", "at byte 5"), (lines, "jsonl", "at byte 14")]
    {
        let (run, calls) = resume(ScriptedModel::new(JSON_DOCUMENT), text, &["--format", format, "--json"]);
        let envelope = run.envelope();
        assert_eq!((run.code, calls, &envelope["error"]["code"]), (2, 0, &serde_json::json!("malformed")));
        assert!(envelope["error"]["message"].as_str().unwrap().contains(place), "{}", run.output);
    }
    let place = TestFolder::new();
    let base = ["resume", "-", "--format", "json", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    let run = place.run_with_input(&base, "}\n");
    assert_eq!((run.code, run.output.as_str()), (2, ""));
    assert!(run.errors.contains("malformed as json at byte 0: "), "{}", run.errors);
}
