use super::*;
use crate::nesting::{MAX_OPEN_BRACKETS, TOO_MANY_BRACKETS};
use crate::{InToken, Open, Truncation, Verdict};

fn verdict(text: &[u8], values: ValueCount) -> Verdict {
    let mut machine = JsonMachine::new(values);
    machine.push(text);
    machine.verdict()
}

#[track_caller]
fn truncation(text: &[u8], values: ValueCount) -> Truncation {
    match verdict(text, values) {
        Verdict::Truncated(truncation) => truncation,
        other => panic!("{:?} is {other:?}", String::from_utf8_lossy(text)),
    }
}

#[test]
fn the_settled_part_ends_with_its_last_token() {
    use InToken::{Escape, Literal, Number, String, Utf8};
    let cases: [(&[u8], usize, &str, Option<InToken>); 61] = [
        (b"", 0, "", None),
        (b" \n", 0, " \n", None),
        (b"{", 1, "{", None),
        (b"[  ", 3, "[", None),
        (b" {", 2, "{", None),
        (b"[1,", 3, ",", None),
        (b"[1, ", 4, ",", None),
        (b"[1 ", 3, "1", None),
        (b"[1\n\n", 4, "1", None),
        (b"[[]", 3, "]", None),
        (b"[{}", 3, "}", None),
        // A number at the cut may continue, so it is not settled.
        (b"[12", 1, "[", Some(Number)),
        (b"[1, 2", 4, ",", Some(Number)),
        (b"[-", 1, "[", Some(Number)),
        (b"{\"a\":1.", 5, ":", Some(Number)),
        (b"{\"a\": 1e", 6, ":", Some(Number)),
        (b"[1e+", 1, "[", Some(Number)),
        (b"[0", 1, "[", Some(Number)),
        (b"-", 0, "-", Some(Number)),
        (b"  -", 2, "-", Some(Number)),
        (b"1.", 0, "1.", Some(Number)),
        // A complete literal is settled, an incomplete one is not.
        (b"[true", 5, "true", None),
        (b"[null", 5, "null", None),
        (b"[false ", 7, "false", None),
        (b"[tru", 1, "[", Some(Literal)),
        (b"{\"a\":n", 5, ":", Some(Literal)),
        (b"fals", 0, "fals", Some(Literal)),
        // In a string, everything up to the last complete character or escape is settled.
        (b"\"abc", 4, "\"abc", Some(String)),
        (b"[\"a\", \"bc", 9, "\"bc", Some(String)),
        (b"{\"ke", 4, "\"ke", Some(String)),
        (b"[\"abc\"", 6, "\"abc\"", None),
        (b"{\"key\"", 6, "\"key\"", None),
        (b"{\"key\":", 7, ":", None),
        (b"[\"a\\", 3, "\"a", Some(Escape)),
        (b"[\"a\\n", 5, "\"a\\n", Some(String)),
        (b"[\"a\\u", 3, "\"a", Some(Escape)),
        (b"[\"a\\u00e", 3, "\"a", Some(Escape)),
        (b"[\"a\\u00e9", 9, "\"a\\u00e9", Some(String)),
        (b"[\"\xC3", 2, "[\"", Some(Utf8)),
        (b"[\"a\xF0\x9F\x98", 3, "\"a", Some(Utf8)),
        (b"[\"\xC3\xA9", 4, "\"\u{e9}", Some(String)),
        // The low surrogate may still follow a high one, until another byte excludes it.
        (b"[\"a\\uD83D", 3, "\"a", Some(Escape)),
        (b"[\"a\\uD83D\\", 3, "\"a", Some(Escape)),
        (b"[\"a\\uD83D\\u", 3, "\"a", Some(Escape)),
        (b"[\"a\\ud83d\\ude0", 3, "\"a", Some(Escape)),
        (b"[\"a\\ud83d\\ude00", 15, "\"a\\ud83d\\ude00", Some(String)),
        (b"[\"a\\uD83Dx", 10, "\"a\\uD83Dx", Some(String)),
        (b"[\"a\\uD83D\\n", 11, "\"a\\uD83D\\n", Some(String)),
        (b"[\"a\\uD83D\\u0", 9, "\"a\\uD83D", Some(Escape)),
        (b"[\"a\\uD83D\\uD8", 9, "\"a\\uD83D", Some(Escape)),
        (b"[\"a\\uD83D\\uD83D", 9, "\"a\\uD83D", Some(Escape)),
        (b"[\"a\\uD83D\xC3", 9, "\"a\\uD83D", Some(Utf8)),
        (b"[\"\\uDE00", 8, "\"\\uDE00", Some(String)),
        // If only the quote is settled, the token before it is reported, too.
        (b"\"", 1, "\"", Some(String)),
        (b"  \"", 3, "\"", Some(String)),
        (b"{\"content\":\"", 12, "\"content\":\"", Some(String)),
        (b"{\"content\": \"\\", 13, "\"content\": \"", Some(Escape)),
        (b"[1, \"", 5, "1, \"", Some(String)),
        // A byte order mark is not a token.
        (b"\xEF\xBB", 0, "\u{FFFD}", Some(Utf8)),
        (b"\xEF\xBB\xBF\n", 0, "\u{FEFF}\n", None),
        (b"\xEF\xBB\xBF[", 4, "[", None),
    ];
    for (text, index, token, in_token) in cases {
        for split in 0..=text.len() {
            let mut machine = JsonMachine::new(ValueCount::One);
            machine.push(&text[..split]);
            machine.push(&text[split..]);
            let Verdict::Truncated(found) = machine.verdict() else {
                panic!("{text:?}: {:?}", machine.verdict())
            };
            let shown = std::string::String::from_utf8_lossy(text);
            assert_eq!(found.truncation_index, index, "{shown:?} split at {split}");
            assert_eq!(found.last_valid_token, token, "{shown:?} split at {split}");
            assert_eq!(found.in_token, in_token, "{shown:?} split at {split}");
            assert_eq!(found.balanced_index, 0, "{shown:?} split at {split}");
        }
    }
}

