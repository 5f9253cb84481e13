//! Cut replies from their intent to their row, through the public interface (PC-7).

use endmark_store::{
    CutSettled, CutStarted, FinalStatus, LogFilter, NoSecrets, Reader, ReplyPiece, Store, StoreError,
    StoreLocation, sha256_hex,
};

fn cut_started(request_id: &str) -> CutStarted {
    CutStarted {
        request_id: request_id.to_owned(),
        slot: "choice 0".to_owned(),
        task_id: "task-7".to_owned(),
        turn_number: 3,
        truncation_index: Some(41),
        initial_chunk_length: 44,
        model: "smollm2-135m".to_owned(),
        provider: "local".to_owned(),
        cut_kind: "limit".to_owned(),
    }
}

fn piece(ordinal: u32, text: Option<&str>) -> ReplyPiece {
    ReplyPiece {
        ordinal,
        strategy: if ordinal == 0 { "original" } else { "prefill" }.to_owned(),
        received_bytes: 44,
        ending: "clean".to_owned(),
        stop: Some("limit".to_owned()),
        judged: "cut limit".to_owned(),
        why: "the provider says that the limit was reached".to_owned(),
        seam_at: (ordinal > 0).then_some(44),
        seam_style: (ordinal > 0).then(|| "exact".to_owned()),
        dropped_bytes: 5,
        confidence: (ordinal > 0).then_some(0.75),
        sha256: sha256_hex(text.unwrap_or_default().as_bytes()),
        text: text.map(str::to_owned),
    }
}

fn cut_settled(final_status: FinalStatus, pieces: Vec<ReplyPiece>) -> CutSettled {
    CutSettled {
        final_status,
        resume_attempts: 2,
        outcome: "resumed".to_owned(),
        seam_style: Some("exact".to_owned()),
        extra_prompt_tokens: 120,
        extra_output_tokens: 33,
        reason: "the text is whole".to_owned(),
        pieces,
    }
}

#[tokio::test]
async fn a_cut_reply_becomes_one_row_with_its_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
    let store = Store::open(&location).unwrap();
    let id = store.recorder(NoSecrets).begin_cut(cut_started("req_a")).await.unwrap();
    assert_eq!(store.health().await.unwrap().open_cuts, 1);
    assert!(
        store.recent(10, &LogFilter::default()).unwrap().is_empty(),
        "no row before the outcome is known"
    );

    let pieces = vec![piece(0, None), piece(1, Some("the rest ∎"))];
    let row_id = store
        .recorder(NoSecrets)
        .settle_cut(id, cut_settled(FinalStatus::Resolved, pieces.clone()))
        .await
        .unwrap();
    assert_eq!(store.health().await.unwrap().open_cuts, 0);

    let recovery = store.show(&row_id.to_string()).unwrap().unwrap();
    assert_eq!(store.show("req_a").unwrap().as_ref(), Some(&recovery));
    let row = &recovery.rows[0];
    assert_eq!(
        (row.id, row.task_id.as_str(), row.turn_number, row.truncation_index, row.initial_chunk_length),
        (row_id, "task-7", 3, Some(41), Some(44))
    );
    assert_eq!((row.resume_attempts, row.final_status), (2, FinalStatus::Resolved));
    assert_eq!((row.request_id.as_str(), row.slot.as_str()), ("req_a", "choice 0"));
    assert_eq!((row.model.as_str(), row.provider.as_str()), ("smollm2-135m", "local"));
    assert_eq!((row.cut_kind.as_str(), row.outcome.as_str()), ("limit", "resumed"));
    assert_eq!((row.extra_prompt_tokens, row.extra_output_tokens), (120, 33));
    assert_eq!((row.seam_style.as_deref(), row.reason.as_str()), (Some("exact"), "the text is whole"));
    assert_eq!(row.timestamp.len(), "2026-01-01 00:00:00".len());
    assert_eq!(recovery.row_pieces(row_id).cloned().collect::<Vec<_>>(), pieces);
    assert_eq!(store.show("req_b").unwrap(), None);
    assert_eq!(store.show("99").unwrap(), None);

    store.close().await;
    let reader = Reader::open(&location).unwrap();
    assert_eq!(reader.show("req_a").unwrap(), Some(recovery));
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn an_intent_can_be_settled_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&StoreLocation::sqlite(folder.path().join("endmark.db"))).unwrap();
    let id = store.recorder(NoSecrets).begin_cut(cut_started("req_a")).await.unwrap();
    store.recorder(NoSecrets).settle_cut(id, cut_settled(FinalStatus::Resolved, Vec::new())).await.unwrap();
    let again =
        store.recorder(NoSecrets).settle_cut(id, cut_settled(FinalStatus::Exhausted, Vec::new())).await;
    assert_eq!(again, Err(StoreError::NoSuchCut(id)));
    assert_eq!(store.recent(10, &LogFilter::default()).unwrap().len(), 1);
    let next = store.recorder(NoSecrets).begin_cut(cut_started("req_b")).await.unwrap();
    assert!(next > id, "numbers are not given twice");
}

