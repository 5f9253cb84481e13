//! The gateway's own keys (CX-7). A key decides which client is admitted, for which models, with which budget, and
//! until when.
//!
//! A secret is long and random, so its unsalted hash reveals nothing. The secret is shown once, and only the hash is
//! stored.

mod key_changes;
mod operations;

use std::fmt;

use endmark_context::budget::{BudgetRule, Period, RateLimits, Scope, Unit};

use crate::error::StoreError;

pub use key_changes::KeyBook;

/// Prefix of every secret. No provider uses it.
pub const SECRET_PREFIX: &str = "em_sk_";

/// Random bytes of a secret: 256 bits.
const SECRET_BYTES: usize = 32;

/// Maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The largest budget or rate limit of a key.
const MAX_KEY_LIMIT: u64 = 1 << 60;

/// A key to be created.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewKey {
    /// Name in the log, in usage and in budgets: letters, digits, `-`, `_` and `.`, at most 64.
    pub name: String,
    /// Patterns of the allowed models; empty for all.
    pub models: Vec<String>,
    /// Budget of the key.
    pub budget: Option<KeyBudget>,
    /// Rate limits of the key.
    pub rates: RateLimits,
    /// Expiry time in seconds since 1970; `None` for never.
    pub ends_at: Option<u64>,
}

impl NewKey {
    /// Checks that the key is valid.
    pub(crate) fn check(&self) -> Result<(), KeyError> {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if self.name.is_empty() || self.name.len() > MAX_NAME_BYTES || !self.name.bytes().all(is_of_name) {
            return Err(KeyError::BadName(self.name.clone()));
        }
        let is_bad = |model: &&String| model.trim().is_empty() || model.contains(['\n', '\0']);
        if let Some(model) = self.models.iter().find(is_bad) {
            return Err(KeyError::BadModel(model.clone()));
        }
        let RateLimits { requests_per_minute, tokens_per_minute, parallel } = self.rates;
        let rates = [
            (Unit::Requests, requests_per_minute),
            (Unit::Tokens, tokens_per_minute),
            (Unit::Parallel, parallel),
        ];
        let limits = rates.into_iter().filter_map(|(unit, limit)| Some((unit, limit?)));
        let mut limits = limits.chain(self.budget.map(|budget| (budget.unit, budget.limit)));
        limits
            .find(|(_, limit)| *limit > MAX_KEY_LIMIT)
            .map_or(Ok(()), |(unit, _)| Err(KeyError::TooLarge(unit)))
    }
}

/// Budget of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyBudget {
    /// The unit.
    pub unit: Unit,
    /// The limit; 0 admits nothing.
    pub limit: u64,
    /// The period after which the budget starts again.
    pub period: Period,
}

impl KeyBudget {
    /// Returns the budget as a rule of scope [`Scope::Key`].
    pub fn rule(self) -> BudgetRule {
        BudgetRule { scope: Scope::Key, unit: self.unit, period: self.period, limit: self.limit }
    }
}

/// A stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Patterns of the allowed models; empty for all.
    pub models: Vec<String>,
    /// Budget of the key.
    pub budget: Option<KeyBudget>,
    /// Rate limits of the key.
    pub rates: RateLimits,
    /// Expiry time in seconds since 1970; `None` for never.
    pub ends_at: Option<u64>,
    /// Creation time in seconds since 1970.
    pub created_at: u64,
    /// Revocation time in seconds since 1970.
    pub revoked_at: Option<u64>,
}

/// Whether a key or secret is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It is accepted.
    Valid,
    /// It has expired.
    Expired,
    /// It was revoked.
    Revoked,
}

impl Key {
    /// Returns the state of the key at this time in seconds since 1970.
    pub fn state(&self, now: u64) -> KeyState {
        match (self.revoked_at, self.ends_at) {
            (Some(_), _) => KeyState::Revoked,
            (None, Some(ends_at)) if ends_at <= now => KeyState::Expired,
            _ => KeyState::Valid,
        }
    }

    /// Returns the client's identity in usage, in budgets, and as the owner of kept data. It is the same for all
    /// secrets of the key, and never equals the hash of a credential.
    pub fn identity(&self) -> String {
        format!("key:{}", self.name)
    }
}

/// A key that was found by one of its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundKey {
    /// The key.
    pub key: Key,
    /// Expiry time of the secret in seconds since 1970; `None` for never. Rotating the key sets it for the
    /// older secrets.
    pub secret_ends_at: Option<u64>,
}

impl FoundKey {
    /// Returns the state of the secret at this time in seconds since 1970.
    pub fn state(&self, now: u64) -> KeyState {
        match (self.key.state(now), self.secret_ends_at) {
            (KeyState::Valid, Some(ends_at)) if ends_at <= now => KeyState::Expired,
            (state, _) => state,
        }
    }
}

impl KeyBudget {
    /// Builds the budget from the columns of a table row. Returns `None` if the row has no limit.
    pub(crate) fn from_columns(unit: Option<&str>, period: Option<&str>, limit: Option<u64>) -> Option<Self> {
        limit.map(|limit| Self {
            unit: unit.map_or(Unit::Tokens, Unit::from_name),
            limit,
            // The tables contain no other periods. If they did, the longest window would be the strictest
            // choice.
            period: Period::ALL
                .into_iter()
                .find(|known| period == Some(known.name()))
                .unwrap_or(Period::Ever),
        })
    }
}

/// A secret, which is shown once. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

impl KeySecret {
    /// Returns a new random secret.
    ///
    /// # Errors
    /// [`KeyError::NoRandomBytes`] if the system provides none.
    pub fn random() -> Result<Self, KeyError> {
        let mut bytes = [0_u8; SECRET_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| KeyError::NoRandomBytes(error.to_string()))?;
        let digits =
            |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0'));
        Ok(Self(SECRET_PREFIX.chars().chain(bytes.into_iter().flat_map(digits)).collect()))
    }

    /// Returns the secret as the client sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeySecret(…)")
    }
}

/// Error of an operation on keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The name is not valid.
    #[error(
        "`{0}` is not a valid name of a key: use letters, digits, `-`, `_` and `.`, at most {MAX_NAME_BYTES}"
    )]
    BadName(String),
    /// A key of this name exists or existed. Names are not reused, because data of the old key would belong to the
    /// new one.
    #[error("a key `{0}` already exists or existed: choose another name")]
    NameTaken(String),
    /// No valid key has this name.
    #[error("no key `{0}` exists, or it is revoked")]
    Unknown(String),
    /// The pattern of a model is not valid.
    #[error("`{0}` is not the name or the pattern of a model")]
    BadModel(String),
    /// A budget or a rate limit in this unit is too large.
    #[error("a limit is too large: the maximum is {}", .0.format(MAX_KEY_LIMIT))]
    TooLarge(Unit),
    /// The system provides no random bytes.
    #[error("the system provides no random bytes: {0}")]
    NoRandomBytes(String),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}
