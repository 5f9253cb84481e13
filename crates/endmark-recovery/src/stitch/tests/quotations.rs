//! Tests continuations in quotation marks, and quotations that belong to the text.

use endmark_text::Format::{Markdown, Text};

use crate::stitch::AskedFrom::{self, Cut, Unknown};
use crate::stitch::{SeamStyle, StitchStream, merge_chunks};

const BOATS: &str = "The harbour was quiet and the boats lay st";

fn join(from: AskedFrom, initial: &str, continuation: &str) -> Option<String> {
    merge_chunks(initial, continuation, &Text, from).ok().map(|merged| merged.text)
}

#[test]
fn a_quoted_continuation_is_unquoted() {
    for from in [Unknown, Cut] {
        for rest in [
            "\"ill that morning.\"",
            "“ill that morning.”",
            "„ill that morning.“",
            "«ill that morning.»",
            "`ill that morning.`",
        ] {
            let merged = merge_chunks(BOATS, rest, &Markdown, from).unwrap();
            assert_eq!(merged.text, [BOATS, "ill that morning."].concat(), "{rest}");
            assert_eq!(merged.seam.style, SeamStyle::Quotation, "{rest}");
        }
    }
}

#[test]
fn an_announced_or_overlapping_quotation_is_unquoted() {
    let whole = [BOATS, "ill that morning."].concat();
    for rest in [
        "Sure, here is the rest:\n\n\"ill that morning.\"",
        "\"the boats lay still that morning.\"",
        "\"The harbour was quiet and the boats lay still that morning.\"",
    ] {
        assert!(join(Unknown, BOATS, rest).is_none_or(|text| text == whole), "{rest}");
    }
    assert_eq!(join(Unknown, BOATS, "\"the boats lay still that morning.\""), Some(whole));
}

#[test]
fn a_quotation_mark_in_mid_word_is_never_joined() {
    for rest in [
        "\"ill that morning.",
        "\"ill that morning.\"\n\n\"And so it stayed.\"",
        "\"ill that\" morning, he said.",
    ] {
        for from in [Unknown, Cut] {
            assert_eq!(join(from, BOATS, rest), None, "{rest}");
        }
    }
}

#[test]
fn a_quotation_of_the_text_itself_is_kept() {
    for (initial, rest) in [
        ("She looked at the boats and whispered ", "\"hello\" and left."),
        ("She looked at the boats and whispered ", "\"hello, and good night to all of you.\""),
        ("She looked at the boats and said:\n\n", "\"Hello, and good night to all of you.\""),
        ("She looked at the boats and said: \"Good ni", "ght to all of you.\""),
        ("for name in names:\n    print(f", "\"{name} is late\")\n    count(name)\n"),
    ] {
        assert_eq!(join(Cut, initial, rest), Some([initial, rest].concat()), "{initial}");
        assert!(
            join(Unknown, initial, rest).is_none_or(|text| text == [initial, rest].concat()),
            "{initial}"
        );
    }
}

#[test]
fn a_stream_is_held_while_it_may_be_one_quotation() {
    let long = "ill that morning, and the gulls had not found the nets that lay on the stones. ".repeat(20);
    let mut stream = StitchStream::new(BOATS, &Text, Unknown);
    stream.push(&format!("\"{long}"));
    assert_eq!(stream.certain(), None);
    let joined = join(Unknown, BOATS, &format!("\"{}\"", long.trim_end()));
    assert_eq!(joined, Some([BOATS, long.trim_end()].concat()));
}
