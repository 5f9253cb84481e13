//! Reserves the possible cost of a call in the store before the call starts (CX-7).
//!
//! `endmark_context::budget` defines budgets and decides which calls they admit. This module estimates the
//! cost of the call and requests a hold for that amount. It keeps the hold until the call is recorded.

mod budget_hold;
mod estimate;
mod not_admitted;
mod parts;
mod rates;

use std::time::{Duration, Instant};

pub(crate) use endmark_context::budget::CLOSING_OUTPUT_TOKENS;
use endmark_context::budget::{BudgetRule, RateLimits, Scope, Unit};
use endmark_context::{Model, Models, Moment, Tokens, round_half_up};
use endmark_store::{Charge, Claim, Hold, HoldOutcome, Recorder};
use endmark_wire::deciding::max_output_tokens;
use endmark_wire::format::WireFormat;
use endmark_wire::json::Value;
use endmark_wire::paths::TokenService;
use serde_json::json;

pub(crate) use budget_hold::BudgetHold;
pub(crate) use not_admitted::NotAdmitted;

use crate::log_limit::LogThrottle;
use crate::settings::{BudgetSettings, Settings};
use crate::webhook::{Webhook, WebhookError};
use crate::work;
use estimate::Calibrations;
pub(crate) use estimate::PromptEstimate;

/// The instruction to the model in the closing call of a session.
pub(crate) const CLOSING_INSTRUCTION: &str = "The budget of this session is used up, and this is its last reply. Summarise your \
    findings now, with the data you have: what is established, what is still open, and where to go on. No tools are available.";

/// An upper bound for the tokens of the closing instruction.
const CLOSING_PROMPT_TOKENS: u64 = 96;

/// How long a call waits for its hold in the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The budgets of a gateway, and the data for its estimates.
#[derive(Debug)]
pub(crate) struct Budgets {
    settings: BudgetSettings,
    models: Models,
    calibrations: Calibrations,
    webhook: Option<Webhook>,
}

/// The spending and rate limits of a key. The default applies to requests without a key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyLimits {
    /// The key's budget.
    pub(crate) budget: Option<BudgetRule>,
    /// The key's rate limits.
    pub(crate) rates: RateLimits,
}

impl KeyLimits {
    /// Whether the key's own budget replaces the general budgets of this scope and unit.
    fn replaces(&self, scope: Scope, unit: Unit) -> bool {
        self.budget.is_some_and(|own| (own.scope, own.unit) == (scope, unit))
    }
}

/// A call for which a hold is requested.
pub(crate) struct PlannedCall<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) call: u32,
    pub(crate) session: &'a str,
    pub(crate) credential: Option<&'a str>,
    /// The limits of the call's key.
    pub(crate) limits: KeyLimits,
    /// Whether the call counts as a request in rate limits. Only the first call of a client's request does.
    pub(crate) is_request: bool,
    pub(crate) model: &'a str,
    pub(crate) format: &'static dyn WireFormat,
    /// The called service, if the call is not for a reply.
    pub(crate) service: Option<TokenService>,
    pub(crate) body: &'a [u8],
    /// The body as JSON, if it is already parsed.
    pub(crate) root: Option<Value<'a>>,
    /// Whether the call may become the closing call of its session.
    pub(crate) may_close: bool,
}

impl Budgets {
    /// # Errors
    /// [`WebhookError`] if the configured address cannot be used.
    pub(crate) fn new(settings: &Settings) -> Result<Self, WebhookError> {
        let budget = &settings.budget;
        let to = |address: &String| Webhook::new(address, budget.webhook_secret.clone());
        Ok(Self {
            webhook: budget.webhook.as_ref().map(to).transpose()?,
            settings: budget.clone(),
            models: settings.models().clone(),
            calibrations: Calibrations::default(),
        })
    }

    /// Whether any budget or rate limit applies to calls with a key that has these limits.
    pub(crate) fn apply_to(&self, limits: KeyLimits) -> bool {
        limits.budget.is_some() || !self.settings.rules.is_empty() || !self.rate_limits(limits).is_empty()
    }

    /// Returns the rate limits that apply to a key with these limits.
    fn rate_limits(&self, limits: KeyLimits) -> RateLimits {
        limits.rates.or(self.settings.rates)
    }

    /// Returns the id of the model with this name, from the price table or the configuration.
    pub(crate) fn model_id(&self, name: &str) -> Option<&str> {
        self.models.find(name).map(|model| model.id.as_str())
    }

