use super::*;

/// Returns the verdict's name, the detected format, and the settled length if `text` is cut. Checks that
/// chunking does not change the result.
#[track_caller]
fn detection_summary(
    text: impl AsRef<[u8]> + std::fmt::Debug,
) -> (&'static str, &'static str, Option<usize>) {
    let bytes = text.as_ref();
    let mut single_bytes = AutoMachine::default();
    for byte in bytes {
        single_bytes.push(&[*byte]);
    }
    for split in 0..=bytes.len() {
        let mut machine = AutoMachine::default();
        machine.push(&bytes[..split]);
        machine.push(&bytes[split..]);
        assert_eq!(machine.verdict(), single_bytes.verdict(), "{text:?} split at {split}");
        assert_eq!(machine.detected_format(), single_bytes.detected_format(), "{text:?} split at {split}");
        assert_eq!(machine.hint(), single_bytes.hint(), "{text:?} split at {split}");
        assert_eq!(machine.is_whole(), machine.verdict().is_whole(), "{text:?} split at {split}");
        assert_eq!(
            machine.is_malformed(),
            machine.verdict().name() == "malformed",
            "{text:?} split at {split}"
        );
    }
    let verdict = single_bytes.verdict();
    let index = verdict.truncation().map(|truncation| truncation.truncation_index);
    (verdict.name(), single_bytes.detected_format().name(), index)
}

#[test]
fn text_that_begins_with_a_bracket_is_json_while_it_is_valid() {
    assert_eq!(detection_summary("{\"a\": 1}\n"), ("whole", "json", None));
    assert_eq!(detection_summary("\u{FEFF} [1, 2"), ("truncated", "json", Some(8)));
    assert_eq!(detection_summary("{\"a\": \"Gr\u{fc}"), ("truncated", "json", Some(11)));
    assert_eq!(detection_summary("{\"a\":1}\n{\"a\":2}\n"), ("whole", "jsonl", None));
    assert_eq!(detection_summary("{\"a\":1}\n{\"a\":"), ("truncated", "jsonl", Some(13)));
    assert_eq!(detection_summary("[1]\n[2]\n[3"), ("truncated", "jsonl", Some(9)));
    assert_eq!(detection_summary("{\"a\": 1,}"), ("malformed", "json", None));
    assert_eq!(detection_summary("{\"a\":1}\n{\"a\":2]"), ("malformed", "jsonl", None));
}

#[test]
fn json_is_found_within_fences() {
    assert_eq!(detection_summary("```json\n{\"a\": [1, 2"), ("truncated", "json", Some(18)));
    assert_eq!(detection_summary("```json\n{\"a\": 1}\n```"), ("whole", "json", None));
    assert_eq!(detection_summary("```json\n{\"a\": 1}\n"), ("whole", "json", None));
    assert_eq!(detection_summary("```\n[true, fal"), ("truncated", "json", Some(11)));
    assert_eq!(detection_summary("Here it is:\n\n```JSON\n[1, \"x"), ("truncated", "json", Some(27)));
    assert_eq!(detection_summary("Here it is:\n~~~~json\n{\"a\":1}\n~~~~\nDone."), ("whole", "json", None));
    assert_eq!(detection_summary("```jsonl\n{\"a\":1}\n{\"a\""), ("truncated", "jsonl", Some(21)));
    assert_eq!(detection_summary("```json\n{\"a\": [1\n```\n"), ("malformed", "json", None));
    assert_eq!(
        detection_summary("First:\n```json\n{}\n```\nThen:\n```json\n{\"b\""),
        ("truncated", "json", Some(40))
    );
}

#[test]
fn only_an_object_continues_a_sequence_of_objects() {
    assert_eq!(detection_summary("{\"a\": 1} [2, see above"), ("whole", "json", None));
    assert_eq!(detection_summary("{\"a\": 1} {\"b"), ("truncated", "jsonl", Some(12)));
    assert_eq!(detection_summary("```json\n{\"a\":1}\n2\n```"), ("whole", "json", None));
    assert_eq!(detection_summary("Both: {\"a\":1} {\"a\":2}."), ("whole", "jsonl", None));
    assert_eq!(detection_summary("One: {\"a\":1}. Two: {\"a\":2}."), ("whole", "json", None));
}

