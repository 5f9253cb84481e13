//! Recovers one part of a reply: judges it, resumes it if necessary, and records the outcome.

use std::sync::atomic::Ordering;

use endmark_recovery::stitch::ReasoningSigns;
use endmark_recovery::{
    CONTROL_CHARACTERS, CutKind, Evidence, Judgement, PieceRecord, PieceRole, Pipeline, PipelineOutcome,
    PipelinePolicy, PipelineResult, Restart, ResumePolicy, SchemaProblem, Stop, Validate, judge,
};
use endmark_store::{REASON_CLIENT_LIMIT, REASON_CLOSING_LIMIT, REASON_WARN_MODE};
use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::account::TokenAccount;
use super::ask::{Asker, has_room_to_restart, may_lack_calls};
use super::case::RecoveryCase;
use super::cut_record::{CutOutcome, CutRecord};
use super::drive::run_pipeline;
use super::mended_part::{
    CALLS_MAY_BE_MISSING, CompletingResponse, FormatFault, MALFORMED, MendedPart, ReportedFinish, RestResult,
};
use super::resume_rule::{CutReaction, reaction};
use super::schema::Schema;
use super::suspect::{LaterCalls, Suspect};
use crate::reply::{ClientGone, Flow};
use crate::reply::{Outcome, ReplyPart};
use crate::settings::{OnMissing, ResumeMode, Settings};

/// Judges one part of a reply, and recovers it if necessary.
///
/// # Errors
/// [`ClientGone`] if the client disconnects in the meantime. The disconnection is recorded.
pub(crate) async fn mend(
    case: &RecoveryCase<'_>,
    suspect: &Suspect,
    account: &mut TokenAccount,
    flow: &mut Flow<'_>,
) -> Result<MendedPart, ClientGone> {
    match judgement(suspect) {
        Judgement::Passed => Ok(MendedPart::Untouched),
        Judgement::Whole { disclosed: false }
            if suspect.schema.is_none() && format_fault(suspect).is_none() =>
        {
            Ok(MendedPart::Untouched)
        }
        // Box the futures, because most replies do not need them but would reserve memory for them.
        Judgement::Whole { disclosed } => Box::pin(mend_whole(case, suspect, account, flow, disclosed)).await,
        Judgement::Cut(kind) => Box::pin(handle_cut(case, suspect, account, flow, kind)).await,
    }
}

/// Handles a cut part: resumes it if that is permitted and possible, and discloses the cut otherwise.
async fn handle_cut(
    case: &RecoveryCase<'_>,
    suspect: &Suspect,
    account: &mut TokenAccount,
    flow: &mut Flow<'_>,
    kind: CutKind,
) -> Result<MendedPart, ClientGone> {
    let JudgedPart { certain_len: settled, is_decided_by_format: by_format, .. } =
        *suspect_judgement(suspect);
    let record = CutRecord::open(case, &suspect.slot, kind, settled, suspect.reply.text.len()).await;
    // A client that sets an output limit does not want its tool calls to be cut.
    let is_demanded = by_format || matches!(suspect.slot.part, ReplyPart::ToolCall(_));
    match reaction(case.mode, kind, case.sets_limit, is_demanded) {
        CutReaction::Disclose if kind == CutKind::Window => {
            Ok(deliver_cut(case, record, suspect, kind, WINDOW_IS_FULL).await)
        }
        CutReaction::Disclose => {
            let why = match case.mode {
                ResumeMode::Warn => REASON_WARN_MODE,
                _ if case.is_closing => REASON_CLOSING_LIMIT,
                _ => REASON_CLIENT_LIMIT,
            };
            Ok(deliver_cut(case, record, suspect, kind, why).await)
        }
        CutReaction::Resume => match suspect.obstacle.or((!flow.is_open()).then_some(CANNOT_BE_APPENDED)) {
            Some(why) => Ok(deliver_cut(case, record, suspect, kind, why).await),
            None => Box::pin(resume(case, suspect, account, flow, kind, record)).await,
        },
    }
}

/// Returns the verdict on one part as received.
pub(crate) fn judgement(suspect: &Suspect) -> Judgement {
    suspect_judgement(suspect).judgement
}

/// The verdict on one part of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgedPart {
    judgement: Judgement,
    /// Number of leading bytes of the text that are complete. `None` if the text violates its format.
    certain_len: Option<usize>,
    /// Whether the required format decides the verdict. For example, Markdown without open elements decides
    /// nothing, because it may end anywhere.
    is_decided_by_format: bool,
    /// The format error in a text that is not cut.
    fault: Option<FormatFault>,
}

