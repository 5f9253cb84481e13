//! Kept outputs stay within their quota. The owner with the most bytes loses its least recently used output
//! first.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use endmark_store::{
    CallSettled, CallStarted, Handle, NewOutput, NoSecrets, Purpose, Store, StoreError, StoreLocation,
};
use rusqlite::Connection;

const MAX_BYTES: u64 = 100_000;

/// Returns bytes that compression does not shorten.
fn incompressible_bytes(bytes: usize, seed: u64) -> Vec<u8> {
    let next = |state: &u64| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    std::iter::successors(Some(seed), next).map(|state| (state >> 33).to_le_bytes()[0]).take(bytes).collect()
}

struct KeptOutputs {
    store: Store,
    connection: Connection,
    _folder: tempfile::TempDir,
}

impl KeptOutputs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::sqlite(folder.path().join("a.db"));
        let store = Store::open(&location).unwrap();
        Self { store, connection: Connection::open(location.path()).unwrap(), _folder: folder }
    }

    async fn keep(&self, owner: &str, bytes: usize, seed: u64) -> Result<Handle, StoreError> {
        let handle = Handle::random().unwrap();
        let new =
            NewOutput { handle: handle.clone(), owner: owner.to_owned(), keep_days: 0, max_bytes: MAX_BYTES };
        let mut draft = self.store.begin_output(new).await?;
        draft.push(&incompressible_bytes(bytes, seed)).await?;
        draft.keep("text").await?;
        Ok(handle)
    }

    /// Sets the last use of an output to `minutes` minutes ago.
    fn set_last_use(&self, handle: &Handle, minutes: i64) {
        let sql = "UPDATE outputs SET last_used = unixepoch() - 60 * ?2 WHERE handle = ?1";
        self.connection.execute(sql, (handle.as_str(), minutes)).unwrap();
    }

    fn is_kept(&self, handle: &Handle, owner: &str) -> bool {
        let reader = self.store.reader().unwrap();
        let read = reader.output(handle, owner);
        let is_removed = matches!(read, Err(StoreError::RemovedOutput { .. }));
        assert!(is_removed || read.is_ok(), "another error");
        !is_removed
    }

    /// Returns the two stored sums of sizes, and the actual total.
    fn bytes(&self) -> (i64, i64, i64) {
        let read = |sql: &str| self.connection.query_row(sql, [], |row| row.get(0)).unwrap();
        (
            read("SELECT bytes FROM output_total"),
            read("SELECT coalesce(sum(bytes), 0) FROM output_owners"),
            read("SELECT coalesce(sum(length(content)), 0) FROM output_pieces"),
        )
    }
}

#[tokio::test]
async fn the_least_recently_used_output_of_the_largest_owner_is_removed() {
    let kept = KeptOutputs::new();
    let small = kept.keep("small", 10_000, 1).await.unwrap();
    let (old, read) =
        (kept.keep("large", 40_000, 2).await.unwrap(), kept.keep("large", 40_000, 3).await.unwrap());
    kept.set_last_use(&small, 900);
    kept.set_last_use(&old, 700);
    kept.set_last_use(&read, 800);
    kept.store.touch_output(&read).await.unwrap();
    let new = kept.keep("small", 30_000, 4).await.unwrap();
    assert!(!kept.is_kept(&old, "large"), "{:?}", kept.bytes());
    assert!(kept.is_kept(&small, "small") && kept.is_kept(&read, "large") && kept.is_kept(&new, "small"));
    let (total, of_owners, all) = kept.bytes();
    assert_eq!((total, of_owners), (all, all));
    assert!(all <= 100_000, "{all}");
    let reader = kept.store.reader().unwrap();
    let message = reader.output(&old, "large").unwrap_err().to_string();
    assert!(
        message.contains("was removed") && message.contains("store_policy.outputs_max_bytes"),
        "{message}"
    );
    assert!(
        matches!(reader.output(&old, "other"), Err(StoreError::NoOutput { .. })),
        "no other owner learns that"
    );
}

#[tokio::test]
async fn recently_used_outputs_stay_and_the_new_output_is_rejected() {
    let kept = KeptOutputs::new();
    let handles = [kept.keep("a", 45_000, 1).await.unwrap(), kept.keep("a", 45_000, 2).await.unwrap()];
    let before = kept.bytes();
    let refused = kept.keep("b", 30_000, 3).await.unwrap_err();
    assert_eq!(refused, StoreError::NoRoomForOutput { max_bytes: MAX_BYTES });
    assert!(refused.to_string().contains("store_policy.outputs_max_bytes"));
    assert_eq!(kept.bytes(), before, "nothing of it is left");
    // An output that alone exceeds the quota causes no removal, even if the other outputs are old.
    for handle in &handles {
        kept.set_last_use(handle, 90);
    }
    assert!(kept.keep("b", 120_000, 4).await.is_err());
    assert!(handles.iter().all(|handle| kept.is_kept(handle, "a")));
    // The outputs of a session with a recent call are not removed either.
    let call = CallStarted {
        request_id: "em_1".to_owned(),
        call: 1,
        purpose: Purpose::Reply,
        session: "busy".to_owned(),
        credential: None,
        upstream: "u".to_owned(),
        format: "openai_chat".into(),
        model: "m".to_owned(),
        streamed: false,
        mode: "auto".into(),
        started_ms: u64::try_from(
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis(),
        )
        .unwrap(),
        sent_bytes: 1,
        prompt_estimate: 1,
        charges: Vec::new(),
    };
    kept.set_last_use(&handles[0], 200);
    kept.store.record_output_session(&handles[0], "busy").await.unwrap();
    kept.store.recorder(NoSecrets).open_call(call).await.settle(CallSettled::default());
    for _ in 0..400 {
        if !kept.store.reader().unwrap().recent_calls(1).unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let new = kept.keep("b", 30_000, 5).await.unwrap();
    assert!(kept.is_kept(&handles[0], "a") && !kept.is_kept(&handles[1], "a") && kept.is_kept(&new, "b"));
}

#[tokio::test]
async fn size_sums_stay_correct_after_deletions_and_restarts() {
    let kept = KeptOutputs::new();
    for seed in 0..5 {
        kept.keep("a", 15_000, seed).await.unwrap();
    }
    kept.connection
        .execute("UPDATE outputs SET keep_days = 1, last_used = 0 WHERE rowid % 2 = 0", [])
        .unwrap();
    kept.store.delete_older_than(1).await.unwrap();
    kept.store.close().await;
    kept.connection.execute_batch(include_str!("../migrations/0001_store.sqlite.sql")).unwrap();
    let (total, of_owners, all) = kept.bytes();
    assert!(all > 0 && all < 75_000);
    assert_eq!((total, of_owners), (all, all));
}
