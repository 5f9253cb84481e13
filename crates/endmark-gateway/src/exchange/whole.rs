//! Replies that come as a whole.

use bytes::Bytes;
use endmark_core::{Ending, Stop};
use endmark_wire::error::ResponseError;
use endmark_wire::json::unmarked;
use endmark_wire::reply::Choice;
use endmark_wire::response::{self as wire, Reply, ReplyEdit};
use endmark_wire::writer::End;
use http::{Response, header};

use super::Exchange;
use super::disclose::Disclosure;
use super::settle::{Settled, add};
use super::suspects::{Suspects, before, lead, suspects, without_surplus, worst};
use crate::body::{AnyBody, full, preceded};
use crate::held::Holding;
use crate::ledger::{Call, CallEnd, Ended};
use crate::recovery::{Account, Allowance, Flow, mend};
use crate::rescue::Refusal;
use crate::upstream::{Read, ReadError, of_another_body, read_up_to};

/// Answers with the whole reply; one that needs nothing is passed byte for byte.
pub(crate) async fn whole(
    mut exchange: Box<Exchange>,
    answer: Response<AnyBody>,
) -> Result<Response<AnyBody>, Refusal> {
    let (mut head, body) = answer.into_parts();
    // The room that the body takes is given back when all is done with it.
    let (body, mut holding) = match read(&mut exchange, body).await? {
        Received::Whole(body, holding) => (body, holding),
        Received::Unread(body) => return Ok(Response::from_parts(head, body)),
    };
    let call = exchange.call.take();
    let response = match exchange.request.response(&body) {
        Ok(response) => response,
        Err(error @ ResponseError::Without(_)) => {
            tracing::warn!(request = exchange.id, %error, "a reply passes unread");
            settle(call, CallEnd::unread(Ending::Clean));
            exchange.calls.watch.end(Ended::Unread);
            return Ok(Response::from_parts(head, full(body)));
        }
        Err(_) if ends_too_early(&body) => {
            settle(call, CallEnd::new(Ending::Dropped));
            let upstream = exchange.upstream_name().to_owned();
            return Err(Refusal::AnswerLost { upstream, error: ReadError::CutShort(body.len()) });
        }
        Err(error) => {
            settle(call, CallEnd::new(Ending::UpstreamError));
            return Err(Refusal::NotTheFormat {
                upstream: exchange.upstream_name().to_owned(),
                what: format!("{} ({error})", content_type(&head.headers)),
            });
        }
    };
    let reply = response.reply();
    if !holding.grow(reply.entry_bytes()) {
        tracing::warn!(request = exchange.id, "a reply passes unread: [limits] held_bytes is reached");
        settle(call, CallEnd::unread(Ending::OverCap));
        exchange.calls.watch.end(Ended::Unread);
        return Ok(Response::from_parts(head, full(body)));
    }
    let parts = parts(&exchange, reply);
    settle(call, ended(reply, &parts));

    let came = reply.choices.iter().map(|choice| choice.received).sum();
    let counted = reply.usage.as_ref().map(|usage| usage.completion);
    let mut account = Account::new(Allowance::of(&exchange, counted, came));
    account.open(reply.usage.as_ref(), Ending::Clean);
    let mut disclosure = Disclosure::new(&exchange);
    let mut choices = Vec::new();
    for (choice, parts) in reply.choices.iter().zip(&parts) {
        let mut settled = Settled::default();
        for suspect in &parts.left {
            let gone = |_| Refusal::BadRequest("the client went away".to_owned());
            let mended = mend(&exchange, suspect, &mut account, &mut Flow::Waiting).await.map_err(gone)?;
            add(&exchange, choice, suspect, mended, &mut account, &mut disclosure, &mut settled)
                .await
                .map_err(gone)?;
        }
        choices.push((choice, settled));
    }
    exchange.calls.watch.end(Ended::Replied(disclosure.outcome()));
    disclosure.write_headers(&mut head.headers);
    if !disclosure.has_something() {
        return Ok(Response::from_parts(head, full(body)));
    }
    let anew = anew(&exchange, &choices);
    let mut edit = anew.as_ref().unwrap_or(&response).edit();
    for (choice, settled) in &choices {
        match anew.as_ref().and_then(|anew| anew.reply().choices.first()) {
            Some(own) => write_anew(edit.as_mut(), own, lead(&exchange, &own.text), settled),
            None => write(&exchange, edit.as_mut(), choice, settled),
        }
    }
    if account.has_further_calls() {
        if let Some(usage) = account.total() {
            edit.set_usage(&usage);
        }
        let given = anew.as_ref().unwrap_or(&response).reply();
        if let Some(id) = id_of(given, &choices, &account) {
            edit.set_id(id);
        }
    }
    of_another_body(&mut head.headers);
    Ok(Response::from_parts(head, full(edit.finish())))
}

