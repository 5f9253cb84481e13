//! `run` and `runs`: agents that stop early, never finish, hang, print without end, or use too much.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{CommandOutput, TestFolder};

const CRITERIA: &str = "min_lines: 3\nrequired_sections: [Summary]\n";
const WRITE_STUB: &str = "printf '# Report\\n\\n## Summary\\n\\nTBD\\n' > report.md\n";
const WRITE_WHOLE_REPORT: &str =
    "printf '# Report\\n\\n## Summary\\n\\nAll is well. The harbour was quiet.\\n' > report.md\n";

/// Returns a folder with criteria and an agent script.
pub(crate) fn agent_folder(name: &str, script: &str) -> TestFolder {
    let place = TestFolder::new()
        .with_file("criteria.yaml", CRITERIA)
        .with_file(name, format!("#!/bin/sh\n{script}"))
        .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
        .with_variable("ENDMARK_STORE", "sqlite:endmark.db");
    let file = place.path().join(name);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn supervise(place: &TestFolder, options: &[&str], command: &[&str]) -> CommandOutput {
    let mut arguments = vec!["run", "--json"];
    for usual in [["--template", "criteria.yaml"], ["--artifact", "report.md"]] {
        if !options.contains(&usual[0]) {
            arguments.extend(usual);
        }
    }
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(command);
    place.run(&arguments)
}

fn run_data(envelope: &Value) -> &Value {
    &envelope["data"]["agentRun"]
}

fn read_events(place: &TestFolder) -> Vec<String> {
    let envelope = place.run(&["runs", "show", "run_", "--json"]).envelope();
    let events = envelope["data"]["events"].as_array().unwrap();
    events
        .iter()
        .map(|event| event["event"].as_str().unwrap().trim_start_matches("agent_run.").to_owned())
        .collect()
}

#[test]
fn an_agent_finishes_its_stub_at_the_second_attempt() {
    let script =
        format!("if [ $ENDMARK_ATTEMPT = 1 ]; then\n{WRITE_STUB}else\ncat > told; {WRITE_WHOLE_REPORT}fi\n");
    let place = agent_folder("agent.sh", &script);
    let ran = supervise(&place, &["--events", "events.jsonl"], &["./agent.sh"]);
    let envelope = ran.envelope();
    assert_eq!((ran.code, &run_data(&envelope)["state"]), (0, &Value::from("succeeded")));
    assert_eq!(run_data(&envelope)["attempt"], 2);
    // The feedback to the agent lists what is present, what is missing, and where.
    let prompts = fs::read_to_string(place.path().join("told")).unwrap();
    for part in ["`report.md` is not finished", "- section: Summary", "placeholder: line 5, `TBD`"] {
        assert!(prompts.contains(part), "{part} is not in {prompts}");
    }
    assert_eq!(read_events(&place), ["started", "retry_queued", "started", "succeeded"]);
    let lines = fs::read_to_string(place.path().join("events.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[1]["reason"], "CONTEXT_GUARD_FAIL");
    assert_eq!(lines[3]["agentRun"]["tokenUsage"]["total"], 0);
    assert!(lines[0]["at"].is_string() && lines[0]["agentRun"]["endedAt"].is_null());
    assert!(run_data(&envelope)["endedAt"].is_string());
    let listed = place.run(&["runs"]);
    assert!(listed.output.contains("succeeded") && listed.output.contains("2/3"), "{}", listed.output);
}

#[test]
fn an_artifact_that_is_never_finished_is_released() {
    let place = agent_folder("agent.sh", &format!("{WRITE_STUB}echo 'It is all done.'\n"));
    let ran = supervise(&place, &[], &["./agent.sh"]);
    let envelope = ran.envelope();
    let run = run_data(&envelope);
    assert_eq!((ran.code, &envelope["error"]["code"]), (1, &Value::from("context_exhaustion")));
    assert_eq!((&run["state"], &run["reason"]), (&"released".into(), &"CONTEXT_EXHAUSTION".into()));
    assert_eq!((&run["attempt"], &run["findings"]), (&3.into(), &1.into()));
    // The section contains nothing else, so there is only one finding.
    let checks = envelope["data"]["findings"].as_array().unwrap().iter().map(|finding| &finding["check"]);
    assert_eq!(checks.collect::<Vec<_>>(), ["placeholder"]);
    let expected =
        ["started", "retry_queued", "started", "retry_queued", "started", "context_exhausted", "released"];
    assert_eq!(read_events(&place), expected);
}

#[test]
fn a_run_whose_attempts_change_nothing_is_stalled() {
    let place = agent_folder("agent.sh", WRITE_STUB);
    let envelope = supervise(&place, &["--max-attempts", "9"], &["./agent.sh"]).envelope();
    let run = run_data(&envelope);
    assert_eq!(
        (&run["state"], &run["reason"], &run["attempt"]),
        (&"failed".into(), &"STALLED".into(), &3.into())
    );
}

#[test]
fn the_exit_code_of_an_agent_does_not_decide_the_result() {
    let ran =
        supervise(&agent_folder("agent.sh", &format!("{WRITE_WHOLE_REPORT}exit 7\n")), &[], &["./agent.sh"]);
    let envelope = ran.envelope();
    assert_eq!(ran.code, 0);
    assert!(envelope["warnings"][0]["message"].as_str().unwrap().contains("exit code was 7"), "{envelope}");
    let crashed = supervise(
        &agent_folder("agent.sh", &format!("{WRITE_WHOLE_REPORT}kill -9 $$\n")),
        &["--max-attempts", "2"],
        &["./agent.sh"],
    );
    let envelope = crashed.envelope();
    assert_eq!((crashed.code, &run_data(&envelope)["reason"]), (3, &Value::from("AGENT_CRASH")));
}

#[test]
fn a_hanging_agent_is_killed_with_its_children() {
    let place = agent_folder(
        "agent.sh",
        &format!("{WRITE_WHOLE_REPORT}sleep 700 &\necho $! > child\nexec >&- 2>&-\nsleep 700\n"),
    );
    let ran = supervise(&place, &["--silence", "1s", "--max-attempts", "1"], &["./agent.sh"]);
    let envelope = ran.envelope();
    assert_eq!((ran.code, &run_data(&envelope)["reason"]), (3, &Value::from("STALLED")));
    assert_eq!(run_data(&envelope)["verdict"], "stuck");
    let child = fs::read_to_string(place.path().join("child")).unwrap();
    assert!(!is_running(child.trim()), "process {child} is left");
}

#[test]
fn an_agent_that_ignores_sigterm_is_killed() {
    let script = format!("trap '' TERM INT HUP\n{WRITE_STUB}echo $$ > child\nwhile :; do sleep 1; done\n");
    let place = agent_folder("agent.sh", &script);
    let options = ["--attempt-time", "1s", "--grace", "1s", "--max-attempts", "1"];
    let envelope = supervise(&place, &options, &["./agent.sh"]).envelope();
    assert_eq!(run_data(&envelope)["verdict"], "timed_out");
    let child = fs::read_to_string(place.path().join("child")).unwrap();
    assert!(!is_running(child.trim()), "process {child} is left");
}

#[test]
fn processes_left_by_an_agent_are_killed() {
    let place = agent_folder(
        "agent.sh",
        &format!("{WRITE_WHOLE_REPORT}sleep 700 > /dev/null 2>&1 &\necho $! > child\n"),
    );
    assert_eq!(supervise(&place, &[], &["./agent.sh"]).code, 0);
    let child = fs::read_to_string(place.path().join("child")).unwrap();
    assert!(!is_running(child.trim()), "process {child} is left");
}

/// Whether a process with this id is running, and not a zombie.
fn is_running(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

#[test]
fn an_agent_that_prints_endlessly_uses_bounded_memory_and_disk() {
    // One endless line, and then lines of 500 bytes.
    let line = "x".repeat(499);
    let shout = format!("head -c 200000000 /dev/zero\nyes {line} | head -c 200000000\n{WRITE_WHOLE_REPORT}");
    let place = agent_folder("claude", &shout);
    let arguments = [
        "run",
        "--template",
        "criteria.yaml",
        "--artifact",
        "report.md",
        "--agent",
        "claude",
        "--max-attempts",
        "1",
        "--",
        "./claude",
        "stream-json",
    ];
    let mut child = place.command(&arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most_kilobytes = 0;
    while child.try_wait().unwrap().is_none() {
        let peak = fs::read_to_string(&status).unwrap_or_default();
        let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(str::trim);
        let peak = peak.and_then(|peak| peak.strip_suffix(" kB")).and_then(|peak| peak.parse().ok());
        most_kilobytes = most_kilobytes.max(peak.unwrap_or(0_u64));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!((1..200_000).contains(&most_kilobytes), "{most_kilobytes} kB");
    let folder = fs::read_dir(place.path().join("endmark.db-runs")).unwrap().next().unwrap().unwrap().path();
    let kept = fs::metadata(folder.join("1.out")).unwrap().len();
    assert!((64 << 20..66 << 20).contains(&kept), "{kept} bytes");
}

/// Returns a script that prints the output of Claude Code for one call and for the end of a run.
fn claude_output(input_tokens: u64) -> String {
    format!(
        r#"cat <<'END'
{{"type":"system","subtype":"init","session_id":"ours","model":"claude-sonnet-4-5"}}
{{"type":"assistant","session_id":"ours","parent_tool_use_id":null,"message":{{"id":"m1","content":[{{"type":"text","text":"Done."}}],"usage":{{"input_tokens":{input_tokens},"output_tokens":10}}}}}}
{{"type":"result","subtype":"success","is_error":false,"result":"Done.","stop_reason":"end_turn","session_id":"ours","total_cost_usd":0.5,"modelUsage":{{"claude-sonnet-4-5":{{"inputTokens":{input_tokens},"outputTokens":10,"contextWindow":200000}}}}}}
END
"#
    )
}

#[test]
fn a_stub_over_the_threshold_is_released_without_a_retry() {
    let agent = ["./claude", "--output-format", "stream-json"];
    let full = agent_folder("claude", &format!("{WRITE_STUB}{}", claude_output(180_000)));
    let ran = supervise(&full, &[], &agent);
    let envelope = ran.envelope();
    let run = run_data(&envelope);
    assert_eq!((ran.code, &run["reason"], &run["attempt"]), (1, &"CONTEXT_EXHAUSTION".into(), &1.into()));
    assert_eq!((&run["contextExhaustionRisk"], &run["tokenUsage"]["total"]), (&true.into(), &180_010.into()));
    assert_eq!((&run["costUsd"], &run["limitTokens"]), (&"0.500000000".into(), &200_000.into()));
    assert_eq!(read_events(&full), ["started", "context_risk", "context_exhausted", "released"]);
    // If the artifact is complete, this is only a warning.
    let finished = agent_folder("claude", &format!("{WRITE_WHOLE_REPORT}{}", claude_output(180_000)));
    assert_eq!(supervise(&finished, &[], &agent).code, 0);
    assert_eq!(read_events(&finished), ["started", "context_risk", "succeeded"]);
}

#[test]
fn an_agent_continues_its_session_with_the_missing_points() {
    let script = format!("printf '%s\\n' \"$@\" > said.$ENDMARK_ATTEMPT\n{WRITE_STUB}{}", claude_output(10));
    let place = agent_folder("claude", &script);
    let command = ["./claude", "-p", "{prompt}", "--output-format", "stream-json"];
    supervise(&place, &["--prompt", "Write the report.", "--max-attempts", "2"], &command);
    let prompt_of = |attempt: u32| fs::read_to_string(place.path().join(format!("said.{attempt}"))).unwrap();
    let first = prompt_of(1);
    assert!(
        first.starts_with("-p\nWrite the report.\n--output-format\nstream-json\n--session-id\n"),
        "{first}"
    );
    let second = prompt_of(2);
    assert!(second.starts_with("-p\nThe file `report.md` is not finished"), "{second}");
    assert!(second.ends_with("--resume\nours\n") && !second.contains("Write the report."), "{second}");
}

#[test]
fn a_cost_ceiling_ends_the_run() {
    let place = agent_folder("claude", &format!("{WRITE_STUB}{}", claude_output(10)));
    let command = ["./claude", "--output-format", "stream-json"];
    let envelope = supervise(&place, &["--max-usd", "0.75", "--max-attempts", "9"], &command).envelope();
    let run = run_data(&envelope);
    assert_eq!(
        (&run["reason"], &run["attempt"], &run["costUsd"]),
        (&"BUDGET".into(), &2.into(), &"1.000000000".into())
    );
}

#[test]
fn an_agent_that_prints_endlessly_is_stopped_and_the_limit_named() {
    let place = agent_folder("agent.sh", &format!("{WRITE_WHOLE_REPORT}yes\n"));
    let options = ["--attempt-time", "1s", "--max-attempts", "1", "--events", "/dev/full"];
    let envelope = supervise(&place, &options, &["./agent.sh"]).envelope();
    let run = run_data(&envelope);
    assert_eq!((&run["state"], &run["reason"]), (&"failed".into(), &"ATTEMPT_TIME".into()));
    // Two events could not be written, which is reported once.
    let warnings = envelope["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0]["message"].as_str().unwrap().contains("`/dev/full`"), "{warnings:?}");
}

#[test]
fn invalid_options_are_refused_before_the_start() {
    let place = agent_folder("agent.sh", "touch started\n").with_file("none.yaml", "");
    for (options, command, prompt_of) in [
        (&["--max-time", "0s"][..], &["./agent.sh"][..], "is not a time span"),
        (&["--max-attempts", "0"], &["./agent.sh"], "0 is not in"),
        (&["--max-usd", "0"], &["./agent.sh"], "is not a valid amount"),
        (&["--silence", "x"], &["./agent.sh"], "is not a time span"),
        (&[], &["./agent.sh", "{prompt}"], "no prompt is given"),
        (&["--agent", "claude"], &["./agent.sh"], "does not print events"),
        (&["--template", "none.yaml"], &["./agent.sh"], ""),
        (&["--events", "no/such/folder"], &["./agent.sh"], "cannot write events"),
        (&["--artifact", "."], &["./agent.sh"], "is a folder"),
        (&["--artifact", "no/report.md"], &["./agent.sh"], "does not exist"),
    ] {
        let ran = supervise(&place, options, command);
        assert_eq!(ran.code, 2, "{options:?}: {}", ran.output);
        assert!(ran.output.contains(prompt_of), "{options:?}: {}", ran.output);
    }
    assert!(!place.path().join("started").exists());
    let ran = supervise(&place, &[], &["./nowhere"]);
    let envelope = ran.envelope();
    assert_eq!((ran.code, &run_data(&envelope)["state"]), (3, &Value::from("failed")));
    assert!(
        envelope["error"]["message"].as_str().unwrap().contains("the command `./nowhere` was not found"),
        "{envelope}"
    );
    assert_eq!(run_data(&envelope)["attempt"], 0);
}

#[test]
fn the_output_location_is_printed_once() {
    let place = agent_folder("agent.sh", "echo hello\n");
    let supervised = |command: &str| {
        place.run(&["run", "--template", "criteria.yaml", "--artifact", "report.md", "--", command])
    };
    let ran = supervised("./agent.sh");
    assert_eq!(ran.output.matches("endmark.db-runs/").count(), 1, "{}", ran.output);
    assert!(!ran.errors.contains("endmark.db-runs/"), "{}", ran.errors);
    let ran = supervised("./nowhere");
    assert!(!ran.output.contains("endmark.db-runs/"), "nothing was started: {}", ran.output);
}

#[test]
fn watch_prints_each_event_and_ends_with_the_last_run() {
    let place =
        agent_folder("agent.sh", &format!("while ! [ -e go ]; do sleep 0.1; done\n{WRITE_WHOLE_REPORT}"));
    let arguments = ["run", "--template", "criteria.yaml", "--artifact", "report.md", "--", "./agent.sh"];
    let mut run = place.command(&arguments).stdin(Stdio::null()).spawn().unwrap();
    while !place.run(&["runs", "--json"]).output.contains("\"running\"") {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let watch =
        place.command(&["runs", "watch", "--until-idle", "--json"]).stdin(Stdio::null()).spawn().unwrap();
    // Wait until the watcher has read the initial state, so that later changes are events.
    std::thread::sleep(std::time::Duration::from_millis(700));
    fs::write(place.path().join("go"), "").unwrap();
    assert!(run.wait().unwrap().success());
    let watched = CommandOutput::new(&watch.wait_with_output().unwrap());
    let line: Value = serde_json::from_str(watched.output.trim()).unwrap();
    assert_eq!((watched.code, &line["event"]), (0, &Value::from("agent_run.succeeded")));
    assert_eq!(place.run(&["runs", "show", "nothing"]).code, 1);
}

#[test]
fn a_signal_ends_the_agent_and_releases_the_run() {
    let script =
        format!("trap 'touch asked; exit 0' TERM\n{WRITE_STUB}touch ready\nwhile :; do sleep 0.1; done\n");
    let place = agent_folder("agent.sh", &script);
    let arguments = ["run", "--template", "criteria.yaml", "--artifact", "report.md", "--", "./agent.sh"];
    let mut run = place.command(&arguments).stdin(Stdio::null()).spawn().unwrap();
    while !place.path().join("ready").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(143));
    assert!(place.path().join("asked").exists());
    let envelope = place.run(&["runs", "--json"]).envelope();
    let run = &envelope["data"]["runs"][0];
    assert_eq!(
        (&run["state"], &run["reason"], &run["attempt"]),
        (&"released".into(), &"INTERRUPTED".into(), &1.into())
    );
}

#[test]
fn a_lost_session_is_restarted_with_the_task() {
    // The agent crashes without output when it is resumed.
    let script = format!(
        "printf '%s\\n' \"$@\" > said.$ENDMARK_ATTEMPT\ncase \"$*\" in *--resume*) exit 1;; esac\n{WRITE_STUB}{}",
        claude_output(10)
    );
    let place = agent_folder("claude", &script);
    let command = ["./claude", "-p", "{prompt}", "--output-format", "stream-json"];
    supervise(&place, &["--prompt", "Write the report."], &command);
    let prompt_of = |attempt: u32| fs::read_to_string(place.path().join(format!("said.{attempt}"))).unwrap();
    assert!(prompt_of(2).contains("--resume\nours\n"), "{}", prompt_of(2));
    let third = prompt_of(3);
    assert!(third.starts_with("-p\nWrite the report.\n") && third.contains("was begun already"), "{third}");
    assert!(third.contains("--session-id\n") && third.contains("is not finished"), "{third}");
}

#[test]
fn usage_is_visible_while_the_agent_works() {
    let prompt_of = claude_output(90_000);
    let script = format!(
        "{{\n{prompt_of}}} | head -2\nwhile ! [ -e go ]; do sleep 0.1; done\n{WRITE_WHOLE_REPORT}{prompt_of}"
    );
    let place = agent_folder("claude", &script);
    let arguments =
        ["run", "--template", "criteria.yaml", "--artifact", "report.md", "--", "./claude", "stream-json"];
    let mut run = place.command(&arguments).stdin(Stdio::null()).spawn().unwrap();
    let seen = loop {
        let envelope: Value = serde_json::from_str(&place.run(&["runs", "--json"]).output).unwrap();
        let run = envelope["data"]["runs"][0].clone();
        if run["tokenUsage"]["total"].as_u64().is_some_and(|total| total > 0) {
            break run;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_eq!((&seen["state"], &seen["largestCallTokens"]), (&"running".into(), &90_010.into()));
    assert_eq!(seen["session"], "ours");
    fs::write(place.path().join("go"), "").unwrap();
    assert!(run.wait().unwrap().success());
}

#[test]
fn without_a_known_context_limit_no_risk_is_computed() {
    let script = format!(
        "{WRITE_WHOLE_REPORT}cat <<'END'
{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}
{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"All of it is done.\"}}}}
{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":900000,\"output_tokens\":10}}}}
END
"
    );
    let warned = |options: &[&str]| {
        let place = agent_folder("codex", &script);
        let envelope = supervise(&place, options, &["./codex", "exec", "--json"]).envelope();
        (envelope["warnings"].to_string().contains("no context risk"), read_events(&place))
    };
    assert_eq!(warned(&[]), (true, vec!["started".to_owned(), "succeeded".to_owned()]));
    // The sum of all calls is above the limit, which is only a warning.
    let (is_unknown, events) = warned(&["--limit-tokens", "200000"]);
    assert_eq!(
        (is_unknown, events),
        (false, ["started", "context_risk", "succeeded"].map(str::to_owned).to_vec())
    );
}

#[test]
fn the_output_of_old_runs_is_deleted() {
    let place = agent_folder("agent.sh", WRITE_WHOLE_REPORT);
    let folders = place.path().join("endmark.db-runs");
    for (name, age) in [("run_00000000000a", "40 days ago"), ("run_00000000000b", "1 day ago")] {
        fs::create_dir_all(folders.join(name)).unwrap();
        let touched = Command::new("touch").args(["-d", age]).arg(folders.join(name)).status().unwrap();
        assert!(touched.success());
    }
    assert_eq!(supervise(&place, &[], &["./agent.sh"]).code, 0);
    assert!(!folders.join("run_00000000000a").exists());
    assert!(folders.join("run_00000000000b").exists());
    assert_eq!(fs::read_dir(&folders).unwrap().count(), 2);
}
