use endmark_text::Format;
use proptest::prelude::*;

use super::{CONTROL_CHARACTERS, Pipeline, PipelineOutcome, PipelinePolicy, PipelineResult, PipelineStep};
use crate::resume::tests_support::{answer, behaviour, cut_document};
use crate::{
    AskFailure, AskedFrom, CorrectionRequest, CutKind, Ending, ExhaustedCause, Join, Judgement, PieceRole,
    Reply, ResumePolicy, SchemaProblem, Stop, Validate,
};

/// A validator that requires these fields, and reports missing ones in reverse order.
struct RequiredFields(&'static [&'static str]);

impl Validate for RequiredFields {
    fn validate(&self, json: &str) -> Vec<SchemaProblem> {
        let missing = self.0.iter().rev().filter(|field| !json.contains(&format!("\"{field}\"")));
        missing
            .map(|field| SchemaProblem { path: String::new(), message: format!("\"{field}\" is required") })
            .collect()
    }
}

fn normal(text: &str) -> Reply {
    Reply::with_stop(text, Stop::Normal)
}

fn limit(text: &str) -> Reply {
    Reply::with_stop(text, Stop::Limit)
}

fn pipeline(fields: &'static [&'static str], first: Reply) -> Pipeline {
    Pipeline::new(
        PipelinePolicy::default(),
        Some(Format::Json),
        Some(Box::new(RequiredFields(fields))),
        first,
    )
}

fn correction(pipeline: &Pipeline) -> CorrectionRequest {
    match pipeline.next() {
        PipelineStep::Correct(ask) => ask,
        other => panic!("no correction is asked for: {other:?}"),
    }
}

fn outcome(pipeline: &Pipeline) -> PipelineOutcome {
    match pipeline.next() {
        PipelineStep::Done(outcome) => outcome,
        other => panic!("not at its end: {other:?}"),
    }
}

fn requests_continuation(pipeline: &Pipeline) -> bool {
    matches!(pipeline.next(), PipelineStep::Resume(_))
}

#[test]
fn a_whole_and_valid_reply_passes_through() {
    let end = outcome(&pipeline(&["a"], normal("{\"a\": 1}")));
    assert_eq!((end.text.as_str(), &end.result), ("{\"a\": 1}", &PipelineResult::Whole));
    assert_eq!((end.attempts, end.corrections, end.cut, end.pieces.len()), (0, 0, None, 1));
}

/// PC-6: a truncated reply is resumed before it is corrected, whatever the schema reports.
#[test]
fn a_truncated_reply_is_resumed_before_validation() {
    let mut pipeline = pipeline(&["a", "b"], limit("{\"a\": 1, "));
    assert!(requests_continuation(&pipeline));
    pipeline.accept_continuation(normal("\"b\": 2}"), Join::Exact);
    let end = outcome(&pipeline);
    assert_eq!((end.text.as_str(), &end.result), ("{\"a\": 1, \"b\": 2}", &PipelineResult::Resumed));
    assert_eq!((end.attempts, end.cut, end.seams.len()), (1, Some(CutKind::Limit), 1));
}

/// PC-6: the reply is resumed, validated and corrected. The prompt lists the problems in a stable order.
#[test]
fn a_resumed_reply_that_violates_the_schema_is_corrected() {
    let mut pipeline = pipeline(&["a", "b", "c"], limit("{\"a\": "));
    pipeline.accept_continuation(normal("1}"), Join::Exact);
    let ask = correction(&pipeline);
    assert_eq!((ask.attempt, ask.text.as_str()), (1, "{\"a\": 1}"));
    assert!(ask.prompt.contains("- \"b\" is required\n- \"c\" is required\n"), "{}", ask.prompt);
    pipeline.accept_correction(normal("```json\n{\"a\": 1, \"b\": 2, \"c\": 3}\n```"));
    let end = outcome(&pipeline);
    assert_eq!(end.text, "{\"a\": 1, \"b\": 2, \"c\": 3}");
    assert_eq!((end.result, end.attempts, end.corrections), (PipelineResult::Corrected, 1, 1));
    let problems: Vec<&str> = end.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(problems, ["\"b\" is required", "\"c\" is required"]);
    let roles: Vec<PieceRole> = end.pieces.iter().map(|piece| piece.role).collect();
    assert_eq!(roles, [PieceRole::First, PieceRole::Continuation, PieceRole::Correction]);
}

