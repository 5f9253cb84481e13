//! The thread that communicates with the database.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use endmark_context::budget::{Scope, WantedShare, oldest_kept_window, pace};
use tokio_postgres::Client;

use super::connect::{ConnectionFailure, connect, from_driver_error};
use super::database::{self, ExchangeOutcome, RegistrationOutcome};
use super::keys;
use super::{SharedState, deletion, lock_ignoring_poison, outputs, runs, usage};
use crate::engine::journal::rows::{CallRows, RowReader};
use crate::engine::journal::{self, Instance, ShareRequest, uploads};
use crate::engine::usage::first_kept_day;
use crate::error::StoreError;
use crate::leases::BudgetKey;

/// Interval at which the instance checks for changed keys and reports that it is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(pace::HEARTBEAT_MS);
/// How long rows wait for other rows with which they can share a transaction.
const ROW_DELAY: Duration = Duration::from_millis(pace::ROW_DELAY_MS);
/// How long rows wait while a budget is nearly exhausted and other instances wait for returned shares.
const TIGHT_ROW_DELAY: Duration = Duration::from_millis(pace::TIGHT_DELAY_MS);
/// Minimum time between two transactions. The row of one budget can be updated only a few hundred times a
/// second by all instances together.
const MIN_REPORT_INTERVAL: Duration = Duration::from_millis(pace::MIN_TRANSACTION_INTERVAL_MS);
/// Pause between reports if rows remain but no call waits.
const BACKLOG_PAUSE: Duration = Duration::from_millis(pace::BACKLOG_PAUSE_MS);
/// Maximum time by which calls that wait for a share can delay an upload.
const MAX_UPLOAD_DELAY: Duration = Duration::from_millis(250);
/// Pause after a failed upload.
const UPLOAD_RETRY_PAUSE: Duration = Duration::from_secs(5);
/// Interval at which the database is tidied: calls are summed, and expired records are deleted.
const TIDYING_INTERVAL: Duration = Duration::from_mins(1);
/// Maximum time of one transaction.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(8);
/// Pause after a failure.
const RETRY_PAUSE: Duration = Duration::from_millis(pace::RETRY_PAUSE_MS);
/// How often the token of this instance changes. The database rejects a copy of the journal that has an older
/// token.
const TOKEN_INTERVAL: Duration = Duration::from_secs(1);
/// How long a closing instance tries to report its remaining data to the database.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a report to the database failed.
enum ReportFailure {
    /// The connection is unusable.
    ConnectionLost(StoreError),
    /// This instance cannot continue with its journal.
    Permanent(StoreError),
}

/// What remains after a report to the database.
struct ReportRemainder {
    is_more: bool,
    has_uploads: bool,
}

struct Worker {
    state: Arc<SharedState>,
    instance: Instance,
    client: Option<Client>,
    reader: Option<RowReader>,
    reported_rows: u64,
    /// Duration of the last report that contained the maximum number of rows.
    full_report_ms: u64,
    renewed_token: Instant,
    uploaded: Instant,
    next_upload: Instant,
    next_tidying: Instant,
    /// Start of the oldest rate limit window that was not deleted.
    rates_since: String,
}

/// Works until the store is closed. Sends the result of the first attempt to `started`: the error if the
/// database rejects this instance, or `None` if it accepts the instance or cannot be reached.
pub(crate) async fn run(
    state: Arc<SharedState>,
    instance: Instance,
    started: mpsc::Sender<Option<StoreError>>,
) {
    let now = Instant::now();
    let mut worker = Worker {
        state,
        instance,
        client: None,
        reader: None,
        reported_rows: 0,
        full_report_ms: 0,
        renewed_token: now,
        uploaded: now,
        next_upload: now,
        next_tidying: now,
        rates_since: String::new(),
    };
    // A new journal has no keys yet. Read them first, or the first clients would be rejected.
    let first = match worker.connect().await {
        Ok(()) => worker.read_keys().await,
        failed => failed,
    };
    let refused = match first {
        Err(ReportFailure::Permanent(error)) => Some(error),
        Err(ReportFailure::ConnectionLost(error)) => {
            worker.store_result(Some(error));
            None
        }
        Ok(()) => None,
    };
    let is_refused = refused.is_some();
    // The caller of `start` waits for this result.
    let _ = started.send(refused);
    if !is_refused {
        worker.run_until_closed().await;
    }
}

