use endmark_text::Format;

use super::{Resume, resume_if_truncated};
use crate::{
    AskFailure, AskedFrom, CutKind, Ending, ExhaustedCause, Join, Judgement, OnAmbiguous, PieceRole, Reply,
    RequestedReply, ResumeAsk, ResumeExhausted, ResumeOutcome, ResumePolicy, ResumeStep, Seam, SeamStyle,
    Stop,
};

mod answers;
mod closing_remarks;
mod cost;
mod guards;
mod prompted;
pub(crate) mod properties;
mod reasoning;
mod several_answers;

const TOKEN: Join = Join::Stitched(AskedFrom::Token);
const STITCHED_FROM_CUT: Join = Join::Stitched(AskedFrom::Cut);

fn limit(text: &str) -> Reply {
    Reply::with_stop(text, Stop::Limit)
}

fn normal(text: &str) -> Reply {
    Reply::with_stop(text, Stop::Normal)
}

fn json(first: Reply) -> Resume {
    Resume::new(ResumePolicy::default(), Some(Format::Json), first)
}

fn text(first: Reply) -> Resume {
    Resume::new(ResumePolicy::default(), None, first)
}

fn ask(resume: &Resume) -> ResumeAsk {
    match resume.next() {
        ResumeStep::Ask(ask) => ask,
        ResumeStep::Done(outcome) => panic!("nothing is asked: {outcome:?}"),
    }
}

fn outcome(resume: &Resume) -> ResumeOutcome {
    match resume.next() {
        ResumeStep::Done(outcome) => outcome,
        ResumeStep::Ask(ask) => panic!("not at its end: {ask:?}"),
    }
}

/// Returns the text, the number of attempts, and whether a break or a reached limit is disclosed.
fn whole_result(resume: &Resume) -> (String, u32, bool) {
    match outcome(resume) {
        ResumeOutcome::Whole { text, attempts, disclosed, .. } => (text, attempts, disclosed),
        other => panic!("not whole: {other:?}"),
    }
}

fn exhausted_result(resume: &Resume) -> ResumeExhausted {
    match outcome(resume) {
        ResumeOutcome::Exhausted(exhausted) => exhausted,
        other => panic!("not exhausted: {other:?}"),
    }
}

#[test]
fn a_whole_reply_needs_no_request() {
    let resume = json(normal("{\"a\": 1}"));
    assert_eq!(whole_result(&resume), ("{\"a\": 1}".to_owned(), 0, false));
    assert_eq!(resume.history().len(), 1);
    assert_eq!(resume.history()[0].judgement, Judgement::Whole { disclosed: false });
    assert_eq!(resume.cut(), None);
}

/// PC-8: if the text is whole in the required format, this overrides the provider's stop reason.
#[test]
fn a_whole_reply_with_a_limit_stop_is_whole_and_disclosed() {
    assert_eq!(whole_result(&json(limit("[1, 2]"))), ("[1, 2]".to_owned(), 0, true));
}

/// PC-8: safety stops, refusals and paused turns are never resumed.
#[test]
fn a_refused_reply_is_passed() {
    for stop in [Stop::Refused, Stop::Paused, Stop::Unknown] {
        assert_eq!(outcome(&json(Reply::with_stop("{\"a", stop))), ResumeOutcome::Passed);
    }
}

/// If the server stopped a reply because it repeats itself, a continuation would only continue the
/// repetition.
#[test]
fn a_repetition_is_not_continued() {
    let first = json(Reply::with_stop("[1, 1, 1", Stop::Repetition));
    let mut later = json(limit("[1, "));
    later.reply(Reply::with_stop("1, 1", Stop::Repetition), Join::Exact);
    for (resume, attempts) in [(first, 0), (later, 1)] {
        let ResumeOutcome::Exhausted(exhausted) = outcome(&resume) else { panic!("{:?}", outcome(&resume)) };
        assert_eq!(exhausted.attempts, attempts);
    }
}

