//! Queries of the store that JSON routes and pages share, from the parameters of an address.

use std::sync::Arc;

use endmark_runs::{AgentRun, RunEventReport};
use endmark_store::{
    BudgetPlace, FinalStatus, Fleet, FleetRecords, FleetRuns, LogCursor, LogFilter, LogRow, RefusedRequest,
    RequestFilter, RequestPage, RequestRecords, RequestRow, RunCursor, SharedReader, Store, StoredRun,
    UsageRow,
};
use endmark_wire::percent_decode;

use crate::answer::Failure;
use crate::console::Console;
use crate::query::Query;
use crate::reports::cuts::FoundCuts;
use crate::reports::span::{self, MomentError};
use crate::reports::usage::{ALL_TIME, UsageKey, UsageReport};
use crate::reports::{budgets, compactions, session};

/// The parameters of each.
pub(crate) const USAGE: [&str; 3] = ["by", "since", "until"];
/// See above.
pub(crate) const RECOVERIES: [&str; 8] =
    ["status", "model", "provider", "cut_kind", "task", "request", "before", "limit"];
/// See above.
pub(crate) const REQUESTS: [&str; 8] =
    ["outcome", "model", "upstream", "key", "session", "since", "before", "limit"];
/// See above.
pub(crate) const COMPACTIONS: [&str; 2] = ["before", "limit"];
/// See above.
pub(crate) const BUDGETS: [&str; 2] = ["after", "limit"];
/// See above.
pub(crate) const RUNS: [&str; 2] = ["before", "limit"];

/// Events of a run that are shown, as `endmark runs show` does.
const MAX_EVENTS: u32 = 10_000;

/// Separates the parts of a budget's key. Only the subject, which is last, can contain it.
const KEY_SEPARATOR: char = '~';

/// Error of a `before` that no page returned.
const NOT_A_PLACE: &str = "`before` is not the `next` of another page";

/// Rows of a list, and the key after which it continues, if it does.
pub(crate) type Page<T> = (Vec<T>, Option<String>);

/// Removes the row beyond the limit, which only shows that there is a next page.
fn cut<T>(mut rows: Vec<T>, limit: u32, key: impl Fn(&T) -> String) -> Page<T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(key);
    (rows, next)
}

/// Sums of calls.
pub(crate) async fn load_usage(
    console: &Console,
    store: &Store,
    query: &Query,
) -> Result<(UsageReport, UsageKey), Failure> {
    let by = parse_key(query.text("by"))?;
    let moment = |name: &str, ever: &str| match query.text(name) {
        Some(typed) => span::moment(typed),
        None => Ok(ever.to_owned()),
    };
    let bad = |error: MomentError| {
        Failure::BadRequest(format!(
            "{error}: write a day, as in `2026-11-01`, or a number with m, h, d or w after it, as in `7d`"
        ))
    };
    let (since, until) =
        (moment("since", ALL_TIME.0).map_err(bad)?, moment("until", ALL_TIME.1).map_err(bad)?);
    let of_all = store.shared_sums(by.dimension(), &since, &until).await;
    if let Ok(Some(sums)) = &of_all {
        return Ok((UsageReport::of_all(sums, by, &console.models), by));
    }
    let models = Arc::clone(&console.models);
    let report = store.read(move |reader| UsageReport::read(reader, by, &since, &until, &models)).await?;
    Ok((UsageReport { this_gateway_alone: of_all.is_err(), ..report }, by))
}

fn parse_key(typed: Option<&str>) -> Result<UsageKey, Failure> {
    let Some(typed) = typed else { return Ok(UsageKey::Model) };
    let known = UsageKey::ALL.into_iter().find(|key| key.name() == typed);
    known.ok_or_else(|| {
        let names = UsageKey::ALL.map(UsageKey::name).join(", ");
        Failure::BadRequest(format!("`by` is `{typed}`: it can be one of {names}"))
    })
}

/// The report of the ledger about a span of time.
pub(crate) async fn load_report(console: &Console, store: &Store, since: &str) -> Result<FoundCuts, Failure> {
    let seconds = parse_span(since)?;
    let models = Arc::clone(&console.models);
    let of_all = async |reader: SharedReader| {
        let report = reader.report(&span::moment_before(seconds), ALL_TIME.1).await?;
        Ok(FoundCuts::of_all(&report, &console.models))
    };
    let fleet = Fleet::of(store);
    let read = fleet.read(of_all, move |reader| FoundCuts::read(reader, seconds, &models));
    let FleetRecords { mut records, failure } = read.await?;
    records.this_gateway_alone = failure.is_some();
    Ok(records)
}

fn parse_span(span: &str) -> Result<u64, Failure> {
    span::seconds(span).ok_or_else(|| {
        Failure::BadRequest(format!(
            "`{span}` is not a span of time: write a number and m, h, d or w, as in `7d`"
        ))
    })
}

