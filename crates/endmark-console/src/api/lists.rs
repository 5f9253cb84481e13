//! Lists, the newest first, and what stands in them in full.

use endmark_runs::{AgentRun, RunEventReport};
use endmark_store::{BudgetPlace, FinalStatus, LogFilter, Store};
use endmark_wire::percent_decoded;
use http::Response;
use serde::Serialize;

use super::MAX_ROWS;
use crate::answer::{ConsoleBody, Failure, json_of};
use crate::console::Console;
use crate::query::Query;
use crate::reports::{budgets, compactions, recoveries};

/// Events of a run that are shown, as `endmark runs show` does.
const MAX_EVENTS: u32 = 10_000;

/// What stands between the parts of a budget's place. Only a subject can hold it, and that stands last.
const BETWEEN_PARTS: char = '~';

/// A page of a list: what its command answers, and where it goes on.
#[derive(Serialize)]
struct Page<T> {
    #[serde(flatten)]
    report: T,
    /// What `before` or `after` has to be for the next page; null at the end.
    next: Option<String>,
}

/// Takes one row more than were asked for away again: it says that there is a next page, which begins behind the last row.
fn cut<T>(rows: &mut Vec<T>, limit: u32, key: impl Fn(&T) -> String) -> Option<String> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let goes_on = rows.len() > limit;
    rows.truncate(limit);
    rows.last().filter(|_| goes_on).map(key)
}

/// `recoveries?status=&model=&provider=&cut_kind=&task=&request=&before=&limit=`, as `endmark log`.
pub(super) async fn recoveries(store: &Store, query: Option<&str>) -> Result<Response<ConsoleBody>, Failure> {
    let known = ["status", "model", "provider", "cut_kind", "task", "request", "before", "limit"];
    let query = Query::parse(query, &known)?;
    let limit = query.limit(MAX_ROWS)?;
    let filter = filter(&query)?;
    let mut rows = store.read(move |reader| reader.recent(limit + 1, &filter)).await?;
    let next = cut(&mut rows, limit, |row| row.id.to_string());
    let report = recoveries::Report { rows: rows.iter().map(recoveries::Row::of).collect(), calls: None };
    json_of(&Page { report, next })
}

fn filter(query: &Query) -> Result<LogFilter, Failure> {
    let status = |typed: &str| {
        FinalStatus::parse(&typed.to_uppercase()).ok_or_else(|| {
            Failure::BadRequest(format!("`status` is `{typed}`: it can be resolved or exhausted"))
        })
    };
    Ok(LogFilter {
        final_status: query.text("status").map(status).transpose()?,
        task_id: query.owned("task"),
        model: query.owned("model"),
        provider: query.owned("provider"),
        cut_kind: query.owned("cut_kind"),
        request_id: query.owned("request"),
        before: query.number("before")?,
    })
}