/// PC-5: the cut is detected, the rest is requested, and the answer is joined.
#[test]
fn a_cut_document_is_prompted_with_its_last_token_and_stitched() {
    let mut resume = json(limit("{\"name\": \"hello wor"));
    let request = ask(&resume);
    assert_eq!((request.attempt, request.kind, request.wanted), (1, CutKind::Limit, RequestedReply::Rest));
    assert_eq!((request.shown.length, request.so_far.as_str()), (16, "{\"name\": \"hello wor"));
    assert!(request.prompt.contains(" is:\n\"name\": \"hello \nContinue"));
    assert!(request.prompt.contains("Continue the JSON payload from the last valid token."));
    // The quotation determines the position of the seam.
    let listed = ask(&json(limit("{\"sizes\": [10, 20, ")));
    assert!(listed.prompt.contains(" is:\n10, 20, \nContinue"), "{}", listed.prompt);
    resume.reply(normal("ld\", \"n\": 1}"), TOKEN);
    assert_eq!(whole_result(&resume), ("{\"name\": \"hello world\", \"n\": 1}".to_owned(), 1, false));
    let piece = &resume.history()[1];
    assert_eq!((piece.role, piece.attempt, piece.received_bytes()), (PieceRole::Continuation, 1, 12));
    assert_eq!(piece.seam.as_ref().map(|seam| seam.at), Some(19));
}

#[test]
fn a_cut_continuation_is_continued() {
    let mut resume = json(limit("{\"a\": [1, "));
    resume.reply(limit("2, 3"), Join::Exact);
    let request = ask(&resume);
    assert_eq!((request.attempt, request.so_far.as_str()), (2, "{\"a\": [1, 2, 3"));
    resume.reply(normal("4]}"), Join::Exact);
    assert_eq!(whole_result(&resume), ("{\"a\": [1, 2, 34]}".to_owned(), 2, false));
}

/// PC-8: if the text is complete in the required format, it is whole, even if the continuation was cut.
#[test]
fn a_cut_continuation_can_complete_the_document() {
    for (reply, disclosed) in [
        (limit("2]"), true),
        (Reply::broken_off("2]", Ending::Dropped), true),
        (Reply::broken_off("2]", Ending::Stalled), true),
        (normal("2]"), false),
    ] {
        for join in [Join::Exact, TOKEN] {
            let mut resume = json(limit("[1, "));
            resume.reply(reply.clone(), join);
            assert_eq!(whole_result(&resume), ("[1, 2]".to_owned(), 1, disclosed));
        }
    }
}

/// PC-5: text without a grammar is whole if its continuation ended normally.
#[test]
fn text_is_whole_if_its_continuation_is() {
    let mut resume = text(limit("The quick brown fox ju"));
    resume.reply(limit("mps over the la"), Join::Exact);
    assert_eq!(ask(&resume).so_far, "The quick brown fox jumps over the la");
    resume.reply(normal("zy dog."), STITCHED_FROM_CUT);
    assert_eq!(whole_result(&resume).0, "The quick brown fox jumps over the lazy dog.");
}

#[test]
fn text_that_stays_cut_is_exhausted_but_verified() {
    let mut resume = text(limit("one two "));
    resume.reply(limit("three four "), Join::Exact);
    resume.reply(Reply::broken_off("five", Ending::Dropped), Join::Exact);
    let end = exhausted_result(&resume);
    assert_eq!((end.cause, end.attempts), (ExhaustedCause::Attempts, 2));
    assert_eq!(end.merged_raw, "one two three four five");
    assert_eq!(end.verified_len, end.merged_raw.len());
    assert_eq!(resume.verified_beginning(), end.merged_raw);
}

