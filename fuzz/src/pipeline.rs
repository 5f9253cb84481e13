//! The state machines that resume, validate and correct (PC-5, PC-6). The input contains letters for the
//! policy, the first reply and the later replies. Each reply begins with three letters of its own.

use endmark_recovery::{
    AskFailure, AskedFrom, Ending, ExhaustedCause, Join, OnAmbiguous, PieceRole, Pipeline, PipelineOutcome,
    PipelinePolicy, PipelineResult, PipelineStep, Reply, RequestedReply, ResumeExhausted, ResumePolicy,
    SchemaProblem, Stop, Validate,
};
use endmark_text::Format;

use crate::input::{Numbers, parts};

/// Number of steps that no policy used here can reach.
const MAX_STEPS: usize = 400;

/// Checks that a pipeline ends within its bounds, loses no text, and does not change text that the client
/// already has.
pub fn check(bytes: &[u8]) {
    let mut parts = parts(bytes);
    let letters = parts.next().unwrap_or_default();
    let letter = |position: usize| letters.get(position).copied().unwrap_or_default();
    let demanded = match letter(0) {
        b'j' => Some(Format::Json),
        b'l' => Some(Format::Jsonl),
        b'm' => Some(Format::Marker("<END>".to_owned())),
        _ => None,
    };
    let count = |position: usize| u32::from(letter(position).wrapping_sub(b'0') % 5);
    let (max_attempts, max_corrections) = (count(1), count(2));
    let on_ambiguous = if letter(3) == b'b' { OnAmbiguous::Best } else { OnAmbiguous::Stop };
    let answers: Vec<Result<(Reply, Join), AskFailure>> = parts.map(parse_call_result).collect();
    let Some(begin) = answers.iter().position(Result::is_ok) else { return };
    let Ok((first, _)) = answers[begin].clone() else { return };
    let mut answers = answers.iter().cycle().skip(begin + 1);
    let mut numbers = Numbers::of(bytes);
    let sent = if letter(4) == b's' { numbers.below(first.text.len() + 4) } else { 0 };
    let resume = ResumePolicy { max_attempts, on_ambiguous, sent, ..ResumePolicy::default() };
    let validator: Option<Box<dyn Validate + Send + Sync>> =
        if letter(5) == b'v' { Some(Box::new(NeedsName)) } else { None };
    let beginning = first.text.clone();
    let policy = PipelinePolicy { resume, max_corrections, may_change: letter(6) == b'c' };
    let mut pipeline = Pipeline::new(policy, demanded, validator, first);
    for _ in 0..MAX_STEPS {
        let step = pipeline.next();
        assert_eq!(step, pipeline.next(), "stable until it is fed");
        match (step, answers.next().unwrap()) {
            (PipelineStep::Done(outcome), answer) => {
                check_bounds(&outcome, max_attempts, max_corrections);
                check_sent_text(&outcome, &beginning, sent);
                // After the end, further input has no effect.
                pipeline.accept_correction(Reply::with_stop("{}", Stop::Normal));
                match answer.clone() {
                    Ok((reply, join)) => pipeline.accept_continuation(reply, join),
                    Err(failure) => pipeline.note_failure(failure),
                }
                assert_eq!(pipeline.next(), PipelineStep::Done(outcome));
                return;
            }
            (PipelineStep::Resume(ask), Ok((reply, join))) => {
                assert!((1..=max_attempts).contains(&ask.attempt), "{ask:?}");
                assert_eq!(ask.prompt.is_empty(), ask.wanted != RequestedReply::Rest, "{ask:?}");
                pipeline.accept_continuation(reply.clone(), *join);
            }
            (PipelineStep::Correct(ask), Ok((reply, _))) => {
                assert!((1..=max_corrections).contains(&ask.attempt) && !ask.prompt.is_empty(), "{ask:?}");
                pipeline.accept_correction(reply.clone());
            }
            (_, Err(failure)) => pipeline.note_failure(failure.clone()),
        }
    }
    panic!("it does not end: {pipeline:?}");
}

/// A schema that requires a name and reports problems in a fixed order.
struct NeedsName;

impl Validate for NeedsName {
    fn validate(&self, json: &str) -> Vec<SchemaProblem> {
        assert!(serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok() || json.len() > 100, "{json:?}");
        let problem = |path: &str| SchemaProblem { path: path.to_owned(), message: "missing".to_owned() };
        if json.contains("\"name\"") { Vec::new() } else { vec![problem(""), problem("/name")] }
    }
}

