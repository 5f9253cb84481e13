//! Lists requests and sessions, newest first.

use rusqlite::{ToSql, params_from_iter};

use super::summary::REPLY_PURPOSES;
use crate::calls::UsageRow;
use crate::engine::Reader;
use crate::engine::reader::calls::{EXTRA_TABLE_JOINS, SELECT_USAGE};
use crate::error::StoreError;
use crate::records::{REASON_CLIENT_LIMIT, Recovery, RecoveryRow};
use crate::refusals::RefusedRequest;

/// Maximum number of requests that one page scans. It limits the cost if few requests match the filter.
const MAX_SCANNED_REQUESTS: u32 = 250_000;

/// The same limit for cut replies. Each needs a lookup of its outcome, which costs 7 µs on a busy core.
const MAX_SCANNED_CUTS: u32 = 20_000;

/// Maximum number of candidates whose calls one page reads.
pub(crate) const MAX_CANDIDATES: u32 = 1_000;

/// Outcomes of cut replies, from best to worst.
const CUT_OUTCOMES: [&str; 7] =
    ["resumed", "corrected", "restarted", "cancelled", "interrupted", "cut", "exhausted"];

/// Outcome of a request while the continuation of its cut reply is being requested.
const RECOVERING_OUTCOME: &str = "recovering";

/// Outcome of a request that the gateway answered with its own error, before any upstream call.
const REFUSED_OUTCOME: &str = "refused";

/// Selects the requests of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only requests with this outcome. `look` selects requests whose clients did not get the complete reply,
    /// and `any-cut` selects requests whose reply was cut.
    pub outcome: Option<String>,
    /// Only requests for this model.
    pub model: Option<String>,
    /// Only requests whose first call went to this upstream.
    pub upstream: Option<String>,
    /// Only requests of this client.
    pub credential: Option<String>,
    /// Only requests of this session.
    pub session: Option<String>,
    /// Only requests that began at or after this time, in the store's format.
    pub since: Option<String>,
    /// Only requests that follow this one in the list, identified by start time and id.
    pub before: Option<(String, String)>,
}

/// A request with all of its calls.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestRow {
    /// The upstream calls in order; empty for a refused request.
    pub calls: Vec<UsageRow>,
    /// The cut parts of the reply.
    pub cuts: Vec<RecoveryRow>,
    /// The outcome: one of those in the response header, or `recovering`, `cancelled`, `interrupted`,
    /// `failed`, `unread` or `refused`.
    pub outcome: String,
    /// The gateway's own error, if it refused the request.
    pub refusal: Option<RefusedRequest>,
}

/// Everything about a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestRecords {
    /// The cut parts of the request, or the recovery with this number. `None` if no part was cut.
    pub recovery: Option<Recovery>,
    /// The request with its calls, if they are recorded.
    pub request: Option<RequestRow>,
}

impl RequestRecords {
    /// Returns the upstream calls, in the order in which they were made.
    pub fn calls(&self) -> &[UsageRow] {
        self.request.as_ref().map_or(&[], |request| &request.calls)
    }
}

/// A page of requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestPage {
    /// The requests, newest first.
    pub rows: Vec<RequestRow>,
    /// The value of [`RequestFilter::before`] for the next page; `None` at the end. A page before the end may
    /// be empty, because each page scans a limited number of requests.
    pub next: Option<(String, String)>,
}

/// Builds a page from candidates, newest first.
pub(crate) struct PageBuilder<'f> {
    filter: &'f RequestFilter,
    limit: usize,
    page: RequestPage,
}

impl<'f> PageBuilder<'f> {
    pub(crate) fn new(filter: &'f RequestFilter, limit: u32) -> Self {
        Self { filter, limit: limit as usize, page: RequestPage::default() }
    }

    /// Returns the page if it is full. The next page then starts after the last visited candidate.
    pub(crate) fn take_full(&mut self) -> Option<RequestPage> {
        (self.page.rows.len() >= self.limit).then(|| std::mem::take(&mut self.page))
    }

    /// Visits a candidate. Returns whether its request is not in the page yet, because a request is a
    /// candidate once for each of its cut replies.
    pub(crate) fn record_visit(&mut self, candidate: &(String, String)) -> bool {
        self.page.next = Some(candidate.clone());
        !self.page.rows.iter().any(|row| row.request_id() == candidate.1)
    }