/// The limit was reached exactly at the end of the message.
#[test]
fn a_continued_message_without_new_text_is_whole() {
    let mut resume = text(limit("All is said.\u{fffd}"));
    resume.reply(normal(""), Join::Exact);
    assert_eq!(whole_result(&resume), ("All is said.\u{fffd}".to_owned(), 1, false));
    let at_the_end = Seam {
        at: 15,
        style: SeamStyle::Exact,
        dropped_bytes: 0,
        dropped: String::new(),
        confidence: 1.0,
        alternatives: 0,
    };
    assert_eq!(resume.history().last().and_then(|piece| piece.seam.clone()), Some(at_the_end));
    assert!(resume.history()[1].reason.ends_with(": nothing was missing"));
}

#[test]
fn a_policy_without_attempts_only_judges() {
    let policy = ResumePolicy { max_attempts: 0, ..ResumePolicy::default() };
    let end = exhausted_result(&Resume::new(policy, None, limit("cut he")));
    assert_eq!((end.attempts, end.verified_len, end.merged_raw.as_str()), (0, 6, "cut he"));
    assert!(end.reason.starts_with("no continuation may be asked for"));
}

/// The reason states the number of attempts, and why the last answer was rejected.
#[test]
fn an_outcome_reports_its_reason() {
    let mut used_up = text(limit("one "));
    used_up.reply(limit("two "), Join::Exact);
    used_up.reply(limit("three "), Join::Exact);
    let reason = exhausted_result(&used_up).reason;
    let last = "the provider says its limit was reached, and the text has no required format";
    assert_eq!(reason, format!("still not whole after 2 of 2 attempts: {last}"));

    let mut gone = text(limit("one "));
    gone.reply(Reply::broken_off("two", Ending::Cancelled), Join::Exact);
    let last = "the client disconnected, and the text has no required format";
    assert_eq!(exhausted_result(&gone).reason, format!("not resumed further after 1 attempts: {last}"));
}

/// PC-8 `empty`: the answer replaces the empty reply, because there is nothing to join.
#[test]
fn an_empty_reply_is_requested_again() {
    let mut resume = text(Reply { reasoned: true, ..limit("") });
    let request = ask(&resume);
    assert_eq!(
        (request.kind, request.wanted, request.prompt.as_str()),
        (CutKind::Empty, RequestedReply::Again, "")
    );
    resume.reply(normal("Here it is."), Join::Exact);
    assert_eq!(whole_result(&resume), ("Here it is.".to_owned(), 1, false));
    assert_eq!(resume.history()[1].role, PieceRole::Again);
    assert!(resume.seams().is_empty());
    assert_eq!(resume.cut(), Some(CutKind::Empty));
}

#[test]
fn a_cut_answer_to_the_same_request_is_continued() {
    let mut resume = json(Reply { reasoned: true, ..limit("") });
    resume.reply(limit("{\"a\": "), STITCHED_FROM_CUT);
    assert_eq!((ask(&resume).kind, ask(&resume).wanted), (CutKind::Limit, RequestedReply::Rest));
    resume.reply(normal("1}"), Join::Exact);
    assert_eq!(whole_result(&resume), ("{\"a\": 1}".to_owned(), 2, false));
}

#[test]
fn a_stream_lost_before_any_text_is_requested_again() {
    let policy = ResumePolicy { sent: 1, ..ResumePolicy::default() };
    let mut resume = Resume::new(policy, None, Reply::broken_off("\n", Ending::Dropped));
    assert_eq!(ask(&resume).wanted, RequestedReply::Again);
    resume.reply(normal("Hello."), Join::Exact);
    assert_eq!(whole_result(&resume).0, "\nHello.");
}

#[test]
fn an_answer_that_begins_with_the_sent_text_is_unchanged() {
    let policy = ResumePolicy { sent: 1, ..ResumePolicy::default() };
    let mut resume = Resume::new(policy, None, Reply::broken_off("\n", Ending::Dropped));
    resume.reply(normal("\nHello."), Join::Exact);
    assert_eq!(whole_result(&resume).0, "\nHello.");
}

