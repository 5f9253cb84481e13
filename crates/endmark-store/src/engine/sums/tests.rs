use std::collections::BTreeMap;

use proptest::prelude::*;
use rusqlite::Connection;

use super::{Dimension, Grain, step};
use crate::counted::{CallClass, CallSums, counted};
use crate::{Reader, Store, StoreLocation};

/// What happens to the ledger between two looks at its sums.
#[derive(Debug, Clone)]
enum Event {
    /// A call of this moment is written; its other fields come out of the number.
    Written { minute: u32, number: u32 },
    /// So many calls, the oldest or the newest, are forgotten.
    Forgotten { calls: u8, newest: bool },
    /// What is not summed yet is.
    Summed,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..4 * 24 * 60_u32, any::<u32>()).prop_map(|(minute, number)| Event::Written { minute, number }),
        1 => (1..6_u8, any::<bool>()).prop_map(|(calls, newest)| Event::Forgotten { calls, newest }),
        2 => Just(Event::Summed),
    ]
}

fn moment(minute: u32) -> String {
    let (day, hour, minute) = (1 + minute / 1_440, minute / 60 % 24, minute % 60);
    format!("2026-11-{day:02} {hour:02}:{minute:02}:00.000")
}

fn happen(connection: &Connection, at: usize, event: &Event) {
    match *event {
        Event::Written { minute, number } => {
            let pick = |among: &[&'static str], by: u32| among[(number >> by) as usize % among.len()];
            let some = |by: u32, value: i64| (number >> by & 1 == 1).then_some(value);
            connection
                .execute(
                    "INSERT INTO usage (request_id, call, purpose, session, credential, upstream, format, model, answered_model,
                       streamed, mode, started_at, http_status, ending, verdict, prompt_tokens, output_tokens, cached_tokens,
                       sent_bytes, received_bytes)
                     VALUES (?1, ?2, ?3, ?4, ?5, 'u', 'f', ?6, ?7, 1, 'auto', ?8, ?9, ?10, ?11, ?12, ?13, ?14, 4001, 83)",
                    rusqlite::params![
                        format!("r{at}"), 1 + (number & 1), pick(&["reply", "resume"], 1), pick(&["s", "t"], 2),
                        some(3, 7), pick(&["m", "deepseek-chat"], 4), some(5, 1).map(|_| "m-2"), moment(minute),
                        some(6, 200), pick(&["clean", "interrupted", "lost"], 7), some(9, 1).map(|_| "cut"),
                        some(10, i64::from(number % 300_000)), some(11, 40), some(12, 99)
                    ],
                )
                .unwrap();
            if number & 0x2000 != 0 {
                connection
                    .execute(
                        "INSERT INTO usage_cache_writes VALUES (?1, ?2, 30, 10)",
                        (format!("r{at}"), 1 + (number & 1)),
                    )
                    .unwrap();
            }
        }
        Event::Forgotten { calls, newest } => {
            let order = if newest { "DESC" } else { "ASC" };
            let sql = format!(
                "DELETE FROM usage WHERE (request_id, call) IN
                   (SELECT request_id, call FROM usage ORDER BY started_at {order} LIMIT ?1)"
            );
            connection.execute(&sql, [calls]).unwrap();
        }
        Event::Summed => while step(connection).unwrap() > 0 {},
    }
}

/// By day, key and class.
type Sums = BTreeMap<(String, String, CallClass), CallSums>;

fn by_sums(reader: &Reader, by: Dimension, since: &str, until: &str) -> Sums {
    let mut sums = Sums::new();
    let add = |summed: &crate::Summed<'_>| {
        let sum = sums
            .entry((summed.at[..10].to_owned(), summed.key.to_owned(), summed.class.clone()))
            .or_default();
        *sum = sum.and(summed.sums);
    };
    reader.sums((by, None), since, until, add).unwrap();
    sums
}

fn by_calls(reader: &Reader, by: Dimension, since: &str, until: &str) -> Sums {
    let mut sums = Sums::new();
    for call in reader.recent_calls(u32::MAX).unwrap() {
        if (since..until).contains(&call.started_at.as_str()) {
            let (class, counts) = counted(&call);
            let place = (Grain::Day.of(&call.started_at).to_owned(), by.key(&call).to_owned(), class);
            let sum = sums.entry(place).or_default();
            *sum = sum.and(&counts);
        }
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_happens_sums_are_those_of_the_calls(
        events in prop::collection::vec(event(), 0..60),
        spans in prop::collection::vec((0..4 * 24 * 60_u32, 0..4 * 24 * 60_u32), 3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::sqlite(folder.path().join("a.db"));
        drop(Store::open(&location).unwrap());
        let connection = Connection::open(location.path()).unwrap();
        connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
        let reader = Reader::open(&location).unwrap();
        for (at, event) in events.iter().enumerate() {
            happen(&connection, at, event);
            if !matches!(event, Event::Written { .. }) {
                prop_assert_eq!(reader.wrong_sums().unwrap(), None);
            }
        }
        let ever = ("0000-01-01 00:00:00".to_owned(), "9999-12-31 23:59:59".to_owned());
        let day = ("2026-11-02 00:00:00".to_owned(), "2026-11-04 00:00:00".to_owned());
        let spans = spans.into_iter().map(|(from, to)| (moment(from), moment(to))).chain([ever, day]);
        for (since, until) in spans {
            for by in Dimension::ALL {
                prop_assert_eq!(by_sums(&reader, by, &since, &until), by_calls(&reader, by, &since, &until));
            }
        }
    }
}

#[test]
fn sums_that_somebody_changed_are_found_and_summed_calls_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    drop(Store::open(&location).unwrap());
    let connection = Connection::open(location.path()).unwrap();
    for at in 0..5 {
        happen(
            &connection,
            at,
            &Event::Written { minute: 700 + 200 * u32::try_from(at).unwrap(), number: 0x0C40 },
        );
    }
    happen(&connection, 5, &Event::Summed);
    let reader = Reader::open(&location).unwrap();
    assert_eq!(reader.wrong_sums().unwrap(), None);
    connection
        .execute("UPDATE usage_sums SET prompt = prompt + 1 WHERE grain = 10 AND dimension = 'key'", [])
        .unwrap();
    assert_eq!(reader.wrong_sums().unwrap().as_deref(), Some("2026-11-01"));
    let (since, until) = ("2026-11-01 00:00:00", "2026-11-03 00:00:00");
    let prompts = |by| -> u64 { by_sums(&reader, by, since, until).values().map(|sums| sums.prompt).sum() };
    assert!(prompts(Dimension::Key) > prompts(Dimension::Session), "they come out of the table");
}