/// PC-6: after one failed correction, the original text is delivered.
#[test]
fn a_failed_correction_keeps_the_original_text() {
    let wrong = "{\"a\":  1}";
    for reply in [
        normal("{\"a\": 2}"),
        normal("Sorry."),
        limit("{\"a\": 2, \"b"),
        Reply::with_stop("{\"a\":1,\"b\":1}", Stop::Refused),
    ] {
        let mut pipeline = pipeline(&["a", "b"], normal(wrong));
        pipeline.accept_correction(reply);
        let end = outcome(&pipeline);
        assert_eq!((end.text.as_str(), &end.result), (wrong, &PipelineResult::Invalid));
        assert_eq!((end.corrections, end.pieces.len()), (1, 2));
        assert_eq!(end.pieces[1].role, PieceRole::Correction);
        assert_eq!(end.problems[0].message, "\"b\" is required");
    }
    for (failure, corrections) in [
        (AskFailure::Lost("gone".to_owned()), 1),
        (AskFailure::Unfit("other".to_owned()), 1),
        (AskFailure::Unusable("an image".to_owned()), 1),
        (AskFailure::Rejected("no".to_owned()), 0),
        (AskFailure::Budget("none".to_owned()), 0),
    ] {
        let mut pipeline = pipeline(&["a", "b"], normal(wrong));
        pipeline.note_failure(failure.clone());
        let end = outcome(&pipeline);
        let last = end.pieces.last().unwrap();
        assert_eq!(
            (last.role, last.text.as_str(), &last.reason),
            (PieceRole::Correction, "", &failure.to_string())
        );
        assert_eq!(
            (end.text.as_str(), end.result, end.corrections),
            (wrong, PipelineResult::Invalid, corrections)
        );
    }
}

/// The log contains a sentence about the result of each correction.
#[test]
fn every_correction_reports_its_result() {
    let disclosed = Judgement::Whole { disclosed: true };
    let whole = Judgement::Whole { disclosed: false };
    for (reply, judged, why) in [
        (normal("{\"a\": 1}"), whole, "the corrected document is valid"),
        (limit("{\"a\": 1}"), disclosed, "the corrected document is valid"),
        (normal("{}"), whole, "the corrected document still has 1 problems: \"a\" is required"),
        (normal("Sorry."), whole, "the correction has no whole JSON document in it"),
        (
            Reply::with_stop("{\"a\": 1}", Stop::Refused),
            Judgement::Passed,
            "the provider refused, filtered or paused the correction",
        ),
    ] {
        let mut pipeline = pipeline(&["a"], normal("{ }"));
        pipeline.accept_correction(reply);
        let end = outcome(&pipeline);
        assert_eq!((end.pieces[1].judgement, end.pieces[1].reason.as_str()), (judged, why));
    }
}

/// A correction is not requested again after a refusal, even if the policy permits more corrections.
#[test]
fn a_refused_correction_is_not_repeated() {
    let policy = PipelinePolicy { max_corrections: 2, ..PipelinePolicy::default() };
    let mut pipeline = Pipeline::new(policy, Some(Format::Json), None, normal("{"));
    if requests_continuation(&pipeline) {
        pipeline.accept_continuation(normal("x"), Join::Exact);
        pipeline.accept_continuation(normal("x"), Join::Exact);
    }
    assert_eq!(correction(&pipeline).attempt, 1);
    pipeline.accept_correction(Reply::with_stop("I cannot", Stop::Refused));
    assert_eq!(outcome(&pipeline).corrections, 1);
}

