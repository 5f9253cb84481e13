//! Queries of the store that the JSON routes and the pages share.

use std::sync::Arc;

use endmark_runs::{AgentRun, RunEventReport};
use endmark_store::{
    BudgetPosition, FinalStatus, Fleet, FleetRecords, FleetRuns, LogFilter, RecoveryCursor, RecoveryRow,
    RefusedRequest, RequestFilter, RequestPage, RequestRecords, RequestRow, RunCursor, SharedReader, Store,
    StoredRun, UsageRow,
};
use endmark_wire::percent_decode;

use crate::answer::ConsoleError;
use crate::console::Console;
use crate::query::Query;
use crate::reports::cuts::CutData;
use crate::reports::span::{self, MomentError};
use crate::reports::usage::{ALL_TIME, UsageKey, UsageReport};
use crate::reports::{budgets, compactions, session};

/// Query parameters of usage reports.
pub(crate) const USAGE_PARAMETERS: [&str; 3] = ["by", "since", "until"];
/// Query parameters of the list of recoveries.
pub(crate) const RECOVERY_PARAMETERS: [&str; 8] =
    ["status", "model", "provider", "cut_kind", "task", "request", "before", "limit"];
/// Query parameters of the list of requests.
pub(crate) const REQUEST_PARAMETERS: [&str; 8] =
    ["outcome", "model", "upstream", "key", "session", "since", "before", "limit"];
/// Query parameters of the list of compactions.
pub(crate) const COMPACTION_PARAMETERS: [&str; 2] = ["before", "limit"];
/// Query parameters of the list of budgets.
pub(crate) const BUDGET_PARAMETERS: [&str; 2] = ["after", "limit"];
/// Query parameters of the list of runs.
pub(crate) const RUN_PARAMETERS: [&str; 2] = ["before", "limit"];

/// Maximum number of shown events of a run, as in `endmark runs show`.
const MAX_EVENTS: u32 = 10_000;

/// Separates the parts of a budget's key. Only the subject, which is the last part, can contain it.
const KEY_SEPARATOR: char = '~';

/// Error message if no page returned the value of `before`.
const INVALID_BEFORE_MESSAGE: &str = "`before` is not the `next` of another page";

/// Rows of a list, and the key at which the next page continues, if there is a next page.
pub(crate) type RowsAndNext<T> = (Vec<T>, Option<String>);

/// Removes the row beyond the limit, which only proves that there is a next page.
fn take_page<T>(mut rows: Vec<T>, limit: u32, key: impl Fn(&T) -> String) -> RowsAndNext<T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(key);
    (rows, next)
}

/// Reads the sums of calls.
pub(crate) async fn load_usage(
    console: &Console,
    store: &Store,
    query: &Query,
) -> Result<(UsageReport, UsageKey), ConsoleError> {
    let by = parse_key(query.text("by"))?;
    let moment = |name: &str, ever: &str| match query.text(name) {
        Some(typed) => span::moment(typed),
        None => Ok(ever.to_owned()),
    };
    let bad = |error: MomentError| {
        ConsoleError::BadRequest(format!(
            "{error}: write a day, as in `2026-11-01`, or a number with m, h, d or w after it, as in `7d`"
        ))
    };
    let (since, until) =
        (moment("since", ALL_TIME.0).map_err(bad)?, moment("until", ALL_TIME.1).map_err(bad)?);
    let of_all = store.shared_sums(by.dimension(), &since, &until).await;
    if let Ok(Some(sums)) = &of_all {
        return Ok((UsageReport::from_all_gateways(sums, by, &console.models), by));
    }
    let models = Arc::clone(&console.models);
    let report = store.read(move |reader| UsageReport::read(reader, by, &since, &until, &models)).await?;
    Ok((UsageReport { this_gateway_alone: of_all.is_err(), ..report }, by))
}

fn parse_key(typed: Option<&str>) -> Result<UsageKey, ConsoleError> {
    let Some(typed) = typed else { return Ok(UsageKey::Model) };
    let known = UsageKey::ALL.into_iter().find(|key| key.name() == typed);
    known.ok_or_else(|| {
        let names = UsageKey::ALL.map(UsageKey::name).join(", ");
        ConsoleError::BadRequest(format!("`by` is `{typed}`: it can be one of {names}"))
    })
}

