//! The gateway's metrics in Prometheus's text format.
//!
//! All labels have few values. Upstreams come from the configuration, models must be in the table of models,
//! and all other label values are Endmark's own. A client could otherwise create any number of series.

mod added_latency;
mod generative;
mod labels;
mod path_shapes;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use endmark_store::StoreCondition;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use added_latency::AddedLatencyCounts;
pub(crate) use generative::GenerativeCall;
use generative::GenerativeMetrics;
use labels::{
    BudgetLabels, CallLabels, CutLabels, KindLabels, ModeLabels, RequestLabels, TokenLabels, UpstreamLabels,
};
use path_shapes::PathShapes;

/// Bucket boundaries in seconds, from a short reply of a small local model to a long reply of a large one.
const LATENCY_BUCKETS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

/// Bucket boundaries in seconds for the latency that the gateway adds. A proxy normally adds microseconds.
const ADDED_LATENCY_BUCKETS: [f64; 10] =
    [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.1, 1.0];

/// The metrics of one process.
// Fields: one for each metric.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    refusals: Family<KindLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    cuts: Family<CutLabels, Counter>,
    repaired_calls: Family<UpstreamLabels, Counter>,
    capped_results: Family<UpstreamLabels, Counter>,
    compacted_requests: Family<ModeLabels, Counter>,
    lost_ends: Family<UpstreamLabels, Counter>,
    budget_warnings: Family<BudgetLabels, Counter>,
    uncounted_requests: Family<KindLabels, Counter>,
    uncounted_paths: PathShapes,
    tokens: Family<TokenLabels, Counter>,
    generative: GenerativeMetrics,
    first_byte: Family<UpstreamLabels, Histogram>,
    duration: Family<UpstreamLabels, Histogram>,
    added_latency: Histogram,
    added_counts: AddedLatencyCounts,
    open_requests: Gauge,
    circuits: Family<UpstreamLabels, Gauge>,
    store: StoreMetrics,
    log_lines_lost: Counter,
    /// Returns the number of lost log lines, if the log counts them.
    count_lost_lines: OnceLock<fn() -> u64>,
}

/// Metrics of the store's condition.
#[derive(Default)]
struct StoreMetrics {
    calls_open: Gauge,
    rows_waiting: Gauge,
    rows_unreported: Gauge,
    writes_waiting: Gauge,
    degraded: Gauge,
    rows: Counter,
    rows_lost: Counter,
    cut_records_lost: Counter,
    calls_unnoted: Counter,
    failed_transactions: Counter,
    commits: Counter,
    renewals: Counter,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let latencies = || Histogram::new(LATENCY_BUCKETS);
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            refusals: Family::default(),
            calls: Family::default(),
            cuts: Family::default(),
            repaired_calls: Family::default(),
            capped_results: Family::default(),
            compacted_requests: Family::default(),
            lost_ends: Family::default(),
            budget_warnings: Family::default(),
            uncounted_requests: Family::default(),
            uncounted_paths: PathShapes::default(),
            tokens: Family::default(),
            generative: GenerativeMetrics::new(),
            first_byte: Family::new_with_constructor(latencies),
            duration: Family::new_with_constructor(latencies),
            added_latency: Histogram::new(ADDED_LATENCY_BUCKETS),
            added_counts: AddedLatencyCounts::default(),
            open_requests: Gauge::default(),
            circuits: Family::default(),
            store: StoreMetrics::default(),
            log_lines_lost: Counter::default(),
            count_lost_lines: OnceLock::new(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        self.generative.register(&mut self.registry);
        let registry = self.registry.sub_registry_with_prefix("endmark");
        registry.register(
            "log_lines_lost",
            "Lines of the log that were dropped because their reader stalled",
            self.log_lines_lost.clone(),
        );
        registry.register("requests", "Requests for replies, by how they ended", self.requests.clone());
        registry.register(
            "refusals",
            "Requests answered with an error of Endmark's own",
            self.refusals.clone(),
        );
        registry.register("upstream_calls", "Calls of upstreams that are over", self.calls.clone());
        registry.register(
            "cut_replies",
            "Parts of replies that were cut, by what became of them",
            self.cuts.clone(),
        );
        registry.register(
            "repaired_calls",
            "Calls in requests' conversations whose arguments were not JSON",
            self.repaired_calls.clone(),
        );
        registry.register(
            "capped_results",
            "Results of tools that went upstream capped, counted for each request",
            self.capped_results.clone(),
        );
        registry.register(
            "compacted_requests",
            "Requests that went upstream with the older part of their conversation condensed",
            self.compacted_requests.clone(),
        );
        registry.register(
            "lost_ends",
            "Streams that broke off after the end of their reply",
            self.lost_ends.clone(),
        );
        registry.register(
            "budget_warnings",
            "Budgets that came to 80 or 95 percent, once in each window",
            self.budget_warnings.clone(),
        );
        registry.register(
            "uncounted_requests",
            "Uncounted requests that passed although a budget applies, by kind of path",
            self.uncounted_requests.clone(),
        );
        registry.register("tokens", "Tokens, as upstreams report them", self.tokens.clone());
        let seconds = Unit::Seconds;
        registry.register_with_unit(
            "first_byte",
            "From an upstream call's beginning to the first byte of its answer",
            seconds.clone(),
            self.first_byte.clone(),
        );
        registry.register_with_unit(
            "request_duration",
            "From the whole request to the end of its reply",
            seconds.clone(),
            self.duration.clone(),
        );
        registry.register_with_unit(
            "added",
            "Time that Endmark itself adds to a request that needs one upstream call",
            seconds,
            self.added_latency.clone(),
        );
        registry.register(
            "requests_open",
            "Requests for replies under way, streams included",
            self.open_requests.clone(),
        );
        registry.register(
            "upstream_down",
            "Whether an upstream with a fallback is taken for down",
            self.circuits.clone(),
        );
        self.store.register(registry);
    }
}

