//! Observes one request from its admission to its end, for metrics and the log.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use endmark_recovery::Ending;
use endmark_store::CallStarted;
use http::{HeaderMap, StatusCode};
use tracing::Span;

use super::endings::{CallEnd, RequestEnd};
use crate::api::ApiNames;
use crate::metrics::{GenerativeCall, Metrics};
use crate::reply::Outcome;
use crate::stopping::{ShutdownStage, Stopping};
use crate::telemetry;

/// Observes a request. Dropping this records the end of the request.
pub(crate) struct RequestWatch {
    metrics: Arc<Metrics>,
    stopping: Arc<Stopping>,
    request: String,
    upstream: String,
    api: ApiNames,
    streamed: bool,
    began: Instant,
    ended: OnceLock<RequestEnd>,
    /// The model of the first call.
    model: OnceLock<String>,
    calls: AtomicU32,
    /// Microseconds until the first call started.
    sent_after_micros: AtomicU64,
    /// Total microseconds of all calls.
    call_micros: AtomicU64,
    span: Span,
}

impl RequestWatch {
    /// Starts to observe a request that was just read.
    pub(crate) fn new(
        metrics: &Arc<Metrics>,
        stopping: &Arc<Stopping>,
        request: String,
        upstream: String,
        api: ApiNames,
        streamed: bool,
        client: &HeaderMap,
    ) -> Self {
        metrics.note_start();
        let span = telemetry::start_request_span(&request, &upstream, &api, streamed, client);
        Self {
            metrics: Arc::clone(metrics),
            stopping: Arc::clone(stopping),
            request,
            upstream,
            api,
            streamed,
            began: Instant::now(),
            ended: OnceLock::new(),
            model: OnceLock::new(),
            calls: AtomicU32::new(0),
            sent_after_micros: AtomicU64::new(0),
            call_micros: AtomicU64::new(0),
            span,
        }
    }

    /// Returns the parent span of the calls, if traces are collected.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// Records how the request ended. Only the first record counts.
    pub(crate) fn end(&self, ended: RequestEnd) {
        // A second record would describe the same end.
        let _ = self.ended.set(ended);
    }

    /// Returns the ending of an abandoned call: the client disconnected, or the gateway is stopping.
    pub(super) fn abandoned_ending(&self) -> Ending {
        if self.stopping.has_reached(ShutdownStage::Interrupted) {
            Ending::Interrupted
        } else {
            Ending::Cancelled
        }
    }

    /// Records that the first call is made.
    pub(super) fn note_sent(&self) {
        self.sent_after_micros.store(micros(self.began.elapsed()), Ordering::Relaxed);
    }

    /// Records that one of the calls raised a budget to a warning level.
    pub(super) fn note_budget_warning(&self, budget: &'static str, percent: u8) {
        self.metrics.note_budget_warning(budget, percent);
    }

    /// Records that a call has ended.
    pub(super) fn note_call(
        &self,
        started: &CallStarted,
        status: Option<StatusCode>,
        first_byte: Option<u64>,
        total: u64,
        model: Option<&str>,
        end: &CallEnd,
    ) {
        self.model.get_or_init(|| started.model.clone());
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.call_micros.fetch_add(total, Ordering::Relaxed);
        let first_byte = first_byte.map(Duration::from_micros);
        let call = GenerativeCall {
            api: &self.api,
            model,
            status,
            ending: end.ending,
            duration: Duration::from_micros(total),
            usage: end.usage.as_ref(),
        };
        self.metrics.note_call(&started.upstream, started.purpose.name(), first_byte, &call);
    }

    /// Returns the latency that the gateway added: until the first byte of a stream, or in total for other replies.
    fn added_latency(&self, took: Duration, ended: RequestEnd) -> Option<Duration> {
        if self.calls.load(Ordering::Relaxed) != 1 || !matches!(ended, RequestEnd::Replied(_)) {
            return None;
        }
        let added = if self.streamed {
            self.sent_after_micros.load(Ordering::Relaxed)
        } else {
            micros(took).saturating_sub(self.call_micros.load(Ordering::Relaxed))
        };
        Some(Duration::from_micros(added))
    }
}

impl Drop for RequestWatch {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let ended = self.ended.get().copied().unwrap_or_else(|| match self.abandoned_ending() {
            Ending::Interrupted => RequestEnd::Failed,
            _ => RequestEnd::Cancelled,
        });
        let is_refused = ended == RequestEnd::Failed && self.calls.load(Ordering::Relaxed) == 0;
        let ended = if is_refused { RequestEnd::Refused } else { ended };
        self.metrics.note_end(
            &self.upstream,
            self.api.name,
            ended.name(),
            took,
            self.added_latency(took, ended),
        );
        telemetry::end_request_span(
            &self.span,
            ended.name(),
            ended.is_failure(),
            self.calls.load(Ordering::Relaxed),
        );
        self.log(ended, took);
    }
}

/// The log target of the line that each request gets.
const ACCESS_TARGET: &str = "endmark::access";

impl RequestWatch {
    /// Logs the request: at the level debug if its reply was whole or unread, otherwise at the level info.
    fn log(&self, ended: RequestEnd, took: Duration) {
        let status = if let RequestEnd::UpstreamError(status) = ended { Some(status) } else { None };
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: ACCESS_TARGET,
                    request = self.request,
                    upstream = self.upstream,
                    model = self.model.get().map(String::as_str),
                    format = self.api.name,
                    streamed = self.streamed,
                    outcome = ended.name(),
                    status,
                    calls = self.calls.load(Ordering::Relaxed),
                    took_us = micros(took),
                    "answered"
                )
            };
        }
        match ended {
            RequestEnd::Replied(Outcome::Whole) | RequestEnd::Unread => line!(debug),
            RequestEnd::Replied(_)
            | RequestEnd::UpstreamError(_)
            | RequestEnd::Failed
            | RequestEnd::Refused
            | RequestEnd::Cancelled => line!(info),
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