/// Text that was sent to the client in the meantime is kept when the request is repeated.
#[test]
fn an_answer_to_the_same_request_keeps_text_sent_meanwhile() {
    let mut resume = text(Reply::broken_off("\n", Ending::Dropped));
    resume.mark_sent(1);
    resume.reply(limit("Hel"), Join::Exact);
    assert_eq!(ask(&resume).so_far, "\nHel");
    assert!(resume.keeps_sent_text("\nHello") && !resume.keeps_sent_text("Hello"));
}

/// PC-5: all received bytes are recorded, even those of a blank reply.
#[test]
fn a_replaced_blank_reply_is_recorded() {
    let mut replaced = text(Reply::broken_off("\n", Ending::Dropped));
    replaced.reply(limit("cut he"), Join::Exact);
    replaced.note_failure(AskFailure::Budget("none".to_owned()));
    let end = exhausted_result(&replaced);
    assert_eq!((end.merged_raw.as_str(), end.verified_len), ("cut he\n", 6));

    let policy = ResumePolicy { sent: 1, ..ResumePolicy::default() };
    let mut in_front = Resume::new(policy, None, Reply::broken_off("\n", Ending::Dropped));
    in_front.reply(limit("cut he"), Join::Exact);
    in_front.note_failure(AskFailure::Budget("none".to_owned()));
    assert_eq!(exhausted_result(&in_front).merged_raw, "\ncut he");
}

/// A refusal of the repeated request is final.
#[test]
fn a_refused_repetition_ends_the_resume() {
    let mut resume = text(Reply { reasoned: true, ..limit("") });
    resume.reply(Reply::with_stop("I cannot", Stop::Refused), Join::Exact);
    let end = exhausted_result(&resume);
    assert_eq!((end.cause, end.attempts), (ExhaustedCause::Refused, 1));
    assert_eq!((end.merged_raw.as_str(), end.verified_len), ("I cannot", 0));
    let last = &resume.history()[1];
    assert_eq!((last.role, last.judgement), (PieceRole::Again, Judgement::Passed));
}

/// After a refused continuation, no further request is made.
#[test]
fn a_refused_continuation_ends_the_resume() {
    for stop in [Stop::Refused, Stop::Paused] {
        let mut resume = text(limit("How to "));
        resume.reply(Reply::with_stop("I cannot", stop), Join::Exact);
        let end = exhausted_result(&resume);
        assert_eq!((end.cause, end.attempts), (ExhaustedCause::Refused, 1));
        assert_eq!((end.merged_raw.as_str(), end.verified_len), ("How to I cannot", 7));
        assert_eq!(resume.verified_beginning(), "How to ");
        assert_eq!(resume.history()[1].judgement, Judgement::Passed);
        assert!(!end.cause.allows_correction());
    }
}

#[test]
fn the_clients_own_stop_sequence_ends_a_continuation() {
    let mut resume = text(limit("one, "));
    resume.reply(Reply::with_stop("two", Stop::Sequence), Join::Exact);
    assert_eq!(whole_result(&resume).0, "one, two");
}

/// A failed call counts as an attempt, a rejected one does not.
#[test]
fn lost_calls_count_as_attempts_and_rejected_ones_do_not() {
    let mut resume = json(limit("[1, "));
    resume.note_failure(AskFailure::Rejected("prefill is not supported".to_owned()));
    assert_eq!(ask(&resume).attempt, 1);
    resume.reply(limit("2, "), TOKEN);
    resume.note_failure(AskFailure::Rejected("no".to_owned()));
    assert_eq!(ask(&resume).attempt, 2);
    resume.note_failure(AskFailure::Lost("connection refused".to_owned()));
    let end = exhausted_result(&resume);
    assert_eq!((end.cause, end.attempts, end.merged_raw.as_str()), (ExhaustedCause::Attempts, 2, "[1, 2, "));
    assert_eq!(resume.history().len(), 5);
    let failed = |index: usize| (resume.history()[index].role, resume.history()[index].ending);
    assert_eq!(failed(1), (PieceRole::Continuation, Ending::UpstreamError));
    assert_eq!(failed(4), (PieceRole::Continuation, Ending::Dropped));
    let history = resume.history().to_vec();
    assert_eq!(resume.into_history(), history);

    let mut again = text(Reply::broken_off("", Ending::Dropped));
    again.note_failure(AskFailure::Lost("gone".to_owned()));
    assert_eq!(again.history()[1].role, PieceRole::Again);
}