/// Returns the format error of a part that is not cut.
pub(crate) fn format_fault(suspect: &Suspect) -> Option<FormatFault> {
    suspect_judgement(suspect).fault
}

fn suspect_judgement(suspect: &Suspect) -> &JudgedPart {
    suspect.judgement.get_or_init(|| judge_suspect(suspect))
}

fn judge_suspect(suspect: &Suspect) -> JudgedPart {
    let mut detector = Detector::new(suspect.required_format.as_ref().unwrap_or(&Format::Text));
    detector.push(suspect.reply.text.as_bytes());
    let verdict = detector.verdict();
    let settled = match &verdict {
        Verdict::Truncated(truncation) => Some(truncation.truncation_index),
        Verdict::Whole => Some(suspect.reply.text.len()),
        Verdict::Malformed { .. } => None,
    };
    let reply = &suspect.reply;
    let by_format =
        suspect.required_format.as_ref().is_some_and(|format| format.is_evidence(&verdict, &reply.text));
    let grammar = if suspect.is_proved_whole { Some(&Verdict::Whole) } else { by_format.then_some(&verdict) };
    let judgement = judge(&Evidence {
        ending: reply.ending,
        stop: reply.stop,
        grammar,
        marker: matches!(suspect.required_format, Some(Format::Marker(_))),
        output_tokens: reply.output_tokens,
        limit: reply.limit,
        has_text: !reply.text.is_empty(),
        reasoned: reply.reasoned,
    });
    let judgement = match judgement {
        Judgement::Cut(CutKind::Limit | CutKind::Empty) if suspect.reached_window => {
            Judgement::Cut(CutKind::Window)
        }
        other => other,
    };
    let fault = match verdict {
        Verdict::Malformed { .. } if by_format => Some(FormatFault::Malformed),
        Verdict::Whole if detector.control_character().is_some() => Some(FormatFault::ControlCharacters),
        _ => None,
    };
    JudgedPart { judgement, certain_len: settled, is_decided_by_format: by_format, fault }
}

/// Handles a whole part. It may have a format error.
async fn mend_whole(
    case: &RecoveryCase<'_>,
    suspect: &Suspect,
    account: &mut TokenAccount,
    flow: &mut Flow<'_>,
    disclosed: bool,
) -> Result<MendedPart, ClientGone> {
    let calls_after = suspect.offered_calls.as_ref().filter(|_| disclosed).and_then(LaterCalls::skip_first);
    let lacks_calls = disclosed && calls_after.is_none() && may_lack_calls(case, suspect);
    let cut_after = lacks_calls.then(|| cut_kind(suspect));
    // Keep the provider's stop reason for a full context window or a repetition, which no continuation can fix.
    let keeps_stop_reason = suspect.reached_window || suspect.reply.stop == Some(Stop::Repetition);
    let finish = match (disclosed && !keeps_stop_reason, cut_after, case.settings.tools.on_missing) {
        (false, ..) | (true, Some(_), OnMissing::Cut) => ReportedFinish::Unchanged,
        (true, ..) => ReportedFinish::Normal,
    };
    if let Some(kind) = cut_after {
        let length = suspect.reply.text.len();
        let record = CutRecord::open(case, &suspect.slot, kind, Some(length), length).await;
        let judged = Judgement::Whole { disclosed: true };
        record_cut(case, record, suspect, judged, CALLS_MAY_BE_MISSING).await;
    }
    let is_valid = |schema: &Schema| schema.validate(&suspect.reply.text).is_empty();
    let by_schema = || (!suspect.schema.as_ref().is_none_or(is_valid)).then_some(FormatFault::Schema);
    let fault = format_fault(suspect).or_else(by_schema);
    let following = calls_after.filter(|following| !following.calls.is_empty());
    match fault {
        None if following.is_some() => {
            return Ok(MendedPart::Resumed {
                kind: cut_kind(suspect),
                text: suspect.reply.text.clone(),
                answered: RestResult { later_calls: following, ..RestResult::default() },
                whole: CompletingResponse::default(),
                finish,
                fault: None,
                omitted_bytes: 0,
                replaced_chars: None,
            });
        }
        None if disclosed => return Ok(MendedPart::Whole { finish, cut_after, fault }),
        None => return Ok(MendedPart::Untouched),
        Some(_) => {}
    }
    let may_be_mended = match fault {
        Some(FormatFault::ControlCharacters) => flow.sent_bytes() == 0 && suspect.obstacle.is_none(),
        _ => suspect.schema.is_some() && permitted_corrections(case, suspect, account, flow) > 0,
    };
    let corrected = if case.mode != ResumeMode::Warn && flow.is_open() && may_be_mended {
        correct(case, suspect, account, flow).await?
    } else {
        None
    };
    let Some((text, signature)) = corrected else {
        if fault == Some(FormatFault::Malformed) {
            let length = suspect.reply.text.len();
            let record = CutRecord::open(case, &suspect.slot, CutKind::Format, None, length).await;
            record_cut(case, record, suspect, Judgement::Whole { disclosed }, MALFORMED).await;
        }
        return Ok(MendedPart::Whole { finish, cut_after, fault });
    };
    Ok(MendedPart::Corrected {
        kind: cut_after,
        text,
        finish,
        answered: RestResult { signature, may_lack_calls: cut_after.is_some(), ..RestResult::default() },
        whole: CompletingResponse::default(),
    })
}

