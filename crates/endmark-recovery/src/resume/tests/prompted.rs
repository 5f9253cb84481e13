//! PC-3, PC-4: a prompt shows the text up to a boundary. The answer proves its seam or is rejected.

use std::collections::BTreeMap;

use endmark_text::Format;

use super::{Reply, exhausted_result, limit, normal};
use crate::{
    Ending, ExhaustedCause, Join, PromptedStream, RequestedReply, Restart, Resume, ResumeAsk, ResumeOutcome,
    ResumePolicy, ResumeStep, Stop,
};

/// How a model that knows the document answers a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AnswerStyle {
    /// Continues directly after the shown part.
    AfterShownPart,
    /// Repeats the quoted part, and then continues.
    Quoting,
    /// Continues from the cut, although it was shown less.
    FromTheCut,
    /// Writes the complete text again, after an announcement.
    WholeTextAgain,
    /// Continues with a different value.
    OtherValue,
    RemarkOnly,
}

const ALL: [AnswerStyle; 6] = [
    AnswerStyle::AfterShownPart,
    AnswerStyle::Quoting,
    AnswerStyle::FromTheCut,
    AnswerStyle::WholeTextAgain,
    AnswerStyle::OtherValue,
    AnswerStyle::RemarkOnly,
];

fn answer(how: AnswerStyle, document: &str, ask: &ResumeAsk) -> String {
    let (shown, cut) = (ask.shown, ask.so_far.len());
    match how {
        _ if ask.wanted != RequestedReply::Rest => document.to_owned(),
        AnswerStyle::AfterShownPart => document[shown.length..].to_owned(),
        AnswerStyle::Quoting => document[shown.quoted_from..].to_owned(),
        AnswerStyle::FromTheCut => document[cut..].to_owned(),
        AnswerStyle::WholeTextAgain => format!("Here it is:\n\n{document}"),
        AnswerStyle::OtherValue => {
            let held = &document[shown.length..];
            let end = held.find([',', ' ', '}', ']', '"']).unwrap_or(held.len());
            format!("77{}", &held[end..])
        }
        AnswerStyle::RemarkOnly => "It looks like my last reply was cut off. Where shall I go on?".to_owned(),
    }
}

/// Returns the result for a document with this cut. If streamed, the client has received everything before
/// the cut.
fn recover(
    document: &str,
    cut: usize,
    format: Option<Format>,
    how: AnswerStyle,
    streamed: bool,
) -> Option<String> {
    let sent = if streamed { cut } else { 0 };
    let policy = ResumePolicy { sent, room_to_restart: true, ..ResumePolicy::default() };
    let mut resume = Resume::new(policy, format, limit(&document[..cut]));
    loop {
        match resume.next() {
            ResumeStep::Ask(ask) => resume.reply(normal(&answer(how, document, &ask)), Join::Prompted),
            ResumeStep::Done(ResumeOutcome::Whole { text, .. }) => return Some(text),
            ResumeStep::Done(_) => return None,
        }
    }
}

/// Numbers of attempts and of whole results, for each kind of answer, streamed or not.
#[derive(Default)]
struct ResultCounts(BTreeMap<(AnswerStyle, bool), (u32, u32)>);

impl ResultCounts {
    fn count(&mut self, how: AnswerStyle, streamed: bool, is_whole: bool) {
        let (all, whole) = self.0.entry((how, streamed)).or_default();
        (*all, *whole) = (*all + 1, *whole + u32::from(is_whole));
    }

    fn assert_percent(&self, percent: u32, streamed: bool, ways: &[AnswerStyle]) {
        for ((how, streamed), (all, whole)) in &self.0 {
            println!("{how:<12?} streamed {streamed:<5} {whole:>4} of {all} whole");
        }
        for how in ways {
            let (all, whole) = self.0[&(*how, streamed)];
            assert!(whole * 100 >= all * percent, "{how:?} streamed {streamed}: {whole} of {all}");
        }
    }
}

