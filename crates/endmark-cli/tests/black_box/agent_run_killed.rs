//! The supervisor is killed at a random moment. No run is lost, no process survives, and the artifact is
//! unchanged.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::agent_run::agent_folder;

/// Number of kills, unless `ENDMARK_TEST_RUN_KILLS` is set.
const DEFAULT_KILLS: usize = 20;
/// Number of concurrent supervisors.
const CONCURRENT_SUPERVISORS: usize = 5;
/// Latest moment of a kill, in milliseconds. By then the agent is working.
const LATEST_KILL_MILLISECONDS: u64 = 600;
/// Far longer than the two seconds that the product needs.
const TIMEOUT: Duration = Duration::from_mins(1);
const ARTIFACT: &str = "# Report\n\nAs it was.\n";
/// Neither process of the agent ends on a signal other than SIGKILL.
const AGENT_SCRIPT: &str = "trap '' TERM INT HUP
echo here > started
(while :; do sleep 1; done) &
while :; do sleep 1; done
";

#[test]
fn a_killed_supervisor_leaves_no_process_and_loses_no_data() {
    let kills = std::env::var("ENDMARK_TEST_RUN_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(DEFAULT_KILLS);
    let threads: Vec<_> = (0..CONCURRENT_SUPERVISORS)
        .map(|first| {
            thread::spawn(move || {
                (first..kills)
                    .step_by(CONCURRENT_SUPERVISORS)
                    .map(kill_once)
                    .filter(|started| *started)
                    .count()
            })
        })
        .collect();
    let started: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    // If no agent was started before its supervisor was killed, the test proves nothing.
    assert!(started > 0, "no agent was started in {kills} runs");
}

/// Kills one supervisor. Returns whether its agent had been started.
fn kill_once(number: usize) -> bool {
    let mark = format!("endmark-test-{}-{number}", std::process::id());
    let place =
        agent_folder("agent.sh", AGENT_SCRIPT).with_file("report.md", ARTIFACT).with_variable("MARK", &mark);
    let arguments = ["run", "--template", "criteria.yaml", "--artifact", "report.md", "--", "./agent.sh"];
    let mut supervisor = place
        .command(&arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Spread the kills over the time, at moments that differ between test runs.
    let spread = u64::try_from(number).unwrap() * 7_919 + u64::from(std::process::id()) * 31;
    let moment = spread % LATEST_KILL_MILLISECONDS;
    thread::sleep(Duration::from_millis(moment));
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();

    let started = Instant::now();
    while !marked_processes(&mark).is_empty() {
        assert!(
            started.elapsed() < TIMEOUT,
            "left after a kill at {moment} ms: {:?}",
            marked_processes(&mark)
        );
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(fs::read_to_string(place.path().join("report.md")).unwrap(), ARTIFACT);
    let was_started = place.path().join("started").exists();
    let listed = place.run(&["runs", "--json"]);
    if listed.code != 0 {
        // Without a store no agent was started.
        assert!(!was_started, "{}", listed.output);
        return false;
    }
    let envelope = listed.envelope();
    let runs = envelope["data"]["runs"].as_array().unwrap();
    assert!(!was_started || runs.len() == 1, "{runs:?}");
    for run in runs {
        assert_eq!((&run["state"], &run["reason"]), (&"failed".into(), &"SUPERVISOR_LOST".into()));
    }
    was_started
}

/// Returns the processes with this mark in their environment.
fn marked_processes(mark: &str) -> Vec<String> {
    let mark = format!("MARK={mark}\0");
    let has_mark = |path: &std::path::Path| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|part| part == mark.as_bytes())
    };
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    processes.filter(|path| has_mark(path)).map(|path| path.display().to_string()).collect()
}
