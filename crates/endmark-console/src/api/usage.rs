//! Sums: of calls, and of cuts.

use std::sync::Arc;

use endmark_store::Store;
use http::Response;

use crate::answer::{ConsoleBody, Failure, json_of};
use crate::console::Console;
use crate::query::Query;
use crate::reports::cuts;
use crate::reports::span::{self, MomentError};
use crate::reports::usage::{EVER, Report, UsageKey};

/// `usage?by=model&since=7d&until=2026-11-24`, as `endmark usage`.
pub(super) async fn usage(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, Failure> {
    let query = Query::parse(query, &["by", "since", "until"])?;
    let by = by(query.text("by"))?;
    let (since, until) = (query.owned("since"), query.owned("until"));
    let models = Arc::clone(&console.models);
    let read = store.read(move |reader| {
        let moment = |typed: Option<String>, ever: &str| match typed {
            Some(typed) => span::moment(reader, &typed),
            None => Ok(ever.to_owned()),
        };
        let (since, until) = match (moment(since, EVER.0), moment(until, EVER.1)) {
            (Ok(since), Ok(until)) => (since, until),
            (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
        };
        Report::read(reader, by, &since, &until, &models).map(Ok)
    });
    match read.await? {
        Ok(report) => json_of(&report),
        Err(MomentError::Store(error)) => Err(error.into()),
        Err(error @ MomentError::Unusable(_)) => Err(Failure::BadRequest(format!(
            "{error}: write a day, as in `2026-11-01`, or a number with m, h, d or w behind it, as in `7d`"
        ))),
    }
}

fn by(typed: Option<&str>) -> Result<UsageKey, Failure> {
    let Some(typed) = typed else { return Ok(UsageKey::Model) };
    let known = UsageKey::ALL.into_iter().find(|key| key.name() == typed);
    known.ok_or_else(|| {
        let names = UsageKey::ALL.map(UsageKey::name).join(", ");
        Failure::BadRequest(format!("`by` is `{typed}`: it can be one of {names}"))
    })
}

/// `report?since=7d`, as `endmark report`.
pub(super) async fn report(
    console: &Console,
    store: &Store,
    query: Option<&str>,
) -> Result<Response<ConsoleBody>, Failure> {
    let query = Query::parse(query, &["since"])?;
    let since = query.owned("since").unwrap_or_else(|| "7d".to_owned());
    let seconds = span::seconds(&since).ok_or_else(|| {
        Failure::BadRequest(format!(
            "`{since}` is no span of time: write a number with m, h, d or w behind it, as in `7d`"
        ))
    })?;
    let read = store.read(move |reader| reader.usage_since(seconds)).await?;
    json_of(&cuts::Report::of(&read, &since, console.continuation_tokens))
}
