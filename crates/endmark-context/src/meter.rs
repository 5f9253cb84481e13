//! Meters a program's own model calls (CX-6, CX-7) with [`Meter::admit_call`] and [`Meter::settle_call`].

use crate::budget::{Account, CLOSING_OUTPUT_TOKENS, Level, Unit};
use crate::models::Models;
use crate::moment::Moment;
use crate::tokens::Tokens;

/// The budget and the usage of one session.
///
/// A meter reads no clock and makes no calls. The program asks the meter before each call, and reports the
/// outcome afterwards. Several calls may be in progress at the same time; their holds count as spent.
///
/// ```
/// use endmark_context::{AfterCall, BeforeCall, Meter, Models, Moment, Tokens, dollars};
///
/// let mut meter = Meter::new(Models::builtin()).with_tokens(10_000);
/// let at = Moment::parse("2026-11-24 12:00").unwrap();
/// let before = BeforeCall { model: "gpt-5", prompt_tokens: 900, max_output_tokens: 500 };
/// let admitted = meter.admit_call(&before, at)?;
/// assert_eq!((admitted.max_output_tokens, meter.held_tokens(), meter.remaining_tokens()), (500, 1_400, Some(8_600)));
/// // … the call is made; its provider reports what it took …
/// let tokens = Tokens { prompt: 880, cached: 512, completion: 240, ..Tokens::default() };
/// let cost = meter.settle_call(admitted, &AfterCall::Reported(tokens), at);
/// assert_eq!((cost.tokens, dollars(cost.nano_usd.unwrap()).as_str()), (1_120, "0.002924000"));
/// assert_eq!((meter.held_tokens(), meter.remaining_tokens()), (0, Some(8_880)));
/// # Ok::<(), endmark_context::NotAdmitted>(())
/// ```
#[derive(Debug)]
pub struct Meter<'a> {
    models: &'a Models,
    tokens: Option<Account>,
    nano_usd: Option<Account>,
    warned_level: Level,
    held_tokens: u64,
    usage: SessionUsage,
}

/// Usage of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionUsage {
    /// Number of answered calls.
    pub calls: u64,
    /// Number of answered calls with estimated tokens, because the provider did not report them.
    pub estimated_calls: u64,
    /// Number of answered calls to models without a price.
    pub unpriced_calls: u64,
    /// Total tokens of the answered calls.
    pub tokens: Tokens,
    /// Total cost of the answered calls that have a price, in nano-dollars.
    pub nano_usd: u64,
}

/// A call that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeforeCall<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Estimated prompt tokens, for example from [`crate::count::request`]. The meter charges them if the
    /// provider does not report the usage.
    pub prompt_tokens: u64,
    /// The maximum number of tokens that the model may generate.
    pub max_output_tokens: u64,
}

/// A call that the program may make. The call holds a part of the budget until it is passed to
/// [`Meter::settle_call`].
#[must_use = "what it holds is held until it is given back"]
#[derive(Debug, PartialEq, Eq)]
pub struct AdmittedCall {
    model: String,
    held_tokens: u64,
    held_nano_usd: u64,
    prompt_tokens: u64,
    /// The maximum number of tokens that the model may generate.
    pub max_output_tokens: u64,
    /// Whether this is the session's last call. Make it without tools, and ask the model to summarise its
    /// findings.
    pub is_closing: bool,
    /// The spending level that the session has just reached. `None` if no new level was reached.
    pub warning: Option<Level>,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCall {
    /// The provider reported this usage.
    Reported(Tokens),
    /// The provider did not report the usage, so the meter estimates it. The call was answered, interrupted,
    /// or abandoned while in progress.
    Unreported {
        /// Estimated tokens of the received text, for example from [`crate::count::text`].
        output_tokens: u64,
    },
    /// The call was not answered: it was not made, or the provider failed or refused it. It costs nothing.
    NoAnswer,
}

/// Cost of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCost {
    /// Prompt tokens plus generated tokens.
    pub tokens: u64,
    /// Nano-dollars; `None` for a model without a price.
    pub nano_usd: Option<u64>,
    /// Whether the tokens are estimated.
    pub is_estimated: bool,
}

