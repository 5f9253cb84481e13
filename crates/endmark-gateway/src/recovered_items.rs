//! Keeps the complete items of replies that the gateway recovered. A later request may refer to such an item
//! by its id alone, but the provider has only the cut version. The complete items are stored for their owner,
//! like capped tool results.

use std::collections::HashMap;
use std::time::Duration;

use endmark_store::{Handle, NewOutput, Reader, StoreError};
use endmark_wire::reply::StoredItem;
use endmark_wire::request::Request;
use tokio::time::timeout;

use crate::exchange::Exchange;
use crate::gateway::Gateway;
use crate::shaping::owner;

/// How long to wait for the store. A working store is far faster. If it fails, the request continues without it.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Stores items before the client receives the end of the reply, so that the client's next request finds them.
pub(crate) async fn store_items(exchange: &Exchange, items: Vec<StoredItem>) {
    if items.is_empty() || exchange.attempt.request.declines_storage() {
        return;
    }
    let (gateway, owner) = (&exchange.gateway, owner(exchange.calls.credential()));
    let work = async {
        for item in &items {
            let handle = Handle::derive("item", &owner, &item.id);
            let keep_days = gateway.settings.store_policy.keep_days;
            let max_bytes = gateway.settings.store_policy.outputs_max_bytes;
            let new = NewOutput { handle, owner: owner.clone(), keep_days, max_bytes };
            let mut draft = gateway.store.begin_output(new).await?;
            draft.push(item.json.as_bytes()).await?;
            draft.keep("json").await?;
        }
        Ok::<(), StoreError>(())
    };
    match timeout(STORE_TIMEOUT, work).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(request = exchange.client.id, %error, "a recovered item cannot be stored");
        }
        Err(_) => {
            tracing::warn!(
                request = exchange.client.id,
                "a recovered item cannot be stored: the store does not answer"
            );
        }
    }
}

/// Replaces references to recovered items by the complete items. Returns the number of replaced references.
pub(crate) async fn insert_recovered_items(
    gateway: &Gateway,
    credential: Option<&str>,
    request: &mut Request,
) -> usize {
    let ids = request.references();
    if ids.is_empty() {
        return 0;
    }
    let owner = owner(credential);
    let named: Vec<(String, Handle)> =
        ids.into_iter().map(|id| (id.clone(), Handle::derive("item", &owner, &id))).collect();
    let read = move |reader: &Reader| {
        let mut whole = HashMap::new();
        for (id, handle) in named {
            match reader.output(&handle, &owner) {
                Ok(kept) => {
                    if let Ok(json) = String::from_utf8(kept.read(0..kept.bytes)?) {
                        whole.insert(id, (handle, json));
                    }
                }
                Err(StoreError::NoOutput { .. } | StoreError::ExpiredOutput { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(whole)
    };
    let found = match timeout(STORE_TIMEOUT, gateway.store.read(read)).await {
        Ok(Ok(found)) if !found.is_empty() => found,
        Ok(Ok(_)) | Err(_) => return 0,
        Ok(Err(error)) => {
            tracing::warn!(%error, "recovered items cannot be read");
            return 0;
        }
    };
    let mut items = HashMap::with_capacity(found.len());
    for (id, (handle, json)) in found {
        // Each use restarts the retention time.
        let touched = timeout(STORE_TIMEOUT, gateway.store.touch_output(&handle)).await;
        if let Ok(Err(error)) = touched {
            tracing::warn!(%error, "the use of a recovered item cannot be recorded");
        }
        items.insert(id, json);
    }
    let (whole, replaced) = request.with_items(&items);
    *request = whole;
    replaced
}