/// Recoveries of all gateways, the newest first, and whether they are of this gateway alone since the database fails.
pub(crate) async fn load_recoveries(
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<(Page<LogRow>, bool), Failure> {
    let filter = filter(query)?;
    let own = filter.clone();
    let of_all = async |reader: SharedReader| reader.recent(limit + 1, &filter).await;
    let fleet = Fleet::of(store);
    let read = fleet.read(of_all, move |reader| reader.recent(limit + 1, &own));
    let FleetRecords { records, failure } = read.await?;
    Ok((cut(records, limit, recovery_place), failure.is_some()))
}

/// Returns the place of a row in the list: its number, with the time and the instance if it is of another gateway.
fn recovery_place(row: &LogRow) -> String {
    match &row.other_gateway {
        Some(other) => [&row.timestamp, &other.instance, &row.id.to_string()]
            .map(String::as_str)
            .join(&KEY_SEPARATOR.to_string()),
        None => row.id.to_string(),
    }
}

fn recovery_cursor(typed: &str) -> Result<LogCursor, Failure> {
    let mut parts = typed.split(KEY_SEPARATOR);
    let cursor = match (parts.next(), parts.next(), parts.next()) {
        (Some(id), None, None) => id.parse().ok().map(LogCursor::Row),
        (Some(at), Some(instance), Some(id)) => id.parse().ok().map(|id| LogCursor::Finished {
            at: at.to_owned(),
            instance: instance.to_owned(),
            id,
        }),
        _ => None,
    };
    cursor.ok_or_else(|| Failure::BadRequest(NOT_A_PLACE.to_owned()))
}

fn filter(query: &Query) -> Result<LogFilter, Failure> {
    let status = |typed: &str| {
        FinalStatus::parse(&typed.to_uppercase()).ok_or_else(|| {
            Failure::BadRequest(format!("`status` is `{typed}`: it can be resolved or exhausted"))
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

/// The outcomes by which requests can be filtered. `look` selects requests that need attention. `any-cut` selects
/// requests whose reply was cut.
pub(crate) const OUTCOMES: [&str; 13] = [
    "look",
    "any-cut",
    "whole",
    "resumed",
    "restarted",
    "corrected",
    "cut",
    "exhausted",
    "failed",
    REFUSED,
    "cancelled",
    "interrupted",
    "unread",
];

/// The outcome of requests that the gateway refused. They are not in the store, because no upstream was called.
pub(crate) const REFUSED: &str = "refused";

/// Requests of all gateways, the newest first, and whether they are of this gateway alone since the database fails.
/// Refused requests are of this gateway alone.
pub(crate) async fn load_requests(
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<(RequestPage, bool), Failure> {
    let mut filter = parse_request_filter(query)?;
    filter.since = query.text("since").map(parse_span).transpose()?.map(span::moment_before);
    let (mut page, mut is_alone) = (RequestPage::default(), false);
    if filter.outcome.as_deref() != Some(REFUSED) {
        let own = filter.clone();
        let of_all = async |reader: SharedReader| reader.requests(&filter, limit).await;
        let fleet = Fleet::of(store);
        let read = fleet.read(of_all, move |reader| reader.requests(&own, limit)).await?;
        (page, is_alone) = (read.records, read.failure.is_some());
    }
    if filter.outcome.as_deref().is_none_or(|outcome| outcome == REFUSED) {
        add_refused(&mut page, store.refusals(), &filter, limit);
    }
    Ok((page, is_alone))
}

/// Adds the refused requests of a page, in order of time.
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
            // A budget may refuse a call after earlier calls of the same request.
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

fn parse_request_filter(query: &Query) -> Result<RequestFilter, Failure> {
    let outcome = query.owned_text("outcome");
    if let Some(unknown) = outcome.as_deref().filter(|outcome| !OUTCOMES.contains(outcome)) {
        let known = OUTCOMES.join(", ");
        return Err(Failure::BadRequest(format!("`outcome` is `{unknown}`: it can be one of {known}")));
    }
    let before = query.text("before").map(|typed| {
        let parts = typed.split_once(KEY_SEPARATOR);
        let parts = parts.map(|(at, id)| (at.to_owned(), id.to_owned()));
        parts.ok_or_else(|| Failure::BadRequest(NOT_A_PLACE.to_owned()))
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

/// Returns the `before` of the next page of requests.
pub(crate) fn next_requests(page: &RequestPage) -> Option<String> {
    page.next.as_ref().map(|(at, id)| format!("{at}{KEY_SEPARATOR}{id}"))
}

/// Returns everything about a recovery by its number, or a request by its id.
pub(crate) async fn load_recovery(store: &Store, id: &str) -> Result<RequestRecords, Failure> {
    let id = percent_decode(id);
    let found = Fleet::of(store).request(&id).await?;
    if found.recovery.is_none() && found.request.is_none() {
        return Err(Failure::NotFound(format!("no recovery or request `{id}` is recorded")));
    }
    Ok(found)
}

/// Compactions, the newest first.
pub(crate) async fn load_compactions(
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<Page<compactions::CompactionEntry>, Failure> {
    let before = query.number("before")?;
    let rows = store.read(move |reader| reader.compactions(before, limit + 1)).await?;
    let (rows, next) = cut(rows, limit, |row| row.id.to_string());
    Ok((rows.into_iter().map(compactions::CompactionEntry::from).collect(), next))
}

/// Returns everything about a session, and its newest calls, at most `calls`, newest first. Its usage and its calls are those
/// of all gateways.
pub(crate) async fn load_session(
    console: &Console,
    store: &Store,
    id: &str,
    calls: u32,
) -> Result<(session::SessionReport, Vec<UsageRow>), Failure> {
    let (id, models) = (percent_decode(id), Arc::clone(&console.models));
    let of_all = async |reader: SharedReader| {
        let usage = UsageReport::of_all(&reader.session_sums(&id).await?, UsageKey::Model, &models);
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
        found.ok_or_else(|| Failure::NotFound(format!("nothing is recorded of a session `{id}`")))?;
    found.usage.this_gateway_alone = failure.is_some();
    if store.location().postgres().is_some() {
        found.of_this_gateway = &session::OF_THIS_GATEWAY;
    }
    Ok((found, newest))
}

/// Budgets by window, the newest first.
pub(crate) async fn load_budgets(
    console: &Console,
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<Page<budgets::BudgetEntry>, Failure> {
    let after = query.text("after").map(parse_place).transpose()?;
    let read =
        store.read(move |reader| Ok((reader.budgets_after(after.as_ref(), limit + 1)?, reader.keys()?)));
    let (rows, keys) = read.await?;
    let (rows, next) = cut(rows, limit, |row| place_text(&BudgetPlace::new(row)));
    Ok((rows.iter().map(|row| budgets::BudgetEntry::new(row, &console.rules, &keys)).collect(), next))
}

fn parse_place(typed: &str) -> Result<BudgetPlace, Failure> {
    let mut parts = typed.splitn(4, KEY_SEPARATOR).map(str::to_owned);
    let mut part = || parts.next();
    let place = (|| {
        let (window, scope, unit) = (part()?, part()?, part()?);
        Some(BudgetPlace { window, scope, unit, subject: part()? })
    })();
    place.ok_or_else(|| Failure::BadRequest("`after` is not the `next` of a page".to_owned()))
}

fn place_text(place: &BudgetPlace) -> String {
    [&place.window, &place.scope, &place.unit, &place.subject]
        .map(String::as_str)
        .join(&KEY_SEPARATOR.to_string())
}

/// Runs of all machines, the newest first, and whether they are of this machine alone since the database fails.
pub(crate) async fn load_runs(
    store: &Store,
    query: &Query,
    limit: u32,
) -> Result<(Page<AgentRun>, bool), Failure> {
    let before = query.text("before").map(|typed| {
        let parts = typed.split_once(KEY_SEPARATOR);
        let cursor = parts.map(|(at, id)| RunCursor { started_at: at.to_owned(), id: id.to_owned() });
        cursor.ok_or_else(|| Failure::BadRequest(NOT_A_PLACE.to_owned()))
    });
    let FleetRuns { runs, failure } = Fleet::of(store).runs(before.transpose()?, limit + 1).await?;
    let place = |run: &StoredRun| format!("{}{KEY_SEPARATOR}{}", run.started_at, run.run.id);
    let (runs, next) = cut(runs, limit, place);
    Ok(((runs.into_iter().map(AgentRun::from).collect(), next), failure.is_some()))
}

/// Returns a run by its id or a prefix of it, with its events.
pub(crate) async fn run(store: &Store, id: &str) -> Result<(AgentRun, Vec<RunEventReport>), Failure> {
    let id = percent_decode(id);
    let Some((run, events)) = Fleet::of(store).run(&id, MAX_EVENTS).await? else {
        let message = format!("no run `{id}` is recorded, or more than one begins with that");
        return Err(Failure::NotFound(message));
    };
    Ok((run.into(), events.into_iter().map(RunEventReport::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_link_round_trips() {
        let budget = BudgetPlace {
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
        assert_eq!(cut(vec![9, 8, 7], 2, i32::to_string), (vec![9, 8], Some("8".to_owned())));
        assert_eq!(cut(vec![9, 8], 2, i32::to_string), (vec![9, 8], None));
    }
}
