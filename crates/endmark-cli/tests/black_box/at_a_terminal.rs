//! Output at a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use testkit::Request;

use crate::agent_run;
use crate::log;
use crate::run::TestFolder;
use crate::serve::in_runtime;

/// Opens a new terminal. Returns its screen side and its process side.
fn open_terminal() -> (File, File) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let path = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
    (File::from(screen), OpenOptions::new().read(true).write(true).open(path).unwrap())
}

/// Reads until `text` appears, or until the end.
fn read_until(screen: &mut File, screen_text: &mut String, text: &str) {
    let mut bytes = [0; 1024];
    while !screen_text.contains(text) {
        // After the last process closes a terminal, reading from it fails.
        match screen.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(read) => screen_text.push_str(&String::from_utf8_lossy(&bytes[..read])),
        }
    }
}

#[test]
fn serve_prints_its_address_and_logs_in_colour() {
    let place = TestFolder::new();
    let (mut screen, process) = open_terminal();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9/v1"];
    let mut command = place.command(&arguments);
    command.env("TERM", "xterm").stdin(process.try_clone().unwrap()).stderr(process).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut screen_text = String::new();
    read_until(&mut screen, &mut screen_text, "Ctrl-C stops.");
    let listens = concat!("Endmark ", env!("CARGO_PKG_VERSION"), " listens on http://");
    assert!(screen_text.starts_with(listens), "{screen_text}");
    let address = screen_text.split("http://").nth(1).unwrap().split(". ").next().unwrap();
    assert!(screen_text.contains(&format!("export OPENAI_BASE_URL=http://{address}/v1")), "{screen_text}");
    let near = format!("export ANTHROPIC_BASE_URL=http://{address}");
    assert!(
        screen_text.contains(&near),
        "a server on this machine gets requests of every format: {screen_text}"
    );
    let address = address.parse().unwrap();
    in_runtime(async move {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]});
        Request::post(address, "/v1/chat/completions").json(&body).send().await.read().await;
    });
    read_until(&mut screen, &mut screen_text, "cannot be reached");
    assert!(screen_text.contains("\u{1b}["), "a line of the log has colours: {screen_text}");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    read_until(&mut screen, &mut screen_text, "\0");
    assert_eq!(child.wait().unwrap().code(), Some(0), "{screen_text}");
    assert!(!screen_text.contains("panicked") && !screen_text.contains("feature"), "{screen_text}");
}

#[test]
fn printed_text_is_escaped_and_ends_with_a_newline() {
    let text = "a\u{202e}b\u{1b}[2Jc\u{9b}d";
    let place = TestFolder::new().with_file("text.txt", text);
    let (mut screen, process) = open_terminal();
    let mut command = place.command(&["cap", "--no-store", "text.txt"]);
    command.stdin(Stdio::null()).stdout(process).stderr(Stdio::null());
    let mut cap = command.spawn().unwrap();
    drop(command);
    let mut screen_text = String::new();
    read_until(&mut screen, &mut screen_text, "\0");
    assert_eq!(cap.wait().unwrap().code(), Some(0));
    assert_eq!(screen_text, "a\\u{202e}b\\u{1b}[2Jc\\u{9b}d\r\n");
    // Through a pipe every byte is unchanged.
    assert_eq!(place.run(&["cap", "--no-store", "text.txt"]).output, text);
}

/// Returns the output of a command at a terminal that does not report its size.
fn run_at_terminal(place: &TestFolder, arguments: &[&str], input: Stdio) -> String {
    let (mut screen, process) = open_terminal();
    let mut command = place.command(arguments);
    command.stdin(input).stdout(process).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut screen_text = String::new();
    read_until(&mut screen, &mut screen_text, "\0");
    assert_eq!(child.wait().unwrap().code(), Some(0), "{screen_text}");
    screen_text
}

