//! `hook compact`: the important values of a conversation are kept when the agent compacts it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{parse_answer, run_hook};
use crate::run::TestFolder;

/// Returns a transcript of Claude Code 2.1.331, reduced to the relevant fields.
fn transcript(turns: usize) -> String {
    let mut text = String::new();
    let mut add = |line: Value| writeln!(text, "{line}").unwrap();
    add(json!({"type": "queue-operation"}));
    add(
        json!({"type": "user", "isSidechain": false, "message": {"role": "user", "content": "Never touch the table ZX-1. Sort the orders."}}),
    );
    add(json!({"type": "attachment", "attachment": {"type": "date", "date": "2026-11-25"}}));
    for turn in 0..turns {
        let call = json!({"type": "tool_use", "id": format!("t{turn}"), "name": "Bash", "input": {"command": format!("sort src/part_{turn}.rs")}});
        add(
            json!({"type": "assistant", "isSidechain": false, "message": {"id": "m", "role": "assistant", "content": [call]}}),
        );
        let result = json!({"type": "tool_result", "tool_use_id": format!("t{turn}"), "content": format!("order ord_{turn}f3a done")});
        add(json!({"type": "user", "isSidechain": false, "message": {"role": "user", "content": [result]}}));
    }
    add(
        json!({"type": "user", "isSidechain": true, "message": {"role": "user", "content": "Look at src/side_chain.rs"}}),
    );
    add(
        json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": "We saw src/summary_only.rs"}}),
    );
    text.push_str("{\"type\": \"user\", \"mess");
    text
}

#[test]
fn the_agent_gets_the_ledger_after_its_compaction() {
    let place = TestFolder::new().with_file("transcript.jsonl", transcript(3));
    let event = |name: &str, session: &str| {
        json!({
            "session_id": session, "hook_event_name": name, "source": "compact", "trigger": "auto",
            "transcript_path": place.path().join("transcript.jsonl"),
        })
    };
    let arguments = ["compact", "--agent", "claude"];
    assert_eq!(run_hook(&place, &arguments, &event("SessionStart", "s")).output, "");
    assert_eq!(run_hook(&place, &arguments, &event("PreCompact", "s")).output, "");
    let back = parse_answer(&run_hook(&place, &arguments, &event("SessionStart", "s")));
    assert_eq!(back["hookSpecificOutput"]["hookEventName"], "SessionStart");
    let ledger = back["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    for kept in ["src/part_0.rs", "src/part_2.rs", "ord_1f3a", "ZX-1"] {
        assert!(ledger.contains(kept), "{kept} is not in:\n{ledger}");
    }
    for foreign in ["side_chain", "summary_only"] {
        assert!(!ledger.contains(foreign), "{foreign} is in:\n{ledger}");
    }
    assert_eq!(run_hook(&place, &arguments, &event("SessionStart", "another")).output, "");
}

#[test]
fn the_ledger_of_a_long_conversation_fits_the_agents_limit() {
    let place = TestFolder::new().with_file("transcript.jsonl", transcript(2_000));
    let event = |name: &str| json!({"session_id": "s", "hook_event_name": name, "transcript_path": place.path().join("transcript.jsonl")});
    run_hook(&place, &["compact", "--agent", "claude"], &event("PreCompact"));
    let back = parse_answer(&run_hook(&place, &["compact", "--agent", "claude"], &event("SessionStart")));
    let ledger = back["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(ledger.chars().count() <= 9_500 && ledger.chars().count() > 2_000, "{}", ledger.len());
}
