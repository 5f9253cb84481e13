//! Counts the cost of a session and enforces its budget.

use std::collections::HashMap;

use endmark::context::count::text;
use endmark::context::{AdmittedCall, AfterCall, BeforeCall, Meter, Models, NotAdmitted, Tokens, dollars};
use endmark_setting::RawSetting;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::context::price_time;
use crate::failure::{Failure, FailureKind};
use crate::options::{answer, parse, unknown_method};

/// A dollar in nano-dollars.
const NANO_USD_PER_DOLLAR: f64 = 1e9;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// 0 means unlimited.
    #[serde(default)]
    max_tokens: u64,
    #[serde(default)]
    max_usd: f64,
}

/// The meter of one session.
pub(crate) struct SessionMeter {
    meter: Meter<'static>,
    /// Admitted calls, each with its model.
    admitted: HashMap<u64, (String, AdmittedCall)>,
    next: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    model: String,
    prompt_tokens: u64,
    max_output_tokens: u64,
    /// Whether the call continues a cut reply. Such a call cannot be the closing call of the session.
    #[serde(default)]
    is_continuation: bool,
    #[serde(default)]
    at: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    id: u64,
    /// The tokens that the provider reported.
    #[serde(default)]
    tokens: Option<ReportedTokens>,
    /// The received text, if the provider reported no tokens. Null if no reply arrived.
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    at: Option<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct ReportedTokens {
    prompt: u64,
    cached: u64,
    cache_write: u64,
    completion: u64,
    reasoning: u64,
}

#[derive(Serialize)]
struct ShownAdmitted {
    id: u64,
    max_output_tokens: u64,
    is_closing: bool,
    warning_percent: Option<u64>,
}

impl SessionMeter {
    pub(crate) fn new(options: &str) -> Result<Self, Failure> {
        let options: Options = parse(options)?;
        if !(options.max_usd >= 0.0 && options.max_usd.is_finite()) {
            return Err(
                Failure::invalid("invalid_options", "`max_usd` must be 0 or more").about(&["max_usd"])
            );
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked, and it saturates"
        )]
        let nano_usd = (options.max_usd * NANO_USD_PER_DOLLAR).ceil() as u64;
        let meter = Meter::new(Models::builtin()).with_tokens(options.max_tokens).with_nano_usd(nano_usd);
        Ok(Self { meter, admitted: HashMap::new(), next: 1 })
    }

    pub(crate) fn call(&mut self, method: &str, options: &str) -> Result<String, Failure> {
        match method {
            "before_call" => self.before_call(&parse(options)?),
            "after_call" => self.after_call(&parse(options)?),
            "usage" => self.usage(),
            _ => Err(unknown_method(method)),
        }
    }

    fn before_call(&mut self, before: &Before) -> Result<String, Failure> {
        let call = BeforeCall {
            model: &before.model,
            prompt_tokens: before.prompt_tokens,
            max_output_tokens: before.max_output_tokens,
        };
        let at = price_time(before.at);
        let admitted = if before.is_continuation {
            self.meter.admit_continuation(&call, at)
        } else {
            self.meter.admit_call(&call, at)
        }
        .map_err(|error| meter_failure(&error))?;
        let id = self.next;
        self.next += 1;
        let shown = ShownAdmitted {
            id,
            max_output_tokens: admitted.max_output_tokens,
            is_closing: admitted.is_closing,
            warning_percent: admitted.warning.map(|level| u64::from(level.percent())),
        };
        self.admitted.insert(id, (before.model.clone(), admitted));
        answer(&shown)
    }

    fn after_call(&mut self, after: &After) -> Result<String, Failure> {
        let unknown = || Failure::invalid("unknown_call", "the call is over, or is another meter's");
        let (model, admitted) = self.admitted.remove(&after.id).ok_or_else(unknown)?;
        let outcome = match (&after.tokens, &after.text) {
            (Some(tokens), _) => AfterCall::Reported(tokens.to_tokens()),
            (None, Some(written)) => AfterCall::Unreported { output_tokens: text(written, &model).tokens },
            (None, None) => AfterCall::NoAnswer,
        };
        let cost = self.meter.settle_call(admitted, &outcome, price_time(after.at));
        answer(&json!({
            "tokens": cost.tokens,
            "usd": cost.nano_usd.map(dollars),
            "is_estimated": cost.is_estimated,
        }))
    }

    fn usage(&self) -> Result<String, Failure> {
        let usage = self.meter.usage();
        answer(&json!({
            "calls": usage.calls,
            "estimated_calls": usage.estimated_calls,
            "unpriced_calls": usage.unpriced_calls,
            "tokens": ReportedTokens::new(&usage.tokens),
            "usd": dollars(usage.nano_usd),
            "held_tokens": self.meter.held_tokens(),
            "tokens_left": self.meter.remaining_tokens(),
        }))
    }
}

impl ReportedTokens {
    fn to_tokens(&self) -> Tokens {
        Tokens {
            prompt: self.prompt,
            cached: self.cached,
            cache_write: self.cache_write,
            completion: self.completion,
            reasoning: self.reasoning,
            ..Tokens::default()
        }
    }

    fn new(tokens: &Tokens) -> Self {
        Self {
            prompt: tokens.prompt,
            cached: tokens.cached,
            cache_write: tokens.cache_write,
            completion: tokens.completion,
            reasoning: tokens.reasoning,
        }
    }
}

fn meter_failure(error: &NotAdmitted) -> Failure {
    let code = match error {
        NotAdmitted::Held { .. } => "held",
        NotAdmitted::UsedUp { .. } => "used_up",
        NotAdmitted::TooLarge { .. } => "too_large",
        NotAdmitted::NoPrice(_) => "no_price",
    };
    Failure::new(FailureKind::Budget, code, error)
}

/// The environment variables with the budget of a session. The first one that is set is used.
const BUDGET_VARIABLES: [&str; 2] = ["ENDMARK_TOKEN_BUDGET", "SRE_AGENT_TOKEN_BUDGET"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Environment {
    environment: HashMap<String, String>,
}

/// Returns the budget that the environment variables set, or 0 if none is set. Like the gateway, it accepts
/// `850000`, `850,000` and `850_000`.
pub(crate) fn token_budget(_: &[&[u8]], options: &str) -> Result<String, Failure> {
    let Environment { environment } = parse(options)?;
    let is_set = |name: &&str| environment.get(*name).is_some_and(|written| !written.trim().is_empty());
    let Some(name) = BUDGET_VARIABLES.into_iter().find(is_set) else { return answer(&0) };
    let written = environment.get(name).map_or("", |written| written.trim());
    let tokens = RawSetting::Untyped(written.to_owned()).count(0).map_err(|_| {
        let message = format!("{name} is not a number of tokens: `{written}`; write it as 850000 or 850,000");
        Failure::invalid("invalid_budget", message)
    })?;
    answer(&tokens)
}
