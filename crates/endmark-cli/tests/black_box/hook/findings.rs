//! `endmark hook findings`: instructions for sub-agents, the check of their results, and requests to repeat
//! them.

use serde_json::{Value, json};

use super::{parse_answer, run_hook};
use crate::run::TestFolder;

fn event(name: &str, last_message: &str) -> Value {
    json!({
        "session_id": "s1", "hook_event_name": name, "agent_id": "a17", "agent_type": "Security:Audit",
        "last_assistant_message": last_message,
    })
}

fn finding(number: u32, dimension: &str) -> String {
    format!(
        "[F00{number}] SQL in {dimension}\nseverity: High\ncwe: CWE-89\nlocation: src/{dimension}.py:{number}0-{number}2\n\
         source: request.args\nsink: cursor.execute\nflow: args -> query\nevidence:\n  execute(q{number})\n\n"
    )
}

fn header(dimensions: &str, declared: u32) -> String {
    format!(
        "===AGENT_RESULT===\nagent_id: audit\ndimensions: {dimensions}\ndeclared_findings: {declared}\n\n"
    )
}

const END_MARKER: &str = "===AGENT_RESULT_END===\n";
const HOOK_ARGUMENTS: [&str; 3] = ["findings", "--agent", "claude"];

fn run_stop(place: &TestFolder, last_message: &str) -> Option<Value> {
    let run = run_hook(place, &HOOK_ARGUMENTS, &event("SubagentStop", last_message));
    (!run.output.is_empty()).then(|| parse_answer(&run))
}

#[test]
fn a_sub_agent_gets_the_format_and_stops_after_a_whole_result() {
    let place = TestFolder::new();
    let started = parse_answer(&run_hook(&place, &HOOK_ARGUMENTS, &event("SubagentStart", "")));
    let context = started["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("===AGENT_RESULT===\nagent_id: security-audit-"), "{context}");
    assert_eq!(run_stop(&place, &format!("{}{}{END_MARKER}", header("auth", 1), finding(1, "auth"))), None);
    // A sub-agent without findings is not affected, unless its result is required.
    let other = TestFolder::new();
    assert_eq!(run_stop(&other, "The build uses cargo."), None);
    let required = [&HOOK_ARGUMENTS[..], &["--required"]].concat();
    let held = parse_answer(&run_hook(&other, &required, &event("SubagentStop", "The build uses cargo.")));
    assert_eq!(held["decision"], "block");
    assert!(held["reason"].as_str().unwrap().starts_with("Your result is missing"), "{held}");
}

#[test]
fn a_cut_result_is_repeated_in_parts_and_all_parts_are_kept() {
    let place = TestFolder::new();
    let cut = format!("{}{}[F002] SQL in paym", header("auth, payment", 3), finding(1, "auth"));
    let held = run_stop(&place, &cut).unwrap();
    assert_eq!(held["decision"], "block");
    let reason = held["reason"].as_str().unwrap();
    assert!(reason.starts_with("Your result is cut off: its end marker is missing."), "{reason}");
    assert!(
        reason.contains("as one whole result: auth, payment.")
            && reason.contains("dimensions: auth, payment")
    );
    let rest = format!(
        "{}{}{}{END_MARKER}",
        header("auth, payment", 2),
        finding(1, "payment"),
        finding(2, "payment")
    );
    let over = run_stop(&place, &rest).unwrap();
    let message = over["systemMessage"].as_str().unwrap();
    assert!(message.contains("in 2 parts. To merge them: endmark findings merge "), "{message}");
    // The command that the sub-agent must report returns the findings of both parts.
    let named = reason.split("`All parts: ").nth(1).unwrap().split('`').next().unwrap();
    assert!(message.ends_with(named), "{named}\n{message}");
    let words: Vec<&str> = named.split(' ').skip(1).collect();
    let merged = place.run(&words);
    assert_eq!(merged.output.matches("location: ").count(), 3, "{}{}", merged.output, merged.errors);
}

#[test]
fn a_result_that_never_becomes_whole_ends_the_retries() {
    let place = TestFolder::new();
    let mut held = 0;
    while let Some(answer) = run_stop(&place, &header("auth, payment", 3)) {
        if answer["decision"] != "block" {
            assert!(answer["systemMessage"].as_str().unwrap().contains("possible gaps: "), "{answer}");
            break;
        }
        held += 1;
        assert!(held < 8, "{answer}");
    }
    assert!(held >= 2, "{held}");
    assert_eq!(run_stop(&place, &header("auth", 3)), None);
}

/// Merging parts without a result would fail, so no such command is named.
#[test]
fn a_sub_agent_without_a_result_is_reported() {
    for (last_message, is_handed_over) in [
        ("I am done, no problems.", false),
        ("===AGENT_RESULT===\ndimensions: auth\n", false),
        (END_MARKER, false),
        ("===AGENT_RESULT===\nagent_id: audit\ndimensions: auth\ndeclared_findings: 3\n", true),
    ] {
        let place = TestFolder::new();
        let required = [&HOOK_ARGUMENTS[..], &["--required"]].concat();
        let mut attempts = 0;
        let message = loop {
            attempts += 1;
            assert!(attempts < 8);
            let answer = parse_answer(&run_hook(&place, &required, &event("SubagentStop", last_message)));
            if let Some(message) = answer["systemMessage"].as_str() {
                break message.to_owned();
            }
        };
        if is_handed_over {
            let command = message.split("endmark ").nth(1).unwrap();
            let merged = place.run(&command.split(' ').collect::<Vec<_>>());
            assert_eq!(merged.code, 0, "{message}\n{}", merged.errors);
        } else {
            let expected = format!("has delivered no findings after {attempts} attempts.");
            assert!(message.contains(&expected) && !message.contains("merge"), "{message}");
        }
    }
}

/// An agent may send another message to a finished sub-agent, whose next result is checked like the first.
#[test]
fn another_result_of_a_resumed_sub_agent_is_checked_and_kept() {
    let place = TestFolder::new();
    let whole = |number| format!("{}{}{END_MARKER}", header("auth", 1), finding(number, "auth"));
    let start = || {
        let started = parse_answer(&run_hook(&place, &HOOK_ARGUMENTS, &event("SubagentStart", "")));
        let context = started["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        context.split("agent_id: ").nth(1).unwrap().lines().next().unwrap().to_owned()
    };
    let first = start();
    assert_eq!(run_stop(&place, &whole(1)), None);
    // There was no start event, so another hook resumed the sub-agent.
    assert_eq!(run_stop(&place, &header("auth", 3)), None);
    for number in 2..4 {
        assert_eq!(start(), format!("{first}-{number}"));
        let held = run_stop(&place, &header("auth", 3)).unwrap();
        assert_eq!(held["decision"], "block");
        // A start event before the result is whole does not begin a new result.
        assert_eq!(start(), format!("{first}-{number}"));
        let over = run_stop(&place, &whole(number)).unwrap();
        let message = over["systemMessage"].as_str().unwrap();
        let command = message.split("endmark ").nth(1).unwrap();
        let merged = place.run(&command.split(' ').collect::<Vec<_>>());
        assert!(merged.output.contains(&format!("execute(q{number})")), "{}{}", merged.output, merged.errors);
        assert!(!merged.output.contains("execute(q1)"), "{}", merged.output);
    }
    assert_eq!(start(), format!("{first}-4"));
    assert_eq!(run_stop(&place, &whole(4)), None);
    let kept = place.path().join(format!(".local/state/endmark/hooks/findings/{first}-4.txt"));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), whole(4));
}

