//! Checks the invariants of capping with generated values.

mod invariants;

use proptest::prelude::*;
use serde_json::Value;

use self::invariants::{assert_invariants, count_test_tokens};
use super::marker::group_thousands;
use super::{Capper, Format, Keep, Limits, ReadMethod, RequestedFormat, Unit, cap};

fn limits_of(most: usize) -> Limits {
    Limits { most, ..Limits::default() }
}

fn keep() -> impl Strategy<Value = Keep> {
    prop_oneof![Just(Keep::Both), Just(Keep::Head), Just(Keep::Tail)]
}

fn unit() -> impl Strategy<Value = Unit> {
    prop_oneof![Just(Unit::Chars), Just(Unit::Bytes), Just(Unit::Tokens(count_test_tokens))]
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let handle = proptest::option::of(Just("h0123456789abcdef".to_owned()));
    (140_usize..3_000, unit(), 1_usize..60, keep(), handle).prop_map(
        |(most, unit, max_items, keep, handle)| Limits {
            most,
            unit,
            max_items,
            keep,
            handle,
            way: ReadMethod::Command,
            keeps_types: false,
        },
    )
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "(INFO|DEBUG) [a-z ]{0,60}",
        1 => "ERROR [a-z]{3,9} failed: [0-9]{1,4}",
        1 => "\\PC{0,40}",
        1 => "[x👩‍👧é]{200,900}",
        1 => Just(String::new()),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(Value::from),
        "[a-zé\"\\\\\n👍]{0,12}".prop_map(Value::from),
        "[a-z \n]{200,700}".prop_map(Value::from),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 400, 40, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
            proptest::collection::hash_map("[a-zé]{1,8}", inner, 0..30)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn row() -> impl Strategy<Value = String> {
    let fields = (any::<u16>(), "[a-z ]{0,20}", prop_oneof![30 => Just("ok"), 1 => Just("lost")]);
    fields.prop_map(|(id, name, state)| format!(r#"{{"id": {id}, "name": "{name}", "state": "{state}"}}"#))
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![6 => "[a-z0-9]{0,10}", 1 => "\"([a-z ,é\n]|\"\"){0,30}\"", 1 => "[a-z]{300,500}"]
}

proptest! {
    // Fewer cases, because each value is capped several times.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn a_capped_text_has_correct_counts(lines in proptest::collection::vec(line(), 0..120), end in "\n?", limits in any_limits(), chunk in 1_usize..5_000) {
        assert_invariants((lines.join("\n") + &end).as_bytes(), RequestedFormat::Text, &limits, chunk);
    }

    #[test]
    fn arbitrary_bytes_are_capped_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), limits in any_limits(), chunk in 1_usize..700) {
        for requested_format in [RequestedFormat::Auto, RequestedFormat::Text, RequestedFormat::Json, RequestedFormat::JsonLines, RequestedFormat::Csv, RequestedFormat::Diff] {
            assert_invariants(&bytes, requested_format, &limits, chunk);
        }
    }

    #[test]
    fn capped_json_stays_json(value in json(), is_pretty: bool, limits in any_limits(), chunk in 1_usize..5_000) {
        let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        assert_invariants(text.unwrap().as_bytes(), RequestedFormat::Json, &limits, chunk);
    }

    #[test]
    fn capped_json_lines_stay_json_lines(rows in proptest::collection::vec(row(), 0..200), limits in any_limits(), chunk in 1_usize..5_000) {
        assert_invariants(format!("[{}]", rows.join(",\n ")).as_bytes(), RequestedFormat::Auto, &limits, chunk);
        assert_invariants((rows.join("\n") + "\n").as_bytes(), RequestedFormat::JsonLines, &limits, chunk);
    }

    #[test]
    fn a_capped_table_stays_a_table(rows in proptest::collection::vec((field(), field(), field()), 0..150), limits in any_limits(), chunk in 1_usize..5_000) {
        let mut text = "id,name,state\n".to_owned();
        for (one, two, three) in rows {
            text.extend([&one, ",", &two, ",", &three, "\n"]);
        }
        assert_invariants(text.as_bytes(), RequestedFormat::Csv, &limits, chunk);
    }
}

