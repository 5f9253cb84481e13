//! Worked examples, in one table for each family of seams. Each line contains the first part, the
//! continuation, the requested position, and the expected result.

use endmark_text::Format;

use super::super::{AskedFrom, MergeError, Merged, Outcome, SeamStyle, merge_chunks, stitch};
use AskedFrom::{Cut, Token, Unknown};
use Expected::{Ambiguous, Malformed, NoSeam, StillTruncated, Whole};

/// The expected result of a case.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Whole(SeamStyle, &'static str),
    StillTruncated(&'static str),
    Ambiguous,
    NoSeam,
    Malformed,
}

fn check(format: &Format, cases: &[(&str, &str, AskedFrom, Expected)]) {
    for (initial, continuation, from, expected) in cases {
        let found = merge_chunks(initial, continuation, format, *from);
        let same = match (&found, expected) {
            (Ok(Merged { text, seam, .. }), Whole(style, whole)) => text == whole && seam.style == *style,
            (Err(MergeError::StillTruncated { merged }), StillTruncated(text)) => merged.text == *text,
            (Err(MergeError::Ambiguous { .. }), Ambiguous)
            | (Err(MergeError::NoSeam { .. }), NoSeam)
            | (Err(MergeError::Malformed { .. }), Malformed) => true,
            _ => false,
        };
        assert!(
            same,
            "{initial:?} + {continuation:?} from {from:?}\n expected {expected:?}\n found    {found:?}"
        );
    }
}