#[test]
fn malformed_json_is_not_reinterpreted_as_another_format() {
    assert_eq!(detection_summary("```json\n{\"a\": 1,,\n"), ("malformed", "json", None));
    assert_eq!(detection_summary("{\"a\": 1,,}\n```sh\nls"), ("malformed", "json", None));
    assert_eq!(detection_summary("{\"a\": 1,,}\n<b>\nx"), ("malformed", "json", None));
}

#[test]
fn tags_or_json_on_a_new_line_are_detected_after_a_bracket() {
    assert_eq!(detection_summary("[1]\n<answer>42"), ("truncated", "tags", Some(14)));
    assert_eq!(detection_summary("[1] \n \t<answer>42"), ("truncated", "tags", Some(17)));
    assert_eq!(detection_summary("[1] <answer>42"), ("whole", "text", None));
    assert_eq!(detection_summary("See [1]\n[{\"a\": 1"), ("truncated", "json", Some(15)));
}

#[test]
fn json_is_found_within_prose() {
    assert_eq!(detection_summary("Sure! {\"a\": {\"b\": \"c"), ("truncated", "json", Some(20)));
    assert_eq!(detection_summary("The result:\n[{\"a\": 1}, "), ("truncated", "json", Some(23)));
    assert_eq!(detection_summary("{\"a\": 1}\n\nThat is all."), ("whole", "json", None));
    assert_eq!(detection_summary("Use {x} and {{\"a\": 1"), ("truncated", "json", Some(19)));
}

#[test]
fn ambiguous_prose_is_text() {
    for text in [
        "The set {1, 2",
        "See [1] and [2",
        "[1] Knuth, Donald. The Art",
        "Two lines\n[\"a\", \"b",
        "\"Well,\" she said",
        "12",
        "true",
        "Inline ```{\"a\"``` code",
        "Say {\"a\": value} or {\"a\": ...}",
        "{ not json",
        "{} is the empty object",
        "[Verse 1]\nLa la",
    ] {
        assert_eq!(detection_summary(text), ("whole", "text", None), "{text:?}");
    }
    assert_eq!(detection_summary(""), ("truncated", "text", Some(0)));
    assert_eq!(detection_summary(" \n"), ("truncated", "text", Some(0)));
}

#[test]
fn markdown_is_cut_if_a_construct_is_open() {
    for text in ["```python\nx = {\"a\": 1", "```python\n{\"a\": 1", "```\nsome output\n{\"a\": 1"] {
        assert_eq!(detection_summary(text), ("truncated", "markdown", Some(text.len())), "{text:?}");
    }
    for text in
        ["[link](https://example.org)", "- [ ] a task\n- [x] a", "# Title\n\nText", "```\nx\n```\n", "> a"]
    {
        assert_eq!(detection_summary(text), ("whole", "markdown", None), "{text:?}");
    }
    assert_eq!(detection_summary("See [the page](http"), ("truncated", "markdown", Some(19)));
    assert_eq!(detection_summary("<!-- note"), ("truncated", "tags", Some(9)));
    assert_eq!(
        detection_summary("<h1 align=\"center\">T</h1>\n<p>\n\n## A\n```\nx"),
        ("truncated", "markdown", Some(41))
    );
    assert_eq!(
        detection_summary("<h1 align=\"center\">T</h1>\n<p>\n\n## A\nList<String> a<b"),
        ("whole", "markdown", None)
    );
}

#[test]
fn a_construct_that_is_open_after_json_is_detected() {
    assert_eq!(detection_summary("```json\n{}\n```\n```sh\nls"), ("truncated", "markdown", Some(23)));
    assert_eq!(detection_summary("```json\n{}\n```\n```sh\nls\n```\n"), ("whole", "json", None));
    assert_eq!(detection_summary("```json\n{}\n"), ("whole", "json", None));
}

