//! Opening a store: file permissions, several processes at once, and all errors.
#![expect(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use endmark_store::{
    CutStarted, FinalStatus, LogFilter, NoSecrets, Reader, Store, StoreError, StoreLocation,
};

fn cut() -> CutStarted {
    CutStarted {
        request_id: "req".to_owned(),
        slot: "choice 0".to_owned(),
        task_id: "task".to_owned(),
        turn_number: 1,
        truncation_index: None,
        initial_chunk_length: 1,
        model: "m".to_owned(),
        provider: "p".to_owned(),
        cut_kind: "dropped".to_owned(),
    }
}

#[cfg(unix)]
#[tokio::test]
async fn every_file_is_private_to_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("endmark.db");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    for path in [path, folder.path().join("new.db")] {
        let store = Store::open(&StoreLocation::sqlite(&path)).unwrap();
        store.recorder(NoSecrets).begin_cut(cut()).await.unwrap();
        let mut names = Vec::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", entry.path().display());
            names.push(entry.file_name().into_string().unwrap());
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        for suffix in ["", "-wal", "-shm", "-owner-"] {
            assert!(
                names.iter().any(|found| found.starts_with(&format!("{name}{suffix}"))),
                "{suffix}: {names:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_second_store_logs_cuts_of_dead_owners_and_keeps_those_of_live_owners() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
    let first = Store::open(&location).unwrap();
    first.recorder(NoSecrets).begin_cut(cut()).await.unwrap();
    let second = Store::open(&location).unwrap();
    assert_eq!(second.health().await.unwrap().open_cuts, 1);
    assert!(second.recent(9, &LogFilter::default()).unwrap().is_empty());

    first.close().await;
    let third = Store::open(&location).unwrap();
    assert_eq!(third.health().await.unwrap().open_cuts, 0);
    let rows = second.recent(9, &LogFilter::default()).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].final_status, rows[0].outcome.as_str()), (FinalStatus::Exhausted, "interrupted"));
    drop(Store::open(&location).unwrap());
    assert_eq!(third.recent(9, &LogFilter::default()).unwrap().len(), 1, "logged once");
}

#[test]
fn many_processes_can_open_a_new_file_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
        let start = Barrier::new(12);
        thread::scope(|scope| {
            let open = || {
                start.wait();
                Store::open(&location).map(|_| ())
            };
            let threads: Vec<_> = (0..12).map(|_| scope.spawn(open)).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), Ok(()));
            }
        });
    }
}

/// SQLite itself does not wait for the write lock of a database that is not in WAL mode yet.
#[test]
fn opening_waits_for_another_writer() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
    let other = rusqlite::Connection::open(location.path()).unwrap();
    other.execute_batch("CREATE TABLE other (x); BEGIN IMMEDIATE; INSERT INTO other VALUES (1)").unwrap();
    thread::scope(|scope| {
        let opening = scope.spawn(|| Store::open(&location).map(|_| ()));
        thread::sleep(Duration::from_millis(100));
        assert!(!opening.is_finished());
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(opening.join().unwrap(), Ok(()));
    });
}

/// Opens the store, expects an error, and checks that its message names the file and a next step.
fn assert_rejected(path: &Path, next_step: &str) -> StoreError {
    let error = Store::open(&StoreLocation::sqlite(path)).expect_err("must be refused");
    let message = error.to_string();
    assert!(message.contains(&path.display().to_string()), "{message}");
    assert!(message.contains(next_step), "{message}");
    error
}

#[test]
fn a_missing_folder_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = assert_rejected(&folder.path().join("nowhere/endmark.db"), "create it");
    assert!(matches!(error, StoreError::NoFolder { .. }), "{error:?}");
}

#[test]
fn a_folder_instead_of_the_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = assert_rejected(folder.path(), "it is a folder; name another file");
    assert!(matches!(error, StoreError::UnusablePath { .. }), "{error:?}");
}

#[test]
fn an_impossible_path_is_reported_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "").unwrap();
    assert_rejected(&file.join("endmark.db"), &format!("`{}` is not a folder", file.display()));
    assert_rejected(&file.join("deeper/endmark.db"), &format!("`{}` is not a folder", file.display()));
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(folder.path().join("nowhere/endmark.db"), &link).unwrap();
    assert_rejected(&link, "it is a link to a path that does not exist");
    // A path that is not a regular file stays unchanged, including its permissions.
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_rejected(&socket, "name another file");
    let mode =
        |path: &Path| std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions());
    let before = mode(Path::new("/dev/null"));
    assert_rejected(Path::new("/dev/null"), "it is not a regular file");
    assert_eq!(mode(Path::new("/dev/null")), before);
}

/// Uses a folder in which no file can be created, regardless of permissions.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_rejects_files_is_not_called_missing() {
    let error = assert_rejected(Path::new("/proc/endmark.db"), "its folder exists");
    assert!(matches!(error, StoreError::UnusablePath { .. }), "{error:?}");
}

/// Not even the superuser can write here. Tests often run as the superuser.
#[cfg(target_os = "linux")]
#[test]
fn an_unwritable_folder_is_reported() {
    let error = assert_rejected(Path::new("/sys/kernel/endmark.db"), "check the permissions");
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
}

#[test]
fn a_file_that_is_not_a_database_is_reported_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let notes = "not a database\n".repeat(500);
    fs::write(&path, &notes).unwrap();
    let error = assert_rejected(&path, "name another file");
    assert!(matches!(error, StoreError::NotADatabase { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), notes);
}

#[test]
fn a_damaged_database_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("endmark.db");
    drop(Store::open(&StoreLocation::sqlite(&path)).unwrap());
    let mut bytes = fs::read(&path).unwrap();
    // Damage the schema, which follows the file's header.
    bytes[100..4096].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let error = assert_rejected(&path, ".recover");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

#[test]
fn a_reader_creates_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("endmark.db");
    let error = Reader::open(&StoreLocation::sqlite(&path)).expect_err("there is none");
    assert_eq!(error, StoreError::NoFile { path: path.clone() });
    assert!(error.to_string().contains("endmark serve"));
    assert!(!path.exists());
}
