//! Tests the result for each kind of cut.

use crate::{CompleteError, CompletedText, Format, complete};

/// Returns the closed text and its unfinished parts, each as `kind pointer` with a `-` in front if omitted.
fn completion_summary(completed: &CompletedText) -> (String, String) {
    let places = completed.unfinished().map(|place| {
        let sign = if place.is_omitted { "-" } else { "" };
        format!("{sign}{} {}", place.kind.name(), place.pointer)
    });
    (completed.text.clone(), places.collect::<Vec<_>>().join(", "))
}

#[track_caller]
fn check(format: &Format, cases: &[(&str, &str, &str)]) {
    for (cut, text, places) in cases {
        let completed = complete(cut.as_bytes(), format).unwrap_or_else(|error| panic!("{cut}: {error}"));
        assert_eq!(completion_summary(&completed), ((*text).to_owned(), (*places).to_owned()), "{cut}");
    }
}

#[test]
fn a_cut_string_keeps_its_settled_part() {
    check(
        &Format::Json,
        &[
            ("\"", "\"\"", "string "),
            ("\"ab", "\"ab\"", "string "),
            ("[\"ab", "[\"ab\"]", "array , string /0"),
            ("[\"a\", \"b", "[\"a\", \"b\"]", "array , string /1"),
            ("{\"k\": \"", "{\"k\": \"\"}", "object , string /k"),
            (
                "{\"k\":[{\"l\":\"x",
                "{\"k\":[{\"l\":\"x\"}]}",
                "object , array /k, object /k/0, string /k/0/l",
            ),
            // An incomplete escape is omitted, and so is a high surrogate whose partner may still follow.
            ("[\"a\\", "[\"a\"]", "array , string /0"),
            ("[\"a\\\\", "[\"a\\\\\"]", "array , string /0"),
            ("[\"a\\\\\\\"", "[\"a\\\\\\\"\"]", "array , string /0"),
            ("[\"a\\u00e", "[\"a\"]", "array , string /0"),
            ("[\"a\\u00e9", "[\"a\\u00e9\"]", "array , string /0"),
            ("[\"a\\uD83D", "[\"a\"]", "array , string /0"),
            ("[\"a\\uD83D\\uDE", "[\"a\"]", "array , string /0"),
            ("[\"a\\uD83D\\uDE00", "[\"a\\uD83D\\uDE00\"]", "array , string /0"),
            ("[\"a\\uD83D\\uD83D", "[\"a\\uD83D\"]", "array , string /0"),
            ("[\"{[,:", "[\"{[,:\"]", "array , string /0"),
        ],
    );
    let in_character = complete(b"[\"a\xF0\x9F\x98", &Format::Json).unwrap();
    assert_eq!(completion_summary(&in_character), ("[\"a\"]".to_owned(), "array , string /0".to_owned()));
}

#[test]
fn an_unsettled_number_or_literal_is_dropped() {
    check(
        &Format::Json,
        &[
            ("[1", "[]", "array , -number /0"),
            ("[1, 2", "[1]", "array , -number /1"),
            ("[1, 2 ", "[1, 2 ]", "array "),
            ("[1, 2,", "[1, 2]", "array , -element /2"),
            ("{\"a\":-", "{}", "object , -number /a"),
            ("{\"a\":1,\"b\": 1.5e", "{\"a\":1}", "object , -number /b"),
            ("{\"a\" :true", "{\"a\" :true}", "object "),
            ("{\"a\":tru", "{}", "object , -literal /a"),
            ("[null, f", "[null]", "array , -literal /1"),
        ],
    );
}

#[test]
fn a_name_without_its_value_is_dropped_and_reported() {
    check(
        &Format::Json,
        &[
            ("{\"a", "{}", "object , -member "),
            ("{\"a\"", "{}", "object , -key /a"),
            ("{\"a\" : ", "{}", "object , -key /a"),
            ("{\"a\":1 , ", "{\"a\":1}", "object , -member "),
            ("{\"a\":1,\"", "{\"a\":1}", "object , -member "),
            ("{\"a\":{\"b\":[],\"c\\", "{\"a\":{\"b\":[]}}", "object , object /a, -member /a"),
            ("{\"a\":\"b\",\"c\":", "{\"a\":\"b\"}", "object , -key /c"),
            (
                "{\"x/y~\\u007a\":[{\"\":",
                "{\"x/y~\\u007a\":[{}]}",
                "object , array /x~1y~0z, object /x~1y~0z/0, -key /x~1y~0z/0/",
            ),
        ],
    );
}

#[test]
fn open_brackets_are_closed_and_marked() {
    check(
        &Format::Json,
        &[
            ("[", "[]", "array "),
            (" { ", " { }", "object "),
            ("[[1],[2]", "[[1],[2]]", "array "),
            ("[[1],[2],[", "[[1],[2],[]]", "array , array /2"),
            ("{\"a\":{\"b\":{}", "{\"a\":{\"b\":{}}}", "object , object /a"),
            ("[{}, [] ", "[{}, [] ]", "array "),
            ("\u{FEFF}{", "\u{FEFF}{}", "object "),
            ("{\"a\":1,\"a\":[", "{\"a\":1,\"a\":[]}", "object , array /a"),
        ],
    );
}

