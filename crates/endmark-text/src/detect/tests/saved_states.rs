//! Tests modified saved states. A modification of data that other code relies on must be detected (PC-2).

use serde_json::{Value, json};

use crate::Format;
use crate::detect::Detector;

fn save(format: &Format, text: &[u8]) -> Value {
    let mut detector = Detector::new(format);
    detector.push(text);
    serde_json::to_value(&detector).unwrap()
}

fn restores(state: &Value) -> bool {
    serde_json::from_value::<Detector>(state.clone()).is_ok()
}

/// Replaces one item in the saved state of `text`. Returns whether the state is still accepted.
fn is_accepted(format: &Format, text: &[u8], pointer: &str, value: Value) -> bool {
    let mut state = save(format, text);
    assert!(restores(&state), "{format}: {state}");
    let place = state.pointer_mut(&format!("/machine{pointer}"));
    *place.unwrap_or_else(|| panic!("{format}: there is no {pointer}")) = value;
    restores(&state)
}

#[track_caller]
fn assert_refused(format: &Format, text: &[u8], changes: &[(&str, Value)]) {
    for (pointer, value) in changes {
        assert!(!is_accepted(format, text, pointer, value.clone()), "{format}: {pointer} = {value}");
    }
}

#[track_caller]
fn assert_accepted(format: &Format, text: &[u8], changes: &[(&str, Value)]) {
    for (pointer, value) in changes {
        assert!(is_accepted(format, text, pointer, value.clone()), "{format}: {pointer} = {value}");
    }
}

/// Maximum length of the text of a restored state.
const MAX_TEXT_BYTES: usize = usize::MAX >> 4;

#[test]
fn a_saved_json_state_must_expect_a_possible_token() {
    let state = "/Json/state";
    for outside in
        [json!("Start"), json!({"ByteOrderMark": 1}), json!("Marked"), json!({"Done": {"scalar": true}})]
    {
        assert_refused(&Format::Json, b"[", &[(state, outside.clone())]);
        assert_refused(&Format::Json, b"{", &[(state, outside.clone())]);
        assert_accepted(&Format::Json, b"[]", &[(state, outside)]);
    }
    for in_object in [json!("FirstKey"), json!("Key"), json!("Colon")] {
        assert_refused(&Format::Json, b"[", &[(state, in_object.clone())]);
        assert_refused(&Format::Json, b"[]", &[(state, in_object.clone())]);
        assert_accepted(&Format::Json, b"{", &[(state, in_object)]);
    }
    assert_refused(&Format::Json, b"[\"a", &[(state, json!({"String": {"key": true}}))]);
    assert_accepted(&Format::Json, b"{\"a", &[(state, json!({"String": {"key": false}}))]);
    assert_refused(&Format::Json, b"{", &[(state, json!("FirstElement"))]);
    assert_refused(&Format::Json, b"[]", &[(state, json!("FirstElement"))]);
    assert_refused(&Format::Json, b"{}", &[(state, json!("FirstKey")), (state, json!("AfterValue"))]);
    assert_accepted(&Format::Json, b"[", &[(state, json!("AfterValue"))]);
    assert_accepted(&Format::Json, b"{", &[(state, json!("AfterValue"))]);
}

#[test]
fn a_saved_json_state_must_have_brackets_for_its_depth() {
    let depth = "/Json/nesting/depth";
    assert_refused(&Format::Json, b"[", &[(depth, json!(65)), ("/Json/nesting/outer", json!([1]))]);
    let deep = "[".repeat(65);
    assert_refused(&Format::Json, deep.as_bytes(), &[(depth, json!(64)), (depth, json!(129))]);
    assert_accepted(&Format::Json, deep.as_bytes(), &[(depth, json!(66)), (depth, json!(128))]);
}