/// Agents may resume a sub-agent without a start event.
#[test]
fn a_sub_agent_resumed_without_a_start_event_must_report_again() {
    let place = TestFolder::new();
    let required = [&HOOK_ARGUMENTS[..], &["--required"]].concat();
    let stop = |last_message: &str, was_kept: bool| {
        let mut event = event("SubagentStop", last_message);
        event["stop_hook_active"] = json!(was_kept);
        let run = run_hook(&place, &required, &event);
        if run.output.is_empty() { Value::Null } else { parse_answer(&run) }
    };
    let whole = |number| format!("{}{}{END_MARKER}", header("auth", 1), finding(number, "auth"));
    assert_eq!(stop(&whole(1), false), Value::Null);
    // Another hook continues the sub-agent after its result was accepted.
    assert_eq!(stop("I have run the tests.", true), Value::Null);
    for (last_message, why) in [("No problems.", "is missing"), (&*header("auth", 3), "is cut off")] {
        let held = stop(last_message, false);
        assert!(held["reason"].as_str().is_some_and(|reason| reason.contains(why)), "{held}");
        let over = stop(&whole(2), true);
        assert!(over["systemMessage"].as_str().is_some_and(|text| text.contains("in 2 parts")), "{over}");
    }
    let open = whole(3).replace("declared_findings: 1", "coverage: auth=partial\ndeclared_findings: 1");
    let held = stop(&open, false);
    assert!(held["reason"].as_str().unwrap().contains("is whole, but does not cover"), "{held}");
}

#[test]
fn the_hook_is_installed_for_one_type_of_sub_agent() {
    let place = TestFolder::new();
    let install = ["hook", "install", "--agent", "claude", "--project"];
    let run = place.run(&[&install[..], &["--findings=audit.*"]].concat());
    assert_eq!(run.code, 0, "{}", run.errors);
    let settings: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path().join(".claude/settings.json")).unwrap())
            .unwrap();
    for event in ["SubagentStart", "SubagentStop"] {
        let entry = &settings["hooks"][event][0];
        assert_eq!(entry["matcher"], "audit.*");
        let command = entry["hooks"][0]["command"].as_str().unwrap();
        assert!(command.ends_with(" hook findings --agent claude --required"), "{command}");
    }
    assert!(settings["hooks"].get("PostToolUse").is_none(), "{settings}");
    let refused = place.run(&["hook", "install", "--agent", "codex", "--findings"]);
    assert_eq!(refused.code, 2, "{}", refused.errors);
    assert_eq!(place.run(&[&install[..], &["--remove"]].concat()).code, 0);
    assert!(!place.path().join(".claude/settings.json").exists());
}
