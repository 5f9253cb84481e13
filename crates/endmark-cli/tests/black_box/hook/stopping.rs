//! `hook stop`: an agent must finish its artifact before it stops, within a number of attempts.

use std::fs;

use serde_json::json;

use super::{AGENTS, parse_answer, recorded_event, run_hook};
use crate::run::TestFolder;

const WHOLE_REPORT: &str = "# Report\n\nAll of it is done.\n";

#[test]
fn an_agent_continues_until_its_artifact_is_whole() {
    for agent in AGENTS {
        let place =
            TestFolder::new().with_file("t.md", "---\nsuccessCriteria:\n  requiredSections: [Risks]\n---\n");
        let event = recorded_event(&place, agent, 1);
        let arguments = ["stop", "--agent", agent, "--artifact", "report.md", "--template", "t.md"];
        let word = if agent == "gemini" { "deny" } else { "block" };

        let missing = parse_answer(&run_hook(&place, &arguments, &event));
        assert_eq!(missing["decision"], word);
        let reason = missing["reason"].as_str().unwrap();
        assert!(reason.contains("`report.md`") && reason.contains("attempt 1 of 3"), "{reason}");
        assert!(reason.contains("the last message was: Done."), "{reason}");

        fs::write(place.path().join("report.md"), "# Report\n\nTBD\n").unwrap();
        let stub = parse_answer(&run_hook(&place, &arguments, &event));
        let reason = stub["reason"].as_str().unwrap();
        assert!(
            reason.contains("attempt 2 of 3") && reason.contains("placeholder: line 3, `TBD`"),
            "{reason}"
        );
        assert!(reason.contains("section_missing"), "{reason}");

        fs::write(place.path().join("report.md"), format!("{WHOLE_REPORT}\n## Risks\n\nThere are none.\n"))
            .unwrap();
        let whole = run_hook(&place, &arguments, &event);
        assert_eq!((whole.output.as_str(), whole.errors.as_str()), ("", ""), "{agent}");
        let runs = place.run(&["runs", "--json"]).envelope();
        assert_eq!(
            (&runs["data"]["runs"][0]["state"], &runs["data"]["runs"][0]["attempt"]),
            (&json!("succeeded"), &json!(3))
        );
    }
}

#[test]
fn an_agent_without_remaining_attempts_is_released_and_recorded() {
    let place = TestFolder::new();
    let event = recorded_event(&place, "claude", 1);
    let arguments = ["stop", "--agent", "claude", "--artifact", "report.md", "--attempts", "2"];
    assert_eq!(parse_answer(&run_hook(&place, &arguments, &event))["decision"], "block");
    for _ in 0..2 {
        let released = run_hook(&place, &arguments, &event);
        let hook_message = parse_answer(&released);
        assert!(hook_message.get("decision").is_none(), "{hook_message}");
        let message = hook_message["systemMessage"].as_str().unwrap();
        assert!(
            message.contains("not finished after attempt 2 of 2") && message.contains("CONTEXT_EXHAUSTION"),
            "{message}"
        );
        assert!(released.errors.contains("not finished"), "{}", released.errors);
    }
    let folder = place.path().join(".local/state/endmark/hooks");
    let records: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let [record] = &records[..] else { panic!("{records:?}") };
    let record: serde_json::Value = serde_json::from_str(record).unwrap();
    assert_eq!((&record["state"], &record["attempts"]), (&json!("released"), &json!(2)));

    let runs = place.run(&["runs", "--json"]).envelope();
    let [run] = &runs["data"]["runs"].as_array().unwrap()[..] else { panic!("{runs}") };
    assert_eq!((&run["state"], &run["reason"]), (&json!("released"), &json!("CONTEXT_EXHAUSTION")));
    assert_eq!(run["session"], event["session_id"]);

    // Another session has its own attempts.
    let mut other = event.clone();
    other["session_id"] = json!("another");
    assert_eq!(parse_answer(&run_hook(&place, &arguments, &other))["decision"], "block");
}

#[test]
fn a_stalled_agent_is_released_after_two_holds() {
    let place = TestFolder::new().with_file("report.md", "# Report\n\nTBD\n");
    let event = recorded_event(&place, "codex", 1);
    let arguments = ["stop", "--agent", "codex", "--artifact", "report.md", "--attempts", "8"];
    let mut held = 0;
    let hook_message = loop {
        let hook_message = parse_answer(&run_hook(&place, &arguments, &event));
        if hook_message.get("decision").is_none() {
            break hook_message;
        }
        held += 1;
    };
    assert_eq!(held, 2);
    assert!(hook_message["systemMessage"].as_str().unwrap().contains("STALLED"), "{hook_message}");
}

#[test]
fn an_agent_with_a_running_background_task_may_stop() {
    let place = TestFolder::new();
    let mut event = recorded_event(&place, "claude", 1);
    let arguments = ["stop", "--agent", "claude", "--artifact", "report.md"];
    for tasks in [
        json!([{"id": "b1"}]),
        json!([{"id": "b1", "status": "completed"}, {"id": "b2", "status": "running"}]),
    ] {
        event["background_tasks"] = tasks;
        assert_eq!(run_hook(&place, &arguments, &event).output, "");
    }
    // A finished background task does not resume the agent.
    event["background_tasks"] = json!([{"id": "b1", "status": "completed"}]);
    assert!(run_hook(&place, &arguments, &event).output.contains("\"block\""));
}
