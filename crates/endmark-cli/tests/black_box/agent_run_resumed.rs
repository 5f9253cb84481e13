//! `runs resume`: a run whose supervisor was killed continues, and its earlier usage counts.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::agent_run::agent_folder;
use crate::run::TestFolder;

/// Stores its prompt, uses 100 tokens per attempt, and hangs until it is released.
///
/// After its first attempt it leaves a stub.
const AGENT_SCRIPT: &str = r##"cat > told.$ENDMARK_ATTEMPT.$(ls | grep -c ^told)
printf '%s\n' "$@" > arguments
echo '{"type":"system","subtype":"init","session_id":"ours","model":"claude-sonnet-4-5"}'
echo '{"type":"assistant","session_id":"ours","parent_tool_use_id":null,"message":{"id":"m'$$'","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":90,"output_tokens":10}}}'
while ! [ -e go ]; do sleep 0.05; done
if [ $ENDMARK_ATTEMPT = 1 ]; then text=TBD; else text='All is well. The harbour was quiet.'; fi
printf "# Report\n\n## Summary\n\n$text\n" > report.md
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","stop_reason":"end_turn","session_id":"ours"}'
"##;

fn newest_run(place: &TestFolder) -> Value {
    let listed = place.run(&["runs", "--json"]);
    if listed.code == 0 { listed.envelope()["data"]["runs"][0].clone() } else { Value::Null }
}

/// Starts a run, and kills its supervisor after the agent has used tokens.
fn start_and_kill(place: &TestFolder) -> String {
    let command = ["./claude", "-p", "--output-format", "stream-json"];
    let mut arguments = vec!["run", "--template", "criteria.yaml", "--artifact", "report.md"];
    arguments.extend(["--prompt", "Write the report.", "--max-attempts", "2", "--"]);
    arguments.extend(command);
    let mut supervisor = place.command(&arguments).stdin(Stdio::null()).spawn().unwrap();
    // The condition excludes runs that were killed before.
    let is_at_work = |run: &Value| run["state"] == "running" && run["tokenUsage"]["total"] == 100;
    while !is_at_work(&newest_run(place)) {
        thread::sleep(Duration::from_millis(50));
    }
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    newest_run(place)["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_killed_run_resumes_its_session_within_its_remaining_limits() {
    let place = agent_folder("claude", AGENT_SCRIPT);
    let id = start_and_kill(&place);
    assert_eq!(newest_run(&place)["reason"], "SUPERVISOR_LOST");
    fs::write(place.path().join("go"), "").unwrap();
    // Resume the run from another folder.
    let mut resume = place.command(&["runs", "resume", &id, "--json", "--store", "sqlite:../endmark.db"]);
    fs::create_dir(place.path().join("elsewhere")).unwrap();
    let output = resume.current_dir(place.path().join("elsewhere")).output().unwrap();
    let ran = crate::run::CommandOutput::new(&output);
    let envelope = ran.envelope();
    let run = &envelope["data"]["runs"][0];
    assert_eq!(
        (ran.code, &run["id"], &run["state"]),
        (0, &id.as_str().into(), &"succeeded".into()),
        "{envelope}"
    );
    // The killed attempt is not counted, but its tokens are: 3 × 100 tokens for 2 attempts.
    assert_eq!((&run["attempt"], &run["tokenUsage"]["total"]), (&2.into(), &300.into()));
    assert_eq!(fs::read_to_string(place.path().join("told.1.0")).unwrap(), "Write the report.");
    let prompt = fs::read_to_string(place.path().join("told.1.1")).unwrap();
    assert!(
        prompt.contains("`report.md` is not finished (attempt 1 of 2)") && prompt.contains("supervisor"),
        "{prompt}"
    );
    assert!(fs::read_to_string(place.path().join("arguments")).unwrap().contains("--resume\nours\n"));
    let again = place.run(&["runs", "resume", &id]);
    assert_eq!(again.code, 2);
    assert!(again.errors.contains("cannot be resumed"), "{}", again.errors);
}

#[test]
fn resuming_all_skips_runs_with_a_newer_run_of_the_artifact() {
    let place = agent_folder("claude", AGENT_SCRIPT);
    let (first, second) = (start_and_kill(&place), start_and_kill(&place));
    assert_ne!(first, second);
    fs::write(place.path().join("go"), "").unwrap();
    let envelope = place.run(&["runs", "resume", "--all", "--json"]).envelope();
    let runs = envelope["data"]["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["id"].as_str().unwrap()).collect::<Vec<_>>(), [second]);
    assert_eq!(
        place.run(&["runs", "resume", "--all", "--json"]).envelope()["data"]["runs"],
        serde_json::json!([])
    );
    assert_eq!(place.run(&["runs", "resume"]).code, 2);
}
