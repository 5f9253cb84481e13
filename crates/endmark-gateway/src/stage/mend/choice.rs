//! Handles one choice of a reply, from the verdicts on its parts to the content for the client.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use endmark_recovery::{Ending, Reply, Stop};
use endmark_wire::reply::{Choice, ToolCall};
use endmark_wire::writer::ReportedEnd;

use super::call_ids::CallIds;
use crate::disclosure::Disclosure;
use crate::exchange::Exchange;
use crate::recovery::{
    CallsAfter, LaterCalls, MendedPart, PrecedingContent, ReportedFinish, Suspect, TokenAccount, mend,
};
use crate::reply::{ClientGone, Flow, ReplyPart};
use crate::settings::ResumeMode;
use crate::stage::observe::suspects::call_suspect;

/// The content of a choice for the client, where it differs from the received content.
#[derive(Debug, Default)]
pub(crate) struct SettledChoice {
    /// The message text, including the beginning that the client wrote.
    pub(crate) text: Option<String>,
    /// Received tool calls with changed arguments.
    pub(crate) calls: Vec<ToolCall>,
    /// Tool calls that were not in the first response.
    pub(crate) new_calls: Vec<ToolCall>,
    /// Whether the last new tool call is cut and could not be completed.
    pub(crate) last_new_call_is_cut: bool,
    /// The provider's signature for the rest of the text.
    pub(crate) signature: Option<String>,
    /// The client's stop sequence that ended the rest of the text.
    pub(crate) sequence: Option<String>,
    /// The id of the response that contains the new tool calls, if it has one.
    pub(crate) new_calls_in: Option<String>,
    /// Whether the received text was in fact the beginning of a tool call.
    pub(crate) replaces_text_by_call: bool,
    /// Whether the client of a stream has received more of the choice than the first stream contained.
    pub(crate) is_continued: bool,
    /// Received tool calls that could not be completed.
    pub(crate) cut_calls: BTreeSet<u32>,
    /// The tool calls that followed a requested one. They may replace the next cut tool calls.
    pub(crate) calls_after: Option<CallsAfter>,
    /// The stop reason to report. `None` means the provider's own.
    pub(crate) end: Option<ReportedEnd>,
    /// The complete reply to a repeated request.
    pub(crate) replacement_body: Option<Bytes>,
}

impl SettledChoice {
    /// Returns the cut tool call to mention in a reply that is otherwise empty, because the format cannot
    /// represent a cut tool call.
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
        self.is_continued || self.text.is_some() || !self.calls.is_empty() || !self.new_calls.is_empty()
    }
}

/// Adds the recovered and repeated tool calls of the preceding parts to a part.
pub(crate) fn prepare_part(part: &mut Suspect, settled: &SettledChoice) {
    part.before.set_recovered_calls(&settled.calls);
    if let Some(answered) = &settled.calls_after {
        part.take_repeated_call(answered);
    }
}