/// The reply that stands in the place of one of which nothing but thoughts came. Its own thoughts belong to it, with
/// their signatures: those of the first would be refused where a client sends them back.
fn anew(exchange: &Exchange, choices: &[(&Choice, Settled)]) -> Option<wire::Response> {
    let [(first, settled)] = choices else { return None };
    if !first.text.is_empty() || !first.tool_calls.is_empty() || settled.end == Some(End::Cut) {
        return None;
    }
    let anew = exchange.request.response(settled.anew.as_ref()?).ok()?;
    matches!(anew.reply().choices.as_slice(), [own] if own.can_go_on()).then_some(anew)
}

/// The id to go on from, where it is another than the reply's own: after a text that of the last answer. A call's result
/// goes to the answer that has the call.
fn id_of<'a>(given: &Reply, choices: &'a [(&Choice, Settled)], account: &'a Account) -> Option<&'a str> {
    if given.choices.iter().any(|choice| !choice.tool_calls.is_empty()) {
        return None;
    }
    let of_new_calls = choices.iter().find_map(|(_, settled)| settled.new_calls_in.as_deref());
    of_new_calls.or(account.last_id.as_deref())
}

/// Writes what became of a choice into the reply that was received.
fn write(exchange: &Exchange, edit: &mut dyn ReplyEdit, choice: &Choice, settled: &Settled) {
    let before = before(exchange, choice);
    let left_out = settled.left_out(choice).filter(|_| before.is_empty() && !edit.shows_cut_calls());
    if let Some(text) = settled.text.as_ref().filter(|_| left_out.is_none()) {
        let own = text.strip_prefix(lead(exchange, &choice.text)).filter(|_| before.is_empty());
        edit.set_text(choice.index, &format!("{before}{}", own.unwrap_or(text)));
    }
    if let Some(signature) = settled.signature.as_ref().filter(|_| !settled.text_became_call) {
        edit.set_signature(choice.index, signature);
    }
    for call in &settled.calls {
        edit.set_arguments(choice.index, call.index, &call.arguments);
        edit.sign_call(choice.index, call.index, call.signature.as_deref());
    }
    if !settled.cut_calls.is_empty() {
        edit.leave_cut(choice.index, &settled.cut_calls);
    }
    if !settled.new_calls.is_empty() {
        if settled.text_became_call && left_out.is_none() {
            edit.set_text(choice.index, before);
        }
        edit.add_calls(choice.index, &settled.new_calls);
    }
    if let Some(call) = left_out {
        edit.set_text(choice.index, &call.left_out());
    }
    if let Some(end) = settled.end {
        edit.set_end(choice.index, end);
    }
    if let Some(sequence) = settled.sequence.as_ref().filter(|_| settled.end == Some(End::Turn)) {
        edit.set_stop_sequence(choice.index, sequence);
    }
}