/// The reason why a call may not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The call does not fit now, because calls in progress hold the rest of the budget.
    #[error("other calls hold what is left of the budget: {} spent and {} held of {}; ask again when one of them is over", unit.format(account.spent), unit.format(account.held), unit.format(account.limit))]
    Held {
        /// Unit of the budget.
        unit: Unit,
        /// State of the budget.
        account: Account,
    },
    /// The budget is used up, and the closing call has already been made.
    #[error("the budget is used up: {} spent and {} held of {}", unit.format(account.spent), unit.format(account.held), unit.format(account.limit))]
    UsedUp {
        /// Unit of the budget.
        unit: Unit,
        /// State of the budget.
        account: Account,
    },
    /// The call may cost more than the whole budget.
    #[error("the call may need {}, more than the whole budget of {}; ask for less", unit.format(*needed), unit.format(account.limit))]
    TooLarge {
        /// Unit of the budget.
        unit: Unit,
        /// State of the budget.
        account: Account,
        /// Highest possible cost of the call.
        needed: u64,
    },
    /// The budget is in dollars, and the model has no price.
    #[error("there is a budget in dollars, and the model `{0}` has no price")]
    NoPrice(String),
}

impl<'a> Meter<'a> {
    /// Returns a meter without a budget, for a session with no calls yet. Costs come from this price table.
    pub fn new(models: &'a Models) -> Self {
        let usage = SessionUsage::default();
        Self { models, tokens: None, nano_usd: None, warned_level: Level::Low, held_tokens: 0, usage }
    }

    /// Sets the budget in tokens. 0 means unlimited.
    #[must_use]
    pub fn with_tokens(self, limit: u64) -> Self {
        let tokens = (limit > 0).then_some(Account { limit, ..Account::default() });
        Self { tokens, ..self }
    }

    /// Sets the budget in nano-dollars. 0 means unlimited.
    #[must_use]
    pub fn with_nano_usd(self, limit: u64) -> Self {
        let nano_usd = (limit > 0).then_some(Account { limit, ..Account::default() });
        Self { nano_usd, ..self }
    }

    /// Returns the session's usage so far.
    pub fn usage(&self) -> &SessionUsage {
        &self.usage
    }

    /// Returns the number of tokens that calls in progress hold.
    pub fn held_tokens(&self) -> u64 {
        self.held_tokens
    }

    /// Returns the number of tokens left in the budget, after holds. Returns `None` if there is no token
    /// budget.
    pub fn remaining_tokens(&self) -> Option<u64> {
        self.tokens.map(|account| account.remaining())
    }

    /// Decides whether a call may be made. If so, holds its highest possible cost.
    ///
    /// The first call that no longer fits is admitted as the closing call, with at most
    /// [`CLOSING_OUTPUT_TOKENS`] output tokens. All later calls are refused.
    ///
    /// # Errors
    /// [`NotAdmitted`] if the call may not be made.
    pub fn admit_call(&mut self, call: &BeforeCall<'_>, at: Moment) -> Result<AdmittedCall, NotAdmitted> {
        let not_admitted = match self.admit_continuation(call, at) {
            Ok(admitted) => return Ok(admitted),
            Err(error @ NotAdmitted::NoPrice(_)) => return Err(error),
            Err(error) => error,
        };
        let full = self.highest_cost(call, call.max_output_tokens, at)?;
        let is_closed = |account: &Option<Account>| account.is_some_and(|account| account.is_closed);
        let is_closed_by =
            |account: Option<Account>, amount| account.is_some_and(|account| account.is_closing_call(amount));
        let closes = is_closed_by(self.tokens, full.0) || is_closed_by(self.nano_usd, full.1);
        if !closes || is_closed(&self.tokens) || is_closed(&self.nano_usd) {
            return Err(not_admitted);
        }
        let output = call.max_output_tokens.min(CLOSING_OUTPUT_TOKENS);
        let closing = self.highest_cost(call, output, at)?;
        for account in [&mut self.tokens, &mut self.nano_usd].into_iter().flatten() {
            account.is_closed = true;
        }
        Ok(AdmittedCall { max_output_tokens: output, ..self.hold_amounts(call, closing, true) })
    }

    /// Like [`admit_call`](Self::admit_call), for a call that must not become the closing call.
    ///
    /// An example is the continuation of a cut reply: a closing call asks for a summary, which cannot
    /// complete a reply. The closing call remains available.
    ///
    /// # Errors
    /// [`NotAdmitted`] if the call may not be made.
    pub fn admit_continuation(
        &mut self,
        call: &BeforeCall<'_>,
        at: Moment,
    ) -> Result<AdmittedCall, NotAdmitted> {
        let full = self.highest_cost(call, call.max_output_tokens, at)?;
        self.refusal(full).map_or_else(|| Ok(self.hold_amounts(call, full, false)), Err)
    }