#[test]
fn saved_json_offsets_must_be_ordered_and_within_the_text() {
    assert_refused(
        &Format::Json,
        b"[true, 1",
        &[
            ("/Json/position", json!(MAX_TEXT_BYTES + 1)),
            ("/Json/position", json!(6)),
            ("/Json/pending", json!(9)),
            ("/Json/balanced", json!(9)),
            ("/Json/settled/speaking", json!(8)),
            ("/Json/settled/speaking_before", json!(2)),
            ("/Json/settled/end", json!(9)),
            ("/Json/tail/end", json!(9)),
            ("/Json/tail/settled", json!(vec![0; 8])),
            ("/Json/tail/rest", json!(vec![0; 3])),
            ("/Json/malformed", json!([1, "made up"])),
            ("/Json/state", json!("Malformed")),
            ("/Json/state", json!("Literal")),
        ],
    );
    assert_accepted(
        &Format::Json,
        b"[true, 1",
        &[
            ("/Json/position", json!(MAX_TEXT_BYTES)),
            ("/Json/pending", json!(8)),
            ("/Json/balanced", json!(8)),
            ("/Json/settled/speaking", json!(6)),
            ("/Json/settled/speaking_before", json!(1)),
        ],
    );
    assert_refused(
        &Format::Json,
        b"[}",
        &[("/Json/malformed/0", json!(2)), ("/Json/malformed", Value::Null)],
    );
    assert_accepted(&Format::Json, b"[}", &[("/Json/malformed/0", json!(0))]);
    assert_refused(&Format::Json, b"[tru", &[("/Json/literal", json!("")), ("/Json/literal", json!("x"))]);
    assert_accepted(
        &Format::Json,
        b"[tru",
        &[("/Json/literal", json!("alse")), ("/Json/literal", json!("l"))],
    );
}

#[test]
fn a_saved_string_end_must_be_within_the_text() {
    let (inside, pending, escape) = ("/Json/string/inside", "/Json/string/pending", "/Json/string/escape");
    assert_refused(
        &Format::Json,
        b"[\"a\\u00",
        &[
            (pending, json!(1)),
            (pending, json!(8)),
            (escape, json!(1)),
            (escape, json!(8)),
            (inside, json!({"Unicode": {"digits": 4, "unit": 0}})),
            (inside, json!({"Character": {"missing": 0, "lowest": 128, "highest": 191}})),
            (inside, json!({"Character": {"missing": 4, "lowest": 128, "highest": 191}})),
            ("/Json/settled/end", json!(1)),
            ("/Json/settled/speaking", json!(3)),
        ],
    );
    assert_accepted(
        &Format::Json,
        b"[\"a\\u00",
        &[
            (pending, json!(2)),
            (pending, json!(7)),
            (escape, json!(2)),
            (escape, json!(7)),
            (inside, json!({"Unicode": {"digits": 3, "unit": 0}})),
            (inside, json!({"Character": {"missing": 3, "lowest": 128, "highest": 191}})),
        ],
    );
    // A state within a character cannot have an escape, and a state between characters can have neither.
    assert_accepted(&Format::Json, b"[\"a\xF0\x9F", &[(escape, json!(99))]);
    assert_refused(&Format::Json, b"[\"a\xF0\x9F", &[(pending, json!(99)), (pending, json!(1))]);
    assert_accepted(&Format::Json, b"[\"a", &[(pending, json!(99)), (escape, json!(99))]);
    assert_refused(&Format::Json, b"[\"a\\", &[(escape, json!(99)), (pending, json!(99))]);
    assert_refused(&Format::Json, b"[\"a\\uD800", &[(escape, json!(99))]);
}

#[test]
fn saved_text_offsets_must_be_within_the_text() {
    assert_refused(
        &Format::Text,
        b"ab\xF0\x9F",
        &[
            ("/Text/position", json!(MAX_TEXT_BYTES + 1)),
            ("/Text/position", json!(1)),
            ("/Text/settled", json!(5)),
            ("/Text/settled", json!(1)),
            ("/Text/tail/end", json!(3)),
            ("/Text/tail/settled", json!(vec![0; 3])),
            ("/Text/tail/rest", json!(vec![0; 3])),
            ("/Text/pending/missing", json!(0)),
            ("/Text/pending/missing", json!(4)),
            ("/Text/malformed", json!(4)),
        ],
    );
    assert_accepted(
        &Format::Text,
        b"ab\xF0\x9F",
        &[
            ("/Text/position", json!(MAX_TEXT_BYTES)),
            ("/Text/settled", json!(4)),
            ("/Text/tail/settled", json!(vec![0; 2])),
            ("/Text/tail/rest", json!(vec![0; 2])),
            ("/Text/pending/missing", json!(1)),
            ("/Text/pending/missing", json!(3)),
            ("/Text/malformed", json!(3)),
        ],
    );
}