#[test]
fn open_brackets_are_listed_outermost_first() {
    let open = |text: &[u8]| truncation(text, ValueCount::One).open.iter().collect::<Vec<_>>();
    assert_eq!(open(b""), []);
    assert_eq!(open(b"{\"a\":[{\"b"), [Open::Object, Open::Array, Open::Object, Open::String]);
    assert_eq!(open(b"[[1],{"), [Open::Array, Open::Object]);
    assert_eq!(open(b"\"\\u"), [Open::String]);
}

#[test]
fn brackets_are_bounded_and_use_one_bit_each() {
    for (bracket, closed) in [("[", "]"), ("{\"a\":", "1}")] {
        let mut machine = JsonMachine::new(ValueCount::One);
        machine.push(bracket.repeat(MAX_OPEN_BRACKETS).as_bytes());
        assert_eq!(expect_truncation(&machine).open.len(), MAX_OPEN_BRACKETS);
        let mut closes = machine.clone();
        closes.push(closed.as_bytes());
        assert_eq!(expect_truncation(&closes).open.len(), MAX_OPEN_BRACKETS - 1);
        machine.push(bracket.as_bytes());
        let Verdict::Malformed { index, reason } = machine.verdict() else { panic!("it is not refused") };
        assert_eq!((index, reason.as_str()), (MAX_OPEN_BRACKETS * bracket.len(), TOO_MANY_BRACKETS));
    }
}

fn expect_truncation(machine: &JsonMachine) -> Truncation {
    machine.verdict().truncation().cloned().unwrap()
}

#[test]
fn a_byte_order_mark_needs_a_value_after_it() {
    let mut machine = JsonMachine::new(ValueCount::One);
    machine.push("\u{FEFF}".as_bytes());
    let reason = "a byte order mark and nothing else".to_owned();
    assert_eq!(machine.verdict(), Verdict::Malformed { index: 0, reason });
    assert!(machine.malformation().is_none(), "something may still come");
    machine.push(b"1");
    assert_eq!(machine.verdict(), Verdict::Whole);
}

#[test]
fn a_lone_scalar_is_whole() {
    for text in [
        "123",
        "0",
        "-1.5e+3",
        " true ",
        "null",
        "\"\"",
        "[]",
        "{}",
        "\u{FEFF}{}",
        "{\"a\":[1,{\"b\":null}]}\n",
    ] {
        assert_eq!(verdict(text.as_bytes(), ValueCount::One), Verdict::Whole, "{text}");
        assert_eq!(verdict(text.as_bytes(), ValueCount::Many), Verdict::Whole, "{text}");
    }
}

#[test]
fn unrepairable_texts_are_malformed() {
    let cases: [(&[u8], usize, &str); 33] = [
        (b"[1,]", 3, "not a value"),
        (b"[,", 1, "neither a value nor `]`"),
        (b"{,", 1, "neither a key nor `}`"),
        (b"{\"a\":1,}", 7, "not a key"),
        (b"{a", 1, "neither a key nor `}`"),
        (b"{'a'", 1, "neither a key nor `}`"),
        (b"{\"a\" 1", 5, "not the colon after a key"),
        (b"{\"a\":1]", 6, "neither a comma nor `}`"),
        (b"[1}", 2, "neither a comma nor `]`"),
        (b"[1 2", 3, "neither a comma nor `]`"),
        (b"]", 0, "not a value"),
        (b"01", 1, "not a number"),
        (b"[-a", 2, "not a number"),
        (b"[1.]", 3, "not a number"),
        (b"[1e]", 3, "not a number"),
        (b"[.5", 1, "neither a value nor `]`"),
        (b"[+1", 1, "neither a value nor `]`"),
        (b"[1-2", 2, "neither a comma nor `]`"),
        (b"trux", 3, "neither `true`, `false` nor `null`"),
        (b"nul ", 3, "neither `true`, `false` nor `null`"),
        (b"NaN", 0, "not a value"),
        (b"{} x", 3, "text after the value"),
        (b"1 2", 2, "text after the value"),
        (b"\"\\x", 2, "not an escape sequence"),
        (b"\"\\u12g", 5, "not a hexadecimal digit"),
        (b"\"\xFF", 1, "invalid UTF-8"),
        (b"\"\xC0\xAF", 1, "invalid UTF-8"),
        (b"\"\xED\xA0\x80", 2, "invalid UTF-8"),
        (b"\"\xF4\x90", 2, "invalid UTF-8"),
        (b"\"\xC3\"", 2, "invalid UTF-8"),
        (b"\xEF{", 1, "not a byte order mark"),
        (b" \xEF\xBB\xBF1", 1, "not a value"),
        (b"\xEF\xBB\xBF\xEF", 3, "not a value"),
    ];
    for (text, index, reason) in cases {
        let expected = Verdict::Malformed { index, reason: reason.to_owned() };
        assert_eq!(verdict(text, ValueCount::One), expected, "{:?}", String::from_utf8_lossy(text));
        let mut machine = JsonMachine::new(ValueCount::One);
        machine.push(&text[..index]);
        assert!(machine.malformation().is_none(), "{index} is the first");
    }
}

