//! Records one upstream call, from before its start until its end, and all calls of one request.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use endmark_context::budget::{RateLeft, Scope, Unit};
use endmark_context::count::{Family, TextTally, unread_tokens};
use endmark_context::round_half_up;
use endmark_recovery::{Ending, Judgement, Stop};
use endmark_store::{Billing, CallSettled, CallStarted, Estimate, OpenCall, Purpose, Recorder, Tokens};
use endmark_wire::format::WireFormat;
use endmark_wire::json::Value;
use endmark_wire::reply::Choice;
use endmark_wire::request::Request;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use tracing::Span;

use super::body::{Gauge, Metered};
use super::cost::{self, CallUsage, Cost};
use super::ended::CallEnd;
use super::listener::Listener;
use super::sent::SentBody;
use super::watch::Watch;
use crate::api::Api;
use crate::body::AnyBody;
use crate::budget::{BudgetHold, Budgets, KeyLimits, NotAdmitted, PlannedCall, PromptEstimate};
use crate::settings::Mode;
use crate::telemetry;

/// The upstream calls of one request.
pub(crate) struct Calls {
    recorder: Recorder,
    /// Observes the whole request.
    pub(crate) watch: Arc<Watch>,
    caller: Caller,
    mode: Mode,
    api: Api,
    format: &'static dyn WireFormat,
    call_count: AtomicU32,
    resumes: Arc<AtomicU32>,
    budgets: Arc<Budgets>,
    /// How many calls have been numbered.
    numbered: AtomicU32,
    /// The hold of the first call, which is made before the request is prepared.
    first: Mutex<Option<BudgetHold>>,
    /// The hold that counts this request as one of the parallel requests of its key. It is released after the last
    /// call.
    rate_hold: OnceLock<Arc<BudgetHold>>,
    /// The rate limits and their remaining amounts when the request was admitted.
    rates: OnceLock<Vec<RateLeft>>,
    /// The cost of finished calls.
    cost: Arc<Cost>,
}

/// The client of the calls.
pub(crate) struct Caller {
    /// The id that `endmark log show` accepts.
    pub(crate) request_id: String,
    /// The session's hash.
    pub(crate) session: String,
    /// The hash of the client's credential or the name of its key, if it sent one.
    pub(crate) credential: Option<String>,
    /// The limits of the client's key.
    pub(crate) limits: KeyLimits,
}

impl Calls {
    /// Creates the record of a request without calls.
    pub(crate) fn new(
        recorder: Recorder,
        watch: Watch,
        caller: Caller,
        mode: Mode,
        (format, api): (&'static dyn WireFormat, Api),
        budgets: Arc<Budgets>,
    ) -> Self {
        Self {
            budgets,
            numbered: AtomicU32::new(0),
            first: Mutex::default(),
            rate_hold: OnceLock::new(),
            rates: OnceLock::new(),
            cost: Arc::default(),
            recorder,
            watch: Arc::new(watch),
            caller,
            mode,
            api,
            format,
            call_count: AtomicU32::new(0),
            resumes: Arc::default(),
        }
    }

    /// Returns the recorder of the calls.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the hash of the client's credential.
    pub(crate) fn credential(&self) -> Option<&str> {
        self.caller.credential.as_deref()
    }

    /// Returns the hash of the session.
    pub(crate) fn session(&self) -> &str {
        &self.caller.session
    }

    /// Returns the number of calls so far.
    pub(crate) fn count(&self) -> u32 {
        self.call_count.load(Ordering::Relaxed)
    }

    /// Returns the counter of continuation calls.
    pub(crate) fn resumes(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.resumes)
    }

    /// Returns the cost of the finished calls in nano-dollars. Returns `None` if a price is missing or no call has
    /// ended.
    pub(crate) fn cost(&self) -> Option<u64> {
        self.cost.nano_usd()
    }

    /// Whether any budget applies to the calls.
    pub(crate) fn have_budgets(&self) -> bool {
        self.budgets.are_any(self.caller.limits)
    }

    /// Reserves the first call in its budgets before it is made. Returns the state of the reservation.
    pub(crate) async fn reserve_first(
        &self,
        model: &str,
        request: &Request,
    ) -> Result<FirstCall, NotAdmitted> {
        let reserved = self.reserve(model, request.body(), Some(request.root()), true, true).await?;
        let first = FirstCall {
            is_closing: reserved.is_closing,
            least_left: reserved.least_left,
            percent: reserved.percent(),
        };
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(reserved);
        Ok(first)
    }