impl StoreMetrics {
    fn register(&self, registry: &mut Registry) {
        let store = self;
        registry.register("store_calls_open", "Upstream calls under way", store.calls_open.clone());
        registry.register(
            "store_rows_waiting",
            "Calls that are over and wait for their row",
            store.rows_waiting.clone(),
        );
        registry.register(
            "store_rows_unreported",
            "Rows of calls that the shared database does not have yet",
            store.rows_unreported.clone(),
        );
        registry.register("store_writes_waiting", "Other writes that wait", store.writes_waiting.clone());
        registry.register("store_degraded", "Whether the store fails at the moment", store.degraded.clone());
        registry.register("store_rows", "Rows of calls committed", store.rows.clone());
        registry.register("store_rows_lost", "Calls that will have no row", store.rows_lost.clone());
        registry.register(
            "store_cuts_lost",
            "Cut replies that will have no record",
            store.cut_records_lost.clone(),
        );
        registry.register(
            "store_calls_unnoted",
            "Notes of calls that were not taken: a kill would have lost them",
            store.calls_unnoted.clone(),
        );
        registry.register("store_failures", "Transactions that failed", store.failed_transactions.clone());
        registry.register("store_commits", "Transactions committed", store.commits.clone());
        registry.register("store_renewals", "Times a new store was started", store.renewals.clone());
    }
}

impl Metrics {
    /// Records that a request for a reply begins.
    pub(crate) fn note_start(&self) {
        self.open_requests.inc();
    }

    /// Records that a request has ended.
    pub(crate) fn note_end(
        &self,
        upstream: &str,
        format: &'static str,
        outcome: &'static str,
        took: Duration,
        added: Option<Duration>,
    ) {
        self.open_requests.dec();
        let labels = RequestLabels { upstream: upstream.to_owned(), format, outcome };
        self.requests.get_or_create(&labels).inc();
        self.duration.get_or_create(&UpstreamLabels::new(upstream)).observe(took.as_secs_f64());
        if let Some(added) = added {
            self.added_latency.observe(added.as_secs_f64());
            self.added_counts.observe(added.as_secs_f64());
        }
    }

    /// Returns the median and the 95th percentile of the added latency in milliseconds. Returns `None` before the
    /// first request.
    pub(crate) fn added_ms(&self) -> Option<(f64, f64)> {
        self.added_counts.percentiles_ms()
    }

    /// Records that the gateway answered a request with its own error.
    pub(crate) fn note_refusal(&self, kind: &'static str) {
        self.refusals.get_or_create(&KindLabels { kind }).inc();
    }

    /// Returns how many requests the gateway answered with an error of this kind.
    pub(crate) fn refusals(&self, kind: &'static str) -> u64 {
        self.refusals.get_or_create(&KindLabels { kind }).get()
    }

