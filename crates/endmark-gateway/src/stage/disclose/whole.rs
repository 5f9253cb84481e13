//! Sends a reply that is not a stream. A reply that needed no recovery is unchanged.

use endmark_recovery::Stop;
use endmark_wire::edit::Edits;
use endmark_wire::reply::Choice;
use endmark_wire::response::{self as wire, Reply, ReplyEdit};
use endmark_wire::writer::ReportedEnd;
use http::response::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::body::{AnyBody, full};
use crate::disclosure::{Disclosure, REPLY_INCOMPLETE, with_cost};
use crate::exchange::Exchange;
use crate::recovered_items;
use crate::recovery::TokenAccount;
use crate::stage::mend::choice::SettledChoice;
use crate::stage::observe::suspects::{client_beginning, text_before_part};
use crate::stage::settle::whole::RecordedReply as SettledReply;
use crate::upstream::remove_replaced_body_headers;

/// Responds with the complete reply. If it needed no recovery, it is forwarded unchanged.
pub(crate) async fn answer_with_reply(reply: SettledReply) -> Response<AnyBody> {
    let mended = reply.mended_reply;
    let (observed, account, disclosure) = (*mended.observed, mended.account, mended.disclosure);
    let (exchange, response) = (&*observed.exchange, &observed.response);
    let (mut head, body) = (observed.head, observed.body);
    disclosure.write_headers(&mut head.headers);
    disclosure.write_cost(exchange, &mut head.headers);
    if !disclosure.has_content() {
        return Response::from_parts(head, full(body));
    }
    if disclosure.is_error() {
        let parts = response.reply().choices.iter().zip(&mended.choices);
        return incomplete_error(exchange, head, &disclosure, &account, parts);
    }
    let choices: Vec<(&Choice, SettledChoice)> =
        response.reply().choices.iter().zip(mended.choices).collect();
    let replacement = replacement_reply(exchange, &choices);
    let mut edit = replacement.as_ref().unwrap_or(response).edit();
    for (choice, settled) in &choices {
        match replacement.as_ref().and_then(|replacement| replacement.reply().choices.first()) {
            Some(own) => {
                write_replacement(edit.as_mut(), own, client_beginning(exchange, &own.text), settled);
            }
            None => write_choice(exchange, edit.as_mut(), choice, settled),
        }
    }
    if account.has_further_calls() {
        if let Some(usage) = account.total() {
            edit.set_usage(&usage);
        }
        let delivered = replacement.as_ref().unwrap_or(response).reply();
        if let Some(id) = continuation_id(delivered, &choices, &account) {
            edit.set_id(id);
        }
    }
    remove_replaced_body_headers(&mut head.headers);
    let changed = edit.finish();
    recovered_items::store_items(exchange, response.changed_items(&changed)).await;
    Response::from_parts(head, full(changed))
}

/// The status of an error that replaces an incomplete reply. Clients do not treat this status as temporary.
pub(super) const INCOMPLETE_STATUS: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

/// Returns an error instead of the reply. The error contains the received text.
fn incomplete_error<'a>(
    exchange: &Exchange,
    mut head: Parts,
    disclosure: &Disclosure,
    account: &TokenAccount,
    choices: impl Iterator<Item = (&'a Choice, &'a SettledChoice)>,
) -> Response<AnyBody> {
    let format = exchange.attempt.request.format();
    let (mut text, mut calls) = (String::new(), Vec::new());
    for (choice, settled) in choices {
        text.push_str(settled.text.as_deref().unwrap_or(&choice.text));
        for call in choice.tool_calls.iter().chain(&settled.new_calls) {
            let mended = settled.calls.iter().rfind(|mended| mended.index == call.index);
            let arguments = &mended.unwrap_or(call).arguments;
            calls.push(json!({"name": call.name, "arguments": arguments}));
        }
    }
    let disclosed = disclosure.json().map(|disclosed| with_cost(&disclosed, exchange, account));
    let mut disclosed: Value = disclosed
        .and_then(|disclosed| serde_json::from_str(disclosed.get()).ok())
        .unwrap_or_else(|| json!({}));
    disclosed["partial"] = text.into();
    if !calls.is_empty() {
        disclosed["partial_calls"] = calls.into();
    }
    let body = format.error_body(INCOMPLETE_STATUS.as_u16(), REPLY_INCOMPLETE, &disclosure.error_message());
    let edited = Edits::new(&body).ok().and_then(|mut edits| {
        edits.set("error.endmark", &disclosed.to_string()).ok()?;
        Some(edits.finish())
    });
    remove_replaced_body_headers(&mut head.headers);
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.headers.insert("x-should-retry", HeaderValue::from_static("false"));
    head.status = INCOMPLETE_STATUS;
    Response::from_parts(head, full(edited.unwrap_or(body)))
}

