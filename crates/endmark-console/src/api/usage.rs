//! Routes for sums of calls and of cuts.

use endmark_store::Store;
use http::Response;

use crate::answer::{ConsoleBody, ConsoleError, json_response};
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::cuts;

/// Answers `usage?by=model&since=7d&until=2026-11-24`, like `endmark usage`.
pub(super) async fn usage(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let query = Query::parse(query, &reading::USAGE_PARAMETERS)?;
    let (report, _) = reading::load_usage(console, store, &query).await?;
    json_response(&report)
}

/// Answers `report?since=7d`, like `endmark report`.
pub(super) async fn report(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let query = Query::parse(query, &["since"])?;
    let since = query.owned_text("since").unwrap_or_else(|| "7d".to_owned());
    let read = reading::load_report(console, store, &since).await?;
    json_response(&cuts::CutsReport::new(&read, &since, console.continuation_tokens))
}