/// Reads the ledger's report about a span of time.
pub(crate) async fn load_report(
    console: &Console,
    store: &Store,
    since: &str,
) -> Result<CutData, ConsoleError> {
    let seconds = parse_span(since)?;
    let models = Arc::clone(&console.models);
    let of_all = async |reader: SharedReader| {
        let report = reader.report(&span::moment_before(seconds), ALL_TIME.1).await?;
        Ok(CutData::of_all(&report, &console.models))
    };
    let fleet = Fleet::of(store);
    let read = fleet.read(of_all, move |reader| CutData::read(reader, seconds, &models));
    let FleetRecords { mut records, failure } = read.await?;
    records.this_gateway_alone = failure.is_some();
    Ok(records)
}

fn parse_span(span: &str) -> Result<u64, ConsoleError> {
    span::seconds(span).ok_or_else(|| {
        ConsoleError::BadRequest(format!(
            "`{span}` is not a span of time: write a number and m, h, d or w, as in `7d`"
        ))
    })
}

/// Reads recoveries of all gateways, newest first. Also returns whether they are from this gateway alone,
/// because the database fails.
pub(crate) async fn load_recoveries(
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<(RowsAndNext<RecoveryRow>, bool), ConsoleError> {
    let filter = parse_recovery_filter(query)?;
    let own = filter.clone();
    let of_all = async |reader: SharedReader| reader.recent(limit + 1, &filter).await;
    let fleet = Fleet::of(store);
    let read = fleet.read(of_all, move |reader| reader.recent(limit + 1, &own));
    let FleetRecords { records, failure } = read.await?;
    Ok((take_page(records, limit, recovery_position), failure.is_some()))
}

/// Returns the position of a row in the list: its number, and for a row of another gateway also its time and
/// instance.
fn recovery_position(row: &RecoveryRow) -> String {
    match &row.other_gateway {
        Some(other) => [&row.timestamp, &other.instance, &row.id.to_string()]
            .map(String::as_str)
            .join(&KEY_SEPARATOR.to_string()),
        None => row.id.to_string(),
    }
}

fn recovery_cursor(typed: &str) -> Result<RecoveryCursor, ConsoleError> {
    let mut parts = typed.split(KEY_SEPARATOR);
    let cursor = match (parts.next(), parts.next(), parts.next()) {
        (Some(id), None, None) => id.parse().ok().map(RecoveryCursor::Row),
        (Some(at), Some(instance), Some(id)) => id.parse().ok().map(|id| RecoveryCursor::Finished {
            at: at.to_owned(),
            instance: instance.to_owned(),
            id,
        }),
        _ => None,
    };
    cursor.ok_or_else(|| ConsoleError::BadRequest(INVALID_BEFORE_MESSAGE.to_owned()))
}

fn parse_recovery_filter(query: &Query) -> Result<LogFilter, ConsoleError> {
    let status = |typed: &str| {
        FinalStatus::parse(&typed.to_uppercase()).ok_or_else(|| {
            ConsoleError::BadRequest(format!("`status` is `{typed}`: it can be resolved or exhausted"))
        })
    };
    Ok(LogFilter {
        final_status: query.text("status").map(status).transpose()?,
        task_id: query.owned_text("task"),
        model: query.owned_text("model"),
        provider: query.owned_text("provider"),
        cut_kind: query.owned_text("cut_kind"),
        request_id: query.owned_text("request"),
        before: query.text("before").map(recovery_cursor).transpose()?,
    })
}

/// The outcomes that the filter of requests accepts. `look` selects requests that need attention, and
/// `any-cut` selects requests whose reply was cut.
pub(crate) const FILTER_OUTCOMES: [&str; 13] = [
    "look",
    "any-cut",
    "whole",
    "resumed",
    "restarted",
    "corrected",
    "cut",
    "exhausted",
    "failed",
    REFUSED_OUTCOME,
    "cancelled",
    "interrupted",
    "unread",
];

/// The outcome of requests that the gateway refused. They are not in the store, because no upstream was called.
pub(crate) const REFUSED_OUTCOME: &str = "refused";

/// Reads requests of all gateways, newest first. Also returns whether they are from this gateway alone,
/// because the database fails. Refused requests are always from this gateway alone.
pub(crate) async fn load_requests(
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<(RequestPage, bool), ConsoleError> {
    let mut filter = parse_request_filter(query)?;
    filter.since = query.text("since").map(parse_span).transpose()?.map(span::moment_before);
    let (mut page, mut is_alone) = (RequestPage::default(), false);
    if filter.outcome.as_deref() != Some(REFUSED_OUTCOME) {
        let own = filter.clone();
        let of_all = async |reader: SharedReader| reader.requests(&filter, limit).await;
        let fleet = Fleet::of(store);
        let read = fleet.read(of_all, move |reader| reader.requests(&own, limit)).await?;
        (page, is_alone) = (read.records, read.failure.is_some());
    }
    if filter.outcome.as_deref().is_none_or(|outcome| outcome == REFUSED_OUTCOME) {
        add_refused(&mut page, store.refusals(), &filter, limit);
    }
    Ok((page, is_alone))
}

/// Inserts refused requests into a page in the order of their times.
fn add_refused(page: &mut RequestPage, refused: Vec<RefusedRequest>, filter: &RequestFilter, limit: u32) {
    let key = |row: &RequestRow| (row.started_at().to_owned(), row.request_id().to_owned());
    let refused = refused.into_iter().map(RequestRow::from_refusal).filter(|row| {
        let (is, key) = (
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value),
            key(row),
        );
        is(&filter.model, row.model())
            && is(&filter.upstream, row.upstream())
            && is(&filter.credential, row.credential())
            && is(&filter.session, row.session())
            && filter.since.as_ref().is_none_or(|since| key.0 >= *since)
            && filter.before.as_ref().is_none_or(|before| key < *before)
            && page.next.as_ref().is_none_or(|next| key > *next)
            // A budget may refuse a call after earlier calls of the same request, which is then already on
            // the page.
            && !page.rows.iter().any(|other| other.request_id() == row.request_id())
    });
    let refused: Vec<RequestRow> = refused.collect();
    page.rows.extend(refused);
    page.rows.sort_by_cached_key(|row| std::cmp::Reverse(key(row)));
    if page.rows.len() > limit as usize {
        page.rows.truncate(limit as usize);
        page.next = page.rows.last().map(key);
    }
}

fn parse_request_filter(query: &Query) -> Result<RequestFilter, ConsoleError> {
    let outcome = query.owned_text("outcome");
    if let Some(unknown) = outcome.as_deref().filter(|outcome| !FILTER_OUTCOMES.contains(outcome)) {
        let known = FILTER_OUTCOMES.join(", ");
        return Err(ConsoleError::BadRequest(format!("`outcome` is `{unknown}`: it can be one of {known}")));
    }
    let before = query.text("before").map(|typed| {
        let parts = typed.split_once(KEY_SEPARATOR);
        let parts = parts.map(|(at, id)| (at.to_owned(), id.to_owned()));
        parts.ok_or_else(|| ConsoleError::BadRequest(INVALID_BEFORE_MESSAGE.to_owned()))
    });
    Ok(RequestFilter {
        outcome,
        model: query.owned_text("model"),
        upstream: query.owned_text("upstream"),
        credential: query.owned_text("key"),
        session: query.owned_text("session"),
        since: None,
        before: before.transpose()?,
    })
}

/// Returns the `before` of the next page of requests, if there is one.
pub(crate) fn next_requests(page: &RequestPage) -> Option<String> {
    page.next.as_ref().map(|(at, id)| format!("{at}{KEY_SEPARATOR}{id}"))
}

/// Reads everything about a recovery by its number, or about a request by its id.
pub(crate) async fn load_recovery(store: &Store, id: &str) -> Result<RequestRecords, ConsoleError> {
    let id = percent_decode(id);
    let found = Fleet::of(store).request(&id).await?;
    if found.recovery.is_none() && found.request.is_none() {
        return Err(ConsoleError::NotFound(format!("no recovery or request `{id}` is recorded")));
    }
    Ok(found)
}

/// Reads compactions, newest first.
pub(crate) async fn load_compactions(
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<RowsAndNext<compactions::CompactionEntry>, ConsoleError> {
    let before = query.number("before")?;
    let rows = store.read(move |reader| reader.compactions(before, limit + 1)).await?;
    let (rows, next) = take_page(rows, limit, |row| row.id.to_string());
    Ok((rows.into_iter().map(compactions::CompactionEntry::from).collect(), next))
}

/// Reads everything about a session, and at most `calls` of its newest calls, newest first. Usage and calls
/// are those of all gateways.
pub(crate) async fn load_session(
    console: &Console,
    store: &Store,
    id: &str,
    calls: u32,
) -> Result<(session::SessionReport, Vec<UsageRow>), ConsoleError> {
    let (id, models) = (percent_decode(id), Arc::clone(&console.models));
    let of_all = async |reader: SharedReader| {
        let usage =
            UsageReport::from_all_gateways(&reader.session_sums(&id).await?, UsageKey::Model, &models);
        Ok(Some((usage, reader.session_calls(&id, calls).await?)))
    };
    let FleetRecords { records, failure } = Fleet::of(store).read(of_all, |_| Ok(None)).await?;
    let (usage, newest) = records.unzip();
    let (session, models) = (id.clone(), Arc::clone(&console.models));
    let read = store.read(move |reader| {
        let newest = newest.map_or_else(|| reader.session_calls(&session, calls), Ok)?;
        Ok((session::SessionReport::read(reader, &session, usage, &models)?, newest))
    });
    let (found, newest) = read.await?;
    let mut found =
        found.ok_or_else(|| ConsoleError::NotFound(format!("nothing is recorded of a session `{id}`")))?;
    found.usage.this_gateway_alone = failure.is_some();
    if store.location().postgres().is_some() {
        found.of_this_gateway = &session::LISTS_OF_THIS_GATEWAY;
    }
    Ok((found, newest))
}

/// Reads budgets, newest windows first.
pub(crate) async fn load_budgets(
    console: &Console,
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<RowsAndNext<budgets::BudgetEntry>, ConsoleError> {
    let after = query.text("after").map(parse_place).transpose()?;
    let read =
        store.read(move |reader| Ok((reader.budgets_after(after.as_ref(), limit + 1)?, reader.keys()?)));
    let (rows, keys) = read.await?;
    let (rows, next) = take_page(rows, limit, |row| place_text(&BudgetPosition::new(row)));
    Ok((rows.iter().map(|row| budgets::BudgetEntry::new(row, &console.rules, &keys)).collect(), next))
}

fn parse_place(typed: &str) -> Result<BudgetPosition, ConsoleError> {
    let mut parts = typed.splitn(4, KEY_SEPARATOR).map(str::to_owned);
    let mut part = || parts.next();
    let place = (|| {
        let (window, scope, unit) = (part()?, part()?, part()?);
        Some(BudgetPosition { window, scope, unit, subject: part()? })
    })();
    place.ok_or_else(|| ConsoleError::BadRequest("`after` is not the `next` of a page".to_owned()))
}

fn place_text(place: &BudgetPosition) -> String {
    [&place.window, &place.scope, &place.unit, &place.subject]
        .map(String::as_str)
        .join(&KEY_SEPARATOR.to_string())
}

/// Reads runs of all machines, newest first. Also returns whether they are from this machine alone, because
/// the database fails.
pub(crate) async fn load_runs(
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<(RowsAndNext<AgentRun>, bool), ConsoleError> {
    let before = query.text("before").map(|typed| {
        let parts = typed.split_once(KEY_SEPARATOR);
        let cursor = parts.map(|(at, id)| RunCursor { started_at: at.to_owned(), id: id.to_owned() });
        cursor.ok_or_else(|| ConsoleError::BadRequest(INVALID_BEFORE_MESSAGE.to_owned()))
    });
    let FleetRuns { runs, failure } = Fleet::of(store).runs(before.transpose()?, limit + 1).await?;
    let place = |run: &StoredRun| format!("{}{KEY_SEPARATOR}{}", run.started_at, run.run.id);
    let (runs, next) = take_page(runs, limit, place);
    Ok(((runs.into_iter().map(AgentRun::from).collect(), next), failure.is_some()))
}

/// Reads a run by its id or a prefix of it, with its events.
pub(crate) async fn load_run(
    store: &Store,
    id: &str,
) -> Result<(AgentRun, Vec<RunEventReport>), ConsoleError> {
    let id = percent_decode(id);
    let Some((run, events)) = Fleet::of(store).run(&id, MAX_EVENTS).await? else {
        let message = format!("no run `{id}` is recorded, or more than one begins with that");
        return Err(ConsoleError::NotFound(message));
    };
    Ok((run.into(), events.into_iter().map(RunEventReport::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_link_round_trips() {
        let budget = BudgetPosition {
            window: "2026-11-24".to_owned(),
            scope: "model".to_owned(),
            unit: "tokens".to_owned(),
            subject: "a~model~with~waves".to_owned(),
        };
        assert_eq!(parse_place(&place_text(&budget)).unwrap(), budget);
        assert!(parse_place("2026-11-24~model").is_err());
    }

    #[test]
    fn a_page_links_to_the_next_page() {
        assert_eq!(take_page(vec![9, 8, 7], 2, i32::to_string), (vec![9, 8], Some("8".to_owned())));
        assert_eq!(take_page(vec![9, 8], 2, i32::to_string), (vec![9, 8], None));
    }
}