#[test]
fn an_opening_quote_is_reported_with_the_token_before_it() {
    for (text, token) in [
        ("{\"a\":1,\"", "1,\""),
        ("{\"a\" : \n \"", "\"a\" : \n \""),
        ("[[],\"", "],\""),
        ("[\"", "[\""),
        ("[true, \"", "true, \""),
        ("[\"x\", \"", "\"x\", \""),
    ] {
        assert_eq!(truncation(text.as_bytes(), ValueCount::One).last_valid_token, token);
    }
}

#[test]
fn only_the_last_200_characters_of_a_long_token_are_reported() {
    let text = format!("[\"{}", "é".repeat(500));
    assert_eq!(truncation(text.as_bytes(), ValueCount::One).last_valid_token, "é".repeat(200));
    let text = format!("[{} ", "7".repeat(500));
    assert_eq!(truncation(text.as_bytes(), ValueCount::One).last_valid_token, "7".repeat(200));
    let text = format!("[{}1", " ".repeat(5_000));
    let found = truncation(text.as_bytes(), ValueCount::One);
    assert_eq!((found.truncation_index, found.last_valid_token.as_str()), (5_001, "["));
}

#[test]
fn consecutive_values_are_accepted() {
    for text in ["{}{}", "{}\n{}\n", "1\n2", "1 2 3", "1\"a\"[]", "true[1]", "\"a\"1", "[1]2", "null\n"] {
        assert_eq!(verdict(text.as_bytes(), ValueCount::Many), Verdict::Whole, "{text}");
    }
    for (text, index, balanced, token) in [
        ("{\"a\":1}\n{\"a\"", 12, 7, "\"a\""),
        ("{\"a\":1}\n[2", 9, 7, "["),
        ("1\n-", 2, 1, "1"),
        ("12 3 [", 6, 4, "["),
        ("\"ab\" \"", 6, 4, "\"ab\" \""),
        ("[] tru", 3, 2, "]"),
        ("12 true -", 8, 7, "true"),
        ("[1] false nul", 10, 9, "false"),
    ] {
        let found = truncation(text.as_bytes(), ValueCount::Many);
        let shown = (found.truncation_index, found.balanced_index, found.last_valid_token.as_str());
        assert_eq!(shown, (index, balanced, token), "{text}");
    }
    for (text, index) in
        [("1,2", 1), ("truefalse", 4), ("true1", 4), ("{}\n}", 3), ("{\"a\":1\n{\"b\":2}", 7), ("null-1", 4)]
    {
        let found = verdict(text.as_bytes(), ValueCount::Many);
        assert!(matches!(found, Verdict::Malformed { index: at, .. } if at == index), "{text}: {found:?}");
    }
    let reason = "not apart from the value before it".to_owned();
    assert_eq!(verdict(b"truefalse", ValueCount::Many), Verdict::Malformed { index: 4, reason });
}

#[test]
fn a_raw_control_character_is_reported_or_rejected_in_strict_mode() {
    for (text, index, is_whole) in [
        (&b"\"a\nb"[..], 2, false),
        (b"{\"a\": \"x\ty\"}", 8, true),
        (b"{\"a\0\": 1}", 3, true),
        (b"[\"\\uD83D\n\"]", 8, true),
        (b"[\"a\", \"0123456789012345678901234567890\x1f\n", 38, false),
    ] {
        for split in 0..=text.len() {
            let (mut lenient, mut strict) =
                (JsonMachine::new(ValueCount::One), JsonMachine::new(ValueCount::One));
            strict.refuse_control_characters();
            for machine in [&mut lenient, &mut strict] {
                machine.push(&text[..split]);
                machine.push(&text[split..]);
            }
            let shown = String::from_utf8_lossy(text);
            assert_eq!((lenient.control_character(), lenient.is_whole()), (Some(index), is_whole), "{shown}");
            assert_eq!(strict.malformation(), Some((index, CONTROL_CHARACTER_REASON)), "{shown}");
        }
    }
    assert!(JsonMachine::new(ValueCount::One).control_character().is_none());
}
