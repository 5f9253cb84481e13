//! Every upstream call gets one row after its end, however it ends.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use endmark_store::{
    Billing, CallClass, CallSettled, CallStarted, CallSums, CountedCalls, Dimension, NoSecrets, Purpose,
    Reader, Store, StoreLocation, TokenEstimate, Tokens, UsageRow, classify, shared_sums,
};

use crate::place::Place;

over_both_stores! {
    settled_and_dropped_calls_have_rows,
    the_slate_of_a_dead_process_becomes_rows_once,
    a_call_that_ends_after_the_close_gets_its_row_at_the_next_start,
    rows_wait_for_a_locked_database_and_none_is_lost,
    old_calls_are_deleted,
    extra_counts_are_kept_and_deleted_with_their_call,
    sums_cover_all_calls,
}

fn call_started(request_id: &str, call: u32) -> CallStarted {
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

fn call_settled() -> CallSettled {
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

async fn settled_and_dropped_calls_have_rows(place: &Place) {
    let (location, store) = place.open();
    let first = store.recorder(NoSecrets).open_call(call_started("em_1", 1)).await;
    let second = store.recorder(NoSecrets).open_call(call_started("em_1", 2)).await;
    assert_eq!(store.condition().calls_open, 2);
    first.settle(call_settled());
    drop(second);
    store.close().await;
    assert_eq!(slates(place.folder()), 0);
    let calls = endmark_store::Reader::open(&location).unwrap().request_calls("em_1").unwrap();
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

async fn the_slate_of_a_dead_process_becomes_rows_once(place: &Place) {
    let (location, store) = place.open();
    let under_way = store.recorder(NoSecrets).open_call(call_started("em_1", 1)).await;
    store.recorder(NoSecrets).open_call(call_started("em_2", 1)).await.settle(call_settled());
    // A copy of the slate as a killed process leaves it, because no process holds its lock.
    let mut entries = std::fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().path());
    let slate = entries.find(|path| path.to_string_lossy().contains("-owner-")).unwrap();
    let copy = place.folder().join("a.db-owner-1-dead");
    std::fs::copy(slate, &copy).unwrap();
    under_way.settle(call_settled());
    store.close().await;

    for _ in 0..2 {
        Store::open(&location).unwrap().close().await;
        let rows = rows(&location);
        assert_eq!(rows.len(), 2, "a call that has its row already keeps it: {rows:?}");
        assert!(rows.iter().all(|row| row.ending == "clean"));
        assert_eq!(slates(place.folder()), 0);
    }
}

async fn a_call_that_ends_after_the_close_gets_its_row_at_the_next_start(place: &Place) {
    let (location, store) = place.open();
    let under_way = store.recorder(NoSecrets).open_call(call_started("em_3", 1)).await;
    // If the store closes before the call has ended, the next start writes the row.
    store.close().await;
    assert_eq!(slates(place.folder()), 1);
    drop((under_way, store));
    Store::open(&location).unwrap().close().await;
    let calls = rows(&location);
    assert_eq!((calls.len(), calls[0].ending.as_str()), (1, "cancelled"), "what it said last counts");
}

async fn rows_wait_for_a_locked_database_and_none_is_lost(place: &Place) {
    let (location, store) = place.open();
    let mut shell = Command::new("sqlite3")
        .arg(location.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut typing = shell.stdin.take().unwrap();
    std::io::Write::write_all(&mut typing, b"BEGIN IMMEDIATE;\nSELECT 'locked';\n").unwrap();
    let mut line = String::new();
    let mut reading = std::io::BufReader::new(shell.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut reading, &mut line).unwrap();
    for number in 0..500 {
        store
            .recorder(NoSecrets)
            .open_call(call_started(&format!("em_{number}"), 1))
            .await
            .settle(call_settled());
    }
    assert_eq!(rows(&location).len(), 0);
    drop(typing);
    shell.wait().unwrap();
    store.close().await;
    assert_eq!(rows(&location).len(), 500);
    assert!(store.condition().rows_committed == 500 && store.condition().rows_lost == 0);
}

async fn old_calls_are_deleted(place: &Place) {
    let (location, store) = place.open();
    store.recorder(NoSecrets).open_call(call_started("em_old", 1)).await.settle(call_settled());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let recent = CallStarted { started_ms: u64::try_from(now).unwrap(), ..call_started("em_new", 1) };
    store.recorder(NoSecrets).open_call(recent).await.settle(call_settled());
    while store.condition().rows_committed < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(store.delete_older_than(30).await.unwrap(), 1);
    store.close().await;
    assert_eq!(rows(&location)[0].request_id, "em_new");
}

async fn extra_counts_are_kept_and_deleted_with_their_call(place: &Place) {
    let (location, store) = place.open();
    let tokens = Tokens { cache_written: Some(5), cache_written_1h: Some(2), ..call_settled().tokens };
    let call = store.recorder(NoSecrets).open_call(call_started("em_old", 1)).await;
    let billing = Billing { tier: Some("flex".to_owned()), cached_audio: 4, ..Billing::default() };
    call.settle(CallSettled { tokens, billing: billing.clone(), ..call_settled() });
    while store.condition().rows_committed < 1 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!((rows(&location)[0].tokens, &rows(&location)[0].billing), (tokens, &billing));
    assert_eq!(store.delete_older_than(30).await.unwrap(), 1);
    store.close().await;
    let left = rusqlite::Connection::open(location.path()).unwrap();
    for table in ["usage_cache_writes", "usage_billing"] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(left.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "{table}");
    }
}

/// Makes one of many different calls. The bits of `number` determine its fields.
async fn make_varied_call(store: &Store, nth: u32, number: u32) {
    let is = |bit: u32| number >> bit & 1 == 1;
    let started = CallStarted {
        session: if is(0) { "5e55" } else { "0th3r" }.to_owned(),
        credential: is(1).then(|| "c4ed".to_owned()),
        model: if is(2) { "DeepSeek-chat" } else { "m" }.to_owned(),
        mode: if is(3) { "off".into() } else { "auto".into() },
        // The calls are five hours apart, over several days.
        started_ms: 1_793_491_200_000 + u64::from(number % 31) * 17_999_000,
        ..call_started(&format!("em_{nth}_{number}"), 1 + (number >> 4 & 1))
    };
    let open = store.recorder(NoSecrets).open_call(started).await;
    open.settle(CallSettled {
        answered_model: is(5).then(|| "m-2".to_owned()),
        ending: if is(6) { "interrupted".into() } else { "clean".into() },
        verdict: is(7).then_some(if is(8) { "cut".into() } else { "whole".into() }),
        tokens: Tokens {
            prompt: is(9).then(|| u64::from(number) * 7 % 600_000),
            output: is(10).then_some(40),
            cached: is(11).then_some(99),
            cache_written: is(12).then_some(30),
            cache_written_1h: is(13).then_some(10),
            reasoning: is(14).then_some(15),
            total: None,
        },
        estimate: is(15).then_some(TokenEstimate { prompt: 200_001, output: 6 }),
        billing: Billing {
            tier: is(16).then(|| "flex".to_owned()),
            web_searches: u64::from(is(17)),
            ..Billing::default()
        },
        ..call_settled()
    });
}

type Sums = BTreeMap<(String, String, CallClass), CallSums>;

fn add(sums: &mut Sums, summed: &CountedCalls<'_>) {
    let place = (summed.started_at[..10].to_owned(), summed.key.to_owned(), summed.class.clone());
    let sum = sums.entry(place).or_default();
    *sum = sum.plus(summed.sums);
}

/// Returns the sums of the store, and the calls that are billed separately.
async fn known_sums(
    location: &StoreLocation,
    by: Dimension,
    since: &str,
    until: &str,
) -> (Sums, Vec<UsageRow>) {
    let mut sums = Sums::new();
    if let Some(shared) = shared_sums(location, by, since, until).await.unwrap() {
        shared.iter().for_each(|summed| add(&mut sums, &summed));
        return (sums, shared.separately_billed);
    }
    let reader = Reader::open(location).unwrap();
    reader.sums((by, None), since, until, |summed| add(&mut sums, summed)).unwrap();
    (sums, reader.separately_billed_calls(None, since, until).unwrap())
}

async fn sums_cover_all_calls(place: &Place) {
    let (location, other) = (place.location(), place.other_location());
    for phase in 0..2 {
        let stores = [&location, &other].map(|location| Store::open(location).unwrap());
        for bit in 0..18_u32 {
            for number in [1 << bit, !(1_u32 << bit) & 0x3_FFFF, (1 << bit) * 5 + 0x600] {
                make_varied_call(&stores[bit as usize % 2], phase * 100 + bit, number + phase).await;
            }
        }
        for store in stores {
            store.close().await;
        }
        check_sums(place).await;
        // An instance sums calls before it closes. Calls of the same time that follow are late.
        Store::open(&location).unwrap().close().await;
        check_sums(place).await;
    }
}

async fn check_sums(place: &Place) {
    let location = place.location();
    let mut calls = rows(&location);
    if place.is_shared() {
        calls.extend(rows(&place.other_location()));
    }
    calls.sort_by(|one, other| one.request_id.cmp(&other.request_id));
    for (since, until) in [
        ("0000-01-01 00:00:00", "9999-12-31 23:59:59"),
        ("2026-11-02 00:00:00", "2026-11-05 00:00:00"),
        ("2026-11-02 09:00:00", "2026-11-04 21:00:00"),
        ("2026-11-03 01:00:00", "2026-11-03 23:00:00"),
        ("2026-11-03 23:00:00", "2026-11-04 07:00:00"),
    ] {
        let within = |call: &&UsageRow| (since..until).contains(&call.started_at.as_str());
        let apart = calls.iter().filter(within).filter(|call| call.billing != Billing::default());
        for by in [Dimension::Nothing, Dimension::Key, Dimension::Session] {
            let mut expected = Sums::new();
            for call in calls.iter().filter(within) {
                let (class, sums) = classify(call);
                let key = match by {
                    Dimension::Nothing => "",
                    Dimension::Key => call.credential.as_deref().unwrap_or_default(),
                    Dimension::Session => &call.session,
                };
                add(
                    &mut expected,
                    &CountedCalls { started_at: &call.started_at, key, class: &class, sums: &sums },
                );
            }
            let (sums, mut billed_apart) = known_sums(&location, by, since, until).await;
            let differing: Vec<_> =
                expected.iter().filter(|(place, sum)| sums.get(place) != Some(sum)).collect();
            assert_eq!(
                (sums.len(), differing),
                (expected.len(), vec![]),
                "{by:?} from {since} until {until}"
            );
            billed_apart.sort_by(|one, other| one.request_id.cmp(&other.request_id));
            assert!(apart.clone().eq(&billed_apart), "{by:?} from {since} until {until}");
        }
    }
}