/// Adds the outcome of one part to its choice, and recovers the tool calls that arrived with it.
pub(crate) async fn add_part(
    exchange: &Exchange,
    choice: &Choice,
    suspect: &Suspect,
    mended: MendedPart,
    account: &mut TokenAccount,
    disclosure: &mut Disclosure,
    settled: &mut SettledChoice,
) -> Result<(), ClientGone> {
    disclosure.add(&mended, account);
    let (finish, is_whole, is_left_cut) =
        (mended.finish(), mended.is_delivered_whole(), mended.is_delivered_cut());
    let may_lack_calls = mended.may_lack_calls();
    let given = mended.into_delivered();
    if is_whole {
        settled.replacement_body = given.whole.replacement_body;
    }
    match finish {
        // The recovery of an earlier tool call alone does not make a reply whole.
        ReportedFinish::Unchanged
            if (is_left_cut || may_lack_calls) && settled.end != Some(ReportedEnd::Cut) =>
        {
            settled.end = None;
        }
        ReportedFinish::Unchanged => {}
        // A whole part after a cut tool call does not make a reply whole.
        ReportedFinish::Normal if !settled.cut_calls.is_empty() => {}
        ReportedFinish::Normal => settled.end = Some(normal_end(choice)),
        ReportedFinish::Cut => settled.end = Some(ReportedEnd::Cut),
    }
    if let ReplyPart::ToolCall(call) = &suspect.slot.part
        && exchange.mode() != ResumeMode::Warn
        && is_left_cut
    {
        settled.cut_calls.insert(call.index);
    }
    match (&suspect.slot.part, given.text) {
        (_, None) => {}
        (ReplyPart::Text, Some(text)) => {
            settled.text = Some(text);
            settled.signature = given.signature;
            settled.sequence = given.whole.sequence.filter(|_| finish == ReportedFinish::Normal);
        }
        (ReplyPart::ToolCall(call), Some(arguments)) => {
            settled.calls.push(with_arguments(call.clone(), arguments, given.signature));
        }
    }
    let Some(following) = given.following else { return Ok(()) };
    match &suspect.slot.part {
        ReplyPart::ToolCall(_) if !is_whole => {}
        // If the first response also has tool calls after this one, the new response only repeats them.
        ReplyPart::ToolCall(call) if choice.tool_calls.last().is_none_or(|last| last.index != call.index) => {
            settled.calls_after = Some(CallsAfter { call: call.index, later_calls: following });
        }
        // Box the future, because few replies need it.
        ReplyPart::Text | ReplyPart::ToolCall(_) => {
            Box::pin(mend_following_calls(exchange, choice, following, account, disclosure, settled)).await?;
        }
    }
    Ok(())
}

/// Returns the stop reason of a whole choice.
fn normal_end(choice: &Choice) -> ReportedEnd {
    if choice.tool_calls.is_empty() { ReportedEnd::Turn } else { ReportedEnd::ToolCalls }
}

/// Adds tool calls that arrived instead of the rest of a text. The last of them may also be cut.
async fn mend_following_calls(
    exchange: &Exchange,
    choice: &Choice,
    following: LaterCalls,
    account: &mut TokenAccount,
    disclosure: &mut Disclosure,
    settled: &mut SettledChoice,
) -> Result<(), ClientGone> {
    settled.replaces_text_by_call = following.replaces_text;
    settled.new_calls_in.clone_from(&account.last_id);
    if settled.cut_calls.is_empty() {
        settled.end = Some(ReportedEnd::ToolCalls);
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
    // The tool calls that the model had made so far.
    let mut before: Vec<ToolCall> = own_calls.collect();
    let mut ids = CallIds::new(&before);
    // Give new tool calls unused indexes. With the server's own numbering, they might seem to continue
    // earlier tool calls.
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
        ids.make_unique(&mut call);
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
        if account.remaining() != (0, 0) && !suspect.needs_no_action() {
            // A request for the rest of this tool call shows these calls before it.
            let message = (content_before.clone(), before.clone());
            suspect.before = PrecedingContent::new(Arc::new(message), before.len());
        }
        // Recursion stops here: tool calls that follow a recovered one are not examined.
        let mended = Box::pin(mend(&exchange.case(), &suspect, account, &mut Flow::Waiting)).await?;
        disclosure.add(&mended, account);
        if mended.is_delivered_cut() {
            settled.end = Some(ReportedEnd::Cut);
            settled.last_new_call_is_cut = position == last;
        } else if mended.may_lack_calls() && mended.finish() != ReportedFinish::Normal {
            settled.end = Some(ReportedEnd::Cut);
        }
        let given = mended.into_delivered();
        if let Some(arguments) = given.text {
            call = with_arguments(call, arguments, given.signature);
        }
        before.push(call.clone());
        settled.new_calls.push(call);
    }
    Ok(())
}

/// Returns a tool call with these arguments and their signature.
fn with_arguments(call: ToolCall, arguments: String, signature: Option<String>) -> ToolCall {
    let signature = if arguments == call.arguments { call.signature } else { signature };
    ToolCall { arguments, signature, ..call }
}