impl Worker {
    async fn run_until_closed(&mut self) {
        let mut closing_since: Option<Instant> = None;
        loop {
            let is_closing = self.state.is_closing.load(Ordering::Acquire);
            let outcome = self.exchange_with_database(is_closing).await;
            let (is_more, is_told) = (matches!(outcome, Ok(true)), outcome.is_ok());
            if is_closing {
                let since = *closing_since.get_or_insert_with(Instant::now);
                let is_done = is_told && !is_more && self.is_empty().await;
                if is_done && let Some(client) = &self.client {
                    // If this fails, the database counts the instance as alive for another minute.
                    let _ =
                        tokio::time::timeout(CLOSING_TIMEOUT, database::deregister(client, &self.instance))
                            .await;
                }
                if is_done || since.elapsed() > CLOSING_TIMEOUT {
                    return;
                }
            }
            tokio::time::sleep(if is_told { MIN_REPORT_INTERVAL } else { RETRY_PAUSE }).await;
            match is_told && !is_closing {
                true if is_more => self.wait_for_calls().await,
                true => self.wait().await,
                false => {}
            }
        }
    }

    /// Pauses while rows remain, but returns early if a call waits.
    async fn wait_for_calls(&self) {
        if !lock_ignoring_poison(&self.state.requests).is_waiting() {
            // In both cases the next report follows.
            let _ = tokio::time::timeout(BACKLOG_PAUSE, self.state.wake.notified()).await;
        }
    }

    /// Waits for something to report, or for the next heartbeat.
    async fn wait(&mut self) {
        let delay =
            if lock_ignoring_poison(&self.state.requests).has_tight() { TIGHT_ROW_DELAY } else { ROW_DELAY };
        let begin = Instant::now();
        while begin.elapsed() < HEARTBEAT_INTERVAL {
            if lock_ignoring_poison(&self.state.requests).is_waiting() {
                return;
            }
            let _ = tokio::time::timeout(delay, self.state.wake.notified()).await;
            let rows = self.state.writer.counts().rows;
            let has_rows = mem::replace(&mut self.reported_rows, rows) != rows;
            let has_uploads = self.state.has_uploads.swap(false, Ordering::AcqRel);
            if has_rows
                || has_uploads
                || self.state.is_closing.load(Ordering::Acquire)
                || delay == TIGHT_ROW_DELAY
            {
                return;
            }
        }
    }

    /// Reports due data to the database and stores the result. Returns whether there is more to report.
    async fn exchange_with_database(&mut self, is_closing: bool) -> Result<bool, StoreError> {
        let (requests, answers) =
            lock_ignoring_poison(&self.state.requests).take(self.state.clock.now_ms(), is_closing);
        let mut outcome = self.try_report(requests.clone(), is_closing).await;
        if let Err(ReportFailure::ConnectionLost(_)) = outcome {
            // The server may have been restarted, so connect again at once.
            self.client = None;
            outcome = self.try_report(requests, is_closing).await;
        }
        let outcome = outcome.map_err(|failure| {
            self.client = None;
            let (ReportFailure::ConnectionLost(error) | ReportFailure::Permanent(error)) = failure;
            error
        });
        let answer = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        // Store the error first. A caller that receives it then also sees it in the store's condition.
        self.store_result(answer.as_ref().err().cloned());
        self.count_unreported_rows();
        for waiting in answers {
            // The caller may have stopped waiting.
            let _ = waiting.send(answer.clone());
        }
        // No caller waits for uploads.
        let ReportRemainder { is_more, has_uploads } = outcome?;
        Ok(self.upload_and_tidy(has_uploads).await || is_more)
    }

