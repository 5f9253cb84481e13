//! Records one upstream call, from before its start until its end, and all calls of one request.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use endmark_context::budget::{RemainingRate, Scope, Unit};
use endmark_context::count::{Family, TextTally, unread_tokens};
use endmark_context::round_half_up;
use endmark_recovery::{Ending, Judgement, Stop};
use endmark_store::{Billing, CallSettled, CallStarted, OpenCall, Purpose, Recorder, TokenEstimate, Tokens};
use endmark_wire::format::WireFormat;
use endmark_wire::json::Value;
use endmark_wire::reply::Choice;
use endmark_wire::request::Request;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use tracing::Span;

use super::body::{MeteredBody, ResponseMeter};
use super::cost::{self, CallUsage, RequestCost};
use super::endings::CallEnd;
use super::sent_body::SentBody;
use super::usage_reader::UsageReader;
use super::watch::RequestWatch;
use crate::api::ApiNames;
use crate::body::AnyBody;
use crate::budget::{BudgetHold, Budgets, KeyLimits, NotAdmitted, PlannedCall, PromptEstimate};
use crate::settings::ResumeMode;
use crate::telemetry;

/// The upstream calls of one request.
pub(crate) struct Calls {
    recorder: Recorder,
    /// Observes the whole request.
    pub(crate) watch: Arc<RequestWatch>,
    caller: Caller,
    mode: ResumeMode,
    api: ApiNames,
    format: &'static dyn WireFormat,
    call_count: AtomicU32,
    continuation_count: Arc<AtomicU32>,
    budgets: Arc<Budgets>,
    /// The number of the call that was reserved last, from 1.
    last_call_number: AtomicU32,
    /// The hold of the first call, which is made before the request is prepared.
    first_hold: Mutex<Option<BudgetHold>>,
    /// The hold that counts this request as one of the parallel requests of its key. It is released after the last
    /// call.
    rate_hold: OnceLock<Arc<BudgetHold>>,
    /// The rate limits and their remaining amounts when the request was admitted.
    rates: OnceLock<Vec<RemainingRate>>,
    /// The cost of finished calls.
    cost: Arc<RequestCost>,
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
        watch: RequestWatch,
        caller: Caller,
        mode: ResumeMode,
        (format, api): (&'static dyn WireFormat, ApiNames),
        budgets: Arc<Budgets>,
    ) -> Self {
        Self {
            budgets,
            last_call_number: AtomicU32::new(0),
            first_hold: Mutex::default(),
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
            continuation_count: Arc::default(),
        }
    }

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

    pub(crate) fn count(&self) -> u32 {
        self.call_count.load(Ordering::Relaxed)
    }

