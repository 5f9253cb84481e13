use proptest::prelude::*;

use super::*;

fn value(text: &str) -> Value<'_> {
    Value::parse_str(text).unwrap()
}

#[test]
fn only_strict_json_is_accepted() {
    let valid = [
        "0",
        "-0.5e+10",
        " [ ] ",
        "{}",
        "\"\\u00fF\\/\"",
        "null",
        "[1,\t2\r\n]",
        "{\"\":{\"a\":[{}]}}",
        "1E400",
    ];
    for text in valid {
        assert!(Value::parse_str(text).is_ok(), "{text}");
    }
    let invalid = [
        ("", 0),
        ("[1,]", 3),
        ("{\"a\":1,}", 7),
        ("{a:1}", 1),
        ("01", 1),
        ("1.", 2),
        (".5", 0),
        ("+1", 0),
        ("-", 1),
        ("\"\\x\"", 2),
        ("\"\\u12g4\"", 5),
        ("\"a\nb\"", 2),
        ("tru", 3),
        ("nulL", 3),
        ("[1 2]", 3),
        ("{\"a\" 1}", 5),
        ("[1}", 2),
        ("{]", 1),
        ("1 2", 2),
        ("'a'", 0),
        ("[", 1),
        ("{\"a\":", 5),
        ("\"open", 5),
        ("NaN", 0),
        ("\u{FEFF}1", 0),
    ];
    for (text, offset) in invalid {
        assert_eq!(Value::parse_str(text).map_err(|error| error.offset), Err(offset), "{text}");
    }
    assert_eq!(Value::parse(b"\"\xff\"").unwrap_err(), JsonError { offset: 1, reason: "not UTF-8" });
}

#[test]
fn a_leading_byte_order_mark_is_skipped_and_kept() {
    let body = "\u{FEFF} {\"a\": 1}\n";
    let root = Value::parse_body(body.as_bytes()).unwrap();
    assert_eq!((root.document(), root.span(), root.raw()), (body, 4..12, "{\"a\": 1}"));
    assert_eq!(Value::parse_body(&body.as_bytes()[3..]).unwrap().raw(), root.raw());
    for (text, offset) in [("\u{FEFF}", 3), ("\u{FEFF}\u{FEFF}1", 3), (" \u{FEFF}1", 1), ("\u{FEFF}{]", 4)] {
        assert_eq!(Value::parse_body(text.as_bytes()).map_err(|error| error.offset), Err(offset), "{text}");
    }
}

#[test]
fn the_end_or_fault_of_a_string_is_found_at_any_position() {
    let string = |before: usize, sign: &str, behind: usize| {
        format!("[\"{}{sign}{}\"]", "x".repeat(before), "é".repeat(behind))
    };
    for (before, behind) in (0..20).flat_map(|before| (0..20).map(move |behind| (before, behind))) {
        for control in (0..0x20_u8).map(char::from) {
            let text = string(before, &control.to_string(), behind);
            assert_eq!(Value::parse_str(&text).map_err(|error| error.offset), Err(before + 2), "{text:?}");
        }
        for plain in [" ", "!", "#", "[", "]", "\u{7f}", "\u{80}", "\u{a0}", "\u{ff}", "\\\"", "\\\\", "\\n"]
        {
            let text = string(before, plain, behind);
            assert!(Value::parse_str(&text).is_ok(), "{text:?}");
        }
        let ended = string(before, "\"", behind);
        assert_eq!(Value::parse_str(&ended).map_err(|error| error.offset), Err(before + 3), "{ended:?}");
    }
}

#[test]
fn a_hundred_thousand_levels_do_not_overflow_the_stack() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(value(&deep).items().count(), 1);
    let objects = "{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000);
    assert_eq!(value(&objects).field("a").unwrap().kind(), Kind::Object);
    assert_eq!(Value::parse_str(&"[".repeat(100_000)).unwrap_err().offset, 100_000);
}