/// Corrects the format of a part. Returns the corrected text with its signature, or `None` if the correction
/// failed.
async fn correct(
    case: &RecoveryCase<'_>,
    suspect: &Suspect,
    account: &mut TokenAccount,
    flow: &mut Flow<'_>,
) -> Result<Option<(String, Option<String>)>, ClientGone> {
    let pipeline = new_pipeline(case, suspect, account, flow, false);
    let mut asker = Asker::new(case, suspect, account, flow.is_live()).await;
    let outcome = run_pipeline(pipeline, &mut asker, flow).await?;
    let signature = asker.part_signature(&outcome.text);
    account.note_attempts(0, outcome.corrections);
    Ok((outcome.result == PipelineResult::Corrected).then_some((outcome.text, signature)))
}

/// Returns how a reply was cut after its last part.
fn cut_kind(suspect: &Suspect) -> CutKind {
    match suspect.reply.stop {
        _ if suspect.reached_window => CutKind::Window,
        Some(Stop::Limit | Stop::Repetition) => CutKind::Limit,
        _ => CutKind::Dropped,
    }
}

/// The reason for not resuming a part because the context window is full.
const WINDOW_IS_FULL: &str = "the model's context window is full: compact the conversation, then ask again";

/// The reason for not resuming a part because nothing can be appended to the text that the client already
/// has.
const CANNOT_BE_APPENDED: &str =
    "the client has the beginning of content that only the original upstream can complete";

/// Delivers a cut part unchanged, and discloses the cut.
async fn deliver_cut(
    case: &RecoveryCase<'_>,
    record: CutRecord,
    suspect: &Suspect,
    kind: CutKind,
    reason: &str,
) -> MendedPart {
    record_cut(case, record, suspect, Judgement::Cut(kind), reason).await;
    let has_false_finish = case.mode != ResumeMode::Warn && claims_finished(suspect, kind);
    let finish = if has_false_finish { ReportedFinish::Cut } else { ReportedFinish::Unchanged };
    MendedPart::Cut { kind, reason: reason.to_owned(), finish }
}

/// Records a part without requesting the rest.
async fn record_cut(
    case: &RecoveryCase<'_>,
    record: CutRecord,
    suspect: &Suspect,
    judged: Judgement,
    reason: &str,
) {
    let reply = &suspect.reply;
    let pieces = [PieceRecord {
        role: PieceRole::First,
        attempt: 0,
        text: reply.text.clone(),
        ending: reply.ending,
        stop: reply.stop,
        judgement: judged,
        reason: reason.to_owned(),
        join: None,
        seam: None,
    }];
    let closing = CutOutcome::without_calls(Outcome::Cut.name(), reason, &pieces);
    record.close(case.store_wait_limit, closing).await;
}

