use endmark_text::Format;
use endmark_text::detect::Detector;

use super::{MAX_REMARK_BYTES, Tail};

/// Returns the certain part of the text after a first part. Checks that reading it character by character
/// gives the same.
fn certain<'r>(format: &Format, initial: &str, rest: &'r str, fenced: bool) -> &'r str {
    let mut state = Detector::new(format);
    state.push(initial.as_bytes());
    let mut tail = Tail::new(format, state.clone(), fenced);
    tail.read(rest);
    let at_once = tail.certain();
    let mut tail = Tail::new(format, state, fenced);
    for (at, character) in rest.char_indices() {
        let before = tail.certain();
        tail.read(&rest[..at + character.len_utf8()]);
        assert!(tail.certain() >= before, "what is certain only grows");
        // Reading the same text again changes nothing.
        tail.read(&rest[..at + character.len_utf8()]);
    }
    assert_eq!(tail.certain(), at_once, "{rest:?}");
    &rest[..at_once]
}

#[test]
fn a_single_document_is_certain_up_to_its_end() {
    let json = |initial, rest| certain(&Format::Json, initial, rest, false);
    assert_eq!(json(r#"{"a": "x"#, "yé"), "yé");
    assert_eq!(json(r#"{"a": "x"#, "y\"} That is all."), "y\"}");
    assert_eq!(json(r#"{"a": "x"#, "y\"}\n```"), "y\"}");
    assert_eq!(json("[1, 2", "] ["), "]");
    assert_eq!(json("[1, 2", "]]"), "]");
    assert_eq!(json("[1, 2", ", x]"), ", ");
    assert_eq!(json("[1]", " and more"), "", "nothing can follow what is whole");
    assert_eq!(json("[x", "]"), "", "nor what is malformed");
}

#[test]
fn after_a_row_only_another_row_is_certain() {
    let rows = |initial, rest| certain(&Format::Jsonl, initial, rest, false);
    assert_eq!(rows("{\"a\": 1", "2}"), "2}");
    assert_eq!(rows("{\"a\": 1", "2}\n"), "2}");
    assert_eq!(rows("{\"a\": 1", "2}\n{\"a\""), "2}\n{\"a\"");
    assert_eq!(rows("{\"a\": 1", "2}\n[1, 2]\n"), "2}\n[1, 2]");
    assert_eq!(rows("{\"a\": 1", "2}\n\"b\"\n"), "2}\n\"b\"");
    assert_eq!(rows("{\"a\": 1", "2}\nThat is all."), "2}");
    assert_eq!(rows("{\"a\": 1", "2}\n3 rows in all"), "2}", "a remark may begin with a number");
    assert_eq!(rows("{\"a\": 1}\n", "3 rows"), "");
    assert_eq!(rows("{\"a\": 1}\n", "{\"a\": 2, x"), "{\"a\": 2, ");
}

#[test]
fn a_bracketed_line_after_a_row_is_certain_once_it_cannot_be_a_remark() {
    let certain_of = |rest: &'static str| certain(&Format::Jsonl, "[1", rest, false);
    assert_eq!(certain_of("]\n[End of output]"), "]");
    assert_eq!(certain_of("]\n[true"), "]");
    assert_eq!(certain_of("]\n[true, 1"), "]\n[true, 1");
    assert_eq!(certain_of("]\n[2]"), "]\n[2]");
}

#[test]
fn after_the_outermost_tag_only_another_tag_is_certain() {
    let tags = |initial, rest| certain(&Format::Tags, initial, rest, false);
    assert_eq!(tags("<a><b>one", " two</b></a>"), " two</b></a>");
    assert_eq!(tags("<a><b>one", " two</b></a>\n\nThat is all."), " two</b></a>");
    assert_eq!(tags("<a><b>one", " two</b></a>\n<a>"), " two</b></a>\n<a>");
}

#[test]
fn the_last_lines_of_prose_are_held_back() {
    let prose = |rest: &str, fenced| certain(&Format::Text, "It was", rest, fenced).to_owned();
    assert_eq!(prose(" a day.\n\nI hope this helps!", false), " a day.");
    assert_eq!(
        prose(" a day.\n\nThe text is complete.\n\nI hope", false),
        " a day.",
        "there may be two remarks"
    );
    let first = format!(" a {}day.", "long ".repeat(200));
    assert_eq!(prose(&format!("{first}\n\nIt ended."), false), first);
    assert_eq!(prose(" a day", false), " a day", "a remark begins a line");
    let long = format!(" a {}day.", "long ".repeat(400));
    assert_eq!(prose(&format!("{long}\nIt ended.\nDone."), false), long);
    let lines = "\nIt ended.".repeat(MAX_REMARK_BYTES);
    let held = lines.len() - prose(&lines, false).len();
    assert!(held <= MAX_REMARK_BYTES && held > MAX_REMARK_BYTES - "\nIt ended.".len(), "{held}");
    assert_eq!(prose(" day.\n\nIt ended.\n\n  \n", false), " day.", "blanks at the end are no paragraph");
}

#[test]
fn a_fence_that_may_close_the_wrapper_is_held_back() {
    let rest = |behind: &str| format!(" = 1;\n```{behind}");
    let long = "\nlet a = 1;".repeat(200);
    let fenced = |rest: &str| certain(&Format::Text, "let a", rest, true).to_owned();
    assert_eq!(fenced(&rest(&long)), " = 1;");
    let again = rest(&format!("{long}\n```{long}"));
    assert_eq!(fenced(&again), again[..again.rfind("\n```").unwrap_or(0)]);
    for sign in ["```", "  ```", "~~~~"] {
        let closed = format!("{long}\n{sign}{long}{long}");
        assert_eq!(fenced(&closed), long, "{sign}");
    }
    let bare = certain(&Format::Text, "let a", &again, false);
    assert!(bare.len() > fenced(&again).len(), "outside of a wrapper it is the text's own");
}
