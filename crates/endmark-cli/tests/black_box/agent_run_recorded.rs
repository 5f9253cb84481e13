//! `runs record`: records runs of another scheduler from its reports.

use serde_json::{Value, json};

use crate::agent_run::agent_folder;
use crate::run::{CommandOutput, TestFolder};

const STARTED_REPORT: &str = r#"{"id": "nightly-7", "agent": "codex", "artifact": "report.md", "maxAttempts": 3, "model": "gpt-x",
    "limitTokens": 200000, "command": ["codex", "exec"], "folder": "/src"}"#;

fn record(place: &TestFolder, event: &str, report: &str) -> CommandOutput {
    place.run_with_input(&["runs", "record", "--event", event, "--json"], report)
}

fn show_run(place: &TestFolder) -> Value {
    place.run(&["runs", "show", "nightly-7", "--json"]).envelope()["data"].take()
}

#[test]
fn a_recorded_run_is_listed_with_its_risk_and_events() {
    let place = agent_folder("agent.sh", "exit 0");
    let ran = record(&place, "started", STARTED_REPORT);
    assert_eq!(ran.code, 0, "{}", ran.errors);
    assert_eq!(ran.envelope()["data"]["runs"][0]["state"], "running");
    // The run has no local process, so it is not lost when this process ends.
    assert_eq!(place.run(&["runs", "--json"]).envelope()["data"]["runs"][0]["state"], "running");
    for tokens in [90_000, 180_000, 190_000] {
        let used = json!({"id": "nightly-7", "largestCallTokens": tokens, "tokenUsage": {"input": tokens, "output": 5}});
        assert_eq!(record(&place, "used", &used.to_string()).code, 0);
    }
    let retry = r#"{"id": "nightly-7", "reason": "CONTEXT_GUARD_FAIL", "missing": ["line 3: TBD", "Risks is missing"]}"#;
    assert_eq!(record(&place, "retry-queued", retry).code, 0);
    assert_eq!(record(&place, "started", r#"{"id": "nightly-7"}"#).code, 0);
    let over =
        record(&place, "released", r#"{"id": "nightly-7", "reason": "CONTEXT_EXHAUSTION", "costUsd": 1.5}"#);
    assert_eq!(over.code, 0, "{}", over.errors);

    let shown = show_run(&place);
    let run = &shown["runs"][0];
    assert_eq!(
        [&run["state"], &run["reason"], &run["attempt"], &run["costUsd"], &run["findings"]],
        [&json!("released"), &json!("CONTEXT_EXHAUSTION"), &json!(2), &json!("1.500000000"), &json!(2)]
    );
    let events = shown["events"].as_array().unwrap();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["started", "context_risk", "retry_queued", "started", "context_exhausted", "released"]
            .map(|name| format!("agent_run.{name}"))
    );
    assert_eq!(events[1]["message"], "a call used 180000 of the model's 200000 tokens");
    assert_eq!(
        events[2]["message"],
        "attempt 1 of 3: `report.md` is not finished: line 3: TBD; Risks is missing"
    );
}

#[test]
fn an_attempt_without_usage_keeps_the_earlier_risk_and_limit() {
    let place = agent_folder("agent.sh", "exit 0");
    let report = |event: &str, report: &str| {
        let ran = record(&place, event, report);
        assert_eq!(ran.code, 0, "{event} {report}: {}", ran.output);
    };
    report("started", r#"{"id": "nightly-7", "agent": "codex", "artifact": "a", "limitTokens": 200000}"#);
    report("used", r#"{"id": "nightly-7", "largestCallTokens": 181000}"#);
    let missing =
        ["line 3: TBD", "Risks is missing", "line 7: no text", "line 9: no text", "line 11: no text"];
    let retry = json!({"id": "nightly-7", "reason": "CONTEXT_GUARD_FAIL", "missing": missing});
    report("retry-queued", &retry.to_string());
    // Usage that arrives late does not begin another attempt.
    report("used", r#"{"id": "nightly-7", "tokenUsage": {"input": 900, "output": 5}}"#);
    assert_eq!(show_run(&place)["runs"][0]["state"], "retry-queued");
    report("started", r#"{"id": "nightly-7", "artifact": "b.md", "name": "nightly"}"#);
    let refused = record(&place, "succeeded", r#"{"id": "nightly-7", "missing": ["line 3: TBD"]}"#);
    assert!(
        refused.code == 2 && refused.output.contains("must have an empty `missing`"),
        "{}",
        refused.output
    );
    report("succeeded", r#"{"id": "nightly-7"}"#);

    let shown = show_run(&place);
    let run = &shown["runs"][0];
    assert_eq!(
        [
            &run["state"],
            &run["attempt"],
            &run["maxAttempts"],
            &run["findings"],
            &run["artifact"],
            &run["name"]
        ],
        [&json!("succeeded"), &json!(2), &json!(2), &json!(0), &json!("b.md"), &json!("nightly")]
    );
    assert_eq!(
        [&run["largestCallTokens"], &run["limitTokens"], &run["contextExhaustionRisk"]],
        [&json!(181_000), &json!(200_000), &json!(true)]
    );
    let events = shown["events"].as_array().unwrap();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!(count("agent_run.context_risk"), 1, "{events:?}");
    assert!(events[2]["message"].as_str().unwrap().ends_with("line 7: no text; and 2 more"), "{events:?}");
    let table = place.run(&["runs"]).output;
    assert!(table.contains("2/2") && table.contains("90%!"), "{table}");
}

#[test]
fn an_invalid_report_records_nothing() {
    let place = agent_folder("agent.sh", "exit 0");
    let refused = |event: &str, report: &str, why: &str| {
        let ran = record(&place, event, report);
        assert!(ran.code == 2 && ran.output.contains(why), "{event} {report}: {}", ran.output);
    };
    refused("used", r#"{"id": "nightly-7"}"#, "report `started` first");
    refused("started", r#"{"id": "nightly-7", "agent": "codex"}"#, "needs `artifact`");
    refused("started", "no JSON", "is not a report of a run");
    refused("started", r#"{"id": "nightly-7", "tokens": 3}"#, "unknown field `tokens`");
    assert_eq!(record(&place, "started", STARTED_REPORT).code, 0);
    refused("failed", r#"{"id": "nightly-7"}"#, "needs a `reason`");
    refused("used", r#"{"id": "nightly-7", "costUsd": -1}"#, "`costUsd` is out of range");
    assert_eq!(record(&place, "succeeded", r#"{"id": "nightly-7"}"#).code, 0);
    refused("used", r#"{"id": "nightly-7"}"#, "has ended: it is `succeeded`");
}

#[test]
fn a_run_of_this_supervisor_cannot_be_reported_from_outside() {
    let place = agent_folder("agent.sh", "echo working; printf '# Report\\n\\nTBD\\n' > report.md\n");
    let words = [
        "run",
        "--template",
        "criteria.yaml",
        "--artifact",
        "report.md",
        "--max-attempts",
        "1",
        "--",
        "./agent.sh",
    ];
    let ran = place.run(&words);
    assert_eq!(ran.output.matches("Output of the agent: ").count(), 1, "{}", ran.output);
    assert!(ran.output.contains("report.md:3:1 placeholder"), "{}", ran.output);
    let shown = place.run(&["runs", "show", "run_"]);
    assert!(
        shown.output.contains("is not finished") && shown.output.contains("line 3: "),
        "{}",
        shown.output
    );
    let folder = shown.output.lines().find_map(|line| line.trim().strip_prefix("output ")).unwrap().trim();
    assert!(std::fs::read_to_string(place.path().join(folder).join("1.out")).unwrap().contains("working"));
}