    /// Replaces the hold of a call with its actual cost, and returns that cost.
    pub fn settle_call(&mut self, admitted: AdmittedCall, after: &AfterCall, at: Moment) -> CallCost {
        let AdmittedCall { model, held_tokens, held_nano_usd, prompt_tokens, .. } = admitted;
        let estimated = |completion| Tokens { prompt: prompt_tokens, completion, ..Tokens::default() };
        let (taken, answered, is_estimated) = match *after {
            AfterCall::Reported(tokens) => (tokens, true, false),
            AfterCall::Unreported { output_tokens } => (estimated(output_tokens), true, true),
            AfterCall::NoAnswer => (Tokens::default(), false, false),
        };
        let tokens = taken.prompt.saturating_add(taken.completion);
        let nano_usd = self.price_of_call(&model, &taken, at);
        self.held_tokens = self.held_tokens.saturating_sub(held_tokens);
        settle_account(&mut self.tokens, held_tokens, tokens);
        settle_account(&mut self.nano_usd, held_nano_usd, nano_usd.unwrap_or(0));
        if answered {
            self.usage.calls += 1;
            self.usage.estimated_calls += u64::from(is_estimated);
            self.usage.unpriced_calls += u64::from(nano_usd.is_none());
            self.usage.tokens = self.usage.tokens + taken;
            self.usage.nano_usd = self.usage.nano_usd.saturating_add(nano_usd.unwrap_or(0));
        }
        CallCost { tokens, nano_usd, is_estimated }
    }

    /// Returns the highest possible cost of a call in tokens, and in nano-dollars if the budget is in
    /// dollars.
    fn highest_cost(
        &self,
        call: &BeforeCall<'_>,
        output: u64,
        at: Moment,
    ) -> Result<(u64, u64), NotAdmitted> {
        let tokens = Tokens { prompt: call.prompt_tokens, completion: output, ..Tokens::default() };
        let nano_usd = match self.nano_usd {
            None => 0,
            Some(_) => self
                .price_of_call(call.model, &tokens, at)
                .ok_or_else(|| NotAdmitted::NoPrice(call.model.to_owned()))?,
        };
        Ok((call.prompt_tokens.saturating_add(output), nano_usd))
    }

    fn price_of_call(&self, model: &str, tokens: &Tokens, at: Moment) -> Option<u64> {
        self.models.find(model)?.prices.cost(tokens, at, None).map(|cost| cost.nano_usd)
    }

    fn refusal(&self, (tokens, nano_usd): (u64, u64)) -> Option<NotAdmitted> {
        let accounts = [(Unit::Tokens, self.tokens, tokens), (Unit::NanoUsd, self.nano_usd, nano_usd)];
        let accounts =
            || accounts.into_iter().filter_map(|(unit, account, amount)| Some((unit, account?, amount)));
        let used_up = accounts().find(|(_, account, amount)| !account.may_admit(*amount));
        let held = accounts().find(|(_, account, amount)| !account.admits(*amount));
        let used_up = used_up.map(|(unit, account, needed)| {
            if needed > account.limit && !account.is_closed {
                NotAdmitted::TooLarge { unit, account, needed }
            } else {
                NotAdmitted::UsedUp { unit, account }
            }
        });
        used_up.or(held.map(|(unit, account, _)| NotAdmitted::Held { unit, account }))
    }

    fn hold_amounts(
        &mut self,
        call: &BeforeCall<'_>,
        (tokens, nano_usd): (u64, u64),
        is_closing: bool,
    ) -> AdmittedCall {
        self.held_tokens = self.held_tokens.saturating_add(tokens);
        let mut level = Level::Low;
        for (account, amount) in [(&mut self.tokens, tokens), (&mut self.nano_usd, nano_usd)] {
            if let Some(account) = account {
                account.held = account.held.saturating_add(amount);
                level = level.max(account.level());
            }
        }
        let is_news = level > self.warned_level;
        self.warned_level = self.warned_level.max(level);
        AdmittedCall {
            model: call.model.to_owned(),
            held_tokens: tokens,
            held_nano_usd: nano_usd,
            prompt_tokens: call.prompt_tokens,
            max_output_tokens: call.max_output_tokens,
            is_closing,
            warning: is_news.then_some(level),
        }
    }
}

fn settle_account(account: &mut Option<Account>, held: u64, spent: u64) {
    if let Some(account) = account {
        account.held = account.held.saturating_sub(held);
        account.spent = account.spent.saturating_add(spent);
    }
}

#[cfg(test)]
mod tests;
