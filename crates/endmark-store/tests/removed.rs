//! If the files of an open store are removed or replaced, calls in progress are written to the new files.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use endmark_store::{
    CallSettled, CallStarted, CutSettled, CutStarted, FinalStatus, LogFilter, NoSecrets, Purpose, Reader,
    Store, StoreLocation,
};

fn location(folder: &Path) -> StoreLocation {
    StoreLocation::sqlite(folder.join("a.db"))
}

fn cut(request_id: &str) -> CutStarted {
    CutStarted {
        request_id: request_id.to_owned(),
        slot: "choice 0".to_owned(),
        task_id: "t".to_owned(),
        turn_number: 1,
        truncation_index: None,
        initial_chunk_length: 1,
        model: "m".to_owned(),
        provider: "p".to_owned(),
        cut_kind: "limit".to_owned(),
    }
}

fn cut_settled() -> CutSettled {
    CutSettled {
        final_status: FinalStatus::Resolved,
        resume_attempts: 1,
        outcome: "resumed".to_owned(),
        seam_style: None,
        extra_prompt_tokens: 0,
        extra_output_tokens: 0,
        reason: "whole".to_owned(),
        pieces: Vec::new(),
    }
}

fn call(request_id: &str) -> CallStarted {
    CallStarted {
        request_id: request_id.to_owned(),
        call: 1,
        purpose: Purpose::Reply,
        session: "s".to_owned(),
        credential: None,
        upstream: "u".to_owned(),
        format: "openai_chat".into(),
        model: "m".to_owned(),
        streamed: false,
        mode: "auto".into(),
        started_ms: 0,
        sent_bytes: 1,
        prompt_estimate: 1,
        charges: Vec::new(),
    }
}

/// Returns the files of the store whose names contain `named`.
fn files(folder: &Path, named: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_str().unwrap().contains(named)).collect()
}

fn remove(folder: &Path, named: &str) {
    let found = files(folder, named);
    assert!(!found.is_empty());
    for path in found {
        fs::remove_file(path).unwrap();
    }
}

/// Returns the calls that the next start would find if this process were killed now. Copies the files,
/// because a copy has no locks.
fn calls_found_after_a_kill(folder: &Path) -> (tempfile::TempDir, Vec<(String, String)>) {
    let other = tempfile::tempdir().unwrap();
    for path in files(folder, "a.db") {
        fs::copy(&path, other.path().join(path.file_name().unwrap())).unwrap();
    }
    drop(Store::open(&location(other.path())).unwrap());
    let calls = Reader::open(&location(other.path())).unwrap().recent_calls(100).unwrap();
    let calls = calls.into_iter().map(|call| (call.request_id, call.ending)).collect();
    (other, calls)
}

async fn wait_until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..400 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never: {what}");
}

#[tokio::test]
async fn calls_in_progress_are_recorded_in_the_new_database() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&location(folder.path())).unwrap();
    let recorder = store.recorder(NoSecrets);
    let before = recorder.begin_cut(cut("before")).await.unwrap();
    recorder.settle_cut(before, cut_settled()).await.unwrap();
    let intent = recorder.begin_cut(cut("under way")).await.unwrap();
    let open = recorder.open_call(call("under way")).await;
    remove(folder.path(), "a.db");
    wait_until("a new store is started", || store.condition().renewals == 1).await;
    assert!(!store.condition().is_sound() && store.condition().failure.is_none());
    open.settle(CallSettled { ending: "clean".into(), ..CallSettled::default() });
    recorder.keep_cut_record(Some(intent), cut("under way"), cut_settled()).await;
    // Repeating the record writes no second row.
    recorder.keep_cut_record(Some(intent), cut("under way"), cut_settled()).await;
    let leftover = store.close().await;
    assert_eq!((leftover.rows_lost, leftover.cuts_lost), (0, 0));
    let reader = store.reader().unwrap();
    let ids: Vec<String> =
        reader.recent(9, &LogFilter::default()).unwrap().into_iter().map(|row| row.request_id).collect();
    assert_eq!(ids, ["under way"]);
    assert_eq!(reader.recent_calls(9).unwrap().len(), 1);
    assert_eq!(files(folder.path(), "owner"), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_replacement_database_keeps_its_own_data() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kept = Store::open(&location(other.path())).unwrap();
    let theirs = kept.recorder(NoSecrets).begin_cut(cut("theirs")).await.unwrap();
    kept.recorder(NoSecrets).open_call(call("theirs")).await.settle(CallSettled::default());
    kept.close().await;
    let store = Store::open(&location(folder.path())).unwrap();
    let recorder = store.recorder(NoSecrets);
    let ours = recorder.begin_cut(cut("ours")).await.unwrap();
    assert_eq!(ours, theirs, "the numbers are the same");
    // These rows are in the write-ahead log, which must not be applied to the other database.
    for number in 0..50 {
        recorder.remember_capability("u", &number.to_string(), "none").await.unwrap();
    }
    fs::copy(other.path().join("a.db"), folder.path().join("next")).unwrap();
    fs::rename(folder.path().join("next"), folder.path().join("a.db")).unwrap();
    wait_until("it is noticed", || store.condition().renewals == 1).await;
    assert_eq!(recorder.capability("u", "7").await.unwrap(), None);
    recorder.keep_cut_record(Some(ours), cut("ours"), cut_settled()).await;
    store.close().await;
    let reader = store.reader().unwrap();
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
    let outcome = |id: &str| reader.show(id).unwrap().unwrap().rows.remove(0).outcome;
    assert_eq!((outcome("ours").as_str(), outcome("theirs").as_str()), ("resumed", "interrupted"));
    assert_eq!(reader.recent_calls(9).unwrap().len(), 1);
}

#[tokio::test]
async fn a_removed_slate_is_rewritten_with_all_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&location(folder.path())).unwrap();
    let _under_way = store.recorder(NoSecrets).open_call(call("under way")).await;
    remove(folder.path(), "a.db-owner");
    wait_until("it is there again", || !files(folder.path(), "a.db-owner").is_empty()).await;
    let _later = store.recorder(NoSecrets).open_call(call("later")).await;
    let (_other, mut calls) = calls_found_after_a_kill(folder.path());
    calls.sort();
    let interrupted = |id: &str| (id.to_owned(), "interrupted".to_owned());
    assert_eq!(calls, [interrupted("later"), interrupted("under way")]);
    assert_eq!(store.condition().renewals, 0);
}

#[tokio::test]
async fn a_removed_journal_loses_no_committed_data() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&location(folder.path())).unwrap();
    let over = store.recorder(NoSecrets).open_call(call("over")).await;
    over.settle(CallSettled { ending: "clean".into(), ..CallSettled::default() });
    wait_until("it is committed", || store.condition().rows_committed == 1).await;
    remove(folder.path(), "a.db-wal");
    wait_until("a new store is started", || store.condition().renewals == 1).await;
    let (_other, calls) = calls_found_after_a_kill(folder.path());
    assert_eq!(calls, [("over".to_owned(), "clean".to_owned())]);
}