#[test]
fn a_whole_text_is_returned_unchanged() {
    for text in ["[]", " {\"a\": [1, 2.50]}\n", "\"x\"", "true", "\u{FEFF}null", "1 "] {
        for format in [Format::Json, Format::Jsonl] {
            check(&format, &[(text, text, "")]);
            assert!(complete(text.as_bytes(), &format).unwrap().is_finished());
        }
    }
}

#[test]
fn a_lone_number_is_kept_and_marked_as_unfinished() {
    check(&Format::Json, &[("12", "12", "number "), (" -1.5", " -1.5", "number "), ("12\n", "12\n", "")]);
    check(&Format::Jsonl, &[("{} 1 12", "{} 1 12", "number ")]);
    assert_eq!(complete(b"{} 1 12", &Format::Jsonl).unwrap().value, 2);
}

#[test]
fn only_the_last_of_many_values_is_unfinished() {
    check(
        &Format::Jsonl,
        &[
            ("{\"a\":1}\n{\"b\":2", "{\"a\":1}\n{}", "object , -number /b"),
            ("{}[]\"x", "{}[]\"x\"", "string "),
            ("{}\n1.", "{}\n", "-number "),
            ("1 tru", "1 ", "-literal "),
            ("{}\n[", "{}\n[]", "array "),
        ],
    );
    let value = |text: &str| complete(text.as_bytes(), &Format::Jsonl).unwrap().value;
    assert_eq!((value("[1][2"), value("true{\"a\""), value("{}\n1."), value("{")), (1, 1, 1, 0));
}

#[test]
fn a_text_without_a_settled_value_is_refused() {
    for text in ["", " \n", "\u{FEFF} ", "-", "1.", "tru", "\u{FEFF}n"] {
        for format in [Format::Json, Format::Jsonl] {
            assert_eq!(complete(text.as_bytes(), &format), Err(CompleteError::NoValue), "{text:?}");
        }
    }
    assert_eq!(complete(b" ", &Format::Auto), Err(CompleteError::NoValue));
}

#[test]
fn an_unrepairable_text_is_refused() {
    let malformed = complete(b"[1,}", &Format::Json).unwrap_err();
    assert_eq!(malformed, CompleteError::Malformed { index: 3, reason: "not a value".to_owned() });
    assert_eq!(malformed.to_string(), "malformed at byte 3: not a value");
    assert!(matches!(complete(b"{}[", &Format::Json), Err(CompleteError::Malformed { index: 2, .. })));
    assert!(matches!(complete(b"[\"\xFF", &Format::Json), Err(CompleteError::Malformed { index: 2, .. })));
}

#[test]
fn only_json_can_be_closed() {
    assert_eq!(complete(b"x", &Format::Text), Err(CompleteError::NoGrammar("text")));
    let marker = Format::Marker("END".to_owned());
    assert_eq!(complete(b"x", &marker), Err(CompleteError::NoGrammar("marker")));
}

#[test]
fn auto_closes_text_that_is_json_from_its_beginning() {
    check(
        &Format::Auto,
        &[
            ("{\"a\":[1", "{\"a\":[]}", "object , array /a, -number /a/0"),
            ("{\"a\":1}\n{\"a\":", "{\"a\":1}\n{}", "object , -key /a"),
            ("[1]", "[1]", ""),
        ],
    );
    for text in
        ["12", "some prose", "Here: {\"a\":1", "```json\n[\"a", "{\"a\":1} and so on", "{\"a\":1}\"{b"]
    {
        assert_eq!(complete(text.as_bytes(), &Format::Auto), Err(CompleteError::NotJson), "{text}");
    }
    assert!(matches!(complete(b"{\"a\":1]", &Format::Auto), Err(CompleteError::Malformed { index: 6, .. })));
}

#[test]
fn invalid_utf8_is_malformed_in_every_format() {
    let broken = Err(CompleteError::Malformed { index: 5, reason: "invalid UTF-8".to_owned() });
    assert_eq!(complete(b"Hello\xFF", &Format::Auto), broken);
    assert_eq!(complete(b"[\"abc\xFF", &Format::Json), broken);
}

#[test]
fn a_hundred_thousand_levels_are_closed_in_linear_space() {
    let depth = 100_000;
    let cut = "[{\"k\":".repeat(depth / 2);
    let completed = complete(cut.as_bytes(), &Format::Json).unwrap();
    assert_eq!(completed.text, format!("{}[{{{}", "[{\"k\":".repeat(depth / 2 - 1), "}]".repeat(depth / 2)));
    let places = completed.unfinished();
    assert_eq!(places.len(), depth + 1);
    let key = places.clone().next_back().unwrap();
    assert_eq!((key.pointer.len(), key.kind.name()), ("/0/k".len() * depth / 2, "key"));
    assert_eq!(places.map(|place| place.pointer.len()).nth(3), Some("/0/k/0".len()));
}
