//! Judges a provider's saved reply: its texts and tool calls, together with the reported finish reason (PC-8).

use endmark_failure::CommandError;
use endmark_guard::{Artifact, stops_in_mid_sentence};
use endmark_recovery::{CutKind, Ending, Evidence, Judgement, Stop, judge};
use endmark_text::detect::detect;
use endmark_text::{Detection, Format, Hint, Truncation, Verdict};
use endmark_wire::error::ProviderError;
use endmark_wire::finish_reasons::FinishMeaning;
use endmark_wire::reply::Choice;
use endmark_wire::saved::{SavedReply, read_saved_reply};
use serde::Serialize;

/// The judged part of a saved reply: the first incomplete part, or else its first text.
#[derive(Debug)]
pub(crate) struct JudgedPart {
    pub(crate) reply: ReplySource,
    /// Offsets are relative to the part.
    pub(crate) detection: Detection,
    /// Why the provider's finish reason leaves open whether the part is whole.
    pub(crate) undecided_reason: Option<&'static str>,
}

/// The source of the judged text.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ReplySource {
    format: &'static str,
    model: String,
    /// As `choice 0, text` or `choice 0, arguments of get_weather`.
    part: String,
    /// The finish reason as reported by the provider; null without one.
    stop: Option<String>,
    /// The kind of cut; `None` if nothing is missing.
    cut: Option<&'static str>,
}

impl ReplySource {
    /// Describes the format, the part and the finish reason in one line.
    pub(crate) fn describe(&self) -> String {
        let stop = self.stop.as_deref().unwrap_or("nothing");
        format!("a reply of {}: {}, which ended with `{stop}`", self.format, self.part)
    }
}

/// A part of a reply: a text, or the arguments of a tool call.
struct ReplyPart<'a> {
    name: String,
    text: &'a str,
    /// The grammar that the text must follow.
    required_format: Option<Format>,
    /// Whether this is the last part of the choice. The output limit cuts only the last part of a reply.
    is_last: bool,
}

impl ReplyPart<'_> {
    /// Whether the part is the arguments of a tool call, which must be JSON.
    fn is_call(&self) -> bool {
        self.required_format.is_some()
    }
}

/// Returns the text of a provider's saved reply and how it ended, or `None` if the bytes are not a saved reply.
///
/// # Errors
/// If the reply cannot be continued: because of a refusal, a filter or a pause, a tool call, several choices, or a
/// provider error without text.
pub(crate) fn text_to_continue(raw: &[u8]) -> Result<Option<(String, Stop)>, CommandError> {
    let Some(SavedReply { reply, error, .. }) = read_saved_reply(raw) else { return Ok(None) };
    let refused = |message: &str, hint: &str| Err(CommandError::input("invalid_reply", message, hint));
    if error.is_some() && reply.choices.iter().all(|choice| choice.received_bytes == 0) {
        return refused(
            "the saved reply is an error of the provider without text",
            "Send the request again. `--format json` checks the whole document instead.",
        );
    }
    match reply.choices.as_slice() {
        [choice] if choice.tool_calls.is_empty() && choice.is_mendable => match judge_text(choice) {
            Judgement::Cut(_) => Ok(Some((choice.text.clone(), Stop::Limit))),
            Judgement::Whole { .. } => Ok(Some((choice.text.clone(), Stop::Normal))),
            Judgement::Passed => refused(
                "the saved reply ended with a refusal, a filter or a pause, so it cannot be continued",
                "Nothing was done. `endmark detect` shows its finish reason.",
            ),
        },
        [_] => refused(
            "the saved reply has a tool call, but this command continues only texts",
            "Send such requests through `endmark serve`, which resumes tool calls.",
        ),
        _ => refused("the saved reply has several choices", "Extract the text of one choice into a file."),
    }
}

/// Judges a choice that has only a text: whole, cut, or ended for a reason that rules out a continuation.
fn judge_text(choice: &Choice) -> Judgement {
    let text = ReplyPart { name: String::new(), text: &choice.text, required_format: None, is_last: true };
    judge_ended_part(
        choice,
        &text,
        &detect(choice.text.as_bytes(), &Format::Auto),
        saved_ending(choice, None),
    )
}

/// Judges a saved reply, or returns `None` if the bytes are not a saved reply.
pub(crate) fn judge_saved(raw: &[u8]) -> Option<JudgedPart> {
    let SavedReply { format, reply, error } = read_saved_reply(raw)?;
    let mut first = None;
    for choice in &reply.choices {
        let stop = choice.finish.as_ref().map(|finish| finish.reason.clone());
        for part in parts(choice) {
            let (detection, cut) = judge_part(choice, &part, saved_ending(choice, error.as_ref()));
            let is_whole = detection.verdict.is_whole();
            let undecided = undecided_reason(choice, &part, &detection).filter(|_| is_whole);
            let reply = ReplySource {
                format: format.name(),
                model: reply.model.clone(),
                part: format!("choice {}, {}", choice.index, part.name),
                stop: stop.clone(),
                cut,
            };
            let judged = JudgedPart { reply, detection, undecided_reason: undecided };
            if !is_whole || undecided.is_some() {
                return Some(judged);
            }
            first.get_or_insert(judged);
        }
    }
    first
}

