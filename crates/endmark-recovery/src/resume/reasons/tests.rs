use endmark_text::{Format, Truncation, Verdict};

use super::{describe_ending, verdict_reason};
use crate::{CutKind, Ending, Judgement, Reply, Stop};

/// PC-7: the log describes in words how a reply ended.
#[test]
fn every_ending_and_stop_has_a_description() {
    for (ending, words) in [
        (Ending::Clean, "the stream ended cleanly"),
        (Ending::UpstreamError, "the upstream reported an error in mid-reply"),
        (Ending::Stalled, "the stream stalled"),
        (Ending::Dropped, "the stream ended without its last event"),
        (Ending::Cancelled, "the client disconnected"),
        (Ending::OverCap, "the reply exceeded its size or time limit"),
        (Ending::Interrupted, "the gateway was stopped"),
    ] {
        assert_eq!(describe_ending(&Reply::broken_off("", ending)), words);
    }
    for (stop, words) in [
        (Stop::Normal, "the provider says it stopped normally"),
        (Stop::Sequence, "it was stopped by the client's own stop sequence"),
        (Stop::Limit, "the provider says its limit was reached"),
        (Stop::Refused, "the provider refused or filtered it"),
        (Stop::Paused, "the provider paused its turn"),
        (Stop::Repetition, "the provider stopped it because it repeated itself"),
        (Stop::Unknown, "the provider ended it for an unknown reason"),
    ] {
        assert_eq!(describe_ending(&Reply::with_stop("", stop)), words);
        let broken = Reply { ending: Ending::Stalled, ..Reply::with_stop("", stop) };
        assert_eq!(describe_ending(&broken), format!("{words}, the stream stalled"));
    }
}

/// PC-8: the log reports if the token count contradicts the stop reason.
#[test]
fn a_count_at_the_limit_is_reported_if_it_decides() {
    let reply = |stop, output| Reply {
        stop,
        output_tokens: Some(output),
        limit: Some(20),
        ..Reply::broken_off("", Ending::Clean)
    };
    let normal = "the provider says it stopped normally";
    assert_eq!(describe_ending(&reply(Some(Stop::Normal), 19)), normal);
    assert_eq!(
        describe_ending(&reply(Some(Stop::Normal), 20)),
        format!("{normal}, its 20 output tokens reach the limit")
    );
    assert_eq!(describe_ending(&reply(None, 21)), "its 21 output tokens reach the limit");
    assert_eq!(describe_ending(&reply(Some(Stop::Limit), 20)), "the provider says its limit was reached");
}

#[test]
fn every_judgement_describes_the_text() {
    let reply = Reply::with_stop("", Stop::Limit);
    let limit = "the provider says its limit was reached";
    let cut = Judgement::Cut(CutKind::Limit);
    let whole = Judgement::Whole { disclosed: true };
    let truncated = Verdict::Truncated(Truncation { truncation_index: 7, ..Truncation::default() });
    let malformed = Verdict::Malformed { index: 3, reason: "a comma".to_owned() };
    for (judgement, grammar, text) in [
        (whole, Some(&Verdict::Whole), ", and the text is whole json"),
        (cut, Some(&truncated), ", and the text is json that is cut (settled up to byte 7)"),
        (cut, Some(&malformed), ", and the text is not valid json at byte 3: a comma"),
        (cut, None, ", and the text has no required format"),
        (Judgement::Cut(CutKind::Empty), None, ": reasoning used up the limit, and no text arrived"),
        (Judgement::Passed, None, ": forwarded unchanged, never resumed"),
    ] {
        let grammar = grammar.map(|verdict| (&Format::Json, verdict));
        assert_eq!(verdict_reason(judgement, &reply, grammar), format!("{limit}{text}"));
    }
}