#[test]
fn a_further_correction_starts_from_the_better_document() {
    let policy = PipelinePolicy { max_corrections: 2, ..PipelinePolicy::default() };
    let mut pipeline =
        Pipeline::new(policy, Some(Format::Json), Some(Box::new(RequiredFields(&["a", "b"]))), normal("{}"));
    pipeline.accept_correction(normal("{\"a\": 1}"));
    let ask = correction(&pipeline);
    assert_eq!((ask.attempt, ask.text.as_str()), (2, "{\"a\": 1}"));
    assert!(!ask.prompt.contains("\"a\" is required"));
    pipeline.accept_correction(normal("nothing"));
    let end = outcome(&pipeline);
    assert_eq!((end.text.as_str(), end.problems.len()), ("{}", 2));
}

/// PC-6: after an exhausted resume, a correction is requested with all received text and the missing parts.
#[test]
fn an_exhausted_resume_falls_back_to_correction() {
    let mut pipeline = pipeline(&["a", "b"], limit("{\"a\": [1, "));
    pipeline.accept_continuation(normal("nonsense"), Join::Exact);
    assert!(requests_continuation(&pipeline));
    pipeline.accept_continuation(normal("nonsense"), Join::Exact);
    let ask = correction(&pipeline);
    assert_eq!(ask.text, "{\"a\": [1, nonsensenonsense");
    assert!(ask.prompt.contains("not valid JSON"), "{}", ask.prompt);
    assert!(ask.prompt.contains("- \"b\" is required\n"), "{}", ask.prompt);
    assert!(!ask.prompt.contains("- it came in pieces"), "{}", ask.prompt);

    pipeline.accept_correction(normal("{\"a\": [1], \"b\": 1}"));
    let end = outcome(&pipeline);
    assert_eq!((end.text.as_str(), &end.result), ("{\"a\": [1], \"b\": 1}", &PipelineResult::Corrected));
    assert_eq!((end.attempts, end.corrections), (2, 1));
}

/// An ambiguous text may be a valid document by chance. It is corrected nevertheless.
#[test]
fn an_ambiguous_text_that_happens_to_be_valid_is_corrected() {
    let resume = ResumePolicy { max_attempts: 1, ..ResumePolicy::default() };
    let policy = PipelinePolicy { resume, ..PipelinePolicy::default() };
    let mut pipeline = Pipeline::new(policy, Some(Format::Json), None, limit("[1, 2"));
    pipeline.accept_continuation(normal("3]"), Join::Stitched(AskedFrom::Unknown));
    let ask = correction(&pipeline);
    assert_eq!(ask.text, "[1, 23]");
    assert!(ask.prompt.contains("- it came in pieces"), "{}", ask.prompt);
    pipeline.accept_correction(normal("sorry"));
    assert_eq!(outcome(&pipeline).text, "[1, 2");
}

#[test]
fn an_exhausted_resume_returns_the_received_beginning() {
    let mut pipeline = pipeline(&["a"], limit("{\"a\": [1, "));
    pipeline.accept_continuation(limit("2, "), Join::Exact);
    pipeline.accept_continuation(normal("nonsense"), Join::Exact);
    pipeline.accept_correction(normal("nonsense"));
    let end = outcome(&pipeline);
    assert_eq!(end.text, "{\"a\": [1, 2, n");
    let PipelineResult::Exhausted(exhausted) = end.result else { panic!("{:?}", end.result) };
    assert_eq!(&exhausted.merged_raw[..exhausted.verified_len], end.text);
    assert_eq!(exhausted.merged_raw, "{\"a\": [1, 2, nonsense");
}

#[test]
fn a_policy_without_corrections_requests_none() {
    let policy = || PipelinePolicy { max_corrections: 0, ..PipelinePolicy::default() };
    let invalid = Pipeline::new(policy(), Some(Format::Json), None, normal("not json"));
    assert_eq!(outcome(&invalid).result, PipelineResult::Invalid);
    assert_eq!(outcome(&invalid).text, "not json");
    let mut exhausted = Pipeline::new(policy(), Some(Format::Json), None, limit("{"));
    exhausted.accept_continuation(normal(""), Join::Exact);
    assert!(matches!(outcome(&exhausted).result, PipelineResult::Exhausted(_)));
}

