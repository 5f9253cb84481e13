//! Tests several answers in a row: no received byte is silently missing from a whole text.

use super::*;

const JOINS: [Join; 7] = [
    Join::Exact,
    STITCHED_FROM_CUT,
    TOKEN,
    Join::Stitched(AskedFrom::Unknown),
    Join::InMessage,
    Join::Shown,
    Join::Prompted,
];

#[test]
fn a_missing_middle_piece_makes_the_reply_incomplete() {
    for (demanded, whole) in [
        (None, "The harbour has four basins and a lock, and the tide is measured twice a day."),
        (
            Some(Format::Json),
            "{\"title\": \"The harbour has four basins\", \"depths\": [12, 7, 31], \"open\": true}",
        ),
        (
            Some(Format::Jsonl),
            "{\"a\": 1, \"name\": \"north\"}\n{\"a\": 2, \"name\": \"south\"}\n{\"a\": 3}\n",
        ),
        (Some(Format::Tags), "<list><item>north basin</item><item>south basin</item></list>"),
    ] {
        for (index, join) in JOINS.into_iter().enumerate() {
            for first in (2 + index % 3..whole.len() - 8).step_by(5) {
                for second in (first + 1..whole.len() - 2).step_by(4) {
                    let policy = ResumePolicy { max_attempts: 4, ..ResumePolicy::default() };
                    let mut resume = Resume::new(policy, demanded.clone(), limit(&whole[..first]));
                    let middle = &whole[first..second];
                    for answer in [limit(middle), normal(&whole[second..])] {
                        resume.reply(answer, join);
                    }
                    let ResumeStep::Done(ResumeOutcome::Whole { text, seams, .. }) = resume.next() else {
                        continue;
                    };
                    let case = format!("{join:?} {:?} {middle:?} -> {text:?}", &whole[..first]);
                    let reported: usize = seams.iter().map(|seam| seam.dropped_bytes).sum();
                    assert!(text.len() + reported >= whole.len(), "{reported} {case}");
                    // After the last token, an answer repeats the token at the cut. An answer that repeats
                    // the text proves its position.
                    let is_proven = seams.last().is_some_and(|seam| seam.style == SeamStyle::Overlap);
                    let may_differ = join == TOKEN || middle.trim().is_empty() || is_proven;
                    assert!(text == whole || may_differ, "{case}");
                }
            }
        }
    }
}

/// A remark about the text does not contradict another answer.
#[test]
fn a_remark_about_the_reply_does_not_contradict_another_answer() {
    let initial = "The harbour lay quiet in the grey morning, and the gulls had not yet found the boa";
    let talk =
        "It looks like my last reply was cut off. Could you tell me where you would like me to continue?";
    let mut resume = text(limit(initial));
    resume.reply(normal(talk), Join::Prompted);
    resume.reply(normal("ts that came in with the tide."), STITCHED_FROM_CUT);
    assert_eq!(whole_result(&resume).0, [initial, "ts that came in with the tide."].concat());
    let seam = resume.seams().last().unwrap();
    assert_eq!((seam.dropped_bytes, seam.dropped.starts_with("It looks like")), (talk.len(), true));
}
