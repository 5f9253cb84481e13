//! Prepares a request before its first byte is sent upstream: creates the record of its calls, and reserves
//! the first call in its budgets.

use tokio::time::Instant;

use super::shape::ShapedRequest;
use crate::budget::{CLOSING_INSTRUCTION, CLOSING_OUTPUT_TOKENS};
use crate::exchange::{Attempt, BudgetDisclosure, ClientRequest, Exchange, ToolSchemas};
use crate::ledger::RequestEnd;
use crate::recovery::StoreWaitLimit;
use crate::refusals::Refusal;
use crate::upstream::{client_retries, remove_body_headers};

/// Creates the record of a request's calls. Afterwards, each call is recorded before it starts.
///
/// The record is boxed, because it is passed from stage to stage.
///
/// # Errors
/// [`Refusal::Budget`] if a budget does not admit the request.
pub(crate) async fn reserve(shaped: ShapedRequest) -> Result<Box<Exchange>, Refusal> {
    let mut exchange = open_exchange(shaped);
    if exchange.calls.have_budgets() {
        let held = reserve_first_call(&mut exchange).await;
        held.inspect_err(|_| exchange.calls.watch.end(RequestEnd::Failed))?;
    }
    if let Some(work) = &mut exchange.work {
        work.release();
    }
    Ok(exchange)
}

/// Reserves the first call in its budgets. If it is the last call of its session, the request becomes a
/// closing request.
async fn reserve_first_call(exchange: &mut Exchange) -> Result<(), Refusal> {
    let request = &exchange.attempt.request;
    let first = exchange.calls.reserve_first(&request.view().model, request).await;
    let first = first.map_err(Refusal::Budget)?;
    exchange.budget = BudgetDisclosure::new(&first);
    if first.is_closing {
        let closing = request.closing_request(CLOSING_INSTRUCTION, CLOSING_OUTPUT_TOKENS);
        exchange.attempt.request = closing.map_err(|error| {
            Refusal::BadRequest(format!(
                "the budget of its session is used up, and it cannot be its last request: {error}"
            ))
        })?;
        exchange.is_closing = true;
        exchange.attempt.encoded = None;
        remove_body_headers(&mut exchange.attempt.destination.headers);
    }
    Ok(())
}

fn open_exchange(shaped: ShapedRequest) -> Box<Exchange> {
    let ShapedRequest { identified_request: identified, calls, changes: changed, uncondensed, may_condense } =
        shaped;
    let calls = calls.unwrap_or_else(|| identified.calls());
    let admitted = identified.admitted;
    let gateway = admitted.gateway;
    let mut destination = admitted.destination;
    if changed.has_changes() {
        remove_body_headers(&mut destination.headers);
    }
    Box::new(Exchange {
        recorder: calls.recorder().clone(),
        calls,
        store_wait_limit: StoreWaitLimit::default(),
        client: ClientRequest {
            id: identified.id,
            task_id: identified.task_id,
            turn_number: identified.turn_number,
            mode: admitted.mode,
            retries: client_retries(&admitted.client.headers),
            required_format: admitted.required_format,
            schema: admitted.schema,
            deadline: Instant::now() + gateway.settings.limits.total,
            _claim: admitted.claim,
            _body_memory: admitted.body_memory,
        },
        is_closing: false,
        budget: BudgetDisclosure::default(),
        tool_schemas: ToolSchemas::default(),
        attempt: Attempt {
            request: admitted.request,
            // The compressed bytes are valid only for an unchanged request.
            encoded: admitted.encoded.filter(|_| !changed.has_changes()),
            destination,
            fallback: admitted.fallback,
            is_fallback: false,
            saved_request: None,
            call: None,
            requests_usage: false,
            uncondensed,
            may_condense,
            retries: 0,
            lost_replies: 0,
            reading_rounds: 0,
        },
        changes: changed,
        work: Some(admitted.work),
        gateway,
    })
}