/// PC-6: a cut reply that must not be resumed is not corrected either, because a correction would invent its
/// end.
#[test]
fn a_truncated_reply_that_must_not_be_resumed_is_not_corrected() {
    let resume = ResumePolicy { max_attempts: 0, ..ResumePolicy::default() };
    let policy = PipelinePolicy { resume, ..PipelinePolicy::default() };
    let end = outcome(&Pipeline::new(policy, Some(Format::Json), None, limit("{\"a\": ")));
    assert!(matches!(end.result, PipelineResult::Exhausted(_)));
    assert_eq!((end.text.as_str(), end.corrections), ("{\"a\": ", 0));
}

/// After a refusal or an exhausted budget, no further call is requested.
#[test]
fn a_refusal_or_an_empty_budget_is_not_corrected() {
    let mut refused = pipeline(&[], limit("{\"a\": "));
    refused.accept_continuation(Reply::with_stop("I cannot", Stop::Refused), Join::Exact);
    let PipelineResult::Exhausted(end) = outcome(&refused).result else { panic!("{refused:?}") };
    assert_eq!(end.cause, ExhaustedCause::Refused);

    let mut broke = pipeline(&[], limit("{\"a\": "));
    broke.note_failure(AskFailure::Budget("none".to_owned()));
    assert!(matches!(outcome(&broke).result, PipelineResult::Exhausted(_)));
}

#[test]
fn a_passed_reply_is_unchanged() {
    let end = outcome(&pipeline(&["a"], Reply::with_stop("I cannot", Stop::Refused)));
    assert_eq!((end.text.as_str(), end.result), ("I cannot", PipelineResult::Passed));
    assert_eq!((end.attempts, end.corrections, end.disclosed), (0, 0, false));
}

/// PC-8: a reply that the client's own stop sequence ended is whole, whatever it contains.
#[test]
fn a_reply_stopped_by_the_clients_sequence_is_not_corrected() {
    let end = outcome(&pipeline(&["a", "b"], Reply::with_stop("{\"a\": 1", Stop::Sequence)));
    assert_eq!((end.text.as_str(), end.result), ("{\"a\": 1", PipelineResult::Whole));
}

#[test]
fn text_without_a_grammar_is_not_validated() {
    for demanded in [None, Some(Format::Text), Some(Format::Jsonl)] {
        let first = normal("{\"x\": 1}\n");
        let pipeline =
            Pipeline::new(PipelinePolicy::default(), demanded, Some(Box::new(RequiredFields(&["a"]))), first);
        assert_eq!(outcome(&pipeline).result, PipelineResult::Whole);
    }
}

/// A corrected document must begin with the part that the client has received.
#[test]
fn a_correction_that_changes_sent_text_is_refused() {
    for (corrected, result) in
        [("{\"a\":1}", PipelineResult::Invalid), ("{\"x\":1, \"a\":1}", PipelineResult::Corrected)]
    {
        let resume = ResumePolicy { sent: 5, ..ResumePolicy::default() };
        let policy = PipelinePolicy { resume, ..PipelinePolicy::default() };
        let first = normal("{\"x\":1}");
        let mut pipeline =
            Pipeline::new(policy, Some(Format::Json), Some(Box::new(RequiredFields(&["a"]))), first);
        pipeline.accept_correction(normal(corrected));
        let end = outcome(&pipeline);
        let changes = end.pieces[1].reason == "the corrected document changes what the client has";
        assert_eq!(changes, result == PipelineResult::Invalid);
        assert_eq!(end.result, result);
    }
}

/// PC-9: this also applies to text that was forwarded during the stream.
#[test]
fn a_correction_that_changes_text_sent_later_is_refused() {
    let mut pipeline = pipeline(&["a"], normal("{\"x\":1}"));
    pipeline.mark_sent(5);
    pipeline.accept_correction(normal("{\"a\":1}"));
    assert_eq!(outcome(&pipeline).result, PipelineResult::Invalid);
}

