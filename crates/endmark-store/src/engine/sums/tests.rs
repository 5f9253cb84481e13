use std::collections::BTreeMap;

use proptest::prelude::*;
use rusqlite::Connection;

use super::{Dimension, SumPeriod, sum_oldest_calls};
use crate::calls::{Billing, Call, CallSettled, CallStarted, Purpose, TokenEstimate, Tokens};
use crate::counted::{CallClass, CallSums, classify};
use crate::engine::RowOutcome;
use crate::engine::usage::{insert, record_all, usage_row_from};
use crate::{Reader, Store, StoreLocation};

/// The first of November 2026.
const NOVEMBER_MS: u64 = 1_793_491_200_000;

/// An event between two checks of the sums.
#[derive(Debug, Clone)]
enum Event {
    /// Calls that began in this minute are written in one transaction. Their other fields follow from
    /// `numbers`.
    Written { minute: u32, numbers: Vec<u32> },
    /// The oldest or the newest calls are deleted. `calls` is their number.
    Forgotten { calls: u8, newest: bool },
    /// Calls that are not summed yet are summed.
    Summed,
}

fn arbitrary_event() -> impl Strategy<Value = Event> {
    let numbers = prop_oneof![
        prop::collection::vec(any::<u32>(), 1..4),
        // Equal calls, which are summed together.
        (any::<u32>(), 3..12_usize).prop_map(|(number, calls)| vec![number; calls]),
    ];
    prop_oneof![
        8 => (0..4 * 24 * 60_u32, numbers).prop_map(|(minute, numbers)| Event::Written { minute, numbers }),
        1 => (1..6_u8, any::<bool>()).prop_map(|(calls, newest)| Event::Forgotten { calls, newest }),
        2 => Just(Event::Summed),
    ]
}

/// A call that began in this minute of November 2026.
fn call(request_id: String, minute: u32, number: u32) -> Call {
    let is = |bit: u32| number >> bit & 1 == 1;
    let settled = CallSettled {
        answered_model: is(5).then(|| "m-2".to_owned()),
        http_status: is(6).then_some(200),
        ending: if is(7) { "clean".into() } else { "lost".into() },
        stop: is(8).then_some("stop".into()),
        verdict: is(9).then_some("cut".into()),
        tokens: Tokens {
            prompt: is(10).then(|| u64::from(number % 300_000)),
            output: is(11).then_some(40),
            cached: is(12).then_some(99),
            cache_written: is(13).then_some(30),
            cache_written_1h: is(14).then_some(10),
            ..Tokens::default()
        },
        billing: Billing { web_searches: u64::from(is(15)), ..Billing::default() },
        received_bytes: 83,
        estimate: is(16).then_some(TokenEstimate { prompt: 1_001, output: 6 }),
        first_byte_us: is(17).then_some(1_250),
        total_us: 2_500,
        ..CallSettled::default()
    };
    let started = CallStarted {
        request_id,
        call: 1 + (number & 1),
        purpose: if is(1) { Purpose::Resume } else { Purpose::Reply },
        session: if is(2) { "s".to_owned() } else { "t".to_owned() },
        credential: is(3).then(|| "7".to_owned()),
        upstream: "u".to_owned(),
        format: "f".into(),
        model: if is(4) { "m".to_owned() } else { "deepseek-chat".to_owned() },
        streamed: true,
        mode: "auto".into(),
        started_ms: NOVEMBER_MS + u64::from(minute) * 60_000,
        sent_bytes: 4_001,
        prompt_estimate: 1_001,
        charges: Vec::new(),
    };
    Call { started, settled: (!is(18)).then_some(settled) }
}

fn moment(minute: u32) -> String {
    let (day, hour, minute) = (1 + minute / 1_440, minute / 60 % 24, minute % 60);
    format!("2026-11-{day:02} {hour:02}:{minute:02}:00.000")
}

fn apply_event(connection: &Connection, at: usize, event: &Event) {
    match *event {
        Event::Written { minute, ref numbers } => {
            let of = |(nth, number): (usize, &u32)| call(format!("r{at}-{nth}"), minute, *number);
            let calls: Vec<Call> = numbers.iter().enumerate().map(of).collect();
            let recorded = record_all(connection, &calls.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(recorded, vec![RowOutcome::Kept; calls.len()]);
        }
        Event::Forgotten { calls, newest } => {
            let order = if newest { "DESC" } else { "ASC" };
            let sql = format!(
                "DELETE FROM usage WHERE (request_id, call) IN
                   (SELECT request_id, call FROM usage ORDER BY started_at {order} LIMIT ?1)"
            );
            connection.execute(&sql, [calls]).unwrap();
        }
        Event::Summed => while sum_oldest_calls(connection).unwrap() > 0 {},
    }
}

/// By day, key and class.
type Sums = BTreeMap<(String, String, CallClass), CallSums>;

fn read_sums(reader: &Reader, by: Dimension, since: &str, until: &str) -> Sums {
    let mut sums = Sums::new();
    let add = |summed: &crate::CountedCalls<'_>| {
        let sum = sums
            .entry((summed.started_at[..10].to_owned(), summed.key.to_owned(), summed.class.clone()))
            .or_default();
        *sum = sum.plus(summed.sums);
    };
    reader.sums((by, None), since, until, add).unwrap();
    sums
}