    /// Adds a request if it has the outcome that the filter selects.
    pub(crate) fn add(&mut self, row: RequestRow) {
        if self.filter.outcome.as_ref().is_none_or(|outcome| row.has_outcome(outcome)) {
            self.page.rows.push(row);
        }
    }

    /// Returns the page after all candidates were visited. `end` is where the scan reached its limit.
    pub(crate) fn finish(mut self, candidates: usize, end: Option<(String, String)>) -> RequestPage {
        let last = self.page.next.filter(|_| candidates >= MAX_CANDIDATES as usize);
        self.page.next = end.or(last);
        self.page
    }
}

/// The values that the filter of a list offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestFilterOptions {
    /// Names of models.
    pub models: Vec<String>,
    /// Names of upstreams.
    pub upstreams: Vec<String>,
    /// Clients, by key name or hash of the credential.
    pub credentials: Vec<String>,
}

impl RequestFilter {
    /// Whether all requests with this outcome have a cut reply.
    pub(crate) fn selects_only_cut_replies(&self) -> bool {
        self.outcome
            .as_deref()
            .is_some_and(|wanted| ["look", "any-cut"].contains(&wanted) || CUT_OUTCOMES.contains(&wanted))
            // Requests with these outcomes may have no verdict, because the client disconnected or the
            // gateway ended before.
            && !matches!(self.outcome.as_deref(), Some("cancelled" | "interrupted"))
    }
}

impl RequestRow {
    pub(crate) fn new(calls: Vec<UsageRow>, cuts: Vec<RecoveryRow>) -> Self {
        let worst =
            cuts.iter().filter_map(|cut| CUT_OUTCOMES.iter().position(|word| *word == cut.outcome)).max();
        let reply = calls.iter().rev().find(|call| REPLY_PURPOSES.contains(&call.purpose.as_str()));
        let outcome = match (worst.and_then(|worst| CUT_OUTCOMES.get(worst)), reply.or_else(|| calls.last()))
        {
            (Some(outcome), _) => outcome,
            (None, Some(call)) => call_outcome(call),
            (None, None) => "unread",
        };
        Self { outcome: outcome.to_owned(), calls, cuts, refusal: None }
    }

    /// Returns the row of a request that the gateway refused.
    pub fn from_refusal(refusal: RefusedRequest) -> Self {
        Self { outcome: REFUSED_OUTCOME.to_owned(), refusal: Some(refusal), ..Self::default() }
    }

    /// Returns the request's id.
    pub fn request_id(&self) -> &str {
        self.field(|call| &call.request_id, |refusal| &refusal.request_id)
    }

    /// Returns the start time.
    pub fn started_at(&self) -> &str {
        self.field(|call| &call.started_at, |refusal| &refusal.refused_at)
    }

    /// Returns the requested model.
    pub fn model(&self) -> &str {
        self.field(|call| &call.model, |refusal| &refusal.model)
    }

    /// Returns the upstream.
    pub fn upstream(&self) -> &str {
        self.field(|call| &call.upstream, |refusal| &refusal.upstream)
    }

    /// Returns the hash of the session.
    pub fn session(&self) -> &str {
        self.field(|call| &call.session, |refusal| &refusal.session)
    }

    /// Returns the client; empty without a credential.
    pub fn credential(&self) -> &str {
        self.field(
            |call| call.credential.as_deref().unwrap_or_default(),
            |refusal| refusal.credential.as_deref().unwrap_or_default(),
        )
    }

    fn field<'a>(
        &'a self,
        of_call: impl FnOnce(&'a UsageRow) -> &'a str,
        of_refusal: impl FnOnce(&'a RefusedRequest) -> &'a str,
    ) -> &'a str {
        self.calls.first().map(of_call).or_else(|| self.refusal.as_ref().map(of_refusal)).unwrap_or_default()
    }

    /// Whether the client did not get the complete reply.
    pub fn needs_attention(&self) -> bool {
        match self.outcome.as_str() {
            "exhausted" | "interrupted" => true,
            "cut" => self.cuts.iter().any(|cut| cut.outcome == "cut" && cut.reason != REASON_CLIENT_LIMIT),
            _ => false,
        }
    }

    pub(crate) fn has_outcome(&self, wanted: &str) -> bool {
        match wanted {
            "look" => self.needs_attention(),
            "any-cut" => !self.cuts.is_empty() || self.outcome == "cut",
            wanted => self.outcome == wanted,
        }
    }
}