#[test]
fn a_pipeline_exposes_the_received_text_and_the_next_step() {
    let mut pipeline = pipeline(&["a"], limit("{\"a\": "));
    assert_eq!(pipeline.pieces().len(), 1);
    assert!(format!("{pipeline:?}").starts_with("Pipeline { step: Resume(ResumeAsk {"));
    pipeline.accept_continuation(normal("1}"), Join::Exact);
    let texts: Vec<&str> = pipeline.pieces().iter().map(|piece| piece.text.as_str()).collect();
    assert_eq!(texts, ["{\"a\": ", "1}"]);
    assert!(format!("{pipeline:?}").starts_with("Pipeline { step: Done("));
}

#[test]
fn unrequested_answers_are_ignored() {
    let mut pipeline = pipeline(&["a"], limit("{\"a\": "));
    let before = pipeline.next();
    pipeline.accept_correction(normal("{\"a\": 1}"));
    assert_eq!(pipeline.next(), before);
    pipeline.accept_continuation(normal("1}"), Join::Exact);
    let end = pipeline.next();
    pipeline.accept_continuation(normal("1}"), Join::Exact);
    pipeline.note_failure(AskFailure::Lost("gone".to_owned()));
    assert_eq!(pipeline.next(), end);
}

#[test]
fn a_late_continuation_does_not_undo_a_correction() {
    let mut pipeline = pipeline(&["a"], normal("{}"));
    pipeline.accept_correction(normal("{\"a\": 1}"));
    let end = pipeline.next();
    pipeline.accept_continuation(normal("{}"), Join::Exact);
    assert_eq!(pipeline.next(), end);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// PC-6: every pipeline ends within its limits, never corrects a truncated reply first, and never
    /// delivers an invalid text as valid.
    #[test]
    fn every_pipeline_ends_within_its_limits(
        (document, beginning) in cut_document(),
        max_attempts in 0..4_u32,
        max_corrections in 0..3_u32,
        validated in any::<bool>(),
        join in prop_oneof![
            Just(Join::Exact),
            Just(Join::Stitched(AskedFrom::Token)),
            Just(Join::Stitched(AskedFrom::Cut)),
        ],
        behaviours in prop::collection::vec(behaviour(), 1..6),
    ) {
        let resume = ResumePolicy { max_attempts, ..ResumePolicy::default() };
        let policy = PipelinePolicy { resume, max_corrections, may_change: false };
        let validator: Option<Box<dyn Validate + Send + Sync>> =
            if validated { Some(Box::new(RequiredFields(&["value", "more"]))) } else { None };
        let first = Reply::with_stop(beginning, Stop::Limit);
        let mut pipeline = Pipeline::new(policy, Some(Format::Json), validator, first);
        for behaviour in behaviours.iter().cycle().take(100) {
            prop_assert_eq!(pipeline.next(), pipeline.next());
            match pipeline.next() {
                PipelineStep::Resume(ask) => match answer(behaviour, &document, &ask.so_far) {
                    Ok(reply) => pipeline.accept_continuation(reply, join),
                    Err(failure) => pipeline.note_failure(failure),
                },
                PipelineStep::Correct(ask) => {
                    prop_assert!(pipeline.resume.history().len() > 1, "resumed before it is corrected");
                    prop_assert!(ask.attempt <= max_corrections);
                    match answer(behaviour, &document, "") {
                        Ok(reply) => pipeline.accept_correction(reply),
                        Err(failure) => pipeline.note_failure(failure),
                    }
                }
                PipelineStep::Done(_) => break,
            }
        }
        let end = outcome(&pipeline);
        prop_assert!(end.attempts <= max_attempts && end.corrections <= max_corrections);
        let valid = !validated || RequiredFields(&["value", "more"]).validate(&end.text).is_empty();
        if end.result == PipelineResult::Corrected {
            prop_assert!(valid);
        }
        if let PipelineResult::Exhausted(exhausted) = &end.result {
            prop_assert!(end.text.starts_with(&exhausted.merged_raw[..exhausted.verified_len]));
        }
        accounts_for_every_byte(&end)?;
    }
}

