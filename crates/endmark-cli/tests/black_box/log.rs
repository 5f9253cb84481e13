//! `log`: shows what a store contains, and what to do without a store.

use endmark_store::{
    CallSettled, CallStarted, CutSettled, CutStarted, FinalStatus, NoSecrets, Purpose, ReplyPiece, Store,
    StoreLocation, Tokens,
};
use serde_json::json;
use testkit::{Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

/// Returns a folder whose store contains one reply that was cut and resumed.
fn recorded_store() -> TestFolder {
    recorded_store_for("model-m")
}

/// Returns a folder whose store contains one reply of this model that was cut and resumed.
pub(crate) fn recorded_store_for(model: &str) -> TestFolder {
    let place = TestFolder::new();
    let location = StoreLocation::in_own_folder(place.store());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&location).unwrap();
        let started = CutStarted {
            request_id: "req_1".into(),
            slot: "choice 0".into(),
            task_id: "task-a".into(),
            turn_number: 3,
            truncation_index: Some(11),
            initial_chunk_length: 14,
            model: model.into(),
            provider: "local".into(),
            cut_kind: "limit".into(),
        };
        let cut = store.recorder(NoSecrets).begin_cut(started).await.unwrap();
        let piece = |ordinal: u32, seam_at: Option<u64>| ReplyPiece {
            ordinal,
            strategy: if ordinal == 0 { "first" } else { "prompt" }.into(),
            received_bytes: 14,
            ending: "clean".into(),
            stop: Some("limit".into()),
            judged: "cut limit".into(),
            why: "the provider stopped at the limit".into(),
            seam_at,
            seam_style: seam_at.map(|_| "overlap".into()),
            dropped_bytes: 2,
            confidence: seam_at.map(|_| 0.98),
            sha256: "ab".repeat(32),
            text: seam_at.map(|_| "with a \u{1b}[2J control".into()),
        };
        let settled = CutSettled {
            final_status: FinalStatus::Resolved,
            resume_attempts: 1,
            outcome: "resumed".into(),
            seam_style: Some("overlap".into()),
            extra_prompt_tokens: 40,
            extra_output_tokens: 5,
            reason: "joined at a settled seam".into(),
            pieces: vec![piece(0, None), piece(1, Some(14))],
        };
        store.recorder(NoSecrets).settle_cut(cut, settled).await.unwrap();
        for (request_id, purpose) in
            [("req_1", Purpose::Reply), ("req_1", Purpose::Resume), ("req_w", Purpose::Reply)]
        {
            let call = if purpose == Purpose::Resume { 2 } else { 1 };
            store.recorder(NoSecrets).open_call(call_record(model, request_id, call, purpose)).await.settle(
                CallSettled {
                    http_status: Some(200),
                    ending: "clean".into(),
                    stop: Some("limit".into()),
                    tokens: Tokens { prompt: Some(40), output: Some(5), ..Tokens::default() },
                    ..CallSettled::default()
                },
            );
        }
        store.close().await;
    });
    place
}

pub(crate) fn call_record(model: &str, request_id: &str, call: u32, purpose: Purpose) -> CallStarted {
    CallStarted {
        request_id: request_id.into(),
        call,
        purpose,
        session: "s".into(),
        credential: None,
        upstream: "local".into(),
        format: "openai_chat".into(),
        model: format!("{model}\u{1b}[2J"),
        streamed: false,
        mode: "on".into(),
        started_ms: 1_700_000_000_000,
        sent_bytes: 10,
        prompt_estimate: 3,
        charges: Vec::new(),
    }
}

#[test]
fn without_a_store_the_log_command_gives_advice() {
    let run = TestFolder::new().run(&["log"]);
    assert_eq!(run.code, 4);
    assert!(run.errors.contains("start `endmark serve`"), "{}", run.errors);
}

#[test]
fn the_table_has_one_line_per_recovery() {
    let place = recorded_store();
    let run = place.run(&["log"]);
    let lines: Vec<&str> = run.output.lines().collect();
    assert_eq!((run.code, lines.len()), (0, 2));
    for word in ["resumed", "limit", "model-m", "45", "req_1"] {
        assert!(lines[1].contains(word), "{}", run.output);
    }
    let envelope = place.run(&["log", "--json", "--limit", "5"]).envelope();
    assert_eq!(envelope["data"]["rows"][0]["truncation_index"], 11);
    let exhausted = place.run(&["log", "--status", "exhausted", "--json"]).envelope();
    assert_eq!(exhausted["data"]["rows"].as_array().unwrap().len(), 0);
}

