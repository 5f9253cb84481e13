//! `runs resume`: a run whose supervisor was killed continues, and its earlier usage counts.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::agent_run::place;
use crate::run::Place;

/// Records its prompt, uses 100 tokens per attempt, and hangs until released.
///
/// Then it leaves a stub at its first attempt.
const AGENT: &str = r##"cat > told.$ENDMARK_ATTEMPT.$(ls | grep -c ^told)
printf '%s\n' "$@" > arguments
echo '{"type":"system","subtype":"init","session_id":"ours","model":"claude-sonnet-4-5"}'
echo '{"type":"assistant","session_id":"ours","parent_tool_use_id":null,"message":{"id":"m'$$'","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":90,"output_tokens":10}}}'
while ! [ -e go ]; do sleep 0.05; done
if [ $ENDMARK_ATTEMPT = 1 ]; then text=TBD; else text='All is well. The harbour was quiet.'; fi
printf "# Report\n\n## Summary\n\n$text\n" > report.md
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","stop_reason":"end_turn","session_id":"ours"}'
"##;

fn newest(place: &Place) -> Value {
    let listed = place.run(&["runs", "--json"]);
    if listed.code == 0 { listed.envelope()["data"]["runs"][0].clone() } else { Value::Null }
}

/// Starts a run, and kills its supervisor once its agent has used tokens.
fn start_and_kill(place: &Place) -> String {
    let command = ["./claude", "-p", "--output-format", "stream-json"];
    let mut arguments = vec!["run", "--template", "criteria.yaml", "--artifact", "report.md"];
    arguments.extend(["--prompt", "Write the report.", "--max-attempts", "2", "--"]);
    arguments.extend(command);
    let mut supervisor = place.command(&arguments).stdin(Stdio::null()).spawn().unwrap();
    // A run that was killed before does not match.
    let is_at_work = |run: &Value| run["state"] == "running" && run["tokenUsage"]["total"] == 100;
    while !is_at_work(&newest(place)) {
        thread::sleep(Duration::from_millis(50));
    }
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    newest(place)["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_killed_run_resumes_its_session_and_its_allowance() {
    let place = place("claude", AGENT);
    let id = start_and_kill(&place);
    assert_eq!(newest(&place)["reason"], "SUPERVISOR_LOST");
    fs::write(place.path().join("go"), "").unwrap();
    // Resumed from another folder.
    let mut resume = place.command(&["runs", "resume", &id, "--json", "--store", "sqlite:../endmark.db"]);
    fs::create_dir(place.path().join("elsewhere")).unwrap();
    let output = resume.current_dir(place.path().join("elsewhere")).output().unwrap();
    let ran = crate::run::Run::new(&output);
    let envelope = ran.envelope();
    let run = &envelope["data"]["runs"][0];
    assert_eq!(
        (ran.code, &run["id"], &run["state"]),
        (0, &id.as_str().into(), &"succeeded".into()),
        "{envelope}"
    );
    // The killed attempt does not count as an attempt, but its tokens count: three times 100 tokens, two attempts.
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
    let place = place("claude", AGENT);
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