#[test]
fn a_saved_long_text_keeps_only_its_end() {
    let text = b"a".repeat(5_000);
    assert_refused(&Format::Text, &text, &[("/Text/tail/settled", json!(vec![0; 1_601]))]);
    assert_accepted(&Format::Text, &text, &[("/Text/tail/settled", json!(vec![0; 1_600]))]);
    let spaces = [&b"1"[..], &b" ".repeat(5_000)].concat();
    assert_refused(&Format::Json, &spaces, &[("/Json/tail/rest", json!(vec![0; 1_601]))]);
    assert_accepted(&Format::Json, &spaces, &[("/Json/tail/rest", json!(vec![0; 1_600]))]);
}

#[test]
fn a_saved_marker_match_must_not_exceed_the_marker() {
    let marker = Format::Marker("<END>".to_owned());
    assert_refused(
        &marker,
        b"ab<EN",
        &[
            ("/Marker/matched", json!(6)),
            ("/Marker/text/position", json!(1)),
            ("/Marker/marker", json!("<E")),
        ],
    );
    assert_accepted(&marker, b"ab<EN", &[("/Marker/matched", json!(5))]);
}

#[test]
fn saved_tag_offsets_must_be_within_the_text() {
    let scanner = |field: &str| format!("/Tags/scanner/{field}");
    let long_name = |length: usize| json!(vec![b'a'; length]);
    assert_refused(
        &Format::Tags,
        b"<a>x</a><b",
        &[
            ("/Tags/text/position", json!(1)),
            ("/Tags/balanced", json!(11)),
            ("/Tags/token", json!(11)),
            (&scanner("start"), json!(11)),
            (&scanner("settled"), json!(11)),
            (&scanner("name"), long_name(101)),
        ],
    );
    assert_accepted(
        &Format::Tags,
        b"<a>x</a><b",
        &[
            ("/Tags/balanced", json!(10)),
            ("/Tags/token", json!(10)),
            (&scanner("start"), json!(10)),
            (&scanner("settled"), json!(10)),
            (&scanner("name"), long_name(100)),
        ],
    );
}

#[test]
fn saved_markdown_lines_must_fit_their_text_and_containers() {
    let blocks = |field: &str| format!("/Markdown/blocks/{field}");
    let text = b"> - a\n> - ```sh\n>   x";
    assert_refused(
        &Format::Markdown,
        text,
        &[
            ("/Markdown/text/position", json!(1)),
            (&blocks("position"), json!(22)),
            (&blocks("line_start"), json!(25)),
            (&blocks("matched"), json!(3)),
            (&blocks("matched_quotes"), json!(2)),
            (&blocks("quotes"), json!(2)),
            (&blocks("consumed"), json!(99)),
            (&blocks("column"), json!(MAX_TEXT_BYTES + 1)),
            (&blocks("item"), json!(MAX_TEXT_BYTES + 1)),
            (
                &blocks("rule"),
                json!({"sign": 45, "count": MAX_TEXT_BYTES + 1, "gap": false, "depth": 0, "underlines": false}),
            ),
            (&blocks("containers/1/Item/width"), json!(MAX_TEXT_BYTES + 1)),
            (&blocks("row/bars"), json!(MAX_TEXT_BYTES + 1)),
            (&blocks("inline/run"), json!(MAX_TEXT_BYTES + 1)),
            (&blocks("inline/link"), json!({"Bare": {"depth": MAX_TEXT_BYTES + 1}})),
            (&blocks("inline/brackets"), json!(vec![(0, false); 33])),
            (&blocks("mark"), json!(4)),
            (&blocks("leaf/Fence/length"), json!(MAX_TEXT_BYTES + 1)),
            (&blocks("leaf/Fence/sign"), json!(200)),
            (&blocks("line"), json!({"Marker": {"prefix": MAX_TEXT_BYTES + 1, "interrupts": true}})),
            (&blocks("line"), json!({"Digits": {"indent": MAX_TEXT_BYTES + 1, "count": 1, "is_one": true}})),
        ],
    );
    assert_accepted(
        &Format::Markdown,
        text,
        &[
            (&blocks("line_start"), json!(24)),
            (&blocks("column"), json!(MAX_TEXT_BYTES)),
            (&blocks("item"), json!(MAX_TEXT_BYTES)),
            (&blocks("containers/1/Item/width"), json!(MAX_TEXT_BYTES)),
            (&blocks("row/bars"), json!(MAX_TEXT_BYTES)),
            (&blocks("inline/run"), json!(MAX_TEXT_BYTES)),
            (&blocks("inline/link"), json!({"Bare": {"depth": MAX_TEXT_BYTES}})),
            (&blocks("inline/brackets"), json!(vec![(0, false); 32])),
            (&blocks("mark"), json!(3)),
            (&blocks("leaf/Fence/length"), json!(MAX_TEXT_BYTES)),
        ],
    );
}

