//! Selects the parts of a choice that may be cut, with their required formats.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use endmark_recovery::{CutKind, Ending, Judgement, Reply, Stop};
use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};
use endmark_wire::error::ProviderError;
use endmark_wire::finish_reasons::FinishMeaning;
use endmark_wire::reply::{CallProgress, Choice, ToolCall};

use crate::exchange::Exchange;
use crate::recovery::{
    HALF_SURROGATE, PrecedingContent, REPETITION, SURPLUS_CHOICES, Suspect, TEXT_AFTER_CALLS,
    UNREPRESENTABLE_CONTENT, has_invented_arguments, judgement,
};
use crate::reply::{ReplyPart, Slot};

/// Returns the parts of a choice that may be cut: its text, or with tool calls, the arguments of each tool
/// call and the text after the last one.
///
/// Text before a tool call is complete. All tool calls except the last are complete, too, because the model
/// continued after them. Only parts that need recovery or disclosure are returned, because a reply may have
/// thousands of others. Tool calls before `from` are known to need nothing.
pub(crate) fn find_suspects(
    exchange: &Exchange,
    choice: &Choice,
    from: usize,
    ending: Ending,
    output_tokens: Option<u64>,
    error: Option<&ProviderError>,
) -> Suspects {
    let stop = choice.finish.as_ref().and_then(|finish| finish.stop);
    let ending = choice.ending_after(ending);
    let has_failed = choice.meaning() == Some(FinishMeaning::Failed);
    let fills_window = choice.meaning() == Some(FinishMeaning::Window);
    let refused = choice.is_refused || has_failed || error.is_some_and(ProviderError::is_final);
    let stop = if refused { Some(Stop::Refused) } else { stop };
    let reply = |text: &str| Reply {
        text: text.to_owned(),
        ending,
        stop,
        output_tokens,
        limit: exchange.single_reply_limit(),
        reasoned: choice.has_reasoning,
    };
    let text = |reply: Reply| Suspect {
        slot: Slot { choice: choice.index, part: ReplyPart::Text },
        required_format: exchange.client.required_format.clone(),
        schema: None,
        before: PrecedingContent::default(),
        obstacle: None,
        reached_window: fills_window,
        is_last_call: false,
        offered_calls: None,
        continuation: None,
        is_proved_whole: false,
        judgement: OnceLock::new(),
        reply,
    };
    let unshown = || {
        // The received text may be incomplete, so only the end and the reports about tool calls prove
        // anything.
        let (before, required_format) =
            if choice.is_unfinished { ("{", Some(Format::Json)) } else { (choice.text.as_str(), None) };
        let reply = Reply { reasoned: false, ..reply(before) };
        let suspect = Suspect { required_format, obstacle: Some(UNREPRESENTABLE_CONTENT), ..text(reply) };
        is_reported_cut(judgement(&suspect), choice).then_some(suspect)
    };
    let obstacle = find_obstacle(choice);
    if !choice.is_mendable {
        return Suspects::new(unshown());
    }
    if choice.tool_calls.is_empty() {
        // If reasoning or a server's own content follows a text, the missing part belongs to that content. A continuation
        // request cannot include that content, only the text before it.
        if choice.ends_in_unshown_part {
            return Suspects::new(unshown());
        }
        let reply = match text_before_part(exchange, choice) {
            "" => reply(&with_client_beginning(exchange, &choice.text)),
            before => reply(choice.text.strip_prefix(before).unwrap_or_default()),
        };
        let schema = exchange.client.schema.clone().filter(|_| !choice.has_unrequestable_part);
        let continuation = choice.continuation.clone();
        return Suspects::new([Suspect { schema, obstacle, continuation, ..text(reply) }]);
    }
    let part_after_calls = if choice.ends_in_unshown_part {
        unshown()
    } else {
        let of_text = |before: &str| Suspect { obstacle: Some(TEXT_AFTER_CALLS), ..text(reply(before)) };
        choice.text_after_calls().map(of_text)
    };
    // If other content followed the tool calls, none of them is the last part.
    let last =
        choice.tool_calls.len() - usize::from(!choice.ends_in_unshown_part && part_after_calls.is_none());
    let is_trusted = !reports_cut_calls_as_complete(choice.tool_calls.get(from..).unwrap_or_default());
    let call_part = |(position, call): (usize, &ToolCall)| {
        let mut reply = reply(&call.arguments);
        let is_last = position == last;
        if !is_last && !may_be_cut(call, is_trusted) {
            (reply.ending, reply.stop, reply.output_tokens) = (Ending::Clean, Some(Stop::Normal), None);
        }
        let own = call_suspect(exchange, choice.index, call, reply);
        let is_proved_whole = own.is_proved_whole && is_trusted;
        Suspect {
            obstacle,
            is_proved_whole,
            reached_window: fills_window && is_last,
            is_last_call: is_last,
            ..own
        }
    };
    let calls = choice.tool_calls.iter().enumerate().skip(from);
    let mut suspects = Suspects::new(calls.map(call_part).chain(part_after_calls));
    suspects.set_preceding_calls(choice);
    suspects
}