fn call_outcome(call: &UsageRow) -> &'static str {
    match (call.verdict.as_deref(), call.ending.as_str(), call.http_status) {
        (Some("cut"), ..) => "cut",
        (None, "cancelled", _) => "cancelled",
        (None, "interrupted", _) => "interrupted",
        (Some("unread") | None, _, Some(200..=299)) => "unread",
        (Some("unread") | None, ..) => "failed",
        (Some(_), ..) => "whole",
    }
}

impl Reader {
    /// Returns at most `limit` requests that match a filter, newest first.
    pub fn requests(&self, filter: &RequestFilter, limit: u32) -> Result<RequestPage, StoreError> {
        let read = || {
            let (candidates, end) = self.candidates(filter)?;
            let mut page = PageBuilder::new(filter, limit);
            for candidate in &candidates {
                if let Some(full) = page.take_full() {
                    return Ok(full);
                }
                if page.record_visit(candidate) {
                    self.request_row(&candidate.1)?.into_iter().for_each(|row| page.add(row));
                }
            }
            Ok(page.finish(candidates.len(), end))
        };
        read().map_err(|error: rusqlite::Error| self.store_error(&error))
    }

    /// Returns everything about a recovery by its number, or about a request by its id.
    pub fn request_records(&self, id: &str) -> Result<RequestRecords, StoreError> {
        let recovery = self.show(id)?;
        let first = recovery.as_ref().and_then(|found| found.rows.first());
        let request = self.request(first.map_or(id, |row| &row.request_id))?;
        Ok(RequestRecords { recovery, request })
    }

    /// Returns one request.
    pub fn request(&self, id: &str) -> Result<Option<RequestRow>, StoreError> {
        self.request_row(id).map_err(|error| self.store_error(&error))
    }

    fn request_row(&self, id: &str) -> rusqlite::Result<Option<RequestRow>> {
        let calls = self.calls_where("usage", "request_id = ?1 ORDER BY call", &[&id])?;
        if calls.is_empty() {
            return Ok(None);
        }
        let mut row = RequestRow::new(calls, self.request_cuts(id)?);
        if row.outcome == "cut" && row.cuts.is_empty() {
            let sql = "SELECT EXISTS (SELECT 1 FROM open_recoveries WHERE request_id = ?1)";
            if self.connection().prepare_cached(sql)?.query_row([id], |row| row.get(0))? {
                RECOVERING_OUTCOME.clone_into(&mut row.outcome);
            }
        }
        Ok(Some(row))
    }

