//! A store whose files or folder are removed while the gateway runs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use endmark_store::{LogFilter, Reader, StoreLocation};

use super::degraded::RunningGateway;
use crate::run::TestFolder;
use crate::serve::in_runtime;

/// Waits until the store contains `calls` calls.
///
/// An empty queue proves nothing, because a call is settled after its client's last byte, and its row may not
/// be queued yet.
async fn wait_until_written(running: &RunningGateway, store: &Path, calls: usize) {
    for _ in 0..400 {
        let reader = Reader::open(&StoreLocation::sqlite(store));
        if reader.is_ok_and(|reader| reader.recent_calls(100).is_ok_and(|rows| rows.len() >= calls)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it is never written: {}", running.readiness().await);
}

/// Removes the database and its side files.
fn remove_database(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("endmark.db") {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_removed_store_is_detected_and_recreated() {
    in_runtime(async {
        let running = RunningGateway::start_in(TestFolder::new(), &[]).await;
        running.ask(false).await;
        running.ask(true).await;
        wait_until_written(&running, &running.place.store(), 3).await;
        remove_database(running.place.store().parent().unwrap());
        // Meanwhile no client sends a request that would be recorded.
        for _ in 0..400 {
            if running.metric("endmark_store_renewals_total").await == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        assert_eq!(running.metric("endmark_store_renewals_total").await, 1);
        assert_eq!(running.metric("endmark_store_degraded").await, 1);
        let ready = running.readiness().await;
        assert_eq!((&ready["status"], &ready["renewals"]), (&"degraded".into(), &1.into()), "{ready}");
        assert!(ready["store"].as_str().unwrap().contains("removed or replaced"), "{ready}");
        for _ in 0..3 {
            running.ask(false).await;
        }
        running.ask(true).await;
        let (code, said) = running.served.stop("-TERM");
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("removed or replaced"), "{said}");
        let reader = Reader::open(&StoreLocation::sqlite(running.place.store())).unwrap();
        assert_eq!(reader.check().unwrap(), Vec::<String>::new());
        assert!(reader.recent_calls(100).unwrap().len() >= 3 + 2);
        assert_eq!(reader.recent(9, &LogFilter::default()).unwrap().len(), 1);
    });
}

#[test]
fn a_store_that_cannot_be_recreated_is_reported_as_degraded() {
    in_runtime(async {
        let place = TestFolder::new();
        let folder = place.path().join("store");
        fs::create_dir(&folder).unwrap();
        let running = RunningGateway::start_in(place, &["--store", "sqlite:store/endmark.db"]).await;
        running.ask(false).await;
        wait_until_written(&running, &folder.join("endmark.db"), 1).await;
        fs::remove_dir_all(&folder).unwrap();
        for _ in 0..2 {
            running.ask(false).await;
        }
        let ready = running.readiness().await;
        assert_eq!(ready["status"], "degraded");
        assert!(ready["store"].as_str().unwrap().contains("removed or replaced"), "{ready}");
        assert_eq!(running.metric("endmark_store_degraded").await, 1);
        let (code, said) = running.served.stop("-TERM");
        assert_eq!(code, Some(4), "{said}");
        assert!(said.contains("the rows of 2 upstream calls"), "{said}");
    });
}
