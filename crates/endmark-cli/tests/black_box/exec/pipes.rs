//! An answer that cannot be written is not a success. (EN-1)

use std::fs::File;
use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use super::folder_with_manifest;

#[test]
fn a_full_disk_is_a_failure() {
    let place = folder_with_manifest("");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = place.command(&["exec", "--manifest", "tool.toml", "--", "echo", "x"]);
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("cannot write"), "{errors}");
}

#[test]
fn a_closed_reader_is_a_failure_even_after_a_partial_read() {
    for read in [0, 10] {
        let place = folder_with_manifest("");
        // The output exceeds the capacity of a pipe.
        let mut child =
            place.command(&["exec", "--manifest", "tool.toml", "--", "seq", "100000"]).spawn().unwrap();
        let mut beginning = vec![0; read];
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut beginning).unwrap();
        drop(output);
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3), "{errors}");
        assert!(errors.contains("cannot write"), "{errors}");
    }
}

#[test]
fn a_stalled_stderr_reader_delays_nothing() {
    let place = folder_with_manifest("[stderr]\nmax_bytes = 100_000_000\n");
    let script = "head -c 10000000 /dev/zero >&2; echo done";
    let mut child =
        place.command(&["exec", "--manifest", "tool.toml", "--", "sh", "-c", script]).spawn().unwrap();
    let held = child.stderr.take();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(held);
    super::assert_python_reads(answer.as_bytes());
    assert!(answer.contains(r#""text":"done\n""#), "{answer}");
}

#[test]
fn a_stalled_reader_does_not_prevent_termination() {
    let place = folder_with_manifest("");
    // The output exceeds the capacity of a pipe.
    let script = "seq 100000; echo yes > done";
    let mut child =
        place.command(&["exec", "--manifest", "tool.toml", "--", "sh", "-c", script]).spawn().unwrap();
    let held = child.stdout.take();
    let patience = Instant::now() + Duration::from_secs(30);
    while !place.path().join("done").exists() {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        assert!(Instant::now() < patience, "it hears no signal");
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        std::thread::sleep(Duration::from_millis(100));
    };
    drop(held);
    assert_eq!(ended.code(), Some(143));
}

#[test]
fn a_late_stderr_reader_gets_the_number_of_lost_lines() {
    let place = folder_with_manifest("[stderr]\nmax_bytes = 100_000_000\n");
    let script = "head -c 10000000 /dev/zero >&2; echo yes > done";
    let mut child =
        place.command(&["exec", "--manifest", "tool.toml", "--", "sh", "-c", script]).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(30);
    while !place.path().join("done").exists() {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut errors = Vec::new();
    child.stderr.take().unwrap().read_to_end(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let errors = String::from_utf8(errors).unwrap();
    let (shown, note) = errors.split_once("\n[endmark: ").unwrap();
    let omitted: usize = note.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(shown.len() + omitted, 10_000_000, "{note}");
}