/// Reads the result of a call: letters for stop, ending and join, followed by the text. `!` marks a failed
/// call.
fn parse_call_result(part: &[u8]) -> Result<(Reply, Join), AskFailure> {
    let letter = |position: usize| part.get(position).copied().unwrap_or_default();
    if letter(0) == b'!' {
        return Err(match letter(1) {
            b'b' => AskFailure::Budget("none left".to_owned()),
            b'l' => AskFailure::Lost("gone".to_owned()),
            _ => AskFailure::Rejected("no".to_owned()),
        });
    }
    let stop = match letter(0) {
        b'n' => Some(Stop::Normal),
        b's' => Some(Stop::Sequence),
        b'l' => Some(Stop::Limit),
        b'r' => Some(Stop::Refused),
        b'p' => Some(Stop::Paused),
        _ => None,
    };
    let ending = match letter(1) {
        b'e' => Ending::UpstreamError,
        b's' => Ending::Stalled,
        b'd' => Ending::Dropped,
        b'x' => Ending::Cancelled,
        b'o' => Ending::OverCap,
        _ => Ending::Clean,
    };
    let join = match letter(2) {
        b'c' => Join::Stitched(AskedFrom::Cut),
        b't' => Join::Stitched(AskedFrom::Token),
        b'u' => Join::Stitched(AskedFrom::Unknown),
        _ => Join::Exact,
    };
    let text = String::from_utf8_lossy(part.get(3..).unwrap_or_default()).into_owned();
    let reasoned = letter(2) == b'r';
    let (output_tokens, limit) = if letter(2) == b'k' { (Some(5), Some(5)) } else { (None, None) };
    Ok((Reply { text, ending, stop, output_tokens, limit, reasoned }, join))
}

fn check_bounds(outcome: &PipelineOutcome, max_attempts: u32, max_corrections: u32) {
    assert!(outcome.attempts <= max_attempts && outcome.corrections <= max_corrections, "{outcome:?}");
    assert!(
        outcome.seams.iter().all(|seam| seam.at <= outcome.text.len()) || !is_resumed(outcome),
        "{outcome:?}"
    );
    if let PipelineResult::Exhausted(end) = &outcome.result {
        check_exhausted(end, outcome);
    }
}

fn is_resumed(outcome: &PipelineOutcome) -> bool {
    matches!(outcome.result, PipelineResult::Whole | PipelineResult::Resumed)
}

/// PC-5: checks that nothing is missing except bytes dropped at a settled seam, repeated bytes and the
/// remains of cut characters.
fn check_exhausted(end: &ResumeExhausted, outcome: &PipelineOutcome) {
    assert!(end.merged_raw.is_char_boundary(end.verified_len) && !end.reason.is_empty(), "{end:?}");
    assert!(outcome.text.starts_with(&end.merged_raw[..end.verified_len]), "{outcome:?}");
    let pieces = || outcome.pieces.iter().filter(|piece| piece.role != PieceRole::Correction);
    let last_is_there = end.cause == ExhaustedCause::NoProgress;
    for piece in pieces().filter(|piece| piece.seam.is_none() && piece.join.is_some()) {
        assert!(end.merged_raw.contains(&piece.text) || last_is_there, "{piece:?} is not in {end:?}");
    }
    let received: usize = pieces().map(|piece| piece.text.len()).sum();
    let left_out: usize = pieces().flat_map(|piece| &piece.seam).map(|seam| seam.dropped_bytes).sum();
    let cut_characters: usize = pieces().map(|piece| piece.text.matches('\u{fffd}').count() * 3).sum();
    let said_again = pieces().next_back().filter(|_| last_is_there).map_or(0, |piece| piece.text.len());
    assert!(end.merged_raw.len() + left_out + cut_characters + said_again >= received, "{outcome:?}");
}

/// Checks that the text that the client already has is unchanged.
fn check_sent_text(outcome: &PipelineOutcome, beginning: &str, sent: usize) {
    let sent = &beginning.as_bytes()[..sent.min(beginning.len())];
    assert!(outcome.text.as_bytes().starts_with(sent), "{sent:?} is not kept: {outcome:?}");
    if let PipelineResult::Passed = outcome.result {
        assert_eq!(outcome.text, beginning);
    }
}