const DOCUMENTS: [&str; 4] = [
    r#"{"price":19.99,"balance":-250,"mass":-1.5e-30,"count":1123,"ratio":0.5,"list":[1,22,-3,4e5,100100]}"#,
    r#"{"p": "C:\\dir\\new", "e": "a\u00e9b\ud83d\ude00c", "t": "one two  three", "q": "say \"hi\" now"}"#,
    r#"[{"id": 7, "on": true, "off": false, "no": null}, {"id": 77, "name": "that that is"}, [[], {}], 1 , 2 ]"#,
    "{\n  \"name\": \"Ada Lovelace\",\n  \"born\": 1815,\n  \"ids\": [11, 111, 1111],\n  \"z\": \"\"\n}",
];

/// PC-4: JSON that is cut at any byte of a number, escape, space or other token gives the intended text or no
/// text.
#[test]
fn json_cut_at_every_byte_is_never_silently_wrong() {
    let mut counts = ResultCounts::default();
    for document in DOCUMENTS {
        for cut in (1..document.len()).step_by(cut_distance()) {
            for how in ALL {
                for streamed in [false, true] {
                    let got = recover(document, cut, Some(Format::Json), how, streamed);
                    counts.count(how, streamed, got.is_some());
                    let Some(got) = got else { continue };
                    // A different value is intended if the model wrote it.
                    let is_meant = how == AnswerStyle::OtherValue || is_same_value(&got, document);
                    assert!(is_meant, "{how:?} {streamed}: {:?} + …: {got}", &document[..cut]);
                    assert!(!streamed || got.starts_with(&document[..cut]), "{how:?}: {got}");
                }
            }
        }
    }
    let ways = [
        AnswerStyle::AfterShownPart,
        AnswerStyle::Quoting,
        AnswerStyle::FromTheCut,
        AnswerStyle::WholeTextAgain,
        AnswerStyle::RemarkOnly,
    ];
    counts.assert_percent(99, false, &ways);
    counts.assert_percent(97, true, &ways[..2]);
}

/// Returns the distance between the tested cuts. Set `ENDMARK_EVERY_CUT` to test all of them.
fn cut_distance() -> usize {
    if std::env::var_os("ENDMARK_EVERY_CUT").is_some() { 1 } else { 3 }
}

fn is_same_value(one: &str, other: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    value(one) == value(other)
}

const TEXTS: [&str; 3] = [
    "The harbour was quiet that morning, and the boats were lying still. Mira counted the nets twice, because \
     her father had taught her to count everything twice.\n\nHe had said that that was enough, as it had always been, and that nothing else mattered in the end.",
    "# Plan\n\n- **Total Cost**: $628\n- **Role**: fishing AND selling\n\n| boat | nets |\n|---|---|\n| one | 12 |\n\
     | two | 12 |\n",
    "def main():\n    total = 0\n    for boat in boats:\n        total += boat.nets\n    return total\n\n\n\
     if __name__ == \"__main__\":\n    main()\n",
];

/// PC-4: the same for text. No space and no last sentence is lost.
#[test]
fn text_cut_at_every_byte_is_never_silently_wrong() {
    let mut counts = ResultCounts::default();
    for document in TEXTS {
        for cut in (30..document.len()).step_by(cut_distance()) {
            for how in ALL.into_iter().filter(|how| *how != AnswerStyle::OtherValue) {
                for streamed in [false, true] {
                    let got = recover(document, cut, None, how, streamed);
                    counts.count(how, streamed, got.is_some());
                    if let Some(got) = got {
                        let cut = &document[..cut];
                        assert_eq!(got.trim_end(), document.trim_end(), "{how:?} {streamed}: {cut:?} + …");
                    }
                }
            }
        }
    }
    let ways = [
        AnswerStyle::AfterShownPart,
        AnswerStyle::Quoting,
        AnswerStyle::FromTheCut,
        AnswerStyle::WholeTextAgain,
        AnswerStyle::RemarkOnly,
    ];
    counts.assert_percent(99, false, &ways);
    counts.assert_percent(95, true, &ways[..2]);
    // An answer from the cut proves no seam. It is rejected if it could continue elsewhere.
    counts.assert_percent(90, true, &ways[2..3]);
}