    async fn reserve(
        &self,
        model: &str,
        body: &[u8],
        root: Option<Value<'_>>,
        may_close: bool,
        is_request: bool,
    ) -> Result<BudgetHold, NotAdmitted> {
        let planned = PlannedCall {
            request_id: &self.caller.request_id,
            call: self.numbered.fetch_add(1, Ordering::Relaxed) + 1,
            session: &self.caller.session,
            credential: self.caller.credential.as_deref(),
            limits: self.caller.limits,
            is_request,
            model,
            format: self.format,
            service: self.api.service,
            body,
            root,
            may_close,
        };
        if is_request && let Some(seat) = self.budgets.seat(&self.recorder, &planned).await? {
            // This fails only if it is set twice, and a request is admitted only once.
            let _ = self.rate_hold.set(Arc::new(seat));
        }
        let mut reserved = self.budgets.reserve(&self.recorder, planned).await?;
        if is_request {
            // The same applies here.
            let _ = self.rates.set(std::mem::take(&mut reserved.rates));
        }
        for (scope, percent) in &reserved.warned_budgets {
            self.watch.budget_warning(scope.name(), *percent);
        }
        Ok(reserved)
    }

    /// Holds a call in its budgets before it starts, and records it. The call gets a row even if it is dropped.
    ///
    /// # Errors
    /// [`NotAdmitted`] if a budget does not permit the call, which must then not be made.
    pub(crate) async fn open(
        &self,
        purpose: Purpose,
        upstream: &str,
        model: &str,
        streamed: bool,
        body: &[u8],
    ) -> Result<Call, NotAdmitted> {
        let held = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut reserved = if let Some(reserved) = held {
            reserved
        } else {
            // The first call of a forwarded path is held here.
            let is_request = purpose == Purpose::Reply && self.count() == 0;
            self.reserve(model, body, None, false, is_request).await?
        };
        let (call, sent_bytes) = (reserved.call, body.len());
        // A summary is not an attempt to answer the request.
        if purpose != Purpose::Summary {
            self.call_count.fetch_add(1, Ordering::Relaxed);
        }
        if purpose == Purpose::Resume {
            self.resumes.fetch_add(1, Ordering::Relaxed);
        }
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let open = self
            .recorder
            .open_call(CallStarted {
                request_id: self.caller.request_id.clone(),
                call,
                purpose,
                session: self.caller.session.clone(),
                credential: self.caller.credential.clone(),
                upstream: upstream.to_owned(),
                format: Cow::Borrowed(self.api.name),
                model: model.to_owned(),
                streamed,
                mode: Cow::Borrowed(self.mode.word()),
                started_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
                sent_bytes: sent_bytes as u64,
                prompt_estimate: reserved.prompt.tokens,
                charges: std::mem::take(&mut reserved.charges),
            })
            .await;
        reserved.keep();
        if self.count() == 1 && purpose != Purpose::Summary {
            self.watch.note_sent();
        }
        let span = open
            .call_started()
            .map_or_else(Span::none, |started| telemetry::call(self.watch.span(), &self.api, started));
        let gauge = Arc::new(Gauge::new(Instant::now()));
        Ok(Call {
            open: Some(open),
            watch: Arc::clone(&self.watch),
            gauge,
            status: None,
            span,
            budgets: Arc::clone(&self.budgets),
            is_held: self.have_budgets(),
            prompt: reserved.prompt,
            family: Family::of(model),
            cost: Arc::clone(&self.cost),
            _seat: self.rate_hold.get().cloned(),
        })
    }

    /// Writes the rate limits as response headers.
    pub(crate) fn write_rates(&self, headers: &mut HeaderMap) {
        let rates = self.rates.get().map(Vec::as_slice).unwrap_or_default();
        self.budgets.write_rates(rates, self.format, headers);
    }
}

/// The state after the first call of a request was reserved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstCall {
    /// Whether the call is the closing call of its session.
    pub(crate) is_closing: bool,
    /// The amount left in the tightest budget.
    pub(crate) least_left: Option<(Scope, Unit, u64)>,
    /// The highest warning level that a budget reached by this call, in percent, or 0.
    pub(crate) percent: u8,
}

