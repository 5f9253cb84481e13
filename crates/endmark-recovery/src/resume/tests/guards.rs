//! PC-5: a resume ends early if a continuation is identical to the last one, adds nothing, or is cut at the
//! same place.

use endmark_text::detect::detect;
use endmark_text::{Format, Verdict};

use super::{STITCHED_FROM_CUT, TOKEN, ask, exhausted_result, json, limit, normal, text, whole_result};
use crate::resume::joined_text::JoinRefusal;
use crate::{
    AskedFrom, CutKind, Ending, ExhaustedCause, Join, Judgement, Merged, Reply, RequestedReply, Resume,
    ResumePolicy, ResumeStep, Seam, SeamStyle, Stop,
};

fn patient_resume(demanded: Option<Format>, first: Reply) -> Resume {
    Resume::new(ResumePolicy { max_attempts: 9, ..ResumePolicy::default() }, demanded, first)
}

#[test]
fn a_repeated_unjoinable_continuation_ends_the_resume() {
    for join in [Join::Exact, TOKEN] {
        let mut resume = patient_resume(Some(Format::Json), limit("{\"a\": 1"));
        resume.reply(normal("] nonsense ]"), join);
        resume.reply(normal("] nonsense ]"), join);
        let end = exhausted_result(&resume);
        assert_eq!((end.cause, end.attempts), (ExhaustedCause::NoProgress, 2));
        assert_eq!(end.merged_raw, "{\"a\": 1] nonsense ]] nonsense ]");
        assert_eq!(&end.merged_raw[..end.verified_len], "{\"a\": 1");
    }
}

#[test]
fn a_different_unjoinable_continuation_leads_to_another_prompt() {
    let mut resume = patient_resume(Some(Format::Json), limit("{\"a\": 1"));
    resume.reply(normal("] nonsense"), Join::Exact);
    resume.reply(normal("] more"), Join::Exact);
    assert_eq!((ask(&resume).attempt, ask(&resume).so_far.as_str()), (3, "{\"a\": 1"));
    resume.reply(normal("}"), Join::Exact);
    assert_eq!(whole_result(&resume).0, "{\"a\": 1}");
}

/// The same answer to two prompts indicates a loop. A continued message, however, may contain two equal rows.
#[test]
fn the_same_answer_to_two_prompts_ends_the_resume() {
    let rest = "zy dog, who sleeps on in the su";
    let mut prompted = patient_resume(None, limit("The quick brown fox jumps over the la"));
    prompted.reply(limit(rest), STITCHED_FROM_CUT);
    prompted.reply(limit(rest), STITCHED_FROM_CUT);
    let end = exhausted_result(&prompted);
    assert_eq!((end.cause, end.attempts), (ExhaustedCause::NoProgress, 2));
    assert_eq!(prompted.verified_beginning(), format!("The quick brown fox jumps over the la{rest}"));

    let mut continued = patient_resume(Some(Format::Json), limit("[0, "));
    continued.reply(limit("0, "), Join::Exact);
    continued.reply(limit("0, "), Join::Exact);
    assert_eq!(ask(&continued).so_far, "[0, 0, 0, ");
}

#[test]
fn an_answer_without_new_text_ends_the_resume() {
    for nothing in [normal(""), limit("  \n"), normal("\n")] {
        let mut resume = patient_resume(Some(Format::Json), limit("{\"a\": "));
        resume.reply(nothing.clone(), Join::Exact);
        let end = exhausted_result(&resume);
        assert_eq!((end.cause, end.attempts), (ExhaustedCause::NoProgress, 1));
        assert_eq!(end.merged_raw, format!("{{\"a\": {}", nothing.text));
        assert_eq!(&end.merged_raw[..end.verified_len], "{\"a\": ");
        assert!(resume.history()[1].reason.ends_with(", and nothing came that goes on from there"));
    }
    // An empty answer to a prompt does not prove that the text is complete.
    let mut prompted = text(limit("And so"));
    prompted.reply(normal(""), STITCHED_FROM_CUT);
    assert_eq!(exhausted_result(&prompted).cause, ExhaustedCause::NoProgress);
}

