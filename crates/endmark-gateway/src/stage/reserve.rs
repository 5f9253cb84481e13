//! Creates what must exist before the first byte is sent upstream: the record of a request's calls, and the
//! list of its secrets.

use tokio::time::Instant;

use super::shape::Shaped;
use crate::budget::{CLOSING_OUTPUT_TOKENS, CLOSING_WORDS};
use crate::exchange::{Attempt, BudgetTold, ClientRequest, Exchange, ToolSchemas};
use crate::ledger::Ended;
use crate::recovery::StorePatience;
use crate::rescue::Refusal;
use crate::upstream::{of_changed_body, retries_of_client};

/// Creates the record of a request's calls. From now on, every call is recorded before it is made.
///
/// The record is boxed, because it is passed from stage to stage.
///
/// # Errors
/// [`Refusal::Budget`] if a budget does not admit the request.
pub(crate) async fn reserve(shaped: Shaped) -> Result<Box<Exchange>, Refusal> {
    let mut exchange = opened(shaped);
    if exchange.calls.have_budgets() {
        let held = admitted(&mut exchange).await;
        held.inspect_err(|_| exchange.calls.watch.end(Ended::Failed))?;
    }
    if let Some(work) = &mut exchange.work {
        work.rest();
    }
    Ok(exchange)
}

/// Reserves the first call. If it is the last one of its session, turns the request into a closing request.
async fn admitted(exchange: &mut Exchange) -> Result<(), Refusal> {
    let request = &exchange.attempt.request;
    let first = exchange.calls.reserve_first(&request.view().model, request).await;
    let first = first.map_err(Refusal::Budget)?;
    exchange.budget = BudgetTold::new(&first);
    if first.is_closing {
        let closing = request.closing(CLOSING_WORDS, CLOSING_OUTPUT_TOKENS);
        exchange.attempt.request = closing.map_err(|error| {
            Refusal::BadRequest(format!(
                "the budget of its session is used up, and it cannot be its last request: {error}"
            ))
        })?;
        exchange.is_closing = true;
        exchange.attempt.encoded = None;
        of_changed_body(&mut exchange.attempt.destination.headers);
    }
    Ok(())
}

fn opened(shaped: Shaped) -> Box<Exchange> {
    let Shaped { identified, calls, changed, uncondensed, may_condense } = shaped;
    let calls = calls.unwrap_or_else(|| identified.calls());
    let admitted = identified.admitted;
    let gateway = admitted.gateway;
    let mut destination = admitted.destination;
    if changed.is_any() {
        of_changed_body(&mut destination.headers);
    }
    Box::new(Exchange {
        recorder: calls.recorder().clone(),
        calls,
        store_patience: StorePatience::default(),
        client: ClientRequest {
            id: identified.id,
            task_id: identified.task_id,
            turn_number: identified.turn_number,
            mode: admitted.mode,
            retries: retries_of_client(&admitted.client.headers),
            demanded: admitted.demanded,
            schema: admitted.schema,
            deadline: Instant::now() + gateway.settings.limits.total,
            _claim: admitted.claim,
            _holding: admitted.holding,
        },
        is_closing: false,
        budget: BudgetTold::default(),
        tool_schemas: ToolSchemas::default(),
        attempt: Attempt {
            request: admitted.request,
            // The compressed bytes are valid only for an unchanged request.
            encoded: admitted.encoded.filter(|_| !changed.is_any()),
            destination,
            fallback: admitted.fallback,
            stands_in: false,
            set_aside: None,
            call: None,
            asks_usage: false,
            uncondensed,
            may_condense,
            retries: 0,
            lost_replies: 0,
            rounds_of_reading: 0,
        },
        changed,
        work: Some(admitted.work),
        gateway,
    })
}
