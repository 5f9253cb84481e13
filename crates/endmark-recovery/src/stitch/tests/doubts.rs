//! Tests that undecidable seams are rejected, and that obviously unrelated text is not joined.

use endmark_text::Format::{self, Auto, Json, Jsonl, Markdown, Tags, Text};

use crate::stitch::AskedFrom::{self, Cut, Token, Unknown};
use crate::stitch::{MergeError, Outcome, merge_chunks, stitch};

fn join(format: &Format, from: AskedFrom, initial: &str, continuation: &str) -> Option<String> {
    merge_chunks(initial, continuation, format, from).ok().map(|merged| merged.text)
}

fn is_whole(format: &Format, from: AskedFrom, initial: &str, continuation: &str) {
    let expected = Some([initial, continuation].concat());
    assert_eq!(join(format, from, initial, continuation), expected);
}

const ZEROS: &str = "let zeros = [\n0, 0, 0, 0,\n0, 0, 0, 0,\n0, 0, 0, 0,\n0, 0, 0, 0,\n";

#[test]
fn the_number_of_repetitions_is_known_only_from_the_prompted_cut() {
    let rest = "0, 0, 0, 0,\n0, 0, 0, 0,\n0, 0, 0, 0,\n];\n";
    is_whole(&Text, Cut, ZEROS, rest);
    assert_eq!(join(&Text, Unknown, ZEROS, rest), None);
    let wrapped = format!("```text\n{rest}```\n");
    assert_eq!(join(&Text, Unknown, ZEROS, &wrapped), None);
    // If the continuation starts again from the first line, the position is known.
    let again = [ZEROS, rest].concat();
    assert_eq!(join(&Text, Unknown, ZEROS, &again), Some(again.clone()));
}

#[test]
fn a_wrapper_does_not_reveal_the_position_in_a_repetition() {
    let stair = (1..9).chain((0..8).rev()).map(|depth| [&"    ".repeat(depth), "}\n"].concat());
    let round = stair.collect::<String>().repeat(6);
    let (initial, rest) = (&round[..round.len() / 2], &round[round.len() / 2..]);
    let wrapped = format!("```text\n{rest}```\n\nThe file was still being written when the output stopped.");
    let text = join(&Text, Token, initial, &wrapped);
    assert!(text.as_ref().is_none_or(|text| text.trim_end() == round.trim_end()), "{text:?}");
}

#[test]
fn a_question_after_words_about_the_cut_is_not_a_continuation() {
    let initial = "{\"packet\": null, \"signal\": \"It took the engineers";
    let answer = "My last reply ended in the middle of a sentence. Would you like me to start over?";
    for from in [Cut, Token, Unknown] {
        let answer = merge_chunks(initial, answer, &Json, from);
        assert!(matches!(answer, Err(MergeError::NoSeam { .. })), "{answer:?}");
    }
}

#[test]
fn white_space_after_dots_stays_ambiguous() {
    let badge = "[![version](https://example.org/version)](https://example.org/boats)";
    let rest =
        "…\n\n[![tests](https://example.org/tests)](https://example.org/boats)\n\n\n## Boats\n * All\n";
    assert_eq!(join(&Markdown, Unknown, badge, rest), None);
}

#[test]
fn the_rest_of_a_literal_is_not_an_announcement() {
    let initial = "{\"id\": 1, \"kept\": false, \"from\": false}\n{\"id\": 2, \"kept\": t";
    let rest = "rue, \"from\": true}\n{\"id\": 3, \"kept\": true, \"from\": false}\n";
    let expected = Some([initial, rest].concat());
    assert_eq!(join(&Jsonl, Unknown, initial, &format!("\n{rest}")), expected);
    let by_words = join(&Jsonl, Unknown, initial, &format!("...{rest}"));
    assert!(by_words.is_none() || by_words == expected, "{by_words:?}");
}

#[test]
fn an_entity_contains_no_white_space() {
    let initial = "<content>\nfn least(a: &amp;str) -&gt; usize\nfn number&";
    let rest = "lt;N&gt;(name: &amp;str)\n</content>\n";
    is_whole(&Tags, Cut, initial, rest);
    assert_eq!(join(&Tags, Unknown, initial, &format!("\n{rest}")), None);
}