#[test]
fn a_call_lost_before_any_text_is_repeated_once() {
    let mut resume = json(limit("{\"a\": "));
    resume.reply(Reply::broken_off("\n", Ending::Stalled), Join::Exact);
    assert_eq!(ask(&resume).attempt, 2);
    assert_eq!((resume.history().len(), resume.verified_beginning().as_str()), (2, "{\"a\": "));
    resume.reply(normal("1}"), Join::Exact);
    assert_eq!(whole_result(&resume).1, 2);
}

#[test]
fn a_continuation_of_only_reasoning_gets_a_higher_limit() {
    let mut resume = json(limit("{\"a\": "));
    resume.reply(Reply { reasoned: true, ..limit("\n") }, Join::Exact);
    assert_eq!((ask(&resume).kind, ask(&resume).wanted), (CutKind::Empty, RequestedReply::Rest));
    assert_eq!(resume.history()[1].judgement, Judgement::Cut(CutKind::Empty));
    assert_eq!(resume.verified_beginning(), "{\"a\": ");
}

#[test]
fn the_same_cut_again_ends_the_resume() {
    let first = "{\"title\": \"A long enough beginning\", \"rows\": [\"Heron\", \"Wa";
    let mut resume = patient_resume(Some(Format::Json), limit(first));
    resume.reply(limit(first), TOKEN);
    let end = match resume.next() {
        ResumeStep::Ask(_) => {
            // Even if this is not recognised as a restart, it is identical to the last answer.
            resume.reply(limit(first), TOKEN);
            exhausted_result(&resume)
        }
        ResumeStep::Done(_) => exhausted_result(&resume),
    };
    assert_eq!(end.cause, ExhaustedCause::NoProgress);
    assert_eq!(resume.verified_beginning(), first);
}

#[test]
fn no_request_follows_a_lost_client_an_oversized_reply_or_a_stop() {
    for ending in [Ending::Cancelled, Ending::OverCap, Ending::Interrupted] {
        let first = text(Reply::broken_off("some", ending));
        let end = exhausted_result(&first);
        assert_eq!((end.cause, end.attempts, end.merged_raw.as_str()), (ExhaustedCause::Stopped, 0, "some"));

        let mut silent = text(limit("some "));
        silent.reply(Reply::broken_off("", ending), Join::Exact);
        assert_eq!(exhausted_result(&silent).cause, ExhaustedCause::Stopped);

        let mut later = text(limit("some "));
        later.reply(Reply::broken_off("more", ending), Join::Exact);
        let end = exhausted_result(&later);
        assert_eq!((end.cause, end.merged_raw.as_str()), (ExhaustedCause::Stopped, "some more"));
    }
}

#[test]
fn a_false_stop_at_the_limit_is_resumed() {
    let lying =
        Reply { output_tokens: Some(20), limit: Some(20), ..Reply::with_stop("Once upon a", Stop::Normal) };
    let mut resume = text(lying.clone());
    assert_eq!(ask(&resume).kind, CutKind::Limit);
    resume.reply(Reply { text: " time".to_owned(), ..lying }, Join::Exact);
    assert_eq!(ask(&resume).so_far, "Once upon a time");
}

/// Returns a merge as the stitcher would return it.
fn merge_at(at: usize, text: &str, format: &Format) -> Merged {
    let seam = Seam {
        at,
        style: SeamStyle::Restart,
        dropped_bytes: 0,
        dropped: String::new(),
        confidence: 0.9,
        alternatives: 0,
    };
    let verdict = if format.has_grammar() { detect(text.as_bytes(), format).verdict } else { Verdict::Whole };
    Merged { text: text.to_owned(), seam, verdict }
}

#[test]
fn a_join_without_new_text_ends_the_resume() {
    for (joined, raw) in [("[1, 2, 3", "[1, 2, 3"), ("[1, 2, 4", "[1, 2, 3piece")] {
        let mut resume = patient_resume(Some(Format::Json), limit("[1, 2, 3"));
        resume.accept_merged(
            limit("piece"),
            TOKEN,
            CutKind::Limit,
            merge_at(6, joined, &Format::Json),
            false,
        );
        let end = exhausted_result(&resume);
        assert_eq!((end.cause, end.merged_raw.as_str()), (ExhaustedCause::NoProgress, raw));
        assert_eq!((end.verified_len, resume.history().len()), ("[1, 2, 3".len(), 2));
        assert!(resume.history()[1].reason.ends_with(", and it brought nothing new"));
    }
    // A broken call may have been about to add more.
    let mut dropped = patient_resume(Some(Format::Json), limit("[1, 2, 3"));
    let piece = Reply::broken_off("[1, 2, 3", Ending::Dropped);
    dropped.accept_merged(piece, TOKEN, CutKind::Limit, merge_at(0, "[1, 2, 3", &Format::Json), false);
    assert_eq!(ask(&dropped).kind, CutKind::Dropped);
}