#[test]
fn repeated_rejections_end_the_resume() {
    let mut resume = json(limit("[1, "));
    resume.note_failure(AskFailure::Rejected("no prefill".to_owned()));
    resume.note_failure(AskFailure::Rejected("no prompt".to_owned()));
    let end = exhausted_result(&resume);
    assert_eq!((end.cause, end.attempts), (ExhaustedCause::Rejected, 0));
    assert!(end.reason.contains("no prompt"), "{}", end.reason);
}

#[test]
fn an_empty_budget_ends_the_resume_immediately() {
    let mut resume = json(limit("[1, "));
    resume.note_failure(AskFailure::Budget("4096 tokens wanted, 100 left".to_owned()));
    assert_eq!(exhausted_result(&resume).cause, ExhaustedCause::Budget);
}

#[test]
fn a_permanent_refusal_ends_the_resume_immediately() {
    let mut resume = json(limit("[1, "));
    resume.note_failure(AskFailure::Final("no such model".to_owned()));
    let end = exhausted_result(&resume);
    assert_eq!((end.cause, end.attempts), (ExhaustedCause::Refused, 0));
    assert!(end.reason.ends_with("the request was refused permanently: no such model"), "{}", end.reason);
}

/// If the server certainly continues the message, the valid part of its answer belongs to the reply.
#[test]
fn an_exact_continuation_is_verified_up_to_its_grammar_error() {
    let mut resume = json(limit("{\"a\": 1"));
    resume.reply(normal("2} and"), Join::Exact);
    assert_eq!(ask(&resume).so_far, "{\"a\": 1");
    resume.reply(normal("nonsense"), Join::Exact);
    let end = exhausted_result(&resume);
    assert_eq!(end.merged_raw, "{\"a\": 12} andnonsense");
    assert_eq!(&end.merged_raw[..end.verified_len], "{\"a\": 12} ");
    assert_eq!(resume.verified_beginning(), "{\"a\": 12} ");
}

/// A continuation of the old text does not certainly continue the changed text.
#[test]
fn a_later_join_revokes_the_verification_of_an_earlier_piece() {
    let policy = ResumePolicy { max_attempts: 3, ..ResumePolicy::default() };
    let mut resume = Resume::new(policy, Some(Format::Json), limit("[1"));
    resume.reply(normal(", 2] and"), Join::Exact);
    assert_eq!(resume.verified_beginning(), "[1, 2] ");
    resume.reply(limit("0, 3"), Join::Exact);
    assert_eq!(resume.verified_beginning(), "[10, 3");
    resume.reply(normal("] or"), Join::Exact);
    let end = exhausted_result(&resume);
    assert_eq!((end.merged_raw.as_str(), end.verified_len), ("[10, 3] or, 2] and", "[10, 3] ".len()));
    assert_eq!(resume.verified_beginning(), "[10, 3] ");
}

/// Text that violates its grammar cannot end by it, so it is continued as plain text.
#[test]
fn a_malformed_cut_reply_is_continued_as_text() {
    let mut resume = json(limit("```json\n{\"a\": "));
    let request = ask(&resume);
    assert!(request.prompt.contains("Continue the text"));
    resume.reply(normal("1}\n```"), Join::Exact);
    assert_eq!(whole_result(&resume).0, "```json\n{\"a\": 1}\n```");
}