/// Returns the reply that replaces one that contained only reasoning. It keeps its own reasoning and
/// signatures, because a provider would reject those of the first reply in a later request.
fn replacement_reply(exchange: &Exchange, choices: &[(&Choice, SettledChoice)]) -> Option<wire::Response> {
    let [(first, settled)] = choices else { return None };
    if !first.text.is_empty() || !first.tool_calls.is_empty() || settled.end == Some(ReportedEnd::Cut) {
        return None;
    }
    let replacement = exchange.attempt.request.response(settled.replacement_body.as_ref()?).ok()?;
    matches!(replacement.reply().choices.as_slice(), [own] if own.can_continue()).then_some(replacement)
}

/// Returns the id to continue from, if it differs from the reply's own id. After text it is the id of the
/// last response. A tool result belongs to the response that contains the tool call.
fn continuation_id<'a>(
    given: &Reply,
    choices: &'a [(&Choice, SettledChoice)],
    account: &'a TokenAccount,
) -> Option<&'a str> {
    if given.choices.iter().any(|choice| !choice.tool_calls.is_empty()) {
        return None;
    }
    let of_new_calls = choices.iter().find_map(|(_, settled)| settled.new_calls_in.as_deref());
    of_new_calls.or(account.last_id.as_deref())
}

/// Writes the outcome of a choice into the received reply.
fn write_choice(exchange: &Exchange, edit: &mut dyn ReplyEdit, choice: &Choice, settled: &SettledChoice) {
    let before = text_before_part(exchange, choice);
    let omitted_call = settled.omitted_call(choice).filter(|_| before.is_empty() && !edit.shows_cut_calls());
    if let Some(text) = settled.text.as_ref().filter(|_| omitted_call.is_none()) {
        let own = text.strip_prefix(client_beginning(exchange, &choice.text)).filter(|_| before.is_empty());
        edit.set_text(choice.index, &format!("{before}{}", own.unwrap_or(text)));
    }
    if let Some(signature) = settled.signature.as_ref().filter(|_| !settled.replaces_text_by_call) {
        edit.set_signature(choice.index, signature);
    }
    for call in &settled.calls {
        edit.set_arguments(choice.index, call.index, &call.arguments);
        edit.sign_call(choice.index, call.index, call.signature.as_deref());
    }
    if !settled.cut_calls.is_empty() {
        edit.note_cut_calls(choice.index, &settled.cut_calls);
    }
    if !settled.new_calls.is_empty() {
        if settled.replaces_text_by_call && omitted_call.is_none() {
            edit.set_text(choice.index, before);
        }
        edit.add_calls(choice.index, &settled.new_calls);
    }
    if let Some(call) = omitted_call {
        edit.set_text(choice.index, &call.omission_text());
    }
    if let Some(end) = settled.end {
        edit.set_end(choice.index, end);
    }
    if let Some(sequence) = settled.sequence.as_ref().filter(|_| settled.end == Some(ReportedEnd::Turn)) {
        edit.set_stop_sequence(choice.index, sequence);
    }
}

/// Edits the repeated reply where recovery has changed its text, tool calls or end.
fn write_replacement(edit: &mut dyn ReplyEdit, own: &Choice, lead: &str, settled: &SettledChoice) {
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