fn sum_each_call(reader: &Reader, by: Dimension, since: &str, until: &str) -> Sums {
    let mut sums = Sums::new();
    for call in reader.recent_calls(u32::MAX).unwrap() {
        if (since..until).contains(&call.started_at.as_str()) {
            let (class, counts) = classify(&call);
            let place =
                (SumPeriod::Day.period_of(&call.started_at).to_owned(), by.key(&call).to_owned(), class);
            let sum = sums.entry(place).or_default();
            *sum = sum.plus(&counts);
        }
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sums_always_equal_the_sum_of_the_calls(
        events in prop::collection::vec(arbitrary_event(), 0..60),
        spans in prop::collection::vec((0..4 * 24 * 60_u32, 0..4 * 24 * 60_u32), 3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::sqlite(folder.path().join("a.db"));
        drop(Store::open(&location).unwrap());
        let connection = Connection::open(location.path()).unwrap();
        connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
        let reader = Reader::open(&location).unwrap();
        for (at, event) in events.iter().enumerate() {
            apply_event(&connection, at, event);
            if !matches!(event, Event::Written { .. }) {
                prop_assert_eq!(reader.wrong_sums().unwrap(), None);
            }
        }
        let ever = ("0000-01-01 00:00:00".to_owned(), "9999-12-31 23:59:59".to_owned());
        let day = ("2026-11-02 00:00:00".to_owned(), "2026-11-04 00:00:00".to_owned());
        let spans = spans.into_iter().map(|(from, to)| (moment(from), moment(to))).chain([ever, day]);
        for (since, until) in spans {
            for by in Dimension::ALL {
                prop_assert_eq!(read_sums(&reader, by, &since, &until), sum_each_call(&reader, by, &since, &until));
            }
        }
    }
}

#[test]
fn modified_sums_are_detected_and_summed_calls_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    drop(Store::open(&location).unwrap());
    let connection = Connection::open(location.path()).unwrap();
    for at in 0..5 {
        apply_event(
            &connection,
            at,
            &Event::Written { minute: 700 + 200 * u32::try_from(at).unwrap(), numbers: vec![0x0C40] },
        );
    }
    apply_event(&connection, 5, &Event::Summed);
    let reader = Reader::open(&location).unwrap();
    assert_eq!(reader.wrong_sums().unwrap(), None);
    connection
        .execute("UPDATE usage_sums SET prompt = prompt + 1 WHERE grain = 10 AND dimension = 'key'", [])
        .unwrap();
    assert_eq!(reader.wrong_sums().unwrap().as_deref(), Some("2026-11-01"));
    let (since, until) = ("2026-11-01 00:00:00", "2026-11-03 00:00:00");
    let prompts = |by| -> u64 { read_sums(&reader, by, since, until).values().map(|sums| sums.prompt).sum() };
    assert!(prompts(Dimension::Key) > prompts(Dimension::Session), "they come out of the table");
}

#[test]
fn similar_calls_are_summed_with_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    drop(Store::open(&location).unwrap());
    let connection = Connection::open(location.path()).unwrap();
    let left = || {
        let sql = "SELECT count(*) FROM usage WHERE is_summed = 0";
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    apply_event(&connection, 0, &Event::Written { minute: 700, numbers: vec![0x0C40; 9] });
    assert_eq!(left(), 0);
    apply_event(&connection, 1, &Event::Written { minute: 700, numbers: vec![0x0C40; 2] });
    apply_event(&connection, 2, &Event::Written { minute: 700, numbers: vec![0, 4, 8] });
    assert_eq!(left(), 5);
}

#[test]
fn a_written_and_a_read_call_have_the_same_sums() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    drop(Store::open(&location).unwrap());
    let connection = Connection::open(location.path()).unwrap();
    let reader = Reader::open(&location).unwrap();
    for bit in 0..20 {
        for number in [1 << bit, !(1_u32 << bit) & !1 & 0xF_FFFF] {
            let request_id = format!("r{number}");
            let call = call(request_id.clone(), number % 5_000, number);
            insert(&connection, &call).unwrap();
            assert_eq!(reader.request_calls(&request_id).unwrap(), [usage_row_from(&call)], "{number:x}");
        }
    }
}
