//! Defines the settings of the budgets. (CX-7)

use endmark_context::budget::{BudgetRule, Period, RateLimits, Scope, Unit, Zone};
use endmark_gateway::{BudgetSettings, Clock, Secret, SecretText};
use endmark_setting::{AtLeast, OneOf, settings};

use super::kinds::{Dollars, ZoneName};

settings! {
    /// The budgets. 0 means unlimited. Amounts are stored in nano-dollars.
    // Fields: one for each key of the section.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Budget {
        /// Tokens that a session may use; 0: unlimited (`SRE_AGENT_TOKEN_BUDGET`, `ENDMARK_TOKEN_BUDGET`).
        session_tokens: u64 = 0, AtLeast(0);
        /// Dollars that a session may cost; 0: unlimited.
        session_usd: u64 = 0, Dollars;
        /// Tokens that all requests may use on one day; 0: unlimited.
        day_tokens: u64 = 0, AtLeast(0);
        /// Dollars that all requests may cost on one day; 0: unlimited.
        day_usd: u64 = 0, Dollars;
        /// Tokens that one key may use on one day; 0: unlimited.
        key_day_tokens: u64 = 0, AtLeast(0);
        /// Dollars that one key may cost on one day; 0: unlimited.
        key_day_usd: u64 = 0, Dollars;
        /// Requests that one key may make in one minute; 0: unlimited.
        key_minute_requests: u64 = 0, AtLeast(0);
        /// Tokens that one key may use in one minute; 0: unlimited.
        key_minute_tokens: u64 = 0, AtLeast(0);
        /// Requests that one key may make at once; 0: unlimited.
        key_parallel: u64 = 0, AtLeast(0);
        /// Tokens that one model may use on one day; 0: unlimited.
        model_day_tokens: u64 = 0, AtLeast(0);
        /// Dollars that one model may cost on one day; 0: unlimited.
        model_day_usd: u64 = 0, Dollars;
        /// Output tokens that are held for a call without a limit.
        assume_output_tokens: u64 = 4_096, AtLeast(1);
        /// Whether calls are made if the store cannot hold them: open, or closed. With PostgreSQL the default is closed.
        on_store_error: OnStoreError = OnStoreError::Open, ON_STORE_ERROR;
        /// A model without a price, if a budget is in dollars: refuse, or count_tokens_only.
        unknown_price: UnknownPrice = UnknownPrice::Refuse, UNKNOWN_PRICE;
        /// Paths whose cost is not counted, if a budget applies: refuse, or pass.
        unknown_paths: UnknownPaths = UnknownPaths::Refuse, UNKNOWN_PATHS;
        /// The zone in which days and months begin at midnight: UTC, +02:00, Europe/Berlin.
        zone: Zone = Zone::default(), ZoneName;
        // Any program that knows this URL can send events to it, so it is a secret.
        /// An address that gets an event when a budget reaches 80 or 95 percent.
        webhook: Option<Secret> = None, SecretText;
        /// The secret that signs these events (HMAC-SHA256, in x-endmark-signature).
        webhook_secret: Option<Secret> = None, SecretText;
    }
}

/// What happens to a call if the store fails and cannot hold its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnStoreError {
    /// The call is made.
    Open,
    /// The call is refused.
    Closed,
}

/// What happens to a call without a known price, if a budget is in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownPrice {
    /// The call is refused.
    Refuse,
    /// The call counts only in token budgets.
    CountTokensOnly,
}

/// What happens to a request with an unknown cost or model, if a budget or a list of models applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownPaths {
    /// The call is refused.
    Refuse,
    /// The call passes and is not counted.
    Pass,
}

const ON_STORE_ERROR: OneOf<OnStoreError> =
    OneOf(&[("open", OnStoreError::Open), ("closed", OnStoreError::Closed)]);

const UNKNOWN_PRICE: OneOf<UnknownPrice> =
    OneOf(&[("refuse", UnknownPrice::Refuse), ("count_tokens_only", UnknownPrice::CountTokensOnly)]);

const UNKNOWN_PATHS: OneOf<UnknownPaths> =
    OneOf(&[("refuse", UnknownPaths::Refuse), ("pass", UnknownPaths::Pass)]);

impl Budget {
    /// Converts the settings to those of the gateway. Budgets of 0 are left out.
    pub fn to_gateway(&self) -> BudgetSettings {
        use {Period::Day, Period::Ever, Unit::NanoUsd, Unit::Tokens};
        let rules = [
            (Scope::Session, Ever, Tokens, self.session_tokens),
            (Scope::Session, Ever, NanoUsd, self.session_usd),
            (Scope::Key, Day, Tokens, self.key_day_tokens),
            (Scope::Key, Day, NanoUsd, self.key_day_usd),
            (Scope::Model, Day, Tokens, self.model_day_tokens),
            (Scope::Model, Day, NanoUsd, self.model_day_usd),
            (Scope::All, Day, Tokens, self.day_tokens),
            (Scope::All, Day, NanoUsd, self.day_usd),
        ];
        let rule = |(scope, period, unit, limit)| BudgetRule { scope, unit, period, limit };
        let limit = |limit: u64| (limit > 0).then_some(limit);
        BudgetSettings {
            rules: rules.into_iter().filter(|(.., limit)| *limit > 0).map(rule).collect(),
            rates: RateLimits {
                requests_per_minute: limit(self.key_minute_requests),
                tokens_per_minute: limit(self.key_minute_tokens),
                parallel: limit(self.key_parallel),
            },
            clock: Clock::default(),
            zone: self.zone.clone(),
            webhook: self.webhook.as_ref().map(|address| address.reveal().to_owned()),
            webhook_secret: self.webhook_secret.clone(),
            assume_output_tokens: self.assume_output_tokens,
            is_closed_on_store_error: self.on_store_error == OnStoreError::Closed,
            passes_unknown_paths: self.unknown_paths == UnknownPaths::Pass,
            admits_unpriced: self.unknown_price == UnknownPrice::CountTokensOnly,
        }
    }
}