#[test]
fn a_second_root_is_another_document() {
    let initial = "<records>\n  <record id=\"boat 1\">\n    <name>gull</name>\n  </record>\n  <record id=\"e";
    let other = "<records>\n  <record id=\"net 1\">\n    <name>cod</name>\n  </record>\n</records>\n";
    for from in [Cut, Unknown] {
        let answer = merge_chunks(initial, other, &Tags, from);
        assert!(matches!(answer, Err(MergeError::NoSeam { .. })), "{answer:?}");
    }
}

#[test]
fn an_abandoned_block_is_not_continued() {
    let initial = "```python\ndef is_odd(n):\n    if isinstance(n, int) and n > 2:\n        return n % 2\n    if isinstance(n,";
    let remark = "```\n\nThis function will continue to run until it finds an odd number.";
    assert_eq!(join(&Text, Unknown, initial, remark), None);
}

#[test]
fn a_sentence_after_markup_is_not_markup() {
    let initial = "<div class=\"list\">\n<h1>List of boats</h1>\n<p>This is a list of boats.</p>\n";
    let remark = "<p>This is a list of boats.</p>\n\nMyself, I have only added a few boats to this list.";
    assert_eq!(join(&Text, Unknown, initial, remark), None);
    let expected_rest = "<p>This is a list of boats.</p>\n<ul>\n<li>gull</li>\n</ul>\n</div>\n";
    assert!(join(&Text, Unknown, initial, expected_rest).is_some());
}

#[test]
fn a_lone_space_is_not_a_continuation() {
    assert_eq!(join(&Text, Cut, "There is a harbour", " "), None);
    is_whole(&Text, Cut, "There is a harbour.", "\n");
}

#[test]
fn a_text_about_prompts_may_quote_a_prompt() {
    let initial = "# Prompts\n\nThe prompt asks for the rest in these wor";
    let rest = "ds: Continue the JSON payload from the last valid token.\n";
    is_whole(&Markdown, Cut, initial, rest);
    let prompted = "The harbour lay quiet, and the gulls had not yet found the";
    let quoted = " boats.\nContinue the text from the last valid token.";
    assert_eq!(join(&Text, Unknown, prompted, quoted), None);
}

#[test]
fn a_useless_restart_makes_later_parts_ambiguous() {
    let table = "| Cats | Dogs |\n| 1 | 2 |\n| 1 | 3 |\n| 1 | 4 |\n";
    let beginning = "| Cats | Dogs |\n| 1 | 2 |\n| 1 | 3 |\n| ";
    let chunks = [table, beginning, &[table, "| 2 | 3 |\n| 2 | 4 |\n"].concat()].map(str::to_owned);
    assert_ne!(stitch(&chunks, &Markdown, Unknown).outcome, Outcome::Whole);
}

#[test]
fn an_indentation_is_not_added_white_space() {
    let initial = "    class Point:\n        x: int";
    let rest = "\n        y: int\n\n    point = Point(1, 2)\n";
    is_whole(&Text, Cut, initial, rest);
    // After the last token, the number of equal lines is unknown.
    assert!(join(&Text, Token, initial, rest).is_none_or(|text| text == [initial, rest].concat()));
}

#[test]
fn a_separate_block_is_kept_if_the_cut_was_prompted() {
    let initial = "# Nets\n\nFirst the boats are counted, then the nets.\n\n";
    is_whole(&Markdown, Cut, initial, "```python\nprint(len(nets))\n```\n");
}

#[test]
fn a_row_on_the_line_of_another_row_is_a_repetition() {
    let row = "{\"id\":\"\",\"number\":12345678901234567890123,\"limit\":-1252,\"small\":true}";
    let again = format!("{row}\n{row}\n{row}\n");
    assert_eq!(join(&Jsonl, Cut, row, &again), Some(again.clone()));
}

