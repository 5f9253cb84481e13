use proptest::prelude::*;
use serde_json::json;

use super::*;
use endmark_envelope::{Document, MIN_RESPONSE_LIMIT_BYTES};
use endmark_process::StreamCapture;

const KINDS: [OutputKind; 4] = [OutputKind::Json, OutputKind::Jsonl, OutputKind::Text, OutputKind::Auto];

fn rules(kind: OutputKind) -> OutputRules {
    OutputRules { kind, ..OutputRules::default() }
}

fn capture(bytes: &[u8], limit: usize) -> CapturedStream {
    let mut capture = StreamCapture::new(limit);
    capture.push(bytes);
    capture.finish()
}

fn data(bytes: impl AsRef<[u8]>, kind: OutputKind) -> OutputData {
    let mut data = read(&capture(bytes.as_ref(), 1 << 20), &rules(kind), None);
    disclose_truncation(&mut data, &FieldRules::default());
    data
}

fn fields(data: &OutputData) -> Vec<String> {
    data.warnings
        .iter()
        .map(|warning| warning.field.as_ref().map(ToString::to_string).unwrap_or_default())
        .collect()
}

#[test]
fn json_becomes_data_and_other_output_becomes_text() {
    assert_eq!(
        data("\u{feff} {\"a\": [1.5, \"é\"]}\n", OutputKind::Json),
        OutputData::new(json!({"a": [1.5, "é"]}))
    );
    assert_eq!(data("{\"a\":1}\n{\"a\":2}\n", OutputKind::Jsonl).value, json!([{"a": 1}, {"a": 2}]));
    assert_eq!(data("{\"a\":1}\n[2]", OutputKind::Auto).value, json!([{"a": 1}, [2]]));
    assert_eq!(data("42\n", OutputKind::Auto).value, json!({"text": "42\n"}));
    assert_eq!(data("[not json]", OutputKind::Auto).value, json!({"text": "[not json]"}));
    assert_eq!(data("{\"a\":1}", OutputKind::Text).value, json!({"text": "{\"a\":1}"}));
    assert_eq!(data("", OutputKind::Jsonl), OutputData::new(json!([])));
    let nothing = data(" \n", OutputKind::Json);
    assert_eq!((nothing.value, nothing.warnings[0].code.as_str()), (Value::Null, NO_OUTPUT));
}

#[test]
fn cut_json_is_closed_and_every_cut_is_reported() {
    for end in ["", "\n"] {
        let cut = data(
            format!("{{\"items\": [{{\"id\": 1}}, {{\"id\": 2, \"title\": \"Har{end}"),
            OutputKind::Json,
        );
        assert_eq!(cut.value, json!({"items": [{"id": 1}, {"id": 2, "title": "Har…[truncated]"}]}));
        assert!(matches!(cut.fault, Some(JsonFault::Truncated { .. })));
        assert_eq!(fields(&cut), ["data", "data.items", "data.items[1]", "data.items[1].title"]);
        assert_eq!((cut.warnings[3].returned_bytes, cut.warnings[3].truncated_length), (Some(3), Some(3)));
    }
    let number = data("{\"n\": 12", OutputKind::Json);
    assert_eq!((&number.value, fields(&number)), (&json!({}), vec!["data".to_owned(), "data.n".to_owned()]));
    let lines = data("{\"a\":1}\n{\"a\":\"x", OutputKind::Jsonl);
    assert_eq!(lines.value, json!([{"a": 1}, {"a": "x…[truncated]"}]));
    assert_eq!(fields(&lines), ["data", "data[1]", "data[1].a"]);
}

#[test]
fn invalid_json_is_shown_as_text_with_the_error() {
    let wrong = data("usage: tool FILE", OutputKind::Json);
    assert_eq!(wrong.value, json!({"text": "usage: tool FILE"}));
    assert!(matches!(wrong.fault, Some(JsonFault::Malformed { index: 0, .. })), "{wrong:?}");
    let unreadable = "[".repeat(5000) + &"]".repeat(5000);
    let deep = data(&unreadable, OutputKind::Json);
    assert!(matches!(deep.fault, Some(JsonFault::Malformed { .. })));
    assert_eq!(deep.value["text"], unreadable);
}

#[test]
fn output_too_large_to_keep_reports_its_size() {
    let list = format!("[{}\"é\"]", "\"é\",".repeat(1000));
    let mut kept = read(&capture(list.as_bytes(), 400), &rules(OutputKind::Json), None);
    disclose_truncation(&mut kept, &FieldRules::default());
    assert_eq!((kept.fault, kept.value[0].as_str()), (None, Some("é")));
    assert_eq!(kept.warnings[0].original_bytes, Some(list.len() as u64));
    assert_eq!(kept.warnings[0].original_length, Some(list.chars().count() as u64));
    let text = format!("begin {} end", "é".repeat(1000));
    let mut kept = read(&capture(text.as_bytes(), 101), &rules(OutputKind::Text), None);
    disclose_truncation(&mut kept, &FieldRules::default());
    let (beginning, tail) = (kept.value["text"].as_str().unwrap(), kept.value["tail"].as_str().unwrap());
    assert!(beginning.starts_with("begin é") && beginning.ends_with("é…[truncated]"), "{beginning}");
    assert!(tail.starts_with('é') && tail.ends_with(" end"), "{tail}");
    assert_eq!(kept.value["tail_from_byte"], text.len() - tail.len());
    assert_eq!(kept.warnings[0].original_bytes, Some(text.len() as u64));
    assert_eq!(fields(&kept), ["data.text"]);
}

