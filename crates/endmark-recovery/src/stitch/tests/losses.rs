//! Tests that no words of the text are lost: this is worse than keeping a remark (PC-4).

use endmark_text::Format::{self, Json, Markdown, Text};

use crate::stitch::AskedFrom::{self, Cut, Token, Unknown};
use crate::stitch::{MergeError, SeamStyle, continue_message, merge_chunks};

fn join(format: &Format, from: AskedFrom, initial: &str, continuation: &str) -> Option<String> {
    merge_chunks(initial, continuation, format, from).ok().map(|merged| merged.text)
}

fn assert_joined_unchanged(format: &Format, from: AskedFrom, initial: &str, continuation: &str) {
    let expected = Some([initial, continuation].concat());
    assert_eq!(join(format, from, initial, continuation), expected, "{from:?}: {initial} + {continuation}");
}

fn is_in_doubt(format: &Format, from: AskedFrom, initial: &str, continuation: &str) {
    let answer = merge_chunks(initial, continuation, format, from);
    assert!(matches!(answer, Err(MergeError::Ambiguous { .. })), "{from:?}: {answer:?}");
}

/// A story that never addresses its reader.
const STORY: &str = "The harbour lay quiet in the grey of the morning, and the gulls had not yet found the nets. Two men came down \
the steps with a lamp and a coil of rope, and the older of them counted the boats as he did every day. There were eleven. \
The twelfth had left in the night, without a light, and the tide had already closed over the place where it had been tied \
to the wall.\n\nBy noon the wind had turned. The men mended what the storm had torn, and the women carried baskets of cod \
along the wall, and nobody spoke of the boat that was missing until the bell of the chapel rang for the third time.";

#[test]
fn an_ordinary_last_sentence_is_kept() {
    for last in [
        "The end.",
        "See the appendix.",
        "Yours sincerely,\nMira Holm",
        "He never came back.",
        "That was the last of it.",
        "Nothing more was heard of the boat.",
        "All rights reserved.",
        "Fin",
    ] {
        let text = [STORY, "\n\n", last].concat();
        for (from, at) in [(Unknown, 40), (Token, 212), (Cut, 333), (Unknown, 500)] {
            let (initial, rest) = text.split_at(at);
            let found = join(&Text, from, initial, rest);
            assert_eq!(found.as_deref(), Some(text.as_str()), "{last} {from:?}");
        }
    }
}

#[test]
fn words_to_the_reader_about_the_answer_are_removed_and_reported() {
    for remark in [
        "Let me know if you have any questions about the text.",
        "The document is now complete. Let me know if you need anything else!",
        "I hope this helps!",
        "Ich hoffe, das hilft! Sag Bescheid, wenn der Text noch etwas braucht.",
    ] {
        let (initial, rest) = STORY.split_at(212);
        let merged = merge_chunks(initial, &format!("{rest}\n\n{remark}"), &Text, Unknown).unwrap();
        assert_eq!((merged.text.as_str(), merged.seam.style), (STORY, SeamStyle::Remark), "{remark}");
        assert_eq!(merged.seam.dropped_bytes, remark.len() + 2);
    }
}

/// A text that always addresses its reader may also end by doing so.
#[test]
fn a_reply_that_addresses_its_reader_keeps_its_offer() {
    let reply = "I found two boats for your trip on Friday:\n\n- **Gull:** leaves at noon, 40 EUR\n- **Tern:** leaves at six, 25 EUR\n\n\
                 You can change your booking until the evening before.\n\nIf you need further assistance, feel free to ask!";
    for (from, at) in [(Unknown, 30), (Token, 70), (Cut, 100), (Unknown, 140)] {
        assert_joined_unchanged(&Markdown, from, &reply[..at], &reply[at..]);
    }
}

#[test]
fn an_open_label_in_emphasis_is_not_an_announcement() {
    for from in [Cut, Token, Unknown] {
        assert_joined_unchanged(&Markdown, from, "- **", "Total Cost**: $628");
        assert_joined_unchanged(
            &Markdown,
            from,
            "- **Boat**: Gull\n- **",
            "Total Cost**: $628\n- **Paid**: yes",
        );
    }
}

#[test]
fn a_cut_number_that_must_continue_is_not_dropped() {
    for (initial, rest) in [
        ("{\"price\":19.", "99}"),
        ("{\"balance\":-", "250}"),
        ("{\"size\": 1e", "5}"),
        ("{\"open\": tr", "false}"),
    ] {
        for from in [Token, Unknown] {
            let found = join(&Json, from, initial, rest);
            assert!(found.is_none(), "{from:?}: {found:?}");
        }
    }
    assert_joined_unchanged(&Json, Cut, "{\"price\":19.", "99}");
    let rewritten = join(&Json, Token, "{\"price\":19.", "19.99}");
    assert_eq!(rewritten.as_deref(), Some("{\"price\":19.99}"));
}

#[test]
fn a_backslash_in_a_path_does_not_become_a_line_feed() {
    for from in [Cut, Token, Unknown] {
        is_in_doubt(&Json, from, r#"{"p": "C:\\dir\"#, r#"\new"}"#);
    }
    let line = join(&Json, Token, r#"{"p": "one\"#, r#"\ntwo"}"#);
    assert_eq!(line.as_deref(), Some(r#"{"p": "one\ntwo"}"#));
}

#[test]
fn two_words_are_not_joined_into_an_unknown_one() {
    for from in [Cut, Token, Unknown] {
        is_in_doubt(&Text, from, "Use the operator AND", "role based access to check it.");
        let (initial, rest) = ("This is the time and", "then there are others to be found.");
        assert_ne!(join(&Text, from, initial, rest), Some([initial, rest].concat()));
        assert_joined_unchanged(&Text, from, "This is the first infor", "mation that we have about it.");
    }
    // If the server continues the same message, no words are removed.
    let (initial, rest) = ("Use the operator AND", "role based access to check it.");
    assert_eq!(continue_message(initial, rest, &Text).unwrap().text, [initial, rest].concat());
}

#[test]
fn an_unknown_position_is_allowed_where_it_does_not_matter() {
    assert_joined_unchanged(&Json, Unknown, "{\"a\":\"hel", "lo\"}");
    is_in_doubt(&Json, Unknown, "[1, 2", "3]");
}