/// Whether the finish reason, or the server's report about a tool call, proves this cut.
fn is_reported_cut(judgement: Judgement, choice: &Choice) -> bool {
    match judgement {
        Judgement::Cut(CutKind::Limit | CutKind::Window) => true,
        Judgement::Cut(CutKind::Format) => choice.is_unfinished,
        _ => false,
    }
}

/// Returns why no request can continue a choice, or `None` if one can.
fn find_obstacle(choice: &Choice) -> Option<&'static str> {
    match () {
        () if choice.meaning() == Some(FinishMeaning::Repetition) => Some(REPETITION),
        () if choice.has_unrequestable_part => Some(UNREPRESENTABLE_CONTENT),
        () => (!choice.is_exact()).then_some(HALF_SURROGATE),
    }
}

/// Whether a tool call before other tool calls may be incomplete. Pieces of several tool calls may alternate,
/// so a following one does not prove that this one is complete. Complete arguments prove it.
fn may_be_cut(call: &ToolCall, is_trusted: bool) -> bool {
    match call.progress {
        CallProgress::Open => has_unrecognisable_end(call),
        CallProgress::Unreported => call.arguments.trim().is_empty(),
        CallProgress::Closed => !is_trusted && has_unrecognisable_end(call),
    }
}

/// Whether the end of a tool call's arguments cannot be recognised.
fn has_unrecognisable_end(call: &ToolCall) -> bool {
    call.free_text || call.arguments.trim().is_empty()
}

/// Whether the server reports cut tool calls as complete. In that case, its reports about other tool calls
/// prove nothing.
fn reports_cut_calls_as_complete(calls: &[ToolCall]) -> bool {
    let closed = || calls.iter().filter(|call| call.progress == CallProgress::Closed);
    let is_half = |call: &ToolCall| {
        let mut detector = Detector::new(&Format::Json);
        detector.push(call.arguments.as_bytes());
        !has_unrecognisable_end(call) && matches!(detector.verdict(), Verdict::Truncated(_))
    };
    closed().any(has_unrecognisable_end) && closed().any(is_half)
}

/// The parts of a choice that need recovery or disclosure, and the verdict on all parts.
#[derive(Default)]
pub(crate) struct Suspects {
    pub(crate) remaining: Vec<Suspect>,
    pub(crate) worst: Option<Judgement>,
}

impl Suspects {
    fn new(parts: impl IntoIterator<Item = Suspect>) -> Self {
        let mut suspects = Self::default();
        for part in parts {
            suspects.worst = worst_judgement([suspects.worst, Some(judgement(&part))]);
            if !part.needs_no_action() {
                suspects.remaining.push(part);
            }
        }
        suspects
    }

