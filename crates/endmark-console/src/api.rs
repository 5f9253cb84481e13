//! Serves the stored data as JSON below `/endmark/api/`. Each route returns the same `data` as the command with
//! `--json`. If a list has another page, `next` contains its address.

pub(crate) mod events;
mod lists;
mod usage;

use http::Response;

use crate::answer::{ConsoleBody, ConsoleError};
use crate::console::{Console, ConsoleRequest};

/// The prefix of all routes.
pub(crate) const ROUTE_PREFIX: &str = "/endmark/api/";

/// Maximum rows of a response.
const MAX_RESPONSE_ROWS: u32 = 1_000;

/// Answers a request for one of these routes.
pub(crate) async fn respond(
    console: &Console,
    visit: &ConsoleRequest,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let path = visit.head.uri.path();
    let query = visit.head.uri.query();
    let store = &visit.store;
    let route = path.strip_prefix(ROUTE_PREFIX).unwrap_or_default().trim_end_matches('/');
    match route.split_once('/').unwrap_or((route, "")) {
        ("usage", "") => usage::usage(console, store, query).await,
        ("report", "") => usage::report(console, store, query).await,
        ("requests", "") => lists::requests(console, store, query).await,
        ("recoveries", "") => lists::recoveries(store, query).await,
        ("recoveries", id) => lists::recovery(store, query, id).await,
        ("compactions", "") => lists::compactions(store, query).await,
        ("sessions", id) if !id.is_empty() => lists::session(console, store, query, id).await,
        ("budgets", "") => lists::budgets(console, store, query).await,
        ("runs", "") => lists::runs(store, query).await,
        ("runs", "events") => events::follow(console, visit).await,
        ("runs", id) => lists::run(store, query, id).await,
        _ => Err(ConsoleError::NotFound(format!(
            "{path} is not a page of Endmark: below {ROUTE_PREFIX} there are usage, report, requests, recoveries, recoveries/ID, \
             sessions/ID, compactions, budgets, runs, runs/ID, runs/events and outputs/HANDLE"
        ))),
    }
}
