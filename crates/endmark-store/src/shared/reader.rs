//! Reads the records of all instances in the database. Each method returns the same data as the method of
//! [`Reader`](crate::engine::Reader) with the same name, but for all instances.

use std::collections::BTreeMap;

use tokio_postgres::{Client, Error};

use super::address::PostgresAddress;
use super::usage::SharedSums;
use super::{calls, database, recoveries, request_list, usage};
use crate::calls::UsageRow;
use crate::engine::{
    CountedCalls, CutPeriod, CutReport, CutReportBuilder, CutSummary, Dimension, LogFilter, RequestFilter,
    RequestPage, RequestRow,
};
use crate::error::StoreError;
use crate::records::RecoveryRow;

/// A connection for reading a database that instances share.
pub struct SharedReader {
    pub(crate) client: Client,
    pub(crate) address: PostgresAddress,
    /// The instance of this machine's journal; empty if this machine has no journal.
    pub(crate) instance: String,
}

/// The data of a report about cuts, for all instances.
#[derive(Debug, Default)]
pub struct SharedCutReport {
    /// The sums of all calls.
    pub sums: SharedSums,
    cuts: Vec<CutSummary>,
    cut_periods: Vec<CutPeriod>,
}

impl SharedCutReport {
    /// Returns the report. Passes the sums of recovery calls to `of_recovery`.
    pub fn report(&self, mut of_recovery: impl FnMut(&CountedCalls<'_>)) -> CutReport {
        let mut parts = CutReportBuilder::default();
        self.sums.iter().for_each(|summed| parts.add(&summed, &mut of_recovery));
        parts.finish(self.cuts.clone(), self.cut_periods.clone(), self.sums.separately_billed.clone())
    }
}

impl SharedReader {
    fn convert_error<T>(&self, answer: Result<T, Error>) -> Result<T, StoreError> {
        answer.map_err(|error| self.address.statement_error(&error))
    }

    /// Returns an error if the database has another schema than this version.
    pub(crate) async fn check_schema(&self) -> Result<(), StoreError> {
        let schema = self.convert_error(database::query_schema_version(&self.client).await)?.unwrap_or(0);
        self.address.check_schema(schema)?;
        if schema < database::SCHEMA_VERSION {
            return Err(self
                .address
                .store_error("it has no tables of this version: start a gateway, which makes them"));
        }
        Ok(())
    }

    /// Returns the newest recoveries that match a filter, newest first, at most `limit`.
    ///
    /// # Errors
    /// Each method: [`StoreError`] if the database fails.
    pub async fn recent(&self, limit: u32, filter: &LogFilter) -> Result<Vec<RecoveryRow>, StoreError> {
        self.convert_error(recoveries::recent(&self.client, &self.instance, filter, limit).await)
    }

    /// Returns the recoveries of these requests.
    pub async fn cuts(&self, requests: &[&str]) -> Result<Vec<RecoveryRow>, StoreError> {
        self.convert_error(recoveries::of_requests(&self.client, &self.instance, requests).await)
    }

    /// Reads the data of a report about cuts, for calls that began at or after `since` and before `until`.
    pub async fn report(&self, since: &str, until: &str) -> Result<SharedCutReport, StoreError> {
        let (cuts, cut_periods) =
            self.convert_error(recoveries::cut_replies(&self.client, since, until).await)?;
        let sums = self.sums(Dimension::Nothing, since, until).await?;
        Ok(SharedCutReport { sums, cuts, cut_periods })
    }

    /// Reads the sums of all calls that began at or after `since` and before `until` (`YYYY-MM-DD HH:MM:SS`,
    /// UTC).
    pub async fn sums(&self, by: Dimension, since: &str, until: &str) -> Result<SharedSums, StoreError> {
        self.convert_error(usage::query_sums(&self.client, by, since, until).await)
    }

    /// Reads the sums of all calls of a session.
    pub async fn session_sums(&self, session: &str) -> Result<SharedSums, StoreError> {
        self.convert_error(usage::session_sums(&self.client, session).await)
    }

    /// Returns the newest calls of a session, newest first, at most `limit`.
    pub async fn session_calls(&self, session: &str, limit: u32) -> Result<Vec<UsageRow>, StoreError> {
        self.convert_error(calls::of_session(&self.client, session, limit).await)
    }

    /// Returns the newest call of each session among the newest `requests` requests, newest first.
    pub async fn newest_sessions(&self, requests: u32) -> Result<Vec<UsageRow>, StoreError> {
        self.convert_error(calls::newest_of_sessions(&self.client, requests).await)
    }

    /// Returns the newest calls, newest first, at most `limit`.
    pub async fn recent_calls(&self, limit: u32) -> Result<Vec<UsageRow>, StoreError> {
        self.convert_error(calls::recent(&self.client, limit).await)
    }

    /// Returns the start time of the oldest recorded call, or `None` without calls.
    pub async fn first_call(&self) -> Result<Option<String>, StoreError> {
        self.convert_error(calls::first(&self.client).await)
    }

    /// Returns the number of judged replies by hour (`YYYY-MM-DD HH`), for calls that began at or after
    /// `since`.
    pub async fn replies_by_hour(&self, since: &str) -> Result<BTreeMap<String, u64>, StoreError> {
        self.convert_error(calls::replies_by_hour(&self.client, since).await)
    }

    /// Returns at most `limit` requests that match a filter, newest first.
    pub async fn requests(&self, filter: &RequestFilter, limit: u32) -> Result<RequestPage, StoreError> {
        self.convert_error(request_list::page(&self.client, &self.instance, filter, limit).await)
    }

    /// Returns requests by their ids. Unknown ids are skipped.
    pub async fn requests_by_id(&self, ids: &[&str]) -> Result<Vec<RequestRow>, StoreError> {
        self.convert_error(request_list::of_ids(&self.client, &self.instance, ids).await)
    }
}