    /// Returns the context window, in tokens, of the first of these models that is known.
    pub(crate) fn window_tokens<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<u64> {
        let model = self.first_known_model(names)?;
        model.context_tokens.max(model.max_input_tokens)
    }

    /// Returns the first of these models that is in the price table.
    fn first_known_model<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<&Model> {
        let mut given = names.into_iter().filter(|name| !name.is_empty());
        given.find_map(|name| self.models.find(name))
    }

    /// Returns the current price of tokens in millionths of nano-dollars. Returns `None` if a price is
    /// unknown. An unknown service tier is charged at the standard price.
    pub(crate) fn exact_price<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        tokens: &Tokens,
        tier: Option<&str>,
    ) -> Option<u128> {
        let model = self.first_known_model(names)?;
        let (cost, is_unknown_tier) = model.prices.exact_cost(tokens, self.now(), tier)?;
        if is_unknown_tier {
            tracing::info!(model = model.id, tier, "a tier without a price: the standard price is used");
        }
        Some(cost)
    }

    /// Corrects the session's estimates with the reported size of a prompt. Called only if there are budgets.
    pub(crate) fn learn(&self, session: &str, estimate: &PromptEstimate, prompt_tokens: u64) {
        self.calibrations.learn(session, estimate, prompt_tokens);
    }

    /// Estimates the prompt of a call, and reserves the call's possible cost in each of its budgets.
    pub(crate) async fn reserve(
        &self,
        recorder: &Recorder,
        planned: PlannedCall<'_>,
    ) -> Result<BudgetHold, NotAdmitted> {
        let large = work::enter_pool_if_large(planned.body.len()).await;
        let root = planned.root.or_else(|| Value::parse(planned.body).ok());
        let prompt = self.calibrations.estimate(planned.session, planned.model, planned.body, root);
        let mut reserved =
            BudgetHold::new(recorder.clone(), planned.request_id.to_owned(), planned.call, prompt);
        if !self.apply_to(planned.limits) {
            reserved.disarm();
            return Ok(reserved);
        }
        let at = self.now();
        let claims = self.claims(&planned, root, prompt.held_tokens(), at)?;
        reserved.charges = claims.iter().map(charge_for).collect();
        drop(large);
        let wanted_hold = Hold {
            request_id: planned.request_id.to_owned(),
            call: planned.call,
            claims,
            may_close: planned.may_close,
        };
        match self.hold(recorder, wanted_hold).await? {
            // The store may still create the hold later. Recording the call then settles it.
            None => reserved.disarm(),
            Some(HoldOutcome::Fits { warnings, least_left, rates }) => {
                for warning in warnings {
                    let (claim, percent) = (&warning.claim, warning.level.percent());
                    self.send_warning(claim, percent, at);
                    tracing::warn!(
                        budget = claim.scope.name(),
                        subject = claim.subject,
                        window = claim.window,
                        unit = claim.unit.name(),
                        percent,
                        "a budget is nearly used up"
                    );
                    reserved.warned_budgets.push((claim.scope, percent));
                }
                (reserved.least_left, reserved.rates) = (least_left, rates);
            }
            Some(HoldOutcome::Closing) => {
                tracing::warn!(
                    session = planned.session,
                    "the budget of a session is used up: its closing call is made"
                );
                reserved.is_closing = true;
            }
            Some(HoldOutcome::Exhausted(used_up)) => {
                reserved.disarm();
                return Err(NotAdmitted::from_used_up(used_up, planned.limits, &self.settings.zone, at));
            }
        }
        Ok(reserved)
    }

    /// Reports through the webhook that a budget is nearly exhausted.
    fn send_warning(&self, claim: &Claim, percent: u8, at: Moment) {
        if let Some(webhook) = &self.webhook {
            webhook.send(&json!({
                "event": "budget_warning",
                "percent": percent,
                "budget": claim.scope.name(),
                "subject": claim.subject,
                "window": claim.window,
                "unit": claim.unit.name(),
                "limit": claim.limit,
                "at": at.unix_seconds(),
            }));
        }
    }

    /// Requests a hold from the store. Returns `None` if the store does not answer and the settings allow the call
    /// anyway.
    async fn hold(&self, recorder: &Recorder, hold: Hold) -> Result<Option<HoldOutcome>, NotAdmitted> {
        static STORE_FAILURE_LOG: LogThrottle = LogThrottle::new();
        let error = match tokio::time::timeout(STORE_TIMEOUT, recorder.hold(hold)).await {
            Ok(Ok(outcome)) => return Ok(Some(outcome)),
            Ok(Err(error)) => error.client_message(),
            Err(_) => "it does not answer".to_owned(),
        };
        if self.settings.is_closed_on_store_error {
            return Err(NotAdmitted::StoreFails(error));
        }
        if let Some(skipped) = STORE_FAILURE_LOG.count_skipped(Instant::now()) {
            tracing::error!(error, skipped, "the store fails: a call is made without a hold in its budgets");
        }
        Ok(None)
    }

    fn now(&self) -> Moment {
        self.settings.clock.0()
    }

    /// Returns the possible cost of a call in each of its budgets.
    fn claims(
        &self,
        planned: &PlannedCall<'_>,
        root: Option<Value<'_>>,
        prompt: u64,
        at: Moment,
    ) -> Result<Vec<Claim>, NotAdmitted> {
        let assumed = self.settings.assume_output_tokens;
        let fields =
            planned.service.map_or_else(|| planned.format.facts().deciding_fields, |service| service.fields);
        let output = root.map_or(assumed, |root| max_output_tokens(root, fields, assumed));
        let full = Tokens { prompt, completion: output, ..Tokens::default() };
        let closing = Tokens {
            prompt: prompt.saturating_add(CLOSING_PROMPT_TOKENS),
            completion: output.min(CLOSING_OUTPUT_TOKENS),
            ..Tokens::default()
        };
        let general_rules =
            self.settings.rules.iter().filter(|rule| !planned.limits.replaces(rule.scope, rule.unit));
        let rates = self.rate_limits(planned.limits);
        let requests = rates.requests_per_minute.filter(|_| planned.is_request);
        let rates = [(Unit::Requests, requests), (Unit::Tokens, rates.tokens_per_minute)];
        let rates = rates.into_iter().filter_map(|(unit, limit)| Some(rates::rate_rule(unit, limit?)));
        let mut claims = Vec::with_capacity(self.settings.rules.len() + 3);
        // Rate limits come first, because a request that they refuse can soon be repeated.
        for rule in rates.chain(general_rules.copied()).chain(planned.limits.budget) {
            let (amount, closing_amount) = match rule.unit {
                Unit::Tokens => (total_tokens(&full), total_tokens(&closing)),
                Unit::Requests | Unit::Parallel => (1, 1),
                Unit::NanoUsd => {
                    let price = |tokens| self.exact_price([planned.model], tokens, None).map(round_half_up);
                    match price(&full).zip(price(&closing)) {
                        Some(amounts) => amounts,
                        None if self.settings.admits_unpriced => continue,
                        None => return Err(NotAdmitted::NoPrice(planned.model.to_owned())),
                    }
                }
            };
            claims.push(self.claim(&rule, planned, at, (amount, closing_amount)));
        }
        Ok(claims)
    }

    /// Returns the claim of a call for one rule: its possible cost, and that of a closing call.
    fn claim(
        &self,
        rule: &BudgetRule,
        planned: &PlannedCall<'_>,
        at: Moment,
        (amount, closing_amount): (u64, u64),
    ) -> Claim {
        Claim {
            scope: rule.scope,
            subject: subject(rule, planned),
            window: rule.period.window(at, &self.settings.zone),
            unit: rule.unit,
            limit: rule.limit,
            amount,
            closing_amount,
        }
    }
}

/// Converts a claim to a charge. Charges are recorded if the store could not hold the call.
fn charge_for(claim: &Claim) -> Charge {
    let Claim { scope, unit, window, amount, .. } = claim;
    Charge { scope: *scope, unit: *unit, window: window.clone(), held: *amount }
}

/// Returns the subject to which a rule assigns this call: its session, key or model.
fn subject(rule: &BudgetRule, planned: &PlannedCall<'_>) -> String {
    match rule.scope {
        Scope::Session => planned.session.to_owned(),
        Scope::Key | Scope::Rate => planned.credential.unwrap_or_default().to_owned(),
        Scope::Model => planned.model.to_owned(),
        Scope::All => String::new(),
    }
}

fn total_tokens(tokens: &Tokens) -> u64 {
    tokens.prompt.saturating_add(tokens.completion)
}
