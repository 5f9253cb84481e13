//! Answers a model that wants to read omitted parts of capped results. The gateway answers the tool call, and
//! requests the reply again, up to a limit. The client gets only the reply that follows (CX-5).

use std::pin::pin;

use endmark_recovery::Ending;
use endmark_wire::own_tool::{CallAnswer, Turn};
use endmark_wire::reply::Choice;
use endmark_wire::sse::Decoder;
use endmark_wire::stream::Reader;
use http::Response;

use crate::admission::BytesReservation;
use crate::body::{AnyBody, TimedBody, full};
use crate::exchange::Exchange;
use crate::ledger::{CallEnd, RequestEnd};
use crate::refusals::Refusal;
use crate::shaping::{READ_TOOL, answer_read_call};
use crate::stage::observe::whole::ObservedReply;
use crate::work::{self, LARGE_BYTES};

/// Maximum number of times that a model may read before it replies. Each time costs a call with the complete
/// conversation.
const MAX_READS: u32 = 4;

/// The result of a client's tool call that arrived together with a call of `endmark_read`. The client does not get
/// that call, because the model made it before it had read the result. The model can repeat it.
const CALL_NOT_RUN: &str = "This call was not run: it came together with a call of endmark_read, whose result you have now. \
    Make it again if it is still needed.";

/// Appended to the last results.
const LAST_PART_NOTE: &str = "\n[This was the last part that can be read now.]";

/// The result of searching a reply for calls of `endmark_read`.
pub(crate) enum OwnCallOutcome<R> {
    /// The reply contained such calls. They were answered, and the next reply must be requested.
    Answered(Box<Exchange>),
    /// The reply contained no such calls.
    Reply(R),
}

/// Answers calls of `endmark_read` in a reply that is not a stream.
///
/// # Errors
/// [`Refusal`] if the model does not stop reading.
pub(crate) async fn answer_in_whole(
    mut observed: Box<ObservedReply>,
) -> Result<OwnCallOutcome<Box<ObservedReply>>, Refusal> {
    if !observed.exchange.offers_read_tool() {
        return Ok(OwnCallOutcome::Reply(observed));
    }
    if !calls_read_tool(&observed.response.reply().choices) {
        let request = &mut observed.exchange.attempt.request;
        // Continuation requests must not offer `endmark_read`.
        *request = request.without_tool(&READ_TOOL);
        return Ok(OwnCallOutcome::Reply(observed));
    }
    let turn = observed.response.turn();
    Ok(OwnCallOutcome::Answered(answer_calls(observed.exchange, turn.as_ref()).await?))
}

fn calls_read_tool(choices: &[Choice]) -> bool {
    choices.iter().flat_map(|choice| &choice.tool_calls).any(|call| call.name == READ_TOOL.name)
}

/// Answers calls of `endmark_read` in a stream. The stream is held back until it has ended: a model may call the tool
/// at the very end, and data that was sent cannot be withdrawn.
///
/// # Errors
/// [`Refusal`] if the model does not stop reading, or its reply exceeds the memory limit.
pub(crate) async fn answer_in_stream(
    mut exchange: Box<Exchange>,
    answer: Response<AnyBody>,
) -> Result<OwnCallOutcome<(Box<Exchange>, Response<AnyBody>)>, Refusal> {
    if !exchange.offers_read_tool() {
        return Ok(OwnCallOutcome::Reply((exchange, answer)));
    }
    let (head, body) = answer.into_parts();
    let held_stream = read_held_stream(&exchange, body).await?;
    let received = held_stream.reader.received();
    if !calls_read_tool(received.choices()) {
        exchange.attempt.request = exchange.attempt.request.without_tool(&READ_TOOL);
        return Ok(OwnCallOutcome::Reply((exchange, Response::from_parts(head, full(held_stream.bytes)))));
    }
    let turn = exchange.attempt.request.stream_turn(&held_stream.events, received);
    if let Some(call) = exchange.attempt.call.take() {
        call.record_text(Some(received.choices()));
        call.settle(CallEnd::from_stream(held_stream.ending, received));
    }
    Ok(OwnCallOutcome::Answered(answer_calls(exchange, turn.as_ref()).await?))
}

/// A stream that is held back.
struct HeldStream {
    bytes: Vec<u8>,
    reader: Box<dyn Reader>,
    /// The data of the events.
    events: Vec<String>,
    ending: Ending,
    /// The memory reserved for the stream.
    memory: BytesReservation,
}