    async fn try_report(
        &mut self,
        requests: Vec<ShareRequest>,
        is_closing: bool,
    ) -> Result<ReportRemainder, ReportFailure> {
        if self.client.is_none() {
            self.connect().await?;
        }
        let leases = Arc::clone(&self.state.leases);
        let renewed = self.renew_token().then(|| self.instance.clone());
        let has_waiting_calls = requests.iter().any(|request| request.wanted.smallest_call > 0);
        let state = Arc::clone(&self.state);
        let with_report = move |key: &BudgetKey| {
            if is_closing {
                WantedShare::default()
            } else {
                lock_ignoring_poison(&state.requests).with_report(key)
            }
        };
        let state = Arc::clone(&self.state);
        let prepared = state.writer.write(move |session| {
            renewed.iter().try_for_each(|instance| journal::save_instance(session, instance))?;
            journal::collect_due_report(session, &leases, &requests, with_report, is_closing)
        });
        // The writer prepares its part while this thread reads rows.
        let (due, rows) = tokio::join!(biased; prepared, async { self.read_rows(has_waiting_calls) });
        let (due, rows) =
            (due.map_err(ReportFailure::ConnectionLost)?, rows.map_err(ReportFailure::ConnectionLost)?);
        let sent_ms = self.state.clock.now_ms();
        lock_ignoring_poison(&self.state.requests).record_in_progress(sent_ms, &due.in_progress);
        let lost = |detail: &str| ReportFailure::ConnectionLost(self.state.address.store_error(detail));
        let Some(client) = &mut self.client else { return Err(lost("no connection")) };
        match self.state.within_timeout(database::exchange(client, &self.instance, &due, &rows)).await? {
            ExchangeOutcome::Unknown => {
                // Registering again discards granted shares.
                self.client = None;
                lock_ignoring_poison(&self.state.tenure).end();
                Err(lost("it does not know this instance any more: its shares were forfeited"))
            }
            ExchangeOutcome::Done { granted, keys_version } => {
                if !self.instance.next_token.is_empty() {
                    self.instance.token = mem::take(&mut self.instance.next_token);
                }
                let rates = due.shares.iter().filter(|(key, _)| key.scope == Scope::Rate);
                let oldest = rates.filter_map(|(key, _)| oldest_kept_window(&key.window)).max();
                let (through, is_more, has_uploads) =
                    (rows.last_change, due.is_more || rows.is_more, due.has_uploads);
                let leases = Arc::clone(&self.state.leases);
                lock_ignoring_poison(&self.state.requests).record_granted(&granted);
                let applied = self
                    .state
                    .writer
                    .write(move |session| journal::record_grants(session, &leases, through, &granted));
                applied.await.map_err(ReportFailure::ConnectionLost)?;
                lock_ignoring_poison(&self.state.tenure).confirm(sent_ms);
                if let Some(oldest) = oldest.filter(|oldest| *oldest > self.rates_since) {
                    self.state.within_timeout(database::delete_old_rate_windows(client, &oldest)).await?;
                    self.rates_since = oldest;
                }
                if keys_version != self.state.keys_version.load(Ordering::Acquire) {
                    self.read_keys().await?;
                }
                self.state.keys_checked_ms.store(sent_ms, Ordering::Release);
                Ok(ReportRemainder { is_more, has_uploads })
            }
        }
    }

    /// Reads rows that were not reported yet.
    fn read_rows(&mut self, has_waiting_calls: bool) -> Result<CallRows, StoreError> {
        let now_ms = self.state.clock.now_ms();
        let most = pace::max_rows(has_waiting_calls, now_ms.saturating_sub(self.full_report_ms));
        if most >= pace::MAX_ROWS {
            self.full_report_ms = now_ms;
        }
        self.reader()?.oldest(most)
    }

    /// Publishes the size of the backlog. If the journal cannot be read, the next report fails and says so.
    fn count_unreported_rows(&mut self) {
        if let Ok(rows) = self.reader().and_then(super::super::engine::journal::rows::RowReader::count) {
            self.state.unreported_rows.store(rows, Ordering::Relaxed);
        }
    }

