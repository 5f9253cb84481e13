//! Every upstream call has one row when it is over, however it ends.

use std::path::Path;
use std::process::Command;

use endmark_store::{
    Billing, CallSettled, CallStarted, NoSecrets, Purpose, Store, StoreLocation, Tokens, UsageRow,
};

use crate::place::Place;

over_both_stores! {
    a_call_that_is_settled_and_one_that_is_dropped_have_their_rows,
    what_a_dead_process_left_on_its_slate_becomes_rows_once,
    a_call_that_is_over_after_the_close_has_its_row_at_the_next_start,
    rows_wait_while_the_database_is_locked_and_are_all_there_afterwards,
    old_calls_are_forgotten,
    counts_beside_a_call_are_kept_and_forgotten_with_it,
}

fn started(request_id: &str, call: u32) -> CallStarted {
    CallStarted {
        request_id: request_id.to_owned(),
        call,
        purpose: if call == 1 { Purpose::Reply } else { Purpose::Resume },
        session: "5e55".to_owned(),
        credential: Some("c4ed".to_owned()),
        upstream: "local".to_owned(),
        format: "openai_chat".into(),
        model: "m".to_owned(),
        streamed: true,
        mode: "auto".into(),
        started_ms: 1_700_000_000_123,
        sent_bytes: 40,
        prompt_estimate: 10,
        charges: Vec::new(),
    }
}

fn settled() -> CallSettled {
    CallSettled {
        answered_model: Some("m-2".to_owned()),
        http_status: Some(200),
        ending: "clean".into(),
        stop: Some("limit".into()),
        verdict: Some("cut".into()),
        cut_kind: Some("limit".into()),
        tokens: Tokens { prompt: Some(7), output: Some(3), total: Some(10), ..Tokens::default() },
        billing: Billing::default(),
        nano_usd: None,
        received_bytes: 99,
        estimate: None,
        first_byte_us: Some(1_500),
        total_us: 20_250,
    }
}

fn rows(location: &StoreLocation) -> Vec<UsageRow> {
    endmark_store::Reader::open(location).unwrap().recent_calls(1_000).unwrap()
}

fn slates(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("-owner-")).count()
}

async fn a_call_that_is_settled_and_one_that_is_dropped_have_their_rows(place: &Place) {
    let (location, store) = place.open();
    let first = store.recorder(NoSecrets).open_call(started("em_1", 1)).await;
    let second = store.recorder(NoSecrets).open_call(started("em_1", 2)).await;
    assert_eq!(store.condition().calls_open, 2);
    first.settle(settled());
    drop(second);
    store.close().await;
    assert_eq!(slates(place.folder()), 0);
    let calls = endmark_store::Reader::open(&location).unwrap().calls_of("em_1").unwrap();
    let [reply, resume] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!(
        (reply.purpose.as_str(), reply.ending.as_str(), reply.http_status),
        ("reply", "clean", Some(200))
    );
    assert_eq!((reply.tokens.output, reply.tokens.cached), (Some(3), None), "what is not reported is NULL");
    assert_eq!((reply.started_at.as_str(), reply.first_byte_ms), ("2023-11-14 22:13:20.123", Some(1.5)));
    assert_eq!(reply.ended_at.as_deref(), Some("2023-11-14 22:13:20.143"));
    assert_eq!(
        (resume.purpose.as_str(), resume.ending.as_str(), resume.http_status),
        ("resume", "cancelled", None)
    );
}

async fn what_a_dead_process_left_on_its_slate_becomes_rows_once(place: &Place) {
    let (location, store) = place.open();
    let under_way = store.recorder(NoSecrets).open_call(started("em_1", 1)).await;
    store.recorder(NoSecrets).open_call(started("em_2", 1)).await.settle(settled());
    // A copy of the slate, as a killed process leaves it: no process holds its lock.
    let mut entries = std::fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().path());
    let slate = entries.find(|path| path.to_string_lossy().contains("-owner-")).unwrap();
    let copy = place.folder().join("a.db-owner-1-dead");
    std::fs::copy(slate, &copy).unwrap();
    under_way.settle(settled());
    store.close().await;

    for _ in 0..2 {
        Store::open(&location).unwrap().close().await;
        let rows = rows(&location);
        assert_eq!(rows.len(), 2, "a call that has its row already keeps it: {rows:?}");
        assert!(rows.iter().all(|row| row.ending == "clean"));
        assert_eq!(slates(place.folder()), 0);
    }
}

async fn a_call_that_is_over_after_the_close_has_its_row_at_the_next_start(place: &Place) {
    let (location, store) = place.open();
    let under_way = store.recorder(NoSecrets).open_call(started("em_3", 1)).await;
    // If the store closes before the call is over, the call is left to the next start.
    store.close().await;
    assert_eq!(slates(place.folder()), 1);
    drop((under_way, store));
    Store::open(&location).unwrap().close().await;
    let calls = rows(&location);
    assert_eq!((calls.len(), calls[0].ending.as_str()), (1, "cancelled"), "what it said last counts");
}

async fn rows_wait_while_the_database_is_locked_and_are_all_there_afterwards(place: &Place) {
    let (location, store) = place.open();
    let mut shell = Command::new("sqlite3")
        .arg(location.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut typing = shell.stdin.take().unwrap();
    std::io::Write::write_all(&mut typing, b"BEGIN IMMEDIATE;\nSELECT 'locked';\n").unwrap();
    let mut said = String::new();
    let mut reading = std::io::BufReader::new(shell.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut reading, &mut said).unwrap();
    for number in 0..500 {
        store.recorder(NoSecrets).open_call(started(&format!("em_{number}"), 1)).await.settle(settled());
    }
    assert_eq!(rows(&location).len(), 0);
    drop(typing);
    shell.wait().unwrap();
    store.close().await;
    assert_eq!(rows(&location).len(), 500);
    assert!(store.condition().rows_committed == 500 && store.condition().rows_lost == 0);
}

async fn old_calls_are_forgotten(place: &Place) {
    let (location, store) = place.open();
    store.recorder(NoSecrets).open_call(started("em_old", 1)).await.settle(settled());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let recent = CallStarted { started_ms: u64::try_from(now).unwrap(), ..started("em_new", 1) };
    store.recorder(NoSecrets).open_call(recent).await.settle(settled());
    while store.condition().rows_committed < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(store.forget_after(30).await.unwrap(), 1);
    store.close().await;
    assert_eq!(rows(&location)[0].request_id, "em_new");
}

async fn counts_beside_a_call_are_kept_and_forgotten_with_it(place: &Place) {
    let (location, store) = place.open();
    let tokens = Tokens { cache_written: Some(5), cache_written_1h: Some(2), ..settled().tokens };
    let call = store.recorder(NoSecrets).open_call(started("em_old", 1)).await;
    let billing = Billing { tier: Some("flex".to_owned()), cached_audio: 4, ..Billing::default() };
    call.settle(CallSettled { tokens, billing: billing.clone(), ..settled() });
    while store.condition().rows_committed < 1 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!((rows(&location)[0].tokens, &rows(&location)[0].billing), (tokens, &billing));
    assert_eq!(store.forget_after(30).await.unwrap(), 1);
    store.close().await;
    let left = rusqlite::Connection::open(location.path()).unwrap();
    for table in ["usage_cache_writes", "usage_billing"] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(left.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "{table}");
    }
}