#[test]
fn binary_and_json_output_is_escaped_at_a_terminal() {
    let place = TestFolder::new();
    let kept =
        place.run_with_input(&["cap", "--json", "--max-chars", "100"], [&b"a\x1b[2J\xff\n"[..]; 99].concat());
    let handle = kept.envelope()["data"]["handle"].as_str().unwrap().to_owned();
    let read = ["read", &handle, "--bytes", "0:6"];
    assert_eq!(run_at_terminal(&place, &read, Stdio::null()), "a\\u{1b}[2J\u{fffd}\r\n");
    let piped = place.command(&read).output().unwrap();
    assert_eq!(piped.stdout, b"a\x1b[2J\xff");

    let place = place.with_file("line", "{\"id\": \"a\u{202e}b\u{9b}2J\", \"text\": \"x\"}\n");
    let batch = ["detect", "--batch"];
    let line = || Stdio::from(File::open(place.path().join("line")).unwrap());
    let screen_text = run_at_terminal(&place, &batch, line());
    assert!(screen_text.contains(r#""a\u202eb\u009b2J""#), "{screen_text}");
    let piped = place.command(&batch).stdin(line()).output().unwrap();
    assert!(String::from_utf8(piped.stdout).unwrap().contains("\"a\u{202e}b\u{9b}2J\""));
    let place = place.with_file("text", "a\u{202e}b");
    let screen_text = run_at_terminal(&place, &["cap", "--json", "--no-store", "text"], Stdio::null());
    assert!(screen_text.contains(r"a\u202eb") && !screen_text.contains('\u{202e}'), "{screen_text}");
}

#[test]
fn watched_runs_are_redrawn_in_place() {
    let script = "while ! [ -e go ]; do sleep 0.1; done\nprintf '# Report\\n\\n## Summary\\n\\nAll is well.\\n' > report.md\n";
    let place = agent_run::agent_folder("agent.sh", script);
    let arguments = ["run", "--template", "criteria.yaml", "--artifact", "report.md", "--", "./agent.sh"];
    let mut run = place.command(&arguments).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !place.run(&["runs", "--json"]).output.contains("\"running\"") {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let (mut screen, process) = open_terminal();
    let mut command = place.command(&["runs", "watch", "--until-idle"]);
    command.env("TERM", "xterm").stdin(Stdio::null()).stdout(process).stderr(Stdio::null());
    let mut watch = command.spawn().unwrap();
    drop(command);
    let mut screen_text = String::new();
    read_until(&mut screen, &mut screen_text, "running");
    std::fs::write(place.path().join("go"), "").unwrap();
    read_until(&mut screen, &mut screen_text, "succeeded");
    assert!(screen_text.contains("1/3") && screen_text.contains("report.md"), "{screen_text}");
    assert!(screen_text.contains("\u{1b}[2A"), "the head and one run are drawn over: {screen_text}");
    assert_eq!((run.wait().unwrap().code(), watch.wait().unwrap().code()), (Some(0), Some(0)));
}

/// Returns the output of a command at a terminal of this width.
fn run_at_width(place: &TestFolder, columns: u16, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let (mut screen, process) = open_terminal();
    // Like `stty cols 80`, which sets only the columns.
    let size = Winsize { ws_col: columns, ws_row: 0, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&process, size).unwrap();
    let mut command = place.command(arguments);
    command.env("TERM", "xterm").envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(process).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut screen_text = String::new();
    read_until(&mut screen, &mut screen_text, "\0");
    assert!(child.wait().unwrap().success(), "{screen_text}");
    screen_text
}

#[test]
fn tables_fit_the_terminal_and_colours_can_be_disabled() {
    let model = "a-model-whose-name-is-longer-than-any-terminal-".repeat(400);
    let place = log::recorded_store_for(&model);
    let commands: [&[&str]; 3] =
        [&["log"], &["usage", "--since", "3650d", "--by", "model"], &["report", "--since", "3650d"]];
    for command in commands {
        for columns in [80, 120] {
            let screen_text = run_at_width(&place, columns, &[("NO_COLOR", "1")], command);
            assert!(!screen_text.contains('\u{1b}'), "{screen_text}");
            assert!(screen_text.contains('…'), "{screen_text}");
            let table = screen_text.lines().filter(|line| line.contains('…'));
            for line in table {
                assert!(line.chars().count() <= usize::from(columns), "{columns}: {line}");
            }
        }
        assert!(run_at_width(&place, 80, &[], command).contains("\u{1b}["), "{command:?}");
        // Output to a pipe has no width limit, but long cells are still shortened.
        let output = place.run(command).output;
        assert!(output.lines().all(|line| line.chars().count() < 300), "{output}");
    }
}

#[test]
fn long_work_shows_progress_and_erases_it() {
    let place = TestFolder::new();
    let (mut screen, process) = open_terminal();
    let mut command = place.command(&["detect"]);
    command.env("TERM", "xterm").stderr(process).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut screen_text = String::new();
    read_until(&mut screen, &mut screen_text, "MB read");
    assert!(screen_text.starts_with("\r\u{1b}[Kdetect: 0 MB read, "), "{screen_text:?}");
    drop(child.stdin.take());
    read_until(&mut screen, &mut screen_text, "\0");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(screen_text.ends_with("\r\u{1b}[K"), "{screen_text:?}");
}

#[test]
fn a_batch_shows_progress_if_its_answers_go_elsewhere() {
    let text = "one two three ".repeat(100_000);
    let line = format!("{}\n", serde_json::json!({"id": 1, "text": text, "format": "text"}));
    let place = TestFolder::new();
    let (mut screen, process) = open_terminal();
    let mut command = place.command(&["detect", "--batch"]);
    command.env("TERM", "xterm").stdin(Stdio::piped()).stderr(process).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut input = child.stdin.take().unwrap();
    let write = std::thread::spawn(move || {
        input.write_all(line.as_bytes()).unwrap();
        // The line appears after two seconds.
        std::thread::sleep(std::time::Duration::from_millis(2_600));
        input.write_all(line.as_bytes()).unwrap();
    });
    let mut screen_text = String::new();
    read_until(&mut screen, &mut screen_text, "\0");
    write.join().unwrap();
    child.wait().unwrap();
    assert!(
        screen_text.starts_with("\r\u{1b}[Kdetect: 1 MB read, ") && screen_text.ends_with("\r\u{1b}[K"),
        "{screen_text:?}"
    );
}

#[test]
fn a_global_stop_hook_is_written_only_after_confirmation() {
    for (answer, is_written) in [("y\n", true), ("\n", false)] {
        let place = TestFolder::new();
        let (mut screen, process) = open_terminal();
        let mut command =
            place.command(&["hook", "install", "--agent", "claude", "stop", "--artifact", "report.md"]);
        command.stdin(process.try_clone().unwrap()).stderr(process).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut screen_text = String::new();
        read_until(&mut screen, &mut screen_text, "[y/N]");
        assert!(screen_text.contains("in every project"), "{screen_text}");
        std::io::Write::write_all(&mut screen, answer.as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(if is_written { 0 } else { 2 }));
        assert_eq!(place.path().join(".claude/settings.json").exists(), is_written);
    }
}
