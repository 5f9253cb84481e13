//! Makes one further upstream call and reads its response without the echo.

use std::time::Duration;

use bytes::Bytes;
use endmark_recovery::{Ending, LoopDetector, Stop, ends_in_a_loop};
use endmark_wire::reply::{Choice, Continuation as Further, ToolCall};
use endmark_wire::sse;
use http::Response;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout, timeout_at};

use super::call::{CallFailure, send, with_heartbeats};
use super::case::RecoveryCase;
use super::expected_answer::ExpectedAnswer;
use super::rest_upstream::RestUpstream;
use super::retry_waits::RetryWaits;
use super::stream_passer::StreamPasser;
use super::suspect::HALF_SURROGATE;
use crate::body::{AnyBody, TimedBody};
use crate::ledger::{Call, CallEnd, CallUsage, read_late_usage};
use crate::reply::{Flow, LastDelivery};
use crate::upstream::{ReadError, is_event_stream, read_whole, with_stream_type};
use crate::work::{self, LARGE_BYTES};

/// The result of a further call.
// Fields: facts about one response that different decisions use.
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about one answer")]
pub(super) struct Continuation {
    /// The text that belongs to the reply, without the echo.
    pub(super) text: String,
    /// Whether the upstream began by repeating the unfinished message.
    pub(super) has_echo: bool,
    /// The tool calls that follow the text.
    pub(super) calls: Vec<ToolCall>,
    pub(super) ending: Ending,
    pub(super) stop: Option<Stop>,
    pub(super) spent: Option<CallUsage>,
    pub(super) has_reasoning: bool,
    pub(super) id: Option<String>,
    /// The provider's own continuation token.
    pub(super) resume_token: Option<Further>,
    /// The provider's signature for the text.
    pub(super) signature: Option<String>,
    /// The tool call that replaces the cut one.
    pub(super) call: Option<ToolCall>,
    /// Whether the response contains no other tool call.
    pub(super) is_lone_call: bool,
    /// The client's stop sequence that ended the response.
    pub(super) sequence: Option<String>,
    /// The raw response, if it is whole.
    pub(super) body: Option<Bytes>,
    /// Whether the response repeats itself. It was stopped for that reason, or reached its limit.
    pub(super) is_looping: bool,
    /// Maximum number of tokens in the response, which is its number of bytes, because each token has at
    /// least one. `None` if the upstream was stopped before the end, or if it generated hidden reasoning.
    pub(super) max_tokens: Option<u64>,
}

/// Makes one more call with `body`, and reads the response.
pub(super) async fn make_call(
    case: &RecoveryCase<'_>,
    site: &RestUpstream<'_>,
    (body, stream): (Vec<u8>, bool),
    expected: &ExpectedAnswer<'_>,
    patience: &mut RetryWaits,
    flow: &mut Flow<'_>,
) -> Result<Continuation, CallFailure> {
    let (mut answer, call) =
        send(case, site, Bytes::from(body), stream, expected.purpose, patience, flow).await?;
    let longest = patience.time_for_call();
    if stream {
        let limits = &case.settings.limits;
        let typed =
            with_heartbeats(limits.heartbeat, flow, with_stream_type(answer, limits.idle.min(longest)))
                .await?;
        answer = match typed {
            Ok(answer) => answer,
            Err(error) => return Err(lost_answer(call, &error)),
        };
    }
    if is_event_stream(answer.headers()) {
        read_streamed_answer(case, site, (answer, call, longest), expected, flow).await
    } else {
        read_whole_answer(case, site, (answer, call), expected, patience, flow).await
    }
}