    /// Records what precedes each remaining tool call.
    fn set_preceding_calls(&mut self, choice: &Choice) {
        if self.remaining.is_empty() {
            return;
        }
        let message = Arc::new((choice.text.clone(), choice.tool_calls.clone()));
        let positions: HashMap<u32, usize> =
            (0..).zip(&choice.tool_calls).map(|(at, call)| (call.index, at)).collect();
        for suspect in &mut self.remaining {
            if let ReplyPart::ToolCall(call) = &suspect.slot.part {
                let before = positions.get(&call.index).copied().unwrap_or(0);
                suspect.before = PrecedingContent::new(Arc::clone(&message), before);
            }
        }
    }
}

/// For choices beyond the requested number, keeps only the first cut part: it is disclosed, but not recovered. Surplus
/// choices are forwarded unchanged.
pub(crate) fn limit_surplus_choices<'a>(
    exchange: &Exchange,
    choices: impl Iterator<Item = &'a mut Suspects>,
) {
    let asked_for = exchange.attempt.request.view().choices.max(1);
    let mut is_disclosed = false;
    for parts in choices.skip(asked_for as usize) {
        parts.remaining.retain(|part| {
            matches!(judgement(part), Judgement::Cut(_)) && !std::mem::replace(&mut is_disclosed, true)
        });
        parts.remaining.iter_mut().for_each(|part| part.obstacle = Some(SURPLUS_CHOICES));
    }
}

/// Returns the worst verdict on the parts of a reply.
pub(crate) fn worst_judgement(judgements: impl IntoIterator<Item = Option<Judgement>>) -> Option<Judgement> {
    let badness = |judgement: &Judgement| match judgement {
        Judgement::Passed => 0,
        Judgement::Whole { .. } => 1,
        Judgement::Cut(_) => 2,
    };
    judgements.into_iter().flatten().max_by_key(badness)
}

/// Returns a tool call as a part that may be cut.
pub(crate) fn call_suspect(exchange: &Exchange, choice: u32, call: &ToolCall, reply: Reply) -> Suspect {
    let schema = exchange.tool_schema(&call.name);
    let is_made_up = has_invented_arguments(&reply, schema.as_ref());
    // Some servers send an empty text for a complete tool call without arguments.
    let without_arguments = reply.text.is_empty() && reply.stop == Some(Stop::Normal) && !is_made_up;
    let reply = match (is_made_up, without_arguments) {
        // Nothing of the tool call has arrived.
        (true, _) => Reply { text: String::new(), ..reply },
        // The tool call is whole, regardless of the number of used tokens.
        (_, true) => Reply { limit: None, ..reply },
        _ => reply,
    };
    let has_grammar = !without_arguments && !call.free_text;
    // A stream that broke off later does not affect a tool call that was already reported as complete.
    let is_proved = call.free_text && call.progress == CallProgress::Closed && reply.ending != Ending::Clean;
    Suspect {
        slot: Slot { choice, part: ReplyPart::ToolCall(call.clone()) },
        reply,
        required_format: has_grammar.then_some(Format::Json),
        is_proved_whole: is_proved,
        schema: schema.filter(|_| !without_arguments),
        before: PrecedingContent::default(),
        obstacle: None,
        reached_window: false,
        is_last_call: false,
        offered_calls: None,
        continuation: None,
        judgement: OnceLock::new(),
    }
}

/// Returns the text before the part with the required grammar, which is not examined.
pub(crate) fn text_before_part<'a>(exchange: &Exchange, choice: &'a Choice) -> &'a str {
    let length = if exchange.client.required_format.is_some() { choice.last_part_start } else { 0 };
    choice.text.get(..length).unwrap_or_default()
}

/// Returns the text with the beginning that the client wrote, whether or not the server repeated it.
fn with_client_beginning(exchange: &Exchange, text: &str) -> String {
    format!("{}{text}", client_beginning(exchange, text))
}

/// Returns the beginning that the client wrote, if the received text does not repeat it.
pub(crate) fn client_beginning<'a>(exchange: &'a Exchange, text: &str) -> &'a str {
    match exchange.attempt.request.view().prefill.as_deref() {
        Some(prefill) if !text.starts_with(prefill) => prefill,
        _ => "",
    }
}