    fn reader(&mut self) -> Result<&RowReader, StoreError> {
        Ok(match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(RowReader::open(&self.state.path)?),
        })
    }

    /// Chooses a new token if the current one is old. The journal stores it before the database gets it.
    fn renew_token(&mut self) -> bool {
        let is_due = self.renewed_token.elapsed() >= TOKEN_INTERVAL && self.instance.next_token.is_empty();
        if is_due {
            (self.instance.next_token, self.renewed_token) = (random_text(), Instant::now());
        }
        is_due
    }

    /// Uploads outputs and summaries, and regularly tidies the database. Returns whether there is more to
    /// upload. A failure here does not stop the reports of budgets and rows, which detect a lost connection
    /// themselves.
    async fn upload_and_tidy(&mut self, has_uploads: bool) -> bool {
        let (now, is_waiting) = (Instant::now(), lock_ignoring_poison(&self.state.requests).is_waiting());
        if now < self.next_upload {
            return false;
        }
        if is_waiting && self.uploaded.elapsed() < MAX_UPLOAD_DELAY {
            return has_uploads;
        }
        self.uploaded = now;
        let Some(client) = &mut self.client else { return false };
        let (writer, address) = (&self.state.writer, &self.state.address);
        let failed = |error: tokio_postgres::Error| address.statement_error(&error);
        let keep_days = self.state.keep_days.load(Ordering::Acquire);
        let tidies = now >= self.next_tidying || keep_days > 0;
        let work = async {
            let mut is_more = false;
            if has_uploads {
                let due = writer.write(|session| uploads::collect(session)).await?;
                let incomplete = outputs::upload(client, &self.instance.id, &due).await.map_err(failed)?;
                is_more =
                    writer.write(move |session| uploads::mark_uploaded(session, &due, &incomplete)).await?;
            }
            let has_expired = tidies && tidy_database(client, keep_days).await.map_err(failed)?;
            Ok::<_, StoreError>((is_more, has_expired))
        };
        let outcome = tokio::time::timeout(TRANSACTION_TIMEOUT, work).await;
        if outcome.is_err() {
            self.client = None;
        }
        match outcome.unwrap_or_else(|_| Err(self.state.address.timeout_error(TRANSACTION_TIMEOUT))) {
            Ok((is_more, has_expired)) => {
                if tidies && !has_expired {
                    self.next_tidying = now + TIDYING_INTERVAL;
                    // Keep a request for deletion that arrived in the meantime.
                    let requested = &self.state.keep_days;
                    let _ = requested.compare_exchange(keep_days, 0, Ordering::AcqRel, Ordering::Acquire);
                }
                is_more
            }
            Err(error) => {
                tracing::warn!(%error, "cannot upload kept outputs and summaries, or sum and delete old rows of the database, now");
                self.next_upload = now + UPLOAD_RETRY_PAUSE;
                false
            }
        }
    }

    async fn read_keys(&mut self) -> Result<(), ReportFailure> {
        let Some(client) = &mut self.client else { return Ok(()) };
        let (version, keys, secrets) = self.state.within_timeout(keys::query_keys(client)).await?;
        let replaced =
            self.state.writer.write(move |session| journal::replace_keys(session, version, &keys, &secrets));
        replaced.await.map_err(ReportFailure::ConnectionLost)?;
        self.state.keys_version.store(version, Ordering::Release);
        Ok(())
    }

    /// Connects, creates missing tables, and registers this instance.
    async fn connect(&mut self) -> Result<(), ReportFailure> {
        let mut client = connect(&self.state.address)
            .await
            .map_err(|unconnected| self.state.connection_failure(unconnected))?;
        let registering = tokio::time::timeout(TRANSACTION_TIMEOUT, self.register(&mut client)).await;
        registering.map_err(|_| {
            ReportFailure::ConnectionLost(self.state.address.timeout_error(TRANSACTION_TIMEOUT))
        })??;
        self.client = Some(client);
        Ok(())
    }

    async fn register(&mut self, client: &mut Client) -> Result<(), ReportFailure> {
        let state = Arc::clone(&self.state);
        let lost = |error: tokio_postgres::Error| state.connection_failure(from_driver_error(&error));
        let found = database::create_tables(client).await.map_err(lost)?;
        self.state.address.check_schema(found).map_err(ReportFailure::Permanent)?;
        // After a lost connection, the database still has the current token.
        if self.instance.next_token.is_empty() {
            self.instance.next_token = random_text();
        }
        self.save_instance().await?;
        let mut registered = database::register(client, &self.instance, false).await.map_err(lost)?;
        if registered == RegistrationOutcome::Outdated {
            tracing::warn!(
                "the journal is older than the database's record of this instance, and is brought up to date"
            );
            let spent =
                database::query_instance_shares(client, &self.instance.id, true).await.map_err(lost)?;
            // Write this before the database accepts the instance. If the process is killed in between, the
            // next start repeats both steps.
            let caught_up =
                self.state.writer.write(move |session| journal::raise_spent_amounts(session, &spent));
            caught_up.await.map_err(ReportFailure::ConnectionLost)?;
            registered = database::register(client, &self.instance, true).await.map_err(lost)?;
        }
        if registered != RegistrationOutcome::Accepted {
            return Err(ReportFailure::Permanent(StoreError::InstanceInUse {
                path: self.state.path.clone(),
            }));
        }
        self.instance.token = mem::take(&mut self.instance.next_token);
        self.save_instance().await?;
        let open = database::query_instance_shares(client, &self.instance.id, false).await.map_err(lost)?;
        let leases = Arc::clone(&self.state.leases);
        let forgotten = self.state.writer.write(move |session| {
            journal::discard_grants(session, &leases)?;
            journal::schedule_reports(session, &open)
        });
        forgotten.await.map_err(ReportFailure::ConnectionLost)
    }

    async fn save_instance(&self) -> Result<(), ReportFailure> {
        let instance = self.instance.clone();
        self.state
            .writer
            .write(move |session| journal::save_instance(session, &instance))
            .await
            .map_err(ReportFailure::ConnectionLost)
    }

    async fn is_empty(&self) -> bool {
        let (_, rows) = self.state.writer.waiting_counts();
        rows == 0
            && self
                .state
                .writer
                .write(|session| journal::is_everything_reported(session))
                .await
                .unwrap_or(true)
    }

    /// Stores the result of a report, and logs a change.
    fn store_result(&self, failure: Option<StoreError>) {
        let mut known = lock_ignoring_poison(&self.state.failure);
        match (&*known, &failure) {
            (None, Some(error)) => {
                tracing::error!(%error, "the shared database fails: rows wait in the journal");
            }
            (Some(_), None) => tracing::info!("the shared database works again"),
            _ => {}
        }
        *known = failure;
    }
}

