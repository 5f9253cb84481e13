//! What has to be there before the first byte goes upstream: what writes down the calls of a request, and what of it
//! nobody else is to read.

use std::sync::Arc;

use http::request::Parts;
use tokio::time::Instant;

use super::shape::Shaped;
use crate::budget::{CLOSING_OUTPUT_TOKENS, CLOSING_WORDS};
use crate::exchange::{BudgetTold, Exchange, ToolSchemas};
use crate::gateway::Gateway;
use crate::keys::OwnKey;
use crate::ledger::{Caller, Calls, Ended, Watch};
use crate::recovery::StorePatience;
use crate::rescue::Refusal;
use crate::scrub::{Scrubber, Secrets};
use crate::upstream::{Destination, of_changed_body, secrets_in};

/// Opens the account of a request's calls. From here on every one of them is noted before it is made.
///
/// It is on the heap, since it is handed on from step to step.
///
/// # Errors
/// [`Refusal::Budget`] where a budget does not admit the request.
pub(crate) async fn reserve(shaped: Shaped) -> Result<Box<Exchange>, Refusal> {
    let mut exchange = opened(shaped);
    if exchange.calls.have_budgets() {
        let held = admitted(&mut exchange).await;
        held.inspect_err(|_| exchange.calls.watch.end(Ended::Failed))?;
    }
    Ok(exchange)
}

/// Has the first call held, and makes the request a closing one where it is the last of its session.
async fn admitted(exchange: &mut Exchange) -> Result<(), Refusal> {
    let request = &exchange.request;
    let first = exchange.calls.reserve_first(&request.view().model, request.body()).await;
    let first = first.map_err(Refusal::Budget)?;
    exchange.budget = BudgetTold::new(&first);
    if first.is_closing {
        let closing = request.closing(CLOSING_WORDS, CLOSING_OUTPUT_TOKENS);
        exchange.request = closing.map_err(|error| {
            Refusal::BadRequest(format!(
                "the budget of its session is used up, and it cannot be its last request: {error}"
            ))
        })?;
        exchange.is_closing = true;
        exchange.encoded = None;
        of_changed_body(&mut exchange.destination.headers);
    }
    Ok(())
}

fn opened(shaped: Shaped) -> Box<Exchange> {
    let Shaped { identified, changed, uncondensed, may_condense } = shaped;
    let admitted = identified.admitted;
    let gateway = admitted.gateway;
    let mut destination = admitted.destination;
    if changed.is_any() {
        of_changed_body(&mut destination.headers);
    }
    let destinations = std::iter::once(&destination).chain(&admitted.fallback);
    let recorder = gateway.store.recorder(secrets(&gateway, &admitted.client, destinations));
    let format = admitted.request.format();
    let watch = Watch::new(
        &gateway.metrics,
        &gateway.stopping,
        identified.id.clone(),
        destination.upstream.name.clone(),
        format,
        admitted.request.view().stream,
        &admitted.client.headers,
    );
    let caller = Caller {
        request_id: identified.id.clone(),
        session: identified.session,
        credential: identified.credential,
        key_budget: admitted.client.extensions.get::<Arc<OwnKey>>().and_then(|key| key.budget()),
    };
    Box::new(Exchange {
        calls: Calls::new(
            recorder.clone(),
            watch,
            caller,
            admitted.mode,
            format,
            Arc::clone(&gateway.budgets),
        ),
        recorder,
        store_patience: StorePatience::default(),
        call: None,
        id: identified.id,
        task_id: identified.task_id,
        turn_number: identified.turn_number,
        mode: admitted.mode,
        rehearsal: admitted.rehearsal,
        destination,
        fallback: admitted.fallback,
        stands_in: false,
        is_closing: false,
        budget: BudgetTold::default(),
        retries: 0,
        set_aside: None,
        demanded: admitted.demanded,
        schema: admitted.schema,
        request: admitted.request,
        // What came compressed are the bytes before that.
        encoded: admitted.encoded.filter(|_| !changed.is_any()),
        changed,
        uncondensed,
        may_condense,
        tool_schemas: ToolSchemas::default(),
        deadline: Instant::now() + gateway.settings.limits.total,
        _claim: admitted.claim,
        _holding: admitted.holding,
        gateway,
    })
}

/// What of a request, as it came and as it goes on, nobody else is to read.
fn secrets<'a>(
    gateway: &Gateway,
    client: &Parts,
    destinations: impl Iterator<Item = &'a Destination>,
) -> Secrets {
    let sent = destinations.map(|destination| (&destination.headers, &destination.uri));
    let all = std::iter::once((&client.headers, &client.uri)).chain(sent);
    Secrets {
        of_settings: Arc::clone(&gateway.scrubber),
        of_request: Arc::new(Scrubber::new(all.flat_map(|(headers, uri)| secrets_in(headers, uri)))),
    }
}