#[test]
fn a_recovery_is_explained_by_row_or_request_id() {
    let place = recorded_store();
    for id in ["1", "req_1"] {
        let run = place.run(&["log", "show", id]);
        assert_eq!(run.code, 0);
        for words in [
            "task-a, turn 3",
            "settled up to byte 11",
            "seam at byte 14: overlap, 2 bytes dropped",
            "sha256 abab",
        ] {
            assert!(run.output.contains(words), "{words} in {}", run.output);
        }
        assert!(!run.output.contains('\u{1b}'), "what a model wrote does not command the terminal");
    }
    let envelope = place.run(&["log", "show", "req_1", "--json"]).envelope();
    assert_eq!(envelope["data"]["rows"][0]["pieces"][1]["seam"]["style"], "overlap");
    assert!(place.run(&["log", "show", "1"]).output.contains("call 2  resume, model-m"));
    let calls = envelope["data"]["calls"].as_array().unwrap();
    assert_eq!(
        (calls.len(), &calls[1]["purpose"], &calls[1]["prompt_tokens"]),
        (2, &json!("resume"), &json!(40))
    );
    let unknown = place.run(&["log", "show", "req_2"]);
    assert_eq!((unknown.code, unknown.output.as_str()), (1, ""));
    assert!(unknown.errors.contains("no recovery or request `req_2` is recorded"), "{}", unknown.errors);
}

/// Sends a request with this resume mode, whose reply stays cut. Returns the output of `log show`, and the
/// log row.
async fn record_cut_reply(mode: &str) -> (String, serde_json::Value) {
    let upstream = Upstream::start(ScriptedModel::new("one two three four five six")).await;
    let place = TestFolder::new();
    let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
    let body = json!({"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": "Count."}]});
    let request = Request::post(served.address, "/v1/chat/completions").header("x-endmark-resume", mode);
    let reply = request.json(&body).send().await.read().await;
    let header_outcome = reply.header("x-endmark-outcome").unwrap().to_owned();
    assert_eq!(upstream.requests().len(), 1);
    let id = reply.header("x-endmark-request").unwrap().to_owned();
    assert_eq!(served.stop("-TERM").0, Some(0));
    let table = place.run(&["log"]).output;
    let columns: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((header_outcome.as_str(), columns[3]), ("cut", "cut"), "the client's word for it: {table}");
    assert!(table.contains("\nNo continuation was requested for 1: the "), "the list says why: {table}");
    let shown = place.run(&["log", "show", &id]);
    let row = place.run(&["log", "show", &id, "--json"]).envelope()["data"]["rows"][0].clone();
    (shown.output, row)
}

/// PC-7: the log explains why a reply stayed cut, and what to do about it.
#[test]
fn the_log_explains_why_no_continuation_was_requested() {
    in_runtime(async {
        let (limited, row) = record_cut_reply("auto").await;
        for words in ["recovery 1  cut", "the limit that the client set itself", "`[resume] mode = \"on\"`"] {
            assert!(limited.contains(words), "{words} in {limited}");
        }
        assert!(!limited.contains("EXHAUSTED") && !limited.contains("warn"), "{limited}");
        assert!(row["not_asked"]["remedy"].as_str().unwrap().starts_with("raise the limit"), "{row}");
        let (watched, row) = record_cut_reply("warn").await;
        for words in ["the mode is `warn`", "send `x-endmark-resume: auto` or `on`"] {
            assert!(watched.contains(words), "{words} in {watched}");
        }
        assert!(row["not_asked"]["because"].as_str().unwrap().contains("warn"), "{row}");
    });
}

#[test]
fn an_uncut_request_shows_its_calls() {
    let place = recorded_store();
    let run = place.run(&["log", "show", "req_w"]);
    assert_eq!(run.code, 0, "{}", run.errors);
    assert!(
        run.output.contains("call 1  reply, model-m") && run.output.contains("at local: status 200"),
        "{}",
        run.output
    );
    assert!(!run.output.contains('\u{1b}'), "what a client wrote does not command the terminal");
    let envelope = place.run(&["log", "show", "req_w", "--json"]).envelope();
    assert_eq!(envelope["data"]["rows"], json!([]));
    assert_eq!(envelope["data"]["calls"][0]["request_id"], "req_w");
}

#[test]
fn the_help_shows_a_realistic_request_id() {
    let help = TestFolder::new().run(&["log", "--help"]).output;
    assert!(help.contains("endmark log show em_") && !help.contains("req_"), "{help}");
}

#[test]
fn a_store_in_the_home_folder_is_named_with_a_tilde() {
    let place = TestFolder::new().with_file("endmark.toml", "store = \"sqlite:~/kept.db\"\n");
    let home = place.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let place = place.with_variable("HOME", home.to_str().unwrap());
    let envelope = place.run(&["config", "--json"]).envelope();
    assert!(envelope.to_string().contains(home.join("kept.db").to_str().unwrap()), "{envelope}");
    let run = place.run(&["log", "show", "1", "--store", "sqlite:~/kept.db"]);
    assert_eq!(run.code, 4, "{}", run.errors);
    assert!(run.errors.contains(home.join("kept.db").to_str().unwrap()), "{}", run.errors);
}
