//! Handles one choice of a reply, from the verdicts on its parts to the content for the client.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use endmark_recovery::{Ending, Reply, Stop};
use endmark_wire::reply::{Choice, ToolCall};
use endmark_wire::writer::End;

use super::call_ids::CallIds;
use crate::disclosure::Disclosure;
use crate::exchange::Exchange;
use crate::recovery::{Account, CallsAfter, Finish, LaterCalls, MendedPart, PrecedingCalls, Suspect, mend};
use crate::reply::{ClientGone, Flow, Part};
use crate::settings::Mode;
use crate::stage::observe::suspects::call_suspect;

/// The content of a choice for the client, as far as it differs from the received content.
#[derive(Debug, Default)]
pub(crate) struct SettledChoice {
    /// The message text, including the beginning that the client wrote.
    pub(crate) text: Option<String>,
    /// Received calls with changed arguments.
    pub(crate) calls: Vec<ToolCall>,
    /// Calls that were not in the first response.
    pub(crate) new_calls: Vec<ToolCall>,
    /// Whether the last new call is cut and could not be completed.
    pub(crate) last_new_call_is_cut: bool,
    /// The provider's signature for the rest of the text.
    pub(crate) signature: Option<String>,
    /// The client's stop sequence that ended the rest of the text.
    pub(crate) sequence: Option<String>,
    /// The id of the response that contains the new calls, if it has one.
    pub(crate) new_calls_in: Option<String>,
    /// Whether the text was the beginning of a call, so that it is not text any more.
    pub(crate) replaces_text_by_call: bool,
    /// Whether the client of a stream has received more of the choice than the first stream contained.
    pub(crate) continued: bool,
    /// Received calls that could not be completed.
    pub(crate) cut_calls: BTreeSet<u32>,
    /// The calls that followed a requested call. They may replace the next cut calls.
    pub(crate) calls_after: Option<CallsAfter>,
    /// The stop reason to report. `None` means the provider's own.
    pub(crate) end: Option<End>,
    /// The complete reply to a repeated request.
    pub(crate) replacement_body: Option<Bytes>,
}

impl SettledChoice {
    /// Returns the call to name in a reply without content, if the format cannot represent a cut call.
    pub(crate) fn omitted_call<'a>(&'a self, choice: &'a Choice) -> Option<&'a ToolCall> {
        let is_left = |text: &str| !text.trim().is_empty() && !self.replaces_text_by_call;
        let is_cut = |call: &ToolCall| self.cut_calls.contains(&call.index);
        let cut_new = self.new_calls.last().filter(|_| self.last_new_call_is_cut);
        let is_bare = !is_left(self.text.as_deref().unwrap_or(&choice.text))
            && choice.tool_calls.iter().all(is_cut)
            && self.new_calls.len() == cut_new.iter().len();
        choice.tool_calls.last().or(cut_new).filter(|_| is_bare)
    }

    /// Whether the client gets more content than the first response had, or different content.
    pub(crate) fn is_changed(&self) -> bool {
        self.continued || self.text.is_some() || !self.calls.is_empty() || !self.new_calls.is_empty()
    }
}

/// Prepares a part with the outcomes of the preceding parts.
pub(crate) fn prepare(part: &mut Suspect, settled: &SettledChoice) {
    part.before.join(&settled.calls);
    if let Some(answered) = &settled.calls_after {
        part.take_repeated_call(answered);
    }
}

/// Recovers one part and adds its outcome.
pub(crate) async fn add(
    exchange: &Exchange,
    choice: &Choice,
    suspect: &Suspect,
    mended: MendedPart,
    account: &mut Account,
    disclosure: &mut Disclosure,
    settled: &mut SettledChoice,
) -> Result<(), ClientGone> {
    disclosure.add(&mended, account);
    let (finish, is_whole, is_left_cut) =
        (mended.finish(), mended.is_delivered_whole(), mended.is_left_cut());
    let may_lack_calls = mended.may_lack_calls();
    let given = mended.into_given();
    if is_whole {
        settled.replacement_body = given.whole.replacement_body;
    }
    match finish {
        // Recovery of an earlier call alone does not make a reply whole.
        Finish::AsItWas if (is_left_cut || may_lack_calls) && settled.end != Some(End::Cut) => {
            settled.end = None;
        }
        Finish::AsItWas => {}
        // A whole part after a cut call does not make a reply whole.
        Finish::Normal if !settled.cut_calls.is_empty() => {}
        Finish::Normal => settled.end = Some(normal_end(choice)),
        Finish::Cut => settled.end = Some(End::Cut),
    }
    if let Part::ToolCall(call) = &suspect.slot.part
        && exchange.mode() != Mode::Warn
        && is_left_cut
    {
        settled.cut_calls.insert(call.index);
    }
    match (&suspect.slot.part, given.text) {
        (_, None) => {}
        (Part::Text, Some(text)) => {
            settled.text = Some(text);
            settled.signature = given.signature;
            settled.sequence = given.whole.sequence.filter(|_| finish == Finish::Normal);
        }
        (Part::ToolCall(call), Some(arguments)) => {
            settled.calls.push(with_arguments(call.clone(), arguments, given.signature));
        }
    }
    let Some(following) = given.following else { return Ok(()) };
    match &suspect.slot.part {
        Part::ToolCall(_) if !is_whole => {}
        // If other calls follow this one, the response only repeats them.
        Part::ToolCall(call) if choice.tool_calls.last().is_none_or(|last| last.index != call.index) => {
            settled.calls_after = Some(CallsAfter { call: call.index, following });
        }
        // Box the future, because few replies need it.
        Part::Text | Part::ToolCall(_) => {
            Box::pin(mend_following_calls(exchange, choice, following, account, disclosure, settled)).await?;
        }
    }
    Ok(())
}

