use std::collections::BTreeMap;

use proptest::prelude::*;
use rusqlite::Connection;

use super::sum_one_day_before;
use crate::engine::sums;
use crate::{CutSummary, Reader, Store, StoreLocation};

const OUTCOMES: [&str; 7] =
    ["resumed", "corrected", "restarted", "cancelled", "interrupted", "cut", "exhausted"];

#[derive(Debug, Clone)]
enum Event {
    /// A reply to a call in this hour of November 2026, with the outcomes of its cut parts.
    Call { hour: u32, is_cut: bool, outcomes: Vec<(usize, bool)> },
    /// Another cut part of the reply with this number.
    Outcome { number: usize, outcome: usize },
    /// The call with this number was deleted. With `log`, only its log was deleted.
    Deleted { number: usize, log: bool },
    /// All days that could be summed were summed. With `calls`, calls were summed first.
    Summed { calls: bool },
}

fn arbitrary_event() -> impl Strategy<Value = Event> {
    let outcomes = prop::collection::vec((0..OUTCOMES.len(), any::<bool>()), 0..3);
    prop_oneof![
        6 => (0..96_u32, 0..4_u8, outcomes)
            .prop_map(|(hour, cut, outcomes)| Event::Call { hour, is_cut: cut > 0, outcomes }),
        1 => (0..60_usize, 0..OUTCOMES.len()).prop_map(|(number, outcome)| Event::Outcome { number, outcome }),
        1 => (0..60_usize, any::<bool>()).prop_map(|(number, log)| Event::Deleted { number, log }),
        3 => (0..4_u8).prop_map(|calls| Event::Summed { calls: calls > 0 }),
    ]
}

fn log(connection: &Connection, number: usize, outcome: usize, is_own_limit: bool) {
    let reason = if is_own_limit { crate::records::REASON_CLIENT_LIMIT } else { "another" };
    let sql = "INSERT INTO partial_completion_log (task_id, turn_number, final_status) VALUES ('t', 1, 'EXHAUSTED')";
    connection.execute(sql, []).unwrap();
    connection
        .execute(
            "INSERT INTO recoveries (log_id, request_id, slot, model, provider, cut_kind, outcome, reason)
               VALUES (last_insert_rowid(), ?1, 's', 'm', 'u', 'limit', ?2, ?3)",
            (format!("r{number}"), OUTCOMES[outcome], reason),
        )
        .unwrap();
}

fn write(connection: &Connection, number: usize, hour: u32, is_cut: bool) {
    let (day, of_day) = (1 + hour / 24, hour % 24);
    connection
        .execute(
            "INSERT INTO usage (request_id, call, purpose, session, upstream, format, model, streamed, mode, started_at,
               ending, verdict, cut_kind, prompt_tokens, sent_bytes, received_bytes)
               VALUES (?1, 1, ?2, 's', 'u', 'f', ?3, 1, 'auto', ?4, 'clean', ?5, 'limit', ?6, 400, 80)",
            (
                format!("r{number}"),
                if number % 7 == 6 { "resume" } else { "reply" },
                if number.is_multiple_of(2) { "m" } else { "n" },
                format!("2026-11-{day:02} {of_day:02}:30:00.000"),
                if is_cut { "cut" } else { "whole" },
                (!number.is_multiple_of(3)).then_some(50),
            ),
        )
        .unwrap();
}

fn apply_event(connection: &Connection, at: usize, event: &Event) {
    match event {
        Event::Call { hour, is_cut, outcomes } => {
            write(connection, at, *hour, *is_cut);
            for (outcome, is_own_limit) in outcomes {
                log(connection, at, *outcome, *is_own_limit);
            }
        }
        Event::Outcome { number, outcome } => log(connection, *number, *outcome, false),
        Event::Deleted { number, log } => {
            let table = if *log { "recoveries" } else { "usage" };
            let sql = format!("DELETE FROM {table} WHERE request_id = 'r{number}'");
            connection.execute(&sql, []).unwrap();
        }
        Event::Summed { calls } => {
            while *calls && sums::sum_oldest_calls(connection).unwrap() > 0 {}
            while sum_one_day_before(connection, "'9999'").unwrap() {}
        }
    }
}

type Contents = (Vec<CutSummary>, BTreeMap<(String, String), u64>);

/// Returns the summaries and the daily sums of a span.
fn contents_by_day(reader: &Reader, since: &str, until: &str) -> Contents {
    let (summaries, periods) = reader.cut_replies(since, until).unwrap();
    let mut days = BTreeMap::new();
    for period in periods {
        *days.entry((period.period[..10].to_owned(), period.outcome)).or_default() += period.replies;
    }
    (summaries, days)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn daily_sums_always_equal_the_sum_of_the_replies(
        events in prop::collection::vec(arbitrary_event(), 0..60),
        spans in prop::collection::vec((0..96_u32, 0..96_u32), 3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::sqlite(folder.path().join("a.db"));
        drop(Store::open(&location).unwrap());
        let connection = Connection::open(location.path()).unwrap();
        connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
        let reader = Reader::open(&location).unwrap();
        for (at, event) in events.iter().enumerate() {
            apply_event(&connection, at, event);
        }
        prop_assert_eq!(reader.wrong_sums().unwrap(), None);
        let moment = |hour: u32| format!("2026-11-{:02} {:02}:00:00", 1 + hour / 24, hour % 24);
        let mut spans: Vec<_> = spans.into_iter().map(|(from, to)| (moment(from), moment(to))).collect();
        spans.push((moment(0), moment(96)));
        let all = || spans.iter().map(|(since, until)| contents_by_day(&reader, since, until)).collect::<Vec<_>>();
        let summed = all();
        connection.execute("DELETE FROM cut_sums", []).unwrap();
        prop_assert_eq!(summed, all());
    }
}

#[test]
fn summed_days_are_read_from_sums_and_wrong_sums_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::sqlite(folder.path().join("a.db"));
    drop(Store::open(&location).unwrap());
    let connection = Connection::open(location.path()).unwrap();
    let reader = Reader::open(&location).unwrap();
    for number in 0..4 {
        write(&connection, number, 20 * u32::try_from(number).unwrap(), true);
        log(&connection, number, 0, false);
    }
    assert!(!sum_one_day_before(&connection, "'9999'").unwrap(), "the calls come first");
    apply_event(&connection, 4, &Event::Summed { calls: true });
    let replies = |since, until| -> u64 {
        contents_by_day(&reader, since, until).0.iter().map(|cut| cut.replies).sum()
    };
    assert_eq!(replies("2026-11-01 00:00:00", "2026-11-04 00:00:00"), 4);
    connection.execute("UPDATE cut_sums SET replies = replies + 10 WHERE day = '2026-11-01'", []).unwrap();
    assert_eq!(replies("2026-11-01 00:00:00", "2026-11-04 00:00:00"), 24, "two models");
    assert_eq!(replies("2026-11-01 01:00:00", "2026-11-04 00:00:00"), 3, "a part of a day is read");
    assert_eq!(reader.wrong_sums().unwrap().as_deref(), Some("2026-11-01"));
}
