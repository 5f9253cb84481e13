//! Tests the removal of closing remarks after a JSON document, if no format is required.

use super::*;

const INITIAL: &str = "{\n  \"title\": \"The harbour\",\n  \"basins\": [\n    \"north\",\n    \"sou";
const REST: &str = "th\"\n  ],\n  \"open\": true\n}";

const JOINS: [Join; 5] = [Join::Exact, STITCHED_FROM_CUT, Join::InMessage, Join::Shown, Join::Prompted];

fn answer_with(rest: &str, join: Join) -> Option<(String, Seam)> {
    let mut resume = text(limit(INITIAL));
    let quoted = ask(&resume).shown.quoted_from;
    let again = if join == Join::Prompted { &INITIAL[quoted..] } else { "" };
    resume.reply(normal(&[again, rest].concat()), join);
    match resume.next() {
        ResumeStep::Done(_) => Some((whole_result(&resume).0, resume.seams().last().unwrap().clone())),
        // A short text may be rejected if the server may have continued at several positions.
        ResumeStep::Ask(_) => {
            assert!(matches!(join, Join::Shown | Join::Stitched(_)), "{join:?} {rest:?}");
            None
        }
    }
}

#[test]
fn closing_words_after_a_document_are_removed() {
    for leave in [
        "\n\nLet me know if you need anything else!",
        "\nLet me know if you need anything else!",
        " Let me know if you need anything else!",
        "\n\nI hope this helps! Feel free to ask if you have any questions.",
        "\n\nI hope this helps!\n\nLet me know if you would like any changes.",
        "\n```\n\nLet me know if you need anything else!",
        "<think>That is all of it.</think>",
        "\n<think>That is all of it.</think>\n\nLet me know if you need anything else!",
    ] {
        for join in JOINS {
            let Some((text, seam)) = answer_with(&[REST, leave].concat(), join) else { continue };
            assert_eq!(text, [INITIAL, REST].concat(), "{join:?} {leave:?}");
            assert!(seam.dropped.contains(&leave.trim_start()[..8]), "{join:?} {leave:?}: {seam:?}");
        }
    }
}

/// A client that has read the document to its end has received all of it.
#[test]
fn reasoning_after_a_required_document_is_removed() {
    for more in ["<think>done</think>", "\n<think>done</think>\n", "<think>done</think>\n\nThat is all."] {
        for sent in [0, INITIAL.len()] {
            let policy = ResumePolicy { sent, ..ResumePolicy::default() };
            let mut resume = Resume::new(policy, Some(Format::Json), limit(INITIAL));
            let quoted = ask(&resume).shown.quoted_from;
            resume.reply(normal(&[&INITIAL[quoted..], REST, more].concat()), Join::Prompted);
            assert_eq!(whole_result(&resume).0, [INITIAL, REST].concat(), "{more:?} {sent}");
        }
    }
}

#[test]
fn closing_words_about_the_topic_are_kept() {
    for more in [
        "\n",
        "\n\nThe south basin was dug in 1911, and is closed in winter.",
        "\n\n[1] Port authority, 2019.",
        "\n```\nmake all\n```",
    ] {
        for join in JOINS {
            let Some((text, _)) = answer_with(&[REST, more].concat(), join) else { continue };
            assert_eq!(text.trim_end(), [INITIAL, REST, more].concat().trim_end(), "{join:?} {more:?}");
        }
    }
}

/// A recorded reply that was cut after its first letter.
#[test]
fn a_few_letters_do_not_identify_a_closing_sentence() {
    const REPLY: &str = "A checked bag has been added to your reservation. The charge of $50 has been applied.\n\nIf \
                         there's anything else you need, feel free to let me know!";
    for cut in 1..5 {
        let mut resume = text(limit(&REPLY[..cut]));
        while let ResumeStep::Ask(ask) = resume.next() {
            let answer = if ask.wanted == RequestedReply::Rest { &REPLY[ask.shown.length..] } else { REPLY };
            resume.reply(normal(answer), Join::Prompted);
        }
        match resume.next() {
            ResumeStep::Done(ResumeOutcome::Whole { text, .. }) => assert_eq!(text, REPLY, "{cut}"),
            ResumeStep::Done(_) | ResumeStep::Ask(_) => {}
        }
    }
}
