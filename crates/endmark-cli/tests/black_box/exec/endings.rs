//! The answer reports how a command ended, in every case. (EN-1)

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{checked_envelope, error_codes, exec, folder_with_manifest, warning_about};
use crate::run::{CommandOutput, TestFolder};

fn start_exec(place: &TestFolder, script: &str) -> Child {
    place.command(&["exec", "--manifest", "tool.toml", "--", "sh", "-c", script]).spawn().unwrap()
}

fn wait_for(path: &Path) {
    let patience = Instant::now() + Duration::from_secs(30);
    while std::fs::read(path).map_or(true, |text| text.is_empty()) {
        assert!(Instant::now() < patience, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(signal: &str, process: u32) {
    let kill = format!("kill -{signal} {process}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Whether the process with the id in this file is alive, and not a zombie.
fn is_alive(file: &Path) -> bool {
    let id = std::fs::read_to_string(file).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

fn assert_ends_soon(file: &Path) {
    let patience = Instant::now() + Duration::from_secs(10);
    while is_alive(file) {
        assert!(Instant::now() < patience, "it is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn exit_codes_are_errors_as_defined_by_the_manifest() {
    let place = folder_with_manifest(
        "[exit_codes]\n1 = \"ok\"\n4 = \"absent\"\n5 = { error = \"busy\", exit_code = 1, message = \"in use\", hint = \"Wait.\" }\n",
    );
    let run = |script: &str| exec(&place, &["sh", "-c", script]);
    assert_eq!(run("echo fine; exit 1")["data"], json!({"text": "fine\n"}));
    assert_eq!(error_codes(&run("exit 4")), ("absent", 3));
    let busy = run("exit 5");
    assert_eq!(error_codes(&busy), ("busy", 1));
    assert_eq!((&busy["error"]["message"], &busy["error"]["hint"]), (&json!("in use"), &json!("Wait.")));
    let failed = run("echo half; echo 'no such \x1b[31mthing' >&2; exit 9");
    assert_eq!(error_codes(&failed), ("command_failed", 3));
    assert_eq!((&failed["error"]["actual"], &failed["error"]["field"]), (&json!(9), &json!("exit_code")));
    assert_eq!(failed["error"]["phase"], "execution");
    assert_eq!(failed["data"]["text"], "half\n");
    let hint = failed["error"]["hint"].as_str().unwrap();
    assert_eq!(hint, "Its standard error ends with: no such \\u{1b}[31mthing");
}

#[test]
fn standard_error_is_forwarded_up_to_its_limit() {
    let place = folder_with_manifest("[stderr]\nmax_bytes = 10\n");
    let script = "for i in 1 2 3 4 5 6; do echo $i$i$i$i >&2; sleep 0.02; done";
    let run = place.run(&["exec", "--manifest", "tool.toml", "--", "sh", "-c", script]);
    assert_eq!(run.errors, "1111\n2222\n\n[endmark: 20 more bytes of standard error not shown]\n");
    assert_eq!(checked_envelope(&run)["ok"], true);
}

#[test]
fn a_command_that_cannot_start_reports_the_reason() {
    let place = folder_with_manifest("").with_file("plain.txt", "text").with_file("empty", "");
    assert_eq!(error_codes(&exec(&place, &["no-such-command-here"])), ("not_found", 3));
    assert_eq!(error_codes(&exec(&place, &["./plain.txt"])), ("not_executable", 3));
    assert_eq!(error_codes(&exec(&place, &["."])), ("not_executable", 3));
}

#[test]
fn a_command_killed_by_a_signal_is_a_failure() {
    let place = folder_with_manifest("[output]\nkind = \"json\"\n");
    let answer = exec(&place, &["sh", "-c", "printf '[1, \"ab'; kill -SEGV $$"]);
    assert_eq!(error_codes(&answer), ("killed", 3));
    assert_eq!(answer["error"]["message"], "`sh` was killed by SIGSEGV");
    assert_eq!(answer["data"], json!([1, "ab…[truncated]"]));
    assert_eq!(warning_about(&answer, "data[1]")["returned_bytes"], 2);
    assert_eq!(answer["meta"]["truncated"], true);
}

#[test]
fn a_slow_command_is_terminated_and_then_killed_with_its_children() {
    let place = folder_with_manifest("timeout_seconds = 0.5\ngrace_seconds = 0.3\n");
    let stubborn = "trap '' TERM; (trap '' TERM; exec >/dev/null 2>&1; echo $$ > /dev/null; \
                    sh -c 'echo $PPID' > inner; while :; do sleep 0.1; done) & \
                    echo $$ > outer; echo begun; while :; do sleep 0.1; done";
    let answer = exec(&place, &["sh", "-c", stubborn]);
    assert_eq!(error_codes(&answer), ("timeout", 3));
    assert_eq!(answer["data"]["text"], "begun\n…[truncated]");
    assert_eq!(warning_about(&answer, "data.text")["returned_bytes"], 6);
    assert_ends_soon(&place.path().join("outer"));
    assert_ends_soon(&place.path().join("inner"));
    // A process that handles SIGTERM can still print something.
    let polite = "trap 'echo tidy; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    let answer = exec(&place, &["sh", "-c", polite]);
    assert_eq!(error_codes(&answer), ("timeout", 3));
    assert_eq!(answer["data"]["text"], "begun\ntidy\n…[truncated]");
}

#[test]
fn no_process_of_a_terminated_command_survives() {
    let place = folder_with_manifest("timeout_seconds = 0.5\n");
    let script = "(trap '' TERM; exec >/dev/null 2>&1; sh -c 'echo $PPID' > inner; while :; do sleep 0.1; done) & \
                  while [ ! -s inner ]; do sleep 0.01; done; trap 'exit 0' TERM; while :; do sleep 0.05; done";
    assert_eq!(error_codes(&exec(&place, &["sh", "-c", script])), ("timeout", 3));
    assert_ends_soon(&place.path().join("inner"));
}

#[test]
fn a_signal_is_forwarded_and_answered() {
    for (signal, word, code) in
        [("TERM", "terminated", 143), ("INT", "interrupted", 130), ("HUP", "hung_up", 129)]
    {
        let place = folder_with_manifest("grace_seconds = 20\n");
        let script = "trap 'echo tidy; exit 0' TERM INT HUP; echo begun; echo $$ > started; while :; do sleep 0.05; done";
        let child = start_exec(&place, script);
        wait_for(&place.path().join("started"));
        send(signal, child.id());
        let run = CommandOutput::new(&child.wait_with_output().unwrap());
        let answer = checked_envelope(&run);
        assert_eq!((error_codes(&answer), run.code), ((word, code), i32::try_from(code).unwrap()));
        assert_eq!(answer["data"]["text"], "begun\ntidy\n…[truncated]", "{signal}");
        assert!(
            answer["error"]["message"].as_str().unwrap().starts_with(&format!("SIG{signal} was received"))
        );
    }
}

#[test]
fn a_second_signal_kills_immediately() {
    let place = folder_with_manifest("grace_seconds = 600\n");
    let script = "trap 'echo x > asked' TERM; echo $$ > started; while :; do sleep 0.05; done";
    let child = start_exec(&place, script);
    wait_for(&place.path().join("started"));
    send("TERM", child.id());
    wait_for(&place.path().join("asked"));
    send("TERM", child.id());
    let run = CommandOutput::new(&child.wait_with_output().unwrap());
    assert_eq!(error_codes(&checked_envelope(&run)), ("terminated", 143));
    assert_ends_soon(&place.path().join("started"));
}

#[test]
fn a_signal_before_the_command_starts_is_answered() {
    let place = folder_with_manifest("[stdin]\nmax_bytes = 10\n");
    let mut child = start_exec(&place, "echo never > started");
    let held = child.stdin.take();
    // Wait until the command watches signals, because before that a signal ends it immediately.
    let mut stat = String::new();
    let patience = Instant::now() + Duration::from_secs(30);
    while !stat.lines().any(|line| line.starts_with("SigCgt:") && line.ends_with(|digit| digit != '0')) {
        assert!(Instant::now() < patience);
        stat = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = stat.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
        if u64::from_str_radix(caught.trim(), 16).is_ok_and(|caught| caught & (1 << 14) != 0) {
            break;
        }
    }
    send("TERM", child.id());
    let run = CommandOutput::new(&child.wait_with_output().unwrap());
    drop(held);
    let answer = checked_envelope(&run);
    assert_eq!(
        (error_codes(&answer), &answer["error"]["phase"]),
        (("terminated", 143), &json!("validation"))
    );
    assert!(!place.path().join("started").exists());
}

#[test]
fn a_command_that_closes_its_output_early_is_waited_for() {
    let place = folder_with_manifest("");
    let answer = exec(&place, &["sh", "-c", "echo early; exec >&- 2>&-; sleep 0.3; exit 7"]);
    assert_eq!((error_codes(&answer), &answer["error"]["actual"]), (("command_failed", 3), &json!(7)));
    assert_eq!(answer["data"]["text"], "early\n");
}

#[test]
fn a_background_process_that_holds_the_pipe_is_not_waited_for() {
    let place = folder_with_manifest("timeout_seconds = 600\n");
    let script = "setsid sh -c 'echo $$ > daemon; exec sleep 600' & while [ ! -s daemon ]; do sleep 0.01; done; echo done";
    let answer = exec(&place, &["sh", "-c", script]);
    assert_eq!((&answer["ok"], &answer["data"]["text"]), (&json!(true), &json!("done\n")));
    assert_eq!(answer["warnings"][0]["code"], "OUTPUT_LEFT_OPEN");
    let daemon = std::fs::read_to_string(place.path().join("daemon")).unwrap();
    assert!(is_alive(&place.path().join("daemon")), "it was left alone");
    send("KILL", daemon.trim().parse().unwrap());
    // The output of a leftover process is read as long as it writes.
    let script = "(for i in 1 2 3 4 5 6; do sleep 0.3; echo $i; done) & echo 0";
    let answer = exec(&place, &["sh", "-c", script]);
    assert_eq!((&answer["data"]["text"], &answer["warnings"]), (&json!("0\n1\n2\n3\n4\n5\n6\n"), &json!([])));
}

#[test]
fn a_background_writer_is_read_only_until_the_time_limit() {
    let place = folder_with_manifest("timeout_seconds = 2\n");
    let script = "(while :; do echo x; sleep 0.2; done) & echo $! > daemon; echo hi";
    let started = Instant::now();
    let answer = exec(&place, &["sh", "-c", script]);
    assert!(started.elapsed() < Duration::from_secs(30));
    // The leftover process has no reader any more, so it may already have ended.
    let left = std::fs::read_to_string(place.path().join("daemon")).unwrap();
    Command::new("sh").args(["-c", &format!("kill -KILL {left}")]).status().unwrap();
    let text = answer["data"]["text"].as_str().unwrap();
    assert!(text.contains("hi\n") && text.ends_with("x\n…[truncated]"), "{text}");
    let codes: Vec<_> = answer["warnings"].as_array().unwrap().iter().map(|found| &found["code"]).collect();
    assert_eq!(codes, ["FIELD_TRUNCATED", "OUTPUT_LEFT_OPEN"]);
    assert_eq!((&answer["ok"], &answer["meta"]["truncated"]), (&json!(true), &json!(true)));
}

#[test]
fn a_known_cut_with_a_marker_is_reported_once() {
    let place = folder_with_manifest("timeout_seconds = 0.5\n");
    let answer = exec(&place, &["sh", "-c", "printf 'caf\\303'; exec sleep 9"]);
    assert_eq!(
        (error_codes(&answer), &answer["data"]["text"]),
        (("timeout", 3), &json!("caf\u{fffd}…[truncated]"))
    );
    let cut = warning_about(&answer, "data.text");
    assert_eq!((&cut["returned_bytes"], &cut["truncated_length"]), (&json!(6), &json!(4)));
    let place = folder_with_manifest(
        "[output]\nkind = \"json\"\n[[output.fields]]\npath = \"data.title\"\nbytes_field = \"title_bytes\"\n",
    );
    for (end, shown) in [("", "abc…[truncated]"), ("...", "abc...…[truncated]")] {
        let json = format!(r#"{{"title_bytes":600,"title":"abc{end}"#);
        let answer = exec(&place, &["printf", "%s", &json]);
        assert_eq!((error_codes(&answer), &answer["data"]["title"]), (("truncated", 1), &json!(shown)));
        let cut = warning_about(&answer, "data.title");
        assert_eq!((&cut["returned_bytes"], &cut["original_bytes"]), (&json!(3 + end.len()), &json!(600)));
    }
}

#[test]
fn the_beginning_of_json_is_distinguished_from_text() {
    let place = folder_with_manifest("");
    for cut in ["{\"a\": [1, 2", "[{\"title\": \"Har\n", "{\"a\":1}\n{\"a\":"] {
        let answer = exec(&place, &["printf", "%s", cut]);
        assert_eq!((&answer["ok"], &answer["meta"]["truncated"]), (&json!(true), &json!(true)), "{cut}");
        assert_eq!(answer["data"]["text"], format!("{cut}…[truncated]"));
        assert_eq!(warning_about(&answer, "data.text")["returned_bytes"], cut.len());
    }
    for text in ["[info] started", "[1] 45", "{x", "{\"a\": 1} and more"] {
        let answer = exec(&place, &["printf", "%s", text]);
        assert_eq!((&answer["data"]["text"], &answer["warnings"]), (&json!(text), &json!([])));
    }
}

#[test]
fn binary_bytes_are_reported_and_kept() {
    let place = folder_with_manifest("");
    let answer = exec(&place, &["printf", "a\\377\\376b\\000c"]);
    assert_eq!(answer["data"], json!({"text": "a\u{fffd}\u{fffd}b\u{0}c", "base64": "Yf/+YgBj"}));
    assert_eq!(answer["warnings"][0]["code"], "INVALID_UTF8");
    // Data that does not fit is omitted, not cut in the middle.
    let small = folder_with_manifest("[output]\nmax_response_bytes = 15_000\n");
    let answer = exec(&small, &["sh", "-c", "printf '\\377'; head -c 6000 /dev/zero | tr '\\0' x"]);
    assert_eq!((&answer["data"]["base64"], &answer["meta"]["truncated"]), (&Value::Null, &json!(false)));
    let half = exec(&place, &["printf", "caf\\303"]);
    assert_eq!(half["meta"]["truncated"], true);
    assert_eq!(warning_about(&half, "data.text")["code"], "FIELD_TRUNCATED");
}

#[test]
fn standard_input_reaches_the_command_whole() {
    let text = "line é\n".repeat(100_000);
    for manifest in ["", "[stdin]\nmax_bytes = 10_000_000\n"] {
        let place = folder_with_manifest(manifest);
        let answer: Value = super::exec_with(&place, "tool.toml", &["sha256sum"], &text);
        let direct = TestFolder::new();
        std::fs::write(direct.path().join("text"), &text).unwrap();
        let sum = Command::new("sha256sum").arg(direct.path().join("text")).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        assert_eq!(answer["data"]["text"].as_str().unwrap()[..64], sum[..64]);
    }
}
