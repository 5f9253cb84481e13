//! Routes for lists, newest first, and for complete single entries.

use endmark_runs::{AgentRun, RunEventReport};
use endmark_store::Store;
use http::Response;
use serde::Serialize;

use super::MAX_RESPONSE_ROWS;
use crate::answer::{ConsoleBody, ConsoleError, json_response};
use crate::console::Console;
use crate::query::Query;
use crate::reading;
use crate::reports::{budgets, compactions, recoveries, requests};

/// One page of a list: the same data as the command returns, and the start of the next page.
#[derive(Serialize)]
struct ListPage<T> {
    #[serde(flatten)]
    report: T,
    /// The `before` or `after` of the next page; null at the end.
    next: Option<String>,
}

/// Answers `recoveries?status=&model=&provider=&cut_kind=&task=&request=&before=&limit=`, like `endmark log`.
pub(super) async fn recoveries(
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let query = Query::parse(query, &reading::RECOVERY_PARAMETERS)?;
    let ((rows, next), is_alone) =
        reading::load_recoveries(store, &query, query.limit(MAX_RESPONSE_ROWS)?).await?;
    json_response(&ListPage { report: recoveries::list_report(&rows, is_alone), next })
}

/// Answers `recoveries/ID`, in which `ID` is a recovery's number or a request's id, like `endmark log show`.
pub(super) async fn recovery(
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    Query::parse(query, &[])?;
    json_response(&recoveries::request_report(&reading::load_recovery(store, id).await?))
}

/// Answers `sessions/ID`, in which `ID` is a session's hash as in `endmark usage --by session`.
pub(super) async fn session(
    console: &Console,
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    Query::parse(query, &[])?;
    json_response(&reading::load_session(console, store, id, 0).await?.0)
}

/// Answers `requests?outcome=&model=&upstream=&key=&session=&before=&limit=`.
pub(super) async fn requests(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let query = Query::parse(query, &reading::REQUEST_PARAMETERS)?;
    let (page, this_gateway_alone) =
        reading::load_requests(store, &query, query.limit(MAX_RESPONSE_ROWS)?).await?;
    let rows = page.rows.iter().map(|row| requests::RequestEntry::new(row, &console.models)).collect();
    let report = requests::RequestsReport { rows, this_gateway_alone };
    json_response(&ListPage { report, next: reading::next_requests(&page) })
}

/// Answers `compactions?before=&limit=`.
pub(super) async fn compactions(
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let query = Query::parse(query, &reading::COMPACTION_PARAMETERS)?;
    let (rows, next) = reading::load_compactions(store, &query, query.limit(MAX_RESPONSE_ROWS)?).await?;
    let this_gateway_alone = store.location().postgres().is_some();
    json_response(&ListPage { report: compactions::CompactionsReport { rows, this_gateway_alone }, next })
}

/// Answers `budgets?after=&limit=`, like `endmark budget`.
pub(super) async fn budgets(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    let query = Query::parse(query, &reading::BUDGET_PARAMETERS)?;
    let (rows, next) = reading::load_budgets(console, store, &query, query.limit(MAX_RESPONSE_ROWS)?).await?;
    json_response(&ListPage { report: budgets::BudgetsReport { rows }, next })
}

/// The response of `endmark runs`.
#[derive(Serialize)]
struct RunList {
    runs: Vec<AgentRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<RunEventReport>>,
    /// Whether the runs of other machines are missing because the shared database fails.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    this_gateway_alone: bool,
}

/// Answers `runs?before=&limit=`, like `endmark runs`.
pub(super) async fn runs(store: &Store, query: Option<&str>) -> Result<Response<ConsoleBody>, ConsoleError> {
    let query = Query::parse(query, &reading::RUN_PARAMETERS)?;
    let ((runs, next), this_gateway_alone) =
        reading::load_runs(store, &query, query.limit(MAX_RESPONSE_ROWS)?).await?;
    json_response(&ListPage { report: RunList { runs, events: None, this_gateway_alone }, next })
}

/// Answers `runs/ID`, in which `ID` is a run's id or its first characters, like `endmark runs show`.
pub(super) async fn run(
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Response<ConsoleBody>, ConsoleError> {
    Query::parse(query, &[])?;
    let (run, events) = reading::load_run(store, id).await?;
    json_response(&RunList { runs: vec![run], events: Some(events), this_gateway_alone: false })
}