/// Reads a complete response.
async fn read_whole_answer(
    case: &RecoveryCase<'_>,
    site: &RestUpstream<'_>,
    (answer, call): (Response<AnyBody>, Call),
    expected: &ExpectedAnswer<'_>,
    patience: &RetryWaits,
    flow: &mut Flow<'_>,
) -> Result<Continuation, CallFailure> {
    let limits = &case.settings.limits;
    let longest = patience.time_for_call();
    let read = read_whole(answer.into_body(), limits.reply_bytes, limits.idle);
    let body = match with_heartbeats(limits.heartbeat, flow, timeout(longest, read)).await? {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return Err(lost_answer(call, &error)),
        Err(_) => {
            call.settle(CallEnd::new(Ending::OverCap));
            return Err(CallFailure::Timeout(patience.total_call_time()));
        }
    };
    let _large = work::enter_pool_if_large(body.len()).await;
    let response = match site.request.response(&body) {
        Ok(response) => response,
        Err(error) => {
            call.settle(CallEnd::new(Ending::UpstreamError));
            return Err(CallFailure::AnswerLost(format!("the continuation cannot be read: {error}")));
        }
    };
    let reply = response.reply();
    call.record_text(Some(&reply.choices));
    let spent = call.settle(CallEnd::from_reply(reply));
    let Some(choice) = reply.choices.first() else {
        let why = "it contains no choice".to_owned();
        return Err(CallFailure::Unusable { why, spent, ending: Ending::Clean });
    };
    if let Some(why) = join_obstacle(case, choice) {
        return Err(CallFailure::Unusable { why, spent, ending: Ending::Clean });
    }
    let continuation = build_continuation(choice, Ending::Clean, spent, reply.id.as_deref(), expected, false);
    Ok(Continuation { body: Some(body), ..continuation })
}

/// Settles a response that began but cannot be read to its end.
fn lost_answer(call: Call, error: &ReadError) -> CallFailure {
    call.settle(CallEnd::new(match error {
        ReadError::Stalled(_) => Ending::Stalled,
        ReadError::TooLong(_) => Ending::OverCap,
        ReadError::Broken(_) | ReadError::Truncated(_) => Ending::Dropped,
    }));
    CallFailure::AnswerLost(format!("the continuation was lost: {error}"))
}

/// Returns the content of a choice that belongs to the continued part.
fn build_continuation(
    choice: &Choice,
    ending: Ending,
    spent: Option<CallUsage>,
    id: Option<&str>,
    expected: &ExpectedAnswer<'_>,
    is_looping: bool,
) -> Continuation {
    let answered = expected.part(choice);
    let finish = choice.finish.as_ref();
    let stop = finish.and_then(|finish| finish.stop);
    let is_looping = is_looping || (stop == Some(Stop::Limit) && ends_in_a_loop(answered.text));
    let (text, echoed) = match answered.text.strip_prefix(expected.echo) {
        Some(rest) if !expected.echo.is_empty() => (rest, true),
        _ => (answered.text, false),
    };
    Continuation {
        text: text.to_owned(),
        has_echo: echoed,
        calls: answered.calls_after.to_vec(),
        ending: choice.ending_after(ending),
        stop: if is_looping { Some(Stop::Repetition) } else { stop },
        spent,
        has_reasoning: choice.has_reasoning,
        id: id.map(str::to_owned),
        resume_token: choice.continuation.clone(),
        signature: choice.signature.clone(),
        call: answered.call.cloned(),
        is_lone_call: choice.tool_calls.len() == 1,
        sequence: finish.and_then(|finish| finish.sequence.clone()),
        body: None,
        is_looping,
        max_tokens: (!is_looping
            && (!choice.has_reasoning || choice.written.bytes() > choice.received_bytes as u64))
            .then(|| choice.written.bytes()),
    }
}