/// Checks that the outcome contains every received byte in order, or that its seams report the dropped bytes.
fn accounts_for_every_byte(end: &PipelineOutcome) -> Result<(), TestCaseError> {
    let first = &end.pieces[0];
    let dropped: usize = end.pieces.iter().flat_map(|piece| &piece.seam).map(|seam| seam.dropped_bytes).sum();
    let joined: usize =
        end.pieces[1..].iter().filter(|piece| piece.seam.is_some()).map(|piece| piece.text.len()).sum();
    match &end.result {
        PipelineResult::Resumed | PipelineResult::Invalid => {
            prop_assert!(end.text.starts_with(&first.text) || dropped > 0, "{end:?}");
            // The bytes of an incomplete character at the end of a piece do not count as text.
            let halves: usize =
                end.pieces.iter().map(|piece| piece.text.matches('\u{fffd}').count() * 3).sum();
            prop_assert!(end.text.len() + dropped + halves >= first.text.len() + joined, "{end:?}");
        }
        // A restarted text may begin with the cut text. Otherwise, the outcome reports the replaced length.
        PipelineResult::Restarted { replaced_chars } => {
            prop_assert_eq!(*replaced_chars, first.text.chars().count());
        }
        PipelineResult::Whole | PipelineResult::Passed => prop_assert_eq!(&end.text, &first.text),
        PipelineResult::Exhausted(_) => {
            let is_kept = end.text.starts_with(first.text.trim_end_matches('\u{fffd}'));
            prop_assert!(is_kept || dropped > 0, "{end:?}");
        }
        PipelineResult::Corrected => {}
    }
    Ok(())
}

/// The outcome contains the ending and stop reason of each piece, for the log.
#[test]
fn the_outcome_contains_every_piece() {
    let mut pipeline = pipeline(&["a"], Reply::broken_off("{\"a\": ", Ending::Dropped));
    pipeline.note_failure(AskFailure::Rejected("no prefill".to_owned()));
    pipeline.accept_continuation(normal("1}"), Join::Exact);
    let end = outcome(&pipeline);
    let endings: Vec<Ending> = end.pieces.iter().map(|piece| piece.ending).collect();
    assert_eq!(endings, [Ending::Dropped, Ending::UpstreamError, Ending::Clean]);
    assert!(end.pieces[1].reason.contains("no prefill"));
    assert_eq!((end.cut, end.attempts), (Some(CutKind::Dropped), 1));
}

/// A cut is detected despite raw line feeds in strings, and the result is strict JSON.
#[test]
fn unsent_raw_control_characters_are_escaped() {
    for (sent, result, text) in [
        (0, PipelineResult::Corrected, "{\"a\": \"x\\ny\"}"),
        (10, PipelineResult::Invalid, "{\"a\": \"x\ny\"}"),
    ] {
        let mut policy = PipelinePolicy { max_corrections: 0, ..PipelinePolicy::default() };
        policy.resume.sent = sent;
        let first = Reply::with_stop("{\"a\": \"x\ny", Stop::Limit);
        let mut pipeline = Pipeline::new(policy, Some(Format::Json), None, first);
        assert!(matches!(pipeline.next(), PipelineStep::Resume(_)));
        pipeline.accept_continuation(Reply::with_stop("\"}", Stop::Normal), Join::Exact);
        let PipelineStep::Done(outcome) = pipeline.next() else { panic!("it goes on") };
        assert_eq!((outcome.text.as_str(), &outcome.result), (text, &result), "{sent}");
        let is_disclosed = outcome.problems.iter().any(|problem| problem.message == CONTROL_CHARACTERS);
        assert_eq!(is_disclosed, sent > 0);
    }
}
