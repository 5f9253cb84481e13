//! Hooks of agents: recorded events, and the answers of the command.
//!
//! The files in `hook/` are what Claude Code 2.1.331, Codex 0.169.0 and Gemini CLI 0.61.0 sent to a hook
//! after a command that printed 1.7 MB, and when they stopped. The agents ran headless against a scripted
//! model. Outputs and folders are inserted here.

mod compaction;
mod doctor;
mod findings;
mod install;
mod stopping;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::run::{CommandOutput, TestFolder};

const AGENTS: [&str; 3] = ["claude", "codex", "gemini"];
const ERROR_LINE: &str = "ERROR row 9871: checksum mismatch in ledger.csv";

fn output_rows(count: usize) -> String {
    let row = |row: usize| format!("row {row}: processed without incident, next {}", row * 7919 % 1_000_003);
    let line = |number| if number == count / 2 { ERROR_LINE.to_owned() } else { row(number) };
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a recorded event of an agent: number 0 is a tool result, number 1 is a stop.
fn recorded_event(place: &TestFolder, agent: &str, number: usize) -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/black_box/hook").join(format!("{agent}.json"));
    let folder = place.path().to_str().unwrap();
    let text = fs::read_to_string(path).unwrap().replace("/home/user/project", folder);
    let mut event: Value =
        serde_json::from_str(&text.replace("SESSION", &format!("{folder}/session"))).unwrap();
    event[number].take()
}

/// Returns the event of a tool result with this output.
fn printed_event(place: &TestFolder, agent: &str, output: &str) -> Value {
    let mut event = recorded_event(place, agent, 0);
    let response = &mut event["tool_response"];
    match agent {
        "claude" => {
            // The agent sends the beginning of a long output, and a file with all of it.
            response["stdout"] = json!(output.chars().take(30_000).collect::<String>());
            let file = place.path().join("session/tool-results/bd09wnyp7.txt");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, output).unwrap();
        }
        "codex" => *response = json!(output),
        _ => {
            response["llmContent"] =
                json!(response["llmContent"].as_str().unwrap().replace("OUTPUT", output));
        }
    }
    event
}

fn run_hook(place: &TestFolder, arguments: &[&str], event: &Value) -> CommandOutput {
    let run = place.run_with_input(&[&["hook"], arguments].concat(), event.to_string());
    assert_eq!(run.code, 0, "{}", run.errors);
    run
}

fn parse_answer(run: &CommandOutput) -> Value {
    serde_json::from_str(&run.output).unwrap()
}

/// Returns the text that the model reads, as observed with each agent.
fn model_text(agent: &str, answer: &Value) -> String {
    if agent != "claude" {
        assert_eq!(answer["decision"], if agent == "codex" { "block" } else { "deny" });
        return answer["reason"].as_str().unwrap().to_owned();
    }
    let output = &answer["hookSpecificOutput"];
    assert_eq!(output["hookEventName"], "PostToolUse");
    let result = &output["updatedToolOutput"];
    assert_eq!(
        (&result["stderr"], &result["interrupted"], &result["isImage"]),
        (&json!(""), &json!(false), &json!(false))
    );
    assert!(result.get("persistedOutputPath").is_none(), "{result}");
    result["stdout"].as_str().unwrap().to_owned()
}

#[test]
fn each_agent_gets_a_small_result_with_the_error_and_the_handle() {
    let output = output_rows(20_000);
    for agent in AGENTS {
        let place = TestFolder::new();
        let event = printed_event(&place, agent, &output);
        let run = run_hook(&place, &["tool", "--agent", agent, "--max-chars", "8000"], &event);
        let text = model_text(agent, &parse_answer(&run));
        assert!(text.chars().count() <= 8_000, "{agent}: {}", text.len());
        assert!(text.contains(ERROR_LINE), "{agent}: {text}");
        // The marker names a command that returns the full output.
        let handle = text.split("endmark read ").nth(1).unwrap().split_whitespace().next().unwrap();
        let read = place.run(&["read", handle.trim_end_matches(']'), "--grep", "row 15000:"]);
        assert!(read.output.contains("row 15000: processed"), "{agent}: {}{}", read.output, read.errors);
    }
}

#[test]
fn a_result_within_the_limit_is_unchanged() {
    for agent in AGENTS {
        let place = TestFolder::new();
        let mut event = printed_event(&place, agent, "all is well");
        if agent == "claude" {
            event["tool_response"].as_object_mut().unwrap().remove("persistedOutputPath");
        }
        let run = run_hook(&place, &["tool", "--agent", agent], &event);
        assert_eq!((run.output.as_str(), run.errors.as_str()), ("", ""), "{agent}");
    }
}