/// If a marker would make a list longer, the list keeps all its items. A second capping must then not reserve
/// room for a marker.
#[test]
fn a_list_that_is_kept_whole_reserves_no_room_for_a_marker() {
    let value = format!(r#"{{"a":[0,0,null,null],"b":"{}"}}"#, r"line\nafter line ".repeat(40));
    for most in 500..value.len() {
        let own = Limits { max_items: 3, ..limits_of(most) };
        let once = cap(value.as_bytes(), RequestedFormat::Json, &own).unwrap();
        assert_eq!(cap(once.text.as_bytes(), RequestedFormat::Json, &own).unwrap().text, once.text, "{most}");
    }
}

#[test]
fn a_log_keeps_its_head_its_tail_and_its_errors() {
    let mut lines: Vec<String> =
        (0..20_000).map(|number| format!("2026-11-24 12:00:00 INFO job {number} done")).collect();
    lines[9_000] = "2026-11-24 12:00:00 ERROR disk sdb: gone".to_owned();
    let capped = cap(lines.join("\n").as_bytes(), RequestedFormat::Auto, &limits_of(2_000)).unwrap();
    let shown: Vec<&str> = capped.text.lines().collect();
    assert!(shown[0].starts_with("[… ") && shown[0].ends_with(" left out …]"), "{}", shown[0]);
    assert_eq!(shown[1], lines[0]);
    assert_eq!(shown.last(), Some(&lines[19_999].as_str()));
    let error = shown.iter().position(|line| line.contains("sdb")).unwrap();
    assert_eq!(&shown[error - 2..=error + 2], &lines[8_998..=9_002]);
    assert!(shown[error - 3].starts_with("[… ") && shown[error + 3].starts_with("[… "));
    assert!(capped.text.len() > 1_800, "{}", capped.text.len());
}

/// These traces of Go, Java, Python, Rust and Node.js have more frames than an error line has neighbours.
#[test]
fn a_log_keeps_stack_trace_frames() {
    let frames = |frame: fn(usize) -> String| (1..=9).map(frame).collect::<String>();
    let traces = [
        "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\n".to_owned()
            + &frames(|n| format!("main.(*tide).rise{n}(0xc00001, 0x{n})\n\t/src/tide{n}.go:4{n} +0x1d\n")),
        "Exception in thread \"main\" java.lang.IllegalStateException: low\n".to_owned()
            + &frames(|n| format!("\tat org.example.Tide.rise{n}(Tide.java:{n})\n"))
            + "Caused by: java.io.IOException: dry\n\tat org.example.Tide.read(Tide.java:70)\n\t... 12 more\n",
        "Traceback (most recent call last):\n".to_owned()
            + &frames(|n| format!("  File \"/src/tide.py\", line {n}, in rise{n}\n    rise_more_{n}()\n"))
            + "ValueError: low\n",
        "thread 'main' panicked at src/tide.rs:2:5:\nlow\nstack backtrace:\n".to_owned()
            + &frames(|n| format!("   {n}: tide::rise{n}\n             at ./src/tide.rs:1{n}:5\n")),
        "TypeError: tide is not a function\n".to_owned()
            + &frames(|n| format!("    at rise{n} (/src/tide.js:{n}:9)\n")),
    ];
    for trace in traces {
        let noise =
            (0..4_000).fold(String::new(), |noise, job| noise + &format!("12:00:00 INFO job {job} done\n"));
        let capped =
            cap(format!("{noise}{trace}{noise}").as_bytes(), RequestedFormat::Auto, &limits_of(6_000))
                .unwrap();
        assert!(capped.text.contains(&trace), "{trace}\n{}", capped.text);
    }
}

#[test]
fn a_list_keeps_unusual_items() {
    let rows: Vec<String> = (0..11_000)
        .map(|id| match id {
            3_000 => r#"{"id":3000,"status":"ok","ms":12,"error":"no route to host"}"#.to_owned(),
            5_000 => r#"{"id":5000,"status":"lost","ms":11}"#.to_owned(),
            7_000 => r#"{"id":7000,"status":"ok","ms":900000}"#.to_owned(),
            9_000 => r#"{"id":9000,"status":null,"ms":10}"#.to_owned(),
            _ => format!(r#"{{"id":{id},"status":"ok","ms":{},"error":null}}"#, 10 + id % 7),
        })
        .collect();
    for text in
        [format!("[{}]", rows.join(",")), format!(r#"{{"rows":[{}]}}"#, rows.join(",")), rows.join("\n")]
    {
        let capped = cap(text.as_bytes(), RequestedFormat::Auto, &Limits::default()).unwrap();
        for id in [0, 1, 3_000, 5_000, 7_000, 9_000, 10_999] {
            assert!(capped.text.contains(&rows[id]), "{id} of a {}", capped.format.name());
        }
        assert_eq!(capped.text.matches("\"id\"").count(), 500);
        assert!(capped.text.contains(r#""items": 10500, "of": 11000"#));
    }
}

#[test]
fn a_csv_table_keeps_unusual_rows() {
    let rows: Vec<String> = (0..5_000)
        .map(|id| format!("{id},{},{}\n", if id == 2_500 { "lost" } else { "ok" }, 10 + id % 7))
        .collect();
    let capped = cap(
        ("id,state,ms\n".to_owned() + &rows.concat()).as_bytes(),
        RequestedFormat::Auto,
        &limits_of(3_000),
    )
    .unwrap();
    assert_eq!(capped.format, Format::Csv(','));
    assert!(capped.text.starts_with("id,state,ms\n\"[… 4,"), "{}", capped.text);
    assert!(capped.text.contains("\n2500,lost,11\n") && capped.text.contains("\n4999,ok,11\n"));
}

#[test]
fn long_strings_share_the_limit_and_keep_their_errors() {
    let log = (0..9_000)
        .map(|line| if line == 4_000 { "ERROR gone\n" } else { "all is well\n" })
        .collect::<String>();
    let value = serde_json::json!({"code": 1, "stdout": log, "stderr": "x".repeat(90_000)});
    let capped = cap(value.to_string().as_bytes(), RequestedFormat::Auto, &limits_of(4_000)).unwrap();
    let shown: Value = serde_json::from_str(&capped.text).unwrap();
    assert_eq!(shown["code"], 1);
    assert!(shown["stdout"].as_str().unwrap().contains("\nERROR gone\n"));
    assert!(shown["stderr"].as_str().unwrap().ends_with(" characters left out …]"));
    let fields: Vec<String> =
        capped.warnings.iter().map(|warning| warning.field.clone().unwrap().to_string()).collect();
    assert_eq!(fields, ["text.stdout", "text.stderr"]);
}

#[test]
fn an_object_keeps_its_shape_as_long_as_possible() {
    let members: serde_json::Map<String, Value> =
        (0..5_000).map(|id| (format!("key{id}"), Value::from(id))).collect();
    let capped =
        cap(Value::Object(members).to_string().as_bytes(), RequestedFormat::Auto, &limits_of(1_000)).unwrap();
    let shown: Value = serde_json::from_str(&capped.text).unwrap();
    assert_eq!(shown["preview"]["key0"], 0);
    assert_eq!(shown["preview"]["endmark_omitted"]["of"], 5_000);
    let error = shown["error"].as_str().unwrap();
    assert!(error.contains("5,000 members") && error.contains("filter"), "{error}");

    // If a list in a member loses items, the object keeps its shape. If two hundred large members do not fit,
    // the object cannot keep it.
    let log = |lines: usize| (0..lines).map(|line| format!("{line} is well")).collect::<Vec<_>>();
    let mut members: serde_json::Map<String, Value> =
        (0..200).map(|id| (format!("host{id}"), log(200).into())).collect();
    members.insert("gateway".to_owned(), log(400).into());
    let capped =
        cap(Value::Object(members).to_string().as_bytes(), RequestedFormat::Auto, &limits_of(2_000)).unwrap();
    let shown: Value = serde_json::from_str(&capped.text).unwrap();
    let error = shown["error"].as_str().unwrap();
    assert!(error.contains("The largest: `gateway` (5,491 characters)"), "{error}");
    let one = serde_json::json!({"code": 1, "log": log(5_000)}).to_string();
    let capped = cap(one.as_bytes(), RequestedFormat::Auto, &limits_of(2_000)).unwrap();
    let shown: Value = serde_json::from_str(&capped.text).unwrap();
    assert!(shown["code"] == 1 && shown["log"].is_array(), "{shown}");

    let number = format!(r#"{{"n": 1{}}}"#, "0".repeat(5_000));
    let capped = cap(number.as_bytes(), RequestedFormat::Auto, &limits_of(1_000)).unwrap();
    let shown: Value = serde_json::from_str(&capped.text).unwrap();
    assert_eq!(shown["original_chars"], number.len());
    assert!(shown["preview"].as_str().unwrap().starts_with(r#"{"n": 1000"#), "{shown}");
    assert!(shown["error"].as_str().unwrap().contains("filter"));
}

/// A program with a schema expects the declared types.
#[test]
fn typed_json_keeps_all_members_and_has_no_list_markers() {
    let rows: Vec<Value> = (0..2_000).map(|id| serde_json::json!({"id": id, "state": "ok"})).collect();
    let value = serde_json::json!({"count": 2_000, "rows": rows, "log": "x".repeat(9_000)});
    let own = Limits { keeps_types: true, ..limits_of(2_000) };
    let capped = cap(value.to_string().as_bytes(), RequestedFormat::Json, &own).unwrap();
    let shown: Value = serde_json::from_str(&capped.text).unwrap();
    let shown_rows = shown["rows"].as_array().unwrap();
    assert!(shown_rows.len() > 10 && shown_rows.iter().all(|row| row["id"].is_u64()), "{shown}");
    assert_eq!((&shown["count"], shown.as_object().unwrap().len()), (&2_000.into(), 3));
    let left_out =
        format!("{} of 2,000 items are left out", group_thousands(2_000 - shown_rows.len() as u64));
    assert!(capped.warnings.iter().any(|warning| warning.message == left_out), "{:?}", capped.warnings);
}

/// The line is one character longer than the limit.
#[test]
fn a_long_line_reports_how_much_is_missing() {
    let capped = cap("x".repeat(200_001).as_bytes(), RequestedFormat::Auto, &Limits::default()).unwrap();
    assert!(capped.text.starts_with("[… 4,096 characters left out …]\nx"), "{}", &capped.text[..90]);
    assert_eq!(capped.warnings[0].message, "4,096 of 200,001 characters are left out");
    assert_eq!(
        cap(capped.text.as_bytes(), RequestedFormat::Auto, &Limits::default()).unwrap().text,
        capped.text
    );
}

#[test]
fn binary_data_is_named_and_invalid_utf8_is_replaced_or_refused() {
    let image = [&b"\x89PNG\r\n\x1a\n"[..], &[0; 52]].concat();
    let capped = cap(&image, RequestedFormat::Auto, &Limits::default()).unwrap();
    assert_eq!(capped.text, "[… 60 bytes of PNG image are not shown …]");
    // Here a marker would be longer than the value.
    let capped = cap(&image[..16], RequestedFormat::Auto, &Limits::default()).unwrap();
    assert_eq!(capped.text, String::from_utf8_lossy(&image[..16]));
    let utf16: Vec<u8> = "\u{FEFF}error: lost\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let capped = cap(&utf16, RequestedFormat::Auto, &Limits::default()).unwrap();
    assert_eq!((capped.text.as_str(), capped.warnings[0].code.as_str()), ("error: lost\n", "UTF_16"));
    assert!(cap(&utf16, RequestedFormat::Text, &Limits::default()).is_err());
    let latin = b"caf\xE9 au lait is what it says here\n";
    let capped = cap(latin, RequestedFormat::Auto, &Limits::default()).unwrap();
    assert_eq!(capped.warnings[0].code, "NOT_UTF8");
    assert!(cap(latin, RequestedFormat::Text, &Limits::default()).is_err());
}

#[test]
fn the_handle_of_an_unstored_value_is_removed() {
    let handle = "h0123456789abcdef0123456789abcdef";
    let list = serde_json::to_string(&(0..900).collect::<Vec<_>>()).unwrap();
    for value in ["line\n".repeat(900), list] {
        let named = Limits { handle: Some(handle.to_owned()), ..limits_of(400) };
        let capped = cap(value.as_bytes(), RequestedFormat::Auto, &named).unwrap();
        assert!(capped.text.contains(handle) && capped.warnings[0].handle.is_some());
        let capped = capped.without_handle(handle);
        assert!(!format!("{capped:?}").contains(handle), "{}", capped.text);
        assert!(capped.text.contains("left out …]\n") || capped.text.contains(r#""handle": null"#));
    }
}

#[test]
fn a_table_is_detected_at_any_chunk_boundary() {
    let rows = (0..9_000).fold(String::new(), |rows, id| rows + &format!("{{\"id\": {id}}}\n"));
    for chunk in [1 << 16, 1_000, usize::MAX] {
        let mut capper = Capper::new(RequestedFormat::Auto, Limits::default()).unwrap();
        rows.as_bytes().chunks(chunk).for_each(|chunk| capper.push(chunk).unwrap());
        assert_eq!(capper.finish().unwrap().format, Format::JsonLines, "chunks of {chunk}");
    }
}

#[test]
fn limits_below_the_minimum_are_refused() {
    for refused in
        [Limits { most: 0, ..Limits::default() }, limits_of(79), Limits { max_items: 0, ..Limits::default() }]
    {
        assert!(cap(b"a", RequestedFormat::Auto, &refused).is_err());
    }
    // A handle that does not fit into a marker appears only in the warning.
    let with_handle = Limits { handle: Some("h".repeat(33)), ..limits_of(100) };
    let capped = cap("line\n".repeat(90).as_bytes(), RequestedFormat::Auto, &with_handle).unwrap();
    assert!(capped.text.len() <= 104 && !capped.text.contains("hhh"), "{}", capped.text);
    assert_eq!(capped.warnings[0].handle, with_handle.handle);
}

#[test]
fn a_second_capping_keeps_the_first_counts() {
    let text = (0..5_000).fold(String::new(), |text, line| text + &format!("line {line}\n"));
    let list = serde_json::to_string(&(0..5_000).collect::<Vec<_>>()).unwrap();
    let table: String = (0..5_000).fold("id,name\n".to_owned(), |table, id| table + &format!("{id},a\n"));
    for (value, total, count) in [(text, "4,", "line "), (list, "\"of\": 5000", ","), (table, "4,", ",a\n")] {
        let once = cap(value.as_bytes(), RequestedFormat::Auto, &limits_of(3_000)).unwrap();
        let twice = cap(once.text.as_bytes(), RequestedFormat::Auto, &limits_of(1_000)).unwrap();
        assert!(twice.text.contains(total), "{}", twice.text);
        assert!(twice.text.matches(count).count() < once.text.matches(count).count());
    }
}

/// The marker of a table has as many fields as a row. With many columns, the delimiters alone used to exceed
/// the limit.
#[test]
fn a_table_of_many_columns_stays_within_its_limit() {
    for columns in 1..120 {
        for most in [80, 90, 130] {
            let header = vec!["1"; columns].join(",");
            for text in [format!("{header}\n{header}\n{header}\n"), header.repeat(4)] {
                assert_invariants(text.as_bytes(), RequestedFormat::Csv, &limits_of(most), 50);
            }
        }
    }
}
