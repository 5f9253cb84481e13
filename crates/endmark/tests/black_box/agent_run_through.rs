//! `run --through`: the agent's calls go through a gateway of the run, are counted there, and held within its budget.

use std::fs;

use endmark_store::{Reader, StoreLocation};
use serde_json::Value;
use testkit::{Prefill, ScriptedModel, Upstream};

use crate::agent_run::place;
use crate::run::{Place, Run};
use crate::serve::in_runtime;

const TEXT: &str = "All is well. The harbour was quiet, and the tide was high at noon.";
/// Asks a model for its report with too low a limit, and leaves a stub at its first try.
const AGENT: &str = r#"asked='{"model": "gpt-4o", "max_tokens": 4, "messages": [{"role": "user", "content": "Report."}]}'
printf '%s' "$OPENAI_API_KEY" > key
curl -s "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' -d "$asked" > answer
if [ "$ENDMARK_ATTEMPT" = 1 ] || ! grep -q choices answer; then text=TBD; else text=$(sed 's/.*"content": *"\([^"]*\)".*/\1/' answer); fi
printf '# Report\n\n## Summary\n\n%s\n' "$text" > report.md
"#;

fn run(place: &Place, options: &[&str]) -> Run {
    let mut arguments =
        vec!["run", "--through", "--json", "--template", "criteria.yaml", "--artifact", "report.md"];
    arguments.extend(options);
    arguments.extend(["--", "./agent.sh"]);
    place.run(&arguments)
}

#[test]
fn calls_are_mended_counted_and_made_with_a_key_of_the_run() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(Prefill::Continues)).await;
        let place = place("agent.sh", AGENT)
            .with_file("endmark.toml", "[resume]\nmode = \"on\"\n")
            .with_variable("OPENAI_API_KEY", "sk-real")
            .with_variable("OPENAI_BASE_URL", &upstream.base_url());
        let ran = run(&place, &[]);
        let envelope = ran.envelope();
        let agent_run = &envelope["data"]["agentRun"];
        assert_eq!((ran.code, &agent_run["attempt"]), (0, &2.into()), "{envelope}");
        // What was cut at four tokens came whole to the agent.
        let report = fs::read_to_string(place.path().join("report.md")).unwrap();
        assert!(report.contains(TEXT), "{report}");
        let key = fs::read_to_string(place.path().join("key")).unwrap();
        assert!(key.starts_with("em_sk_"), "the agent has the provider's key");
        let requests = upstream.requests();
        assert!(requests.len() > 2, "{} calls", requests.len());
        assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer sk-real")));
        // The run's usage is that of the ledger by its key, the continuations with it.
        let usage = place.run(&["usage", "--by", "key", "--json"]).envelope();
        let row = &usage["data"]["rows"][0];
        assert_eq!(row["key"], format!("key:{}", agent_run["id"].as_str().unwrap()));
        let number = |value: &Value| value.as_u64().unwrap();
        let total = number(&row["prompt_tokens"]) + number(&row["completion_tokens"]);
        assert!(total > 0 && row["estimated_calls"] == 0, "{row}");
        assert_eq!(agent_run["tokenUsage"]["total"], total);
        assert_eq!((&agent_run["model"], &agent_run["costUsd"]), (&"gpt-4o".into(), &row["usd"]));
        assert!(
            agent_run["limitTokens"].is_u64() && agent_run["largestCallTokens"].as_u64().unwrap() < total
        );
        let usage = place.run(&["usage", "--by", "session", "--json"]).envelope();
        let session = usage["data"]["rows"][0]["session"].as_str().unwrap();
        let runs = Reader::open(&StoreLocation::sqlite(place.path().join("endmark.db")))
            .unwrap()
            .runs_of(session, 9)
            .unwrap();
        assert_eq!(agent_run["id"], runs[0].run.id, "its session knows the run");
        let keys = place.run(&["keys", "list", "--json"]).output;
        assert!(keys.contains("revoked") && !keys.contains(&key), "{keys}");
    });
}

#[test]
fn a_budget_is_held_before_each_call() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(Prefill::Continues)).await;
        let place = place("agent.sh", AGENT)
            .with_variable("OPENAI_API_KEY", "sk-real")
            .with_variable("OPENAI_BASE_URL", &upstream.base_url());
        let ran = run(&place, &["--max-usd", "0.000000001", "--max-attempts", "2"]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        assert!(upstream.requests().is_empty());
        let answer = fs::read_to_string(place.path().join("answer")).unwrap();
        assert!(answer.contains("endmark_budget"), "{answer}");
        // No further try is made of what there is no money for, and the reason is that.
        let envelope = ran.envelope();
        let agent_run = &envelope["data"]["agentRun"];
        assert_eq!(
            (&agent_run["attempt"], &agent_run["reason"]),
            (&1.into(), &"BUDGET".into()),
            "{envelope}"
        );
        assert!(!ran.output.contains("no call of the agent came through"), "{}", ran.output);
    });
}

#[test]
fn without_a_key_for_the_provider_nothing_is_started() {
    let place = place("agent.sh", "touch started\n");
    let ran = run(&place, &[]);
    assert_eq!((ran.code, ran.envelope()["error"]["code"].as_str()), (2, Some("missing_key")));
    assert!(!place.path().join("started").exists());
}
