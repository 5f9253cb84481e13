//! `log`: what a store holds, and what is said where there is none.

use endmark_store::{CutSettled, CutStarted, FinalStatus, Piece, Store, StoreLocation};

use crate::run::Place;

/// A store with one reply that was cut and resumed.
fn recorded() -> Place {
    let place = Place::new();
    let location = StoreLocation::sqlite(place.path().join("endmark.db"));
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
            model: "model-m".into(),
            provider: "local".into(),
            cut_kind: "limit".into(),
        };
        let cut = store.begin_cut(started).await.unwrap();
        let piece = |ordinal: u32, seam_at: Option<u64>| Piece {
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
        store.settle_cut(cut, settled).await.unwrap();
        store.close().await;
    });
    place
}

#[test]
fn without_a_store_the_next_step_is_said() {
    let run = Place::new().run(&["log"]);
    assert_eq!(run.code, 4);
    assert!(run.errors.contains("start `endmark serve`"), "{}", run.errors);
}

#[test]
fn the_table_has_one_line_a_recovery() {
    let place = recorded();
    let run = place.run(&["log"]);
    let lines: Vec<&str> = run.output.lines().collect();
    assert_eq!((run.code, lines.len()), (0, 2));
    for word in ["RESOLVED", "limit", "model-m", "45", "req_1"] {
        assert!(lines[1].contains(word), "{}", run.output);
    }
    let envelope = place.run(&["log", "--json", "--limit", "5"]).envelope();
    assert_eq!(envelope["data"]["rows"][0]["truncation_index"], 11);
    let exhausted = place.run(&["log", "--status", "exhausted", "--json"]).envelope();
    assert_eq!(exhausted["data"]["rows"].as_array().unwrap().len(), 0);
}

#[test]
fn one_recovery_is_explained_by_its_row_or_its_request() {
    let place = recorded();
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
    let unknown = place.run(&["log", "show", "req_2"]);
    assert_eq!((unknown.code, unknown.output.as_str()), (1, ""));
    assert!(unknown.errors.contains("no recovery `req_2` is recorded"), "{}", unknown.errors);
}

#[test]
fn the_help_shows_an_id_as_requests_have_it() {
    let help = Place::new().run(&["log", "--help"]).output;
    assert!(help.contains("endmark log show em_") && !help.contains("req_"), "{help}");
}