/// `recoveries/ID`, a recovery's number or a request's id, as `endmark log show`.
pub(super) async fn recovery(
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Response<ConsoleBody>, Failure> {
    Query::parse(query, &[])?;
    let id = percent_decoded(id);
    let asked = id.clone();
    let read = store.read(move |reader| {
        let found = reader.show(&asked)?;
        let request = found.as_ref().and_then(|found| found.rows.first()).map(|row| row.request_id.clone());
        let calls = reader.calls_of(request.as_deref().unwrap_or(&asked))?;
        Ok((found, calls))
    });
    let (found, calls) = read.await?;
    if found.is_none() && calls.is_empty() {
        return Err(Failure::NotFound(format!("no recovery or request `{id}` is recorded")));
    }
    json_of(&recoveries::in_full(found.as_ref(), &calls))
}

/// `compactions?before=&limit=`.
pub(super) async fn compactions(
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, Failure> {
    let query = Query::parse(query, &["before", "limit"])?;
    let (limit, before) = (query.limit(MAX_ROWS)?, query.number("before")?);
    let mut rows = store.read(move |reader| reader.compactions(before, limit + 1)).await?;
    let next = cut(&mut rows, limit, |row| row.id.to_string());
    let report = compactions::Report { rows: rows.into_iter().map(compactions::Row::from).collect() };
    json_of(&Page { report, next })
}

/// `budgets?after=&limit=`, as `endmark budget`.
pub(super) async fn budgets(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, Failure> {
    let query = Query::parse(query, &["after", "limit"])?;
    let limit = query.limit(MAX_ROWS)?;
    let after = query.text("after").map(place).transpose()?;
    let read =
        store.read(move |reader| Ok((reader.budgets_behind(after.as_ref(), limit + 1)?, reader.keys()?)));
    let (mut rows, keys) = read.await?;
    let next = cut(&mut rows, limit, |row| place_text(&BudgetPlace::of(row)));
    let rows = rows.iter().map(|row| budgets::Row::of(row, &console.rules, &keys)).collect();
    json_of(&Page { report: budgets::Report { rows }, next })
}

fn place(typed: &str) -> Result<BudgetPlace, Failure> {
    let mut parts = typed.splitn(4, BETWEEN_PARTS).map(str::to_owned);
    let mut part = || parts.next();
    let place = (|| {
        let (window, scope, unit) = (part()?, part()?, part()?);
        Some(BudgetPlace { window, scope, unit, subject: part()? })
    })();
    place.ok_or_else(|| Failure::BadRequest("`after` is not what `next` of a page said".to_owned()))
}

fn place_text(place: &BudgetPlace) -> String {
    [&place.window, &place.scope, &place.unit, &place.subject]
        .map(String::as_str)
        .join(&BETWEEN_PARTS.to_string())
}

/// What `endmark runs` answers.
#[derive(Serialize)]
struct Runs {
    runs: Vec<AgentRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<RunEventReport>>,
}

/// `runs?before=&limit=`, as `endmark runs`.
pub(super) async fn runs(store: &Store, query: Option<&str>) -> Result<Response<ConsoleBody>, Failure> {
    let query = Query::parse(query, &["before", "limit"])?;
    let (limit, before) = (query.limit(MAX_ROWS)?, query.owned("before"));
    let read = store.read(move |reader| match before {
        Some(before) => reader.runs_behind(&before, limit + 1),
        None => reader.runs(limit + 1),
    });
    let mut runs: Vec<AgentRun> = read.await?.into_iter().map(AgentRun::from).collect();
    let next = cut(&mut runs, limit, |run| run.id.clone());
    json_of(&Page { report: Runs { runs, events: None }, next })
}

/// `runs/ID`, a run's id or its beginning, as `endmark runs show`.
pub(super) async fn run(
    store: &Store,
    query: Option<&str>,
    id: &str,
) -> Result<Response<ConsoleBody>, Failure> {
    Query::parse(query, &[])?;
    let id = percent_decoded(id);
    let asked = id.clone();
    let read = store.read(move |reader| {
        let Some(run) = reader.run(&asked)? else { return Ok(None) };
        let events = reader.run_events(Some(&run.run.id), 0, MAX_EVENTS)?;
        Ok(Some((run, events)))
    });
    let Some((run, events)) = read.await? else {
        return Err(Failure::NotFound(format!(
            "no run `{id}` is recorded, or more than one begins with that"
        )));
    };
    let events = events.into_iter().map(RunEventReport::from).collect();
    json_of(&Runs { runs: vec![run.into()], events: Some(events) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_budget_survives_the_way_there_and_back() {
        let budget = BudgetPlace {
            window: "2026-11-24".to_owned(),
            scope: "model".to_owned(),
            unit: "tokens".to_owned(),
            subject: "a~model~with~waves".to_owned(),
        };
        assert_eq!(place(&place_text(&budget)).unwrap(), budget);
        assert!(place("2026-11-24~model").is_err());
    }

    #[test]
    fn a_page_says_where_the_next_one_begins() {
        let mut rows = vec![9, 8, 7];
        assert_eq!(cut(&mut rows, 2, i32::to_string), Some("8".to_owned()));
        assert_eq!(rows, [9, 8]);
        assert_eq!(cut(&mut rows, 2, i32::to_string), None);
    }
}