    /// Returns the counter of continuation calls.
    pub(crate) fn continuation_count(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.continuation_count)
    }

    /// Returns the cost of the finished calls in nano-dollars. Returns `None` if a price is missing or no call has
    /// ended.
    pub(crate) fn cost(&self) -> Option<u64> {
        self.cost.nano_usd()
    }

    /// Whether any budget applies to the calls.
    pub(crate) fn have_budgets(&self) -> bool {
        self.budgets.apply_to(self.caller.limits)
    }

    /// Reserves the first call in its budgets before it is made. Returns the state of the reservation.
    pub(crate) async fn reserve_first(
        &self,
        model: &str,
        request: &Request,
    ) -> Result<FirstCallState, NotAdmitted> {
        let reserved = self.reserve(model, request.body(), Some(request.root()), true, true).await?;
        let first = FirstCallState {
            is_closing: reserved.is_closing,
            least_left: reserved.least_left,
            warning_percent: reserved.warning_percent(),
        };
        *self.first_hold.lock().unwrap_or_else(PoisonError::into_inner) = Some(reserved);
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
            call: self.last_call_number.fetch_add(1, Ordering::Relaxed) + 1,
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
        if is_request && let Some(slot) = self.budgets.reserve_slot(&self.recorder, &planned).await? {
            // This fails only if the value is set twice, but a request is admitted only once.
            let _ = self.rate_hold.set(Arc::new(slot));
        }
        let mut reserved = self.budgets.reserve(&self.recorder, planned).await?;
        if is_request {
            let _ = self.rates.set(std::mem::take(&mut reserved.rates));
        }
        for (scope, percent) in &reserved.warned_budgets {
            self.watch.note_budget_warning(scope.name(), *percent);
        }
        Ok(reserved)
    }

    /// Reserves the possible cost of a call in its budgets, and records the call before it starts. The call
    /// gets a row even if it is dropped.
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
        let held = self.first_hold.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut reserved = if let Some(reserved) = held {
            reserved
        } else {
            // The first call of a pass-through request has no hold yet.
            let is_request = purpose == Purpose::Reply && self.count() == 0;
            self.reserve(model, body, None, false, is_request).await?
        };
        let (call, sent_bytes) = (reserved.call, body.len());
        // A summary is not an attempt to answer the request.
        if purpose != Purpose::Summary {
            self.call_count.fetch_add(1, Ordering::Relaxed);
        }
        if purpose == Purpose::Resume {
            self.continuation_count.fetch_add(1, Ordering::Relaxed);
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
                mode: Cow::Borrowed(self.mode.name()),
                started_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
                sent_bytes: sent_bytes as u64,
                prompt_estimate: reserved.prompt.tokens,
                charges: std::mem::take(&mut reserved.charges),
            })
            .await;
        reserved.disarm();
        if self.count() == 1 && purpose != Purpose::Summary {
            self.watch.note_sent();
        }
        let span = open.call_started().map_or_else(Span::none, |started| {
            telemetry::start_call_span(self.watch.span(), &self.api, started)
        });
        let gauge = Arc::new(ResponseMeter::new(Instant::now()));
        Ok(Call {
            open: Some(open),
            watch: Arc::clone(&self.watch),
            meter: gauge,
            status: None,
            span,
            budgets: Arc::clone(&self.budgets),
            has_budget: self.have_budgets(),
            prompt: reserved.prompt,
            family: Family::of(model),
            cost: Arc::clone(&self.cost),
            _parallel_slot: self.rate_hold.get().cloned(),
        })
    }

    /// Writes the rate limits as response headers.
    pub(crate) fn write_rates(&self, headers: &mut HeaderMap) {
        let rates = self.rates.get().map(Vec::as_slice).unwrap_or_default();
        self.budgets.write_rate_headers(rates, self.format, headers);
    }
}

/// The state after the first call of a request was reserved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstCallState {
    /// Whether the call is the closing call of its session.
    pub(crate) is_closing: bool,
    /// The amount left in the tightest budget.
    pub(crate) least_left: Option<(Scope, Unit, u64)>,
    /// The highest warning level that a budget reached by this call, in percent, or 0.
    pub(crate) warning_percent: u8,
}

/// A call in progress. If it is dropped before it is settled, it is recorded as abandoned.
pub(crate) struct Call {
    open: Option<OpenCall>,
    watch: Arc<RequestWatch>,
    meter: Arc<ResponseMeter>,
    status: Option<StatusCode>,
    span: Span,
    budgets: Arc<Budgets>,
    /// Whether any budget applies to the call.
    has_budget: bool,
    /// The estimated tokens of the prompt.
    prompt: PromptEstimate,
    /// The model family, for estimating the output.
    family: Family,
    cost: Arc<RequestCost>,
    /// Keeps the slot of the key's parallel request, because a forwarded response may outlive `Calls`.
    _parallel_slot: Option<Arc<BudgetHold>>,
}

impl Call {
    /// Returns the request body to send. The body records whether all of it was sent.
    pub(crate) fn request_body(&self, body: Bytes) -> AnyBody {
        SentBody::new(body, &self.meter).boxed_unsync()
    }

    /// Records the upstream's status, and returns its body, which is counted as it passes.
    pub(crate) fn note_answer(&mut self, status: StatusCode, body: AnyBody) -> AnyBody {
        self.status = Some(status);
        MeteredBody { inner: body, meter: Arc::clone(&self.meter), call: None, usage_reader: None }
            .boxed_unsync()
    }

    /// Settles a call whose response is an error despite a success status. The call is recorded with the
    /// status 502 and costs nothing, like any refusal.
    pub(crate) fn settle_as_refused(mut self) {
        self.status = self.status.map(|_| StatusCode::BAD_GATEWAY);
        self.finish(CallEnd::new(Ending::UpstreamError));
    }

    /// Records the text of the response so far, from which tokens are estimated if the upstream reports none.
    /// `None` means that the response is no longer read.
    pub(crate) fn record_text(&self, choices: Option<&[Choice]>) {
        let tokens = |choice: &Choice| choice.written.tokens(self.family);
        self.meter.set_written(choices.map(|choices| choices.iter().map(tokens).sum()));
    }