#[test]
fn tags_are_found_if_there_is_no_other_format() {
    for (text, judgement) in [
        ("<file path=\"a\"><content>fn main", ("truncated", "tags", Some(31))),
        ("<a>b</a>", ("whole", "tags", None)),
        ("\n <a>\n- b\n```\nc</a>\nDone.", ("whole", "tags", None)),
        ("Sure!\n<answer>42", ("truncated", "tags", Some(16))),
        ("Sure!\n<answer>42</answer>", ("whole", "tags", None)),
        ("<tool_call>\n{\"name\": \"x\"}\n", ("truncated", "tags", Some(26))),
        ("<tool_call>\n{\"name\": \"x\"}\n</tool_call>", ("whole", "tags", None)),
        ("<p>one</p>\n<p>two", ("truncated", "tags", Some(17))),
        ("<?xml version=\"1.0\"?>\n<a/>", ("whole", "tags", None)),
        ("Run `cp <src> <dst>` now", ("whole", "text", None)),
        ("Sure!\n<a>b</a>\nRun cp <src> <dst> now", ("whole", "tags", None)),
        ("a < b", ("whole", "text", None)),
        ("# Title\n<answer>42", ("whole", "markdown", None)),
        ("{\"a\": 1}\n<b>", ("whole", "json", None)),
        ("<- not", ("whole", "text", None)),
        ("```xml\n<a>\n```\n", ("whole", "markdown", None)),
        ("<answer>\n\n# Title\n\n- item", ("truncated", "tags", Some(25))),
        ("<p>\n\n# Title\n\n- item", ("whole", "markdown", None)),
    ] {
        assert_eq!(detection_summary(text), judgement, "{text:?}");
    }
}

#[test]
fn text_after_a_closed_fence_is_prose_again() {
    assert_eq!(detection_summary("```python\nx\n```\n{\"a\": 1"), ("truncated", "json", Some(22)));
    assert_eq!(detection_summary("````\n```\n{\"a\": 1"), ("truncated", "markdown", Some(16)));
    assert_eq!(detection_summary("```python\n``` x\n{\"a\": 1"), ("truncated", "markdown", Some(23)));
}

#[test]
fn offsets_count_from_the_beginning_of_the_text() {
    let mut machine = AutoMachine::default();
    machine.push(b"One:\n```json\n{\"a\":1}\n{\"b\": \"");
    let verdict = machine.verdict();
    let truncation = verdict.truncation().unwrap();
    assert_eq!((truncation.truncation_index, truncation.balanced_index), (28, 20));
    assert_eq!(truncation.last_valid_token, "\"b\": \"");
    assert_eq!(truncation.open.iter().map(|open| open.opener()).collect::<String>(), "{\"");
}

#[test]
fn the_balanced_offset_is_the_end_of_the_last_complete_part() {
    for (text, index, balanced) in [
        ("Sure!\n<a>x</a>\n<b>y", 19, 14),
        ("{\"a\":1}\n{\"b\"", 12, 7),
        ("Sure! {\"a\":1}\nAnd {\"b\":", 23, 13),
        ("<answer>\n{\"a\": 1", 16, 0),
    ] {
        let mut machine = AutoMachine::default();
        machine.push(text.as_bytes());
        let verdict = machine.verdict();
        let truncation = verdict.truncation().unwrap();
        assert_eq!((truncation.truncation_index, truncation.balanced_index), (index, balanced), "{text:?}");
    }
}

#[test]
fn a_fence_or_tag_needs_its_own_line_after_json() {
    assert_eq!(detection_summary("{\"a\":1}```\nx"), ("whole", "json", None));
    assert_eq!(detection_summary("{\"a\":1}\n```\nx"), ("truncated", "markdown", Some(13)));
    assert_eq!(detection_summary("{\"a\":1}\n<b"), ("whole", "json", None));
}