impl SharedState {
    /// Waits for an answer of the database until the deadline.
    async fn within_timeout<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, ReportFailure> {
        let answer = tokio::time::timeout(TRANSACTION_TIMEOUT, answer).await;
        let answer = answer
            .map_err(|_| ReportFailure::ConnectionLost(self.address.timeout_error(TRANSACTION_TIMEOUT)))?;
        answer.map_err(|error| ReportFailure::ConnectionLost(self.address.statement_error(&error)))
    }

    fn connection_failure(&self, unconnected: ConnectionFailure) -> ReportFailure {
        let error = self.address.store_error(unconnected.detail);
        if unconnected.is_final {
            ReportFailure::Permanent(error)
        } else {
            ReportFailure::ConnectionLost(error)
        }
    }
}

/// Sums a batch of calls, and deletes a batch of expired records. Returns whether there is more.
async fn tidy_database(client: &mut Client, keep_days: u32) -> Result<bool, tokio_postgres::Error> {
    let mut is_more = usage::sum_next_calls(client).await?;
    is_more |= outputs::delete_expired(client).await?;
    if keep_days > 0 {
        is_more |= deletion::delete_before(client, &first_kept_day(keep_days)).await?;
        runs::delete_old(client, keep_days).await?;
    }
    Ok(is_more)
}

/// Returns a random unique text, for names and tokens of instances.
pub(crate) fn random_text() -> String {
    random_number().to_string()
}

/// Returns a random unique number.
pub(crate) fn random_number() -> u128 {
    let mut bytes = [0_u8; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // If the system provides no random bytes, derive the number from the time and the process id.
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes[..8].copy_from_slice(&since.as_nanos().to_le_bytes()[..8]);
        bytes[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    }
    u128::from_le_bytes(bytes)
}