/// A call in progress. If it is dropped before it is settled, it is recorded as abandoned.
pub(crate) struct Call {
    open: Option<OpenCall>,
    watch: Arc<Watch>,
    gauge: Arc<Gauge>,
    status: Option<StatusCode>,
    span: Span,
    budgets: Arc<Budgets>,
    /// Whether any budget applies to the call.
    is_held: bool,
    /// The estimated tokens of the prompt.
    prompt: PromptEstimate,
    /// The model family, for estimating the output.
    family: Family,
    cost: Arc<Cost>,
    /// A second reference, because the response of a forwarded path outlives the record of its calls.
    _seat: Option<Arc<BudgetHold>>,
}

impl Call {
    /// Returns the body to send. It records whether all of it was sent.
    pub(crate) fn sends(&self, body: Bytes) -> AnyBody {
        SentBody::new(body, &self.gauge).boxed_unsync()
    }

    /// Records the upstream's status, and returns its body, which is counted as it passes.
    pub(crate) fn note_answer(&mut self, status: StatusCode, body: AnyBody) -> AnyBody {
        self.status = Some(status);
        Metered { inner: body, gauge: Arc::clone(&self.gauge), call: None, listener: None }.boxed_unsync()
    }

    /// Settles a call whose response is an error despite a success status. It is recorded as a bad gateway, and costs
    /// nothing, like any refusal.
    pub(crate) fn settle_as_refused(mut self) {
        self.status = self.status.map(|_| StatusCode::BAD_GATEWAY);
        self.finish(CallEnd::new(Ending::UpstreamError));
    }

    /// Records the response so far, or that it is no longer read. If the upstream reports no tokens, they are
    /// estimated from this text.
    pub(crate) fn read(&self, choices: Option<&[Choice]>) {
        let tokens = |choice: &Choice| choice.written.tokens(self.family);
        self.gauge.read(choices.map(|choices| choices.iter().map(tokens).sum()));
    }

    /// Records the same as `read` for a response that is forwarded.
    pub(super) fn read_tallies(&self, written: Option<&[TextTally]>) {
        let tokens = |tally: &TextTally| tally.tokens(self.family);
        self.gauge.read(written.map(|tallies| tallies.iter().map(tokens).sum()));
    }

    /// Returns a body that settles the call at its end, with `ending` if it ends normally. The listener reads the
    /// usage.
    pub(crate) fn follow(self, body: AnyBody, ending: Ending, listener: Option<Listener>) -> AnyBody {
        // The body is already counted.
        let gauge = Arc::new(Gauge::new(Instant::now()));
        Metered { inner: body, gauge, call: Some((self, ending)), listener }.boxed_unsync()
    }

    /// Records how the call ended. Returns its usage, or `None` if it costs nothing. The row is durable when this
    /// returns.
    pub(crate) fn settle(mut self, end: CallEnd) -> Option<CallUsage> {
        self.finish(end)
    }

    /// Whether the client disconnected after the upstream had received the complete request and before its response.
    /// If the upstream disconnected instead, it failed and bills nothing.
    fn was_left_at_work(&self, ending: Ending) -> bool {
        let was_left = matches!(ending, Ending::Cancelled | Ending::Interrupted | Ending::Stalled);
        was_left && self.status.is_none() && self.gauge.is_sent()
    }