#[test]
fn invalid_characters_are_malformed_everywhere() {
    for text in [&b"prose \xFF"[..], b"{\"a\": \"\xFF", b"Sure: {\"a\": \"\xC3(", b"```x\n\xED\xA0"] {
        let mut machine = AutoMachine::default();
        machine.push(text);
        assert_eq!(machine.verdict().name(), "malformed", "{text:x?}");
        assert!(machine.is_malformed(), "{text:x?}");
    }
    let mut machine = AutoMachine::default();
    machine.push(b"Sure: {\"a\": \"\xC3");
    assert_eq!(machine.verdict().truncation().unwrap().truncation_index, 13);
}

#[test]
fn a_byte_order_mark_is_allowed_only_at_the_beginning() {
    assert_eq!(detection_summary("\u{FEFF}{\"a\": 1"), ("truncated", "json", Some(9)));
    assert_eq!(detection_summary(b"[[\xBF"), ("malformed", "text", None));
    assert_eq!(detection_summary(b"[\xBB1"), ("malformed", "text", None));
    assert_eq!(detection_summary(b"[\xBB\xBF1"), ("malformed", "text", None));
    assert_eq!(detection_summary(b"\xEF\xBF{\"a\": 1"), ("malformed", "json", None));
    assert_eq!(detection_summary("\u{FEFA}[1, 2"), ("whole", "text", None));
}

#[test]
fn the_first_fault_is_reported_despite_later_text() {
    for (text, fault) in [
        (&b"\xEF\xBB{\"a\":1,,"[..], 2),
        (b"\xEF[{\"a\":1,,", 1),
        (b"\xEF\xBB\xBF{\"a\":1,,\xFF", 10),
        (b"{\"a\":1 \xC3(", 7),
        (b"{\"a\":\"\xFF\"}", 6),
    ] {
        detection_summary(text);
        let mut machine = AutoMachine::default();
        for byte in text {
            machine.push(&[*byte]);
            if machine.position() > fault {
                let verdict = machine.verdict();
                assert!(matches!(verdict, Verdict::Malformed { index, .. } if index == fault), "{verdict:?}");
            }
        }
    }
}

#[test]
fn only_prose_gets_the_mid_sentence_hint() {
    for (text, hinted) in [
        ("The result of this is not at all what we", true),
        ("Here it is:\n```json\n{}\n```\nThe result of this is not at all what we", true),
        ("```text\nThe result of this is not at all what we", false),
        ("Here: {\"a\": \"The result of this is not at all what we", false),
    ] {
        let mut machine = AutoMachine::default();
        machine.push(text.as_bytes());
        assert_eq!(machine.hint().is_some(), hinted, "{text:?}");
    }
}

/// In prose, an unclosed quotation mark does not begin a string of several lines.
#[test]
fn raw_control_characters_are_allowed_in_json_at_the_beginning() {
    for (text, judgement, control) in [
        ("{\"a\": \"x\ny", ("truncated", "json", Some(10)), Some(8)),
        ("{\"a\": \"x\ny\"}\n{\"b\": 1}", ("whole", "jsonl", None), Some(8)),
        ("```json\n{\"a\": \"x\ny\"}\n```", ("whole", "json", None), Some(16)),
        ("Say {\"a\": \"x\nand no more.", ("whole", "text", None), None),
    ] {
        assert_eq!(detection_summary(text), judgement, "{text:?}");
        let mut machine = AutoMachine::default();
        machine.push(text.as_bytes());
        assert_eq!(machine.control_character(), control, "{text:?}");
    }
}

/// Such a text is malformed only if it begins with a tag.
#[test]
fn a_text_with_too_many_open_elements_is_malformed() {
    let elements = "<item>\n".repeat(132_000);
    let judged = |text: &str| {
        let mut machine = AutoMachine::default();
        machine.push(text.as_bytes());
        machine.push(b"<item>\n\n# Heading\n");
        assert_eq!(machine.is_malformed(), machine.verdict().name() == "malformed");
        (machine.verdict().name(), machine.detected_format().name())
    };
    assert_eq!(judged(&elements), ("malformed", "tags"));
    assert_eq!(judged(&format!("\u{FEFF}{elements}")), ("malformed", "tags"));
    assert_eq!(judged(&format!("Items:\n\n{elements}")).1, "markdown");
}