/// PC-9: sent bytes are never retracted.
#[test]
fn a_merge_that_changes_sent_text_is_refused() {
    let policy = |sent| ResumePolicy { sent, max_attempts: 1, ..ResumePolicy::default() };
    let mut free = Resume::new(policy(4), Some(Format::Json), limit("[1, 2"));
    free.reply(normal("3]"), TOKEN);
    assert_eq!(whole_result(&free).0, "[1, 3]");

    let mut sent = Resume::new(policy(5), Some(Format::Json), limit("[1, 2"));
    sent.reply(normal("3]"), TOKEN);
    assert_eq!(exhausted_result(&sent).merged_raw, "[1, 23]");
    assert_eq!(sent.verified_beginning(), "[1, 2");
    assert!(sent.history()[1].reason.contains("bytes that the client has"));

    let mut later = Resume::new(policy(0), Some(Format::Json), limit("[1, 2"));
    later.mark_sent(5);
    later.reply(normal("3]"), TOKEN);
    assert_eq!(later.verified_beginning(), "[1, 2");
}

/// Some servers write a replacement character for a character that their limit has cut.
#[test]
fn a_replacement_character_at_the_cut_is_removed_unless_sent() {
    let first = || limit("{\"a\": \"caf\u{fffd}");
    let mut resume = json(first());
    assert_eq!(ask(&resume).so_far, "{\"a\": \"caf");
    assert!(ask(&resume).prompt.contains(" is:\n\"a\": \"\nContinue"), "{}", ask(&resume).prompt);
    resume.reply(limit("é au l\u{fffd}\u{fffd}"), Join::Exact);
    assert_eq!(ask(&resume).so_far, "{\"a\": \"café au l");
    resume.reply(normal("ait\"}"), TOKEN);
    assert_eq!(whole_result(&resume).0, "{\"a\": \"café au lait\"}");

    let mut replaced = json(first());
    replaced.reply(Reply::broken_off("é", Ending::Dropped), Join::Exact);
    replaced.note_failure(AskFailure::Budget("none".to_owned()));
    assert_eq!(exhausted_result(&replaced).merged_raw, "{\"a\": \"café");

    let mut later = json(first());
    later.reply(limit("é au l\u{fffd}\u{fffd}"), Join::Exact);
    later.note_failure(AskFailure::Budget("none".to_owned()));
    let end = exhausted_result(&later);
    assert_eq!(end.merged_raw, "{\"a\": \"café au l\u{fffd}\u{fffd}");
    assert_eq!(&end.merged_raw[..end.verified_len], "{\"a\": \"café au l");

    // Test this also if only part of it was sent.
    for unsent in 0..3 {
        let policy = ResumePolicy { sent: first().text.len() - unsent, ..ResumePolicy::default() };
        let sent = Resume::new(policy, Some(Format::Json), first());
        assert_eq!(ask(&sent).so_far, first().text);
    }

    let mut refused = json(first());
    refused.reply(Reply::with_stop("no", Stop::Refused), Join::Exact);
    assert_eq!(refused.verified_beginning(), first().text);

    let mut never = json(first());
    never.note_failure(AskFailure::Budget("none".to_owned()));
    let end = exhausted_result(&never);
    assert_eq!(end.merged_raw, first().text);
    assert_eq!(&end.merged_raw[..end.verified_len], "{\"a\": \"caf");
    assert_eq!(never.verified_beginning(), first().text);
}

/// Only a limit can cut through a character. Otherwise, the model wrote the replacement character.
#[test]
fn a_replacement_character_before_a_dropped_connection_is_text() {
    let mut resume = json(Reply::broken_off("{\"a\": \"x\u{fffd}", Ending::Dropped));
    assert_eq!(ask(&resume).so_far, "{\"a\": \"x\u{fffd}");
    resume.reply(Reply::broken_off("y\u{fffd}", Ending::Dropped), Join::Exact);
    assert_eq!(ask(&resume).so_far, "{\"a\": \"x\u{fffd}y\u{fffd}");
    assert_eq!(resume.verified_beginning(), "{\"a\": \"x\u{fffd}y\u{fffd}");
    let mut text = text(limit("It is "));
    text.reply(normal("\u{fffd}"), Join::Exact);
    assert_eq!(whole_result(&text).0, "It is \u{fffd}");
}