/// Reads a streamed response, and forwards text as soon as it is certain.
async fn read_streamed_answer(
    case: &RecoveryCase<'_>,
    site: &RestUpstream<'_>,
    (answer, call, longest): (Response<AnyBody>, Call, Duration),
    expected: &ExpectedAnswer<'_>,
    flow: &mut Flow<'_>,
) -> Result<Continuation, CallFailure> {
    let limits = &case.settings.limits;
    let until = Instant::now() + longest;
    let mut last_delivery = LastDelivery::new(limits.heartbeat);
    let mut body = answer.into_body();
    let mut decoder = sse::Decoder::new(limits.reply_bytes);
    let mut stream = site.request.stream(limits.reply_bytes);
    let mut passer = StreamPasser::new(expected);
    let (mut received, mut large) = (0_usize, None);
    let (mut loops, mut is_looping) = (LoopDetector::default(), false);
    let ending = 'reading: loop {
        let silent_at = Instant::now() + limits.idle;
        let next =
            timeout_at(until.min(silent_at), with_heartbeats(limits.heartbeat, flow, body.frame())).await;
        let frame = match next {
            Err(_) if until <= silent_at => break Ending::OverCap,
            Err(_) => break Ending::Stalled,
            Ok(alive) => match alive? {
                None if stream.received().choices().first().is_some_and(|choice| choice.finish.is_some()) => {
                    break Ending::Clean;
                }
                None | Some(Err(_)) => break Ending::Dropped,
                Some(Ok(frame)) => frame,
            },
        };
        let Ok(data) = frame.into_data() else { continue };
        if Instant::now() >= until {
            break Ending::OverCap;
        }
        received = received.saturating_add(data.len());
        if large.is_none() && received >= LARGE_BYTES {
            large = Some(work::enter_pool_if_large(received).await);
        }
        if decoder.push(&data).is_err() {
            break Ending::OverCap;
        }
        while let Some(event) = decoder.next_frame() {
            match stream.read_frame(&event) {
                // Content before an invalid chunk counts. Everything after it lacks the content of that chunk.
                Err(_) => break 'reading Ending::UpstreamError,
                Ok(chunk) if chunk.error.is_some() => break 'reading Ending::UpstreamError,
                Ok(chunk) if chunk.is_done => break 'reading Ending::Clean,
                Ok(_) => {}
            }
            let Some(choice) = stream.received().choices().first() else { continue };
            if choice.received_bytes > limits.reply_bytes {
                break 'reading Ending::OverCap;
            }
            // Read a response to its end even if it cannot be joined, because its usage is reported there.
            if join_obstacle(case, choice).is_none() {
                let part = expected.part_so_far(choice);
                passer.pass(part, flow).await?;
                is_looping = loops.is_looping(part.strip_prefix(expected.echo).unwrap_or(part));
            }
            if is_looping {
                // Dropping the response makes the upstream stop.
                break 'reading Ending::OverCap;
            }
        }
        last_delivery.keep_alive_if_idle(flow).await?;
    };
    if ending == Ending::Clean && stream.received().is_done() && !stream.received().is_counted() {
        read_late_usage(&mut decoder, &mut stream, &mut TimedBody::new(body, limits.idle, until)).await;
    }
    let all = stream.received();
    call.record_text(Some(all.choices()));
    let spent = call.settle(CallEnd::from_stream(ending, all));
    match all.choices().first() {
        Some(choice) => match join_obstacle(case, choice) {
            None => Ok(build_continuation(choice, ending, spent, all.id(), expected, is_looping)),
            Some(why) => Err(CallFailure::Unusable { why, spent, ending }),
        },
        None => Err(CallFailure::AnswerLost(format!(
            "the continuation's stream ended {} with nothing in it",
            ending.name()
        ))),
    }
}

/// Returns why a choice cannot be joined with the reply, or `None` if it can.
fn join_obstacle(case: &RecoveryCase<'_>, choice: &Choice) -> Option<String> {
    let is_withdrawn = |call: &ToolCall| Some(call.name.as_str()) == case.withdrawn_tool;
    if choice.can_continue() {
        let call = choice.tool_calls.iter().find(|call| is_withdrawn(call))?;
        return Some(format!("it calls {}, which is not offered any more", call.name));
    }
    Some(if choice.received_bytes > case.settings.limits.reply_bytes {
        "it is over [limits] reply_bytes".to_owned()
    } else if !choice.is_exact() {
        HALF_SURROGATE.to_owned()
    } else {
        "it contains more than text and function calls, for example a tool that the provider runs itself"
            .to_owned()
    })
}