    /// Records that an upstream call has ended.
    pub(crate) fn note_call(
        &self,
        upstream: &str,
        purpose: &'static str,
        first_byte: Option<Duration>,
        call: &GenerativeCall<'_>,
    ) {
        self.generative.note_call(call);
        let status = call.status;
        let labels = CallLabels { upstream: upstream.to_owned(), purpose, status: labels::status(status) };
        self.calls.get_or_create(&labels).inc();
        if let Some(first_byte) = first_byte {
            self.first_byte.get_or_create(&UpstreamLabels::new(upstream)).observe(first_byte.as_secs_f64());
        }
        let Some(usage) = call.usage else { return };
        let counts = [
            ("prompt", Some(usage.prompt)),
            ("output", Some(usage.completion)),
            ("cached", usage.cached),
            ("reasoning", usage.reasoning),
        ];
        for (kind, count) in counts.into_iter().filter_map(|(kind, count)| Some((kind, count?))) {
            let labels = TokenLabels { upstream: upstream.to_owned(), purpose, kind };
            self.tokens.get_or_create(&labels).inc_by(count);
        }
    }

    /// Records that a part of a reply was cut, and its outcome.
    pub(crate) fn note_cut(&self, upstream: &str, kind: &'static str, outcome: &'static str) {
        self.cuts.get_or_create(&CutLabels { upstream: upstream.to_owned(), kind, outcome }).inc();
    }

    /// Records that arguments of tool calls in a conversation were repaired.
    pub(crate) fn note_repairs(&self, upstream: &str, calls: u64) {
        self.repaired_calls.get_or_create(&UpstreamLabels::new(upstream)).inc_by(calls);
    }

    /// Records that tool results of a request were capped.
    pub(crate) fn note_capped_results(&self, upstream: &str, results: u64) {
        self.capped_results.get_or_create(&UpstreamLabels::new(upstream)).inc_by(results);
    }

    /// Records that the older part of a request's conversation was condensed.
    pub(crate) fn note_compaction(&self, upstream: &str, mode: &'static str) {
        self.compacted_requests.get_or_create(&ModeLabels { upstream: upstream.to_owned(), mode }).inc();
    }

    /// Records that a stream broke off after the end of its reply.
    pub(crate) fn note_lost_end(&self, upstream: &str) {
        self.lost_ends.get_or_create(&UpstreamLabels::new(upstream)).inc();
    }

    /// Records that a budget reached a warning level for the first time in its window.
    pub(crate) fn note_budget_warning(&self, budget: &'static str, percent: u8) {
        self.budget_warnings.get_or_create(&BudgetLabels { budget, percent }).inc();
    }

    /// Counts a request whose cost was not counted. Returns whether its path was the first of this shape.
    pub(crate) fn note_uncounted(&self, kind: &'static str, path: &str) -> bool {
        self.uncounted_requests.get_or_create(&KindLabels { kind }).inc();
        self.uncounted_paths.is_new_shape(path)
    }

    /// Records whether an upstream counts as down.
    pub(crate) fn set_circuit(&self, upstream: &str, is_down: bool) {
        self.circuits.get_or_create(&UpstreamLabels::new(upstream)).set(i64::from(is_down));
    }

    /// Records the condition of the store.
    pub(crate) fn set_store_condition(&self, condition: &StoreCondition) {
        let store = &self.store;
        let gauge = |gauge: &Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        gauge(&store.calls_open, condition.calls_open);
        gauge(&store.rows_waiting, condition.rows_waiting);
        gauge(&store.rows_unreported, condition.rows_unreported);
        gauge(&store.writes_waiting, condition.writes_waiting);
        gauge(&store.degraded, u64::from(!condition.is_sound()));
        set_counter(&store.rows, condition.rows_committed);
        set_counter(&store.rows_lost, condition.rows_lost);
        set_counter(&store.cut_records_lost, condition.cuts_lost);
        set_counter(&store.calls_unnoted, condition.unprotected_calls);
        set_counter(&store.failed_transactions, condition.failures);
        set_counter(&store.commits, condition.commits);
        set_counter(&store.renewals, condition.renewals);
    }

    /// Sets the function that returns the number of lost log lines. Later calls have no effect.
    pub(crate) fn count_lost_lines(&self, lost: fn() -> u64) {
        // A process has only one log.
        let _ = self.count_lost_lines.set(lost);
    }

    /// Returns all metrics as text.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        if let Some(lost) = self.count_lost_lines.get() {
            set_counter(&self.log_lines_lost, lost());
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Sets a counter to this value.
fn set_counter(counter: &Counter, value: u64) {
    let total: &AtomicU64 = counter.inner();
    total.store(value, Ordering::Relaxed);
}