    /// Like `record_text`, for a response that is forwarded.
    pub(super) fn record_tallies(&self, written: Option<&[TextTally]>) {
        let tokens = |tally: &TextTally| tally.tokens(self.family);
        self.meter.set_written(written.map(|tallies| tallies.iter().map(tokens).sum()));
    }

    /// Returns a body that settles the call at its end, with `ending` if it ends normally. `usage_reader`
    /// reads the usage.
    pub(crate) fn settle_with_body(
        self,
        body: AnyBody,
        ending: Ending,
        usage_reader: Option<UsageReader>,
    ) -> AnyBody {
        // The body is already counted.
        let gauge = Arc::new(ResponseMeter::new(Instant::now()));
        MeteredBody { inner: body, meter: gauge, call: Some((self, ending)), usage_reader }.boxed_unsync()
    }

    /// Records how the call ended. Returns its usage, or `None` if it costs nothing. The row is durable when this
    /// returns.
    pub(crate) fn settle(mut self, end: CallEnd) -> Option<CallUsage> {
        self.finish(end)
    }

    /// Whether the client disconnected after the upstream had received the complete request and before its response.
    /// If the upstream disconnected instead, it failed and bills nothing.
    fn was_abandoned_while_generating(&self, ending: Ending) -> bool {
        let was_left = matches!(ending, Ending::Cancelled | Ending::Interrupted | Ending::Stalled);
        was_left && self.status.is_none() && self.meter.is_sent()
    }

    fn finish(&mut self, mut end: CallEnd) -> Option<CallUsage> {
        let open = self.open.take()?;
        // An upstream may repeat parts of the request in the model's name, and other people can read the
        // traces.
        end.model = end.model.filter(|model| !model.is_empty()).map(|model| open.clean(&model));
        for word in &mut end.finish_reasons {
            *word = open.clean(word);
        }
        if let Some(started) = open.call_started().filter(|_| end.stop == Some(Stop::Unknown)) {
            tracing::warn!(
                request = started.request_id,
                upstream = started.upstream,
                words = end.finish_reasons.join(", "),
                "an upstream ended a reply with an unknown finish reason: the reply is forwarded unchanged"
            );
        }
        self.reject_implausible_usage(&open, &mut end);
        let spent = self.usage_spent(&end);
        // Metrics and traces contain only reported usage and no estimates.
        end.usage = end.usage.filter(|_| spent.as_ref().is_some_and(CallUsage::is_reported));
        let (first_byte, total) = (self.meter.first_byte_micros(), self.meter.elapsed_micros());
        telemetry::end_call_span(
            &std::mem::replace(&mut self.span, Span::none()),
            &telemetry::FinishedCall {
                ending: end.ending,
                stop: end.stop,
                finish_reasons: &end.finish_reasons,
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
        let priced = spent.as_ref().map(|spent| cost::priced_tokens(&spent.usage, end.web_searches));
        let exact = spent.as_ref().zip(open.call_started()).and_then(|(spent, started)| {
            if self.has_budget && spent.reports_prompt {
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
            received_bytes: self.meter.bytes(),
            estimate: spent
                .as_ref()
                .filter(|spent| !spent.is_reported())
                .map(|spent| TokenEstimate { prompt: spent.usage.prompt, output: spent.usage.completion }),
            first_byte_us: first_byte,
            total_us: total,
        });
        spent
    }

    /// Drops an implausible usage report, so that the usage is estimated instead.
    fn reject_implausible_usage(&self, open: &OpenCall, end: &mut CallEnd) {
        let Some((started, usage)) = open.call_started().zip(end.usage.as_ref()) else { return };
        let names = end.model.iter().chain([&started.model]).map(String::as_str);
        let exchanged_bytes = started.sent_bytes.saturating_add(self.meter.bytes());
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
        let written = if self.was_abandoned_while_generating(end.ending) {
            Some(0)
        } else {
            self.meter.written_tokens()
        };
        let may_be_billed = self.status.map_or(written.is_some(), |status| status.is_success());
        // For a response that was not parsed, only reported counts are known.
        let unread = || if end.usage.is_some() { 0 } else { unread_tokens(self.meter.bytes()) };
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
