//! Recoveries of instances that share a PostgreSQL database through a pooler.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use endmark_store::{
    CutSettled, CutStarted, FinalStatus, Fleet, LogFilter, NoSecrets, RecoveryRow, SharedReader, Store,
    StoreLocation,
};
use testkit::{PgBouncer, Postgres};

async fn recover(store: &Store, request_id: &str, outcome: &str) {
    let recorder = store.recorder(NoSecrets);
    let cut = CutStarted {
        request_id: request_id.to_owned(),
        slot: "choice\0 0".to_owned(),
        task_id: "t".to_owned(),
        turn_number: 2,
        truncation_index: None,
        initial_chunk_length: 20,
        model: "m".to_owned(),
        provider: "local".to_owned(),
        cut_kind: "limit".to_owned(),
    };
    let id = recorder.begin_cut(cut).await.unwrap();
    let settled = CutSettled {
        final_status: if outcome == "resumed" { FinalStatus::Resolved } else { FinalStatus::Exhausted },
        resume_attempts: 1,
        outcome: outcome.to_owned(),
        seam_style: None,
        extra_prompt_tokens: 40,
        extra_output_tokens: 12,
        reason: "why".to_owned(),
        pieces: Vec::new(),
    };
    recorder.settle_cut(id, settled).await.unwrap();
}

async fn recent_recoveries(location: &StoreLocation, filter: LogFilter) -> Vec<RecoveryRow> {
    let own = filter.clone();
    let read = async |reader: SharedReader| reader.recent(9, &filter).await;
    let found = Fleet::at(location).read(read, move |reader| reader.recent(9, &own)).await.unwrap();
    assert_eq!(found.failure, None);
    found.records
}

const COUNT: &str = "SELECT count(*) FROM em_recoveries";

#[tokio::test(flavor = "multi_thread")]
async fn recoveries_are_recorded_once_and_deleted_when_they_are_old() {
    let Some(postgres) = Postgres::start() else { return };
    let Some(pooler) = PgBouncer::start(&postgres) else { return };
    let url = format!("postgres://postgres@127.0.0.1:{}/endmark?sslmode=disable", pooler.port());
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::parse(&url).unwrap().with_journal(folder.path().join("a.db"));
    let store = Store::open(&location).unwrap();
    recover(&store, "em_1", "resumed").await;
    recover(&store, "em_2", "exhausted").await;
    // A closing instance reports the recoveries that wait.
    store.close().await;
    assert_eq!(postgres.query_number(COUNT), 2);
    let exhausted = LogFilter {
        final_status: Some(FinalStatus::Exhausted),
        model: Some("m".to_owned()),
        ..LogFilter::default()
    };
    let rows = recent_recoveries(&location, exhausted).await;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].request_id.as_str(), rows[0].slot.as_str()), ("em_2", "choice\u{fffd} 0"));
    assert_eq!((rows[0].turn_number, rows[0].extra_prompt_tokens, &rows[0].other_gateway), (2, 40, &None));

    // A journal of an older version reports its recoveries, and repeating the report changes nothing.
    let journal = rusqlite::Connection::open(folder.path().join("a.db")).unwrap();
    journal.execute_batch("DROP TRIGGER recovery_in_journal").unwrap();
    drop(journal);
    postgres.query(
        "DELETE FROM em_recoveries WHERE request_id = 'em_1'; UPDATE em_recoveries SET reason = 'kept'",
    );
    let store = Store::open(&location).unwrap();
    postgres.wait_for_number(COUNT, 2).await;
    recover(&store, "em_3", "cut").await;
    postgres.wait_for_number(COUNT, 3).await;
    assert_eq!(postgres.query("SELECT reason FROM em_recoveries WHERE request_id = 'em_2'"), "kept");

    postgres.query("UPDATE em_recoveries SET finished_at = '2026-01-01 00:00:00' WHERE request_id <> 'em_3'");
    store.delete_older_than(30).await.unwrap();
    postgres.wait_for_number(COUNT, 1).await;
    store.close().await;
    assert_eq!(recent_recoveries(&location, LogFilter::default()).await[0].request_id, "em_3");
}