/// Requests the rest of a cut part.
async fn resume(
    case: &RecoveryCase<'_>,
    suspect: &Suspect,
    account: &mut TokenAccount,
    flow: &mut Flow<'_>,
    kind: CutKind,
    record: CutRecord,
) -> Result<MendedPart, ClientGone> {
    let before = account.extra_usage.clone().unwrap_or_default();
    let continuation_count = case.calls.continuation_count();
    let made_before = continuation_count.load(Ordering::Relaxed);
    let can_restart = has_room_to_restart(case, account, kind);
    let pipeline = new_pipeline(case, suspect, account, flow, can_restart);
    let mut asker = Asker::new(case, suspect, account, flow.is_live()).await;
    let outcome = run_pipeline(pipeline, &mut asker, flow).await?;
    let made_now = continuation_count.load(Ordering::Relaxed).saturating_sub(made_before);
    let used_offered = asker.used_earlier_response();
    let answered = RestResult {
        // An attempt that a budget does not permit makes no call. A correction does not count as an attempt to resume.
        attempts: outcome.attempts.min(made_now),
        signature: asker.part_signature(&outcome.text),
        may_lack_calls: asker.may_lack_calls(),
        upstream: asker.other_upstream,
        later_calls: asker.later_calls,
        bound: asker.bound,
    };
    let whole = CompletingResponse { sequence: asker.sequence, replacement_body: asker.repeated_body };
    let strategies = asker.strategies;
    // Do not ask again for each part if the upstream rejects permanently.
    let was_asked = made_now > 0;
    let tried = outcome.attempts.saturating_sub(u32::from(used_offered));
    account.note_attempts(tried.max(u32::from(was_asked)), outcome.corrections);
    let pieces = outcome.pieces.clone();
    let mended = build_outcome(case, suspect, kind, outcome, answered, whole);
    let extra = account.extra_usage.clone().unwrap_or_default();
    let outcome_word = mended.outcome().map_or("whole", Outcome::name);
    let closing = CutOutcome {
        resolved: mended.is_delivered_whole(),
        outcome: outcome_word,
        extra_prompt_tokens: extra.prompt - before.prompt,
        extra_output_tokens: extra.completion - before.completion,
        reason: mended.log_message(),
        pieces: &pieces,
        strategies: &strategies,
    };
    record.close(case.store_wait_limit, closing).await;
    Ok(mended)
}

/// Creates the state machine for this part, with options from the settings and from what the client has already
/// received.
fn new_pipeline(
    case: &RecoveryCase<'_>,
    suspect: &Suspect,
    account: &TokenAccount,
    flow: &Flow<'_>,
    room_to_restart: bool,
) -> Pipeline {
    let settings = &case.settings;
    let policy = PipelinePolicy {
        resume: ResumePolicy {
            // A tool call from an earlier response costs no request.
            max_attempts: settings
                .resume
                .max_attempts
                .min(account.remaining().0)
                .max(u32::from(suspect.offered_calls.is_some())),
            on_ambiguous: settings.resume.on_ambiguous,
            sent: flow.sent_bytes(),
            prompt: settings.resume.prompt.clone(),
            strategies: settings.resume.strategies.clone(),
            room_to_restart,
            restart: restart_rule(settings, &suspect.slot.part),
            client_written_bytes: case.request.view().prefill.as_ref().map_or(0, String::len),
            known: ReasoningSigns::from_json(case.request.body()),
        },
        max_corrections: permitted_corrections(case, suspect, account, flow),
        may_change: settings.correct.may_change,
    };
    let schema = suspect.schema.clone().map(|schema| Box::new(schema) as Box<dyn Validate + Send + Sync>);
    Pipeline::new(policy, suspect.required_format.clone(), schema, suspect.reply.clone())
}

/// Returns which regenerated replies may replace this part. The arguments of a free-text tool call have no
/// values to compare, so only the name and the length are compared.
fn restart_rule(settings: &Settings, part: &ReplyPart) -> Restart {
    match part {
        ReplyPart::Text => settings.resume.restart,
        ReplyPart::ToolCall(call) => match settings.tools.restart {
            Restart::Same if call.free_text => Restart::Any,
            other => other,
        },
    }
}

/// Returns the number of permitted corrections. Text that was already sent cannot be corrected. If no
/// arguments of a tool call arrived, a correction would invent them.
fn permitted_corrections(
    case: &RecoveryCase<'_>,
    suspect: &Suspect,
    account: &TokenAccount,
    flow: &Flow<'_>,
) -> u32 {
    let is_made_up =
        matches!(suspect.slot.part, ReplyPart::ToolCall(_)) && suspect.reply.text.trim().is_empty();
    if flow.sent_bytes() == 0 && !is_made_up && suspect.obstacle.is_none() {
        case.settings.correct.max_attempts.min(account.remaining().1)
    } else {
        0
    }
}