/// Returns the stop reason of a whole choice.
fn normal_end(choice: &Choice) -> End {
    if choice.tool_calls.is_empty() { End::Turn } else { End::ToolCalls }
}

/// Adds tool calls that arrived instead of the rest of a text. The last of them may also be cut.
async fn mend_following_calls(
    exchange: &Exchange,
    choice: &Choice,
    following: LaterCalls,
    account: &mut Account,
    disclosure: &mut Disclosure,
    settled: &mut SettledChoice,
) -> Result<(), ClientGone> {
    settled.replaces_text_by_call = following.replaces_text;
    settled.new_calls_in.clone_from(&account.last_id);
    if settled.cut_calls.is_empty() {
        settled.end = Some(End::ToolCalls);
    }
    let content_before = match &settled.text {
        _ if following.replaces_text => String::new(),
        Some(text) => text.clone(),
        None => choice.text.clone(),
    };
    let own_calls = choice
        .tool_calls
        .iter()
        .map(|call| settled.calls.iter().rfind(|whole| whole.index == call.index).unwrap_or(call).clone());
    // The calls that the model had made so far.
    let mut before: Vec<ToolCall> = own_calls.collect();
    let mut ids = CallIds::new(&before);
    // Give new calls new indexes, so that a server with another numbering does not seem to continue earlier calls.
    let next = choice.tool_calls.iter().map(|call| call.index.saturating_add(1)).max().unwrap_or(0);
    let last = following.calls.len().saturating_sub(1);
    for (position, mut call) in following.calls.into_iter().enumerate() {
        if !choice.tool_calls.is_empty() {
            call.index = next.saturating_add(u32::try_from(position).unwrap_or(u32::MAX));
        }
        let (ending, stop) = if position == last {
            (following.ending, following.stop)
        } else {
            (Ending::Clean, Some(Stop::Normal))
        };
        ids.give_own(&mut call);
        let reply = Reply {
            text: call.arguments.clone(),
            ending,
            stop,
            output_tokens: None,
            limit: account.limit_sent,
            reasoned: false,
        };
        let mut suspect = call_suspect(exchange, choice.index, &call, reply);
        suspect.is_last_call = position == last;
        if account.remaining() != (0, 0) && !suspect.needs_nothing() {
            // If the rest of this call is requested, the request shows these calls before it.
            let message = (content_before.clone(), before.clone());
            suspect.before = PrecedingCalls::new(Arc::new(message), before.len());
        }
        // Recursion stops here: calls that follow a recovered call are not examined.
        let mended = Box::pin(mend(&exchange.case(), &suspect, account, &mut Flow::Waiting)).await?;
        disclosure.add(&mended, account);
        if mended.is_left_cut() {
            settled.end = Some(End::Cut);
            settled.last_new_call_is_cut = position == last;
        } else if mended.may_lack_calls() && mended.finish() != Finish::Normal {
            settled.end = Some(End::Cut);
        }
        let given = mended.into_given();
        if let Some(arguments) = given.text {
            call = with_arguments(call, arguments, given.signature);
        }
        before.push(call.clone());
        settled.new_calls.push(call);
    }
    Ok(())
}

/// Returns a call with these arguments and their signature.
fn with_arguments(call: ToolCall, arguments: String, signature: Option<String>) -> ToolCall {
    let signature = if arguments == call.arguments { call.signature } else { signature };
    ToolCall { arguments, signature, ..call }
}