/// PC-9: a forwarded continuation is kept, because the client has received it.
#[test]
fn a_sent_continuation_is_kept() {
    let mut joined = json(limit("{\"a\": \"x"));
    joined.mark_sent("{\"a\": \"xy\u{fffd}".len());
    joined.reply(limit("y\u{fffd}"), Join::Exact);
    assert_eq!(ask(&joined).so_far, "{\"a\": \"xy\u{fffd}");
    assert!(ask(&joined).prompt.contains(" is:\n\"a\": \"\nContinue"), "{}", ask(&joined).prompt);
    joined.reply(normal("z\"}"), Join::Exact);
    assert_eq!(whole_result(&joined).0, "{\"a\": \"xy\u{fffd}z\"}");

    let mut unjoined = json(limit("{\"a\": 1"));
    unjoined.mark_sent("{\"a\": 1] no".len());
    unjoined.reply(normal("] nonsense"), Join::Exact);
    assert_eq!(exhausted_result(&unjoined).cause, ExhaustedCause::Stopped);
    assert_eq!(unjoined.verified_beginning(), "{\"a\": 1] no");
    assert!(!unjoined.keeps_sent_text("{\"a\": 1}"));
}

/// PC-5, PC-9: two seams with different values are ambiguous, unless the policy permits the best one.
#[test]
fn an_ambiguous_seam_stops_or_takes_the_best() {
    let unknown = Join::Stitched(AskedFrom::Unknown);
    let once = ResumePolicy { max_attempts: 1, ..ResumePolicy::default() };
    let mut stops = Resume::new(once.clone(), Some(Format::Json), limit("[1, 2"));
    stops.reply(normal("3]"), unknown);
    let end = exhausted_result(&stops);
    assert_eq!((end.cause, end.attempts), (ExhaustedCause::Ambiguous, 1));
    assert_eq!((end.merged_raw.as_str(), end.verified_len), ("[1, 23]", 5));
    assert!(matches!(end.best.as_deref(), Some("[1, 23]" | "[1, 3]")), "{:?}", end.best);
    assert_eq!(stops.verified_beginning(), "[1, 2");
    let why = &stops.history()[1].reason;
    assert!(why.ends_with("and it can be joined in 2 ways that give different values"), "{why}");

    let first = Reply::broken_off("{\"a\": \"go \u{fffd}", Ending::Dropped);
    let mut doubtful = Resume::new(once, Some(Format::Json), first);
    doubtful.reply(normal("\u{fffd}\u{fffd} now\"}"), STITCHED_FROM_CUT);
    assert_eq!(exhausted_result(&doubtful).cause, ExhaustedCause::Ambiguous);
    let why = &doubtful.history()[1].reason;
    assert!(why.ends_with("and the one way to join it is not certain enough"), "{why}");

    let policy = ResumePolicy { on_ambiguous: OnAmbiguous::Best, ..ResumePolicy::default() };
    let mut takes = Resume::new(policy, Some(Format::Json), limit("[1, 2"));
    takes.reply(normal("3]"), unknown);
    assert_eq!(Some(whole_result(&takes).0), end.best);
    assert!(takes.seams()[0].alternatives > 0);
}

#[test]
fn a_marker_ends_a_text() {
    let format = Format::Marker("<<END>>".to_owned());
    let mut resume = Resume::new(ResumePolicy::default(), Some(format), normal("one\ntwo"));
    let request = ask(&resume);
    assert_eq!(request.kind, CutKind::Marker);
    assert!(request.prompt.contains("<<END>>"));
    resume.reply(limit("\nthree\n<<END>>"), Join::Exact);
    assert_eq!(whole_result(&resume), ("one\ntwo\nthree\n<<END>>".to_owned(), 1, true));
}

