//! Tests of the names in output, the log and the configuration. Other programs read them, so they must not
//! change.

use crate::{
    AskedFrom, CutKind, Ending, ExhaustedCause, Join, Judgement, MergeError, OnAmbiguous, Outcome, PieceRole,
    PipelineResult, Restart, ResumeExhausted, SeamStyle, Stop,
};

#[test]
fn endings_and_stops_have_stable_names() {
    for (ending, name) in [
        (Ending::Clean, "clean"),
        (Ending::UpstreamError, "upstream_error"),
        (Ending::Stalled, "stalled"),
        (Ending::Dropped, "dropped"),
        (Ending::Cancelled, "cancelled"),
        (Ending::OverCap, "over_cap"),
        (Ending::Interrupted, "interrupted"),
    ] {
        assert_eq!(ending.name(), name);
    }
    for (stop, name) in [
        (Stop::Normal, "normal"),
        (Stop::Sequence, "sequence"),
        (Stop::Limit, "limit"),
        (Stop::Refused, "refused"),
        (Stop::Paused, "paused"),
        (Stop::Repetition, "repetition"),
        (Stop::Unknown, "unknown"),
    ] {
        assert_eq!(stop.name(), name);
    }
}

#[test]
fn judgements_have_stable_names() {
    for (kind, name) in [
        (CutKind::Limit, "limit"),
        (CutKind::Dropped, "dropped"),
        (CutKind::Format, "format"),
        (CutKind::Marker, "marker"),
        (CutKind::Empty, "empty"),
        (CutKind::Window, "window"),
    ] {
        assert_eq!((kind.name(), Judgement::Cut(kind).name()), (name, name));
    }
    assert_eq!(Judgement::Whole { disclosed: false }.name(), "whole");
    assert_eq!(Judgement::Passed.name(), "passed");
}

#[test]
fn seams_have_stable_names() {
    for (from, name) in
        [(AskedFrom::Cut, "cut"), (AskedFrom::Token, "token"), (AskedFrom::Unknown, "unknown")]
    {
        assert_eq!((from.name(), AskedFrom::parse(name)), (name, Some(from)));
    }
    assert_eq!(AskedFrom::parse("end"), None);
    for (style, name) in [
        (SeamStyle::Exact, "exact"),
        (SeamStyle::Token, "token"),
        (SeamStyle::Overlap, "overlap"),
        (SeamStyle::Restart, "restart"),
        (SeamStyle::Whitespace, "whitespace"),
        (SeamStyle::Ellipsis, "ellipsis"),
        (SeamStyle::Fence, "fence"),
        (SeamStyle::Quotation, "quotation"),
        (SeamStyle::Preamble, "preamble"),
        (SeamStyle::Remark, "remark"),
        (SeamStyle::Reasoning, "reasoning"),
        (SeamStyle::Rewritten, "rewritten"),
    ] {
        assert_eq!(style.name(), name);
    }
    for (outcome, name) in
        [(Outcome::Whole, "whole"), (Outcome::Ambiguous, "ambiguous"), (Outcome::Error, "error")]
    {
        assert_eq!(outcome.name(), name);
    }
    let no_seam = MergeError::NoSeam { attempt: String::new(), verified_len: 0, reason: String::new() };
    let malformed = MergeError::Malformed { attempt: String::new(), verified_len: 0, reason: String::new() };
    assert_eq!((no_seam.code(), malformed.code()), ("no_seam", "malformed"));
    let nothing =
        MergeError::NothingToJoin { attempt: String::new(), verified_len: 0, reason: String::new() };
    assert_eq!(nothing.code(), "nothing_to_join");
}

#[test]
fn pieces_have_stable_names() {
    for (role, name) in [
        (PieceRole::First, "first"),
        (PieceRole::Again, "again"),
        (PieceRole::Continuation, "continuation"),
        (PieceRole::Correction, "correction"),
    ] {
        assert_eq!(role.name(), name);
    }
    assert_eq!((Join::Exact.name(), Join::Stitched(AskedFrom::Cut).name()), ("exact", "stitched"));
    assert_eq!([Restart::Any, Restart::Same, Restart::Off].map(Restart::name), ["any", "same", "off"]);
    assert_eq!((OnAmbiguous::Stop.name(), OnAmbiguous::Best.name()), ("stop", "best"));
}

#[test]
fn outcomes_have_stable_names() {
    for (cause, name) in [
        (ExhaustedCause::Attempts, "attempts"),
        (ExhaustedCause::NoProgress, "no_progress"),
        (ExhaustedCause::Ambiguous, "ambiguous"),
        (ExhaustedCause::Refused, "refused"),
        (ExhaustedCause::Rejected, "rejected"),
        (ExhaustedCause::Budget, "budget"),
        (ExhaustedCause::Stopped, "stopped"),
    ] {
        let exhausted = ResumeExhausted {
            attempts: 0,
            merged_raw: String::new(),
            verified_len: 0,
            cause,
            reason: String::new(),
            best: None,
        };
        assert_eq!((cause.name(), PipelineResult::Exhausted(exhausted).name()), (name, "exhausted"));
    }
    for (result, name) in [
        (PipelineResult::Whole, "whole"),
        (PipelineResult::Resumed, "resumed"),
        (PipelineResult::Restarted { replaced_chars: 1 }, "restarted"),
        (PipelineResult::Corrected, "corrected"),
        (PipelineResult::Invalid, "invalid"),
        (PipelineResult::Passed, "passed"),
    ] {
        assert_eq!(result.name(), name);
    }
}