    fn finish(&mut self, mut end: CallEnd) -> Option<CallUsage> {
        let open = self.open.take()?;
        // An upstream may put parts of the request into the model's name, and traces have other readers.
        end.model = end.model.filter(|model| !model.is_empty()).map(|model| open.clean(&model));
        for word in &mut end.finish_words {
            *word = open.clean(word);
        }
        if let Some(started) = open.call_started().filter(|_| end.stop == Some(Stop::Unknown)) {
            tracing::warn!(
                request = started.request_id,
                upstream = started.upstream,
                words = end.finish_words.join(", "),
                "an upstream ended a reply with an unknown finish reason: it passes as it is"
            );
        }
        self.reject_implausible_usage(&open, &mut end);
        let spent = self.usage_spent(&end);
        // Metrics and traces contain only reported usage and no estimates.
        end.usage = end.usage.filter(|_| spent.as_ref().is_some_and(CallUsage::is_reported));
        let (first_byte, total) = (self.gauge.first_byte(), self.gauge.elapsed_micros());
        telemetry::call_ended(
            &std::mem::replace(&mut self.span, Span::none()),
            &telemetry::CallOver {
                ending: end.ending,
                stop: end.stop,
                finish_words: &end.finish_words,
                judgement: end.judgement,
                usage: end.usage.as_ref(),
                model: end.model.as_deref(),
                status: self.status,
                first_byte_us: first_byte,
            },
        );
        if let Some(started) = open.call_started() {
            let model = self.budgets.model_id(&started.model);
            self.watch.note_call(started, self.status, first_byte, total, model, &end);
        }
        let priced = spent.as_ref().map(|spent| cost::tokens(&spent.usage, end.web_searches));
        let exact = spent.as_ref().zip(open.call_started()).and_then(|(spent, started)| {
            if self.is_held && spent.reports_prompt {
                self.budgets.learn(&started.session, &self.prompt, spent.usage.prompt);
            }
            let names = end.model.iter().chain([&started.model]).map(String::as_str);
            self.budgets.exact_price(names, &priced?, end.tier.as_deref())
        });
        self.cost.add(exact, spent.is_some());
        let (verdict, cut_kind) = match end.judgement {
            None if end.is_unread => (Some("unread"), None),
            None => (None, None),
            Some(Judgement::Passed) => (Some("passed"), None),
            Some(Judgement::Whole { .. }) => (Some("whole"), None),
            Some(Judgement::Cut(kind)) => (Some("cut"), Some(kind.name())),
        };
        open.settle(CallSettled {
            answered_model: end.model,
            http_status: self.status.map(|status| status.as_u16()),
            ending: Cow::Borrowed(end.ending.name()),
            stop: end.stop.map(|stop| Cow::Borrowed(stop.name())),
            verdict: verdict.map(Cow::Borrowed),
            cut_kind: cut_kind.map(Cow::Borrowed),
            tokens: spent.as_ref().map_or(Tokens::default(), |spent| {
                let (usage, is_whole) = (&spent.usage, spent.is_reported());
                Tokens {
                    prompt: Some(usage.prompt).filter(|_| spent.reports_prompt),
                    output: Some(usage.completion).filter(|_| spent.reports_output),
                    cached: usage.cached,
                    cache_written: usage.cache_writes(),
                    cache_written_1h: usage.cache_writes_for_an_hour(),
                    reasoning: usage.reasoning,
                    total: Some(usage.total).filter(|_| is_whole),
                }
            }),
            billing: priced.map_or_else(Billing::default, |tokens| cost::billing_of(&tokens, end.tier)),
            nano_usd: exact.map(round_half_up),
            received_bytes: self.gauge.bytes(),
            estimate: spent
                .as_ref()
                .filter(|spent| !spent.is_reported())
                .map(|spent| Estimate { prompt: spent.usage.prompt, output: spent.usage.completion }),
            first_byte_us: first_byte,
            total_us: total,
        });
        spent
    }

    /// Drops an implausible usage report, so that the usage is estimated instead.
    fn reject_implausible_usage(&self, open: &OpenCall, end: &mut CallEnd) {
        let Some((started, usage)) = open.call_started().zip(end.usage.as_ref()) else { return };
        let names = end.model.iter().chain([&started.model]).map(String::as_str);
        let exchanged_bytes = started.sent_bytes.saturating_add(self.gauge.bytes());
        if !cost::is_plausible(usage, self.budgets.window_tokens(names), exchanged_bytes) {
            tracing::warn!(
                request = started.request_id,
                upstream = started.upstream,
                tokens = usage.largest_count(),
                "an upstream reports more tokens or searches than a call can use: the usage is estimated"
            );
            end.usage = None;
        }
    }

    /// Returns the usage, or `None` if the call costs nothing. A provider that rejects, fails or never received the
    /// request bills nothing.
    fn usage_spent(&self, end: &CallEnd) -> Option<CallUsage> {
        let written = if self.was_left_at_work(end.ending) { Some(0) } else { self.gauge.written_micros() };
        let may_be_billed = self.status.map_or(written.is_some(), |status| status.is_success());
        // For a response that was not parsed, only reported counts are known.
        let unread = || if end.usage.is_some() { 0 } else { unread_tokens(self.gauge.bytes()) };
        let spent = || {
            let written = written.unwrap_or_else(unread);
            CallUsage::new(end.usage.as_ref(), end.is_counted, self.prompt.tokens, written)
        };
        (end.usage.is_some() || may_be_billed).then(spent)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let ending = self.watch.abandoned_ending();
        self.finish(CallEnd::new(ending));
    }
}