#[test]
fn few_binary_bytes_are_kept_and_counted() {
    let wrong = data(b"a\xffb\xfe\xfd", OutputKind::Text);
    assert_eq!(wrong.value, json!({"text": "a\u{fffd}b\u{fffd}\u{fffd}…[truncated]", "base64": "Yf9i/v0="}));
    assert_eq!(wrong.warnings[0].message, "3 sequences of bytes are not UTF-8 and are shown as U+FFFD");
    let json = data(b"{\"name\": \"M\xfcller\"}", OutputKind::Json);
    assert_eq!(json.value, json!({"name": "M\u{fffd}ller"}));
    assert_eq!((json.fault, json.warnings[0].code.as_str()), (None, INVALID_UTF8));
}

#[test]
fn numbers_that_lose_precision_are_reported() {
    for (text, expected) in [
        ("[18446744073709551615, -9223372036854775808, -0, \"99999999999999999999\"]", None),
        ("[1.5e3, 0.10000000000000001, 100.000000000000000000, -0.0, 1E-300]", None),
        (
            "{\"id\": 18446744073709551616, \"q\": \"a\\\"1\", \"n\": -9223372036854775809}",
            Some("2 numbers have more digits than are kept; the first begins with 18446744073709551616"),
        ),
        (
            "[-9223372036854775809]",
            Some("one number has more digits than are kept; the first begins with -9223372036854775809"),
        ),
        (
            "[-3.14159265358979323e0]",
            Some("one number has more digits than are kept; the first begins with -3.14159265358979323e0"),
        ),
    ] {
        let warnings = data(text, OutputKind::Json).warnings;
        assert_eq!(warnings.first().map(|warning| warning.message.as_str()), expected);
        assert!(warnings.iter().all(|warning| warning.field == Some(endmark_envelope::FieldPath::data())));
    }
}

#[test]
fn duplicate_names_are_counted() {
    let of = |text: &str| {
        data(text, OutputKind::Auto)
            .warnings
            .iter()
            .map(|warning| warning.message.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("{\"a\": {\"a\": 1}, \"b\" : [{\"a\": \": \\\":\"}]}"), Vec::<String>::new());
    let twice = "2 members have a name that is repeated in the same object; the last value counts";
    assert_eq!(of("[{\"a\": 1, \"a\": 2}, {\"b\": 1, \"\\u0062\": 2}]"), [twice]);
}

#[test]
fn the_end_of_an_oversized_text_is_shown() {
    let text = format!("begin{}end", "x".repeat(2000));
    let rules = OutputRules { kind: OutputKind::Text, max_response_bytes: 1600, ..OutputRules::default() };
    let read = read(&capture(text.as_bytes(), 10_000), &rules, None);
    assert_eq!((read.value["tail"].as_str().unwrap().len(), &read.value["text"]), (200, &json!(text)));
    let document =
        Document { data: read.value, error: None, warnings: Vec::new(), duration_ms: 0 }.within(1600);
    assert!(document.data["tail"].as_str().unwrap().ends_with("end"));
    assert_eq!(document.data["tail_from_byte"], 2008 - 200);
    assert_eq!(document.warnings[0].original_bytes, Some(2008));
}

#[test]
fn output_of_a_terminated_tool_may_be_incomplete() {
    let of = |text: &str, kind| {
        let mut data = read(&capture(text.as_bytes(), 1000), &rules(kind), Some("it was made to end"));
        disclose_truncation(&mut data, &FieldRules::default());
        (data.value.clone(), fields(&data))
    };
    let cut = |field: &str| vec![field.to_owned()];
    assert_eq!(of("half", OutputKind::Text), (json!({"text": "half…[truncated]"}), cut("data.text")));
    assert_eq!(of("{\"a\":1}\n", OutputKind::Jsonl), (json!([{"a": 1}]), cut("data")));
    assert_eq!(of("{\"a\":1}\n", OutputKind::Json), (json!({"a": 1}), vec![]));
    assert_eq!(of("", OutputKind::Text), (json!({"text": ""}), vec![]));
}

/// Generates bytes that are often JSON, often almost JSON, and otherwise arbitrary.
fn outputs() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\n",
            "null",
            "12",
            "\"a\":",
            "é",
            "...",
            "…",
            "{\"a\":[\"b\"]}\n"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        any::<u8>().prop_map(|byte| vec![byte]),
        "[a-z]{1,40}".prop_map(String::into_bytes),
    ];
    prop_oneof![
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat()),
        prop::collection::vec(any::<u8>(), 0..300),
    ]
}

proptest! {
    #[test]
    fn any_output_becomes_one_bounded_response_without_silent_loss(
        bytes in outputs(), repeat in 1_usize..200, limit in 0_usize..5000, has_ended: bool,
    ) {
        let bytes = bytes.repeat(repeat);
        for kind in KINDS {
            let captured = capture(&bytes, limit);
            let is_whole = captured.is_whole();
            let mut data = read(&captured, &rules(kind), (!has_ended).then_some("it was made to end"));
            disclose_truncation(&mut data, &FieldRules::default());
            let OutputData { value, warnings, .. } = data;
            let document = Document { data: value, error: None, warnings, duration_ms: 0 }.within(MIN_RESPONSE_LIMIT_BYTES);
            let json = document.to_json();
            prop_assert!(json.len() < MIN_RESPONSE_LIMIT_BYTES);
            let read: Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(read.as_object().unwrap().len(), 5);
            if !is_whole {
                prop_assert!(document.meta().truncated || document.error.is_some());
            }
        }
    }
}