#[test]
fn an_exact_continuation_is_joined() {
    let whole = |text| Whole(SeamStyle::Exact, text);
    check(
        &Format::Json,
        &[
            (r#"{"a": [1, 2"#, r"3]}", Cut, whole(r#"{"a": [1, 23]}"#)),
            (r#"{"city": "San Fran"#, r#"cisco"}"#, Cut, whole(r#"{"city": "San Francisco"}"#)),
            (r#"{"city": "San Fran"#, r#"cisco"}"#, Token, whole(r#"{"city": "San Francisco"}"#)),
            (
                r#"{"city": "San Francisco", "#,
                r#""zip": 94103}"#,
                Unknown,
                whole(r#"{"city": "San Francisco", "zip": 94103}"#),
            ),
            // These may be two equal neighbours.
            (r#"["alpha one", "beta row", "#, r#""beta row", "x"]"#, Cut, Ambiguous),
            // Repeated letters that belong to the word are kept.
            (r#"{"word": "bal"#, r#"loon"}"#, Cut, whole(r#"{"word": "balloon"}"#)),
            (r#"{"matrix": [0, 0, "#, "0, 0, 1]}", Cut, whole(r#"{"matrix": [0, 0, 0, 0, 1]}"#)),
            (
                r#"{"code": "a:\n    b\n    "#,
                r#"    c\n"}"#,
                Cut,
                whole(r#"{"code": "a:\n    b\n        c\n"}"#),
            ),
            // The cut is in an escape, or in a surrogate pair.
            (r#"{"a": "caf\u00"#, r#"e9 noir"}"#, Cut, whole(r#"{"a": "caf\u00e9 noir"}"#)),
            (r#"{"a": "\ud83d\"#, r#"ude00"}"#, Cut, whole(r#"{"a": "\ud83d\ude00"}"#)),
            (r#"{"a": "line\"#, r#"nnext"}"#, Cut, whole(r#"{"a": "line\nnext"}"#)),
            (r#"{"a": tr"#, "ue}", Cut, whole(r#"{"a": true}"#)),
            (r#"{"a": tr"#, "ue}", Token, whole(r#"{"a": true}"#)),
        ],
    );
}

#[test]
fn a_repetition_is_not_a_continuation() {
    let report = "The harbour report of March lists three boats, and none of them was out on the Sunday. The first of them";
    let echoed =
        "\nContinue the text\n\nThe harbour report of March lists three boats, and none of them was out.";
    let circling =
        "The first of them sank. The harbour report of March lists three boats, and none of them was out.";
    let quoted = " It says that three boats, and none of them was out on the Sunday. The first of them sank.";
    check(
        &Format::Text,
        &[
            (report, echoed, Unknown, NoSeam),
            (report, echoed, Cut, NoSeam),
            (report, quoted, Unknown, NoSeam),
            (report, circling, Unknown, NoSeam),
            (
                report,
                " was painted in the spring.",
                Cut,
                Whole(
                    SeamStyle::Exact,
                    concat!(
                        "The harbour report of March lists three boats, and none of them was out on the Sunday. ",
                        "The first of them was painted in the spring."
                    ),
                ),
            ),
        ],
    );
}

#[test]
fn a_continuation_from_the_last_valid_token_is_joined() {
    check(
        &Format::Json,
        &[
            ("[1, 2", "3]", Cut, Whole(SeamStyle::Exact, "[1, 23]")),
            ("[1, 2", "3]", Token, Whole(SeamStyle::Token, "[1, 3]")),
            ("[1, 2", "3]", Unknown, Ambiguous),
            ("[1, 2", ", 3]", Unknown, Whole(SeamStyle::Exact, "[1, 2, 3]")),
            (r#"{"a": tr"#, "true}", Token, Whole(SeamStyle::Token, r#"{"a": true}"#)),
            (r#"{"a": tr"#, "true}", Unknown, Whole(SeamStyle::Token, r#"{"a": true}"#)),
            (
                r#"{"a": "x\ud83d"#,
                r#"\ud83d\ude00"}"#,
                Token,
                Whole(SeamStyle::Token, r#"{"a": "x\ud83d\ude00"}"#),
            ),
            (r#"{"a": "x\u00"#, r#"\u00e9"}"#, Unknown, Whole(SeamStyle::Token, r#"{"a": "x\u00e9"}"#)),
        ],
    );
}

#[test]
fn a_repeated_tail_is_joined() {
    let whole = |text| Whole(SeamStyle::Overlap, text);
    check(
        &Format::Json,
        &[
            ("[1,", ", 2]", Cut, whole("[1, 2]")),
            (r#"{"a": "x", "b": "#, r#", "b": 2}"#, Unknown, whole(r#"{"a": "x", "b": 2}"#)),
            (
                r#"{"text": "The quick brown fox jumps over"#,
                r#"brown fox jumps over the lazy dog."}"#,
                Unknown,
                whole(r#"{"text": "The quick brown fox jumps over the lazy dog."}"#),
            ),
            (
                r#"{"text": "Un caf\u00e9 noir et du pain pour le pe"#,
                r#"café noir et du pain pour le petit déjeuner."}"#,
                Cut,
                whole(r#"{"text": "Un caf\u00e9 noir et du pain pour le petit déjeuner."}"#),
            ),
        ],
    );
    check(
        &Format::Text,
        &[(
            "Open the window.\nThen measure the length of the bri",
            "Then measure the length of the bridge twice.\n",
            Unknown,
            whole("Open the window.\nThen measure the length of the bridge twice.\n"),
        )],
    );
}

#[test]
fn a_restart_is_detected() {
    let whole = |text| Whole(SeamStyle::Restart, text);
    check(
        &Format::Json,
        &[
            (r#"{"a": "hello wor"#, r#"{"a": "hello world"}"#, Unknown, whole(r#"{"a": "hello world"}"#)),
            (
                r#"{"a": "hello wor"#,
                "{\n  \"a\": \"hello world\"\n}",
                Cut,
                whole("{\"a\": \"hello world\"\n}"),
            ),
            (r#"{"a": "hello wor"#, r#""hello world"}"#, Token, whole(r#"{"a": "hello world"}"#)),
            (
                r#"[{"id": 1, "name": "al"}, {"id": 2, "na"#,
                r#"{"id": 2, "name": "bob"}]"#,
                Token,
                whole(r#"[{"id": 1, "name": "al"}, {"id": 2, "name": "bob"}]"#),
            ),
            // Another document is not a continuation.
            (r#"{"a": "hello wor"#, r#"{"a": "good night", "b": 1}"#, Unknown, Malformed),
        ],
    );
    let story = "Once upon a time there was a small village by the sea, and nobody kn";
    let rest = "ew who had built it.";
    let merged = merge_chunks(story, &format!("{story}{rest}"), &Format::Text, Cut).unwrap();
    assert_eq!(merged.text, format!("{story}{rest}"));
    let other = "Once upon a time there was a small village in the mountains, and a king ruled it.";
    assert!(merge_chunks(story, other, &Format::Text, Cut).is_err());
}

#[test]
fn a_fence_and_an_announcement_are_removed() {
    let json = r#"{"city": "San Francisco"}"#;
    let fence = Whole(SeamStyle::Fence, json);
    let preamble = Whole(SeamStyle::Preamble, json);
    check(
        &Format::Json,
        &[
            (r#"{"city": "San Fran"#, "```json\ncisco\"}\n```", Cut, fence),
            (r#"{"city": "San Fran"#, "```json\nSan Francisco\"}\n```\n\nHope this helps!", Token, fence),
            (r#"{"city": "San Fran"#, "```\n{\"city\": \"San Francisco\"}\n```", Unknown, fence),
            (r#"{"city": "San Fran"#, "Sure, here is the rest:\n\ncisco\"}", Cut, preamble),
            (
                r#"{"city": "San Fran"#,
                "Apologies for the cut-off. Continuing:\n```json\n\"city\": \"San Francisco\"}\n```",
                Token,
                preamble,
            ),
            (
                r#"{"city": "#,
                "Here is the complete JSON:\n\n{\"city\": \"San Francisco\"}",
                Unknown,
                preamble,
            ),
            // A refusal is not a continuation.
            (r#"{"city": "San Fran"#, "I'm sorry, but I can't help with that.", Cut, NoSeam),
            (r#"{"city": "#, "I'm sorry, but I can't help with that.", Cut, Malformed),
        ],
    );
    check(
        &Format::Text,
        &[
            (
                "The bridge was built in 1894 by a comp",
                "Sure, continuing from where I left off:\n\nany from the north. It still stands.",
                Cut,
                Whole(
                    SeamStyle::Preamble,
                    "The bridge was built in 1894 by a company from the north. It still stands.",
                ),
            ),
            (
                "Use this:\n\n```python\ndef total(items):\n    result = 0\n    for item in it",
                "```python\nems:\n        result += item\n    return result\n```",
                Cut,
                Whole(
                    SeamStyle::Fence,
                    "Use this:\n\n```python\ndef total(items):\n    result = 0\n    for item in items:\n        result += item\n    return result\n```",
                ),
            ),
            (
                "The bridge was built in 1894 by a comp",
                "I'm ready to help! What would you like to know?",
                Cut,
                NoSeam,
            ),
        ],
    );
}

#[test]
fn remarks_and_dots_are_removed() {
    check(
        &Format::Json,
        &[
            (
                "[1, 2, ",
                "3]\n\nLet me know if you need anything else!",
                Cut,
                Whole(SeamStyle::Remark, "[1, 2, 3]"),
            ),
            (r#"{"a": "x", "#, "...\"b\": 2}", Unknown, Whole(SeamStyle::Ellipsis, r#"{"a": "x", "b": 2}"#)),
            // The text after the document is not a remark, but a broken document.
            ("[1, 2, ", "3]]", Cut, Malformed),
        ],
    );
    let marker = Format::Marker("===END===".to_owned());
    check(
        &marker,
        &[
            (
                "a: 1\nb: tw",
                "o\n===END===\n\nThat is all.",
                Cut,
                Whole(SeamStyle::Remark, "a: 1\nb: two\n===END==="),
            ),
            ("a: 1\nb: tw", "o\nc: three", Cut, StillTruncated("a: 1\nb: two\nc: three")),
        ],
    );
}

#[test]
fn cut_continuations_are_joined() {
    check(
        &Format::Json,
        &[
            ("[1, 2, ", "3, 4, ", Cut, StillTruncated("[1, 2, 3, 4, ")),
            (r#"{"a": "one two thr"#, r"ee four fi", Cut, StillTruncated(r#"{"a": "one two three four fi"#)),
            (r#"{"a": "one "#, "two \u{fffd}", Cut, StillTruncated(r#"{"a": "one two "#)),
            (r#"{"a": "one"#, "", Cut, NoSeam),
        ],
    );
    // A cut character is written again or lost. A lost one cannot be guessed.
    check(
        &Format::Json,
        &[
            ("{\"a\": \"go \u{fffd}", "🚀 now\"}", Cut, Whole(SeamStyle::Exact, r#"{"a": "go 🚀 now"}"#)),
            ("{\"a\": \"go \u{fffd}", "\u{fffd}\u{fffd} now\"}", Cut, Ambiguous),
        ],
    );
}

#[test]
fn json_lines_and_auto_are_joined() {
    check(
        &Format::Jsonl,
        &[
            ("{\"a\": 1}\n{\"a\"", ": 2}\n", Cut, Whole(SeamStyle::Exact, "{\"a\": 1}\n{\"a\": 2}\n")),
            (
                "{\"a\": 1}\n{\"b\": \"tw",
                "{\"b\": \"two\"}\n",
                Token,
                Whole(SeamStyle::Restart, "{\"a\": 1}\n{\"b\": \"two\"}\n"),
            ),
        ],
    );
    check(&Format::Auto, &[("[1, ", "2]", Cut, Whole(SeamStyle::Exact, "[1, 2]"))]);
}

#[test]
fn open_markdown_or_tags_are_not_whole() {
    let code = "Here it is:\n\n```rust\nfn main() {";
    check(
        &Format::Markdown,
        &[
            (
                code,
                "\n}\n```\n",
                Cut,
                Whole(SeamStyle::Exact, "Here it is:\n\n```rust\nfn main() {\n}\n```\n"),
            ),
            (
                "```\nlet answer = 4",
                "2;\nlet question",
                Cut,
                StillTruncated("```\nlet answer = 42;\nlet question"),
            ),
            ("One line and ", "another", Cut, Whole(SeamStyle::Exact, "One line and another")),
        ],
    );
    check(
        &Format::Tags,
        &[
            (
                "<file><na",
                "me>a.rs</name></file>",
                Cut,
                Whole(SeamStyle::Exact, "<file><name>a.rs</name></file>"),
            ),
            ("<file><na", "me>a.rs</name>", Cut, StillTruncated("<file><name>a.rs</name>")),
        ],
    );
    for (format, text) in [(Format::Markdown, "```\nlet a"), (Format::Tags, "<a>b"), (Format::Auto, "[1, 2")]
    {
        let cut = stitch(&[text.to_owned()], &format, Cut);
        assert_eq!((cut.outcome, cut.error.unwrap().code), (Outcome::Error, "still_truncated"), "{format}");
    }
}

#[test]
fn the_table_of_the_manual_is_correct() {
    let hello = r#"{"a": "hello world"}"#;
    let start = r#"{"a": "hello wor"#;
    check(
        &Format::Json,
        &[
            (start, r#"{"a": "hello world"}"#, Unknown, Whole(SeamStyle::Restart, hello)),
            (start, r#""hello world"}"#, Unknown, Whole(SeamStyle::Restart, hello)),
            (start, "```json\nld\"}\n```", Unknown, Whole(SeamStyle::Fence, hello)),
            (start, "Sure, here is the rest:\n\nld\"}", Unknown, Whole(SeamStyle::Preamble, hello)),
            (start, "\nld\"}", Unknown, Whole(SeamStyle::Whitespace, hello)),
            (
                r#"{"t": "The quick brown fox ju"#,
                r#"brown fox jumps."}"#,
                Unknown,
                Whole(SeamStyle::Overlap, r#"{"t": "The quick brown fox jumps."}"#),
            ),
        ],
    );
}

#[test]
fn several_parts_are_joined() {
    let parts = |parts: &[&str]| parts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let whole = stitch(&parts(&["{\"a\": [1, 2", ", 3, ", "4]}"]), &Format::Json, Cut);
    assert_eq!((whole.outcome, whole.text.as_str()), (Outcome::Whole, "{\"a\": [1, 2, 3, 4]}"));
    assert_eq!(whole.seams.iter().map(|seam| seam.at).collect::<Vec<_>>(), [11, 16]);
    let unsure = stitch(&parts(&["[1, 2", "3]"]), &Format::Json, Unknown);
    assert_eq!((unsure.outcome, unsure.seams.len()), (Outcome::Ambiguous, 1));
    assert_eq!(unsure.error.unwrap().code, "ambiguous");
    let cut = stitch(&parts(&["[1, 2", ", 3"]), &Format::Json, Cut);
    assert_eq!((cut.outcome, cut.text.as_str()), (Outcome::Error, "[1, 2, 3"));
    assert_eq!(cut.error.unwrap().code, "still_truncated");
    let broken = stitch(&parts(&["[1, 2", ", }"]), &Format::Json, Cut);
    assert_eq!((broken.text.as_str(), broken.error.unwrap().code), ("[1, ", "malformed"));
    let nothing = stitch(&[], &Format::Json, Cut);
    assert_eq!(nothing.outcome, Outcome::Error);
}

#[test]
fn a_malformed_first_part_is_reported() {
    let error = merge_chunks("{\"a\" 1, ", "\"b\": 2}", &Format::Json, Cut).unwrap_err();
    let MergeError::Malformed { verified_len, attempt, .. } = error else { panic!("{error:?}") };
    assert_eq!((verified_len, attempt.as_str()), (5, "{\"a\" 1, \"b\": 2}"));
}

#[test]
fn a_chain_of_short_parts_is_joined() {
    let chain = [r#"{"name": "north", "code": "a"#, "bcd", r#"ef", "n": 2}"#].map(String::from);
    let stitched = stitch(&chain, &Format::Json, AskedFrom::Cut);
    assert_eq!(stitched.outcome, Outcome::Whole);
    assert_eq!(stitched.text, r#"{"name": "north", "code": "abcdef", "n": 2}"#);
    assert_eq!(stitched.seams.len(), 2);
}

#[test]
fn an_empty_part_does_not_end_a_chain() {
    let parts = [r#"{"rows": [1, "#, "\n", r"2, 3]}"].map(String::from);
    let stitched = stitch(&parts, &Format::Json, AskedFrom::Cut);
    assert_eq!((stitched.outcome, stitched.text.as_str()), (Outcome::Whole, r#"{"rows": [1, 2, 3]}"#));
    assert_eq!(stitched.seams.len(), 2);
}

#[test]
fn text_without_a_grammar_is_joined() {
    let exact = |text| Whole(SeamStyle::Exact, text);
    let preamble = |text| Whole(SeamStyle::Preamble, text);
    let bridge = "The bridge was built in 1894 by a company from the north. It still stands.";
    check(
        &Format::Text,
        &[
            // A word at the cut is continued, whatever position was requested.
            (
                "The bridge was built in 1894 by a comp",
                "any from the north. It still stands.",
                Unknown,
                exact(bridge),
            ),
            // A repeated part of a word is not duplicated.
            (
                "The bridge was built in 1894 by a comp",
                "company from the north. It still stands.",
                Unknown,
                Whole(SeamStyle::Overlap, bridge),
            ),
            // Announcements are recognised by their words, also in other languages.
            (
                "The bridge was built in 1894 by a comp",
                "Natürlich, hier ist der Rest:\n\nany from the north. It still stands.",
                Unknown,
                preamble(bridge),
            ),
            (
                "The bridge was built in 1894 by a comp",
                "Sure, continuing from where I left off: any from the north. It still stands.",
                Unknown,
                preamble(bridge),
            ),
            // A refusal does not continue the text, and repeated text adds nothing.
            ("The bridge was built in 1894 by a comp", "I cannot continue this text.", Unknown, NoSeam),
            ("The bridge was built in 1894 by a company", "in 1894 by a company", Unknown, NoSeam),
            ("The bridge was built in 1894 by a company", "", Cut, NoSeam),
            (
                "The bridge was built in 1894 by a company.",
                "\n",
                Cut,
                exact("The bridge was built in 1894 by a company.\n"),
            ),
            // It is unknown which whitespace was lost after the end of a sentence.
            ("It was built in 1894 by a company from the north.", "It still stands.", Unknown, Ambiguous),
            // After code, a sentence about the text does not belong to it.
            (
                "def total(items):\n    result = 0\n    for item in it",
                "ems:\n        result += item\n    return [result]\n\nLet me know if you need anything else!",
                Unknown,
                Whole(
                    SeamStyle::Remark,
                    "def total(items):\n    result = 0\n    for item in items:\n        result += item\n    return [result]",
                ),
            ),
        ],
    );
    check(
        &Format::Tags,
        &[(
            "<answer>\n  <step>Open the win",
            "dow.</step>\n</answer>\n\nAll tags are closed now.",
            Unknown,
            Whole(SeamStyle::Remark, "<answer>\n  <step>Open the window.</step>\n</answer>"),
        )],
    );
}

#[test]
fn introductory_words_before_json_are_detected_by_form() {
    let whole = |text| Whole(SeamStyle::Preamble, text);
    let json = r#"{"city": "San Francisco", "zip": 94103}"#;
    check(
        &Format::Json,
        &[
            (r#"{"city": "San Fran"#, "Вот продолжение:\n\ncisco\", \"zip\": 94103}", Cut, whole(json)),
            (r#"{"city": "San Fran"#, "**Fortsetzung**\n\ncisco\", \"zip\": 94103}", Cut, whole(json)),
            (r#"{"city": "San Francisco", "#, "以下是剩余部分：\n\"zip\": 94103}", Cut, whole(json)),
            (r#"{"city": "San Francisco", "#, "<!-- continued -->\n\"zip\": 94103}", Cut, whole(json)),
            // Valid JSON contains no announcement.
            (
                r#"{"done": tr"#,
                r#"ue, "city": "San: Francisco"}"#,
                Cut,
                Whole(SeamStyle::Exact, r#"{"done": true, "city": "San: Francisco"}"#),
            ),
            // Text that is not JSON is a remark, in any language.
            ("[1, 2, ", "3]\n---\n✅ 以上です。", Cut, Whole(SeamStyle::Remark, "[1, 2, 3]")),
        ],
    );
}

#[test]
fn similar_rows_continue_similarly() {
    let row = "{\"name\": \"alpha\", \"size\": 12}\n";
    let initial = format!("{row}{row}{{\"name\": \"al");
    let rest = format!("pha\", \"size\": 12}}\n{row}{row}");
    let merged = merge_chunks(&initial, &rest, &Format::Jsonl, Cut).unwrap();
    assert_eq!(merged.text, row.repeat(5));
    // Rows are not a remark about rows.
    let found = merge_chunks(&row.repeat(2), &format!("Here is the rest:\n{row}"), &Format::Jsonl, Cut);
    assert!(found.is_err() || found.is_ok_and(|merged| merged.text == row.repeat(3)));
}

#[test]
fn half_an_escape_is_compared_letter_by_letter() {
    let start = r#"{"t": "\u00e9\u4e2d\u6587\u65e5\u672c\u8a9e \u00fc\ua"#;
    let again = r#"4e2d\u6587\u65e5\u672c\u8a9e \u00fc\uad6d"}"#;
    let whole = r#"{"t": "\u00e9\u4e2d\u6587\u65e5\u672c\u8a9e \u00fc\uad6d"}"#;
    check(&Format::Json, &[(start, again, Unknown, Whole(SeamStyle::Overlap, whole))]);
}

#[test]
fn a_continuation_that_quotes_its_prompt_is_refused() {
    let initial = "The filter method is used to create a new array with the even numbers. The filter method";
    let again = "with the even numbers. The filter method\nContinue the text from the last valid token. \
                 Output ONLY the remaining text.";
    let refused = merge_chunks(initial, again, &Format::Text, Token).unwrap_err();
    assert_eq!(refused.code(), "no_seam");
}

#[test]
fn a_restart_that_ends_before_the_cut_adds_nothing() {
    let initial = "```python\ndef reverse(text):\n    return text[::-1]\n```\n\nThis returns a reversed copy.\n\nExample usage:\n```python\n";
    let again = "```python\ndef reverse(text):\n    return text[::-1]\n```\n\nThis returns a reversed copy.";
    assert!(merge_chunks(initial, again, &Format::Text, Token).is_err());
}

#[test]
fn words_after_the_last_outermost_tag_are_a_remark() {
    let initial = "<thinking>Count the rows.</thinking>\n<answer>There are twel";
    let rest = "ve rows.</answer>\n\nI kept the formatting as it was.";
    let merged = merge_chunks(initial, rest, &Format::Tags, Unknown).unwrap();
    assert_eq!(merged.text, "<thinking>Count the rows.</thinking>\n<answer>There are twelve rows.</answer>");
}

#[test]
fn an_uncertain_last_paragraph_is_not_removed_silently() {
    let initial = "The crate has two kinds of storage. The default one keeps everything in memory, without\n";
    let rest = "any file at all, and is the fastest.\n\nIf you need other storage types, you will have to write them to \
                a file yourself and read them back.\n";
    let whole = [initial, rest].concat();
    match merge_chunks(initial, rest, &Format::Markdown, Cut) {
        Ok(merged) => assert_eq!(merged.text, whole),
        Err(refused) => assert_eq!(refused.code(), "ambiguous"),
    }
}

#[test]
fn multibyte_whitespace_at_the_seam_is_not_split() {
    for space in ["\u{2028}", "\u{3000}", "\u{85}", "\u{a0}"] {
        let rest = format!("{space}tall</name></item>");
        let answer = merge_chunks("<item><name>some", &rest, &Format::Tags, Unknown);
        assert!(!matches!(answer, Err(MergeError::Malformed { .. })), "{space:?}");
    }
}

#[test]
fn a_fence_with_several_possible_ends_splits_no_character() {
    let rest = "代码行;;\n```\n\n如需其他帮助，请告诉我。\n\n以上是完整的文件。";
    let initial = format!("说明\n\n```\n{}", &rest[..38]);
    for format in [Format::Markdown, Format::Text, Format::Tags] {
        for from in [Cut, Token, Unknown] {
            let answer = merge_chunks(&initial, rest, &format, from);
            assert!(!matches!(answer, Err(MergeError::Malformed { .. })), "{format:?}, {from:?}");
        }
    }
}