fn start_resume(first: &str, format: Option<Format>) -> Resume {
    Resume::new(ResumePolicy { max_attempts: 1, ..ResumePolicy::default() }, format, limit(first))
}

/// If an answer leaves a value open, the value is not guessed.
#[test]
fn an_answer_with_another_possible_value_is_refused() {
    for (first, rest) in [
        (r#"{"price":19."#, "99}"),
        (r#"{"balance":-"#, "250}"),
        (r#"{"p": "C:\\dir\"#, r#"new"}"#),
        (r#"{"t": "the boa"#, r#"ts"}"#),
        ("[1, 2", "3]"),
    ] {
        let mut resume = start_resume(first, Some(Format::Json));
        resume.reply(normal(rest), Join::Prompted);
        let end = exhausted_result(&resume);
        assert_eq!(resume.verified_beginning(), first, "{rest}: {end:?}");
    }
}

/// An answer may respell the last word only if the client has received no part of it.
#[test]
fn a_rewritten_word_replaces_only_an_unsent_word() {
    let first = "The harbour was quiet that morning, and the boa";
    let rest = "The harbour was quiet that morning, and the ships were lying still.";
    let mut resume = start_resume(first, None);
    resume.reply(normal(rest), Join::Prompted);
    let ResumeStep::Done(ResumeOutcome::Whole { text, seams, .. }) = resume.next() else {
        panic!("it is refused")
    };
    assert_eq!((text.as_str(), seams[0].style.name()), (rest, "rewritten"));
    let policy = ResumePolicy { max_attempts: 1, sent: first.len(), ..ResumePolicy::default() };
    let mut resume = Resume::new(policy, None, limit(first));
    resume.reply(normal(rest), Join::Prompted);
    assert_eq!(exhausted_result(&resume).cause, ExhaustedCause::Attempts);
}

/// PC-5: the last attempt requests the complete reply.
#[test]
fn a_refused_seam_of_an_unsent_reply_leads_to_a_restart() {
    let first = || limit("The harbour was qui");
    let talk = || normal("Could you tell me where to go on?");
    let policy = ResumePolicy { room_to_restart: true, ..ResumePolicy::default() };
    let mut resume = Resume::new(policy.clone(), None, first());
    resume.reply(talk(), Join::Prompted);
    let ResumeStep::Ask(ask) = resume.next() else { panic!("nothing is asked") };
    assert_eq!((ask.wanted, ask.attempt), (RequestedReply::Restart, 2));
    resume.reply(normal("The harbour was grey."), Join::Exact);
    let ResumeStep::Done(ResumeOutcome::Whole { text, attempts, .. }) = resume.next() else { panic!("cut") };
    assert_eq!((text.as_str(), attempts), ("The harbour was grey.", 2));
    // A regenerated reply is rejected if it is cut or refused, or does not begin with the sent text.
    for (sent, again) in [
        (0, limit("The harbour was quiet, and")),
        (0, Reply::with_stop("No.", Stop::Refused)),
        (15, normal("A harbour was grey.")),
    ] {
        let mut resume = Resume::new(ResumePolicy { sent, ..policy.clone() }, None, first());
        resume.reply(talk(), Join::Prompted);
        resume.reply(again, Join::Exact);
        exhausted_result(&resume);
        assert_eq!(resume.verified_beginning(), "The harbour was qui");
    }
    let mut resume = Resume::new(ResumePolicy::default(), None, first());
    resume.reply(talk(), Join::Prompted);
    let ResumeStep::Ask(ask) = resume.next() else { panic!("nothing is asked") };
    assert_eq!(ask.wanted, RequestedReply::Rest, "there is no room for more");
}

/// If JSON Lines were cut directly after a row, the next row begins on its own line, whatever part of the
/// line break the answer contains.
#[test]
fn a_lost_line_break_between_two_rows_is_restored() {
    let last = r#"{"id":2,"name":"harbour"}"#;
    for first in [last.to_owned(), format!("{{\"id\":1}}\n{last}")] {
        let next = r#"{"id":3,"name":"lantern"}"#;
        for rest in [
            format!("{next}\n"),
            format!("\n{next}\n"),
            format!("{last}{next}\n"),
            format!("{last}\n{next}\n"),
        ] {
            let whole = format!("{first}\n{next}\n");
            let mut resume = start_resume(&first, Some(Format::Jsonl));
            let ResumeStep::Ask(ask) = resume.next() else { panic!("nothing is asked") };
            resume.reply(normal(&rest), Join::Prompted);
            let got = match resume.next() {
                ResumeStep::Done(ResumeOutcome::Whole { text, .. }) => text,
                other => panic!("{first:?} + {rest:?}: {other:?}"),
            };
            assert_eq!(got, whole, "{first:?} + {rest:?}");
            let mut stream = PromptedStream::new(&first, (ask.shown, &ask.prompt), &Format::Jsonl);
            let pieces = rest.split_inclusive(['{', ',', '\n']);
            pieces.for_each(|piece| stream.push(piece));
            if let Some(certain) = stream.certain() {
                let flowed = [&first[..certain.keep], certain.glue, certain.rest].concat();
                assert!(got.starts_with(&flowed), "{first:?} + {rest:?}: {flowed:?}");
            }
        }
    }
}

/// PC-5: a regenerated reply is judged by the received text, its format, and the permitted changes.
#[test]
fn a_regenerated_reply_replaces_only_a_poorer_one() {
    let (cut, json) = (r#"{"to":"alice","amount":100,"memo":"for the ren"#, Some(Format::Json));
    let other = r#"{"to":"bob","amount":9999,"memo":"x"}"#;
    let same = r#"{"amount": 100, "to": "alice", "memo": "rent, flat 7"}"#;
    let report = "The harbour was quiet, and the first boats came in before the tide. ".repeat(30);
    let rows = "{\"id\":1,\"ok\":true}\n{\"id\":2,\"o";
    let (any, same_only, off) = (Restart::Any, Restart::Same, Restart::Off);
    for (first, format, restart, again, is_accepted) in [
        (cut, json.clone(), any, other, true),
        (cut, json.clone(), same_only, other, false),
        (cut, json.clone(), same_only, same, true),
        (cut, json.clone(), off, same, false),
        // Less content: a value is missing or empty, or the text is clearly shorter.
        (cut, json.clone(), any, r#"{"to":"alice","memo":"for the rent of the flat"}"#, false),
        (cut, json.clone(), any, r#"{"to":"alice","amount":null,"memo":"for the rent"}"#, false),
        (r#"{"list":[1,2,3],"n"#, json.clone(), any, r#"{"list":[1,2],"name":"three"}"#, false),
        (
            report.as_str(),
            None,
            any,
            "Sure! Let me know if you would like to have the report once more.",
            false,
        ),
        (report.as_str(), None, same_only, &report.replace("quiet", "still"), false),
        (report.as_str(), None, any, &report.replace("quiet", "still"), true),
        (rows, Some(Format::Jsonl), same_only, "{\"id\":1,\"ok\":true}\n{\"id\":2,\"ok\":false}\n", true),
        (rows, Some(Format::Jsonl), same_only, "{\"id\":9,\"ok\":true}\n{\"id\":2,\"ok\":false}\n", false),
        (rows, Some(Format::Jsonl), any, "{\"id\":1}\n{\"id\":2,\"ok\":false,\"more\":1}\n", false),
    ] {
        let policy = ResumePolicy { room_to_restart: true, restart, ..ResumePolicy::default() };
        let mut resume = Resume::new(policy, format, limit(first));
        resume.reply(normal("Could you tell me where to go on?"), Join::Prompted);
        resume.reply(normal(again), Join::Exact);
        let got = match resume.next() {
            ResumeStep::Done(ResumeOutcome::Whole { text, replaced_chars, .. }) => {
                let is_kept = again.starts_with(first);
                assert_eq!(replaced_chars, (!is_kept).then(|| first.chars().count()));
                Some(text)
            }
            _ => None,
        };
        assert_eq!(got.as_deref(), is_accepted.then_some(again), "{restart:?} {first:.60}");
    }
    // A reply that is whole but reached its limit or broke off did not end normally.
    for again in [limit(same), Reply { stop: Some(Stop::Normal), ..Reply::broken_off(same, Ending::Dropped) }]
    {
        let policy = ResumePolicy { room_to_restart: true, ..ResumePolicy::default() };
        let mut resume = Resume::new(policy, json.clone(), limit(cut));
        resume.reply(normal("Could you tell me where to go on?"), Join::Prompted);
        resume.reply(again, Join::Exact);
        exhausted_result(&resume);
    }
}

/// At temperature 0, a model gives the same answer again, even if the answer repeats part of a value or
/// sentence.
#[test]
fn the_same_answer_twice_does_not_prove_an_ambiguous_seam() {
    let cut = "The bridge was closed at 19:30, and the ferry was late. The captain waited for 12 gue";
    for (first, again, format) in [
        ("{\"price\": 19", "99}", Some(Format::Json)),
        ("{\"to\": \"alice\", \"amount\": 100", "250, \"memo\": \"rent\"}", Some(Format::Json)),
        (cut, "the captain waited for 12 guests.", None),
    ] {
        let policy = ResumePolicy { sent: first.len(), ..ResumePolicy::default() };
        let mut resume = Resume::new(policy, format, limit(first));
        while let ResumeStep::Ask(_) = resume.next() {
            resume.reply(normal(again), Join::Prompted);
        }
        assert_eq!(exhausted_result(&resume).cause, ExhaustedCause::Ambiguous, "{first}");
    }
}

/// PC-4: a fence or emphasis around an answer does not prove a position. Without this rule, repetitive texts
/// lost 9 to 14 characters.
#[test]
fn a_fence_around_an_answer_removes_none_of_its_words() {
    let poem = "Row, row, row your boat\nGently down the stream\nMerrily, merrily, merrily, merrily\nLife is but a dream\n";
    let refrain =
        "Merrily, merrily, merrily, merrily, merrily\nLife is but a dream, but a dream, but a dream.\n";
    let words =
        "ok ok ok fail ok ok fail fail ok ok ok ok fail ok ok ok fail ok ok ok ok ok\nok ok ok fail\n";
    for whole in [poem, refrain, words] {
        for cut in 20..whole.len() - 5 {
            let first = &whole[..cut];
            let mut are_whole = Vec::new();
            for (opens, closes) in [("", ""), ("```\n", "\n```"), ("> ", ""), ("**", "")] {
                let mut resume = Resume::new(ResumePolicy::default(), None, limit(first));
                while let ResumeStep::Ask(ask) = resume.next() {
                    let rest = &whole[ask.shown.length..];
                    resume.reply(normal(&[opens, rest, closes].concat()), Join::Prompted);
                }
                let ResumeStep::Done(ResumeOutcome::Whole { text, .. }) = resume.next() else {
                    are_whole.push(false);
                    continue;
                };
                are_whole.push(true);
                let kept: String = text.chars().filter(|sign| !"*>` ".contains(*sign)).collect();
                assert_eq!(kept.trim_end(), whole.replace(' ', "").trim_end(), "{opens:?} {cut} {text:?}");
            }
            assert_eq!(are_whole[0], are_whole[1], "{first:?}");
        }
    }
}
