//! In every case, the program prints one parseable document, and its exit code matches. (EN-1, EN-5)

#![cfg(unix)]

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::tracker::{Tracker, envelope};

#[test]
fn a_panic_produces_a_document_and_exit_code_70() {
    let run = Tracker::new().run(["crash"]);
    assert_eq!(run.code, 70);
    let error = &run.envelope()["error"];
    assert_eq!(error["code"], "bug");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("main.rs") && message.ends_with("the tracker was asked to crash"), "{message}");
}

#[test]
fn a_signal_produces_a_document_and_its_exit_code() {
    for (signal, code, word) in
        [("TERM", 143, "terminated"), ("INT", 130, "interrupted"), ("HUP", 129, "hung_up")]
    {
        let tracker = Tracker::new();
        let mut child = tracker.command(["wait", "--seconds", "60"]).spawn().unwrap();
        wait_for_signal_thread(child.id());
        let status = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(status.unwrap().success());
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(envelope(&output, code)["error"]["code"], word);
    }
}

/// Waits until the thread that answers signals is running. Before that, a signal would end the process.
fn wait_for_signal_thread(process: u32) {
    let started = Instant::now();
    while std::fs::read_dir(format!("/proc/{process}/task")).unwrap().count() < 2 {
        assert!(started.elapsed() < Duration::from_mins(1), "it does not watch signals");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn invalid_arguments_are_refused() {
    let tracker = Tracker::new();
    let latin = OsString::from_vec(b"caf\xe9".to_vec());
    let run = tracker.run([OsString::from("create"), "--title".into(), latin]);
    assert_eq!((run.code, run.errors.as_str()), (2, ""));
    assert!(run.envelope()["error"]["message"].as_str().unwrap().ends_with("is not UTF-8"));
    for arguments in
        [&[][..], &["nonsense"], &["show"], &["show", "--number", "x"], &["list", "--nonsense", "1"]]
    {
        let run = tracker.run(arguments);
        assert_eq!((run.code, &run.envelope()["error"]["code"]), (2, &"usage".into()), "{arguments:?}");
    }
}

#[test]
fn a_failing_store_produces_a_document() {
    let tracker = Tracker::new();
    std::fs::write(tracker.file(), "this is no database, and longer than its header has to be").unwrap();
    for arguments in [&["list"][..], &["show", "--number", "1"], &["create", "--title", "t"]] {
        let run = tracker.run(arguments);
        assert_eq!((run.code, &run.envelope()["error"]["code"]), (4, &"store".into()));
    }
}

#[test]
fn invalid_utf8_in_the_file_is_a_reported_error() {
    let tracker = Tracker::new();
    tracker.data(["create", "--title", "t"]);
    tracker.sqlite().execute("UPDATE issues SET title = CAST(x'636166e9' AS TEXT)", []).unwrap();
    let run = tracker.run(["show", "--number", "1"]);
    assert_eq!(run.code, 4);
    run.envelope();
}

#[test]
fn a_full_disk_is_reported_as_a_failure() {
    let tracker = Tracker::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let child = tracker.command(["list"]).stdout(full).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.starts_with("error: cannot write the answer after 0 bytes: No space left"), "{errors}");
}

#[test]
fn a_partially_read_answer_changes_the_exit_code() {
    let tracker = Tracker::new();
    tracker.data(["create", "--title", "t", "--body", &"b".repeat(100_000)]);
    let mut child = tracker.command(["list"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let mut child = tracker.command(["show", "--number", "1"]).spawn().unwrap();
    let mut reader = child.stdout.take().unwrap();
    // A pipe holds 64 kB, so the program cannot have written the whole answer yet.
    let mut beginning = [0; 100];
    reader.read_exact(&mut beginning).unwrap();
    drop(reader);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(errors.contains("cannot write the answer after") && errors.contains("Broken pipe"), "{errors}");
}

#[test]
fn an_oversized_answer_is_shortened_with_all_counts() {
    let tracker = Tracker::new();
    let body = "héllo wörld ".repeat(1000);
    tracker.data(["create", "--title", "t", "--body", &body]);
    let run = tracker.run(["show", "--number", "1", "--max-response-bytes", "2000"]);
    assert!(run.output.len() <= 2000, "{}", run.output.len());
    let envelope = run.envelope();
    let kept = envelope["data"]["body"].as_str().unwrap().strip_suffix("…[truncated]").unwrap();
    assert!(body.starts_with(kept));
    let warning = &envelope["warnings"][0];
    assert_eq!(warning["field"], "data.body");
    assert_eq!(warning["returned_bytes"], kept.len());
    assert_eq!(warning["truncated_length"], kept.chars().count());
    assert_eq!(warning["original_bytes"], body.len());
    assert_eq!(warning["original_length"], body.chars().count());
}

#[test]
fn nothing_is_written_without_standard_output() {
    let tracker = Tracker::new();
    let mut command = tracker.command(["list"]);
    let output = command.stdout(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
