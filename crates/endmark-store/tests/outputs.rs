//! Kept outputs are complete, belong to their owner, and expire.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::ops::ControlFlow;

use endmark_store::{Handle, NewOutput, Reader, Store, StoreError, StoreLocation};
use rusqlite::Connection;

async fn keep(store: &Store, owner: &str, bytes: &[u8]) -> Handle {
    let handle = Handle::random().unwrap();
    let new = NewOutput { handle: handle.clone(), owner: owner.to_owned(), keep_days: 30, max_bytes: 0 };
    let mut draft = store.begin_output(new).await.unwrap();
    for chunk in bytes.chunks(70_001) {
        draft.push(chunk).await.unwrap();
    }
    draft.keep("text").await.unwrap();
    handle
}

#[tokio::test]
async fn an_output_is_read_unchanged_by_range_and_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&StoreLocation::sqlite(folder.path().join("a.db"))).unwrap();
    let text = (0..100_000).fold(String::new(), |text, line| text + &format!("line {line}\n"));
    let text = text.trim_end().as_bytes();
    let handle = keep(&store, "local", text).await;
    let reader = store.reader().unwrap();
    let kept = reader.output(&handle, "local").unwrap();
    assert_eq!((kept.bytes, kept.lines, kept.format.as_str()), (text.len() as u64, 100_000, "text"));
    assert_eq!(kept.read(0..u64::MAX).unwrap(), text);
    for range in [0..10, 262_140..262_150, 600_000..1_000_000] {
        let (begin, end) = (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
        assert_eq!(kept.read(range).unwrap(), &text[begin..end]);
    }
    assert_eq!(kept.read(text.len() as u64..u64::MAX).unwrap(), b"");
    for line in [0, 1, 50_000, 99_999] {
        let mut found = Vec::new();
        let mut skip = None;
        kept.pieces_from_line(line, |piece| {
            skip.get_or_insert_with(|| line - piece.first_line);
            found.extend(piece.bytes);
            ControlFlow::Continue(())
        })
        .unwrap();
        let skip = usize::try_from(skip.unwrap()).unwrap();
        let found = found.split(|byte| *byte == b'\n').nth(skip).unwrap().to_vec();
        assert_eq!(String::from_utf8(found).unwrap(), format!("line {line}"));
    }
    let stored: i64 = Connection::open(folder.path().join("a.db"))
        .unwrap()
        .query_row("SELECT sum(length(content)) FROM output_pieces", [], |row| row.get(0))
        .unwrap();
    assert!(stored < i64::try_from(text.len() / 3).unwrap(), "{stored}");
    store.close().await;
}

#[tokio::test]
async fn other_owners_cannot_read_an_output() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&StoreLocation::sqlite(folder.path().join("a.db"))).unwrap();
    let handle = keep(&store, "one", b"secret").await;
    let draft = Handle::random().unwrap();
    let new = NewOutput { handle: draft.clone(), owner: "one".to_owned(), keep_days: 0, max_bytes: 0 };
    let mut open_output = store.begin_output(new).await.unwrap();
    open_output.push(&vec![b'x'; 600_000]).await.unwrap();
    let reader = store.reader().unwrap();
    let message = |handle: &Handle, owner: &str| {
        reader.output(handle, owner).unwrap_err().to_string().replace(handle.as_str(), "")
    };
    let unknown = message(&Handle::random().unwrap(), "one");
    assert_eq!(message(&handle, "other"), unknown);
    assert_eq!(message(&draft, "one"), unknown);
    open_output.discard().await.unwrap();
    let pieces: i64 = Connection::open(folder.path().join("a.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM output_pieces", [], |row| row.get(0))
        .unwrap();
    assert_eq!(pieces, 1);
    store.close().await;
}

#[tokio::test]
async fn an_unused_output_expires_and_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    let store = Store::open(&location).unwrap();
    let (old, used) = (keep(&store, "local", b"old").await, keep(&store, "local", b"used").await);
    let connection = Connection::open(location.path()).unwrap();
    connection.execute("UPDATE outputs SET last_used = last_used - 31 * 86400", []).unwrap();
    store.touch_output(&used).await.unwrap();
    let reader = Reader::open(&location).unwrap();
    assert!(matches!(reader.output(&old, "local"), Err(StoreError::ExpiredOutput { .. })));
    assert!(reader.output(&used, "local").is_ok());
    assert_eq!(store.delete_older_than(1).await.unwrap(), 1);
    assert!(matches!(reader.output(&old, "local"), Err(StoreError::NoOutput { .. })));
    assert_eq!(reader.output(&used, "local").unwrap().read(0..9).unwrap(), b"used");
    store.close().await;
}