#[test]
fn the_default_limit_stays_below_the_agents_own_limit() {
    for (agent, limit) in [("claude", 30_000), ("codex", 10_000), ("gemini", 40_000)] {
        let place = TestFolder::new();
        let event = printed_event(&place, agent, &output_rows(20_000));
        let text = model_text(agent, &parse_answer(&run_hook(&place, &["tool", "--agent", agent], &event)));
        assert!(text.chars().count() <= limit && text.chars().count() > limit / 2, "{agent}: {}", text.len());
    }
    // The configuration may set a lower limit.
    let place = TestFolder::new().with_file("endmark.toml", "[cap]\nmax_chars = 2000\n");
    let event = printed_event(&place, "gemini", &output_rows(20_000));
    let text = model_text("gemini", &parse_answer(&run_hook(&place, &["tool", "--agent", "gemini"], &event)));
    assert!(text.chars().count() <= 2_000);
}

#[test]
fn results_keep_their_shape_and_uncappable_ones_are_unchanged() {
    let place = TestFolder::new();
    let event = |tool: &str, response: Value| json!({"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": tool, "tool_response": response});
    let arguments = ["tool", "--agent", "claude", "--max-chars", "2000"];
    let found =
        json!({"mode": "content", "numFiles": 2, "filenames": ["a.rs", "b.rs"], "content": output_rows(500)});
    let capped = parse_answer(&run_hook(&place, &arguments, &event("Grep", found.clone())));
    let mut result = capped["hookSpecificOutput"]["updatedToolOutput"].clone();
    assert!(result["content"].as_str().unwrap().contains(ERROR_LINE));
    result["content"] = found["content"].clone();
    assert_eq!(result, found);
    for (tool, response) in [
        // The agent adds line numbers later.
        ("Read", json!({"type": "text", "file": {"content": output_rows(500), "startLine": 1}})),
        ("mcp__shots__take", json!([{"type": "image", "source": {"data": "A".repeat(50_000)}}])),
        ("Bash", json!({"stdout": "A".repeat(50_000), "stderr": "", "interrupted": false, "isImage": true})),
    ] {
        assert_eq!(run_hook(&place, &arguments, &event(tool, response)).output, "", "{tool}");
    }
}

#[test]
fn files_outside_the_session_are_not_read() {
    let place = TestFolder::new().with_file("secret.txt", output_rows(20_000));
    let secret = place.path().join("secret.txt");
    let mut event = printed_event(&place, "claude", "small");
    for path in
        [secret.to_str().unwrap().to_owned(), format!("{}/session/../secret.txt", place.path().display())]
    {
        event["tool_response"]["persistedOutputPath"] = json!(path);
        assert_eq!(
            run_hook(&place, &["tool", "--agent", "claude", "--max-chars", "2000"], &event).output,
            ""
        );
    }
}

#[test]
fn a_hook_error_never_blocks_an_agent() {
    let place = TestFolder::new().with_file("endmark.toml", "no such key = 3\n");
    for (arguments, input) in [
        (&["hook", "tool", "--agent", "claude"][..], "{\"tool_response\": \"x\"}"),
        (&["hook", "tool", "--agent", "claude", "--config", "/dev/null"], "not an event"),
        (&["hook", "tool", "--agent", "claude", "--json", "--config", "/dev/null"], "not an event"),
        (&["hook", "stop", "--agent", "codex", "--artifact", "a.md"], "{}"),
        (
            &[
                "hook",
                "stop",
                "--agent",
                "codex",
                "--artifact",
                "a.md",
                "--template",
                "nowhere.md",
                "--config",
                "/dev/null",
            ],
            "{\"session_id\": \"s\"}",
        ),
        (&["hook", "compact", "--agent", "gemini"], "{}"),
        // A newer version may support these options. The agent would take exit code 2 as a verdict.
        (&["hook", "tool", "--agent", "claude", "--no-such-option"], "{}"),
        (&["hook", "newer", "--agent", "claude"], "{}"),
    ] {
        let run = place.run_with_input(arguments, input);
        assert_eq!((run.code, run.output.as_str()), (0, ""), "{arguments:?}");
        assert!(!run.errors.is_empty(), "{arguments:?}");
    }
}

#[test]
fn an_unusable_store_still_gives_a_capped_result() {
    let place =
        TestFolder::new().with_file("file", "").with_variable("ENDMARK_STORE", "sqlite:file/endmark.db");
    let event = printed_event(&place, "gemini", &output_rows(20_000));
    let run = run_hook(&place, &["tool", "--agent", "gemini", "--max-chars", "8000"], &event);
    let text = model_text("gemini", &parse_answer(&run));
    assert!(text.contains(ERROR_LINE) && !text.contains("endmark read"), "{text}");
    assert!(run.errors.contains("not kept"), "{}", run.errors);
}