#[test]
fn the_last_of_two_equal_fields_wins() {
    let root = value(r#"{"a":1,"\u0061":{"b":[2]},"b":3}"#);
    assert_eq!(root.at("a.b[0]").and_then(Value::as_u64), Some(2));
    assert_eq!(root.fields().count(), 3);
}

#[test]
fn paths_select_nested_values() {
    let root = value(r#"{"a":[{"odd.key [0]":{"x":7}}]}"#);
    assert_eq!(root.at("a[0][\"odd.key [0]\"].x").and_then(Value::as_u64), Some(7));
    for nowhere in ["b", "a[1]", "a[x]", "a[0", "a..b", "a[0][\"odd.key [0]\"].x.y", "[0]", "a.", "."] {
        assert_eq!(root.at(nowhere), None, "{nowhere}");
    }
    assert_eq!(root.at(""), Some(root));
}

#[test]
fn whole_numbers_are_recognised_in_any_spelling() {
    let read = |text| value(text).as_u64();
    assert_eq!(
        [read("4096"), read("4096.0"), read("4e3"), read("0")],
        [Some(4096), Some(4096), Some(4000), Some(0)]
    );
    assert_eq!([read("-1"), read("1.5"), read("1e300"), read("\"7\""), read("null")], [None; 5]);
    assert_eq!(read("18446744073709551615"), Some(u64::MAX));
}

#[test]
fn half_a_surrogate_pair_is_reported() {
    let read = |text| value(text).decode().unwrap();
    assert_eq!(read(r#""\ud83d\ude00""#), DecodedString { text: "😀".into(), exact: true });
    for (half, text) in [
        (r#""a\ud83d""#, "a\u{FFFD}"),
        (r#""\ude00\ude00""#, "\u{FFFD}\u{FFFD}"),
        (r#""\ud83dx""#, "\u{FFFD}x"),
        (r#""\ude00\ud83d""#, "\u{FFFD}\u{FFFD}"),
        (r#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀"),
        (r#""\ud83d\n""#, "\u{FFFD}\n"),
    ] {
        assert_eq!(read(half), DecodedString { text: text.into(), exact: false }, "{half}");
    }
}

#[test]
fn halves_of_a_character_are_joined_across_chunks() {
    let whole = |pieces: &[&str]| {
        let (mut text, mut exact, mut half) = (String::new(), true, None);
        for piece in pieces {
            let json = format!("\"{piece}\"");
            let (decoded, waits) = value(&json).decode_after(half).unwrap();
            text.push_str(&decoded.text);
            (exact, half) = (exact && decoded.exact, waits);
        }
        (text, exact, half)
    };
    for (pieces, text, exact, half) in [
        (&[r"Hi \ud83d", r"\ude00 there"][..], "Hi 😀 there", true, None),
        (&[r"\ud83d", "", r"\ude00"], "😀", true, None),
        (&[r"\ud83d", r"\ude00\ud83d", r"\ude00"], "😀😀", true, None),
        (&[r"\ud83d", r"\ud83d", r"\ude00"], "\u{FFFD}😀", false, None),
        (&[r"a\ud83d", "b"], "a\u{FFFD}b", false, None),
        (&[r"a\ud83d", "é"], "a\u{FFFD}é", false, None),
        (&[r"a\ud83d", r"\n"], "a\u{FFFD}\n", false, None),
        (&[r"a\\ud83d", r"\ude00"], "a\\ud83d\u{FFFD}", false, None),
        (&[r"a\\\ud83d", r"\ude00"], "a\\😀", true, None),
        (&[r"a\ud83d"], "a", true, Some(0xD83D)),
        (&["é", r"\ude00"], "é\u{FFFD}", false, None),
    ] {
        assert_eq!(whole(pieces), (text.to_owned(), exact, half), "{pieces:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_quoted_text_reads_back_unchanged(text in any::<String>()) {
        let json = quote(&text);
        prop_assert_eq!(value(&json).decode().unwrap(), DecodedString { text: text.clone().into(), exact: true });
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    /// The check agrees with serde_json on any mixture of JSON characters.
    #[test]
    fn the_check_agrees_with_serde_json(
        parts in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u00e9", "a", "1", "-", "0", ".", "e", "true", "null", " ", "\"a\":", "\"b\"", "\n", "é",
        ]), 0..12),
    ) {
        let text = parts.concat();
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        prop_assert_eq!(Value::parse_str(&text).is_ok(), theirs.is_ok(), "{}", text);
    }
}
