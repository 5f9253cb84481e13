//! A process that is killed with `kill -9` in the middle of its writes loses no cut reply (PC-7).
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use endmark_store::{
    CutSettled, CutStarted, FinalStatus, LogFilter, NoSecrets, Reader, Store, StoreLocation,
};

const CHILD_STORE_VARIABLE: &str = "ENDMARK_TEST_STORE_OF_CHILD";
/// Environment variable with the number of kills. The default is five.
const KILLS_VARIABLE: &str = "ENDMARK_TEST_KILLS";
const TEST: &str = "a_killed_process_loses_no_cut_and_logs_none_twice";

/// The test starts its own program as the process that is killed.
#[test]
fn a_killed_process_loses_no_cut_and_logs_none_twice() {
    if let Some(path) = env::var_os(CHILD_STORE_VARIABLE) {
        write_until_killed(&StoreLocation::sqlite(path));
        return;
    }
    let kills = env::var(KILLS_VARIABLE).map_or(5, |kills| kills.parse().expect("a number of kills"));
    for lines_before_kill in [1, 2, 17, 100, 400].into_iter().cycle().take(kills) {
        kill_after(lines_before_kill);
    }
}

fn kill_after(lines_before_kill: usize) {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(CHILD_STORE_VARIABLE, location.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Requests that the child reported as begun, each with whether it was also reported as settled.
    let mut reported: BTreeMap<String, bool> = BTreeMap::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut note = |line: String| match line.split_once(' ') {
        Some(("begun", id)) => reported.insert(id.to_owned(), false).is_none(),
        Some(("settled", id)) => reported.insert(id.to_owned(), true) == Some(false),
        _ => false,
    };
    let mut noted = 0;
    while noted < lines_before_kill {
        noted += usize::from(note(lines.next().expect("the child goes on until it is killed")));
    }
    // Another gateway on the same file must not treat the replies in progress as interrupted.
    let beside = Store::open(&location).unwrap();
    let exhausted = LogFilter { final_status: Some(FinalStatus::Exhausted), ..LogFilter::default() };
    assert_eq!(beside.recent(9, &exhausted).unwrap(), []);
    drop(beside);

    child.kill().unwrap();
    child.wait().unwrap();
    for line in lines {
        note(line);
    }
    assert!(count_owner_files(folder.path()) > 0, "it had no time to tidy up");
    drop(Store::open(&location).unwrap());
    assert_eq!(count_owner_files(folder.path()), 0);

    let reader = Reader::open(&location).unwrap();
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
    let rows = reader.recent(u32::MAX, &LogFilter::default()).unwrap();
    let mut logged: BTreeMap<String, FinalStatus> = BTreeMap::new();
    for row in rows {
        let twice = logged.insert(row.request_id.clone(), row.final_status);
        assert_eq!(twice, None, "{} is logged twice", row.request_id);
        if row.final_status == FinalStatus::Exhausted {
            assert_eq!((row.outcome.as_str(), row.initial_chunk_length), ("interrupted", Some(44)));
        }
    }
    assert!(logged.values().any(|status| *status == FinalStatus::Exhausted));
    for (id, settled) in reported {
        let status = logged.get(&id).copied();
        assert!(status.is_some(), "{id} was begun and is lost");
        if settled {
            assert_eq!(status, Some(FinalStatus::Resolved), "{id}");
        }
    }
}

fn count_owner_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("-owner-")).count()
}

/// Eight tasks begin cuts and settle two of three. They report each commit after it happened.
fn write_until_killed(location: &StoreLocation) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let store = Store::open(location).unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8).map(|task| tokio::spawn(write_cuts(store.clone(), task))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn write_cuts(store: Store, task: u32) {
    // Without this line, the first report would be appended to the test runner's unfinished line.
    report_line("");
    for number in 0..1_000_000 {
        let request_id = format!("{task}-{number}");
        let id = store
            .recorder(NoSecrets)
            .begin_cut(CutStarted {
                request_id: request_id.clone(),
                slot: "choice 0".to_owned(),
                task_id: "task".to_owned(),
                turn_number: number,
                truncation_index: Some(40),
                initial_chunk_length: 44,
                model: "m".to_owned(),
                provider: "p".to_owned(),
                cut_kind: "limit".to_owned(),
            })
            .await
            .unwrap();
        report_line(&format!("begun {request_id}"));
        if number % 3 == 0 {
            continue;
        }
        let settled = CutSettled {
            final_status: FinalStatus::Resolved,
            resume_attempts: 1,
            outcome: "resumed".to_owned(),
            seam_style: None,
            extra_prompt_tokens: 1,
            extra_output_tokens: 1,
            reason: "whole".to_owned(),
            pieces: Vec::new(),
        };
        store.recorder(NoSecrets).settle_cut(id, settled).await.unwrap();
        report_line(&format!("settled {request_id}"));
    }
}

fn report_line(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