#[test]
fn auto_joins_by_the_rules_of_the_detected_format() {
    let initial = "<item><name>some";
    let text = join(&Auto, Unknown, initial, "thing</name></item>\n\nThat is the whole document now.");
    assert_eq!(text.as_deref(), Some("<item><name>something</name></item>"));
    // A block counts as open even if Markdown was only detected.
    let open = "# Boats\n\n- gull\n- cod\n\n```text\nthe nets we";
    let answer = merge_chunks(open, "re dry\nand the", &Auto, Unknown);
    assert!(matches!(answer, Err(MergeError::StillTruncated { .. })), "{answer:?}");
}

#[test]
fn a_lone_full_stop_joins_without_a_space() {
    let text = "The reply, so to say, cannot be gone on with and ends in an error";
    for from in [Unknown, Token, Cut] {
        for sign in [".", ".\n", "!", "?"] {
            let joint = join(&Text, from, text, sign);
            assert_eq!(
                joint.as_deref().map(str::trim_end),
                Some(format!("{text}{}", sign.trim_end()).as_str()),
                "{from:?} {sign:?}"
            );
        }
    }
    // If the text has a space there, as in French, a space may have been lost.
    assert_eq!(
        join(&Text, Unknown, "Bonjour ! Le port est calme, et la réponse finit dans une erreur", "!"),
        None
    );
}

#[test]
fn a_last_paragraph_like_the_others_is_not_a_remark() {
    let initial = concat!(
        "## Compression\n\nTo set a level, append a digit to the mode when the file is opened. ",
        "The for"
    );
    let rest = concat!(
        "mat of the mode is that of `fopen`.\n\n",
        "Returns the number of bytes that were written, or -1 if the file cannot be opened.\n"
    );
    is_whole(&Markdown, Unknown, initial, rest);
    let initial = "La pequeña ciudad estaba vacía. El tren llegó con cuarenta minutos de retraso. Los campos";
    let rest = concat!(
        " estaban secos.\n\n",
        "Nadie miraba los campos. El tren salió de la ciudad con otros cuarenta minutos de retraso.\n"
    );
    is_whole(&Text, Unknown, initial, rest);
    let left = format!("{rest}\nThe whole text is complete now.\n");
    assert_eq!(join(&Text, Unknown, initial, &left), Some([initial, rest.trim_end()].concat()));
}

#[test]
fn a_sentence_that_occurs_twice_is_not_a_restart() {
    let initial = "The ferry left the harbour twenty minutes early. Most passengers never noticed the diff";
    let again = " never noticed the diff";
    let rest = concat!(
        "erence. Fog rolled in from the east and stayed. ",
        "The ferry left the harbour twenty minutes early on Sundays, too.\n"
    );
    let expected = Some([initial, rest].concat());
    assert_eq!(join(&Text, Unknown, initial, &[again, rest].concat()), expected);
    // The text repeats the sentence and then continues as it did before.
    let circle = [again, "erence. ", initial, "erence.\n"].concat();
    assert_eq!(join(&Text, Unknown, initial, &circle), None);
}

#[test]
fn a_heading_of_the_text_does_not_announce_a_restart() {
    let initial = concat!(
        "## Ridge and orbit\n\nThe letters told of three countries. One day a chest of letters was found. ",
        "Nobody could read them, and the mill stood still for years.\n\n> They said that the sea"
    );
    let version = initial.replace("three", "four") + "son would be bad.\n\nThe boats came back at noon.\n";
    let found = merge_chunks(initial, &version, &Markdown, Unknown);
    assert!(matches!(found, Err(MergeError::NoSeam { .. })), "{found:?}");
}