/// Reads a stream to its end. If it breaks off, it is returned as received, and recovery is decided when it is read
/// again.
async fn read_held_stream(exchange: &Exchange, body: AnyBody) -> Result<HeldStream, Refusal> {
    let (gateway, limits) = (&exchange.gateway, &exchange.gateway.settings.limits);
    let mut upstream = TimedBody::new(body, limits.idle, exchange.client.deadline);
    let mut decoder = Decoder::new(limits.reply_bytes);
    let mut held_stream = HeldStream {
        bytes: Vec::new(),
        reader: exchange.attempt.request.stream(limits.reply_bytes),
        events: Vec::new(),
        ending: Ending::Dropped,
        memory: gateway.held_bytes.new_reservation(limits.held_bytes),
    };
    let mut large = None;
    loop {
        let next = gateway.stopping.unless_interrupted(pin!(upstream.next())).await;
        let data = match next.unwrap_or(Err(Ending::Interrupted)) {
            Ok(Some(data)) => data,
            Ok(None) => return Ok(held_stream),
            Err(ending) => return Ok(HeldStream { ending, ..held_stream }),
        };
        if large.is_none() && held_stream.bytes.len() + data.len() >= LARGE_BYTES {
            large = Some(work::enter_pool_if_large(LARGE_BYTES).await);
        }
        // The bytes are stored twice, raw and as events.
        let has_room =
            held_stream.memory.grow(data.len() * 2) && held_stream.bytes.len() <= limits.reply_bytes;
        if decoder.push(&data).is_err() || !has_room {
            exchange.calls.watch.end(RequestEnd::Failed);
            return Err(Refusal::ReadToolFailed(
                "says more than can be held to look for calls of endmark_read",
            ));
        }
        held_stream.bytes.extend_from_slice(&data);
        while let Some(frame) = decoder.next_frame() {
            // Data that cannot be parsed is not a call. The next reader of the stream handles it.
            let is_end = held_stream
                .reader
                .read_frame(&frame)
                .is_ok_and(|event| event.is_done || event.error.is_some());
            held_stream.events.extend(frame.data);
            if is_end {
                return Ok(HeldStream { ending: Ending::Clean, ..held_stream });
            }
        }
    }
}

/// Returns the exchange with a request that continues after the answers to these calls.
async fn answer_calls(mut exchange: Box<Exchange>, turn: Option<&Turn>) -> Result<Box<Exchange>, Refusal> {
    let watch = std::sync::Arc::clone(&exchange.calls.watch);
    let refuse = |why| {
        watch.end(RequestEnd::Failed);
        Refusal::ReadToolFailed(why)
    };
    if exchange.is_closing {
        return Err(refuse("calls endmark_read where no tool is offered any more"));
    }
    if exchange.attempt.reading_rounds >= MAX_READS {
        return Err(refuse("calls endmark_read again and again"));
    }
    let cannot_continue = || refuse("calls endmark_read in a conversation that cannot go on");
    let turn = turn.ok_or_else(cannot_continue)?;
    if turn.calls().iter().any(|call| !call.can_be_answered) {
        return Err(refuse("calls endmark_read together with a tool whose result is not text"));
    }
    exchange.attempt.reading_rounds += 1;
    let is_last = exchange.attempt.reading_rounds == MAX_READS;
    let mut answers = Vec::with_capacity(turn.calls().len());
    for call in turn.calls() {
        let mut answer = if call.name == READ_TOOL.name {
            answer_read_call(&exchange.subject(), &call.arguments).await
        } else {
            CallAnswer { text: CALL_NOT_RUN.to_owned(), is_error: true }
        };
        if is_last {
            answer.text.push_str(LAST_PART_NOTE);
        }
        answers.push(answer);
    }
    let next = exchange.attempt.request.continue_turn(turn, &answers);
    let next = next.ok_or_else(cannot_continue)?;
    exchange.attempt.request = if is_last { next.without_tool(&READ_TOOL) } else { next };
    // The original request does not contain the parts that the model has read.
    (exchange.attempt.may_condense, exchange.attempt.uncondensed) = (false, None);
    let (request, round, calls) = (&exchange.client.id, exchange.attempt.reading_rounds, answers.len());
    tracing::info!(request, round, calls, "the model reads what was left out of a result");
    Ok(exchange)
}