/// Returns the text of a choice and the arguments of its tool calls. A choice without both has one empty text.
fn parts(choice: &Choice) -> Vec<ReplyPart<'_>> {
    let is_text_last = choice.tool_calls.is_empty() || choice.last_call_at < choice.text.len();
    let last_call = choice.tool_calls.len().saturating_sub(1);
    let calls = choice.tool_calls.iter().enumerate().map(|(at, call)| ReplyPart {
        name: format!("arguments of {}", call.name),
        text: &call.arguments,
        required_format: Some(Format::Json),
        is_last: at == last_call && !is_text_last,
    });
    let text = ReplyPart {
        name: "text".to_owned(),
        text: &choice.text,
        required_format: None,
        is_last: is_text_last,
    };
    let has_text = !choice.text.is_empty() || choice.tool_calls.is_empty();
    has_text.then_some(text).into_iter().chain(calls).collect()
}

/// Returns how a saved choice ended.
///
/// A provider error, or an unfinished state without a finish reason, shows that the choice was interrupted.
fn saved_ending(choice: &Choice, error: Option<&ProviderError>) -> Ending {
    match error {
        Some(_) => Ending::UpstreamError,
        None if choice.is_unfinished && choice.finish.is_none() => Ending::Dropped,
        None => choice.ending_after(Ending::Clean),
    }
}

/// Judges a part of a saved reply (PC-8).
///
/// An interrupted or paused reply stopped after its last part, so earlier parts count as complete.
fn judge_ended_part(
    choice: &Choice,
    part: &ReplyPart<'_>,
    detection: &Detection,
    ending: Ending,
) -> Judgement {
    let grammar = part.required_format.as_ref().or(detection.detected.as_ref());
    let testifies = grammar.is_some_and(|format| format.is_evidence(&detection.verdict, part.text));
    let stop = choice.finish.as_ref().and_then(|finish| finish.stop).filter(|_| ending == Ending::Clean);
    judge(&Evidence {
        ending: if part.is_last { ending } else { Ending::Clean },
        stop: stop.filter(|stop| part.is_last || !matches!(stop, Stop::Limit | Stop::Repetition)),
        grammar: testifies.then_some(&detection.verdict),
        marker: false,
        output_tokens: None,
        limit: None,
        has_text: !part.text.trim().is_empty(),
        reasoned: choice.has_reasoning,
    })
}

/// Whether the provider reports that the output limit or detected repetition stopped the model.
fn stops_early(choice: &Choice) -> bool {
    let stop = choice.finish.as_ref().and_then(|finish| finish.stop);
    matches!(stop, Some(Stop::Limit | Stop::Repetition))
}

/// Returns the detection of a part and its kind of cut.
///
/// The part's own text decides, unless the text is whole and the provider reports an incomplete reply. A paused turn
/// is incomplete, too, but has no kind of cut.
fn judge_part(choice: &Choice, part: &ReplyPart<'_>, ending: Ending) -> (Detection, Option<&'static str>) {
    let mut detection = detect(part.text.as_bytes(), part.required_format.as_ref().unwrap_or(&Format::Auto));
    let is_paused = part.is_last && choice.meaning() == Some(FinishMeaning::Paused);
    let kind = match judge_ended_part(choice, part, &detection, ending) {
        Judgement::Cut(_) if choice.meaning() == Some(FinishMeaning::Window) => Some(CutKind::Window),
        Judgement::Cut(kind) => Some(kind),
        // The provider reports an incomplete reply, so more text may have followed a whole value.
        _ if part.is_last && ending != Ending::Clean => Some(CutKind::Dropped),
        // A whole tool call at the output limit may have been followed by more calls. The gateway decides in the same
        // way.
        _ if part.is_last && part.is_call() && stops_early(choice) => Some(CutKind::Limit),
        Judgement::Passed if is_paused => None,
        Judgement::Passed | Judgement::Whole { .. } => return (detection, None),
    };
    if detection.verdict.is_whole() {
        detection.verdict = Verdict::Truncated(Truncation {
            truncation_index: part.text.len(),
            balanced_index: 0,
            last_valid_token: last_line(part.text).to_owned(),
            open: endmark_text::OpenStack::default(),
            in_token: None,
        });
    }
    (detection, kind.map(CutKind::name))
}

/// Returns why a part that reads as whole may still be incomplete, or `None`.
///
/// Either the part is not strict JSON, or the provider refused or filtered it or gave an unknown finish reason. A
/// normal finish reason is trusted, as in the gateway.
fn undecided_reason(choice: &Choice, part: &ReplyPart<'_>, detection: &Detection) -> Option<&'static str> {
    match choice.meaning() {
        _ if detection.hint == Some(Hint::ControlCharacters) => {
            Some("it is whole only if raw control characters in JSON strings are accepted")
        }
        _ if !part.is_last => None,
        Some(FinishMeaning::Refused) => Some("the provider refused or filtered it"),
        Some(FinishMeaning::Unknown) => Some("its finish reason is unknown"),
        Some(_) => None,
        None => mid_sentence_reason(part.text.as_bytes(), detection, None),
    }
}

/// Returns why a text that reads as whole may still be cut: it is prose that stops in mid-sentence.
///
/// `endmark guard` reports this, too. The file `name` helps to recognise code.
pub(crate) fn mid_sentence_reason(
    raw: &[u8],
    detection: &Detection,
    name: Option<&str>,
) -> Option<&'static str> {
    let is_prose = !matches!(detection.detected, Some(Format::Json | Format::Jsonl | Format::Tags));
    let hint = detection.hint.filter(|_| is_prose && detection.verdict.is_whole());
    let (Some(Hint::MidSentence), Ok(text)) = (hint, str::from_utf8(raw)) else { return None };
    let artifact = name.map_or_else(|| Artifact::read(text), |name| Artifact::read_file(text, name));
    stops_in_mid_sentence(&artifact)
        .then_some("the last paragraph stops in mid-sentence: it is cut, or ends without a full stop")
}

/// Returns the last line, which a user can search for to find the cut.
fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or_default()
}