/// PC-8: Markdown has no defined end, so its verdict counts only if a construct is open.
#[test]
fn required_markdown_is_continued_while_a_construct_is_open() {
    let demanded = |first| Resume::new(ResumePolicy::default(), Some(Format::Markdown), first);
    let closed = "Run:\n```sh\nls\n```\n";
    assert_eq!(whole_result(&demanded(normal(closed))), (closed.to_owned(), 0, false));
    let mut resume = demanded(normal("Run:\n```sh\nl"));
    assert_eq!(ask(&resume).kind, CutKind::Format);
    resume.reply(normal("s\n```\n"), Join::Exact);
    assert_eq!(whole_result(&resume), (closed.to_owned(), 1, false));
    // No construct is open, but the limit was reached. As with plain text, only the model knows whether the
    // text is complete.
    let mut resume = demanded(limit(closed));
    assert_eq!(ask(&resume).kind, CutKind::Limit);
    resume.reply(normal(""), Join::Exact);
    assert_eq!(whole_result(&resume), (closed.to_owned(), 1, false));
}

/// PC-8: a text with tags is whole when all tags are closed, whatever the provider reports.
#[test]
fn required_tags_end_when_all_are_closed() {
    let demanded = |first| Resume::new(ResumePolicy::default(), Some(Format::Tags), first);
    assert_eq!(whole_result(&demanded(limit("<a>b</a>"))), ("<a>b</a>".to_owned(), 0, true));
    let mut resume = demanded(normal("<a>b"));
    assert_eq!(ask(&resume).kind, CutKind::Format);
    resume.reply(normal("</a>"), Join::Exact);
    assert_eq!(whole_result(&resume), ("<a>b</a>".to_owned(), 1, false));
}

#[test]
fn a_finished_resume_ignores_further_events() {
    let mut resume = json(normal("{}"));
    let before = resume.next();
    resume.reply(normal("x"), Join::Exact);
    resume.note_failure(AskFailure::Lost("x".to_owned()));
    assert_eq!((resume.next(), resume.history().len()), (before, 1));
}

/// PC-5: a single call performs the whole resume.
#[test]
fn resume_if_truncated_runs_to_the_end() {
    let mut pieces = vec!["c\"]", "b"];
    let outcome =
        resume_if_truncated(ResumePolicy::default(), Some(Format::Json), limit("[\"a"), |request| {
            let piece = pieces.pop().ok_or(AskFailure::Lost("gone".to_owned()))?;
            Ok((if request.attempt == 1 { limit(piece) } else { normal(piece) }, Join::Exact))
        });
    let ResumeOutcome::Whole { text, attempts, cut, seams, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((text.as_str(), attempts, cut), ("[\"abc\"]", 2, Some(CutKind::Limit)));
    assert_eq!(seams.iter().map(|seam| seam.at).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn the_last_lines_of_a_cut_continuation_are_kept() {
    let whole = "The harbour was quiet.\n\n- one\n- two\n\n```py\nx = 1\n```\n\nThe end of it was near, and nobody knew it.";
    for (first, second) in [(29, 57), (12, 56), (33, 70)] {
        let mut resume = text(limit(&whole[..first]));
        resume.reply(limit(&whole[first..second]), Join::Stitched(AskedFrom::Unknown));
        if let ResumeStep::Ask(next) = resume.next() {
            // The complete reply is requested again after a rejected answer.
            resume.reply(normal(&whole[next.so_far.len()..]), STITCHED_FROM_CUT);
        }
        match outcome(&resume) {
            ResumeOutcome::Whole { text, .. } => assert_eq!(text, whole),
            ResumeOutcome::Exhausted(exhausted) => {
                assert!(exhausted.merged_raw.starts_with(&whole[..second]), "{exhausted:?}");
            }
            ResumeOutcome::Passed => panic!("nothing was refused"),
        }
    }
}