#[test]
fn an_unmatched_fence_ends_a_document_with_declarations() {
    let initial = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg width=\"16\">\n<path d=\"m 9.5 10\"";
    let declared = |kind: &str| [kind, "<feed>\n<entry>one</entry>\n<ent"].concat();
    let doctype = declared("<!DOCTYPE feed [<!ENTITY two \"2\">]>\n<!-- of > today -->\n");
    for (initial, rest) in [
        (initial, "/>\n</svg>\n"),
        ("<?xml version=\"1.0\" enc", "oding=\"UTF-8\"?>\n<svg>\n<g/>\n</svg>\n"),
        ("<?xml version=\"1.0\"?>\n<svg>\n<g/>\n<", "/svg>\n"),
        (&doctype, "ry>two</entry>\n</feed>\n"),
    ] {
        let found = join(&Tags, Cut, initial, &[rest, "```\n"].concat());
        assert_eq!(found.as_deref(), Some([initial, rest].concat().trim_end()));
    }
}

#[test]
fn a_space_after_an_announcement_belongs_to_the_text() {
    let initial = "for file in pages/*.html; do\n    if [[ $file";
    let rest = " == index.html ]]; then\n        echo \"$file\"\n    fi\ndone\n";
    let announced = ["I stopped too early. Here is the rest:\n\n", rest].concat();
    assert_eq!(join(&Text, Unknown, initial, &announced), Some([initial, rest].concat()));
}

#[test]
fn a_repetition_from_the_root_is_not_another_document() {
    let initial =
        "<?xml version=\"1.0\"?>\n<svg width=\"16\" height=\"16\">\n<path d=\"m 9.5 10 c 0.27 0 0.5\"";
    let again = &initial[initial.find("<svg").unwrap()..];
    let rest = "/>\n<path d=\"m 1.5 2 h 8\"/>\n</svg>\n";
    let expected = Some([initial, rest].concat());
    assert_eq!(join(&Tags, Unknown, initial, &[again, rest].concat()), expected);
}

#[test]
fn an_extra_identical_row_may_be_the_next_row() {
    let row = r#"{"id": "north", "kept": true, "state": "open"}"#;
    let alike = [row, "\n", row, "\n", row].concat();
    let again = [row, "\n"].concat();
    assert_eq!(join(&Jsonl, Token, &alike, &again), None);
    // A row that occurs once in the text is certainly a repetition.
    let other = r#"{"id": "south", "kept": true, "state": "shut"}"#;
    let single = [other, "\n", row].concat();
    let rest = [row, "\n", other, "\n"].concat();
    let expected = Some([single.as_str(), "\n", other, "\n"].concat());
    assert_eq!(join(&Jsonl, Token, &single, &rest), expected);
}

#[test]
fn a_prompted_continuation_does_not_repeat_the_previous_row() {
    let row = r#"{"id": 0.36, "name": "quick_can"}, "#;
    let initial = format!("[{}{{\"id\": ", row.repeat(20));
    let rest = format!("0.36, \"name\": \"quick_can\"}}, {}{}]", row.repeat(19), row.trim_end_matches(", "));
    let expected = Some([initial.as_str(), &rest].concat());
    assert_eq!(join(&Json, Token, &initial, &rest), expected);
    let announced = format!("Desculpe pela interrupção. Segue o restante:\n\n{rest}");
    assert_eq!(join(&Json, Token, &initial, &announced), expected);
    assert_eq!(join(&Json, Unknown, &initial, &rest), None, "nothing tells how many there were to be");
}

#[test]
fn one_or_two_numbers_are_not_repeated_in_a_row_of_numbers() {
    let initial = "[[0, 0, 86, 0], [0, 11, 0, 0], [15, 0, 59, 0], [0, 0,";
    let rest = " 0, 78], [0, 32, 0, 0]]";
    let text = join(&Json, Unknown, initial, rest);
    assert!(text.as_ref().is_none_or(|text| *text == [initial, rest].concat()), "{text:?}");
    is_whole(&Json, Cut, initial, rest);
}

#[test]
fn letters_of_an_escape_are_compared_after_a_string() {
    let initial = r#"[{"id": 348, "name": "Field as f\u00fcr quiet und possible from reads!","#;
    let rest = r#" "other": "Last"}, {"id": 349, "name": "x", "other": ""}]"#;
    let again = format!("fcr quiet und possible from reads!\",{rest}");
    assert_eq!(join(&Json, Unknown, initial, &again), Some([initial, rest].concat()));
}
