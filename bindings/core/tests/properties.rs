//! Checks that no input makes a function panic, and that offsets in every unit are valid for their input.

use endmark_bindings::{Failure, FailureKind, Object, call};
use proptest::prelude::*;
use serde_json::{Value, json};

const FORMATS: [&str; 6] = ["json", "jsonl", "markdown", "tags", "text", "auto"];

fn is_no_bug(answer: Result<String, Failure>) {
    if let Err(failure) = answer {
        assert_ne!(failure.kind, FailureKind::Bug, "{}", failure.message);
    }
}

fn textish() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[\\[\\]{}\",:0-9a-z \n\\\\é😀]{0,60}",
        "(===AGENT_RESULT===\n|agent_id: a\n|\\[F001\\] x\n|severity: High\n|```\n|\\| a \\|\n|[a-z ]{1,9}){0,9}",
    ]
}

proptest! {
    #[test]
    fn no_function_panics(one in textish(), two in textish(), format in 0..FORMATS.len(), bytes in any::<Vec<u8>>()) {
        let format = FORMATS[format];
        let from = json!({"format": format, "from": "unknown", "offsets": "code_points"}).to_string();
        let named = json!({"format": format}).to_string();
        for raw in [one.as_bytes(), &bytes] {
            is_no_bug(call("detect", &[raw], &named));
            is_no_bug(call("complete", &[raw], &named));
            is_no_bug(call("cap", &[raw], r#"{"max_chars": 80}"#));
            is_no_bug(call("findings_check", &[raw], "{}"));
            is_no_bug(call("findings_merge", &[raw, two.as_bytes()], "{}"));
            is_no_bug(call("guard", &[raw], "{}"));
            is_no_bug(call("compact", &[raw], r#"{"for": "openai_chat"}"#));
        }
        is_no_bug(call("merge_chunks", &[one.as_bytes(), two.as_bytes()], &from));
        is_no_bug(call("stitch", &[one.as_bytes(), two.as_bytes(), one.as_bytes()], &from));
        is_no_bug(call("read", &[&bytes], &json!({"arguments": {"handle": "h", "grep": two}}).to_string()));
        is_no_bug(call("detect", &[one.as_bytes()], &two));
    }

    #[test]
    fn a_recovery_always_ends(first in textish(), answers in prop::collection::vec(textish(), 0..4)) {
        let options = json!({"format": "json", "reply": {"stop": "length"}, "offsets": "utf16"}).to_string();
        let recovery = Object::new("recovery", &[first.as_bytes()], &options).map_err(|failure| failure.message).unwrap();
        let mut step = recovery.call("next", &[], "{}").unwrap();
        let mut answers = answers.iter().cycle();
        for _ in 0..9 {
            let found: Value = serde_json::from_str(&step).unwrap();
            let answer = answers.next().cloned().unwrap_or_default();
            step = match found["step"].as_str().unwrap() {
                "resume" => recovery.call("resumed", &[answer.as_bytes()], r#"{"reply": {"stop": "length"}, "join": "prompted"}"#),
                "correct" => recovery.call("corrected", &[answer.as_bytes()], r#"{"stop": "stop"}"#),
                _ => return Ok(()),
            }
            .unwrap();
        }
        prop_assert!(false, "it did not end: {step}");
    }

    #[test]
    fn a_run_reads_any_agent_output(printed in textish(), artifact in textish(), agent in 0..5_usize) {
        let agent = ["claude", "codex", "gemini", "opencode", "plain"][agent];
        let options = json!({"criteria": {}, "agent": agent, "max_attempts": 2}).to_string();
        let run = Object::new("agent_run", &[], &options).map_err(|failure| failure.message).unwrap();
        for _ in 0..2 {
            is_no_bug(run.call("started", &[], "{}"));
            is_no_bug(run.call("output", &[printed.as_bytes()], r#"{"seconds": 1}"#));
            let ended = run.call("ended", &[artifact.as_bytes()], r#"{"exit_code": 0}"#).unwrap();
            let ended: Value = serde_json::from_str(&ended).unwrap();
            prop_assert!(ended["state"] != "running", "{ended}");
        }
    }

    #[test]
    fn offsets_index_the_text(text in textish()) {
        for (unit, units) in [("bytes", text.len()), ("code_points", text.chars().count()), ("utf16", text.encode_utf16().count())] {
            let answer = call("detect", &[text.as_bytes()], &json!({"format": "json", "offsets": unit}).to_string()).unwrap();
            let found: Value = serde_json::from_str(&answer).unwrap();
            for name in ["truncation_index", "balanced_index", "index"] {
                prop_assert!(found[name].as_u64().unwrap_or(0) <= units as u64, "{found}");
            }
        }
    }
}