#[tokio::test]
async fn an_outcome_and_its_pieces_are_written_atomically() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&StoreLocation::sqlite(folder.path().join("endmark.db"))).unwrap();
    let id = store.recorder(NoSecrets).begin_cut(cut_started("req_a")).await.unwrap();
    let twice = vec![piece(0, None), piece(0, None)];
    assert!(
        store.recorder(NoSecrets).settle_cut(id, cut_settled(FinalStatus::Resolved, twice)).await.is_err()
    );
    assert!(store.recent(10, &LogFilter::default()).unwrap().is_empty());
    assert_eq!(store.health().await.unwrap().open_cuts, 1, "and the intent is still there");
    store
        .recorder(NoSecrets)
        .settle_cut(id, cut_settled(FinalStatus::Resolved, vec![piece(0, None)]))
        .await
        .unwrap();
}

#[tokio::test]
async fn the_log_is_filtered_and_starts_with_the_newest_row() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&StoreLocation::sqlite(folder.path().join("endmark.db"))).unwrap();
    for (request_id, final_status, model) in [
        ("r1", FinalStatus::Resolved, "a"),
        ("r2", FinalStatus::Exhausted, "b"),
        ("r3", FinalStatus::Resolved, "b"),
    ] {
        let cut = CutStarted { model: model.to_owned(), ..cut_started(request_id) };
        let id = store.recorder(NoSecrets).begin_cut(cut).await.unwrap();
        store.recorder(NoSecrets).settle_cut(id, cut_settled(final_status, Vec::new())).await.unwrap();
    }
    let requests = |limit, filter: &LogFilter| -> Vec<String> {
        store.recent(limit, filter).unwrap().into_iter().map(|row| row.request_id).collect()
    };
    assert_eq!(requests(2, &LogFilter::default()), ["r3", "r2"]);
    let resolved = LogFilter { final_status: Some(FinalStatus::Resolved), ..LogFilter::default() };
    assert_eq!(requests(9, &resolved), ["r3", "r1"]);
    let of_b = LogFilter {
        model: Some("b".to_owned()),
        task_id: Some("task-7".to_owned()),
        provider: Some("local".to_owned()),
        cut_kind: Some("limit".to_owned()),
        ..resolved
    };
    assert_eq!(requests(9, &of_b), ["r3"]);
    assert!(
        requests(9, &LogFilter { task_id: Some("' OR 1 --".to_owned()), ..LogFilter::default() }).is_empty()
    );
}

#[tokio::test]
async fn old_recoveries_are_deleted_with_their_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
    let store = Store::open(&location).unwrap();
    for request_id in ["old", "new"] {
        let id = store.recorder(NoSecrets).begin_cut(cut_started(request_id)).await.unwrap();
        store
            .recorder(NoSecrets)
            .settle_cut(id, cut_settled(FinalStatus::Resolved, vec![piece(0, None)]))
            .await
            .unwrap();
    }
    let other = rusqlite::Connection::open(location.path()).unwrap();
    other
        .execute("UPDATE partial_completion_log SET timestamp = datetime('now', '-31 days') WHERE id = 1", [])
        .unwrap();
    assert_eq!(store.delete_older_than(30).await.unwrap(), 1);
    assert_eq!(store.show("old").unwrap(), None);
    assert!(store.show("new").unwrap().is_some());
    let pieces: i64 = other.query_row("SELECT count(*) FROM recovery_pieces", [], |row| row.get(0)).unwrap();
    assert_eq!(pieces, 1);
}

#[tokio::test]
async fn rows_from_other_software_are_readable() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
    let store = Store::open(&location).unwrap();
    rusqlite::Connection::open(location.path())
        .unwrap()
        .execute(
            "INSERT INTO partial_completion_log (task_id, turn_number, resume_attempts, final_status)
             VALUES ('theirs', 1, NULL, 'EXHAUSTED')",
            [],
        )
        .unwrap();
    let rows = store.recent(1, &LogFilter::default()).unwrap();
    assert_eq!((rows[0].task_id.as_str(), rows[0].resume_attempts), ("theirs", 0));
    assert_eq!((rows[0].request_id.as_str(), rows[0].truncation_index), ("", None));
}

#[tokio::test]
async fn the_newest_capability_replaces_the_previous_one() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("endmark.db"));
    let store = Store::open(&location).unwrap();
    assert_eq!(store.recorder(NoSecrets).capability("local", "m").await.unwrap(), None);
    store.recorder(NoSecrets).remember_capability("local", "m", "plain").await.unwrap();
    store.recorder(NoSecrets).remember_capability("local", "m", "none").await.unwrap();
    store.recorder(NoSecrets).remember_capability("other", "m", "plain").await.unwrap();
    store.close().await;
    let store = Store::open(&location).unwrap();
    assert_eq!(store.recorder(NoSecrets).capability("local", "m").await.unwrap().as_deref(), Some("none"));
    assert_eq!(store.recorder(NoSecrets).capability("other", "m").await.unwrap().as_deref(), Some("plain"));
}
