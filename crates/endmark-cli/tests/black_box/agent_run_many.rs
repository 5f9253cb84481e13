//! `run --spec`: several concurrent agents from a file that is checked before any of them is started.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::agent_run::agent_folder;
use crate::run::{CommandOutput, TestFolder};

/// Writes a complete report or a stub, or crashes, depending on its argument.
///
/// Each agent waits until all three have started.
const AGENT_SCRIPT: &str = "touch begun-$1
n=0; while [ $n -lt 100 ] && ! { [ -e begun-good ] && [ -e begun-stub ] && [ -e begun-crash ]; }; do sleep 0.1; n=$((n+1)); done
case $1 in
  good) printf '# Report\\n\\n## Summary\\n\\nAll is well. It was quiet.\\n' > good.md;;
  stub) printf '# Report\\n\\n## Summary\\n\\nTBD\\n' > stub.md;;
  crash) printf '# Report\\n\\n## Summary\\n\\nAll is well. It was quiet.\\n' > crash.md; kill -9 $$;;
esac
";

const RUN_FILE: &str = "\
[defaults]
template = \"criteria.yaml\"
max_attempts = 1

[[run]]
name = \"the good one\"
artifact = \"good.md\"
command = [\"./agent.sh\", \"good\"]

[[run]]
artifact = \"stub.md\"
command = [\"./agent.sh\", \"stub\"]
max_attempts = 2

[[run]]
artifact = \"crash.md\"
command = [\"./agent.sh\", \"crash\"]
";

fn run(place: &TestFolder, options: &[&str]) -> CommandOutput {
    let mut arguments = vec!["run", "--spec", "runs.toml"];
    arguments.extend(options);
    place.run(&arguments)
}

#[test]
fn runs_of_a_file_are_concurrent_and_the_worst_outcome_counts() {
    let place = agent_folder("agent.sh", AGENT_SCRIPT).with_file("runs.toml", RUN_FILE);
    let ran = run(&place, &["--json", "--events", "events.jsonl"]);
    let envelope = ran.envelope();
    assert_eq!((ran.code, &envelope["error"]["code"]), (3, &Value::from("runs_unfinished")));
    let runs = envelope["data"]["runs"].as_array().unwrap();
    let came_to = |run: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let agent_run = &run["agentRun"];
        (
            text(&agent_run["artifact"]),
            text(&agent_run["state"]),
            text(&agent_run["reason"]),
            agent_run["attempt"].as_u64(),
        )
    };
    let expected = [
        ("good.md", "succeeded", "-", 1),
        ("stub.md", "released", "CONTEXT_EXHAUSTION", 2),
        ("crash.md", "failed", "AGENT_CRASH", 1),
    ];
    let expected = expected.map(|(artifact, state, reason, attempt)| {
        (artifact.to_owned(), state.to_owned(), reason.to_owned(), Some(attempt))
    });
    assert_eq!(runs.iter().map(came_to).collect::<Vec<_>>(), expected);
    assert_eq!(
        (&runs[0]["agentRun"]["name"], &runs[1]["agentRun"]["name"]),
        (&"the good one".into(), &Value::Null)
    );
    assert!(
        runs.iter()
            .all(|run| run["agentRun"]["startedAt"].is_string() && run["agentRun"]["endedAt"].is_string())
    );
    // Each event contains its run and its time.
    let lines = fs::read_to_string(place.path().join("events.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for run in runs {
        let of = |line: &&Value| line["run"] == run["agentRun"]["id"] && line["at"].is_string();
        assert!(lines.iter().filter(of).count() >= 2, "{lines:?}");
    }
    assert!(ran.errors.contains(" [the good one] agent_run.succeeded"), "{}", ran.errors);
    // Text output: a table and the findings.
    for run in ["begun-good", "begun-stub", "begun-crash"] {
        fs::remove_file(place.path().join(run)).unwrap();
    }
    let ran = run(&place, &[]);
    for expected_text in ["succeeded", "stub.md:5:1 placeholder", "1 of 3 runs succeeded"] {
        assert!(ran.output.contains(expected_text), "{expected_text} is not in {}", ran.output);
    }
}

#[test]
fn an_invalid_file_starts_nothing_and_its_line_is_named() {
    let script = "touch started\n";
    let good =
        "[[run]]\ntemplate = \"criteria.yaml\"\nartifact = \"good.md\"\ncommand = [\"./agent.sh\"]\n\n";
    for (second, line, expected_text) in [
        ("[[run]]\ntemplate = \"criteria.yaml\"\ncommand = [\"./agent.sh\"]\n", 6, "artifact is missing"),
        (
            "[[run]]\ntemplate = \"none.yaml\"\nartifact = \"a.md\"\ncommand = [\"./agent.sh\"]\n",
            6,
            "none.yaml",
        ),
        (
            "[[run]]\ntemplate = \"criteria.yaml\"\nartifact = \"a.md\"\ncommand = []\n",
            6,
            "command is missing",
        ),
        (
            "[[run]]\ntemplate = \"criteria.yaml\"\nartifact = \"./good.md\"\ncommand = [\"./agent.sh\"]\n",
            6,
            "line 1 has the same artifact",
        ),
        (
            "[[run]]\ntemplate = \"criteria.yaml\"\nartifact = \"no/a.md\"\ncommand = [\"./agent.sh\"]\n",
            6,
            "does not exist",
        ),
        (
            "[[run]]\ntemplate = \"criteria.yaml\"\nartifact = \"a.md\"\nmax_time = \"0s\"\ncommand = [\"./agent.sh\"]\n",
            6,
            "is not a time span",
        ),
        ("[[run]]\ntemplate = \"criteria.yaml\"\nartefact = \"a.md\"\n", 8, "artefact"),
        ("[[run]]\ntemplate = \n", 7, ""),
    ] {
        let place = agent_folder("agent.sh", script).with_file("runs.toml", format!("{good}{second}"));
        let ran = run(&place, &["--json"]);
        let envelope = ran.envelope();
        let message = envelope["error"]["message"].as_str().unwrap();
        assert_eq!(ran.code, 2, "{message}");
        assert!(
            message.starts_with(&format!("runs.toml:{line}: ")) && message.contains(expected_text),
            "{message}"
        );
        assert!(!place.path().join("started").exists());
        assert!(!place.path().join("endmark.db").exists());
    }
}

#[test]
fn a_signal_ends_all_running_agents_and_starts_no_other() {
    let script = "touch begun-$1\nwhile :; do sleep 0.1; done\n";
    let one =
        |name: &str| format!("[[run]]\nartifact = \"{name}.md\"\ncommand = [\"./agent.sh\", \"{name}\"]\n");
    let spec = ["a", "b", "c"].map(one).concat();
    let place = agent_folder("agent.sh", script).with_file("runs.toml", spec);
    let arguments =
        ["run", "--spec", "runs.toml", "--parallel", "2", "--template", "criteria.yaml", "--json"];
    let child = place.command(&arguments).stdin(Stdio::null()).spawn().unwrap();
    while !["a", "b"].iter().all(|name| place.path().join(format!("begun-{name}")).exists()) {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = CommandOutput::new(&child.wait_with_output().unwrap());
    let envelope = ran.envelope();
    assert_eq!(ran.code, 130, "{}", ran.output);
    let reasons: Vec<&Value> =
        envelope["data"]["runs"].as_array().unwrap().iter().map(|run| &run["agentRun"]["reason"]).collect();
    assert_eq!(reasons, ["INTERRUPTED", "INTERRUPTED"]);
    assert_eq!(envelope["data"]["not_started"], serde_json::json!(["c.md"]));
    assert!(!place.path().join("begun-c").exists());
}