    /// Returns the start times and ids of requests that may match. If the scan reached its limit, also
    /// returns where the next page starts.
    #[expect(clippy::type_complexity, reason = "two places in a list")]
    fn candidates(
        &self,
        filter: &RequestFilter,
    ) -> rusqlite::Result<(Vec<(String, String)>, Option<(String, String)>)> {
        let is_cut = filter.selects_only_cut_replies();
        let (index, only) = match (&filter.session, is_cut) {
            (Some(_), _) => ("usage_sessions", "call = 1"),
            (None, true) => ("usage_cut", "verdict = 'cut'"),
            (None, false) => ("usage_requests", "call = 1"),
        };
        let most = if index == "usage_cut" { MAX_SCANNED_CUTS } else { MAX_SCANNED_REQUESTS };
        let mut values: Vec<&dyn ToSql> = Vec::new();
        let mut scanned = format!("FROM usage INDEXED BY {index} WHERE {only}");
        if let Some(session) = &filter.session {
            scanned.push_str(" AND session = ?");
            values.push(session);
        }
        if let Some(since) = &filter.since {
            scanned.push_str(" AND started_at >= ?");
            values.push(since);
        }
        if let Some((at, id)) = &filter.before {
            scanned.push_str(" AND (started_at, request_id) < (?, ?)");
            values.extend([at as &dyn ToSql, id]);
        }
        scanned.push_str(" ORDER BY started_at DESC, request_id DESC LIMIT ");
        let end = format!("SELECT started_at, request_id {scanned} 1 OFFSET {}", most - 1);
        let end_values = values.clone();
        let mut conditions = vec!["1".to_owned()];
        let given =
            [("model", &filter.model), ("upstream", &filter.upstream), ("credential", &filter.credential)];
        for (column, value) in given.into_iter().filter_map(|(column, value)| Some((column, value.as_ref()?)))
        {
            conditions.push(format!("coalesce(u.{column}, '') = ?"));
            values.push(value);
        }
        let cut_as = |what: &str| {
            format!(
                "EXISTS (SELECT 1 FROM recoveries r WHERE r.request_id = u.request_id AND r.outcome {what})"
            )
        };
        match filter.outcome.as_deref() {
            Some("look") => conditions.push(cut_as("IN ('exhausted', 'interrupted', 'cut')")),
            Some("failed" | "unread" | "cancelled" | "interrupted") => {
                conditions.push("coalesce(u.verdict, 'unread') IN ('unread', 'cut')".to_owned());
            }
            Some("any-cut") | None => {}
            Some(_) if is_cut => {
                conditions.push(cut_as("= ?"));
                values.push(&filter.outcome);
            }
            Some(_) => {}
        }
        let sql = format!(
            "SELECT started_at, request_id FROM (SELECT started_at, request_id, model, upstream, credential, verdict
               {scanned} {most}) u WHERE {} LIMIT {MAX_CANDIDATES}",
            conditions.join(" AND ")
        );
        let place = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found: Vec<(String, String)> = self
            .connection()
            .prepare(&sql)?
            .query_map(params_from_iter(values), place)?
            .collect::<rusqlite::Result<_>>()?;
        if found.len() >= MAX_CANDIDATES as usize || filter.session.is_some() {
            return Ok((found, None));
        }
        let mut end = self.connection().prepare(&end)?;
        let mut end = end.query_map(params_from_iter(end_values), place)?;
        Ok((found, end.next().transpose()?))
    }

    /// Returns the newest calls of a session, newest first, at most `limit`.
    pub fn session_calls(&self, session: &str, limit: u32) -> Result<Vec<UsageRow>, StoreError> {
        let read = self.calls_where(
            "usage INDEXED BY usage_sessions",
            "usage.session = ?1 ORDER BY started_at DESC, request_id DESC, call DESC LIMIT ?2",
            &[&session, &limit],
        );
        read.map_err(|error| self.store_error(&error))
    }

    /// Returns the newest call of each session among the newest `requests` requests, newest first.
    pub fn newest_sessions(&self, requests: u32) -> Result<Vec<UsageRow>, StoreError> {
        let read = || -> rusqlite::Result<Vec<UsageRow>> {
            let sessions: Vec<String> = self
                .connection()
                .prepare(
                    "SELECT session FROM (SELECT session, started_at FROM usage INDEXED BY usage_requests WHERE call = 1
                       ORDER BY started_at DESC LIMIT ?1) WHERE session <> '' GROUP BY session ORDER BY max(started_at) DESC LIMIT 50",
                )?
                .query_map([requests], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            let mut newest = Vec::new();
            for session in sessions {
                newest.extend(self.calls_where(
                    "usage INDEXED BY usage_sessions",
                    "usage.session = ?1 ORDER BY started_at DESC, request_id DESC, call DESC LIMIT 1",
                    &[&session],
                )?);
            }
            Ok(newest)
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Returns the start time of the oldest recorded call, or `None` without calls.
    pub fn first_call(&self) -> Result<Option<String>, StoreError> {
        let sql = "SELECT min(started_at) FROM usage";
        self.connection().query_row(sql, [], |row| row.get(0)).map_err(|error| self.store_error(&error))
    }

    /// Returns the values of models, upstreams and clients that the filter can offer.
    pub fn request_filter_options(&self) -> Result<RequestFilterOptions, StoreError> {
        let words = |sql: &str| -> rusqlite::Result<Vec<String>> {
            self.connection().prepare(sql)?.query_map([], |row| row.get(0))?.collect()
        };
        let read = || {
            Ok(RequestFilterOptions {
                models: words(
                    "SELECT model FROM usage_classes UNION SELECT model FROM usage WHERE is_summed = 0 ORDER BY 1",
                )?,
                upstreams: words(
                    "SELECT upstream FROM usage_classes UNION SELECT upstream FROM usage WHERE is_summed = 0 ORDER BY 1",
                )?,
                credentials: words(
                    "SELECT key FROM usage_sums WHERE grain = 10 AND dimension = 'key' AND key <> ''
                     UNION SELECT credential FROM usage WHERE is_summed = 0 AND credential <> '' ORDER BY 1",
                )?,
            })
        };
        read().map_err(|error| self.store_error(&error))
    }

    fn calls_where(
        &self,
        from: &str,
        condition: &str,
        values: &[&dyn ToSql],
    ) -> rusqlite::Result<Vec<UsageRow>> {
        self.connection()
            .prepare_cached(&format!("{SELECT_USAGE} {from} {EXTRA_TABLE_JOINS} WHERE {condition}"))?
            .query_map(values, super::calls::read_usage_row)?
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::{Store, StoreLocation};

    fn insert_call(connection: &Connection, at: usize, verdict: Option<&str>, model: &str) {
        connection
            .execute(
                "INSERT INTO usage (request_id, call, purpose, session, upstream, format, model, streamed, mode, started_at,
                   http_status, ending, verdict, sent_bytes) VALUES (?1, 1, 'reply', 's', 'u', 'f', ?2, 1, 'auto', ?3, 200, 'clean', ?4, 9)",
                (format!("r{at}"), model, format!("2026-11-24 10:00:0{at}.000"), verdict),
            )
            .unwrap();
    }

    fn insert_recovery(connection: &Connection, at: i64, outcome: &str, reason: &str) {
        connection
            .execute(
                "INSERT INTO partial_completion_log (id, task_id, turn_number, resume_attempts, final_status)
                   VALUES (?1, 't', 1, 1, 'EXHAUSTED')",
                [at],
            )
            .unwrap();
        connection
            .execute(
                "INSERT INTO recoveries (log_id, request_id, slot, model, provider, cut_kind, outcome, reason)
                   VALUES (?1, ?2, 'choice 0', 'm', 'u', 'limit', ?3, ?4)",
                (at, format!("r{at}"), outcome, reason),
            )
            .unwrap();
    }

    #[test]
    fn requests_are_filtered_and_paged() {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::sqlite(folder.path().join("a.db"));
        drop(Store::open(&location).unwrap());
        let connection = Connection::open(location.path()).unwrap();
        for (at, verdict) in
            [Some("whole"), Some("cut"), Some("cut"), Some("cut"), None, None, Some("unread")]
                .into_iter()
                .enumerate()
        {
            insert_call(&connection, at, verdict, if at == 0 { "other" } else { "m" });
        }
        connection.execute("UPDATE usage SET ending = 'cancelled' WHERE request_id = 'r5'", []).unwrap();
        connection.execute("UPDATE usage SET http_status = 500 WHERE request_id = 'r6'", []).unwrap();
        insert_recovery(&connection, 1, "cut", REASON_CLIENT_LIMIT);
        insert_recovery(&connection, 2, "exhausted", "no continuation fits");
        insert_recovery(&connection, 3, "resumed", "the rest was joined");
        let reader = Reader::open(&location).unwrap();
        assert_eq!(reader.request_filter_options().unwrap().models, ["m", "other"]);
        let ids = |filter: &RequestFilter, limit| {
            let page = reader.requests(filter, limit).unwrap();
            let ids: Vec<String> = page.rows.iter().map(|row| row.calls[0].request_id.clone()).collect();
            (ids.join(" "), page.next)
        };
        let of =
            |outcome: &str| RequestFilter { outcome: Some(outcome.to_owned()), ..RequestFilter::default() };
        for (outcome, expected) in [
            ("look", "r2"),
            ("any-cut", "r3 r2 r1"),
            ("cut", "r1"),
            ("resumed", "r3"),
            ("whole", "r0"),
            ("unread", "r4"),
            ("cancelled", "r5"),
            ("interrupted", ""),
            ("failed", "r6"),
        ] {
            assert_eq!(ids(&of(outcome), 9), (expected.to_owned(), None), "{outcome}");
        }
        let (newest, next) = ids(&RequestFilter::default(), 3);
        assert_eq!(newest, "r6 r5 r4");
        let since = Some("2026-11-24 10:00:01".to_owned());
        assert_eq!(
            ids(&RequestFilter { before: next, since, ..RequestFilter::default() }, 9),
            ("r3 r2 r1".to_owned(), None)
        );
        let model = RequestFilter {
            model: Some("other".to_owned()),
            session: Some("s".to_owned()),
            ..RequestFilter::default()
        };
        assert_eq!(ids(&model, 3).0, "r0");
        let (report, own) = (reader.usage_since(u64::MAX, |_| {}).unwrap(), 1);
        assert_eq!(report.cuts.iter().map(|cut| cut.at_own_limit).sum::<u64>(), own);
        assert_eq!(report.cut_periods.iter().map(|period| period.replies).sum::<u64>(), 3);
    }
}
