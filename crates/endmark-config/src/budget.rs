//! What may be spent. (CX-7)

use endmark_context::budget::{Period, Rule, Scope, Unit, Zone};
use endmark_gateway::{BudgetSettings, Secret};

use super::choice::Choice;

/// Budgets; 0 is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub session_tokens: u64,
    /// Nano-dollars, as all that follow in dollars.
    pub session_usd: u64,
    pub day_tokens: u64,
    pub day_usd: u64,
    pub key_day_tokens: u64,
    pub key_day_usd: u64,
    pub model_day_tokens: u64,
    pub model_day_usd: u64,
    pub assume_output_tokens: u64,
    pub on_store_error: OnStoreError,
    pub unknown_price: UnknownPrice,
    pub unknown_paths: UnknownPaths,
    pub zone: Zone,
    /// Its address is enough to send something there.
    pub webhook: Option<Secret>,
    pub webhook_secret: Option<Secret>,
}

/// What is done with a call that cannot be held, since the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnStoreError {
    /// It is made.
    Open,
    /// It is refused.
    Closed,
}

/// What is done with a call whose price is not known, where a budget is in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownPrice {
    /// It is refused.
    Refuse,
    /// It counts in budgets of tokens alone.
    CountTokensOnly,
}

/// How a request of unknown cost or model is treated where a budget or a list of models applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownPaths {
    /// It is refused.
    Refuse,
    /// It passes uncounted.
    Pass,
}

impl Choice for UnknownPaths {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("refuse", Self::Refuse), ("pass", Self::Pass)]
    }
}

impl Choice for OnStoreError {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("open", Self::Open), ("closed", Self::Closed)]
    }
}

impl Choice for UnknownPrice {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("refuse", Self::Refuse), ("count_tokens_only", Self::CountTokensOnly)]
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            session_tokens: 0,
            session_usd: 0,
            day_tokens: 0,
            day_usd: 0,
            key_day_tokens: 0,
            key_day_usd: 0,
            model_day_tokens: 0,
            model_day_usd: 0,
            assume_output_tokens: 4_096,
            on_store_error: OnStoreError::Open,
            unknown_price: UnknownPrice::Refuse,
            unknown_paths: UnknownPaths::Refuse,
            zone: Zone::default(),
            webhook: None,
            webhook_secret: None,
        }
    }
}

impl Budget {
    /// The same for the gateway.
    pub fn for_gateway(&self) -> BudgetSettings {
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
        let rule = |(scope, period, unit, limit)| Rule { scope, unit, period, limit };
        BudgetSettings {
            rules: rules.into_iter().filter(|(.., limit)| *limit > 0).map(rule).collect(),
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