#[test]
fn saved_markdown_markers_and_names_must_be_bounded() {
    let signs = b"````";
    assert_refused(
        &Format::Markdown,
        signs,
        &[
            ("/Markdown/blocks/line/Signs/length", json!(MAX_TEXT_BYTES + 1)),
            ("/Markdown/blocks/line/Signs/info_length", json!(10)),
            ("/Markdown/blocks/line/Signs/sign", json!(200)),
        ],
    );
    assert_accepted(
        &Format::Markdown,
        signs,
        &[
            ("/Markdown/blocks/line/Signs/length", json!(MAX_TEXT_BYTES)),
            ("/Markdown/blocks/line/Signs/info_length", json!(9)),
        ],
    );
    assert_refused(&Format::Markdown, b"<ab", &[("/Markdown/blocks/line/Html/Name/length", json!(13))]);
    assert_accepted(&Format::Markdown, b"<ab", &[("/Markdown/blocks/line/Html/Name/length", json!(12))]);
    let matched = "/Markdown/blocks/leaf/Html/block/UntilSigns/matched/length";
    assert_refused(&Format::Markdown, b"<pre>", &[(matched, json!(14))]);
    assert_accepted(&Format::Markdown, b"<pre>", &[(matched, json!(13))]);
    let line_start = "/Markdown/blocks/leaf/Html/line_start";
    assert_refused(&Format::Markdown, b"<pre>", &[(line_start, json!(MAX_TEXT_BYTES + 1))]);
    assert_accepted(&Format::Markdown, b"<pre>", &[(line_start, json!(MAX_TEXT_BYTES))]);
}

#[test]
fn a_saved_auto_state_must_fit_the_text() {
    assert_refused(
        &Format::Auto,
        b"{\"a\":1}{\"b",
        &[
            ("/Auto/whole/markdown/text/position", json!(1)),
            ("/Auto/mark", json!(4)),
            ("/Auto/candidate/start", json!(6)),
            ("/Auto/candidate/start", json!(usize::MAX)),
            ("/Auto/candidate/machine/values", json!("Many")),
            ("/Auto/candidate/machine/position", json!(2)),
            ("/Auto/candidate/machine/settled/speaking", json!(9)),
            ("/Auto/found/start", json!(11)),
            ("/Auto/found/end", json!(11)),
            ("/Auto/broken", json!({"index": 10, "reason": ""})),
        ],
    );
    assert_accepted(
        &Format::Auto,
        b"{\"a\":1}{\"b",
        &[
            ("/Auto/mark", json!(3)),
            ("/Auto/found/start", json!(10)),
            ("/Auto/found/end", json!(10)),
            ("/Auto/broken", json!({"index": 9, "reason": ""})),
        ],
    );
    let mut broken = save(&Format::Json, b"[}")["machine"]["Json"].take();
    assert!(is_accepted(&Format::Auto, b"[1", "/Auto/candidate/machine/member", json!(true)));
    assert!(!is_accepted(&Format::Auto, b"[1", "/Auto/candidate/machine", broken.take()));
    assert_refused(
        &Format::Auto,
        b"<a>x",
        &[
            ("/Auto/whole/tags/start", json!(1)),
            ("/Auto/whole/tags/start", json!(usize::MAX)),
            ("/Auto/whole/tags/machine/token", json!(5)),
        ],
    );
}

#[test]
fn a_state_of_another_version_or_shape_is_refused() {
    let state = save(&Format::Text, b"ab");
    for (pointer, value) in [("/version", json!(0)), ("/version", json!("2")), ("/machine", json!({}))] {
        let mut other = state.clone();
        *other.pointer_mut(pointer).unwrap() = value.clone();
        assert!(!restores(&other), "{pointer} = {value}");
    }
    let mut more = state.clone();
    more["more"] = json!(1);
    assert!(!restores(&more));
    let mut older = state;
    older["version"] = json!(1);
    let error = serde_json::from_value::<Detector>(older).unwrap_err().to_string();
    assert_eq!(error, "the saved state has the version 1, and this is version 2: detect the text again");
}