/// Settling more of the text is progress, even if the new text is shorter because a fragment at the cut was
/// replaced.
#[test]
fn a_shorter_text_with_a_longer_settled_part_is_progress() {
    let mut resume = patient_resume(Some(Format::Json), limit("[1, 23456"));
    resume.accept_merged(limit("7, "), TOKEN, CutKind::Limit, merge_at(4, "[1, 7, ", &Format::Json), false);
    assert_eq!(ask(&resume).so_far, "[1, 7, ");
}

#[test]
fn a_complete_document_ends_the_resume_despite_repetition() {
    let mut resume = patient_resume(Some(Format::Json), limit("[1, 23456"));
    resume.accept_merged(normal("7]"), TOKEN, CutKind::Limit, merge_at(4, "[1, 7]", &Format::Json), true);
    assert_eq!(whole_result(&resume).0, "[1, 7]");
}

/// If a model only repeats the text, this does not prove that the text is complete.
#[test]
fn a_repeated_text_is_not_whole() {
    for (joined, repeats) in [("And so on", false), ("And so on and on", true)] {
        let mut resume = patient_resume(None, limit("And so on"));
        resume.accept_merged(
            normal("and on"),
            STITCHED_FROM_CUT,
            CutKind::Limit,
            merge_at(9, joined, &Format::Text),
            repeats,
        );
        assert_eq!(exhausted_result(&resume).cause, ExhaustedCause::NoProgress);
    }
    let mut continued = patient_resume(None, limit("And so on"));
    let piece = merge_at(9, "And so on and on", &Format::Text);
    continued.accept_merged(normal(" and on"), Join::Exact, CutKind::Limit, piece, true);
    assert_eq!(whole_result(&continued).0, "And so on and on");
}

#[test]
fn a_seam_before_an_earlier_seam_replaces_it() {
    let mut resume = patient_resume(Some(Format::Json), limit("[1, 2, 3"));
    resume.accept_merged(limit("4"), TOKEN, CutKind::Limit, merge_at(8, "[1, 2, 34", &Format::Json), false);
    resume.accept_merged(
        normal("5, 6]"),
        TOKEN,
        CutKind::Limit,
        merge_at(4, "[1, 5, 6]", &Format::Json),
        false,
    );
    assert_eq!(resume.seams().iter().map(|seam| seam.at).collect::<Vec<_>>(), [4, 4]);
}

/// An exact continuation can still follow after a failed call.
#[test]
fn a_lost_call_keeps_continuations_exact() {
    let mut resume = patient_resume(Some(Format::Json), limit("{\"a\": 1"));
    resume.reply(Reply::broken_off("", Ending::Stalled), Join::Exact);
    resume.reply(normal("2} and"), Join::Exact);
    assert_eq!(resume.verified_beginning(), "{\"a\": 12} ");
}

/// A piece that was joined may be ambiguous when it arrives again. It is then a repetition.
#[test]
fn an_earlier_ambiguous_piece_ends_the_resume() {
    let mut resume = patient_resume(Some(Format::Json), limit("[1, 2"));
    resume.reply(limit("3"), Join::Exact);
    resume.reply(limit("3"), Join::Stitched(AskedFrom::Unknown));
    let end = exhausted_result(&resume);
    assert_eq!((end.cause, end.merged_raw.as_str()), (ExhaustedCause::NoProgress, "[1, 233"));
    let why = &resume.history()[2].reason;
    assert!(why.ends_with("and it is the same text as the one before"), "{why}");
}

/// The stitcher never returns a merge that the grammar rejects. This second check would reject it.
#[test]
fn a_merge_that_violates_the_grammar_is_rejected() {
    let resume = json(limit("[1, 2"));
    let refused = resume.joined_text.check_merge(merge_at(6, "[1, 2}", &Format::Json));
    let Err(JoinRefusal::Unjoined { reason, proven }) = refused else { panic!("it was taken") };
    assert_eq!(proven, 0);
    assert!(reason.starts_with("the text would not be valid json at byte 5: "), "{reason}");
}
