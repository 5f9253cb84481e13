//! Lists the requests of all instances in the database, newest first.

use std::collections::HashMap;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::sql::Parameter;
use super::{calls, recoveries};
use crate::calls::UsageRow;
use crate::engine::{MAX_CANDIDATES, PageBuilder, RequestFilter, RequestPage, RequestRow};

/// Maximum number of calls that one page scans. It limits the cost if few requests match the filter.
const MAX_SCANNED_CALLS: u32 = 20_000;

/// Number of candidates whose calls are read together.
const CANDIDATES_PER_READ: usize = 100;

/// Start time and id of a request.
type RequestPosition = (String, String);

/// Returns at most `limit` requests that match a filter, newest first.
pub(super) async fn page(
    client: &Client,
    own_instance: &str,
    filter: &RequestFilter,
    limit: u32,
) -> Result<RequestPage, Error> {
    let (candidates, end) = candidates(client, filter).await?;
    let mut page = PageBuilder::new(filter, limit);
    for chunk in candidates.chunks(CANDIDATES_PER_READ) {
        let ids: Vec<&str> = chunk.iter().map(|(_, id)| id.as_str()).collect();
        let mut rows: HashMap<String, RequestRow> = of_ids(client, own_instance, &ids)
            .await?
            .into_iter()
            .map(|row| (row.request_id().to_owned(), row))
            .collect();
        for candidate in chunk {
            if let Some(full) = page.take_full() {
                return Ok(full);
            }
            if page.record_visit(candidate) {
                rows.remove(&candidate.1).into_iter().for_each(|row| page.add(row));
            }
        }
    }
    Ok(page.finish(candidates.len(), end))
}

/// Returns requests by their ids, with their calls and cut parts.
pub(super) async fn of_ids(
    client: &Client,
    own_instance: &str,
    ids: &[&str],
) -> Result<Vec<RequestRow>, Error> {
    let mut cuts: HashMap<String, Vec<_>> = HashMap::new();
    for cut in recoveries::of_requests(client, own_instance, ids).await? {
        cuts.entry(cut.request_id.clone()).or_default().push(cut);
    }
    let calls = calls::of_requests(client, ids).await?;
    let of_one = calls.chunk_by(|one, next| one.request_id == next.request_id);
    let row = |calls: &[UsageRow]| {
        RequestRow::new(calls.to_vec(), cuts.remove(&calls[0].request_id).unwrap_or_default())
    };
    Ok(of_one.map(row).collect())
}

/// Returns requests that may match. If the scan reached its limit, also returns where the next page starts.
async fn candidates(
    client: &Client,
    filter: &RequestFilter,
) -> Result<(Vec<RequestPosition>, Option<RequestPosition>), Error> {
    let is_cut = filter.selects_only_cut_replies();
    let mut parameters: Vec<Parameter<'_>> = Vec::new();
    let mut scanned = vec![if is_cut { "verdict = 'cut'" } else { "call = 1" }.to_owned()];
    let moment = |place: usize| format!("(${place}::text::timestamp AT TIME ZONE 'UTC')");
    if let Some(session) = &filter.session {
        parameters.push((session, Type::TEXT));
        scanned.push(format!("session = ${}", parameters.len()));
    }
    if let Some(since) = &filter.since {
        parameters.push((since, Type::TEXT));
        scanned.push(format!("started_at >= {}", moment(parameters.len())));
    }
    if let Some((at, id)) = &filter.before {
        parameters.extend([(at as &(dyn ToSql + Sync), Type::TEXT), (id, Type::TEXT)]);
        let last = parameters.len();
        scanned.push(format!("(started_at, request_id) < ({}, ${last})", moment(last - 1)));
    }
    let scanned = format!(
        "FROM em_usage WHERE {} ORDER BY started_at DESC, request_id DESC LIMIT {MAX_SCANNED_CALLS}",
        scanned.join(" AND ")
    );
    let at = calls::time_sql("started_at");
    let end = format!(
        "SELECT {at}, request_id FROM (SELECT started_at, request_id {scanned} OFFSET {}) AS u",
        MAX_SCANNED_CALLS - 1
    );
    let scan_parameters = parameters.clone();
    let mut conditions = vec!["true".to_owned()];
    let given =
        [("model", &filter.model), ("upstream", &filter.upstream), ("credential", &filter.credential)];
    for (column, value) in given {
        if let Some(value) = value {
            parameters.push((value, Type::TEXT));
            conditions.push(format!("coalesce({column}, '') = ${}", parameters.len()));
        }
    }
    let sql = format!(
        "SELECT {at}, request_id FROM (SELECT started_at, request_id, model, upstream, credential {scanned}) AS u
         WHERE {} ORDER BY started_at DESC, request_id DESC LIMIT {MAX_CANDIDATES}",
        conditions.join(" AND ")
    );
    let place = |row: &Row| (row.get(0), row.get(1));
    let found: Vec<RequestPosition> =
        client.query_typed(&sql, &parameters).await?.iter().map(place).collect();
    if found.len() >= MAX_CANDIDATES as usize {
        return Ok((found, None));
    }
    let end = client.query_typed_opt(&end, &scan_parameters).await?;
    Ok((found, end.as_ref().map(place)))
}