fn build_outcome(
    case: &RecoveryCase<'_>,
    suspect: &Suspect,
    kind: CutKind,
    outcome: PipelineOutcome,
    mut answered: RestResult,
    whole: CompletingResponse,
) -> MendedPart {
    let is_ended_as_cut = answered.may_lack_calls && case.settings.tools.on_missing == OnMissing::Cut;
    let finish = if is_ended_as_cut { ReportedFinish::Cut } else { ReportedFinish::Normal };
    match outcome.result {
        PipelineResult::Passed => MendedPart::Untouched,
        PipelineResult::Whole
        | PipelineResult::Resumed
        | PipelineResult::Restarted { .. }
        | PipelineResult::Invalid => MendedPart::Resumed {
            kind,
            replaced_chars: match outcome.result {
                PipelineResult::Restarted { replaced_chars } => Some(replaced_chars),
                _ => None,
            },
            omitted_bytes: count_dropped_bytes(&outcome.pieces),
            finish,
            fault: format_fault_of_outcome(&outcome),
            text: outcome.text,
            answered,
            whole,
        },
        PipelineResult::Corrected => {
            MendedPart::Corrected { kind: Some(kind), text: outcome.text, finish, answered, whole }
        }
        PipelineResult::Exhausted(exhausted) => {
            // Text before the tool calls would be missing, and the client would act on an incomplete reply.
            let is_call = matches!(suspect.slot.part, ReplyPart::ToolCall(_));
            if is_call
                || suspect_judgement(suspect).is_decided_by_format
                || outcome.pieces.iter().any(is_unjoined)
            {
                answered.later_calls = None;
            }
            let verified = exhausted.merged_raw.get(..exhausted.verified_len).unwrap_or_default();
            let follows = answered.later_calls.as_ref().is_some_and(|following| !following.replaces_text);
            let text =
                if verified.len() > suspect.reply.text.len() && verified.starts_with(&suspect.reply.text) {
                    Some(verified.to_owned())
                } else {
                    // Tool calls follow the text, so the received text is complete.
                    follows.then(|| suspect.reply.text.clone())
                };
            let finish =
                if claims_finished(suspect, kind) { ReportedFinish::Cut } else { ReportedFinish::Unchanged };
            let reason = match answered.bound.map(|bound| bound.to_string()) {
                Some(bound) if !exhausted.reason.contains(&bound) => {
                    format!("{}; it was ended by {bound}", exhausted.reason)
                }
                _ => exhausted.reason,
            };
            MendedPart::Exhausted { kind, reason, finish, text, answered }
        }
    }
}

/// Returns the format error of a joined text.
fn format_fault_of_outcome(outcome: &PipelineOutcome) -> Option<FormatFault> {
    let is_of_controls = |problem: &SchemaProblem| problem.message == CONTROL_CHARACTERS;
    match outcome.result {
        PipelineResult::Invalid if outcome.problems.iter().any(is_of_controls) => {
            Some(FormatFault::ControlCharacters)
        }
        PipelineResult::Invalid => Some(FormatFault::Schema),
        _ => None,
    }
}

/// Returns the number of received bytes that are not in the joined text. The number of a seam also includes
/// earlier responses that could not be joined.
fn count_dropped_bytes(pieces: &[PieceRecord]) -> usize {
    let dropped = pieces.iter().filter_map(|piece| piece.seam.as_ref()).map(|seam| seam.dropped_bytes);
    let after_all_seams = pieces.iter().rev().take_while(|piece| piece.seam.is_none());
    let unjoined = after_all_seams.filter(|piece| piece.role == PieceRole::Continuation);
    dropped.chain(unjoined.map(|piece| piece.text.len())).sum()
}

/// Whether text arrived that could not be joined.
fn is_unjoined(piece: &PieceRecord) -> bool {
    piece.role != PieceRole::First && piece.seam.is_none() && !piece.text.trim().is_empty()
}

/// Whether the provider reported a normal stop reason for a cut reply. This stop reason is not forwarded: a
/// client would accept half a text as complete, or act on half a tool call.
fn claims_finished(suspect: &Suspect, kind: CutKind) -> bool {
    matches!(kind, CutKind::Format | CutKind::Limit | CutKind::Empty)
        && !matches!(suspect.reply.stop, Some(Stop::Limit | Stop::Repetition))
}
