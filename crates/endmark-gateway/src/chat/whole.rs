//! Replies that come as a whole.

use endmark_core::Ending;
use endmark_wire::openai_chat::ChatResponse;
use http::{Response, header};

use super::disclose::Disclosure;
use super::exchange::Exchange;
use super::settle::{self, Settled};
use super::suspects::{lead, suspects};
use crate::body::{AnyBody, full, preceded};
use crate::recovery::{Account, Flow, mend};
use crate::rescue::Refusal;
use crate::upstream::{Read, of_another_body, read_up_to};

/// Answers with the whole reply; one that needs nothing is passed byte for byte.
pub(crate) async fn whole(
    exchange: Exchange,
    answer: Response<AnyBody>,
) -> Result<Response<AnyBody>, Refusal> {
    let (mut head, body) = answer.into_parts();
    let limits = &exchange.gateway.settings.limits;
    let read = read_up_to(body, limits.reply_bytes, limits.idle)
        .await
        .map_err(|error| Refusal::AnswerLost { upstream: exchange.upstream_name().to_owned(), error })?;
    let body = match read {
        Read::Whole(body) => body,
        Read::Longer(beginning, rest) => {
            tracing::warn!(request = exchange.id, "a reply over [limits] reply_bytes passes unread");
            return Ok(Response::from_parts(head, preceded(beginning, rest)));
        }
    };
    let response = ChatResponse::parse(&body, &exchange.request).map_err(|error| Refusal::NotTheFormat {
        upstream: exchange.upstream_name().to_owned(),
        what: format!("{} ({error})", content_type(&head.headers)),
    })?;

    let mut account = Account::new(exchange.gateway.settings.resume.max_extra_tokens);
    account.first = response.usage;
    let mut disclosure = Disclosure::new(&exchange);
    let mut edit = response.edit();
    for choice in &response.choices {
        let mut settled = Settled::default();
        for suspect in
            suspects(&exchange, choice, Ending::Clean, response.usage.map(|usage| usage.completion))
        {
            let gone = |_| Refusal::BadRequest("the client went away".to_owned());
            let mended = mend(&exchange, &suspect, &mut account, &mut Flow::Waiting).await.map_err(gone)?;
            settle::add(&exchange, choice, &suspect, mended, &mut account, &mut disclosure, &mut settled)
                .await
                .map_err(gone)?;
        }
        if let Some(text) = &settled.text {
            edit.set_text(choice.index, text.strip_prefix(lead(&exchange, &choice.text)).unwrap_or(text));
        }
        for (call, arguments) in &settled.arguments {
            edit.set_arguments(choice.index, *call, arguments);
        }
        if !settled.new_calls.is_empty() {
            edit.set_tool_calls(choice.index, &settled.new_calls);
            if settled.text_became_call {
                edit.set_text(choice.index, "");
            }
        }
        if let Some(word) = settled.finish {
            edit.set_finish(choice.index, word);
        }
    }
    disclosure.write_headers(&mut head.headers);
    if !disclosure.has_something() {
        return Ok(Response::from_parts(head, full(body)));
    }
    if account.has_further_calls() {
        edit.set_usage(&account.total());
    }
    of_another_body(&mut head.headers);
    Ok(Response::from_parts(head, full(edit.finish())))
}

fn content_type(headers: &http::HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("no content type")
}