/// Writes what is more than this into the reply that was given when the request was asked again.
fn write_anew(edit: &mut dyn ReplyEdit, own: &Choice, lead: &str, settled: &Settled) {
    let text = settled.text.as_deref().map(|text| text.strip_prefix(lead).unwrap_or(text));
    if let Some(text) = text.filter(|text| *text != own.text) {
        edit.set_text(own.index, text);
    }
    if own.tool_calls.is_empty() {
        edit.add_calls(own.index, &settled.new_calls);
    }
    for (call, whole) in own.tool_calls.iter().zip(&settled.new_calls) {
        if call.arguments != whole.arguments {
            edit.set_arguments(own.index, call.index, &whole.arguments);
            edit.sign_call(own.index, call.index, whole.signature.as_deref());
        }
    }
    let stop = own.finish.as_ref().and_then(|finish| finish.stop);
    if let Some(end) = settled.end.filter(|_| !matches!(stop, Some(Stop::Normal | Stop::Sequence))) {
        edit.set_end(own.index, end);
    }
}

/// Whether this is the beginning of a JSON object, and not something else altogether: its connection was closed where
/// that is the frame, or it is longer than was said.
pub(super) fn ends_too_early(body: &[u8]) -> bool {
    let body = unmarked(body);
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    is_object && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err_and(|error| error.is_eof())
}

/// The body of a reply, as far as it is kept.
enum Received {
    /// All of it, and the room that it takes.
    Whole(Bytes, Holding),
    /// It is too long: it passes, and its call is settled when it ends.
    Unread(AnyBody),
}

/// Reads the body of a reply.
async fn read(exchange: &mut Exchange, body: AnyBody) -> Result<Received, Refusal> {
    let limits = &exchange.gateway.settings.limits;
    let idle = limits.idle;
    let mut holding = exchange.gateway.held.part(limits.held_bytes);
    let (why, beginning, rest) = match read_up_to(body, limits.reply_bytes, idle, Some(&mut holding)).await {
        Ok(Read::Whole(body)) => return Ok(Received::Whole(body, holding)),
        Ok(Read::Longer(beginning, rest)) => ("it is over [limits] reply_bytes", beginning, rest),
        Ok(Read::NoRoom(beginning, rest)) => ("[limits] held_bytes is reached", beginning, rest),
        Err(error) => {
            let stalled = matches!(error, ReadError::Stalled(_));
            settle(
                exchange.call.take(),
                CallEnd::new(if stalled { Ending::Stalled } else { Ending::Dropped }),
            );
            return Err(Refusal::AnswerLost { upstream: exchange.upstream_name().to_owned(), error });
        }
    };
    tracing::warn!(request = exchange.id, why, "a reply passes unread");
    Ok(Received::Unread(exchange.pass_unread(preceded(beginning, rest), Ending::OverCap)))
}

fn settle(call: Option<Call>, end: CallEnd) {
    if let Some(call) = call {
        call.settle(end);
    }
}

/// The parts of each choice that may be cut.
fn parts(exchange: &Exchange, reply: &Reply) -> Vec<Suspects> {
    let output_tokens = reply.usage.as_ref().map(|usage| usage.completion);
    let of = |choice| suspects(exchange, choice, 0, Ending::Clean, output_tokens, None);
    let mut parts: Vec<Suspects> = reply.choices.iter().map(of).collect();
    without_surplus(exchange, parts.iter_mut());
    parts
}

/// How the call ended that gave the reply.
fn ended(reply: &Reply, parts: &[Suspects]) -> CallEnd {
    CallEnd {
        stop: reply.choices.first().and_then(|choice| choice.finish.as_ref()?.stop),
        judged: worst(parts.iter().map(|parts| parts.worst)),
        usage: reply.usage.clone(),
        model: Some(reply.model.clone()),
        ..CallEnd::new(Ending::Clean)
    }
}

fn content_type(headers: &http::HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("no content type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_object_is_told_from_a_whole_one_and_from_what_is_none() {
        let whole = r#" {"a": [1, "\u00e9"], "b": {"c": null}}"#;
        for at in 2..whole.len() {
            assert!(ends_too_early(&whole.as_bytes()[..at]), "{}", &whole[..at]);
        }
        assert!(ends_too_early("\u{feff}{\"a\"".as_bytes()));
        for other in [whole, "", " ", "<html>", "{]", "{\"a\": 1}}", "data: {", "[1", "tru"] {
            assert!(!ends_too_early(other.as_bytes()), "{other}");
        }
    }
}
